"""What the page says of outcomes, and which findings are left for somebody to judge."""

from __future__ import annotations

from typing import Any

import pytest

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


def test_a_group_that_never_settles_is_stuck() -> None:
    assert row(outcome(troubles=["not stable with 2 members after 45 s, but Stable with 1"])) == "stuck"


def test_the_newest_outcome_of_a_scenario_counts(tmp_path: Any) -> None:
    import json

    for name, rules in (("1", ("O-05",)), ("2", ())):
        (tmp_path / name).write_text(json.dumps(outcome(*rules)) + "\n")
    assert page.read([tmp_path / "1", tmp_path / "2"]) == [outcome()]


def test_every_judgement_has_a_key_of_its_own() -> None:
    keys = [one.key for one in JUDGEMENTS]
    assert len(keys) == len(set(keys))
