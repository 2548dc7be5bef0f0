"""Sentences of findings are for people: clock times, capital letters, articles and plurals, over all golden transcripts."""

from __future__ import annotations

import re
from functools import cache

import pytest

from coordinator_model import wording
from coordinator_model.coordinator import Coordinator
from coordinator_model.rules import CATALOGUE
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.error_codes import ERROR_CODES
from tests.golden import transcript

_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d")
_ONE_OF_MANY = re.compile(r"(?<![\w.,:-])1 (?!other\b)[A-Za-z]+(?<![su])s\b")
_CLIENT_IN_BRACKETS = re.compile(r"\b(?:to|of|by|from|and|between|throttles) \(client")


@cache
def sentences() -> list[str]:
    """All texts of the findings in the golden transcripts, and those that no finding changes."""
    found = {text for rule in CATALOGUE.values() for text in (rule.expected, rule.action)}
    for name in transcript.names():
        model = Coordinator(topic="golden", partition=0, settings=transcript.SETTINGS)
        findings = [finding for record in transcript.read(name) for finding in model.receive(record)]
        findings += model.advance(model.now_us + 600_000)
        found |= {text for one in findings for text in (one.summary, one.expected, one.observed, one.action)}
    return sorted(found - {""})


def test_no_sentence_has_a_time_that_only_machines_read() -> None:
    assert [text for text in sentences() if _ISO.search(text)] == []


def test_sentences_begin_with_a_capital_letter_or_a_number() -> None:
    assert [text for text in sentences() if not (text[0].isupper() or text[0].isdigit())] == []


def test_no_sentence_has_the_wrong_article_before_an_api_or_an_error() -> None:
    """Operators read "accepted a OffsetCommit"."""
    names = [*API_NAMES.values(), *(error.name for error in ERROR_CODES.values())]
    wrong = re.compile(rf"\b(?:a (?=[AEIO])|an (?=[^AEIOaeiou]))(?:{'|'.join(names)})\b")
    assert wrong.search("accepted a OffsetCommit")
    assert [text for text in sentences() if wrong.search(text)] == []


def test_one_thing_is_not_said_to_be_several() -> None:
    assert [text for text in sentences() if _ONE_OF_MANY.search(text)] == []


def test_a_client_that_is_no_apposition_stands_without_brackets() -> None:
    assert [text for text in sentences() if _CLIENT_IN_BRACKETS.search(text)] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("member m-1 left", "Member m-1 left"),
        ("kafka-1:9092 answered", "kafka-1:9092 answered"),
        ("lab-a-2 was given twice", "lab-a-2 was given twice"),
        ("nothing, for long", "Nothing, for long"),
        ("", ""),
    ],
)
def test_names_at_the_beginning_stay_as_they_are(words: str, said: str) -> None:
    assert wording.begin(words) == said


def test_times_and_numbers_are_a_persons() -> None:
    at_us = 1_795_245_378_796_746
    assert wording.clock(at_us) == "07:16:18"
    assert wording.since(at_us, at_us + 25_000_000) == "since 07:16:18, 25.0 s"
    assert [wording.seconds(us) for us in (0, 49_999, 50_000, 12_345_678)] == ["0 ms", "49 ms", "0.1 s", "12.3 s"]
    assert [wording.counted(count, "entry", "entries") for count in (0, 1, 2_000)] == ["0 entries", "1 entry", "2,000 entries"]


def test_of_a_finding_that_is_over_nobody_waits_any_more() -> None:
    assert wording.afterwards("it was told to; 2 others have waited for it since 07:16:18, 11.0 s") == (
        "it was told to; 2 others waited for it since 07:16:18, 11.0 s"
    )
    assert wording.afterwards("1 other waits; no member waits for it; 1 other member has waited for its SyncGroup") == (
        "1 other waited; no member waited for it; 1 other member waited for its SyncGroup"
    )
    assert wording.afterwards("Group g waits") == "Group g waits"
