"""No lawful answer is one that no row of the protocol's table explains, however the capture is spoilt."""

from __future__ import annotations

from random import Random

import pytest

from tests.coordinator_model.reference.history import Act, Plan, Profile
from tests.coordinator_model.shadow import KINDS, judged, live
from tests.golden import transcript

HISTORIES = 25


@pytest.mark.parametrize("name", KINDS)
def test_each_answer_of_a_lawful_life_may_be_lawful(name: str) -> None:
    found = live(KINDS[name], HISTORIES, 1)
    assert found.answers.total() > 10 * HISTORIES
    assert [(plan, verdict.text) for plan, verdict in found.unlawful] == []
    assert [(plan, finding.summary) for plan, finding in found.errors] == []


def test_an_answer_counts_once_the_frames_have_come_that_were_late() -> None:
    """A static member came back, and the first heartbeat of its new process overtakes the answer to its JoinGroup."""
    plan = Plan(5754294, (Profile(static=True, separate=True, rebalance_ms=8_000),), (Act(36_138, "restart", 1),), brokers="2.6")
    kind = KINDS["up to 2 s late"]
    found = judged(kind.spoil(plan.run().records, Random(1)), kind.settings)
    assert (found.unlawful, found.errors) == ([], [])


@pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith("lawful-")])
def test_each_answer_of_a_lawful_transcript_may_be_lawful(name: str) -> None:
    shadow = judged(transcript.read(name), transcript.SETTINGS)
    assert [verdict.text for _, verdict in shadow.unlawful] == []
