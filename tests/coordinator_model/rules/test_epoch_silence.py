"""Silence of members with epochs that has another reason than the member: no coordinator, a throttled client, a leave."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.wire.record import Kind, Loss, pack_loss
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, joined_pair
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.streams import Shares, Streams


def three(talk: Epochs) -> list[Client]:
    clients = [talk.member(name) for name in "abc"]
    for epoch, client in enumerate(clients, 2):
        talk.joins(client, epoch, foo(epoch) if epoch == 2 else {})
    for client in clients:
        talk.beats(client, 4)
    return clients


def of_members(talk: Epochs) -> list[str]:
    """The rules that fired, but for those about the coordinator."""
    return [rule for rule in talk.rules() if not rule.startswith("C")]


# ---------------------------------------------------------------------------------------------------- E-09: a slow failover


@pytest.mark.parametrize("error", [14, 15, 16])
@pytest.mark.parametrize("away_s", [17, 30, 40])
def test_E_09_leaves_members_alone_that_wait_for_a_coordinator(talk: Epochs, error: int, away_s: int) -> None:
    clients = three(talk)
    for client in clients:
        talk.refused(client, error)
    talk.wait(1_000)
    others = [client.reconnected("2") for client in clients]
    for client in others:
        talk.refused(client, error)
    talk.wait(away_s * 1_000)
    for client in others:
        talk.beats(client)
    talk.live(others, 10)
    talk.settle()
    assert of_members(talk) == []


@pytest.mark.parametrize("away_s", [17, 30, 40])
def test_E_09_leaves_members_alone_whose_heartbeat_was_never_answered(talk: Epochs, away_s: int) -> None:
    """The host is gone: no connection ends, and each client waits for its request to time out."""
    clients = three(talk)
    for client in clients:
        talk.ask_beat(client)
    talk.wait(away_s * 1_000)
    others = [client.reconnected("2") for client in clients]
    for client in others:
        talk.beats(client)
    talk.live(others, 10)
    talk.settle()
    assert of_members(talk) == []


@pytest.mark.parametrize("error", [14, 15, 16])
def test_E_09_leaves_a_member_alone_whose_commit_showed_that_the_coordinator_is_gone(talk: Epochs, error: int) -> None:
    a = alone(talk)
    talk.live([a], 10)
    talk.commits(a, error)
    talk.wait(20_000)
    other = a.reconnected("2")
    talk.beats(other)
    talk.live([other], 10)
    assert of_members(talk) == []


@pytest.mark.parametrize("before", ["a success", "a failover that is over"])
def test_E_09_fires_on_a_member_that_pauses_although_it_was_answered(talk: Epochs, before: str) -> None:
    a, b, c = three(talk)
    if before == "a failover that is over":
        for client in (a, b, c):
            talk.refused(client, 16)
        a, b, c = (client.reconnected("2") for client in (a, b, c))
        talk.beats(a)
    talk.live([b, c], 20)
    talk.beats(a)
    talk.settle()
    assert of_members(talk) == ["E-09"]
    assert talk.the("E-09").member_id == "a-id"


# ---------------------------------------------------------------------------------------------------- E-09, T-07: throttling


def throttled(talk: Epochs, client: Client, how: str, throttle_ms: int) -> None:
    """The broker tells a client to hold back, in an answer on its connection to the coordinator."""
    talk.wait(20)
    if how == "heartbeat":
        talk.call(client, talk.beat_request(client), talk.given(client, client.generation, throttle_time_ms=throttle_ms))
    elif how == "refused heartbeat":
        reply = wire.ConsumerGroupHeartbeatResponse(error_code=29, throttle_time_ms=throttle_ms)
        talk.call(client, talk.beat_request(client), reply)
    else:
        body = wire.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=2, member_id=client.member_id)
        talk.call(client, body, wire.OffsetCommitResponse(throttle_time_ms=throttle_ms), version=9)


HOW = ("heartbeat", "refused heartbeat", "commit")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("throttle_s", [12, 20, 35])
def test_T_07_tells_of_a_throttled_member_what_E_09_does_not(talk: Epochs, how: str, throttle_s: int) -> None:
    a = alone(talk)
    talk.live([a], 10)
    throttled(talk, a, how, throttle_s * 1_000)
    talk.wait(throttle_s * 1_000 + 5_000)
    talk.beats(a)
    talk.settle()
    finding = talk.the("T-07")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.CERTAIN, Blame.CONFIG)
    assert f"throttles client a at 10.0.0.1:{a.port}, test 1.0 in group g for {throttle_s}.0 s" in finding.summary
    assert (finding.member_id, finding.generation) == ("a-id", 2)
    assert of_members(talk) == ["T-07"]
    talk.live([a], 65)
    assert talk.the("T-07").status is Status.RESOLVED


@pytest.mark.parametrize("how", HOW)
def test_E_09_fires_on_a_member_that_pauses_beyond_its_throttle_time(talk: Epochs, how: str) -> None:
    a = alone(talk)
    talk.live([a], 10)
    throttled(talk, a, how, 8_000)
    talk.wait(25_000)
    talk.beats(a)
    talk.settle()
    assert of_members(talk) == ["T-07", "E-09"]


def test_E_09_takes_the_throttle_time_of_another_client_for_nothing(talk: Epochs) -> None:
    a, b, c = three(talk)
    throttled(talk, b, "heartbeat", 4_000)
    talk.live([b, c], 20)
    talk.beats(a)
    talk.settle()
    assert of_members(talk) == ["E-09"]


def test_T_07_allows_less_than_a_heartbeat_interval(talk: Epochs) -> None:
    a = alone(talk)
    for _ in range(5):
        throttled(talk, a, "heartbeat", 4_900)
        talk.wait(9_900)
    assert of_members(talk) == []


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_T_07_tells_of_throttled_members_of_all_groups_with_epochs(kind: str) -> None:
    if kind == "share":
        talk: Epochs = Shares()
        a = talk.member("a")
        talk.shares(a, 0, 2, (0,))  # type: ignore[attr-defined]
        request = wire.ShareGroupHeartbeatRequest(group_id="g", member_id=a.member_id, member_epoch=2)
        reply = wire.ShareGroupHeartbeatResponse(
            member_id=a.member_id, member_epoch=2, heartbeat_interval_ms=5_000, throttle_time_ms=9_000
        )
    else:
        streams = Streams()
        talk, a = streams, streams.member("a")
        streams.enters(a, 2, (0,))
        request, reply = streams.task_beat(a, 2), streams.tasks_given(a, 2, None)
        reply.throttle_time_ms = 9_000
    talk.call(a, request, reply)
    talk.settle()
    assert of_members(talk) == ["T-07"]


def test_T_04_leaves_a_member_alone_that_is_throttled_for_longer_than_a_session(talk: Epochs) -> None:
    a, b, c = three(talk)
    throttled(talk, a, "heartbeat", 90_000)
    talk.live([b, c], 85)
    assert of_members(talk) == ["T-07"]


# ---------------------------------------------------------------------------------------------------- T-04


@pytest.mark.parametrize("every_s", [1, 5, 30])
def test_T_04_leaves_a_member_alone_that_asks_for_its_coordinator_all_the_time(talk: Epochs, every_s: int) -> None:
    a, b, c = three(talk)
    bootstrap = talk.client("a", "3")
    talk.close(a)
    for _ in range(90 // every_s):
        talk.find_coordinator(bootstrap, error=15)
        talk.live([b, c], every_s) if every_s >= 5 else talk.wait(1_000)
        if every_s < 5:
            talk.beats(b)
            talk.beats(c)
    assert of_members(talk) == []


@pytest.mark.parametrize("who", ["another client", "another host", "long ago"])
def test_T_04_fires_if_somebody_else_asks_for_the_coordinator(talk: Epochs, who: str) -> None:
    a, b, c = three(talk)
    searcher = talk.client("b" if who == "another client" else "a", "3")
    if who == "another host":
        searcher.host = "10.0.0.2"
    if who == "long ago":
        talk.find_coordinator(searcher, error=15)
        talk.beats(a)
    talk.close(a)
    for _ in range(16):
        if who != "long ago":
            talk.find_coordinator(searcher, error=15)
        talk.live([b, c], 5)
    assert of_members(talk) == ["T-04"]
    assert talk.the("T-04").member_id == "a-id"


@pytest.mark.parametrize("error", [111, 69, 81])
def test_T_04_fires_although_the_process_was_started_anew_and_asked_for_the_coordinator(talk: Epochs, error: int) -> None:
    b, a = talk.member("b"), talk.member("a", "i")
    talk.joins(b, 2, foo(0))
    talk.joins(a, 3, {})
    talk.beats(b, 3)
    talk.close(a)
    talk.wait(1_000)
    again = talk.member("a", "i")
    again.member_id = "again"
    talk.find_coordinator(again)
    talk.refused_join(again, error)
    talk.close(again)
    talk.live([b], 80)
    assert [rule for rule in talk.rules() if rule not in {"E-10", "M-14"}] == ["T-04"]


@pytest.mark.parametrize("answer", ["none", "closed", "refused", "crossed"])
@pytest.mark.parametrize("epoch", [-1, -2])
def test_T_04_leaves_a_member_alone_whose_leave_was_seen(talk: Epochs, answer: str, epoch: int) -> None:
    b = talk.member("b")
    a = talk.member("a", "i" if epoch == -2 else None)
    talk.joins(b, 2, foo(0))
    talk.joins(a, 3, {})
    talk.beats(b, 3)
    again = a.reconnected()
    before = talk.ask_beat(again) if answer == "crossed" else None
    asked = talk.ask(a, talk.beat_request(a, epoch))
    if answer == "closed":
        talk.close(a)
    elif answer == "refused":
        talk.answer(asked, wire.ConsumerGroupHeartbeatResponse(error_code=16))
    elif before is not None:
        talk.answer(asked, talk.given(a, epoch))
        talk.answer(before, talk.given(a, 3))
    talk.live([b], 90)
    assert of_members(talk) == []


def test_T_04_leaves_a_member_alone_that_a_leave_group_names(talk: Epochs) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.joins(b, 2, foo(0))
    talk.joins(a, 3, {})
    talk.beats(b, 3)
    talk.ask(talk.client("admin"), talk.leave_request(a))
    talk.close(a)
    talk.live([b], 90)
    assert of_members(talk) == []


def test_T_04_fires_on_a_member_that_went_on_after_a_leave(talk: Epochs) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.joins(b, 2, foo(0))
    talk.joins(a, 3, {})
    talk.beats(b, 3)
    asked = talk.ask(a, talk.beat_request(a, -1))
    talk.answer(asked, wire.ConsumerGroupHeartbeatResponse(error_code=16))
    again = a.reconnected()
    talk.joins(again, 4, {})
    talk.beats(b, 4)
    talk.close(again)
    talk.live([b], 90)
    assert of_members(talk) == ["T-04"]


def test_a_snapshot_keeps_who_is_throttled_who_leaves_and_who_asks_for_a_coordinator(talk: Epochs) -> None:
    a, b, c = three(talk)
    throttled(talk, a, "commit", 20_000)
    talk.ask(b, talk.beat_request(b, -1))
    talk.find_coordinator(c)
    before = talk.model.groups.opened(("c1", "g"))[0]
    after = Coordinator.restore(talk.model.snapshot(), settings=talk.settings).groups.opened(("c1", "g"))[0]
    assert asdict(after) == asdict(before)
    assert after.members == before.members
    assert (after.members["a-id"].throttled_until_us - talk.now_us, after.members["b-id"].leaving) == (19_999_000, True)
    assert list(after.searches) == ["c at 10.0.0.1"]


# ---------------------------------------------------------------------------------------------------- holes in the capture


def group_of(talk: Epochs) -> EpochGroup:
    [key] = talk.model.groups
    group, _ = talk.model.groups.opened(key)
    assert isinstance(group, EpochGroup)
    return group


@pytest.mark.parametrize("hole", ["no record", "a gap record", "short ones"])
def test_E_23_and_E_18_learn_no_longer_session_from_a_pause_of_the_capture(talk: Epochs, hole: str) -> None:
    """The member heartbeats all the while: nothing of its session is known from a time that was not captured."""
    a = alone(talk, instance_id="i")
    talk.beats(a)
    for _ in range(9):
        began_us = talk.now_us
        talk.now_us += 9_000_000 if hole == "short ones" else 100_000_000
        if hole == "a gap record":
            talk._feed(Kind.GAP, None, pack_loss(Loss(9, 900, began_us, talk.now_us)))
        talk.tick()
    talk.beats(a)
    talk.beats(a)
    assert group_of(talk).session_bounds.least_ms == 0
    talk.wait(60_000)
    talk.joins(talk.member("b", "i"), 3, foo(0, 1))
    talk.refused(a, 82)
    assert [rule for rule in talk.settled_rules() if rule not in {"V-04", "T-04"}] == []


def test_a_pause_without_a_hole_is_learned_as_a_longer_session(talk: Epochs) -> None:
    a = alone(talk, instance_id="i")
    talk.beats(a)
    talk.wait(55_000)
    talk.beats(a)
    assert group_of(talk).session_bounds.least_ms >= 55_000


def test_an_epoch_that_rose_in_a_hole_is_nobodys_silence(talk: Epochs) -> None:
    """Member b goes on after the hole, and was called silent because its last heartbeat before it is a session old."""
    a, b = joined_pair(talk, held=foo(0, 1))
    talk.beats(a, 3, foo(0))
    talk.beats(b, 3, foo(1))
    talk.now_us += 100_000_000
    talk.beats(a, 4)
    talk.beats(b, 4)
    group = group_of(talk)
    assert (group.epoch, group.causes) == (4, {"joined": 1})
