"""What a partition's model counts: frames, errors, phases of rebalances, losses; the same after a restart."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from msgspec.msgpack import decode, encode

from coordinator_model import wire
from coordinator_model.counters import BUCKETS_S, Counters
from coordinator_model.wire.record import Kind, TickFacts
from tests.coordinator_model.classic import complete, live, settled, static_group
from tests.coordinator_model.conversation import START_US, Conversation, subscription
from tests.coordinator_model.epochs import Epochs, foo


def frames(talk: Conversation) -> dict[tuple[str, int, str, str], int]:
    return {tuple(row[:4]): row.frames for row in talk.model.counters.frames()}  # type: ignore[misc]


def test_frames_are_counted_by_api_version_and_direction(talk: Conversation) -> None:
    a, b = settled(talk)
    before = frames(talk).get(("Heartbeat", 4, "request", "replayed"), 0)
    for _ in range(3):
        talk.heartbeat(a)
    talk.heartbeat(b, version=1)
    found = frames(talk)
    assert found["Heartbeat", 4, "request", "replayed"] == found["Heartbeat", 4, "response", "replayed"] == before + 3
    assert found["Heartbeat", 1, "request", "replayed"] == 1
    assert sum(found.values()) == len(talk.records)


def test_what_does_not_reach_a_groups_model_is_counted_with_the_reason(talk: Conversation) -> None:
    a, _ = settled(talk)
    body = wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=a.member_id)
    frame = wire.encode_request(body, api_version=4, correlation_id=0, client_id="a")
    talk.raw(a, frame[:-1])
    talk.raw(a, frame, cut_bytes=7)
    talk.raw(a, frame, api_key=16, version=0)
    talk.raw(a, frame, api_key=999, version=-5)
    talk.raw(a, frame, version=99)
    found = {key: count for key, count in frames(talk).items() if key[3] != "replayed"}
    assert found == {
        ("Heartbeat", 4, "request", "undecodable"): 1,
        ("Heartbeat", 4, "request", "truncated"): 1,
        ("ListGroups", 0, "request", "not_modelled"): 1,
        ("unknown", -1, "request", "not_modelled"): 1,
        ("Heartbeat", -1, "request", "undecodable"): 1,
    }


def test_an_answer_without_its_request_is_unpaired_and_counted_once(talk: Conversation) -> None:
    a, _ = settled(talk)
    before = frames(talk).get(("Heartbeat", 4, "response", "replayed"), 0)
    talk.heartbeat(a)
    answer = talk.records[-1]
    talk.model.receive(answer._replace(offset=talk.offset, exchange=answer.exchange + 1_000))
    found = frames(talk)
    assert found["Heartbeat", 4, "response", "unpaired"] == 1
    assert found["Heartbeat", 4, "response", "replayed"] == before + 1


def test_a_record_that_comes_twice_is_counted_once(talk: Conversation) -> None:
    settled(talk)
    before = deepcopy(talk.model.counters)
    for record in talk.records:
        talk.model.receive(record)
    assert talk.model.counters == before


def test_errors_are_counted_by_api_for_the_cluster_and_for_the_group(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(a, 27)
    talk.heartbeat(b, 27)
    talk.commit(a, 22)
    talk.heartbeat(b, 31_999)
    counted = {tuple(row) for row in talk.model.counters.error_counts()}
    assert counted == {
        ("c1", "JoinGroup", "MEMBER_ID_REQUIRED", 2),
        ("c1", "Heartbeat", "REBALANCE_IN_PROGRESS", 2),
        ("c1", "Heartbeat", "unknown", 1),
        ("c1", "OffsetCommit", "ILLEGAL_GENERATION", 1),
    }
    assert talk.group_json()["errors"] == {
        "OffsetCommit": {"ILLEGAL_GENERATION": 1},
        "JoinGroup": {"MEMBER_ID_REQUIRED": 2},
        "Heartbeat": {"REBALANCE_IN_PROGRESS": 2, "unknown": 1},
    }


def test_a_group_is_shown_anew_when_nothing_but_an_error_was_answered(talk: Conversation) -> None:
    a, _ = settled(talk)
    live(talk, [a], 3)
    talk.model.changed_groups()
    talk.heartbeat(a)
    assert not talk.model.changed_groups()
    talk.heartbeat(a, 22, generation=1)
    (shown,) = [group.as_json() for group in talk.model.changed_groups()]
    assert shown is not None
    assert shown["errors"]["Heartbeat"] == {"ILLEGAL_GENERATION": 1}


def test_phases_are_measured_from_the_first_frame_that_began_them(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    for client in (a, b):
        talk.hand_out_id(client)
    asked = [talk.ask_join(client) for client in (a, b)]
    talk.wait(3_000)
    complete(talk, asked, 1, a, [a, b])
    talk.wait(700)
    talk.sync_all([a, b])
    join, sync = talk.model.counters.durations()
    assert (join.cluster, join.phase, sync.phase) == ("c1", "join", "sync")
    assert 3_000_000 < join.total_us < 3_100_000
    assert 700_000 < sync.total_us < 710_000
    assert join.counts.index(1) == BUCKETS_S.index(5.0)
    assert sync.counts.index(1) == BUCKETS_S.index(1.0)
    content = talk.group_json()
    assert content["joins"] == {"count": 1, "total_ms": join.total_us // 1_000}
    assert content["syncs"] == {"count": 1, "total_ms": sync.total_us // 1_000}


def test_a_phase_whose_beginning_was_not_seen_began_with_whoever_waited_longest(talk: Conversation) -> None:
    a, b = talk.client("a", member_id="a-1"), talk.client("b", member_id="b-1")
    asked = [talk.ask_join(a)]
    talk.wait(2_000)
    asked.append(talk.ask_join(b))
    talk.joined(asked[1], generation=8, leader=a, roster=[])
    (join,) = talk.model.counters.durations()
    assert 2_000_000 <= join.total_us < 2_100_000


@pytest.mark.parametrize("seconds", [0.001, *BUCKETS_S, 601.0, 90_000.0])
def test_a_duration_falls_into_the_bucket_that_ends_with_it(seconds: float) -> None:
    counters = Counters()
    counters.took("c", "join", round(seconds * 1_000_000))
    (found,) = counters.durations()
    below = [bound for bound in BUCKETS_S if bound < seconds]
    assert found.counts.index(1) == len(below)
    assert len(found.counts) == len(BUCKETS_S) + 1


# ---------------------------------------------------------------------------------------------------- causes


def causes(talk: Conversation) -> dict[str, int]:
    found: dict[str, int] = talk.group_json()["rebalances"]
    return found


def test_each_generation_counts_once_with_what_began_it(talk: Conversation) -> None:
    a, b = settled(talk, generation=1)
    assert causes(talk) == {"new member": 1}
    asked = talk.ask_join(a)
    talk.heartbeat(b, 27)
    complete(talk, (asked, talk.ask_join(b)), 2, a, [a, b])
    talk.sync_all([a, b])
    talk.leave(b)
    talk.heartbeat(a, 27)
    talk.round([a], 3)
    assert causes(talk) == {"new member": 1, "leader rejoined": 1, "member left": 1}


def test_a_session_that_ran_out_is_named_though_the_others_are_told_before_it_is_certain(talk: Conversation) -> None:
    a, _ = settled(talk, generation=1)
    live(talk, [a], 10)
    talk.heartbeat(a, 27)
    talk.round([a], 2)
    assert causes(talk) == {"new member": 1, "session expired": 1}


def test_a_static_member_that_comes_back_and_moves_the_group_is_named(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.close(first)
    again = talk.client("one", instance_id="i")
    asked = [talk.ask_join(again, protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=subscription("t", "u")),))]
    talk.heartbeat(leader, 27)
    asked.append(talk.ask_join(leader))
    again.member_id = "one-2"
    complete(talk, reversed(asked), 4, leader, [leader, again])
    assert causes(talk)["static member returned"] == 1


def test_old_clients_join_without_being_given_an_id_first(talk: Conversation) -> None:
    a = talk.client("a")
    body = talk.join_request(a, group_instance_id=None)
    asked = talk.ask(a, body, version=2)
    talk.joined(asked, generation=1, leader=a, roster=[], member_id="a-1")
    assert causes(talk) == {"new member": 1}


def test_a_generation_whose_answers_are_interrupted_by_a_loss_is_counted_once(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    for client in (a, b):
        talk.hand_out_id(client)
    asked = [talk.ask_join(client) for client in (a, b)]
    talk.joined(asked[0], generation=1, leader=a, roster=[a, b])
    talk.gap()
    talk.joined(asked[1], generation=1, leader=a, roster=[])
    assert causes(talk) == {"new member": 1}


# ---------------------------------------------------------------------------------------------------- evictions


def evictions(talk: Conversation) -> dict[str, int]:
    counted = talk.model.counters.eviction_counts()
    assert {count.cluster for count in counted} <= {"c1"}
    return {count.cause: count.members for count in counted}


def test_members_who_leave_are_not_evicted(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.leave(a)
    talk.leave(b)
    assert evictions(talk) == {}


def test_a_member_who_falls_silent_is_evicted_when_its_session_is_over(talk: Conversation) -> None:
    _, b = settled(talk)
    live(talk, [b], 5)
    assert evictions(talk) == {}
    live(talk, [b], 60)
    assert evictions(talk) == {"session_expired": 1}


def test_a_member_without_whom_the_next_generation_comes_about_is_evicted(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.join_all([a], a.generation + 1)
    assert evictions(talk) == {"not_rejoined": 1}


def test_a_member_that_its_coordinator_knows_no_longer_is_evicted_once(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.heartbeat(a)
    for _ in range(3):
        talk.heartbeat(a, 25)
    assert evictions(talk) == {"refused": 1}


def test_a_member_that_somebody_else_takes_out_is_evicted(talk: Conversation) -> None:
    a, _ = settled(talk)
    admin = talk.client("admin", member_id=a.member_id)
    talk.leave(admin)
    assert evictions(talk) == {"removed_by_somebody_else": 1}


def test_members_with_epochs_are_evicted_when_fenced_silent_or_away_for_too_long_and_not_when_they_leave(talk: Epochs) -> None:
    fenced, silent, away, leaves = (
        talk.member(name, instance) for name, instance in zip("abcd", (None, None, "i", None), strict=True)
    )
    for number, member in enumerate((fenced, silent, away, leaves)):
        talk.joins(member, 2 + number, foo(number))
    talk.leaves(leaves)
    talk.leaves(away, -2)
    for _ in range(2):
        talk.refused(fenced, 25)
    assert evictions(talk) == {"refused": 1}
    talk.joins(fenced, 7, foo(0))
    talk.live([fenced], 80)
    assert evictions(talk) == {"refused": 1, "session_expired": 2}


# ---------------------------------------------------------------------------------------------------- losses and restarts


def test_losses_are_counted_by_where_sight_was_lost(talk: Conversation) -> None:
    settled(talk)
    talk.gap(records=3)
    talk.lose(2)
    talk.tick()
    assert talk.model.counters.gaps == {"capture": 1, "mirror": 1}
    assert talk.model.counters.gap_us == 1_000_000


def test_the_newest_tick_and_the_first_record_are_known(talk: Conversation) -> None:
    settled(talk)
    assert talk.model.counters.tick_us == 0
    talk.wait(5_000)
    told = talk.model.figures()
    assert told["since_ms"] == START_US // 1_000
    assert told["last_tick_ms"] == next(record.at_us for record in reversed(talk.records) if record.kind is Kind.TICK) // 1_000
    assert told["groups"] == 1


def test_counts_go_on_after_a_restart(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    talk.heartbeat(a, 27)
    talk.heartbeat(b, 25)
    assert evictions(talk) == {"refused": 1}
    talk.gap()
    talk.raw(a, b"\xff")
    before, told, content = deepcopy(talk.model.counters), talk.model.figures(), talk.group_json()
    talk.restore()
    assert talk.model.counters == before
    assert json.dumps(talk.model.figures()) == json.dumps(told)
    for name in ("rebalances", "errors", "joins", "syncs"):
        assert talk.group_json()[name] == content[name]
    replayed = frames(talk)["Heartbeat", 4, "request", "replayed"]
    talk.heartbeat(a)
    assert frames(talk)["Heartbeat", 4, "request", "replayed"] == replayed + 1


def test_each_capturer_is_known_by_its_newest_tick_and_of_many_the_newest() -> None:
    counters = Counters()
    for number in range(200):
        counters.ticked(f"tap-{number % 2}", "prod", 1_000_000 * number, TickFacts(None, ("Fetch 19 → 18",) if number == 1 else ()))
    assert counters.as_json()["taps"] == [("tap-0", "prod", 198_000), ("tap-1", "prod", 199_000)]
    assert counters.as_json()["not_offered"] == {"tap-1": ("Fetch 19 → 18",)}
    assert decode(encode(counters), type=Counters).as_json() == counters.as_json()
    for number in range(1_000):
        counters.ticked(f"restarted-{number}", "prod", 1_000_000 * (200 + number), TickFacts())
    names = [name for name, _, _ in counters.as_json()["taps"]]
    assert "restarted-999" in names
    assert "tap-1" not in names
    assert len(names) <= 64
    assert counters.as_json()["not_offered"] == {}
