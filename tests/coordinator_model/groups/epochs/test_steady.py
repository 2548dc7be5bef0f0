"""The short way of heartbeats in which nothing happens: it changes what the whole way changes, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from coordinator_model.coordinator import Coordinator
from coordinator_model.groups.epochs import heartbeat
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.wire.record import MirrorRecord
from tests.coordinator_model.epoch_groups import joined_pair
from tests.coordinator_model.epochs import Epochs, Parts, foo
from tests.coordinator_model.reference.consumer_history import Plan, plans
from tests.coordinator_model.streams import Streams
from tests.golden import transcript

KEPT = [name for name in transcript.names() if "consumer" in name or "migration" in name or "share" in name]


def told(records: list[MirrorRecord]) -> tuple[list[object], bytes]:
    """Findings and events, and what is kept at the end."""
    model = Coordinator(topic="mirror", partition=0)
    found: list[object] = []
    for number, record in enumerate(records):
        found += model.receive(record)
        found += model.drain_events()
        if number % 50 == 0:
            found.append(model.snapshot())
    return found, model.snapshot()


def the_whole_way(records: list[MirrorRecord]) -> tuple[list[object], bytes]:
    with patch.object(EpochGroup, "is_unchanged_response", lambda *_: False):
        return told(records)


@settings(max_examples=settings().max_examples // 2)
@given(plans())
def test_both_ways_tell_and_keep_the_same_in_random_lives(plan: Plan) -> None:
    records = plan.run().records
    assert told(records) == the_whole_way(records)


@pytest.mark.parametrize("name", KEPT)
def test_both_ways_tell_and_keep_the_same_of_real_groups(name: str) -> None:
    records = transcript.read(name)
    assert told(records) == the_whole_way(records)


def calls_of(action: Callable[[], object]) -> int:
    """How many calls of Python functions an action takes: what it costs, on any machine."""
    called = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal called
        called += event == "call"

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return called


@pytest.mark.parametrize("owned", [None, {}])
def test_javas_storm_of_heartbeats_is_lawful_and_each_costs_as_much_as_the_first(talk: Epochs, owned: Parts | None) -> None:
    """Until it can resolve the id of a topic that it was assigned, the client heartbeats without a pause: 12,000 times in 2.8 s."""
    a, b = joined_pair(talk, held=foo(0, 1))
    talk.beats(a, 2, foo(0))
    talk.beats(a, 3, owned=foo(0))
    talk.beats(b, 3, foo(1))
    asked, answer = talk.beat_request(b, owned=owned), talk.given(b, 3)

    def beats(count: int) -> None:
        for _ in range(count):
            talk.call(b, asked, answer, after_ms=2_800 / 12_000)

    first = calls_of(lambda: beats(100))
    beats(11_800)
    assert calls_of(lambda: beats(100)) <= 1.1 * first  # some hundreds fall to timers, now more and now less
    assert talk.settled_rules() == []


def test_steady_heartbeats_take_the_short_way(talk: Epochs) -> None:
    """Those of a static member, of one without partitions, and of a Streams group, too."""
    members = [talk.member("a"), talk.member("b", "static"), talk.member("c")]
    talk.joins(members[0], 2, foo(0))
    talk.joins(members[1], 3, foo(1))
    talk.joins(members[2], 4, {})
    streams = Streams("flows")
    task = streams.member("worker")
    streams.enters(task, 2, (0, 1))
    for member in members:
        talk.beats(member, 4)
    with patch.object(heartbeat, "_accepted", side_effect=AssertionError("the whole way")):
        talk.live(members, 30)
        streams.told_for([task], 30)
    assert talk.findings == streams.findings == []


@pytest.mark.parametrize("lost", ["all before", "records"])
def test_steady_heartbeats_of_a_group_seen_from_mid_life_take_the_short_way(lost: str) -> None:
    """Such groups are what a monitor sees first: none is published anew without news."""
    talk, streams = Epochs(), Streams("flows")
    members, task = [talk.member("a"), talk.member("b", "static")], streams.member("worker")
    if lost == "records":
        talk.joins(members[0], 3, foo(0))
        talk.joins(members[1], 4, foo(1))
        streams.enters(task, 4, (0, 1))
        talk.gap()
        streams.gap()
    for client in (*members, task):
        client.generation = 4
    talk.live(members, 10)
    streams.told_for([task], 10)
    for each in (talk, streams):
        each.model.discard_changes()
    with patch.object(heartbeat, "_accepted", side_effect=AssertionError("the whole way")):
        talk.live(members, 30)
        streams.told_for([task], 30)
    assert talk.model.changed_groups() == streams.model.changed_groups() == []
