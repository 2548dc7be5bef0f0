"""Findings as the model really publishes them, for the tests of what is made of them: from golden transcripts, or from a conversation."""

from __future__ import annotations

from typing import Any

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding
from streaming.notify.notification import ObservedFinding
from tests.coordinator_model.conversation import Conversation
from tests.golden import transcript

_LATER_US = 10_000_000


def published(name: str) -> list[dict[str, Any]]:
    """All that the model publishes about a transcript, until it is quiet again."""
    model = Coordinator(topic="golden", partition=0, settings=transcript.SETTINGS)
    found: list[Finding] = []
    for record in transcript.read(name):
        found += model.receive(record)
    for _ in range(20):
        found += model.advance(model.now_us + _LATER_US)
    return [finding.as_json() for finding in found]


def of_rule(name: str, rule: str) -> list[dict[str, Any]]:
    """All states of the findings of a rule, in order."""
    return [finding for finding in published(name) if finding["rule"] == rule]


def worsening() -> list[dict[str, Any]]:
    """R-01, which opens as a warning, becomes an error and is resolved."""
    talk = Conversation()
    a, b = talk.client("a"), talk.client("b")
    talk.round([a, b], 3)
    asked = talk.ask_join(a)
    talk.wait(26_000)
    talk.joined(asked, generation=4, leader=a, roster=[a])
    talk.sync_all([a])
    talk.wait(1_000)
    return [finding.as_json() for finding in talk.findings if finding.rule == "R-01"]


def observed(finding: dict[str, Any], *, at_s: float | None = None, offset: int = 0, partition: int = 0) -> ObservedFinding:
    """It arrives as it happens, or at ``at_s``."""
    taken = ObservedFinding.of(finding, written_s=0.0)
    happened_s = taken.updated_s if taken.resolved_s is None else taken.resolved_s
    return ObservedFinding.of(finding, written_s=happened_s if at_s is None else at_s, partition=partition, offset=offset)
