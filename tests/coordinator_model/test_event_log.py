"""Events of a client in a loop are folded, those of everybody else are not, and nothing is lost or told out of order."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from coordinator_model import wire
from coordinator_model.event_log import READ, EventLog
from coordinator_model.events import GroupEvent, MemberEvent, SightLost, event_of
from coordinator_model.wording import iso_utc
from streaming.published.sentences import event_text
from streaming.replay.timeline import Timeline
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import ASSIGNED, MS, START_US, Client, Conversation

S = 1_000_000


_OWN: dict[str, dict[str, Any]] = {
    "member_joined": {"new": False},
    "member_served": {"partitions": None},
    "rebalance_began": {"cause": "new member", "reason": None, "from_generation": 2},
    "rebalance_finished": {
        "cause": "new member",
        "from_generation": 2,
        "to_generation": 3,
        "began_at": iso_utc(START_US),
        "join_ms": 1,
        "sync_ms": 1,
        "took_ms": 2,
        "members": [],
        "last_member": None,
        "cost_member_seconds": 0.0,
        "ended": "no member is left",
        "partitions_moved": 0,
        "partitions_stayed": 0,
        "unheld": {},
        "never_came_back": [],
        "waited_for": [],
        "assignor": None,
    },
}


def joined(
    at_us: int, member_id: str | None = "m-1", *, kind: str = "member_joined", group: str = "g", **fields: Any
) -> GroupEvent:
    return event_of({
        "id": f"{kind}-{group}-{at_us}", "at": iso_utc(at_us), "cluster": "c1", "group": group, "group_type": "classic",
        "incarnation": 1, "generation": 3, "kind": kind, "frame": {"partition": 0, "offset": at_us // MS},
        "member_id": member_id, "instance_id": None, "client_id": "c", "client_address": "10.0.0.1", **_OWN[kind], **fields,
    })  # fmt: skip


def state(at_us: int) -> GroupEvent:
    where: dict[str, Any] = {
        "cluster": "c1",
        "group": "g",
        "group_type": "classic",
        "incarnation": 1,
        "generation": 3,
        "frame": None,
    }
    return SightLost.of((at_us,), at_us=at_us, reason="a gap", **where)


def times(events: list[GroupEvent]) -> list[int]:
    return [event.count if isinstance(event, MemberEvent) else 1 for event in events]


def test_events_that_a_person_can_read_are_left_as_they_are() -> None:
    log = EventLog()
    events = [joined(number * 4 * S) for number in range(100)] + [joined(400 * S + number, f"m-{number}") for number in range(200)]
    for event in events:
        log.append(event)
        log.settle(event.at_us)
    assert log.drain() == events


def test_a_loop_is_one_event_for_ten_seconds_until_it_pauses() -> None:
    log = EventLog()
    for number in range(2_500):  # 25 s
        log.settle(number * 10 * MS)
        log.append(joined(number * 10 * MS))
    log.settle(60 * S)
    log.append(joined(60 * S))
    found = log.drain()
    assert times(found) == [1] * READ + [1_000, 1_000, 480, 1]
    assert sum(times(found)) == len(log) == 2_501
    first = found[READ]
    assert (first.at_us, first.as_json()["since"]) == (1_019 * 10 * MS, iso_utc(READ * 10 * MS))
    assert first.id == joined(1_019 * 10 * MS).id, "it is the last of those that it stands for"
    assert len({event.id for event in found}) == len(found)
    assert "count" not in found[-1].as_json()


def test_what_was_folded_comes_before_the_next_event_of_its_group() -> None:
    log = EventLog()
    for number in range(READ + 5):
        log.append(joined(number))
        log.append(joined(number, kind="member_served"))
        log.append(joined(number, group="h"))
    log.append(state(100))
    found = [event for event in log.drain() if event.group == "g"]
    assert times(found)[-3:] == [5, 5, 1]
    assert [event.at_us for event in found] == sorted(event.at_us for event in found)
    log.conclude()
    assert times(log.drain()) == [5]


def test_a_static_member_is_one_whatever_its_ids() -> None:
    log = EventLog()
    for number in range(READ + 5):
        log.append(joined(number, f"m-{number}", instance_id="i-1"))
    log.conclude()
    assert times(log.drain()) == [1] * READ + [5]


@pytest.mark.parametrize("kind", ["rebalance_began", "rebalance_finished"])
def test_the_record_of_a_rebalance_is_never_folded(kind: str) -> None:
    log = EventLog()
    for number in range(100):
        log.append(joined(number, kind=kind))
    assert times(log.drain()) == [1] * 100


def loops(talk: Conversation, client: Client, leader: Client, *, milliseconds: int) -> None:
    """A follower asks to join a stable group again as soon as it got its assignment, and is answered at once each time."""
    until_us = talk.now_us + milliseconds * MS
    while talk.now_us < until_us:
        reply = wire.JoinGroupResponse(
            generation_id=3, protocol_type="consumer", protocol_name="range", leader=leader.member_id, member_id=client.member_id
        )
        talk.call(client, talk.join_request(client), reply, after_ms=5)
        synced = wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=ASSIGNED)
        talk.call(client, talk.sync_request(client, []), synced, after_ms=5)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_hot_loop_of_one_client_is_a_handful_of_events(talk: Conversation, *, restarts: bool) -> None:
    a, b = settled(talk)
    talk.model.drain_events()
    found: list[GroupEvent] = []
    for _ in range(25):
        loops(talk, b, a, milliseconds=1_000)
        talk.heartbeat(a)
        if restarts:
            found += talk.model.drain_events()
            talk.restore()
    talk.model.conclude()
    found += talk.model.drain_events()
    assert {event.kind for event in found} == {"member_joined", "member_synced", "member_served"}
    for kind in ("member_joined", "member_synced", "member_served"):
        assert sum(times([event for event in found if event.kind == kind])) == 2_500
    assert len(found) == 3 * (READ - 1 + 3), "one of each is of its join before the loop"
    assert [event.at_us for event in found] == sorted(event.at_us for event in found)


def test_a_folded_event_says_in_words_how_often_and_since_when() -> None:
    event = joined(START_US, new=False)
    folded = replace(event, count=5_750, since_us=START_US - 9 * S)
    assert event_text(folded, several=False) == "asks to join, and waits for the others, 5,750 times since 22:13:11"
    lines: list[Any] = []
    timeline = Timeline(lines.append)
    timeline.event(event)
    timeline.event(folded)
    assert [line.text.plain for line in lines] == ["c (m-1) asks to join, 5,750 times since 22:13:11"]
