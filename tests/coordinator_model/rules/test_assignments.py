"""Family A: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.groups.classic import assignment_checks
from coordinator_model.wording import clock
from tests.coordinator_model.classic import beat, live
from tests.coordinator_model.conversation import ASSIGNED, Client, Conversation, assignment, subscription
from tests.coordinator_model.rules.coordinators import fail_over
from tests.coordinator_model.rules.generations import (
    answer,
    deliver,
    entries,
    fetch,
    group,
    join,
    offer,
    owned,
    parts,
    share_out,
    submit,
)


def next_round(talk: Conversation, clients: list[Client], generation: int, given: dict[Any, bytes]) -> None:
    join(talk, clients, generation)
    share_out(talk, clients, given)
    talk.settle()


def test_a_lawful_plan_is_silent(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0, 1), b: parts(2)})
    next_round(talk, [a, b], 4, {a: parts(0), b: parts(1, 2)})
    assert talk.rules() == []


# ----------------------------------------------------------------------------------------------------


def test_A_01_fires_when_the_leader_assigns_to_a_non_member(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(1), "nobody": parts(2)})
    talk.settle()
    finding = talk.the("A-01")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CLIENT
    assert finding.client_id == "a"
    assert "nobody" in finding.summary
    assert finding.status is Status.OPEN


def test_A_01_is_resolved_by_the_next_plan(talk: Conversation) -> None:
    test_A_01_fires_when_the_leader_assigns_to_a_non_member(talk)
    a, b = (Client(talk, name) for name in "ab")
    next_round(talk, [a, b], 4, {a: parts(0), b: parts(1, 2)})
    assert talk.the("A-01").status is Status.RESOLVED


def test_A_01_allows_an_id_that_was_replaced_while_the_leader_computed(talk: Conversation) -> None:
    a, b = group(talk, static=True)
    restarted = talk.client("b", instance_id=b.instance_id)
    answer(talk, offer(talk, restarted), generation=3, leader=a.member_id, member_id="b-2")  # as brokers 2.3 and 2.4 do
    share_out(talk, [a], {a: parts(0), "b-2": parts(1)})
    share_out(talk, [a], {a: parts(0), b: parts(1)})
    assert talk.settled_rules() == []


# ----------------------------------------------------------------------------------------------------


def test_A_02_fires_when_a_member_is_left_out_although_others_hold_several(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0, 1)})
    talk.settle()
    finding = talk.the("A-02")
    assert finding.severity is Severity.WARNING
    assert b.member_id in finding.summary
    assert finding.member_id == a.member_id


def test_A_02_and_A_06_allow_fewer_partitions_than_members(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0)})
    assert talk.settled_rules() == []


def test_A_02_allows_a_leader_that_was_told_to_skip(talk: Conversation) -> None:
    a, b = group(talk, static=True)
    share_out(talk, [a, b], {a: parts(0, 1), b: parts(2, 3)})
    leader = talk.client("a", instance_id=a.instance_id)
    asked = offer(talk, leader)
    leader.member_id = "a-2"
    answer(talk, asked, generation=3, leader="a-2", member_id="a-2", members=[leader, b], skip_assignment=True)
    deliver(talk, submit(talk, leader, {leader: parts(0, 1)}), parts(0, 1))
    assert talk.settled_rules() == ["P-11"]


def test_A_02_is_not_said_of_a_plan_that_is_submitted_again(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0, 1), b: parts(2)})
    deliver(talk, submit(talk, a.reconnected(), {a: parts(0, 1)}), parts(0, 1))
    assert talk.settled_rules() == []


def test_A_02_is_resolved_by_the_next_plan(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0, 1)})
    talk.settle()
    next_round(talk, [a, b], 4, {a: parts(0), b: parts(1)})
    assert talk.the("A-02").status is Status.RESOLVED


# ----------------------------------------------------------------------------------------------------


def test_A_03_fires_when_a_partition_is_given_twice(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0, 1), b: parts(1, 2)})
    talk.settle()
    finding = talk.the("A-03")
    assert finding.severity is Severity.ERROR
    assert finding.certainty is Certainty.CERTAIN
    assert finding.blame is Blame.CLIENT
    assert finding.member_id == a.member_id
    assert "t-1" in finding.summary
    assert a.member_id in finding.summary
    assert b.member_id in finding.summary
    assert "SyncGroup v5 request" in finding.evidence[0].frame


def test_A_03_stands_while_the_plan_is_in_force_and_is_resolved_by_the_next(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(0)})
    live(talk, [a, b], 90)
    assert talk.the("A-03").status is Status.OPEN
    next_round(talk, [a, b], 4, {a: parts(0), b: parts(1)})
    assert talk.the("A-03").status is Status.RESOLVED


def test_A_03_is_resolved_when_the_group_is_empty(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(0)})
    talk.settle()
    talk.leave(a)
    talk.leave(b)
    talk.settle()
    assert talk.the("A-03").status is Status.RESOLVED


@pytest.mark.parametrize("protocol", ["fan-out", "my-Broadcast-assignor", "everything"])
def test_A_03_allows_broadcast_assignors(protocol: str) -> None:
    """By setting, by name, or, for an unknown name, when all are given exactly the same."""
    talk = Conversation(broadcast_assignors=("fan-out",))
    a, b = group(talk, protocol=protocol)
    different = protocol != "everything"
    share_out(talk, [a, b], {a: parts(0, 1), b: parts(*((1, 2) if different else (0, 1)))}, protocol=protocol)
    assert talk.settled_rules() == []


def test_A_03_judges_stock_assignors_and_partial_overlap_under_any_name(talk: Conversation) -> None:
    a, b = group(talk, protocol="mine")
    share_out(talk, [a, b], {a: parts(0, 1), b: parts(1)}, protocol="mine")
    assert talk.settled_rules() == ["A-03"]


def test_A_03_is_certain_without_knowing_the_round(talk: Conversation) -> None:
    a = talk.client("a", member_id="a-1", generation=7)
    submit(talk, a, {"a-1": parts(0), "b-1": parts(0)})
    assert talk.settled_rules() == ["A-03"]


def test_A_03_leaves_other_protocol_types_alone(talk: Conversation) -> None:
    a = talk.client("a", member_id="a-1", generation=7)
    submit(talk, a, {"a-1": parts(0), "b-1": parts(0)}, protocol_type="connect")
    assert talk.settled_rules() == []


# ----------------------------------------------------------------------------------------------------


def test_A_04_fires_for_a_topic_that_the_member_did_not_ask_for(talk: Conversation) -> None:
    a, b = (talk.client(name) for name in "ab")
    join(talk, [a, b], 3, offers={a: subscription("t", "u"), b: subscription("t")})
    share_out(talk, [a, b], {a: parts(0), b: assignment(t=(1,), u=(0,))})
    talk.settle()
    finding = talk.the("A-04")
    assert finding.severity is Severity.WARNING
    assert finding.member_id == a.member_id
    assert b.member_id in finding.summary
    assert " u " in finding.summary


def test_A_04_is_resolved_by_the_next_plan(talk: Conversation) -> None:
    test_A_04_fires_for_a_topic_that_the_member_did_not_ask_for(talk)
    a, b = (Client(talk, name) for name in "ab")
    next_round(talk, [a, b], 4, {a: parts(0), b: parts(1)})
    assert talk.the("A-04").status is Status.RESOLVED


def test_A_04_leaves_streams_alone(talk: Conversation) -> None:
    a, b = group(talk, protocol="stream")
    share_out(talk, [a, b], {a: parts(0), b: parts(0, topic="repartition")}, protocol="stream")
    assert talk.settled_rules() == []


def test_A_04_fires_for_two_streams_applications_under_one_application_id(talk: Conversation) -> None:
    a, b = (talk.client(name) for name in "ab")
    join(talk, [a, b], 3, offers={a: subscription("orders", "w"), b: subscription("payments", "w")}, protocol="stream")
    share_out(talk, [a, b], {a: assignment(orders=(0,)), b: assignment(orders=(1,), w=(1,))}, protocol="stream")
    talk.settle()
    finding = talk.the("A-04")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CONFIG)
    assert "Two Kafka Streams applications share the application.id g." in finding.summary
    assert f"gave tasks of orders to member {b.member_id}" in finding.summary
    assert "Nobody reads payments" in finding.summary
    assert finding.action.startswith("Give each application")


def test_A_04_says_since_when_and_at_which_pace_the_other_application_rejoins(talk: Conversation) -> None:
    """It drops tasks of a topic that it does not subscribe to, and asks for others; the leader gives it the same."""
    a, b = (talk.client(name) for name in "ab")
    plan = {a: assignment(orders=(0,)), b: assignment(orders=(1,), w=(1,))}
    offers = {a: subscription("orders", "w"), b: subscription("payments", "w")}
    join(talk, [a, b], 3, offers=offers, protocol="stream")
    share_out(talk, [a, b], plan, protocol="stream")
    begun = []
    for generation in range(4, 7):
        talk.wait(2_000)
        begun.append(clock(talk.now_us))
        offers[b] = subscription("payments", "w", user_data=bytes([generation]))
        waiting = [offer(talk, b, offers[b], "stream")]
        talk.heartbeat(a, 27)
        waiting.append(offer(talk, a, offers[a], "stream"))
        for asked in reversed(waiting):
            members = [a, b] if asked.client is a else []
            leader = a.member_id
            answer(talk, asked, generation=generation, leader=leader, members=members, offers=offers, protocol_name="stream")
        share_out(talk, [a, b], plan, protocol="stream")
    talk.settle()
    assert f"which does not subscribe to it, and rejoined 3 times since {begun[0]}, every 2.0 s. Nobody" in talk.the("A-04").summary


def test_A_04_cannot_judge_a_subscription_that_it_cannot_read(talk: Conversation) -> None:
    a, b = (talk.client(name) for name in "ab")
    join(talk, [a, b], 3, offers={b: b"?"})
    share_out(talk, [a, b], {a: parts(0), b: parts(0, topic="u")})
    assert talk.settled_rules() == ["P-13"]


# ----------------------------------------------------------------------------------------------------


def swapped(talk: Conversation) -> list[Client]:
    a, b = group(talk)
    leads, follows = submit(talk, a, {a: parts(0), b: parts(1)}), fetch(talk, b)
    deliver(talk, leads, parts(0))
    deliver(talk, follows, parts(0))
    return [a, b]


def test_A_05_fires_when_a_member_is_given_what_was_meant_for_another(talk: Conversation) -> None:
    _, b = swapped(talk)
    talk.settle()
    finding = talk.the("A-05")
    assert finding.severity is Severity.CRITICAL
    assert finding.certainty is Certainty.CONFIRMED
    assert finding.blame is Blame.BROKER
    assert finding.member_id == b.member_id
    assert finding.generation == 3


def test_A_05_is_told_although_the_victim_rejoins_at_once_and_is_resolved_in_time(talk: Conversation) -> None:
    a, b = swapped(talk)
    next_round(talk, [a, b], 4, {a: parts(0), b: parts(1)})
    assert talk.the("A-05").status is Status.OPEN
    talk.wait(61_000)
    next_round(talk, [a, b], 5, {a: parts(0), b: parts(1)})
    assert talk.the("A-05").status is Status.RESOLVED


def test_A_05_is_told_of_an_answer_that_comes_after_the_next_round_began(talk: Conversation) -> None:
    a, b = group(talk)
    leads, follows = submit(talk, a, {a: parts(0), b: parts(1)}), fetch(talk, b)
    deliver(talk, leads, parts(0))
    answer(talk, offer(talk, a), generation=4, leader=a.member_id, members=[a, b])
    deliver(talk, follows, parts(0))
    assert "A-05" in talk.settled_rules()


def test_A_05_allows_either_of_two_plans_of_a_leader_that_syncs_twice(talk: Conversation) -> None:
    a, b, c = group(talk, ("a", "b", "c"))
    again = a.reconnected()
    first, late = submit(talk, a, {a: parts(0, 1), b: parts(2)}), fetch(talk, c)
    second = submit(talk, again, {a: parts(0), b: parts(1)})
    follows = fetch(talk, b)
    deliver(talk, first, parts(0, 1))
    deliver(talk, second, parts(0))
    deliver(talk, follows, parts(1))
    deliver(talk, late, b"")
    assert talk.settled_rules() == ["A-02"]


def test_A_05_does_not_know_which_of_very_many_plans_was_kept(talk: Conversation) -> None:
    a, b = group(talk)
    for number in range(5):
        submit(talk, a.reconnected(), {a: parts(number), b: parts(9)})
    deliver(talk, fetch(talk, b), parts(8))
    assert talk.settled_rules() == []


def test_a_plan_of_the_round_before_does_not_count_for_this_one(talk: Conversation) -> None:
    """The leader submits again, for a generation that is over, while a member still waits at it."""
    a, b = group(talk)
    again = a.reconnected()
    leads, follows = submit(talk, a, {a: parts(0), b: parts(1)}), fetch(talk, b)
    deliver(talk, leads, parts(0))
    answer(talk, offer(talk, a), generation=4, leader=a.member_id, members=[a, b])
    submit(talk, again, {a: parts(0), b: parts(0)})
    deliver(talk, follows, parts(7))
    deliver(talk, submit(talk, a, {a: parts(0), b: parts(7)}), parts(0))
    assert talk.settled_rules() == ["A-05"]


def late(talk: Conversation, client: Client, body: Any, by_ms: int) -> None:
    """A request that the tap saw some time ago, on a connection whose records come late."""
    now_us = talk.now_us
    talk.now_us -= by_ms * 1_000
    talk.ask(client, body)
    talk.now_us = now_us


def test_A_05_waits_for_the_plan_that_explains_it(talk: Conversation) -> None:
    a, b = group(talk)
    again = a.reconnected()
    deliver(talk, submit(talk, a, {a: parts(0), b: parts(1)}), parts(5))
    late(talk, again, talk.sync_request(again, [], assignments=entries({a: parts(5), b: parts(1)})), by_ms=1)
    assert talk.settled_rules() == []


def test_A_05_is_not_explained_by_a_plan_that_came_afterwards(talk: Conversation) -> None:
    a, b = group(talk)
    again = a.reconnected()
    deliver(talk, submit(talk, a, {a: parts(0), b: parts(1)}), parts(5))
    talk.wait(1)
    submit(talk, again, {a: parts(5), b: parts(1)})
    assert talk.settled_rules() == ["A-05"]


def test_A_05_allows_a_static_member_to_inherit(talk: Conversation) -> None:
    a, b = group(talk, static=True)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    restarted = talk.client("b", instance_id=b.instance_id)
    answer(talk, offer(talk, restarted), generation=3, leader=a.member_id, member_id="b-2")
    deliver(talk, fetch(talk, restarted), parts(1))
    assert talk.settled_rules() == []
    deliver(talk, fetch(talk, restarted), parts(0))
    assert talk.settled_rules() == ["A-05"]


def test_A_05_allows_a_failover_in_between(talk: Conversation) -> None:
    a, b = group(talk)
    submit(talk, a, {a: parts(0), b: parts(1)})
    talk.heartbeat(b, 16)
    deliver(talk, fetch(talk, b.reconnected("2")), parts(7))
    assert talk.settled_rules() == []


def test_A_05_is_still_told_when_the_coordinator_moves_at_once(talk: Conversation) -> None:
    _, b = swapped(talk)
    talk.heartbeat(b, 16)
    assert "A-05" in talk.settled_rules()


def test_A_05_forgets_a_suspect_when_frames_are_lost(talk: Conversation) -> None:
    swapped(talk)
    talk.lose(3)
    assert talk.settled_rules() == ["V-01"]


def test_A_05_allows_replayed_answers_of_a_round_that_was_not_seen(talk: Conversation) -> None:
    """Listening began while the group was stable: a follower rejoins unchanged and is given what was stored long ago."""
    b = talk.client("b", member_id="b-1")
    answer(talk, offer(talk, b), generation=9, leader="a-1")
    deliver(talk, fetch(talk, b), parts(1))
    assert talk.settled_rules() == []


def test_A_05_allows_a_leader_whose_lost_answer_is_repeated(talk: Conversation) -> None:
    """Listening began after the leader submitted: its JoinGroup is answered again, it submits another plan, the first one counts."""
    a, b = talk.client("a", member_id="a-1"), talk.client("b", member_id="b-1")
    answer(talk, offer(talk, a), generation=9, leader="a-1", members=[a, b])
    deliver(talk, submit(talk, a, {a: parts(0), b: parts(1)}), parts(1))
    assert talk.settled_rules() == []


def test_A_05_takes_a_generation_that_contradicts_itself_for_one_issued_twice(talk: Conversation) -> None:
    a, b = group(talk)
    submit(talk, a, {a: parts(0), b: parts(1)})
    b2 = b.reconnected()
    answer(talk, offer(talk, b2), generation=3, leader=b.member_id, members=[a, b])  # a crash, and the same broker again
    deliver(talk, submit(talk, b2, {a: parts(1), b: parts(0)}), parts(4))
    assert talk.settled_rules() == ["G-06"]
    assert talk.rules() == ["G-06"]


# ----------------------------------------------------------------------------------------------------


def emptied(talk: Conversation) -> list[Client]:
    a, b = group(talk)
    leads, follows = submit(talk, a, {a: parts(0), b: parts(1)}), fetch(talk, b)
    deliver(talk, leads, parts(0))
    deliver(talk, follows, b"")
    talk.settle()
    return [a, b]


def test_A_06_fires_when_nothing_is_delivered_where_something_was_submitted(talk: Conversation) -> None:
    _, b = emptied(talk)
    finding = talk.the("A-06")
    assert finding.severity is Severity.CRITICAL
    assert finding.blame is Blame.BROKER
    assert finding.member_id == b.member_id


def test_A_06_is_resolved_in_time(talk: Conversation) -> None:
    a, b = emptied(talk)
    talk.wait(61_000)
    next_round(talk, [a, b], 4, {a: parts(0), b: parts(1)})
    assert talk.the("A-06").status is Status.RESOLVED


def test_A_06_allows_a_static_id_that_the_leader_never_heard_of(talk: Conversation) -> None:
    a, b = group(talk, static=True)
    restarted = talk.client("b", instance_id=b.instance_id)
    answer(talk, offer(talk, restarted), generation=3, leader=a.member_id, member_id="b-2")  # as brokers 2.3 and 2.4 do
    leads, follows = submit(talk, a, {a: parts(0), b: parts(1)}), fetch(talk, restarted)
    deliver(talk, leads, parts(0))
    deliver(talk, follows, b"")
    assert talk.settled_rules() == []


def test_A_06_warns_when_the_plan_is_empty_for_everybody(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    join(talk, [a, b], 4)
    share_out(talk, [a, b], {a: b"", b: b""})
    talk.settle()
    finding = talk.the("A-06")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CLIENT)
    assert (finding.member_id, finding.client_id) == (None, None)


# ----------------------------------------------------------------------------------------------------


def test_A_07_fires_when_a_follower_submits(talk: Conversation) -> None:
    a, b = group(talk)
    submit(talk, b, {a: parts(0), b: parts(1)})
    talk.settle()
    finding = talk.the("A-07")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.CERTAIN
    assert finding.member_id == b.member_id
    talk.wait(61_000)
    assert talk.the("A-07").status is Status.RESOLVED


def test_A_07_allows_a_static_leader_under_its_new_id(talk: Conversation) -> None:
    a, b = group(talk, static=True)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    leader = talk.client("a", instance_id=a.instance_id)
    answer(talk, offer(talk, leader), generation=3, leader=a.member_id, member_id="a-2")
    submit(talk, leader, {a: parts(0), b: parts(1)})
    assert talk.settled_rules() == []


def test_A_07_allows_a_member_whose_own_answer_was_not_seen(talk: Conversation) -> None:
    a, _ = group(talk)
    stranger = talk.client("c", member_id="c-1", generation=3)
    submit(talk, stranger, {a: parts(0)})
    assert talk.settled_rules() == []


def test_A_07_allows_a_static_member_while_nothing_is_known_of_the_leader(talk: Conversation) -> None:
    b = talk.client("b", member_id="b-1", instance_id="i-b")
    answer(talk, offer(talk, b), generation=9, leader="a-1")
    submit(talk, b, {b: parts(0)})
    assert talk.settled_rules() == []


def test_A_07_says_nothing_of_a_static_follower_that_only_fetches(talk: Conversation) -> None:
    a, b = group(talk, static=True)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    submit(talk, b, {b: parts(1)})
    assert talk.settled_rules() == ["A-07"]


# ----------------------------------------------------------------------------------------------------


def idle(talk: Conversation) -> list[Client]:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    join(talk, [a, b], 4)
    share_out(talk, [a, b], {})
    talk.settle()
    return [a, b]


def test_A_08_fires_when_the_leader_submits_nothing(talk: Conversation) -> None:
    a, _ = idle(talk)
    finding = talk.the("A-08")
    assert finding.severity is Severity.ERROR
    assert finding.member_id == a.member_id
    assert talk.rules() == ["A-08"]  # what follows from it is not said again


def test_A_08_is_resolved_by_the_next_plan(talk: Conversation) -> None:
    a, b = idle(talk)
    next_round(talk, [a, b], 5, {a: parts(0), b: parts(1)})
    assert talk.the("A-08").status is Status.RESOLVED


def test_A_08_allows_topics_that_may_not_exist_yet(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {})
    assert talk.settled_rules() == []


def test_A_08_counts_partitions_that_members_say_they_own(talk: Conversation) -> None:
    a, b = (talk.client(name) for name in "ab")
    join(talk, [a, b], 3, offers={a: owned(2, 0)})
    share_out(talk, [a, b], {})
    assert talk.settled_rules() == ["A-08"]


# ----------------------------------------------------------------------------------------------------


def moved(talk: Conversation, claims: dict[int, bytes], given: list[bytes], protocol: str = "cooperative-sticky") -> list[Client]:
    """Generation 4, with what members claim from generation 3."""
    clients = group(talk, ("a", "b", "c"), protocol=protocol)
    share_out(talk, clients, {clients[0]: parts(0), clients[1]: parts(1), clients[2]: ASSIGNED}, protocol=protocol)
    join(talk, clients, 4, offers={clients[index]: claim for index, claim in claims.items()}, protocol=protocol)
    share_out(talk, clients, dict(zip(clients, given, strict=True)), protocol=protocol)
    talk.settle()
    return clients


JUMP = [ASSIGNED, parts(1), parts(0)]


def test_A_09_fires_when_a_partition_moves_in_one_step(talk: Conversation) -> None:
    a, _, c = moved(talk, {0: owned(3, 0), 1: owned(3, 1)}, JUMP)
    finding = talk.the("A-09")
    assert finding.severity is Severity.ERROR
    assert finding.certainty is Certainty.HEURISTIC
    assert f"t-0 from {a.member_id} to {c.member_id}" in finding.summary


def test_A_09_is_resolved_by_the_next_plan(talk: Conversation) -> None:
    clients = moved(talk, {0: owned(3, 0), 1: owned(3, 1)}, JUMP)
    join(talk, clients, 5, protocol="cooperative-sticky")
    share_out(talk, clients, dict(zip(clients, JUMP, strict=True)), protocol="cooperative-sticky")
    talk.settle()
    assert talk.the("A-09").status is Status.RESOLVED


@pytest.mark.parametrize(
    ("claims", "protocol"),
    [
        ({0: owned(3, 0)}, "range"),  # an eager protocol
        ({0: owned(2, 0)}, "cooperative-sticky"),  # an older claim
        ({0: owned(3, 0, version=1)}, "cooperative-sticky"),  # one without a generation
        ({0: owned(3, 0).replace(b"\x00\x01t", b"\x00\x01u", 1)}, "cooperative-sticky"),  # it no longer subscribes
    ],
)
def test_A_09_is_quiet_without_a_valid_claim(talk: Conversation, claims: dict[int, bytes], protocol: str) -> None:
    moved(talk, claims, JUMP, protocol)
    assert [rule for rule in talk.rules() if rule != "A-13"] == []


def test_A_09_leaves_doubly_claimed_partitions_to_A_10(talk: Conversation) -> None:
    moved(talk, {0: owned(3, 0), 1: owned(3, 0, 1)}, JUMP)
    assert talk.rules() == ["A-10"]


def test_A_09_allows_a_partition_that_its_owner_gave_up_first(talk: Conversation) -> None:
    moved(talk, {0: owned(3), 1: owned(3, 1)}, JUMP)
    assert talk.rules() == []


# ----------------------------------------------------------------------------------------------------


def test_A_10_fires_on_claims_of_one_generation(talk: Conversation) -> None:
    a, b, _ = moved(talk, {0: owned(3, 0), 1: owned(3, 0)}, [parts(0), parts(1), ASSIGNED])
    finding = talk.the("A-10")
    assert finding.severity is Severity.WARNING
    assert a.member_id in finding.summary
    assert b.member_id in finding.summary
    assert finding.member_id is None
    talk.wait(61_000)
    assert talk.the("A-10").status is Status.RESOLVED


@pytest.mark.parametrize("older", [owned(2, 0), owned(3, 0, version=1)])
def test_A_10_allows_older_claims_and_those_without_a_generation(talk: Conversation, older: bytes) -> None:
    moved(talk, {0: owned(3, 0), 1: older}, [parts(0), parts(1), ASSIGNED])
    assert talk.rules() == []


def test_A_10_does_not_compare_claims_from_before_a_failover(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    a, b = fail_over(talk, [a, b])
    join(talk, [a, b], 4, offers={a: owned(3, 0), b: owned(3, 0)})
    assert talk.settled_rules() == []


# ----------------------------------------------------------------------------------------------------


def forgotten(talk: Conversation) -> list[Client]:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    join(talk, [a, b], 4)
    share_out(talk, [a, b], {a: parts(0), b: ASSIGNED})
    beat(talk, [a, b], 25)
    return [a, b]


def test_A_11_fires_when_a_partition_stays_unowned(talk: Conversation) -> None:
    forgotten(talk)
    finding = talk.the("A-11")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.HEURISTIC
    assert "t-1" in finding.summary
    assert "20.0 s" in finding.summary


def test_A_11_leaves_a_topic_without_a_right_to_O_09_while_that_is_open(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(1), b: parts(0)})
    talk.commit_offsets(b, {0: 5}, {0: 29})
    join(talk, [a, b], 4)
    share_out(talk, [a, b], {a: parts(1), b: ASSIGNED})
    for minutes, found in ((28, False), (3, True)):
        for _ in range(minutes * 30):
            talk.wait(2_000)
            talk.heartbeat(a)
            talk.heartbeat(b)
        assert ("A-11" in talk.rules()) is found


def test_A_11_says_of_a_topic_that_was_deleted_that_it_is_gone(talk: Conversation) -> None:
    """It said that what is written there is not read."""
    a, b = group(talk)
    talk.topics(t=2)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    talk.topics(t=0)
    join(talk, [a, b], 4)
    share_out(talk, [a, b], {a: ASSIGNED, b: ASSIGNED})
    lives_on(talk, [a, b], 60)
    finding = talk.the("A-11")
    assert finding.summary.endswith("although members subscribed to it: there is no such topic any more.")
    assert finding.action.startswith("Create the topic again")


def test_A_11_is_resolved_when_the_partition_has_an_owner(talk: Conversation) -> None:
    a, b = forgotten(talk)
    next_round(talk, [a, b], 5, {a: parts(0), b: parts(1)})
    assert talk.the("A-11").status is Status.RESOLVED


def test_A_11_allows_the_first_step_of_a_cooperative_rebalance(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0, 1), b: ASSIGNED})
    join(talk, [a, b], 4)
    share_out(talk, [a, b], {a: parts(0), b: ASSIGNED})
    talk.wait(2_000)
    next_round(talk, [a, b], 5, {a: parts(0), b: parts(1)})
    talk.wait(5_000)
    assert talk.rules() == []


def test_A_11_forgets_topics_that_nobody_wants_any_more(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    join(talk, [a, b], 4, offers={a: subscription("u"), b: subscription("u")})
    share_out(talk, [a, b], {a: parts(0, topic="u"), b: parts(1, topic="u")})
    beat(talk, [a, b], 25)
    assert talk.rules() == []


def lives_on(talk: Conversation, members: list[Client], seconds: int) -> None:
    for _ in range(seconds // 2):
        talk.wait(2_000)
        for member in members:
            talk.heartbeat(member)


def fewer(talk: Conversation, left: tuple[int, ...], protocol: str = "range") -> list[Client]:
    """A topic of four partitions, of which only some are assigned from generation 4 on."""
    a, b = group(talk, protocol=protocol)
    share_out(talk, [a, b], {a: parts(0, 2), b: parts(1, 3)}, protocol)
    join(talk, [a, b], 4, protocol=protocol)
    share_out(talk, [a, b], {a: parts(*left), b: ASSIGNED}, protocol)
    lives_on(talk, [a, b], 30)
    return [a, b]


def test_A_11_is_over_ten_minutes_after_a_topic_was_created_anew_with_fewer_partitions(talk: Conversation) -> None:
    """It stayed open for ever: nobody can own a partition that does not exist."""
    members = fewer(talk, (0, 1))
    assert "t-2, t-3" in talk.the("A-11").summary
    lives_on(talk, members, 560)
    assert talk.the("A-11").status is Status.OPEN
    lives_on(talk, members, 20)
    assert talk.the("A-11").status is Status.RESOLVED
    talk.gap()
    for generation in (5, 6):
        next_round(talk, members, generation, {members[0]: parts(0), members[1]: parts(1)})
        lives_on(talk, members, 30)
    assert len([one for one in talk.opened() if one.rule == "A-11"]) == 1


@pytest.mark.parametrize(("left", "protocol"), [((0, 1, 3), "range"), ((0, 1), "home-made")])
def test_A_11_is_not_over_where_the_assignor_may_have_left_partitions_out(
    talk: Conversation, left: tuple[int, ...], protocol: str
) -> None:
    members = fewer(talk, left, protocol)
    lives_on(talk, members, 700)
    assert talk.the("A-11").status is Status.OPEN


def test_A_11_does_not_guess_what_an_unreadable_entry_holds(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(1)})
    join(talk, [a, b], 4)
    share_out(talk, [a, b], {a: parts(0), b: b"\x00"})
    beat(talk, [a, b], 25)
    assert talk.rules() == ["P-13"]


# ---------------------------------------------------------------------------------------------------- reading, bounds, snapshots


def test_only_the_fields_of_the_first_version_count() -> None:
    assert assignment_checks.read_subscription(subscription("t", "u") + b"junk") == assignment_checks.Subscription(("t", "u"))
    assert assignment_checks.read_assignment(parts(0, 3) + b"junk") == {"t": (0, 3)}
    for cut in range(len(wire.encode_subscription(wire.ConsumerProtocolSubscription(topics=("t", "u")), version=0))):
        assert assignment_checks.read_subscription(subscription("t", "u")[:cut]) is None
    assert assignment_checks.read_subscription(b"\x00\x00\x7f\xff\xff\xff") is None
    assert assignment_checks.read_subscription(b"\x00\x00\x00\x00\x00\x01\xff\xff") is None
    assert assignment_checks.read_assignment(b"\x00\x01\x00") is None


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    assignment_checks.read_subscription(raw)
    assignment_checks.read_assignment(raw)


def parts_by_definition(offers: dict[str, tuple[str, ...]]) -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Grow each part until nothing is left that has a topic in common with it."""
    found = set()
    for id_ in (id_ for id_, topics in offers.items() if topics):
        topics, members = set(offers[id_]), {id_}
        while more := {other for other, theirs in offers.items() if not topics.isdisjoint(theirs)} - members:
            members |= more
            topics.update(*(offers[other] for other in more))
        found.add((tuple(sorted(topics)), tuple(sorted(members))))
    return found


@given(st.dictionaries(st.text("mn", max_size=4), st.lists(st.sampled_from("abcdefgh"), max_size=3), max_size=8))
def test_parts_have_no_topic_in_common(given: dict[str, list[str]]) -> None:
    offers = {id_: tuple(topics) for id_, topics in given.items()}
    found = assignment_checks.parts_without_common_topic(
        {id_: assignment_checks.Subscription(topics) for id_, topics in offers.items()} | {"unreadable": None}
    )
    assert found == tuple(sorted(parts_by_definition(offers)))


def test_parts_and_partitions_cost_no_more_than_their_number() -> None:
    """A frame may name 100,000 members with a topic each, or one topic 100,000 times."""
    began = time.process_time()
    offers = {f"m{number}": assignment_checks.Subscription((f"t{number}",)) for number in range(100_000)}
    assert len(assignment_checks.parts_without_common_topic(offers)) == 100_000
    entry = wire.ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=(1,))
    raw = wire.encode_assignment(wire.ConsumerProtocolAssignment(assigned_partitions=(entry,) * 100_000), version=1)
    assert assignment_checks.read_assignment(raw) == {"t": (1,) * 100_000}
    assert time.process_time() - began < 20


def test_absurd_partition_numbers_cost_nothing(talk: Conversation) -> None:
    a, b = group(talk)
    share_out(talk, [a, b], {a: parts(2**31 - 1), b: parts(-5)})
    assert talk.settled_rules() == []


def test_very_many_topics_are_not_kept_for_comparison(talk: Conversation) -> None:
    a, b = (talk.client(name) for name in "ab")
    many = subscription(*(f"topic-{number}" for number in range(10_001)))
    join(talk, [a, b], 3, offers={a: many, b: many})
    share_out(talk, [a, b], {a: parts(0), b: parts(1), "nobody": parts(2)})
    assert talk.settled_rules() == []


def test_what_is_kept_of_topics_ids_and_suspects_is_bounded(talk: Conversation) -> None:
    clients = group(talk, [f"c{number}" for number in range(20)])
    given = {
        client: assignment(**{f"t{number}": (0,) for number in range(3 * index, 3 * index + 3)})
        for index, client in enumerate(clients)
    }
    waiting = [submit(talk, clients[0], given), *(fetch(talk, client) for client in clients[1:])]
    for asked in waiting:
        deliver(talk, asked, parts(99))
    for number in range(100):
        client = talk.client(f"n{number}")
        talk.hand_out_id(client)
        offer(talk, client)
    watch = talk.model.groups.opened(("c1", "g"))[0].assignments
    assert len(watch.topics) == 32
    assert len(watch.suspects) == 16
    assert len(watch.newcomers) == 64
