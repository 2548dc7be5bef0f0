"""Family T: sessions and time. Each rule: what fires it, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.rules.base import work_of
from coordinator_model.wording import clock
from tests.coordinator_model.classic import (
    ask_heartbeat,
    beat,
    complete,
    completing_rebalance,
    live,
    pauses,
    settled,
    silence,
    static_group,
    told_to_rejoin,
)
from tests.coordinator_model.conversation import VERSIONS, Client, Conversation, subscription
from tests.coordinator_model.rules.loops import ghost
from tests.coordinator_model.rules.offsets import give

# ---------------------------------------------------------------------------------------------------- T-04


def test_T_04_fires_when_a_member_falls_silent(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a], 14)
    finding = talk.the("T-04")
    assert finding.severity is Severity.INFO
    assert finding.client_id == "b"
    assert b.member_id in finding.summary


def test_T_04_fires_although_the_others_complete_a_round_before_it_is_certain(talk: Conversation) -> None:
    """Seen in the demo: the coordinator evicts at the session timeout, and the others rejoin within the slack."""
    a, b = settled(talk)
    live(talk, [a], 11)
    talk.heartbeat(a, 27)
    talk.round([a], 4)
    live(talk, [a], 4)
    events = [finding.status for finding in talk.findings if finding.rule == "T-04"]
    assert events == [Status.RESOLVED], "over in the moment in which it is certain: one line"
    assert talk.the("T-04").member_id == b.member_id


def test_T_04_is_quiet_about_a_dropped_member_that_is_told_so(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a], 4)
    talk.heartbeat(b, 25)
    b.member_id = ""
    talk.round([a, b], 5)
    live(talk, [a, b], 30)
    assert talk.rules() == []


def test_T_04_fires_on_a_member_that_stayed_after_its_leave_was_refused(talk: Conversation) -> None:
    """Its LeaveGroup found no coordinator, and no silence of it was ever told again."""
    a, b = settled(talk)
    talk.call(b.reconnected("2"), talk.leave_request(b), wire.LeaveGroupResponse(error_code=16))
    live(talk, [a, b], 5)
    live(talk, [a], 16)
    assert talk.rules() == ["T-04"]


def test_T_04_fires_on_a_member_that_was_served_after_its_leave(talk: Conversation) -> None:
    """The answer to its LeaveGroup was never captured: the coordinator had not got it."""
    a, b = settled(talk)
    other = b.reconnected()
    talk.ask(other, talk.leave_request(b))
    talk.close(other)
    live(talk, [a, b], 5)
    live(talk, [a], 16)
    assert talk.rules() == ["T-04"]


@pytest.mark.parametrize(("served_s", "said"), [(2, []), (4, ["T-04"])])
def test_T_04_takes_a_member_for_served_after_its_leave_beyond_the_clocks_difference(served_s: int, said: list[str]) -> None:
    talk = Conversation(clock_skew_ms=2_000)
    a, b = settled(talk)
    other = b.reconnected()
    talk.ask(other, talk.leave_request(b))
    talk.close(other)
    live(talk, [a, b], served_s)
    live(talk, [a], 20)
    assert talk.rules() == said


def test_T_04_allows_a_leave_that_is_refused_since_the_member_is_unknown(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 2)
    talk.leave(b, 25)
    live(talk, [a], 20)
    assert talk.rules() == ["M-10"]


@pytest.mark.parametrize("reconnects", [False, True])
def test_T_04_leaves_a_static_member_alone_that_asks_to_come_back_as_no_answer_came(
    talk: Conversation, *, reconnects: bool
) -> None:
    """Seen on 4.1.2: its coordinator answered nothing for 9 s, and librdkafka gave its member id up after a session."""
    leader, first = static_group(talk)
    live(talk, [leader, first], 2)
    ask_heartbeat(talk, first)
    live(talk, [leader], 9)
    first.member_id = ""
    if reconnects:
        talk.close(first)
        first = talk.client("one", instance_id="i")
    talk.ask_join(first)
    live(talk, [leader], 6)
    assert talk.rules() == []


def test_T_04_leaves_a_static_member_alone_whose_join_went_with_its_connection_and_may_have_replaced_it(talk: Conversation) -> None:
    """Seen on 4.3.1: its coordinator stood still; librdkafka joined, lost the connection, joined again, and was fenced by its first join."""
    leader, first = static_group(talk)
    live(talk, [leader, first], 2)
    ask_heartbeat(talk, first)
    live(talk, [leader], 5)
    first.member_id = ""
    talk.ask_join(first)
    talk.close(first)
    again = talk.client("one", instance_id="i")
    talk.refuse_join(talk.ask_join(again), 82)
    live(talk, [leader], 9)
    assert talk.rules() == []


def test_T_04_and_T_09_leave_a_client_alone_that_gave_its_id_up_as_no_answer_came_and_hung_up(talk: Conversation) -> None:
    """Seen on 4.4.0: its coordinator stood still; librdkafka joined under no id, and lost the connection to that, too."""
    a, b = settled(talk)
    live(talk, [a, b], 2)
    ask_heartbeat(talk, b)
    live(talk, [a], 6)
    b.member_id = ""
    talk.ask_join(b)
    talk.wait(1_000)
    talk.close(b)
    live(talk, [a], 9)
    assert talk.rules() == []


def test_T_04_allows_a_leave(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.leave(b)
    talk.round([a], 4)
    live(talk, [a], 30)
    assert talk.rules() == []


def test_T_04_allows_a_leave_that_was_granted_before_the_leader_was_told_the_roster(talk: Conversation) -> None:
    """kafka-python's close() does not wait for the JoinGroup under way; the coordinator took the leave up after the generation was complete."""
    a, b = settled(talk)
    leader, follower = talk.ask_join(a), talk.ask_join(b)
    leave = talk.ask(b, talk.leave_request(b))
    talk.joined(follower, generation=4, leader=a, roster=[])
    talk.ask(b, talk.sync_request(b, []))
    talk.answer(leave, talk.left(b))
    talk.joined(leader, generation=4, leader=a, roster=[a, b])
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced(error=27))
    talk.close(b)
    talk.round([a], 5)
    live(talk, [a], 60)
    assert talk.rules() == []


def test_T_04_does_not_run_while_a_join_is_parked(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(b)
    live(talk, [a], 11)
    assert talk.rules() == []


def test_T_04_resolves_when_the_group_goes_on_without_it(talk: Conversation) -> None:
    a, _ = settled(talk)
    live(talk, [a], 14)
    talk.round([a], 4)
    talk.wait(1_000)
    assert talk.the("T-04").status is Status.RESOLVED


def test_T_04_resolves_when_the_member_speaks_again(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a], 14)
    talk.heartbeat(b)
    talk.wait(1_000)
    assert talk.the("T-04").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- T-01


def test_T_01_warns_of_a_member_that_was_nearly_evicted_three_times(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    pauses(talk, [a], b, 8_000, 3)
    finding = talk.the("T-01")
    assert finding.severity is Severity.WARNING
    assert finding.member_id == b.member_id
    assert "for 9.0 s, 9.0 s, 9.0 s, 3 times within 15 minutes; at 10.0 s, its session timeout, the coordinator" in finding.summary


@pytest.mark.parametrize(("ms", "times"), [(5_500, 12), (8_000, 2)])
def test_T_01_is_quiet_about_half_a_session_and_about_a_pause_that_was_survived(talk: Conversation, ms: int, times: int) -> None:
    """It was an info with "a little longer, and the coordinator evicts it" at half a session: 13 times on healthy traffic."""
    a, b = settled(talk)
    live(talk, [a, b], 3)
    pauses(talk, [a], b, ms, times)
    assert talk.rules() == []


def test_T_01_forgets_a_pause_after_15_minutes(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    for _ in range(4):
        pauses(talk, [a], b, 8_000, 1)
        live(talk, [a, b], 450)
    assert talk.rules() == []


def test_T_01_counts_other_requests_of_the_member(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    for _ in range(3):
        silence(talk, [a], 4_500)
        talk.call(b.reconnected(), talk.sync_request(b, []), talk.synced())
        silence(talk, [a], 4_500)
        talk.heartbeat(b)
    assert talk.rules() == []


def test_T_01_does_not_run_while_the_member_rebalances(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    pauses(talk, [a], b, 8_000, 2)
    asked = [talk.ask_join(a), talk.ask_join(b)]
    talk.wait(9_000)
    complete(talk, asked, 4, a, [a, b])
    parked = talk.ask(b, talk.sync_request(b, []))
    talk.wait(9_000)
    talk.heartbeat(b.reconnected())  # from a client that heartbeats while its SyncGroup waits
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    talk.answer(parked, talk.synced())
    talk.heartbeat(b)
    assert talk.rules() == []


@pytest.mark.parametrize("why", ["loss", "failover"])
def test_T_01_starts_anew_after_lost_records_and_failovers(talk: Conversation, why: str) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    pauses(talk, [a], b, 8_000, 2)
    silence(talk, [a], 8_000)
    if why == "loss":
        talk.lose(4)
    else:
        talk.heartbeat(a, 16)
    talk.heartbeat(b)
    assert "T-01" not in talk.rules()


def test_T_01_resolves_when_it_does_not_recur_or_the_member_leaves(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    pauses(talk, [a], b, 8_000, 3)
    live(talk, [a, b], 890)
    assert talk.the("T-01").status is Status.OPEN
    live(talk, [a, b], 12)
    assert talk.the("T-01").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- T-02


def test_T_02_fires_when_a_dead_session_is_accepted(talk: Conversation) -> None:
    a, b = settled(talk)
    silence(talk, [a], 13_000)
    talk.wait(500)
    talk.heartbeat(b)
    talk.settle()
    finding = talk.the("T-02")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.INFO, Certainty.HEURISTIC, Blame.BROKER)
    assert finding.member_id == b.member_id
    assert "13.5 s" in finding.summary


@pytest.mark.parametrize("how", ["told to rejoin", "join", "sync"])
def test_T_02_takes_other_answers_for_accepted(talk: Conversation, how: str) -> None:
    a, b = settled(talk)
    silence(talk, [a], 13_500)
    if how == "told to rejoin":
        talk.heartbeat(b, 27)
    elif how == "sync":
        talk.call(b, talk.sync_request(b, []), talk.synced())
    else:
        talk.joined(talk.ask_join(b), generation=3, leader=a, roster=[])
    assert "T-02" in talk.settled_rules()


@pytest.mark.usefixtures("before_2_3")
def test_T_02_takes_a_heartbeat_told_to_rejoin_only_from_brokers_that_validate_first(talk: Conversation) -> None:
    a, b = settled(talk)
    silence(talk, [a], 13_500)
    talk.heartbeat(b, 27, version=2)
    assert talk.settled_rules() == ["T-04"]


def test_T_02_takes_an_old_clients_heartbeat_told_to_rejoin_where_the_broker_is_known_to_validate_first(talk: Conversation) -> None:
    a, b = settled(talk)
    silence(talk, [a], 13_500)
    talk.heartbeat(b, 27, version=2)
    assert talk.settled_rules() == ["T-04", "T-02"]


def test_T_02_allows_what_a_busy_broker_may_be_late_by(talk: Conversation) -> None:
    a, b = settled(talk)
    silence(talk, [a], 12_500)
    talk.heartbeat(b)
    assert talk.settled_rules() == []


def test_T_02_is_quiet_when_the_member_is_refused(talk: Conversation) -> None:
    a, b = settled(talk)
    silence(talk, [a], 13_500)
    talk.heartbeat(b, 25)
    assert talk.settled_rules() == ["T-04"]


def test_T_02_allows_a_join_parked_meanwhile_on_a_connection_that_ended(talk: Conversation) -> None:
    """The coordinator cannot see that the client hung up: the member stays parked, and its session does not run."""
    a, b = settled(talk)
    talk.ask_join(b, rebalance_timeout_ms=60_000)
    talk.close(b)
    told_to_rejoin(talk, a, 20)
    b = b.reconnected()
    asked = [talk.ask_join(b, rebalance_timeout_ms=60_000), talk.ask_join(a)]
    complete(talk, asked, 4, a, [a, b])
    talk.sync_all([a, b])
    live(talk, [a, b], 3)
    assert not {"T-02", "T-04"} & set(talk.rules())


def test_T_02_allows_a_sync_parked_meanwhile_on_a_connection_that_ended(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.ask(b, talk.sync_request(b, []))
    talk.close(b)
    live(talk, [a], 14)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    live(talk, [a], 8)
    b = b.reconnected()
    talk.heartbeat(b)
    assert not {"T-02", "T-04"} & set(talk.settled_rules())


def test_T_02_goes_by_the_newest_sync_of_a_member(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.ask(b, talk.sync_request(b, []))
    again = b.reconnected()
    parked = talk.ask(again, talk.sync_request(again, []))
    talk.close(b)
    talk.wait(1_000)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    talk.answer(parked, talk.synced())
    silence(talk, [a], 13_500)
    talk.heartbeat(again)
    assert "T-02" in talk.settled_rules()


def test_T_02_allows_a_sync_told_to_rejoin_after_its_timer_fired_unheeded(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    parked = talk.ask(b, talk.sync_request(b, []))
    live(talk, [a], 11)
    talk.answer(parked, talk.synced(27))
    told_to_rejoin(talk, a, 14)
    talk.heartbeat(b, 27)
    assert not {"T-02", "T-04"} & set(talk.settled_rules())


def test_T_02_runs_on_after_such_a_sync_once_the_member_was_accepted(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    parked = talk.ask(b, talk.sync_request(b, []))
    talk.answer(parked, talk.synced(27))
    talk.heartbeat(b, 27)
    told_to_rejoin(talk, a, 14)
    talk.heartbeat(b, 27)
    assert "T-02" in talk.settled_rules()


def test_T_02_knows_that_the_end_of_a_join_phase_restarts_absent_static_members(talk: Conversation) -> None:
    a, b = static_group(talk, ("a", "b"))
    asked = talk.ask_join(a)
    talk.wait(9_000)
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    live(talk, [a], 9)
    talk.heartbeat(b, 22)
    talk.joined(talk.ask_join(b), generation=4, leader=a, roster=[])
    assert not {"T-02", "T-04"} & set(talk.settled_rules())


@pytest.mark.parametrize("why", ["loss", "failover"])
def test_T_02_does_not_judge_across_lost_records_and_failovers(talk: Conversation, why: str) -> None:
    a, b = settled(talk)
    silence(talk, [a], 10_000)
    if why == "loss":
        talk.lose(4)
    else:
        talk.heartbeat(a, 16)
    silence(talk, [a], 4_000)
    talk.heartbeat(b)
    assert "T-02" not in talk.settled_rules()


def test_T_02_does_not_judge_an_answer_across_lost_records(talk: Conversation) -> None:
    a, b = settled(talk)
    silence(talk, [a], 13_500)
    asked = talk.ask_join(b)
    talk.lose(1)
    talk.joined(asked, generation=4, leader=a, roster=[])
    assert talk.settled_rules() == ["T-04", "V-01"]


def test_T_02_does_not_judge_static_members_that_took_over(talk: Conversation) -> None:
    a, _ = static_group(talk, ("a", "b"))
    new = talk.client("b", instance_id="i")
    talk.joined(talk.ask_join(new), generation=3, leader=a, roster=[], member_id="i-new")
    talk.call(new, talk.sync_request(new, []), talk.synced())
    silence(talk, [a], 13_500)
    talk.heartbeat(new)
    assert talk.settled_rules() == ["T-04"]


def test_T_02_leaves_a_member_outside_the_roster_to_M_02(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.wait(8_000)
    talk.round([a], 4)
    live(talk, [a], 6)
    b.generation = 4
    talk.heartbeat(b)
    assert talk.settled_rules() == ["T-04", "M-02"]
    assert "M-02" in talk.rules()


def test_T_02_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk)
    silence(talk, [a], 13_500)
    live(talk, [a, b], 70)
    assert talk.the("T-02").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- T-03


def evicted(talk: Conversation, a: Client, b: Client, *, version: int = 4) -> None:
    live(talk, [a, b], 3)
    talk.heartbeat(b, 25, version=version)
    talk.settle()


def test_T_03_fires_on_an_eviction_that_nothing_explains(talk: Conversation) -> None:
    a, b = settled(talk)
    evicted(talk, a, b)
    finding = talk.the("T-03")
    assert finding.severity is Severity.ERROR
    assert finding.certainty is Certainty.HEURISTIC
    assert finding.member_id == b.member_id
    assert finding.blame is Blame.BROKER


def test_T_03_only_warns_where_an_old_broker_may_have_unloaded_the_group(talk: Conversation) -> None:
    a, b = settled(talk)
    evicted(talk, a, b, version=2)
    assert talk.the("T-03").severity is Severity.WARNING


def test_T_03_allows_an_eviction_when_the_session_may_have_ended(talk: Conversation) -> None:
    a, b = settled(talk)
    silence(talk, [a], 7_500)
    talk.heartbeat(b, 25)
    assert talk.settled_rules() == []


def test_T_03_allows_an_eviction_within_a_session_of_a_late_answer(talk: Conversation) -> None:
    """The coordinator restarts a session when it handles the request, which may have been long before the answer was seen."""
    a, b = settled(talk)
    asked = talk.ask(b, wire.HeartbeatRequest(group_id=talk.group, generation_id=b.generation, member_id=b.member_id))
    silence(talk, [a], 4_500)
    talk.answer(asked, wire.HeartbeatResponse())
    silence(talk, [a], 3_000)
    talk.heartbeat(b, 25)
    assert "T-03" not in talk.settled_rules()


def test_T_03_allows_an_eviction_after_a_round_without_the_member(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a], 4)
    talk.heartbeat(b, 25)
    assert talk.settled_rules() == []


@pytest.mark.parametrize("state", ["preparing", "somebody joins", "not in sync"])
def test_T_03_allows_an_eviction_by_a_rebalance(talk: Conversation, state: str) -> None:
    a, b = completing_rebalance(talk)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    if state != "not in sync":
        talk.call(b, talk.sync_request(b, []), talk.synced())
    if state == "preparing":
        talk.heartbeat(a, 27)
    if state == "somebody joins":
        group = talk.model.groups.opened(("c1", "g"))[0]
        group.members[a.member_id].digest = b""  # not known, so that its JoinGroup is not known to begin a phase
        group.generations[-1].leader = b.member_id
        talk.ask_join(a)
    talk.heartbeat(b, 25)
    assert talk.settled_rules() == []


def test_T_03_fires_on_a_member_that_stayed_after_its_leave_was_refused(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.call(b.reconnected("2"), talk.leave_request(b), wire.LeaveGroupResponse(error_code=16))
    evicted(talk, a, b)
    assert "T-03" in talk.settled_rules()


def test_T_03_allows_refusals_around_a_leave(talk: Conversation) -> None:
    a, b = settled(talk)
    other = b.reconnected()
    asked = talk.ask(other, talk.leave_request(b))
    evicted(talk, a, b)
    talk.answer(asked, talk.left(b))
    assert talk.settled_rules() == []


def test_T_03_allows_a_removal_by_an_operator(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 2)
    talk.ask(talk.client("admin"), talk.leave_request(b))
    talk.heartbeat(b, 25)
    assert talk.settled_rules() == []


@pytest.mark.parametrize(("join_version", "found"), [(7, []), (8, ["T-03"])])
def test_T_03_allows_static_members_that_took_over_where_the_broker_may_forget_it(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch, join_version: int, found: list[str]
) -> None:
    """Brokers before 2.6.1 do (KAFKA-10284); JoinGroup v8 came with 3.2."""
    monkeypatch.setitem(VERSIONS, 11, join_version)
    a, _ = static_group(talk, ("a", "b"))
    new = talk.client("b", instance_id="i")
    talk.joined(talk.ask_join(new), generation=3, leader=a, roster=[], member_id="i-new")
    talk.call(new, talk.sync_request(new, []), talk.synced())
    evicted(talk, a, new)
    assert talk.rules() == found


def test_T_03_fires_on_a_static_member_that_took_over_and_was_written_since(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader's SyncGroup of the next generation writes who holds the instance id, on brokers before 2.6.1 too."""
    monkeypatch.setitem(VERSIONS, 11, 7)
    a, _ = static_group(talk, ("a", "b"))
    new = talk.client("b", instance_id="i")
    talk.joined(talk.ask_join(new), generation=3, leader=a, roster=[], member_id="i-new")
    talk.call(new, talk.sync_request(new, []), talk.synced())
    talk.round([a, new], 4)
    evicted(talk, a, new)
    assert talk.rules() == ["T-03"]


@pytest.mark.parametrize(("beats", "found"), [(False, []), (True, ["T-03"])])
def test_T_03_allows_the_session_of_a_static_member_to_run_from_its_join_that_was_answered_late(
    talk: Conversation, *, beats: bool, found: list[str]
) -> None:
    """Kafka 4 answers who takes a place over when that is replicated, and counts the session from before; a Heartbeat begins it anew."""
    a, _ = static_group(talk, ("a", "b"))
    new = talk.client("b", instance_id="i")
    talk.refuse_join(talk.ask_join(new), 15)
    asked = talk.ask_join(new)
    live(talk, [a], 5)
    new.member_id = "i-new"
    talk.joined(asked, generation=3, leader=new, roster=[a, new])
    talk.call(new, talk.sync_request(new, []), talk.synced())
    live(talk, [a], 2)
    if beats:
        talk.heartbeat(new)
        talk.wait(100)
    talk.heartbeat(new, 25)
    assert talk.settled_rules() == found


def test_T_03_needs_all_members_on_the_captured_path(talk: Conversation) -> None:
    a, b, unseen = talk.client("a"), talk.client("b"), talk.client("unseen", member_id="unseen-1")
    for client in (a, b):
        talk.hand_out_id(client)
    asked = [talk.ask_join(a), talk.ask_join(b)]
    complete(talk, asked, 3, a, [a, b, unseen])
    talk.sync_all([a, b])
    evicted(talk, a, b)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- E-24, in classic groups


def test_E_24_fires_when_a_classic_group_is_deleted_whose_members_live(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 2)
    talk.answer(talk.ask_delete(), talk.deleted())
    talk.settle()
    finding = talk.the("E-24")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.CRITICAL, Certainty.CONFIRMED, Blame.BROKER)
    assert finding.member_id in {a.member_id, b.member_id}
    talk.wait(61_000)
    assert talk.the("E-24").status is Status.RESOLVED


@pytest.mark.parametrize("why", ["refused", "left", "leave", "joins", "may have expired", "moved", "a frame is missing"])
def test_E_24_allows_the_deletion_of_a_classic_group_that_may_be_empty(talk: Conversation, why: str) -> None:
    a, b = settled(talk)
    if why == "may have expired":
        talk.wait(8_000)
    if why == "moved":
        talk.heartbeat(a, 16)
    if why == "left":
        talk.leave(a)
        talk.leave(b)
    if why == "leave":
        talk.ask(talk.client("admin"), talk.leave_request(a, b))
    if why == "joins":
        talk.ask_join(talk.client("c"))
    asked = talk.ask_delete()
    if why == "a frame is missing":
        talk.gap()
    talk.answer(asked, talk.deleted(68 if why == "refused" else 0))
    assert "E-24" not in talk.settled_rules()


def test_E_24_allows_the_deletion_of_a_classic_group_that_has_begun_again_before_the_answer_is_captured(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.leave(a)
    talk.leave(b)
    asked = talk.ask_delete()
    settled(talk, generation=1)
    talk.answer(asked, talk.deleted())
    assert "E-24" not in talk.settled_rules()


def test_T_03_allows_a_broker_that_may_have_been_restarted(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.close(a)
    talk.close(b)
    evicted(talk, a.reconnected(), b.reconnected())
    assert talk.rules() == []


def test_T_03_does_not_judge_while_learning(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.lose(3)
    evicted(talk, a, b)
    assert talk.rules() == ["V-01"]


def test_T_03_resolves_when_the_group_has_rebalanced(talk: Conversation) -> None:
    a, b = settled(talk)
    evicted(talk, a, b)
    talk.heartbeat(a, 27)
    talk.round([a], 4)
    talk.wait(2_000)
    assert talk.the("T-03").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- T-04


def test_T_04_folds_under_a_ghost(talk: Conversation) -> None:
    a, b = settled(talk)
    ghost(talk, a, b)
    live(talk, [a], 16)
    assert talk.rules() == ["R-05"]


def goes_on_without_b(talk: Conversation) -> Client:
    """The generation that a member leads once another fell silent."""
    a, b = settled(talk)
    talk.heartbeat(b)
    silence(talk, [a], 6_000)
    talk.heartbeat(a, 27)
    rejoined = talk.ask_join(a)
    talk.wait(3_000)
    talk.joined(rejoined, generation=4, leader=a, roster=[a])
    talk.sync_all([a])
    return a


def test_T_04_says_how_long_partitions_of_a_dropped_member_were_idle(talk: Conversation) -> None:
    """It said that they were idle for all of its silence, although the group had gone on without it."""
    a = goes_on_without_b(talk)
    silence(talk, [a], 6_000)
    finding = talk.the("T-04")
    assert (
        "nothing for 13.0 s, its session timeout is 10.0 s; its partitions were idle for 9.0 s, until the group went on"
        in finding.summary
    )


def test_T_04_does_not_say_that_the_group_went_on_while_nobody_can_read_where_to_begin(talk: Conversation) -> None:
    a = goes_on_without_b(talk)
    talk.fetch_offsets(a, {0: -1}, {0: 88})
    silence(talk, [a], 6_000)
    assert talk.the("T-04").summary.endswith(
        "its partitions were idle for 13.0 s by then, and who has them could not read where to begin."
    )


def test_T_04_says_that_partitions_were_idle_meanwhile_while_the_group_waits(talk: Conversation) -> None:
    a, _ = settled(talk)
    silence(talk, [a], 16_000)
    assert talk.the("T-04").summary.endswith("its session timeout is 10.0 s; its partitions were idle meanwhile.")


def test_T_04_says_that_no_generation_without_it_was_assigned(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(b)
    silence(talk, [a], 6_000)
    talk.heartbeat(a, 27)
    rejoined = talk.ask_join(a)
    talk.wait(3_000)
    talk.joined(rejoined, generation=4, leader=a, roster=[a])
    silence(talk, [a], 6_000)
    assert talk.the("T-04").summary.endswith(
        "its partitions were idle for 13.0 s by then, and no generation without it had an assignment yet."
    )


def test_T_04_says_that_a_member_without_an_assignment_had_none(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, generation=1)
    silence(talk, [a], 16_000)
    finding = next(one for one in talk.opened() if one.rule == "T-04")
    assert (finding.member_id, finding.summary.rpartition("; ")[2]) == (b.member_id, "it had not been assigned any partitions.")


def test_T_04_allows_a_leave_that_was_never_answered(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask(b, talk.leave_request(b))
    talk.close(b)
    live(talk, [a], 16)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- T-05


def test_T_05_quotes_the_reason_of_a_client_that_polled_too_rarely(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.leave(b, reason="consumer poll timeout has expired.")
    finding = talk.the("T-05")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.CERTAIN
    assert finding.member_id == b.member_id
    assert "consumer poll timeout has expired." in finding.summary
    assert finding.summary.endswith("; no member waits for it.")


@pytest.mark.parametrize("reason", ["consumer poll timeout has expired.", None])
def test_T_05_tells_how_many_waited_for_it_and_since_when(talk: Conversation, reason: str | None) -> None:
    """The others had stood still for 22 s, and nothing said so."""
    a, b, c = settled(talk, ("a", "b", "c"))
    live(talk, [a, b, c], 2)
    waiting_us = talk.now_us
    talk.ask_join(a)
    talk.ask_join(c)
    for _ in range(11):
        talk.wait(2_000)
        talk.heartbeat(b, 27)
    talk.leave(b, reason=reason)
    b.member_id = ""
    talk.hand_out_id(b, "b-2")
    talk.settle()
    summary = talk.the("T-05").summary
    assert f"2 others have waited for it since {clock(waiting_us)}, 22.0 s." in summary


def test_T_05_of_a_client_that_loops_is_one_finding_whatever_member_id_it_has_by_now(talk: Conversation) -> None:
    a, b = settled(talk)
    left = []
    for number in range(3):
        left.append(b.member_id)
        talk.leave(b, reason="consumer poll timeout has expired.")
        b.member_id = ""
        talk.hand_out_id(b, f"b-again-{number}")
        talk.round([a, b], 4 + number)
    findings = [finding for finding in talk.findings if finding.rule == "T-05"]
    assert len({finding.id for finding in findings}) == 1
    assert [(finding.count, finding.member_id) for finding in findings] == [(1, left[0]), (2, left[1])]
    assert len(set(left)) == 3
    assert talk.rules() == ["T-05"]


def test_T_05_names_a_member_that_it_does_not_know(talk: Conversation) -> None:
    stranger = talk.client("s", member_id="m-s")
    talk.leave(stranger, reason="max poll interval exceeded")
    assert talk.the("T-05").member_id == "m-s"


@pytest.mark.parametrize("reason", ["the consumer is being closed", "the consumer unsubscribed from all topics"])
def test_T_05_allows_other_reasons(talk: Conversation, reason: str) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 30)
    talk.leave(b, reason=reason)
    talk.hand_out_id(b.reconnected())
    b.member_id = ""
    talk.hand_out_id(b, "b-2")
    assert talk.settled_rules() == ["M-06"]


def pauses_in_its_poll(talk: Conversation, led_by: int, *, alive_s: int = 25, pause_ms: int = 4_000) -> None:
    """A static member stops its heartbeats when it was not polled in time, and joins again without its id on its own connection."""
    pair = [talk.client("a"), talk.client("b")]
    for client in pair:
        client.instance_id = f"i-{client.name}"
    talk.round(pair, 3, leader=pair[led_by])
    live(talk, pair, alive_s)
    silence(talk, [pair[0]], pause_ms)
    paused, leader_id = pair[1], pair[led_by].member_id
    paused.member_id = ""
    asked = talk.ask(paused, talk.join_request(paused), version=8)
    reply = wire.JoinGroupResponse(
        generation_id=3, protocol_type="consumer", protocol_name="range", leader=leader_id, member_id="i-b-2"
    )
    talk.answer(asked, reply)
    paused.member_id = "i-b-2"
    talk.call(paused, talk.sync_request(paused, []), talk.synced())
    live(talk, pair, 6)


def test_T_05_tells_of_a_static_member_that_joins_without_its_id_on_its_own_connection(talk: Conversation) -> None:
    pauses_in_its_poll(talk, led_by=0)
    assert talk.rules() == ["T-05"]
    finding = talk.the("T-05")
    assert (finding.severity, finding.certainty, finding.instance_id) == (Severity.WARNING, Certainty.HEURISTIC, "i-b")
    assert "on its own connection, 5.0 s after its last frame: its application most likely polled too rarely" in finding.summary
    assert "led the group" not in finding.summary


def test_T_05_says_at_once_that_a_static_leader_lost_its_leadership(talk: Conversation) -> None:
    pauses_in_its_poll(talk, led_by=1)
    assert talk.rules() == ["T-05"]  # S-05 waits for ten minutes
    assert "It led the group and was not told that it still does: nobody notices new partitions" in talk.the("T-05").summary


@pytest.mark.parametrize(
    ("alive_s", "pause_ms"),
    [(5, 4_000), (25, 500)],
    ids=["within its rebalance timeout", "as a client does whose coordinator does not answer"],
)
def test_T_05_allows_a_static_member_that_joins_without_its_id(talk: Conversation, alive_s: int, pause_ms: int) -> None:
    pauses_in_its_poll(talk, led_by=0, alive_s=alive_s, pause_ms=pause_ms)
    assert talk.rules() == []


def test_T_05_leaves_a_static_member_that_stood_still_for_a_session_to_T_04(talk: Conversation) -> None:
    pauses_in_its_poll(talk, led_by=0, alive_s=40, pause_ms=10_500)
    assert talk.rules() == []


def test_T_05_needs_heartbeats_of_a_static_member_until_its_poll_interval_was_over(talk: Conversation) -> None:
    """Its rebalance timeout of 20 s had passed when it came back, not when its heartbeats ended."""
    pauses_in_its_poll(talk, led_by=0, alive_s=12, pause_ms=9_000)
    assert talk.rules() == []


@pytest.mark.parametrize("reason", ["consumer poll timeout has expired.", None])
def test_T_05_leaves_a_process_that_stood_still_for_a_session_to_T_04(talk: Conversation, reason: str | None) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 25)
    silence(talk, [a], 15_000)
    talk.leave(b, reason=reason)
    b.member_id = ""
    talk.hand_out_id(b, "b-2")
    assert talk.settled_rules() == ["T-04"]


def leaves_and_comes_back(talk: Conversation, seconds: int) -> tuple[Client, Client]:
    a, b = settled(talk)
    live(talk, [a, b], seconds)
    talk.leave(b)
    talk.round([a], 4)
    live(talk, [a], 5)
    return a, b


def test_T_05_infers_it_from_a_leave_and_a_join_on_one_connection(talk: Conversation) -> None:
    _, b = leaves_and_comes_back(talk, 25)
    old, b.member_id = b.member_id, ""
    talk.hand_out_id(b, "b-2")
    talk.settle()
    finding = talk.the("T-05")
    assert finding.certainty is Certainty.HEURISTIC
    assert finding.member_id == old


def test_T_05_allows_a_client_to_leave_for_other_topics(talk: Conversation) -> None:
    """In the laboratory kafkajs changed its subscription so."""
    _, b = leaves_and_comes_back(talk, 25)
    b.member_id = ""
    protocols = (wire.JoinGroupRequestProtocol(name="range", metadata=subscription("t", "u")),)
    talk.refuse_join(talk.ask_join(b, protocols=protocols), 79, "b-2")
    assert talk.settled_rules() == []


def test_T_05_allows_a_leave_sooner_than_a_poll_may_take(talk: Conversation) -> None:
    _, b = leaves_and_comes_back(talk, 15)
    b.member_id = ""
    talk.hand_out_id(b, "b-2")
    assert talk.settled_rules() == []


@pytest.mark.parametrize("how", ["closed", "other connection", "same id", "loss"])
def test_T_05_needs_the_same_connection_and_a_new_beginning(talk: Conversation, how: str) -> None:
    _, b = leaves_and_comes_back(talk, 25)
    if how == "same id":
        talk.refuse_join(talk.ask_join(b), 25, b.member_id)
    else:
        if how == "closed":
            talk.close(b)
        if how == "loss":
            talk.lose(2)
        b = b if how == "loss" else b.reconnected()
        b.member_id = ""
        talk.hand_out_id(b, "b-2")
    assert "T-05" not in talk.settled_rules()


def test_T_05_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.leave(b, reason="consumer poll timeout has expired.")
    talk.round([a], 4)
    live(talk, [a], 310)
    assert talk.the("T-05").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- T-06


def test_T_06_fires_on_an_answer_that_takes_a_third_of_the_session(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.heartbeat(a, after_ms=3_500)
    talk.settle()
    finding = talk.the("T-06")
    assert finding.blame is Blame.BROKER
    assert "3.5 s" in finding.summary


def test_T_06_fires_on_three_slow_answers_within_a_minute(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(3):
        talk.heartbeat(a, after_ms=2_500)
        talk.heartbeat(b)
        talk.wait(1_000)
    talk.settle()
    assert "3 such in a minute" in talk.the("T-06").summary


def test_T_06_allows_two_and_three_in_two_minutes(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(4):
        talk.heartbeat(a, after_ms=2_500)
        live(talk, [a, b], 28)
    assert talk.rules() == []


def test_T_06_allows_joins_and_syncs_to_wait(talk: Conversation) -> None:
    a, b = settled(talk)
    asked = talk.ask_join(a)
    talk.wait(6_000)
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    assert talk.settled_rules() == []


def test_T_06_allows_a_heartbeat_queued_behind_a_join(talk: Conversation) -> None:
    a, b = settled(talk)
    asked = [talk.ask_join(a), talk.ask_join(b)]
    body = wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=a.member_id)
    queued = talk.ask(a, body)
    talk.wait(6_000)
    complete(talk, asked, 4, a, [a, b])
    talk.answer(queued, wire.HeartbeatResponse(error_code=22))
    assert talk.settled_rules() == []


def test_T_06_allows_throttled_answers(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.heartbeat(a, after_ms=3_500, throttle_ms=1_000)
    assert talk.settled_rules() == []


def test_T_06_counts_a_client_that_it_does_not_know(talk: Conversation) -> None:
    stranger = talk.client("s", member_id="m-s", generation=3)
    for _ in range(3):
        talk.heartbeat(stranger, 25, after_ms=2_500)
    assert "T-06" in talk.settled_rules()


def test_T_06_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(a, after_ms=3_500)
    live(talk, [a, b], 70)
    assert talk.the("T-06").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- T-07, T-08


def test_T_07_fires_on_a_throttle_longer_than_the_heartbeat_interval(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 5)
    talk.heartbeat(a, throttle_ms=1_500)
    finding = talk.the("T-07")
    assert finding.blame is Blame.CONFIG
    assert finding.member_id == a.member_id
    assert "1.5 s" in finding.summary


def test_T_07_takes_three_seconds_where_the_interval_is_not_known(talk: Conversation) -> None:
    a = talk.client("a")
    asked = talk.ask_join(a)
    talk.answer(asked, wire.JoinGroupResponse(error_code=79, member_id="a-1", generation_id=-1, leader="", throttle_time_ms=2_900))
    assert talk.settled_rules() == []
    asked = talk.ask_join(a)
    talk.answer(asked, wire.JoinGroupResponse(error_code=79, member_id="a-2", generation_id=-1, leader="", throttle_time_ms=3_100))
    assert talk.the("T-07").client_id == "a"


def test_T_07_allows_a_short_throttle(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 5)
    talk.heartbeat(a, throttle_ms=500)
    assert talk.settled_rules() == []


def test_T_07_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 5)
    talk.heartbeat(a, throttle_ms=1_500)
    live(talk, [a, b], 70)
    assert talk.the("T-07").status is Status.RESOLVED


def test_T_08_fires_on_a_session_timeout_that_the_broker_refuses(talk: Conversation) -> None:
    a = talk.client("a")
    talk.refuse_join(talk.ask_join(a, session_timeout_ms=3_000), 26)
    finding = talk.the("T-08")
    assert finding.blame is Blame.CONFIG
    assert finding.client_id == "a"
    assert "3.0 s" in finding.summary
    talk.wait(70_000)
    assert talk.the("T-08").status is Status.RESOLVED


def test_T_08_allows_other_refusals(talk: Conversation) -> None:
    talk.refuse_join(talk.ask_join(talk.client("a")), 81)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- all of R and T


def test_T_04_is_quiet_about_an_id_that_its_client_gave_up_when_no_coordinator_answered(talk: Conversation) -> None:
    """So librdkafka does after a session without an answer, and joins on the same connection: it lives."""
    a, b = settled(talk)
    talk.find_coordinator(b)
    given_up, b.member_id = b.member_id, ""
    talk.hand_out_id(b)
    assert b.member_id != given_up
    asked = [talk.ask_join(b)]
    talk.wait(500)
    talk.heartbeat(a, 27)
    asked.append(talk.ask_join(a))
    talk.wait(9_500)
    complete(talk, asked, 4, a, [a, b])
    talk.sync_all([a, b], leader=a)
    live(talk, [a, b], 20)
    assert talk.rules() == []


def test_T_04_is_quiet_about_an_id_that_its_client_gave_up_and_then_its_connection_too(talk: Conversation) -> None:
    """The coordinator stood still: no answer to a heartbeat, nor to the JoinGroup under no id, so it came again on another connection."""
    a, b = settled(talk)
    talk.ask(b, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=b.member_id))
    talk.wait(5_000)
    talk.ask(b, talk.join_request(b, member_id=""))
    talk.wait(1_000)
    talk.close(b)
    again = talk.client("b")
    talk.hand_out_id(again)
    asked = [talk.ask_join(again)]
    talk.heartbeat(a, 27)
    asked.append(talk.ask_join(a))
    talk.wait(4_000)
    complete(talk, asked, 4, a, [a, again])
    talk.sync_all([a, again], leader=a)
    live(talk, [a, again], 20)
    assert talk.rules() == []


def test_T_04_is_quiet_about_an_id_that_its_client_gave_up_on_another_connection(talk: Conversation) -> None:
    """Replication stood still: librdkafka connected anew, committed under its id, and joined under none as its session had ended."""
    a, b = settled(talk)
    give(talk, [a, b], 4, {a: (0,), b: (1,)})
    live(talk, [a], 6)
    talk.close(b)
    again = b.reconnected()
    talk.commit_offsets(again, {1: 5})
    again.member_id = ""
    give(talk, [a, again], 5, {a: (0,), again: (1,)})
    live(talk, [a, again], 20)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- T-09


def test_T_09_notes_at_once_that_a_client_died_without_leaving(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.close(b)
    live(talk, [a], 6)
    assert talk.rules() == ["T-09"]
    finding = talk.the("T-09")
    assert (finding.severity, finding.blame, finding.member_id, finding.client_id) == (
        Severity.INFO,
        Blame.CLIENT,
        b.member_id,
        "b",
    )
    assert "in group g died without leaving: its connection ended and it has not come back" in finding.summary
    assert finding.action.startswith("Find out why that process ended")
    live(talk, [a], 12)
    assert talk.rules() == ["T-09", "T-04"]
    assert talk.the("T-09").status is Status.RESOLVED


def test_T_09_does_not_say_that_kafka_streams_died_which_closes_without_leaving(talk: Conversation) -> None:
    talk.protocol = "stream"
    a, b = settled(talk)
    talk.close(b)
    live(talk, [a], 18)
    assert talk.rules() == ["T-09"]
    finding = talk.the("T-09")
    assert (finding.name, finding.severity) == ("closed without leaving", Severity.INFO)
    assert "in group g closed without leaving, as Kafka Streams does: its connection ended" in finding.summary
    assert finding.action.startswith("If it was stopped on purpose, nothing")


def test_T_04_tells_of_kafka_streams_that_goes_silent_on_an_open_connection(talk: Conversation) -> None:
    talk.protocol = "stream"
    a, _ = settled(talk)
    live(talk, [a], 18)
    assert talk.rules() == ["T-04"]


def test_T_09_allows_a_client_that_connects_again(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.close(b)
    talk.wait(2_000)
    again = b.reconnected()
    live(talk, [a, again], 20)
    assert talk.rules() == []


def test_T_09_allows_a_client_that_looks_for_a_coordinator_that_does_not_answer(talk: Conversation) -> None:
    """A broker of three was killed, the coordinator stood still for nine seconds, and one of its clients gave its connection up."""
    a, b = settled(talk)
    talk.ask(b, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=b.member_id))
    talk.wait(5_000)
    talk.close(b)
    talk.wait(2)
    talk.ask(talk.client("b", "2"), wire.FindCoordinatorRequest(coordinator_keys=("g",)))
    talk.wait(7_000)
    assert talk.rules() == []
    live(talk, [a, b.reconnected()], 20)
    assert talk.rules() == []


@pytest.mark.parametrize(("waited_s", "rules"), [(1, ["T-09"]), (4, [])])
def test_T_09_allows_a_client_that_gave_up_waiting_for_an_answer(talk: Conversation, waited_s: int, rules: list[str]) -> None:
    """It gave its coordinator up, which stood still: that is no death."""
    a, b = settled(talk)
    live(talk, [a, b], 3)
    talk.ask(b, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=b.member_id))
    talk.wait(waited_s * 1_000)
    talk.close(b)
    live(talk, [a], 6)
    assert talk.rules() == rules


def test_T_09_is_told_of_a_client_that_came_again_as_another_member(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.close(b)
    talk.wait(2)
    another = talk.client("b")
    talk.find_coordinator(another)
    another.member_id = "b-anew"
    talk.ask_join(another)
    live(talk, [a], 6)
    assert talk.rules() == ["T-09"]


def test_T_09_allows_a_second_connection_that_ends(talk: Conversation) -> None:
    a, b = settled(talk)
    other = b.reconnected()
    talk.find_coordinator(other)
    talk.close(other)
    live(talk, [a, b], 20)
    assert talk.rules() == []


def test_T_09_allows_a_leave(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.leave(b)
    talk.close(b)
    live(talk, [a], 20)
    assert talk.rules() == []


def test_T_09_is_quiet_about_the_restart_of_a_static_member(talk: Conversation) -> None:
    a, b = talk.client("a", instance_id="i-a"), talk.client("b", instance_id="i-b")
    talk.round([a, b], 3)
    live(talk, [a, b], 5)
    talk.close(b)
    live(talk, [a], 9)
    assert talk.rules() == []


def test_T_09_is_quiet_when_the_tap_stood_still(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.close(b)
    talk.now_us += 9_000_000
    again = b.reconnected()
    live(talk, [a, again], 20)
    assert talk.rules() == []


def test_T_01_allows_a_member_whose_connection_ended(talk: Conversation) -> None:
    """Its coordinator was killed again and again: it had nobody to heartbeat to."""
    a, b = settled(talk)
    for _ in range(4):
        live(talk, [a, b], 10)
        talk.close(b)
        live(talk, [a], 9)
        b = b.reconnected()
        talk.heartbeat(b)
    assert set(talk.rules()) <= {"T-09"}


def test_T_04_of_a_Connect_worker_speaks_of_connectors_and_tasks() -> None:
    assert (work_of("connect"), work_of("consumer"), work_of("")) == ("connectors and tasks", "partitions", "partitions")
    talk = Conversation()
    talk.protocol_type = "connect"
    a, b = settled(talk)
    beat(talk, [a], 60)
    assert b.member_id in talk.the("T-04").summary
    assert "its connectors and tasks were idle" in talk.the("T-04").summary
