"""What a request may have done although no frame shows it: rules allow for it, for the members that it may concern and for nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator_model import wire
from tests.coordinator_model.classic import complete, live, settled, static_group
from tests.coordinator_model.conversation import Asked, Client, Conversation
from tests.coordinator_model.epoch_groups import alone, lives_on, newcomer, pair
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.streams import Streams

UNKNOWN = (15, 16)


def rules_of(talk: Conversation) -> list[str]:
    """The rules of clients and coordinators that fired at warning and above."""
    talk.settle()
    told = {finding.rule for finding in talk.opened() if finding.severity.rank >= 1}
    return sorted(rule for rule in told if rule[0] not in "VC")


def leave_request(talk: Conversation, member_id: str = "", instance_id: str | None = None) -> wire.LeaveGroupRequest:
    named = wire.LeaveGroupRequestMemberIdentity(member_id=member_id, group_instance_id=instance_id)
    return wire.LeaveGroupRequest(group_id=talk.group, members=(named,))


def left(asked: Asked, talk: Conversation, member_id: str = "", instance_id: str | None = None, error: int = 0) -> None:
    done = wire.LeaveGroupResponseMemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=error)
    talk.answer(asked, wire.LeaveGroupResponse(members=(done,)))


# ---------------------------------------------------------------------------------------------------- answers 15 and 16 that took effect


@pytest.mark.parametrize("error", UNKNOWN)
def test_A_12_allows_a_grant_of_what_was_given_up_in_a_heartbeat_answered_15_or_16(talk: Epochs, error: int) -> None:
    """The acknowledgement counts once it is in the log, however late that is replicated."""
    a, b = newcomer(talk)
    talk.refused(a, error, owned=foo(0, 1))
    talk.beats(b, 3, foo(2))
    talk.full(a, 3, foo(0, 1), owned=foo(0, 1))
    talk.live([a, b], 20)
    assert rules_of(talk) == []


@pytest.mark.parametrize("error", UNKNOWN)
def test_A_12_allows_a_grant_of_tasks_that_were_given_up_in_a_heartbeat_answered_15_or_16(talk: Streams, error: int) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0, 1, 2))
    talk.works(a)
    talk.enters(b, 3, ())
    talk.works(a, 2, (0, 1))
    talk.turned_away(a, error, epoch=2, owned=(0, 1))
    talk.works(b, 3, (2,))
    talk.works(a, 3, None, owned=(0, 1))
    talk.told_for([a, b], 20)
    assert rules_of(talk) == []


@pytest.mark.parametrize("error", UNKNOWN)
def test_A_12_allows_a_grant_before_the_answer_15_or_16_is_captured_to_who_gave_it_up(talk: Epochs, error: int) -> None:
    """The answer waits for the replication that failed, or is captured late: the grant is seen before it."""
    a, b = newcomer(talk)
    acknowledges = talk.ask_beat(a, owned=foo(0, 1))
    talk.beats(b, 3, foo(2))
    talk.answer(acknowledges, wire.ConsumerGroupHeartbeatResponse(error_code=error), after_ms=300)
    talk.beats(a)
    talk.live([a, b], 20)
    assert rules_of(talk) == []


@pytest.mark.parametrize("error", UNKNOWN)
def test_E_18_allows_a_refusal_before_the_answer_15_or_16_to_the_leave_is_captured(talk: Epochs, error: int) -> None:
    a, b = pair(talk)
    leaving = talk.ask(talk.client("operator"), leave_request(talk, a.member_id), version=5)
    talk.refused(a, 25)
    talk.answer(leaving, wire.LeaveGroupResponse(error_code=error), after_ms=300)
    talk.live([b], 20)
    assert rules_of(talk) == []


def test_A_12_fires_where_the_answer_15_is_anothers(talk: Epochs) -> None:
    a, b = newcomer(talk)
    c = talk.member("c")
    talk.refused_join(c, 15)
    talk.beats(a)
    talk.beats(b, 3, foo(2))
    talk.wait(20)
    talk.beats(a)
    talk.beats(a)
    assert "A-12" in rules_of(talk)


@pytest.mark.parametrize("error", UNKNOWN)
@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_E_18_allows_an_instance_id_to_be_taken_by_a_join_answered_15_or_16(talk: Epochs, error: int, protocol: str) -> None:
    a, c = talk.member("a", "i"), talk.member("c")
    talk.joins(c, 1, {})
    talk.joins(a, 2, foo(0, 1))
    if protocol == "consumer":  # which only takes what is released
        talk.leaves(a, -2)
        talk.refused_join(talk.member("second", "i"), error)
        talk.wait(20)
        talk.refused_join(talk.member("third", "i"), 111)
    else:
        talk.beats(a)
        second = talk.client("second", instance_id="i")
        talk.refuse_join(talk.ask_join(second), error)
        talk.refused(a, 82)
    assert "E-18" not in rules_of(talk)


@pytest.mark.parametrize("moved", [False, True])
def test_E_03_allows_a_fence_after_two_heartbeats_answered_15(talk: Epochs, *, moved: bool) -> None:
    """Each may have delivered an epoch, so the third request is two epochs behind. A broker that has loaded the group acts at once."""
    a, _ = pair(talk)
    if moved:
        talk.close(a)
        a = a.reconnected("2")
        talk.refused(a, 14)
    talk.refused(a, 15)
    talk.refused(a, 15)
    talk.refused(a, 110)
    assert rules_of(talk) == []


def test_E_18_allows_the_removal_of_a_streams_member_that_was_told_to_give_up_in_an_answer_that_became_15(talk: Streams) -> None:
    """It is told once: later answers to a member that neither joins nor reports tasks leave tasks out."""
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0, 1))
    talk.works(a)
    talk.enters(b, 3, ())
    talk.turned_away(a, 15, epoch=2)
    for _ in range(12):
        talk.works(a)
        talk.works(b)
        talk.wait(5_000)
    talk.turned_away(a, 25, epoch=2)
    assert rules_of(talk) == []


@pytest.mark.parametrize("error", [*UNKNOWN, None])
def test_E_18_allows_the_refusal_of_a_member_whose_leave_has_no_answer_that_says_so(talk: Epochs, error: int | None) -> None:
    """An operator's LeaveGroup, answered 15, or on a connection that ended first."""
    a, b = pair(talk)
    admin = talk.client("admin")
    asked = talk.ask(admin, leave_request(talk, a.member_id))
    if error is None:
        talk.close(admin)
    else:
        talk.answer(asked, wire.LeaveGroupResponse(error_code=error))
    talk.beats(b)
    talk.refused(a, 25)
    assert rules_of(talk) == []


# ---------------------------------------------------------------------------------------------------- one member's doubt is no other's


@pytest.mark.parametrize("lost", ["a join", "a leave of another", "a heartbeat of another"])
def test_E_18_fires_where_what_has_no_answer_concerns_another_member(talk: Epochs, lost: str) -> None:
    a, b = pair(talk)
    other = talk.client("other")
    if lost == "a join":
        newest = talk.member("c", "i")
        talk.ask_beat(newest, 0, **talk.join_fields())
        talk.close(newest)
    elif lost == "a leave of another":
        talk.ask(other, leave_request(talk, b.member_id))
        talk.close(other)
    else:
        talk.ask_beat(b)
        talk.close(b)
    talk.refused(a, 25)
    assert rules_of(talk) == ["E-18"]


def test_E_23_fires_after_a_join_without_an_answer_under_another_instance_id(talk: Epochs) -> None:
    a, other = talk.member("a", "i"), talk.member("other", "j")
    talk.joins(a, 2, foo(0, 1))
    talk.beats(a)
    talk.ask_beat(other, 0, **talk.join_fields())
    talk.close(other)
    talk.joins(talk.member("second", "i"), 3, {})
    assert "E-23" in rules_of(talk)


def test_E_15_fires_although_a_heartbeat_of_another_member_has_no_answer(talk: Epochs) -> None:
    a = alone(talk, 1)
    talk.ask_beat(a)
    talk.close(a)
    again = a.reconnected()
    lives_on(talk, again, 1)
    stranger = talk.member("stranger")
    talk.beats(stranger, 1, epoch=1)
    assert "E-15" in rules_of(talk)


def test_E_15_allows_a_stranger_whose_join_has_no_answer(talk: Epochs) -> None:
    a = alone(talk, 1)
    lives_on(talk, a, 1)
    stranger = talk.member("stranger")
    talk.ask_beat(stranger, 0, **talk.join_fields())
    talk.close(stranger)
    talk.beats(stranger.reconnected(), 2, epoch=2)
    assert rules_of(talk) == []


# ---------------------------------------------------------------------------------------------------- under way


REMOVALS: dict[str, Callable[[Epochs, Client], wire.LeaveGroupRequest]] = {
    "by id": lambda talk, member: leave_request(talk, member.member_id),
    "by instance": lambda talk, member: leave_request(talk, "", member.instance_id),
    "by both": lambda talk, member: leave_request(talk, member.member_id, member.instance_id),
}


@pytest.mark.parametrize("error", [25, 81])
@pytest.mark.parametrize("how", REMOVALS)
def test_E_18_allows_a_refusal_before_the_answer_of_the_LeaveGroup_that_removes_the_member(
    talk: Epochs, how: str, error: int
) -> None:
    """A refusal is answered at once, a success when it is replicated. Another may have taken the place in a full group."""
    a, b = talk.member("a", "i"), talk.member("b")
    talk.joins(a, 2, foo(0, 1))
    talk.joins(b, 3, {})
    talk.beats(a)
    asked = talk.ask(talk.client("admin"), REMOVALS[how](talk, a))
    talk.refused(a, error)
    left(asked, talk, a.member_id, "i")
    assert rules_of(talk) == []


def test_E_18_fires_where_a_LeaveGroup_under_way_names_another(talk: Epochs) -> None:
    a, b = pair(talk)
    asked = talk.ask(talk.client("admin"), leave_request(talk, b.member_id))
    talk.refused(a, 25)
    left(asked, talk, b.member_id)
    assert rules_of(talk) == ["E-18"]


@pytest.mark.parametrize("how", ["a heartbeat", "a LeaveGroup"])
def test_E_20_allows_an_operator_to_set_offsets_while_the_last_member_leaves(talk: Epochs, how: str) -> None:
    a = alone(talk)
    talk.beats(a)
    asked = talk.ask_beat(a, -1) if how == "a heartbeat" else talk.ask(talk.client("admin"), leave_request(talk, a.member_id))
    operator = talk.member("operator")
    operator.member_id = ""
    talk.commits(operator, epoch=-1)
    if how == "a heartbeat":
        talk.answer(asked, talk.given(a, -1))
    else:
        left(asked, talk, a.member_id)
    assert rules_of(talk) == []


@pytest.mark.parametrize("left_ms", [-20, 20])
def test_E_20_allows_an_operator_to_set_offsets_after_a_leave_that_is_captured_late(talk: Epochs, left_ms: int) -> None:
    """By a clock of its own: the member was gone before the answer, or left only after it."""
    a, b = pair(talk)
    talk.leaves(b)
    talk.wait(1_000)
    operator = talk.member("operator")
    operator.member_id = ""
    talk.commits(operator, epoch=-1)
    answered_us = talk.now_us
    talk.now_us += left_ms * 1_000
    talk.leaves(a)
    talk.now_us = answered_us
    assert ("E-20" in rules_of(talk)) == (left_ms > 0)


def test_E_20_fires_where_offsets_are_set_while_a_member_stays(talk: Epochs) -> None:
    a, b = pair(talk)
    asked = talk.ask(talk.client("admin"), leave_request(talk, b.member_id))
    talk.beats(a)
    operator = talk.member("operator")
    operator.member_id = ""
    talk.commits(operator, epoch=-1)
    left(asked, talk, b.member_id)
    assert rules_of(talk) == ["E-20"]


# ---------------------------------------------------------------------------------------------------- whom an answer acts on


def swaps(talk: Epochs, protocol: str) -> tuple[Client, Asked]:
    """An operator removes by instance id whoever holds it, while the holder changes; returns the new one, and the request."""
    a, other = talk.member("a", "i"), talk.member("other")
    talk.joins(a, 2, foo(0, 1))
    talk.joins(other, 3, {})
    talk.beats(a)
    talk.leaves(a, -2)
    asked = talk.ask(talk.client("admin"), leave_request(talk, "", "i"))
    b = talk.member("b", "i")
    if protocol == "consumer":
        talk.joins(b, 4, foo(0, 1))
    else:
        talk.classic_join(b, 4)
    return b, asked


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_E_14_and_O_02_leave_alone_who_joined_under_the_instance_id_while_a_LeaveGroup_was_under_way(
    talk: Epochs, protocol: str
) -> None:
    """The LeaveGroup was handled before the join: whom it removed is decided then."""
    b, asked = swaps(talk, protocol)
    left(asked, talk, "", "i")
    talk.wait(1_000)
    if protocol == "consumer":
        talk.beats(b)
    talk.commits(b)
    assert rules_of(talk) == []


def test_E_18_allows_who_joined_under_the_instance_id_to_be_removed_by_a_LeaveGroup_under_way(talk: Epochs) -> None:
    """The LeaveGroup was handled after the join."""
    b, asked = swaps(talk, "consumer")
    left(asked, talk, "", "i")
    talk.refused(b, 25)
    assert rules_of(talk) == []


@pytest.mark.parametrize("again", ["heartbeats", "commits"])
def test_E_14_and_O_02_fire_for_a_holder_that_joined_before_the_LeaveGroup_was_asked(talk: Epochs, again: str) -> None:
    a, other = talk.member("a", "i"), talk.member("other")
    talk.joins(a, 2, foo(0, 1))
    talk.joins(other, 3, {})
    talk.beats(a)
    asked = talk.ask(talk.client("admin"), leave_request(talk, "", "i"))
    left(asked, talk, "", "i")
    talk.wait(1_000)
    if again == "heartbeats":
        talk.beats(a)
    else:
        talk.commits(a)
    assert rules_of(talk) == ["E-14" if again == "heartbeats" else "O-02"]


def test_M_14_fires_and_tells_no_end_of_session_of_a_holder_whom_an_operator_removed(talk: Epochs) -> None:
    a = alone(talk, instance_id="i")
    talk.beats(a)
    talk.close(a)
    second = talk.member("second", "i")
    talk.refused_join(second, 111)
    talk.wait(2_000)
    left(talk.ask(talk.client("admin"), leave_request(talk, "", "i")), talk, "", "i")
    talk.wait(30_000)
    assert talk.the("M-14").client_id == "second"
    assert not [finding.summary for finding in talk.findings if "session" in finding.summary]


# ---------------------------------------------------------------------------------------------------- what a refused join leaves as it was


def test_E_14_fires_after_a_join_that_was_refused(talk: Epochs) -> None:
    a, b = pair(talk)
    talk.leaves(b)
    talk.refused_join(b, 81)
    talk.beats(b, 4, epoch=4)
    talk.beats(a)
    assert rules_of(talk) == ["E-14"]


def test_pending_effects_are_kept_in_a_snapshot(talk: Epochs) -> None:
    a, b = pair(talk)
    admin = talk.client("admin")
    talk.ask(admin, leave_request(talk, a.member_id))
    talk.close(admin)
    talk.beats(b)
    talk.refused(a, 25)
    talk.settle()
    assert talk.found_when_restored() == talk.findings
    assert rules_of(talk) == []


def asks_often(talk: Epochs, times: int) -> None:
    for number in range(times):
        client = talk.member(f"client{number}")
        talk.ask_beat(client, 0, **talk.join_fields())
        talk.close(client)


def test_effects_that_are_too_many_to_keep_may_have_done_anything_until_members_are_accepted_again(talk: Epochs) -> None:
    a, b = pair(talk)
    admin = talk.client("admin")
    talk.ask(admin, leave_request(talk, a.member_id))
    talk.close(admin)
    asks_often(talk, 300)
    talk.refused(a, 25)
    assert rules_of(talk) == []
    known: Any = talk.model.groups.opened(("c1", "g"))[0].effects.known
    assert len(known) <= 256
    talk.beats(b)
    talk.wait(1_000)
    talk.beats(b)
    talk.refused(b, 25)
    assert rules_of(talk) == ["E-18"]


# ---------------------------------------------------------------------------------------------------- classic groups


@pytest.mark.parametrize("how", ["an instance id alone", "a clock that is ahead", "captured 300 ms late", "no answer"])
def test_T_03_allows_an_eviction_by_a_LeaveGroup_that_is_captured_late_or_elsewhere(how: str) -> None:
    talk = Conversation(clock_skew_ms=200 if how == "a clock that is ahead" else 0)
    a, b = static_group(talk, ("a", "b"))
    live(talk, [a, b], 3)
    admin = talk.client("admin")
    if how == "no answer":
        talk.ask(admin, leave_request(talk, b.member_id))
        talk.close(admin)
    talk.heartbeat(b, 25)
    if how == "a clock that is ahead":
        talk.wait(150)
    else:
        talk.now_us -= 300_000
    if how != "no answer":
        asked = talk.ask(admin, leave_request(talk, "", "i") if "alone" in how else leave_request(talk, b.member_id))
        left(asked, talk, b.member_id, "i")
    talk.now_us += 300_000
    assert "T-03" not in rules_of(talk)


def test_T_03_fires_again_once_the_coordinator_is_known_to_have_worked_through_what_had_no_answer(talk: Conversation) -> None:
    a, b = settled(talk)
    admin = talk.client("admin")
    talk.ask(admin, leave_request(talk, "nobody"))
    talk.close(admin)
    live(talk, [a, b], 3)
    talk.round([a, b], 4)
    live(talk, [a, b], 3)
    talk.heartbeat(b, 25)
    assert rules_of(talk) == ["T-03"]


def test_a_LeaveGroup_by_instance_of_a_classic_group_removes_who_held_it_when_it_was_handled(talk: Conversation) -> None:
    lead, one = static_group(talk)
    live(talk, [lead, one], 2)
    asked = talk.ask(talk.client("admin"), leave_request(talk, "", "i"))
    two = talk.client("two", instance_id="i")
    talk.joined(talk.ask_join(two), generation=3, leader=lead, roster=[], member_id="i-two")
    left(asked, talk, "", "i")
    assert [member["member_id"] for member in talk.group_json()["members"]] == [lead.member_id, "i-two"]


def test_G_03_allows_a_generation_that_a_load_had_lost_to_be_given_again(talk: Conversation) -> None:
    """No frame shows the load: the coordinator moves away and back between two heartbeats, and its connections stay."""
    a, b = settled(talk)
    joins = [talk.ask_join(a), talk.ask_join(b)]
    complete(talk, joins, 4, a, [a, b])
    talk.heartbeat(b, 22)
    joins = [talk.ask_join(a), talk.ask_join(b)]
    complete(talk, joins, 4, a, [a, b])
    talk.sync_all([a, b])
    live(talk, [a, b], 2)
    assert "G-03" not in rules_of(talk)


def test_O_04_allows_offsets_set_after_a_LeaveGroup_whose_member_a_load_brings_back(talk: Conversation) -> None:
    """The LeaveGroup is lost with the coordinator that handled it; no frame shows the load."""
    (a,) = settled(talk, ("a",))
    live(talk, [a], 3)
    left(talk.ask(talk.client("admin"), leave_request(talk, a.member_id)), talk, a.member_id)
    talk.commit(talk.client("tool"), generation_id_or_member_epoch=-1, member_id="", group_instance_id=None)
    talk.wait(100)
    live(talk, [a], 20)
    assert "O-04" not in rules_of(talk)


def test_G_09_takes_no_version_of_another_broker_for_the_coordinators(talk: Conversation) -> None:
    """Brokers up to 2.1 refuse a JoinGroup with generation 0."""
    old = {"version": 3}
    a = talk.client("a")
    asked = talk.ask(a, talk.join_request(a), **old)
    talk.joined(asked, generation=1, leader=a, roster=[a], member_id="a-id")
    talk.call(a, talk.sync_request(a, [a]), talk.synced(), version=2)
    elsewhere = a.reconnected("2")
    talk.heartbeat(elsewhere, 16)
    c = talk.client("c")
    reply = wire.JoinGroupResponse(error_code=23, generation_id=0, protocol_name="", leader="", member_id="")
    talk.call(c, talk.join_request(c), reply, **old)
    assert "G-09" not in rules_of(talk)


@pytest.mark.parametrize("refused", ["before", "after"])
@pytest.mark.parametrize("error", [81, 128])
def test_P_07_allows_an_upgrade_that_is_called_off_to_end_what_is_held(talk: Epochs, error: int, refused: str) -> None:
    """The group is converted and what it holds is answered, before the group is found to be full, or the pattern invalid."""
    clients = settled(talk)
    asked = [talk.ask_join(client) for client in clients]
    new = talk.member("new")
    upgrade = talk.ask_beat(new, 0, **talk.join_fields())
    refusal = wire.ConsumerGroupHeartbeatResponse(error_code=error)
    if refused == "before":
        talk.answer(upgrade, refusal)
    for one in asked:
        talk.refuse_join(one, 27)
    if refused == "after":
        talk.answer(upgrade, refusal)
    assert "P-07" not in rules_of(talk)


@pytest.mark.parametrize("since_ms", [-20, 20])
def test_P_07_allows_an_upgrade_whose_request_is_captured_after_what_it_ended(talk: Epochs, since_ms: int) -> None:
    """It was asked before the held JoinGroups were answered. One that was asked after that ended none of them."""
    asked = [talk.ask_join(client) for client in settled(talk)]
    talk.wait(100)
    for one in asked:
        talk.refuse_join(one, 27)
    answered_us = talk.now_us
    talk.now_us += since_ms * 1_000
    upgrade = talk.ask_beat(talk.member("new"), 0, **talk.join_fields())
    talk.now_us = answered_us
    talk.wait(3_000)
    talk.answer(upgrade, wire.ConsumerGroupHeartbeatResponse(error_code=15))
    assert ("P-07" in rules_of(talk)) == (since_ms > 0)


def test_P_07_fires_where_no_upgrade_ends_what_is_held(talk: Epochs) -> None:
    asked = [talk.ask_join(client) for client in settled(talk)]
    for one in asked:
        talk.refuse_join(one, 27)
    assert "P-07" in rules_of(talk)


def test_O_02_leaves_classic_members_alone_of_a_group_that_was_converted_after_a_load(talk: Epochs) -> None:
    """It keeps its generation, 1, as its epoch, so that the first heartbeat answered shows epoch 2, as in a new group."""
    clients = settled(talk, generation=1)
    for client in clients:
        talk.heartbeat(client, 16)
    clients = [client.reconnected("2") for client in clients]
    new = talk.member("new", broker="2")
    talk.joins(new, 2, {})
    lives_on(talk, new, 2)
    for client in clients:
        talk.commits(client, epoch=1)
    assert "O-02" not in rules_of(talk)


def test_E_18_allows_a_streams_member_to_be_removed_whose_heartbeat_was_answered_16_after_the_next_coordinator_had_acted(
    talk: Streams,
) -> None:
    """It asked the member to give a task up: the answer never came, and the next coordinator knows of it."""
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0, 1, 2))
    talk.works(a)
    talk.enters(b, 3, ())
    asked = talk.ask(a, talk.task_beat(a, 2, tasks=(0, 1, 2)))
    talk.wait(3_000)
    talk.works(b.reconnected("2"), 3)
    talk.answer(asked, wire.StreamsGroupHeartbeatResponse(error_code=16))
    a = a.reconnected("2")
    talk.works(a, 2, None, owned=(0, 1, 2))
    talk.told_for([a, b.reconnected("2")], 10)
    talk.turned_away(a, 25, epoch=2)
    assert rules_of(talk) == []


@pytest.mark.parametrize("known", ["before", "since"])
def test_E_18_allows_a_member_to_be_removed_whose_join_was_under_way(talk: Epochs, known: str) -> None:
    """Slow replication: both answers come late, and that of the LeaveGroup first. The group may have been known by nobody before."""
    a, b = talk.member("a"), talk.member("b")
    if known == "before":
        talk.joins(a, 2)
    joins = talk.ask(b, talk.beat_request(b, 0, **talk.join_fields()))
    if known == "since":
        talk.joins(a, 2)
    talk.wait(500)
    removes = talk.ask(talk.client("operator"), leave_request(talk, "b-id"))
    talk.wait(500)
    left(removes, talk, "b-id")
    talk.answer(joins, talk.given(b, 3, {}))
    talk.refused(b, 25, epoch=3)
    assert rules_of(talk) == []


@pytest.mark.parametrize(("joined_ms", "said"), [(-100, []), (100, ["E-18"])])
def test_E_18_allows_a_member_to_be_removed_whose_join_is_captured_after_that(
    talk: Epochs, joined_ms: int, said: list[str]
) -> None:
    """Its join and the answer to it come later than the LeaveGroup that removes it; or it joined only then."""
    a, b = talk.member("a"), talk.member("b")
    talk.joins(a, 2)
    talk.wait(500)
    left(talk.ask(talk.client("operator"), leave_request(talk, "b-id")), talk, "b-id")
    left_us = talk.now_us
    talk.now_us += joined_ms * 1_000
    talk.answer(talk.ask(b, talk.beat_request(b, 0, **talk.join_fields())), talk.given(b, 3, {}))
    talk.now_us = left_us
    talk.wait(1_000)
    talk.refused(b, 25, epoch=3)
    assert rules_of(talk) == said


@pytest.mark.parametrize(("joined_ms", "said"), [(-100, []), (100, ["E-23"])])
def test_E_23_allows_an_instance_to_be_removed_whose_join_is_captured_after_that(
    talk: Epochs, joined_ms: int, said: list[str]
) -> None:
    """An operator removes it by its instance id, which another held until then, as far as frames show."""
    other, before, removed, after = (
        talk.member(name, instance) for name, instance in (("o", None), ("a", "i"), ("b", "i"), ("c", "i"))
    )
    talk.joins(other, 1)
    talk.joins(before, 2)
    talk.leaves(before, -2)
    talk.wait(2_000)
    left(talk.ask(talk.client("operator"), leave_request(talk, "", "i")), talk, "", "i")
    left_us = talk.now_us
    talk.now_us += joined_ms * 1_000
    talk.answer(talk.ask(removed, talk.beat_request(removed, 0, **talk.join_fields())), talk.given(removed, 3, {}))
    talk.now_us = left_us
    talk.wait(1_000)
    talk.joins(after, 4)
    assert rules_of(talk) == said


def test_C_01_does_not_wait_for_a_join_whose_answer_may_be_missing(talk: Epochs) -> None:
    """The group was known to be of no type yet when frames were lost."""
    a, b = talk.member("a"), talk.member("b")
    talk.ask(b, talk.beat_request(b, 0, **talk.join_fields()))
    talk.gap()
    talk.joins(a, 3)
    talk.live([a], 60)
    assert "C-01" not in talk.rules()


def test_E_14_allows_a_member_that_joined_again_before_the_answer_to_its_removal(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.wait(500)
    removes = talk.ask(talk.client("operator"), leave_request(talk, "a-id"))
    talk.joins(a, 4, foo(0))
    left(removes, talk, "a-id")
    talk.beats(a)
    assert rules_of(talk) == []
