"""What holds of all advice, whatever happened to a group."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.advice import KINDS, MOST, advise
from coordinator_model.advice.history import histories
from tests.coordinator_model.advice.told import Event, at, happened, member, read, rebalance, who
from tests.golden import transcript

CAUSES = [
    "new member",
    "member left",
    "session expired",
    "leader rejoined",
    "rejoined with the same topics",
    "joined",
    "left",
    "not seen",
]
NAMES = [f"{name}.{life}" for name in "abcd" for life in range(4)]


@st.composite
def lives(draw: st.DrawFn) -> list[Event]:
    """Anything that events can say of a group; some of it can hardly happen."""
    events, second = [], 0.0
    said: dict[str, Any] = {
        "session_timeout_ms": draw(st.sampled_from([None, 6_000, 45_000])),
        "rebalance_timeout_ms": draw(st.sampled_from([None, 30_000, 300_000])),
        "client_software": draw(st.sampled_from(["", "apache-kafka-java 4.3.1", "librdkafka 2.12.1", "kafka-python 3.0.0"])),
        "instance_id": draw(st.sampled_from([None, None, "i"])),
    }
    for _ in range(draw(st.integers(1, 12))):
        second += draw(st.floats(0, 400))
        took_s = draw(st.floats(0, 60))
        took_part = draw(st.lists(st.sampled_from(NAMES), max_size=5, unique=True))
        members = [
            member(
                name,
                second + draw(st.floats(0, took_s)),
                second + took_s,
                new=draw(st.booleans()),
                stops=draw(st.booleans()),
                **said,
            )
            for name in took_part
        ]
        by = draw(st.sampled_from(NAMES))
        lost = [{**member(by, 0, 0, **said), "stopped_at": at(second - draw(st.floats(0, 60)))}] if draw(st.booleans()) else []
        waited = {**who(by), "why": "not rejoined", "waited_ms": round(took_s * 1000), "came": draw(st.booleans())}
        unheld = draw(st.sampled_from([None, {}, {"t": {"0": took_s, "1": took_s / 2}}]))
        events.append(
            rebalance(
                draw(st.sampled_from(CAUSES)),
                by,
                second,
                second + took_s,
                members,
                never_came_back=lost,
                waited_for=[waited],
                unheld=unheld,
                cost_member_seconds=draw(st.floats(0, 300)),
                assignor=draw(st.sampled_from([None, "range", "cooperative-sticky"])),
                group_type=draw(st.sampled_from(["classic", "classic", "consumer"])),
                from_generation=draw(st.sampled_from([None, 1])),
            )
        )
        reason = draw(st.sampled_from([None, "consumer poll timeout has expired."]))
        events.append(happened("member_left", draw(st.sampled_from(NAMES)), second + 1, reason=reason))
        if draw(st.booleans()):
            events.append(happened("session_over", by, second, silent_since=at(second - 10)))
            events.append(
                happened("member_fenced", by, second + draw(st.floats(0, 90)), error="UNKNOWN_MEMBER_ID", api="Heartbeat")
            )
    return events


@settings(max_examples=3 * settings().max_examples)
@given(lives())
def test_no_saving_is_negative_or_more_than_was_lost(events: list[Event]) -> None:
    lost = {one["id"]: one for one in events if one["kind"] == "rebalance_finished"}
    for history in histories(read(events)):
        for kind, proposals in KINDS.items():
            for piece in proposals(history):
                assert piece.kind == kind
                assert len(set(piece.rebalances)) == len(piece.rebalances)
                members_s = sum(lost[id_]["cost_member_seconds"] for id_ in piece.rebalances)
                unheld = [lost[id_]["unheld"] or {} for id_ in piece.rebalances]
                partitions_s = sum(held for each in unheld for topic in each.values() for held in topic.values())
                assert 0 <= piece.saves_least.member_seconds <= piece.saves.member_seconds <= piece.saves_most.member_seconds
                assert piece.saves_most.member_seconds <= members_s + 1e-6
                assert 0 <= piece.saves_least.partition_seconds <= piece.saves.partition_seconds <= partitions_s + 1e-6


@settings(max_examples=3 * settings().max_examples)
@given(lives())
def test_advice_has_a_saving_and_there_are_three_pieces_at_most(events: list[Event]) -> None:
    pieces = advise(read(events))
    assert len(pieces) <= MOST
    assert all(max(piece.saves) >= 1 and piece.rebalances and piece.setting and piece.assumes and piece.costs for piece in pieces)


@settings(max_examples=3 * settings().max_examples)
@given(lives(), st.randoms(use_true_random=False), st.data())
def test_advice_does_not_depend_on_order_or_on_how_events_are_split_over_files(
    events: list[Event], shuffles: random.Random, data: st.DataObject
) -> None:
    ids = [one["id"] for one in events]
    events = [one for number, one in enumerate(events) if one["id"] not in ids[:number]]
    cut = data.draw(st.integers(0, len(events)))
    twice = data.draw(st.integers(0, len(events)))
    files = [events[:cut], events[max(0, cut - twice) :]]  # both have what happened around the cut
    for file in files:
        shuffles.shuffle(file)
    assert advise(read(one for file in reversed(files) for one in file)) == advise(read(events))


@pytest.mark.parametrize("name", ["violation-crash-loop-4.3.1", "lawful-eager-4.3.1", "lawful-consumer-rolling-restart-4.3.1"])
def test_advice_of_real_traffic_rests_on_rebalances_that_happened(name: str) -> None:
    events = transcript.replayed(name).events
    assert read(one.as_json() for one in events) == events
    pieces = advise(events)
    assert pieces
    known = {each.event.id for history in histories(events) for each in history.rebalances}
    assert all(set(piece.rebalances) <= known for piece in pieces)
