"""No lawful answer is one that no row of the protocol's table explains, however the capture is spoilt."""

from __future__ import annotations

from dataclasses import replace
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
    assert found.differences == []


def test_an_answer_counts_once_the_frames_have_come_that_were_late() -> None:
    """A static member came back, and the first heartbeat of its new process overtakes the answer to its JoinGroup."""
    plan = Plan(5754294, (Profile(static=True, separate=True, rebalance_ms=8_000),), (Act(36_138, "restart", 1),), brokers="2.6")
    kind = KINDS["up to 2 s late"]
    found = judged(kind.spoil(plan.run().records, Random(1)), kind.settings)
    assert (found.unlawful, found.errors) == ([], [])


def test_M_11_is_withdrawn_when_the_answer_that_gave_the_instance_id_comes_late() -> None:
    """Two processes of one static member follow each other within seconds."""
    quick = Profile(rebalance_ms=20_000, session_ms=6_000)
    profiles = (
        replace(quick, release="3.9"),
        replace(quick, static=True, separate=True),
        Profile(static=True, separate=True, two_protocols=True, release="2.8"),
        Profile(separate=True, rebalance_ms=8_000, release="2.2"),
    )
    done = [(1870, "restart", 3), (2099, "start", 4), (246, "newcomer", 0), (9681, "subscribe", 4), (45394, "start", 6)]
    done += [(551, "start", 3), (45591, "newcomer", 6), (341, "stall", 2)]
    records = Plan(0, profiles, tuple(Act(*act) for act in done)).run().records
    kind = KINDS["up to 2 s late"]
    assert [judged(kind.spoil(records, Random(seed)), kind.settings).errors for seed in range(20)] == [[]] * 20


@pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith("lawful-")])
def test_each_answer_of_a_lawful_transcript_may_be_lawful(name: str) -> None:
    shadow = judged(transcript.read(name), transcript.SETTINGS)
    assert ([verdict.text for _, verdict in shadow.unlawful], shadow.differences) == ([], [])
