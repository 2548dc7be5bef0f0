"""What the page says of outcomes, and which findings are left for somebody to judge."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from coordinator_model.known_defects import KNOWN_DEFECTS
from tests.conformance import document as page
from tests.conformance.judgements import JUDGEMENTS, Judgement, Verdict

BREACH = Judgement(
    key="B9",
    verdict=Verdict.BREACH,
    libraries=("franz-go",),
    rules=("O-05",),
    title="commits what it has not",
    protocol="KIP-0",
    source="a line",
    costs="a message",
    avoid="not at all",
)


@pytest.fixture(autouse=True)
def one_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.conformance.judgements.JUDGEMENTS", (BREACH,))
    monkeypatch.setattr(page, "JUDGEMENTS", (BREACH,))


def outcome(*rules: str, library: str = "franz-go", scenario: str = "suspended", **more: Any) -> dict[str, Any]:
    findings = [{"rule": rule, "severity": "warning", "summary": f"{rule} it is", "frames": ["+0 ms  a frame"]} for rule in rules]
    there = {"library": library, "version": "1", "broker": "4.3.1", "scenario": scenario, "seed": 1, "seconds": 60.0}
    return {**there, "troubles": [], "errors": {}, "findings": findings, **more}


def row(*outcomes: dict[str, Any]) -> str:
    [found] = [line for line in page.document(outcomes).splitlines() if line.startswith("| franz-go ")]
    return found.split(") | ")[1].removesuffix(" |")


def test_what_a_scenario_does_on_purpose_is_no_surprise() -> None:
    assert row(outcome("T-04")) == "kept"
    assert page.unjudged([outcome("T-04")]) == []


def test_a_judged_finding_is_a_cell_and_a_section_with_its_frames() -> None:
    assert row(outcome("O-05")) == "B9"
    assert page.unjudged([outcome("O-05")]) == []
    text = page.document([outcome("O-05")])
    assert "### B9: commits what it has not" in text
    assert "      +0 ms  a frame" in text


def test_a_finding_that_nobody_has_judged_is_left() -> None:
    assert row(outcome("G-07")) == "?"
    left = page.unjudged([outcome("O-05", library="sarama"), outcome("G-07")])
    assert left == [
        "sarama, suspended, Kafka 4.3.1, seed 1: warning O-05 O-05 it is",
        "franz-go, suspended, Kafka 4.3.1, seed 1: warning G-07 G-07 it is",
    ]


def test_a_group_that_never_settles_is_stuck_or_what_was_made_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = outcome(troubles=["not stable with 2 members after 90 s, but Stable with 1"])
    assert row(stuck) == "stuck"
    known = dataclasses.replace(BREACH, rules=("stuck",))
    monkeypatch.setattr("tests.conformance.judgements.JUDGEMENTS", (known,))
    monkeypatch.setattr(page, "JUDGEMENTS", (known,))
    assert row(stuck) == "B9"
    assert "The group was not stable with 2 members after 90 s" in page.document([stuck])


def test_where_seeds_differ_is_said() -> None:
    same = [outcome("T-04", seed=1), outcome(seed=2)]
    text = page.document(same)
    assert "1 of these were played with several seeds, with the same verdict in 1." in text
    assert "the same verdict with each seed in 1 of 1 cases" in text
    text = page.document([*same, outcome(scenario="kills", seed=1), outcome("O-05", scenario="kills", seed=2)])
    assert "2 of these were played with several seeds, with the same verdict in 1." in text
    assert "the same verdict with each seed in 0 of 1 cases" in text
    assert "- franz-go, kills, Kafka 4.3.1: kept with seed 1, B9 with seed 2\n" in text


def test_a_library_has_one_verdict_when_a_breach_shows_in_another_scenario_with_another_seed() -> None:
    first = [outcome("O-05", seed=1), outcome(seed=1, scenario="kills")]
    second = [outcome(seed=2), outcome("O-05", seed=2, scenario="kills")]
    text = page.document([*first, *second])
    assert "with the same verdict in 0. Over all its scenarios" in text
    assert "the same verdict with each seed in 1 of 1 cases" in text


def test_what_was_not_played_is_said_with_its_reason() -> None:
    last = page.document([outcome(broker="4.1.2")]).partition("## What was not played")[2]
    assert "| 4.1.2 | kafka-streams-streams | all: its protocol needs Kafka 4.2 |" in last
    assert "| 4.1.2 | kafkajs | static, cooperative, transactions: it has no such feature; one-by-one, " in last
    [line] = [line for line in last.splitlines() if "| franz-go |" in line]
    assert "suspended" not in line


def test_every_judgement_has_a_key_of_its_own() -> None:
    keys = [one.key for one in JUDGEMENTS]
    assert len(keys) == len(set(keys))


def test_each_breach_of_a_library_is_a_known_defect_that_findings_quote() -> None:
    quoted = {(defect.library, rule) for defect in KNOWN_DEFECTS for rule in defect.rules}
    breaches = [
        (one.key, name, {(name, rule) for rule in one.rules})
        for one in JUDGEMENTS
        if one.verdict is Verdict.BREACH
        for name in one.libraries
    ]
    assert len(breaches) >= 10
    assert [(key, name) for key, name, shown in breaches if not shown & quoted] == []
