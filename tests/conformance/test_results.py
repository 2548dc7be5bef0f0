"""The results that are kept: newer ones replace older ones, and the page is written from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.conformance.document import PAGE, document, unjudged
from tests.conformance.results import RESULTS, keep, read


def outcome(library: str, *rules: str, version: str = "1", seed: int = 1) -> dict[str, Any]:
    there = {"library": library, "version": version, "broker": "4.3.1", "scenario": "suspended", "seed": seed, "seconds": 60.0}
    return {**there, "troubles": [], "errors": {}, "findings": [{"rule": rule} for rule in rules]}


def test_a_newer_outcome_replaces_the_older_one_and_leaves_the_others(tmp_path: Path) -> None:
    keep(tmp_path, [outcome("sarama"), outcome("franz-go", "O-05"), outcome("franz-go", "O-05", seed=2)])
    keep(tmp_path, [outcome("franz-go", version="2")])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["4.3.1-1.jsonl", "4.3.1-2.jsonl"]
    assert read(tmp_path) == [
        outcome("franz-go", version="2"),
        outcome("sarama"),
        outcome("franz-go", "O-05", seed=2),
    ]


def test_the_page_is_written_from_the_results_that_are_kept() -> None:
    assert PAGE.read_text() == document(read(RESULTS))


def test_every_kept_finding_is_judged() -> None:
    assert unjudged(read(RESULTS)) == []
