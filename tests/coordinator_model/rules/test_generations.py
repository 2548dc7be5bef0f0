"""Family G; each rule: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model.classic import ask_heartbeat, beat, complete, left_behind, live, settled, static_group
from tests.coordinator_model.conversation import SUBSCRIBED, Asked, Client, Conversation
from tests.coordinator_model.rules.coordinators import fail_over


def reply(asked: Asked, **fields: Any) -> None:
    """Any JoinGroup answer at all."""
    values: dict[str, Any] = {"generation_id": -1, "leader": "", "member_id": ""}
    asked.client.talk.answer(asked, wire.JoinGroupResponse(**{**values, **fields}))


def leader_answer(asked: Asked, generation: int, roster: list[Client], **fields: Any) -> None:
    client = asked.client
    client.generation = generation
    values: dict[str, Any] = {
        "generation_id": generation,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "leader": client.member_id,
        "member_id": client.member_id,
        "members": tuple(
            wire.JoinGroupResponseMember(member_id=one.member_id, group_instance_id=one.instance_id, metadata=SUBSCRIBED)
            for one in roster
        ),
    }
    reply(asked, **{**values, **fields})


# ---------------------------------------------------------------------------------------------------- G-01


# ---------------------------------------------------------------------------------------------------- G-02


def test_G_02_fires_when_a_stale_heartbeat_succeeds(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.heartbeat(old)
    talk.settle()
    finding = talk.the("G-02")
    assert finding.severity is Severity.CRITICAL
    assert finding.blame is Blame.BROKER
    assert finding.member_id == old.member_id
    assert finding.client_id == "b"
    assert "generation 4" in finding.summary


def test_G_02_fires_on_a_stale_commit_and_on_a_stale_sync(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.commit(old)
    assert talk.settled_rules() == ["G-02", "O-02"]
    other = Conversation()
    old = left_behind(other)
    other.call(old, other.sync_request(old, []), other.synced())
    other.settle()
    assert other.rules() == ["G-02"]


@pytest.mark.usefixtures("before_2_3")
def test_G_02_counts_a_heartbeat_told_to_rejoin_from_brokers_that_validate_first(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.heartbeat(old, 27, version=2)
    assert talk.settled_rules() == []
    talk.heartbeat(old, 27, version=3)
    assert talk.settled_rules() == ["G-02"]


def test_G_02_counts_an_old_clients_heartbeat_where_other_answers_show_that_the_broker_is_newer(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.heartbeat(old, 27, version=2)
    assert talk.settled_rules() == ["G-02"]


def test_G_02_does_not_take_another_broker_for_one_of_the_coordinators_release(talk: Conversation) -> None:
    old = left_behind(talk).reconnected("2")
    talk.heartbeat(old, 27, version=2)
    assert talk.settled_rules() == []


def test_G_02_allows_a_request_that_was_under_way_when_the_round_completed(talk: Conversation) -> None:
    a, b = settled(talk)
    pending = ask_heartbeat(talk, b)
    other = b.reconnected()
    asked = [talk.ask_join(a), talk.ask_join(other)]
    complete(talk, asked, 4, a, [a, b])
    talk.answer(pending, wire.HeartbeatResponse(error_code=0))
    assert talk.settled_rules() == []


def test_G_02_takes_a_request_queued_behind_a_parked_one_as_asked_when_that_was_answered(talk: Conversation) -> None:
    a, b = settled(talk)
    parked = [talk.ask_join(a), talk.ask_join(b)]
    queued = ask_heartbeat(talk, b)
    complete(talk, parked, 4, a, [a, b])
    talk.answer(queued, wire.HeartbeatResponse(error_code=22))
    assert talk.settled_rules() == []


def test_G_02_ignores_heartbeats_while_the_broker_says_it_loads(talk: Conversation) -> None:
    old = left_behind(talk)
    a = talk.client("x")
    talk.refuse_join(talk.ask_join(a), 14)
    talk.heartbeat(old)
    assert talk.settled_rules() == []


def test_G_02_does_not_compare_across_a_failover(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.heartbeat(old, 16)
    moved = old.reconnected(broker="2")
    talk.heartbeat(moved)
    assert talk.settled_rules() == []


def test_G_02_ignores_a_commit_whose_partitions_never_reached_the_coordinator(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.commit(old, 3)
    assert talk.settled_rules() == ["O-09"]


def test_G_02_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.heartbeat(old)
    talk.wait(90_000)
    assert talk.the("G-02").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- G-04, G-05


def test_G_04_fires_when_the_generation_falls_under_a_living_member(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.round([a, b], 3)
    talk.settle()
    finding = talk.the("G-04")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert "from generation 5 to 3" in finding.summary
    assert "it needs the group's generation (J22, J25, J27): generation 5 was handed out 3 ms before" in finding.observed


def test_G_04_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.round([a, b], 3)
    live(talk, [a, b], 50)
    assert talk.the("G-04").status is Status.OPEN
    live(talk, [a, b], 15)
    assert talk.the("G-04").status is Status.RESOLVED


def test_G_04_allows_an_answer_that_was_captured_late(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    late = talk.ask_join(b)
    again = b.reconnected()
    asked = [talk.ask_join(a), talk.ask_join(again)]
    complete(talk, asked, 7, a, [a, b])
    talk.joined(late, generation=6, leader=a, roster=[a, b])
    assert talk.settled_rules() == []


def test_G_04_allows_a_failover_to_reissue(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    a, b = fail_over(talk, [a, b])
    talk.round([a, b], 5)
    talk.round([a, b], 4)  # and only within the new incarnation is this a fall
    assert talk.settled_rules() == ["G-04"]


def test_G_05_documents_a_reset_after_deletion(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.leave(a)
    talk.leave(b)
    talk.delete()
    talk.round([talk.client("c")], 1)
    assert talk.settled_rules() == ["G-05"]
    assert "deleted" in talk.the("G-05").summary


def test_G_05_documents_a_reset_of_a_group_that_may_have_expired_empty(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.leave(a)
    talk.leave(b)
    talk.wait(700_000)
    talk.round([talk.client("c")], 1)
    assert talk.settled_rules() == ["G-05"]
    assert talk.the("G-05").severity is Severity.INFO


def test_G_05_does_not_excuse_a_deletion_before_the_later_generation(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.leave(a)
    talk.leave(b)
    talk.delete()
    talk.wait(1_000)
    a, b = settled(talk, generation=7)
    talk.round([a, b], 6)
    assert "G-04" in talk.settled_rules()
    assert talk.rules() == ["G-04"]


def test_G_05_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.leave(a)
    talk.leave(b)
    talk.wait(700_000)
    talk.round([talk.client("c")], 1)
    talk.settle()
    assert talk.the("G-05").status is Status.OPEN
    talk.wait(61_000)
    assert talk.the("G-05").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- G-01, G-02, G-04: their guards


def test_G_02_allows_a_coordinator_to_restart_unseen_before_the_generation_was_written(talk: Conversation) -> None:
    a, b = settled(talk)
    c = b.reconnected()
    talk.join_all([a, b], 4)
    talk.close(a)
    talk.close(b)
    talk.heartbeat(c, generation=3)  # as of the log, generation 3 lives
    assert talk.settled_rules() == []


def test_G_02_does_not_allow_it_while_a_connection_lasts(talk: Conversation) -> None:
    a, b = settled(talk)
    c = b.reconnected()
    talk.join_all([a, b], 4)
    talk.heartbeat(c, generation=3)
    assert "G-02" in talk.settled_rules()


def test_G_02_takes_a_request_behind_unseen_ones_as_asked_when_it_was_captured(talk: Conversation) -> None:
    a, b = settled(talk)
    other = b.reconnected()
    other.outstanding = 1  # something of another group
    pending = talk.ask(other, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=b.member_id))
    talk.round([a, b], 4)
    talk.answer(pending, wire.HeartbeatResponse(error_code=0))
    assert talk.settled_rules() == []


def test_G_05_documents_a_restart_before_the_later_generation_was_written(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.join_all([a, b], 7)
    talk.close(a)
    talk.close(b)
    a, b = a.reconnected(), b.reconnected()
    talk.round([a, b], 6)
    assert talk.settled_rules() == ["G-05"]
    assert "restarted" in talk.the("G-05").summary


# ---------------------------------------------------------------------------------------------------- G-03


def test_G_03_fires_on_a_refusal_between_two_successes_at_that_generation(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.wait(1_000)
    talk.heartbeat(b, 22)
    talk.wait(1)
    talk.heartbeat(a)
    talk.settle()
    finding = talk.the("G-03")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert finding.member_id == b.member_id
    assert finding.generation == 3


@pytest.mark.usefixtures("before_2_3")
def test_G_03_takes_a_heartbeat_told_to_rejoin_as_proof_from_brokers_that_validate_first(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(b, 22)
    talk.wait(1)
    talk.heartbeat(a, 27, version=2)
    assert talk.settled_rules() == []
    talk.heartbeat(a, 27, version=3)
    assert "G-03" in talk.settled_rules()


def test_G_03_takes_an_old_clients_heartbeat_as_proof_where_other_answers_show_that_the_broker_is_newer(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(b, 22)
    talk.wait(1)
    talk.heartbeat(a, 27, version=2)
    assert talk.settled_rules() == ["G-03"]


def test_G_03_takes_an_accepted_commit_as_proof(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(b, 22)
    talk.wait(1)
    talk.commit(a, 12)
    assert talk.settled_rules() == ["O-09"]
    talk.commit(a)
    assert "G-03" in talk.settled_rules()


def test_G_03_allows_a_refusal_that_nothing_contradicts(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(b, 22)
    talk.wait(1)
    talk.round([a, b], 4)
    assert talk.settled_rules() == []


def test_G_03_allows_a_success_that_was_under_way_when_it_was_refused(talk: Conversation) -> None:
    a, b = settled(talk)
    pending = talk.ask(a, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=a.member_id))
    talk.heartbeat(b, 22)
    talk.answer(pending, wire.HeartbeatResponse(error_code=0))
    assert talk.settled_rules() == []


def test_G_03_allows_a_refusal_that_was_asked_before_the_generation_was_proven(talk: Conversation) -> None:
    a, b = settled(talk)
    other = b.reconnected()
    pending = talk.ask(other, wire.HeartbeatRequest(group_id="g", generation_id=4, member_id=b.member_id))
    talk.round([a, b], 4)
    talk.answer(pending, wire.HeartbeatResponse(error_code=22))
    talk.heartbeat(a)
    assert talk.settled_rules() == []


def test_G_03_allows_a_coordinator_to_load_the_group_in_between(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(b, 22)
    talk.wait(1)
    talk.heartbeat(a, 16)
    talk.heartbeat(a)
    assert talk.settled_rules() == []


def test_G_03_allows_a_heartbeats_success_while_the_broker_says_it_loads(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(b, 22)
    talk.wait(1)
    talk.model._loading["c1", "1"] = talk.now_us
    talk.heartbeat(a)
    assert talk.settled_rules() == []


def test_G_03_allows_a_restart_when_nobody_was_connected(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(b, 22)
    talk.close(a)
    talk.close(b)
    talk.wait(1)
    talk.heartbeat(a.reconnected())
    assert talk.settled_rules() == []


def test_G_03_forgets_a_refusal_after_a_minute(talk: Conversation) -> None:
    a, b = settled(talk)
    other = a.reconnected()
    pending = talk.ask(other, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=a.member_id))
    talk.heartbeat(b, 22)
    for _ in range(70):
        talk.commit(a, 7)
        talk.wait(1_000)
    talk.answer(pending, wire.HeartbeatResponse(error_code=0))
    talk.heartbeat(a)
    assert talk.settled_rules() == ["T-04", "C-01"]


def test_G_03_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(b, 22)
    live(talk, [a, b], 70)
    assert talk.the("G-03").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- G-06


def test_G_06_fires_on_two_leaders_with_different_members(talk: Conversation) -> None:
    a, b = settled(talk)
    first, second = talk.ask_join(a), talk.ask_join(b)
    leader_answer(first, 4, [a, b])
    leader_answer(second, 4, [b])
    talk.settle()
    finding = talk.the("G-06")
    assert finding.severity is Severity.CRITICAL
    assert finding.blame is Blame.BROKER
    assert a.member_id in finding.summary
    talk.wait(70_000)
    assert talk.the("G-06").status is Status.RESOLVED


@pytest.mark.parametrize("fields", [{"protocol_name": "roundrobin"}, {}])
def test_G_06_compares_leader_and_protocol_too(talk: Conversation, fields: dict[str, Any]) -> None:
    a, b = settled(talk)
    first, second = talk.ask_join(a), talk.ask_join(b)
    leader_answer(first, 4, [a, b])
    leader_answer(second, 4, [a, b], **fields)
    assert "G-06" in talk.settled_rules()


def test_G_06_allows_the_answer_to_a_repeated_join(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.join_all([a, b], 4)
    leader_answer(talk.ask_join(a.reconnected()), 4, [b, a])
    assert talk.settled_rules() == []


def test_G_06_allows_a_static_leader_to_be_replaced(talk: Conversation) -> None:
    a, b = talk.client("a", instance_id="i"), talk.client("b")
    talk.round([a, b], 3)
    talk.close(a)
    new = talk.client("a", instance_id="i")
    asked = talk.ask_join(new)
    new.member_id = "i-new"
    leader_answer(asked, 3, [new, b], skip_assignment=True)
    assert talk.settled_rules() == []


@pytest.mark.parametrize(("instance_id", "found"), [("i", []), (None, ["G-06"])])
def test_G_06_allows_a_static_leader_to_be_replaced_that_only_a_follower_named(
    talk: Conversation, instance_id: str | None, found: list[str]
) -> None:
    """A capture that begins with a running group: a follower comes back first, and its answer names the leader of before."""
    before, b, new = talk.client("a", member_id="i-old"), talk.client("b", instance_id="j"), talk.client("a")
    follower = talk.ask_join(b)
    b.member_id = "j-new"
    talk.joined(follower, generation=3, leader=before, roster=[])
    talk.wait(300)
    new.instance_id = instance_id
    new.member_id = "i-new" if instance_id is None else ""
    asked = talk.ask_join(new)
    new.member_id = "i-new"
    leader_answer(asked, 3, [new, b], skip_assignment=instance_id is not None)
    assert talk.settled_rules() == found


def test_G_06_does_not_compare_a_list_without_instance_ids_where_members_are_static(talk: Conversation) -> None:
    """JoinGroup responses name them since v5; the leader's was captured after the replacement."""
    a, b = talk.client("a"), talk.client("b", instance_id="i")
    talk.hand_out_id(a)
    first, second = talk.ask(a, talk.join_request(a), version=2), talk.ask_join(b)
    answered_us = talk.now_us
    b.member_id = "i-old"
    talk.joined(second, generation=1, leader=a, roster=[a, b])
    again = talk.client("b", instance_id="i")
    asked = talk.ask_join(again)
    again.member_id = "i-new"
    talk.joined(asked, generation=1, leader=a, roster=[a, again])
    talk.now_us = answered_us
    talk.joined(first, generation=1, leader=a, roster=[a, b])
    assert talk.settled_rules() == []


@pytest.mark.parametrize("found", [15, 0])
def test_a_generation_that_was_not_written_may_be_issued_again_after_there_was_no_coordinator(
    talk: Conversation, found: int
) -> None:
    """One broker whose leadership of the group's partition lapsed: connections stand, and only FindCoordinator was answered meanwhile."""
    a, b = settled(talk)
    talk.join_all([a, b], 4)
    talk.wait(1_000)
    talk.find_coordinator(a, error=found)
    talk.wait(1_000)
    talk.call(b, talk.sync_request(b, []), talk.synced(22))
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced(25))
    a.member_id = ""
    talk.hand_out_id(a, "a-again")
    leader_answer(talk.ask_join(a), 4, [a, b])
    assert bool({"G-03", "G-06", "M-03"} & set(talk.settled_rules())) is (found == 0)


def test_G_06_allows_a_failover_to_issue_the_generation_anew(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.join_all([a, b], 4)
    a, b = a.reconnected("2"), b.reconnected("2")
    leader_answer(talk.ask_join(b), 4, [b])
    assert talk.settled_rules() == []


def test_G_06_allows_a_coordinator_to_restart_unseen_before_the_generation_was_written(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.join_all([a, b], 4)
    talk.close(a)
    talk.close(b)
    leader_answer(talk.ask_join(b.reconnected()), 4, [b])
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- G-07


def test_G_07_fires_on_a_generation_that_nobody_was_handed(talk: Conversation) -> None:
    _, b = settled(talk, generation=1)
    talk.heartbeat(b, 22, generation=9)
    talk.wait(1_500)
    finding = talk.the("G-07")
    assert finding.severity is Severity.ERROR
    assert finding.certainty is Certainty.CERTAIN
    assert finding.blame is Blame.CLIENT
    assert finding.member_id == b.member_id
    assert "the highest was 1" in finding.summary


def test_G_07_only_warns_about_a_group_that_was_not_seen_from_birth(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.heartbeat(b, 22, generation=9)
    talk.heartbeat(b, 22, generation=9)
    talk.wait(1_500)
    finding = talk.the("G-07")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.HEURISTIC


def test_G_07_waits_for_a_late_frame_that_explains_it(talk: Conversation) -> None:
    a, b = settled(talk, generation=1)
    other = b.reconnected()
    asked = [talk.ask_join(a), talk.ask_join(b)]
    talk.heartbeat(other, 22, generation=2)  # its answer was captured before the join's
    complete(talk, asked, 2, a, [a, b])
    talk.sync_all([a, b])
    talk.wait(2_000)
    assert talk.rules() == []


def test_G_07_is_no_matter_of_strangers(talk: Conversation) -> None:
    settled(talk, generation=1)
    stranger = talk.client("s", member_id="of-an-earlier-life")
    talk.heartbeat(stranger, 25, generation=57)
    talk.wait(1_500)
    assert talk.rules() == []


def test_G_07_knows_generations_of_the_incarnation_before(talk: Conversation) -> None:
    """Generation 2 was issued, and lost with the coordinator before anybody synced it."""
    a, b = settled(talk, generation=1)
    talk.join_all([a, b], 2)
    a, b = fail_over(talk, [a, b])
    talk.round([a, b], 1)
    talk.heartbeat(b, 22, generation=2)
    live(talk, [a, b], 2)
    assert talk.rules() == []


def test_G_07_resolves_when_the_member_joins(talk: Conversation) -> None:
    a, b = settled(talk, generation=1)
    talk.heartbeat(b, 22, generation=9)
    talk.wait(1_500)
    talk.round([a, b], 2)
    talk.wait(1_000)
    assert talk.the("G-07").status is Status.RESOLVED


def test_G_07_is_over_when_the_group_has_gone_on_for_a_minute(talk: Conversation) -> None:
    a, b = settled(talk, generation=1)
    talk.heartbeat(b, 22, generation=9)
    live(talk, [a], 65)
    talk.round([a], 2)
    talk.wait(1_000)
    assert talk.the("G-07").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- G-08


def test_G_08_tells_of_a_step_that_nobody_saw(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a, b], 6)
    talk.wait(1_000)
    finding = talk.the("G-08")
    assert finding.severity is Severity.INFO
    assert finding.blame is Blame.CAPTURE
    assert "from generation 3 to 6" in finding.summary
    talk.round([a, b], 7)
    talk.wait(1_000)
    assert talk.the("G-08").status is Status.RESOLVED


def test_G_08_waits_for_a_late_answer(talk: Conversation) -> None:
    a, b = settled(talk)
    late = talk.ask_join(b)
    again = b.reconnected()
    asked = [talk.ask_join(a), talk.ask_join(again)]
    complete(talk, asked, 5, a, [a, b])
    talk.joined(late, generation=4, leader=a, roster=[a, b])
    assert talk.settled_rules() == []


def test_G_08_sees_that_somebody_else_stayed(talk: Conversation) -> None:
    a, b = settled(talk)
    c = talk.client("c")
    talk.hand_out_id(c)
    asked = [talk.ask_join(c), talk.ask_join(a), talk.ask_join(b)]
    talk.joined(asked[0], generation=5, leader=a, roster=[])
    talk.settle()
    talk.wait(1_000)
    assert "G-08" in talk.rules()


def test_G_08_sees_that_somebody_was_dropped_just_now(talk: Conversation) -> None:
    settled(talk)
    c = talk.client("c")
    talk.round([c], 5)
    talk.settle()
    talk.wait(1_000)
    assert "G-08" in talk.rules()


def test_G_08_allows_a_passage_through_empty(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.leave(a)
    talk.close(b)
    talk.wait(11_000)
    c = talk.client("c")
    talk.round([c], 5)
    assert talk.settled_rules() == ["T-09"]


def test_G_08_allows_that_all_sessions_may_have_run_out(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.close(a)
    talk.close(b)
    talk.wait(11_000)  # past the session timeout, within the slack
    c = talk.client("c")
    talk.round([c], 5)
    talk.settle()
    talk.wait(1_000)
    assert talk.rules() == ["C-14"]


def test_G_08_needs_the_roster_of_the_generation_before(talk: Conversation) -> None:
    a = talk.client("a", member_id="m-a")
    b = talk.client("b", member_id="m-b")
    talk.joined(talk.ask_join(b), generation=3, leader=a, roster=[])
    talk.joined(talk.ask_join(b), generation=6, leader=a, roster=[])
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- G-09


@pytest.mark.parametrize(
    "fields",
    [
        {"error_code": 0, "generation_id": -1, "leader": "x", "member_id": "m"},
        {"error_code": 0, "generation_id": 0, "leader": "x", "member_id": "m"},
        {"error_code": 0, "generation_id": 4, "leader": "x", "member_id": ""},
        {"error_code": 25, "generation_id": 4},
        {"error_code": 25, "generation_id": 0},
    ],
)
def test_G_09_fires_on_an_answer_that_contradicts_itself(talk: Conversation, fields: dict[str, Any]) -> None:
    a, _ = settled(talk)
    reply(talk.ask_join(a), **fields)
    finding = talk.the("G-09")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert finding.certainty is Certainty.CERTAIN
    assert talk.group_json()["generation"] == 3
    talk.wait(70_000)
    assert talk.the("G-09").status is Status.RESOLVED


def test_G_09_fires_on_a_success_with_members_and_neither_member_id_nor_leader_and_nothing_follows_from_it(
    talk: Conversation,
) -> None:
    """The model raised an assertion: the empty member id is the empty leader."""
    talk.round([talk.client("a")], 3)
    members = (wire.JoinGroupResponseMember(member_id="", metadata=SUBSCRIBED),)
    reply(talk.ask_join(talk.client("b")), generation_id=3, protocol_type="consumer", protocol_name="range", members=members)
    assert talk.settled_rules() == ["G-09"]
    assert talk.model.groups.opened(("c1", "g"))[0].assignments.mixed_since_us == 0


def test_G_09_allows_generation_0_in_a_refusal_of_brokers_up_to_2_1(talk: Conversation) -> None:
    client = talk.client("old", member_id="m")
    asked = talk.ask(client, talk.join_request(client), version=3)
    reply(asked, error_code=25, generation_id=0, member_id="m")
    assert talk.rules() == []


def test_G_09_allows_the_answer_to_a_replacement_that_could_not_be_written(talk: Conversation) -> None:
    a, _ = static_group(talk, ("a", "b"))
    new = talk.client("b", instance_id="i")
    reply(talk.ask_join(new), error_code=-1, generation_id=3, leader=a.member_id, protocol_name="range")
    assert talk.settled_rules() == ["C-08"]


def test_G_09_allows_the_answer_of_a_group_of_the_new_type(talk: Conversation) -> None:
    a = talk.client("a", member_id="m")
    reply(talk.ask_join(a), error_code=0, generation_id=7, member_id="m", protocol_type="consumer", protocol_name="range")
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- G-10


def thrice(talk: Conversation) -> tuple[Client, Client]:
    a, b = settled(talk)
    talk.round([a, b], 4)
    talk.round([a, b], 5)
    return a, b


def test_G_10_fires_on_a_generation_older_than_the_last_two(talk: Conversation) -> None:
    _, b = thrice(talk)
    talk.heartbeat(b, 22, generation=3)
    finding = talk.the("G-10")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.CERTAIN
    assert finding.blame is Blame.CLIENT
    assert finding.member_id == b.member_id
    assert "received 5 last" in finding.summary
    talk.wait(70_000)
    assert talk.the("G-10").status is Status.RESOLVED


def test_G_10_allows_the_generation_before(talk: Conversation) -> None:
    _, b = thrice(talk)
    talk.heartbeat(b, 22, generation=4)
    assert talk.settled_rules() == []


def test_G_10_does_not_judge_another_connection(talk: Conversation) -> None:
    _, b = thrice(talk)
    talk.heartbeat(b.reconnected(), 22, generation=3)
    assert talk.settled_rules() == []


def test_G_10_allows_commits_without_a_generation(talk: Conversation) -> None:
    _, b = thrice(talk)
    talk.commit(b, generation_id_or_member_epoch=-1)
    assert talk.settled_rules() == []


def test_G_10_takes_a_generation_for_received_whose_answer_was_captured_after_the_next_one(talk: Conversation) -> None:
    """The capture had a hole before the answer: it comes when another member has gone on."""
    a, b = thrice(talk)
    late = talk.ask_join(b)
    talk.joined(talk.ask_join(a), generation=6, leader=a, roster=[a, b])
    talk.joined(talk.ask_join(a), generation=7, leader=a, roster=[a])
    talk.joined(late, generation=6, leader=a, roster=[])
    talk.call(b, talk.sync_request(b, []), talk.synced(22))
    assert "G-10" not in talk.settled_rules()


def test_G_10_needs_to_know_the_generation_before(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.heartbeat(b, 22, generation=1)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- G-11


def collided(talk: Conversation, *, written: bool) -> tuple[Client, Client]:
    """A static member received generation 4; the coordinator moves, and issues 4 anew without it."""
    a, b = static_group(talk, ("a", "b"))
    talk.join_all([a, b], 4)
    if written:
        talk.sync_all([a, b])
    a, b = fail_over(talk, [a, b])
    talk.joined(talk.ask_join(a), generation=4, leader=a, roster=[a, b])
    talk.sync_all([a])
    return a, b


def test_G_11_fires_on_a_member_of_the_lost_generation_that_is_accepted_at_its_number(talk: Conversation) -> None:
    _, b = collided(talk, written=False)
    talk.heartbeat(b)
    talk.settle()
    finding = talk.the("G-11")
    assert finding.severity is Severity.WARNING
    assert finding.member_id == b.member_id
    assert finding.instance_id == "i"
    talk.wait(70_000)
    assert talk.the("G-11").status is Status.RESOLVED


def test_G_11_allows_a_generation_that_was_written(talk: Conversation) -> None:
    _, b = collided(talk, written=True)
    talk.heartbeat(b)
    assert talk.settled_rules() == []


def test_G_11_allows_a_member_that_rejoined(talk: Conversation) -> None:
    a, b = collided(talk, written=False)
    talk.joined(talk.ask_join(b), generation=4, leader=a, roster=[])
    talk.heartbeat(b)
    assert talk.settled_rules() == []


def test_G_11_forgets_the_lost_generation_when_the_next_is_handed_out(talk: Conversation) -> None:
    a, b = collided(talk, written=False)
    talk.joined(talk.ask_join(a), generation=5, leader=a, roster=[a, b])
    talk.sync_all([a])
    talk.heartbeat(b, 22)
    assert talk.settled_rules() == []
    assert not talk.model.groups.opened(("c1", "g"))[0].member_identity.alert


# ---------------------------------------------------------------------------------------------------- G-12


def waiting_for(talk: Conversation, peers: int = 2, *, told: bool = True) -> tuple[Client, list[Asked]]:
    """A member, and peers that were told to rejoin and wait for it in a join phase."""
    clients = settled(talk, ("a", *(f"peer-{number}" for number in range(peers))))
    waiting = []
    for peer in clients[1:]:
        if told:
            talk.heartbeat(peer, 27)
        waiting.append(talk.ask_join(peer))
    return clients[0], waiting


def test_G_12_fires_when_a_member_is_not_told_of_the_join_phase_that_its_peers_wait_in(talk: Conversation) -> None:
    """R-01 blamed the client that did not rejoin; the broker had swallowed its REBALANCE_IN_PROGRESS."""
    member, waiting = waiting_for(talk)
    beat(talk, [member], 15)
    assert talk.rules() == ["G-12"]
    finding = talk.the("G-12")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.ERROR, Certainty.CONFIRMED, Blame.BROKER)
    assert finding.member_id == member.member_id
    assert "The coordinator 1 accepted a Heartbeat of" in finding.summary
    assert "2 members were told to rejoin" in finding.summary
    assert "a group in phase K (H13): 2 members were told to rejoin and have waited in the join phase" in finding.observed
    assert "a group in phase S (H14)" in finding.observed
    frames = [frame.frame for frame in finding.evidence]
    assert sum("JoinGroup" in frame for frame in frames) >= 2
    assert "Heartbeat v4 answer: success" in frames[-1]
    talk.joined(waiting[0], generation=4, leader=waiting[0].client, roster=[one.client for one in waiting])
    talk.joined(waiting[1], generation=4, leader=waiting[0].client, roster=[])
    talk.settle()
    assert talk.the("G-12").status is Status.RESOLVED


def test_G_12_fires_when_an_assignment_is_answered_while_the_others_wait_in_the_next_join_phase(talk: Conversation) -> None:
    member, _ = waiting_for(talk)
    talk.wait(3_000)
    talk.call(member, talk.sync_request(member, []), talk.synced())
    talk.settle()
    assert "accepted a SyncGroup of" in talk.the("G-12").summary


def test_G_12_is_over_once_the_member_is_told(talk: Conversation) -> None:
    member, _ = waiting_for(talk)
    beat(talk, [member], 3)
    talk.heartbeat(member, 27)
    talk.settle()
    assert talk.the("G-12").status is Status.RESOLVED


@pytest.mark.parametrize(("peers", "told"), [(1, True), (2, False)])
def test_G_12_needs_two_that_were_told_and_wait(talk: Conversation, peers: int, *, told: bool) -> None:
    member, _ = waiting_for(talk, peers, told=told)
    beat(talk, [member], 5)
    assert talk.rules() == []


def test_G_12_allows_an_answer_under_way_when_the_phase_began(talk: Conversation) -> None:
    member, _ = waiting_for(talk)
    talk.wait(300)
    talk.heartbeat(member)
    talk.heartbeat(member, 27)
    assert talk.settled_rules() == []


def test_G_12_allows_the_success_of_a_coordinator_that_loads_the_group(talk: Conversation) -> None:
    member, waiting = waiting_for(talk)
    for asked in waiting:
        talk.close(asked.client)
    beat(talk, [member], 5)
    assert talk.rules() == []


def test_G_12_waits_for_late_frames_of_a_coordinator_that_loads_though_the_phase_is_over(talk: Conversation) -> None:
    """It was told at once, as over, when those who waited were refused, before their next frames could explain it."""
    member, waiting = waiting_for(talk)
    talk.wait(3_000)
    talk.heartbeat(member)
    talk.now_us -= 150_000
    for asked in waiting:
        talk.refuse_join(asked, 16)
    talk.tick()
    talk.refuse_join(talk.ask_join(waiting[0].client), 14)
    talk.settle()
    assert [finding for finding in talk.findings if finding.rule == "G-12"] == []


def test_G_12_does_not_look_across_a_gap(talk: Conversation) -> None:
    member, _ = waiting_for(talk)
    talk.gap()
    beat(talk, [member], 5)
    assert talk.rules() == ["V-04"]
