"""Family C: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.groups.coordinator_changes import CONNECTIONS_KEPT, TENURES_KEPT
from coordinator_model.wire.record import Kind
from tests.coordinator_model.classic import (
    ask_heartbeat,
    beat,
    complete,
    completing_rebalance,
    live,
    settled,
    static_group,
    told_to_rejoin,
)
from tests.coordinator_model.conversation import ASSIGNED, Asked, Client, Conversation, subscription
from tests.coordinator_model.epoch_groups import alone
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.rules.coordinators import fail_over, searching
from tests.coordinator_model.rules.offsets import SIMPLE

HOUR_MS = 3_600_000


def resolved(talk: Conversation, rule: str) -> bool:
    return talk.the(rule).status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- C-01


def test_C_01_fires_on_a_request_that_gets_no_answer(talk: Conversation) -> None:
    a, b = settled(talk)
    ask_heartbeat(talk, a)
    live(talk, [b], 35)
    finding = talk.the("C-01")
    assert finding.severity is Severity.ERROR
    assert finding.certainty is Certainty.HEURISTIC
    assert finding.blame is Blame.BROKER
    assert finding.member_id == a.member_id
    assert "Heartbeat" in finding.summary


def test_C_01_sees_the_hanging_commit_of_a_group_without_members(talk: Conversation) -> None:
    tool = talk.client("tool")
    talk.ask(tool, talk.commit_request(tool, {0: 1}))
    talk.wait(31_000)
    assert "has not answered an OffsetCommit of client tool at " in talk.the("C-01").summary
    assert talk.the("C-01").client_id == "tool"


def test_C_01_sees_the_hanging_request_of_a_group_that_all_members_have_left(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.leave(a)
    talk.leave(b)
    talk.wait(120_000)
    tool = talk.client("tool")
    talk.ask(tool, talk.fetch_request(tool, (0,)))
    talk.wait(31_000)
    assert "has not answered an OffsetFetch of client tool at " in talk.the("C-01").summary


def test_C_01_does_not_mistake_a_parked_request_for_a_hanging_one(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    talk.ask(b, talk.sync_request(b, []))
    talk.wait(40_000)
    assert "C-01" not in talk.settled_rules()


def test_C_01_ignores_what_waits_behind_a_parked_request(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.ask_join(a)
    ask_heartbeat(talk, a)
    talk.wait(40_000)
    assert "C-01" not in talk.settled_rules()


def test_C_01_counts_from_when_the_one_before_was_answered(talk: Conversation) -> None:
    a, b = settled(talk)
    parked = [talk.ask_join(a), talk.ask_join(b)]
    ask_heartbeat(talk, a)
    talk.wait(15_000)
    complete(talk, parked, 4, a, [a, b])
    talk.wait(29_000)
    assert "C-01" not in talk.settled_rules()
    talk.wait(2_000)
    assert "C-01" in talk.settled_rules()


def test_C_01_ignores_what_waits_behind_requests_of_others(talk: Conversation) -> None:
    a, _ = settled(talk)
    a.outstanding = 2
    ask_heartbeat(talk, a)
    talk.wait(40_000)
    assert "C-01" not in talk.settled_rules()


def test_C_01_ignores_a_connection_that_ended(talk: Conversation) -> None:
    a, _ = settled(talk)
    ask_heartbeat(talk, a)
    talk.wait(10_000)
    talk.close(a)
    talk.wait(30_000)
    assert "C-01" not in talk.settled_rules()


def test_C_01_knows_nothing_after_a_loss(talk: Conversation) -> None:
    a, _ = settled(talk)
    ask_heartbeat(talk, a)
    talk.gap()
    talk.wait(40_000)
    assert "C-01" not in talk.settled_rules()


def test_C_01_waits_for_the_end_of_throttling(talk: Conversation) -> None:
    a, _ = settled(talk)
    body = wire.LeaveGroupResponse(throttle_time_ms=20_000, members=())
    talk.call(talk.client("x"), wire.LeaveGroupRequest(group_id="g"), body)
    ask_heartbeat(talk, a)
    talk.wait(45_000)
    assert "C-01" not in talk.settled_rules()
    talk.wait(6_000)
    assert "C-01" in talk.settled_rules()


def test_C_01_resolves_with_the_answer(talk: Conversation) -> None:
    a, _ = settled(talk)
    asked = ask_heartbeat(talk, a)
    talk.wait(35_000)
    talk.answer(asked, wire.HeartbeatResponse(error_code=25))
    talk.settle()
    assert resolved(talk, "C-01")


# ---------------------------------------------------------------------------------------------------- C-02


def forgotten_join(talk: Conversation) -> tuple[Client, Client, Asked]:
    """A round in which b is a member and never hears of it."""
    a, b = settled(talk)
    asked = [talk.ask_join(a), talk.ask_join(b)]
    talk.wait(50)
    talk.joined(asked[0], generation=4, leader=a, roster=[a, b])
    return a, b, asked[1]


def test_C_02_fires_on_a_join_that_is_left_without_an_answer(talk: Conversation) -> None:
    _, b, _ = forgotten_join(talk)
    talk.wait(9_000)
    finding = talk.the("C-02")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert finding.member_id == b.member_id
    assert finding.generation == 4


def test_C_02_gives_the_answer_time(talk: Conversation) -> None:
    a, b, asked = forgotten_join(talk)
    talk.wait(6_000)
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    talk.wait(5_000)
    assert "C-02" not in talk.settled_rules()


def test_C_02_allows_a_superseded_join(talk: Conversation) -> None:
    a, b = settled(talk)
    asked = talk.ask_join(a)
    talk.ask_join(b)
    retry = talk.ask_join(b.reconnected())
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    talk.joined(retry, generation=4, leader=a, roster=[a, b], member_id=b.member_id)
    talk.wait(9_000)
    assert "C-02" not in talk.settled_rules()


def test_C_02_allows_a_join_for_the_next_round(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a, b], 4)
    talk.ask_join(b)
    talk.wait(9_000)
    assert "C-02" not in talk.settled_rules()


def test_C_02_allows_a_join_of_one_who_is_not_among_the_members(talk: Conversation) -> None:
    a, b = settled(talk)
    asked = talk.ask_join(a)
    talk.ask_join(b)
    talk.joined(asked, generation=4, leader=a, roster=[a])
    talk.wait(9_000)
    assert "C-02" not in talk.settled_rules()


def test_C_02_allows_a_static_member_to_come_late(talk: Conversation) -> None:
    """It stays among the members without asking, so its JoinGroup may be for the next round."""
    a, b = static_group(talk, ("a", "b"))
    asked = talk.ask_join(a)
    talk.wait(5_000)
    talk.ask_join(b)
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    talk.wait(9_000)
    assert "C-02" not in talk.settled_rules()


def test_C_02_judges_a_static_member_that_waited_long_before(talk: Conversation) -> None:
    a, b = static_group(talk, ("a", "b"))
    asked = talk.ask_join(a)
    talk.ask_join(b)
    talk.wait(3_000)
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    talk.wait(9_000)
    assert "C-02" in talk.settled_rules()


def test_C_02_fires_when_others_heartbeat_as_if_nobody_had_asked(talk: Conversation) -> None:
    """An unchanged follower of a stable group is answered at once."""
    a, b = settled(talk)
    talk.ask_join(b)
    live(talk, [a], 25)
    assert talk.the("C-02").member_id == b.member_id


def test_C_02_allows_a_join_phase_that_the_others_are_told_of(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(b)
    told_to_rejoin(talk, a, 9)
    assert "C-02" not in talk.settled_rules()


@pytest.mark.parametrize("gone", [False, True])
def test_C_02_allows_a_join_phase_of_which_members_hear_that_wait_themselves(talk: Conversation, *, gone: bool) -> None:
    a, b = settled(talk)
    talk.ask_join(b)
    parked = a.reconnected()
    talk.ask_join(parked)
    told_to_rejoin(talk, a, 9)
    if gone:
        talk.close(parked)
    talk.wait(5_000)
    assert "C-02" not in talk.settled_rules()


def test_C_02_allows_a_join_phase_that_members_hear_of_by_clocks_that_differ(talk: Conversation) -> None:
    """The newest answer was taken for the last that came, so that the one before it looked like a success."""
    a, b, c = settled(talk, ("a", "b", "c"))
    talk.ask_join(b)
    for _ in range(9):
        talk.heartbeat(a, 27)
        talk.now_us -= 4_000
        talk.heartbeat(c, 27)
        talk.now_us += 4_000
        talk.wait(1_000)
    assert "C-02" not in talk.settled_rules()


def test_C_02_allows_a_success_before_the_join_phase_by_a_clock_that_is_ahead() -> None:
    talk = Conversation(clock_skew_ms=100)
    a, b, c = settled(talk, ("a", "b", "c"))
    talk.ask_join(b)
    beat(talk, [c], 9, 27)
    talk.now_us += 60_000
    talk.heartbeat(a)
    talk.wait(2_000)
    assert "C-02" not in talk.settled_rules()


def test_C_02_allows_a_connection_that_ended(talk: Conversation) -> None:
    _, _, asked = forgotten_join(talk)
    talk.close(asked.client)
    talk.wait(9_000)
    assert "C-02" not in talk.settled_rules()


def test_C_02_knows_nothing_after_a_loss(talk: Conversation) -> None:
    forgotten_join(talk)
    talk.gap()
    talk.wait(9_000)
    assert "C-02" not in talk.settled_rules()


def test_C_02_resolves_with_the_answer(talk: Conversation) -> None:
    a, b, asked = forgotten_join(talk)
    talk.wait(9_000)
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    talk.settle()
    assert resolved(talk, "C-02")


# ---------------------------------------------------------------------------------------------------- C-03


def forgotten_sync(talk: Conversation) -> tuple[Client, Client, Asked]:
    a, b = completing_rebalance(talk)
    asked = talk.ask(b, talk.sync_request(b, []))
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    return a, b, asked


def test_C_03_fires_on_a_sync_that_is_left_without_an_answer(talk: Conversation) -> None:
    _, b, _ = forgotten_sync(talk)
    talk.wait(9_000)
    finding = talk.the("C-03")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert finding.member_id == b.member_id


def test_C_03_fires_on_one_asked_when_the_assignment_was_out(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    talk.wait(5_000)
    talk.ask(b, talk.sync_request(b, []))
    talk.wait(6_000)
    assert "C-03" not in talk.settled_rules()
    talk.wait(3_000)
    assert "C-03" in talk.settled_rules()


def test_C_03_waits_for_the_assignment(talk: Conversation) -> None:
    _, b = completing_rebalance(talk)
    talk.ask(b, talk.sync_request(b, []))
    talk.wait(9_000)
    assert "C-03" not in talk.settled_rules()


def test_C_03_allows_one_that_was_repeated_elsewhere(talk: Conversation) -> None:
    _, b, _ = forgotten_sync(talk)
    again = b.reconnected()
    talk.call(again, talk.sync_request(again, []), talk.synced())
    talk.wait(9_000)
    assert "C-03" not in talk.settled_rules()


def test_C_03_allows_that_of_a_member_that_was_removed(talk: Conversation) -> None:
    _, b, _ = forgotten_sync(talk)
    admin = talk.client("admin", member_id=b.member_id)
    talk.leave(admin)
    talk.wait(9_000)
    assert "C-03" not in talk.settled_rules()


def test_C_03_allows_one_at_an_older_generation(talk: Conversation) -> None:
    _, b = settled(talk, generation=4)
    talk.ask(b, talk.sync_request(b, [], generation_id=3))
    talk.wait(9_000)
    assert "C-03" not in talk.settled_rules()


def test_C_03_resolves_with_the_answer(talk: Conversation) -> None:
    _, _, asked = forgotten_sync(talk)
    talk.wait(9_000)
    talk.answer(asked, talk.synced())
    talk.settle()
    assert resolved(talk, "C-03")


# ---------------------------------------------------------------------------------------------------- C-04


def test_C_04_fires_on_the_third_move_within_an_hour(talk: Conversation) -> None:
    clients = settled(talk)
    for move in range(3):
        assert "C-04" not in talk.settled_rules()
        talk.heartbeat(clients[0], 16)
        clients = [one.reconnected(str(move + 2)) for one in clients]
        talk.round(clients, 4 + move)
        live(talk, clients, 60)
    finding = talk.the("C-04")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.BROKER
    assert "3 moves" in finding.summary


def test_C_04_fires_when_find_coordinator_alternates(talk: Conversation) -> None:
    client = talk.client("a", broker="9")
    for turn in range(4):
        talk.find_coordinator(client, node_id=1 + turn % 2, version=4 if turn else 2)
        talk.wait(60_000)
    assert "C-04" in talk.settled_rules()


def alternates(talk: Conversation, times: int, every_ms: float) -> None:
    """FindCoordinator names one broker, then another."""
    client = talk.client("a", broker="9")
    for turn in range(times):
        talk.find_coordinator(client, node_id=1 + turn % 2)
        talk.wait(every_ms)


def test_C_04_fires_on_a_move_without_end(talk: Conversation) -> None:
    alternates(talk, 14, 6_000)
    talk.settle()
    assert "no end of it" in talk.the("C-04").observed


def test_C_04_counts_the_signs_of_one_move_once(talk: Conversation) -> None:
    alternates(talk, 8, 1_000)
    assert "C-04" not in talk.settled_rules()


def test_C_04_allows_two_moves_an_hour(talk: Conversation) -> None:
    alternates(talk, 6, HOUR_MS * 0.6)
    assert "C-04" not in talk.settled_rules()


def test_C_04_takes_a_failed_search_for_no_move(talk: Conversation) -> None:
    client = talk.client("a", broker="9")
    for _ in range(4):
        talk.find_coordinator(client, node_id=1)
        talk.find_coordinator(client, error=15)
        talk.wait(60_000)
    assert "C-04" not in talk.settled_rules()


def test_C_04_resolves_when_it_stays(talk: Conversation) -> None:
    alternates(talk, 4, 60_000)
    talk.wait(60_000)
    assert resolved(talk, "C-04")


# ---------------------------------------------------------------------------------------------------- C-05


def turns(talk: Conversation, one: Client, other: Client, *, every_ms: int = 6_000, times: int = 4) -> None:
    """Two clients commit on two brokers in turns."""
    for turn in range(times):
        talk.commit_offsets((one, other)[turn % 2], {turn: 1}, **SIMPLE)
        talk.wait(every_ms)


def test_C_05_fires_when_two_brokers_act_in_turns(talk: Conversation) -> None:
    turns(talk, talk.client("a", "1"), talk.client("b", "2"))
    talk.settle()
    finding = talk.the("C-05")
    assert finding.severity is Severity.CRITICAL
    assert finding.certainty is Certainty.CONFIRMED
    assert "1" in finding.summary
    assert "2" in finding.summary
    assert talk.rules() == ["C-05"]


def test_C_05_fires_on_members_too(talk: Conversation) -> None:
    a, b = settled(talk)
    x = talk.client("x", "2", member_id="x-1", generation=7)
    for _ in range(3):
        talk.commit_offsets(a, {0: 1})
        talk.heartbeat(b)
        talk.wait(2_000)
        talk.commit_offsets(x, {1: 1})
        talk.wait(2_000)
    assert "C-05" in talk.settled_rules()


def test_C_05_allows_a_failover_and_back(talk: Conversation) -> None:
    turns(talk, talk.client("a", "1"), talk.client("b", "2"), times=3)
    assert "C-05" not in talk.settled_rules()


def test_C_05_needs_an_overlap_of_more_than_the_write_timeout(talk: Conversation) -> None:
    turns(talk, talk.client("a", "1"), talk.client("b", "2"), every_ms=1_000)
    assert "C-05" not in talk.settled_rules()


def test_C_05_allows_turns_when_one_said_that_it_is_not_the_coordinator(talk: Conversation) -> None:
    a, b = talk.client("a", "1"), talk.client("b", "2")
    for _ in range(4):
        turns(talk, a, b, times=2)
        talk.commit(b, 16, **SIMPLE)
    assert "C-05" not in talk.settled_rules()


def test_C_05_allows_turns_on_new_connections(talk: Conversation) -> None:
    """A broker that was restarted has none of its old connections."""
    a, b = talk.client("a", "1"), talk.client("b", "2")
    for _ in range(4):
        turns(talk, a, b, times=2)
        a = a.reconnected()
    assert "C-05" not in talk.settled_rules()


def test_C_05_cannot_order_answers_that_overlap(talk: Conversation) -> None:
    a, b = talk.client("a", "1"), talk.client("b", "2")
    for _ in range(6):
        asked = [talk.ask(one, talk.commit_request(one, {0: 1}, **SIMPLE)) for one in (a, b)]
        for one in asked:
            talk.answer(one, talk.committed({0: 0}))
        talk.wait(3_000)
    assert "C-05" not in talk.settled_rules()


def test_C_05_ignores_what_changes_nothing(talk: Conversation) -> None:
    a, _ = settled(talk)
    x = a.reconnected("2")
    for _ in range(6):
        talk.heartbeat(a)
        talk.wait(2_000)
        talk.heartbeat(x)
        talk.wait(2_000)
    assert "C-05" not in talk.settled_rules()


def test_C_05_knows_nothing_after_a_loss(talk: Conversation) -> None:
    a, b = talk.client("a", "1"), talk.client("b", "2")
    turns(talk, a, b, times=2)
    talk.gap()
    turns(talk, a, b, times=2)
    assert "C-05" not in talk.settled_rules()


def test_C_05_resolves_when_it_stops(talk: Conversation) -> None:
    turns(talk, talk.client("a", "1"), talk.client("b", "2"))
    talk.wait(70_000)
    assert resolved(talk, "C-05")


def test_what_is_kept_of_brokers_and_connections_is_bounded(talk: Conversation) -> None:
    for broker in range(TENURES_KEPT + 2):
        for index in range(CONNECTIONS_KEPT + 2):
            talk.commit_offsets(talk.client(f"c{index}", str(broker)), {0: 1}, **SIMPLE)
    group, _ = talk.model.groups.opened(("c1", "g"))
    assert len(group.coordinator_changes.tenures) == TENURES_KEPT
    assert {len(tenure.connections) for tenure in group.coordinator_changes.tenures.values()} == {CONNECTIONS_KEPT}


# ---------------------------------------------------------------------------------------------------- C-06, C-07


def loads(talk: Conversation, client: Client, seconds: int, *, every_s: int = 5) -> None:
    for _ in range(seconds // every_s + 1):
        talk.refuse_join(talk.ask_join(client), 14)
        talk.wait(every_s * 1_000)


def test_C_06_fires_on_a_load_of_more_than_a_minute(talk: Conversation) -> None:
    loads(talk, talk.client("a"), 65)
    talk.settle()
    finding = talk.the("C-06")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.CERTAIN
    assert finding.blame is Blame.BROKER


def test_C_06_allows_a_minute(talk: Conversation) -> None:
    loads(talk, talk.client("a"), 55)
    assert "C-06" not in talk.settled_rules()


def test_C_06_counts_anew_after_a_pause_and_after_another_answer(talk: Conversation) -> None:
    a = talk.client("a")
    loads(talk, a, 40)
    talk.wait(31_000)
    loads(talk, a, 40)
    talk.hand_out_id(a)
    loads(talk, a, 40)
    assert "C-06" not in talk.settled_rules()


def test_C_06_is_not_ended_by_find_coordinator(talk: Conversation) -> None:
    a = talk.client("a")
    loads(talk, a, 30)
    talk.find_coordinator(a)
    loads(talk, a, 35)
    assert "C-06" in talk.settled_rules()


def test_C_06_knows_nothing_after_a_loss(talk: Conversation) -> None:
    a = talk.client("a")
    loads(talk, a, 40)
    talk.gap()
    loads(talk, a, 40)
    assert "C-06" not in talk.settled_rules()


def test_C_06_resolves_with_another_answer(talk: Conversation) -> None:
    a = talk.client("a")
    loads(talk, a, 65)
    talk.hand_out_id(a)
    talk.settle()
    assert resolved(talk, "C-06")


def test_C_07_notes_a_sync_answered_while_loading_and_warns_when_it_recurs(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.call(a, talk.sync_request(a, []), talk.synced(14))
    assert talk.the("C-07").severity is Severity.INFO
    talk.call(a, talk.sync_request(a, []), talk.synced(14))
    assert talk.the("C-07").severity is Severity.WARNING


def test_C_07_warns_at_once_when_the_client_is_the_java_one(talk: Conversation) -> None:
    a, _ = settled(talk)
    a.software = "apache-kafka-java 3.9.1"
    talk.call(a, talk.sync_request(a, []), talk.synced(14))
    assert talk.the("C-07").severity is Severity.WARNING


def test_C_07_allows_what_older_brokers_answer(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.call(a, talk.sync_request(a, []), talk.synced(27))
    assert "C-07" not in talk.settled_rules()


def test_C_07_folds_under_a_long_load(talk: Conversation) -> None:
    a, _ = settled(talk)
    loads(talk, a, 65)
    talk.call(a, talk.sync_request(a, []), talk.synced(14))
    assert "C-07" not in talk.settled_rules()


def test_C_07_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.call(a, talk.sync_request(a, []), talk.synced(14))
    talk.wait(70_000)
    assert resolved(talk, "C-07")


# ---------------------------------------------------------------------------------------------------- C-08


def test_C_08_fires_on_an_internal_error(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.heartbeat(a, -1)
    finding = talk.the("C-08")
    assert finding.severity is Severity.ERROR
    assert finding.certainty is Certainty.CERTAIN
    assert finding.member_id == a.member_id
    assert f"answered a Heartbeat of member {a.member_id} (client a at" in finding.summary
    said = [evidence.frame for evidence in finding.evidence]
    assert said == [
        f"Heartbeat v4 request member {a.member_id}, generation 3",
        f"Heartbeat v4 answer: UNKNOWN_SERVER_ERROR (to member {a.member_id}, generation 3)",
    ]


@pytest.mark.parametrize("what", ["commit", "leave", "leave of one", "delete", "search", "old search"])
def test_C_08_finds_it_in_every_kind_of_answer(talk: Conversation, what: str) -> None:
    a, _ = settled(talk)
    tool = talk.client("tool")
    if what == "commit":
        talk.commit_offsets(a, {0: 1, 1: 1}, {1: -1})
    elif what == "leave":
        talk.call(a, wire.LeaveGroupRequest(group_id="g"), wire.LeaveGroupResponse(error_code=-1))
    elif what == "leave of one":
        talk.leave(a, -1)
    elif what == "delete":
        results = tuple(wire.DeleteGroupsResponseDeletableGroupResult(group_id=id_, error_code=-1) for id_ in ("g", "h"))
        talk.call(tool, wire.DeleteGroupsRequest(groups_names=("g", "h")), wire.DeleteGroupsResponse(results=results))
    else:
        talk.find_coordinator(tool, error=-1, version=4 if what == "search" else 2)
    asker = {"commit": f"member {a.member_id} (client a at ", "leave": "client a at ", "leave of one": "client a at "}
    assert f" of {asker.get(what, 'client tool at ')}" in talk.the("C-08").summary


@pytest.mark.parametrize("restores", [False, True])
@pytest.mark.parametrize("bytes_each", [40, 600_000])
def test_C_08_is_one_finding_for_a_generation_that_cannot_be_stored(talk: Conversation, bytes_each: int, *, restores: bool) -> None:
    """It was one for each member, and none named the cause."""
    clients = settled(talk)
    for generation in (4, 5):
        asked = [talk.ask_join(client) for client in clients]
        members = tuple(
            wire.JoinGroupResponseMember(member_id=client.member_id, metadata=subscription("t", user_data=b"u" * bytes_each))
            for client in clients
        )
        for one in asked:
            one.client.generation = generation
            leads = one.client is clients[0]
            talk.answer(
                one,
                wire.JoinGroupResponse(
                    generation_id=generation,
                    protocol_type="consumer",
                    protocol_name="range",
                    leader=clients[0].member_id,
                    member_id=one.client.member_id,
                    members=members if leads else (),
                ),
            )
        syncs = [talk.ask(client, talk.sync_request(client, clients if client is clients[0] else [])) for client in clients]
        for one in reversed(syncs):
            talk.answer(one, talk.synced(-1))
            if restores:
                talk.restore()
    finding = talk.the("C-08")
    size = 2 * len(subscription("t", user_data=b"u" * bytes_each))
    assert (finding.member_id, finding.generation, finding.count, finding.severity) == (None, 5, 2, Severity.ERROR)
    assert finding.summary.startswith(
        "Broker 1 answered the SyncGroups of generation 5 of group g with an internal error (UNKNOWN_SERVER_ERROR): the coordinator could "
        "not store the assignment, so no member gets partitions; they join again and fail again, or stop. "
    )
    stored = f"{size:,} bytes of subscriptions and {2 * len(ASSIGNED)} bytes of assignments of 2 members"
    if bytes_each == 40:
        assert finding.summary.endswith(f"A known cause is that the group's record exceeds {LIMIT}. Here it has to hold {stored}.")
        assert (finding.blame, "exception" in finding.action) == (Blame.BROKER, True)
    else:
        assert finding.summary.endswith(f"one record has to hold {stored}, which exceeds {LIMIT}.")
        assert (finding.blame, finding.action.startswith("Make the group's record smaller")) == (Blame.CONFIG, True)


LIMIT = "max.message.bytes of __consumer_offsets (1,048,588 unless it is set)"


def test_C_08_is_one_finding_where_the_sizes_were_not_captured(talk: Conversation) -> None:
    clients = settled(talk)
    talk.gap()
    for client in clients:
        talk.call(client, talk.sync_request(client, []), talk.synced(-1))
    assert len({finding.id for finding in talk.findings if finding.rule == "C-08"}) == 1


def test_C_08_ignores_the_errors_of_other_groups(talk: Conversation) -> None:
    tool = talk.client("tool")
    result = wire.DeleteGroupsResponseDeletableGroupResult(group_id="h", error_code=-1)
    talk.call(tool, wire.DeleteGroupsRequest(groups_names=("g", "h")), wire.DeleteGroupsResponse(results=(result,)))
    assert "C-08" not in talk.settled_rules()


def test_C_08_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.heartbeat(a, -1)
    talk.wait(70_000)
    assert resolved(talk, "C-08")


# ---------------------------------------------------------------------------------------------------- C-09


def test_C_09_fires_when_a_persisted_generation_is_unknown_to_the_new_coordinator(talk: Conversation) -> None:
    clients = fail_over(talk, settled(talk, generation=5))
    talk.round(clients, 4)
    talk.settle()
    finding = talk.the("C-09")
    assert finding.severity is Severity.CRITICAL
    assert finding.certainty is Certainty.HEURISTIC
    assert finding.generation == 4
    assert "5 had been persisted" in finding.summary


def test_C_09_fires_when_the_move_shows_in_the_answer_alone(talk: Conversation) -> None:
    clients = [one.reconnected("2") for one in settled(talk, generation=5)]
    talk.round(clients, 4)
    assert "C-09" in talk.settled_rules()


def test_C_09_believes_the_others_that_are_still_there(talk: Conversation) -> None:
    clients = fail_over(talk, settled(talk, generation=5))
    c = talk.client("c", "2")
    talk.heartbeat(clients[0])
    talk.round([c], 1)
    assert "C-09" in talk.settled_rules()


def test_C_09_allows_a_generation_that_was_not_persisted_to_be_issued_again(talk: Conversation) -> None:
    clients = settled(talk, generation=5)
    talk.join_all(clients, 6)
    clients = fail_over(talk, clients)
    talk.round(clients, 6)
    assert "C-09" not in talk.settled_rules()


def test_C_09_allows_a_group_that_was_deleted(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.leave(a)
    talk.leave(b)
    talk.delete()
    talk.heartbeat(b, 16)
    talk.round([talk.client("c", "2")], 1)
    assert "C-09" not in talk.settled_rules()


def test_C_09_allows_a_group_that_may_have_been_empty(talk: Conversation) -> None:
    clients = settled(talk, generation=5)
    talk.heartbeat(clients[0], 16)
    talk.wait(60_000)
    talk.round([talk.client("c", "2")], 1)
    assert "C-09" not in talk.settled_rules()


def test_C_09_leaves_a_fall_on_one_coordinator_to_G_04(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.round([a, b], 4)
    assert "G-04" in talk.settled_rules()
    assert "C-09" not in talk.settled_rules()


def test_C_09_leaves_a_stale_member_on_one_coordinator_to_G_02(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.round([a, b], 6)
    talk.commit(a, generation_id_or_member_epoch=5)
    assert "G-02" in talk.settled_rules()
    assert "C-09" not in talk.settled_rules()


def test_C_09_allows_an_answer_that_was_under_way(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    asked = talk.ask(a, talk.commit_request(a, {0: 1}))
    other = a.reconnected()
    talk.round([other, b], 6)
    talk.heartbeat(b, 16)
    talk.answer(asked, talk.committed({0: 0}))
    assert "C-09" not in talk.settled_rules()


def test_C_09_knows_nothing_after_a_loss(talk: Conversation) -> None:
    clients = settled(talk, generation=5)
    talk.gap()
    talk.round(fail_over(talk, clients), 4)
    assert "C-09" not in talk.settled_rules()


def test_C_09_leaves_groups_of_the_newer_types_alone(talk: Conversation) -> None:
    clients = settled(talk, generation=5)
    talk.consumer_heartbeat(talk.client("new"))
    talk.round(fail_over(talk, clients), 4)
    assert "C-09" not in talk.settled_rules()


def test_C_09_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    clients = fail_over(talk, settled(talk, generation=5))
    talk.round(clients, 4)
    live(talk, clients, 70)
    assert resolved(talk, "C-09")


# ---------------------------------------------------------------------------------------------------- C-10


def test_C_10_fires_when_three_are_turned_away_within_a_minute(talk: Conversation) -> None:
    for _ in range(3):
        talk.refuse_join(talk.ask_join(talk.client("x")), 81)
        talk.wait(20_000)
    talk.settle()
    finding = talk.the("C-10")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CONFIG


def test_C_10_allows_two_a_minute(talk: Conversation) -> None:
    for _ in range(6):
        talk.refuse_join(talk.ask_join(talk.client("x")), 81)
        talk.wait(31_000)
    assert "C-10" not in talk.settled_rules()


def test_C_10_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    for _ in range(3):
        talk.refuse_join(talk.ask_join(talk.client("x")), 81)
    talk.wait(70_000)
    assert resolved(talk, "C-10")


# ---------------------------------------------------------------------------------------------------- C-11


def mismatched(talk: Conversation, client: Client) -> None:
    asked = ask_heartbeat(talk, client)
    other = Asked(client, asked.api_key, asked.api_version, asked.exchange)
    frame = wire.encode_response(wire.HeartbeatResponse(error_code=22), api_version=4, correlation_id=asked.exchange + 1)
    talk.now_us += 1_000
    client.outstanding -= 1
    talk._feed(Kind.RESPONSE, other, frame)


def test_C_11_fires_on_an_answer_with_another_correlation_id(talk: Conversation) -> None:
    a, _ = settled(talk)
    mismatched(talk, a)
    finding = talk.the("C-11")
    assert finding.severity is Severity.ERROR
    assert finding.certainty is Certainty.CERTAIN
    assert finding.blame is Blame.CAPTURE
    assert a.connection in finding.summary
    assert talk.group_json()["learning"] == "an answer does not belong to its request"


def test_C_11_believes_nothing_that_such_an_answer_says(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a, b], 4)
    old = b.reconnected()
    old.generation = 3
    for _ in range(5):
        mismatched(talk, old)
        talk.wait(3_000)
    assert talk.settled_rules() == ["C-11"]


def test_C_11_allows_negative_correlation_ids(talk: Conversation) -> None:
    a, _ = settled(talk)
    a.exchange = -7
    talk.heartbeat(a)
    assert "C-11" not in talk.settled_rules()


def test_C_11_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, _ = settled(talk)
    mismatched(talk, a)
    talk.wait(70_000)
    assert resolved(talk, "C-11")


# ---------------------------------------------------------------------------------------------------- C-12


def sent_in_a_circle(talk: Conversation, client: Client, times: int, *, node_id: int = 1, every_ms: float = 2_500) -> None:
    for _ in range(times):
        talk.find_coordinator(client, node_id=node_id)
        talk.commit(client, 16, **SIMPLE)
        talk.wait(every_ms)


def test_C_12_fires_when_the_broker_named_again_and_again_refuses(talk: Conversation) -> None:
    sent_in_a_circle(talk, talk.client("a", "1"), 6)
    talk.settle()
    finding = talk.the("C-12")
    assert (finding.severity, finding.certainty) == (Severity.WARNING, Certainty.HEURISTIC)
    assert finding.summary == (
        "FindCoordinator has named broker 1 for group g since 22:13:20, 12.5 s, and that broker says it is not the coordinator."
    )


def test_C_12_allows_a_broker_that_starts_to_refuse_for_some_seconds(talk: Conversation) -> None:
    """Fourteen times within 0.25 s of its start, it named itself and was no coordinator yet: that was never over."""
    sent_in_a_circle(talk, talk.client("a", "1"), 14, every_ms=20)
    talk.wait(9_000)
    sent_in_a_circle(talk, talk.client("b", "1"), 1)
    assert talk.settled_rules() == []


def test_C_12_counts_anew_when_a_steady_group_with_epochs_is_served(talk: Epochs) -> None:
    a = alone(talk, held=foo(0))
    for _ in range(6):
        talk.find_coordinator(a, node_id=1)
        talk.refused(a, 16)
        talk.wait(2_500)
        talk.beats(a)
    assert "C-12" not in talk.settled_rules()


def test_C_12_knows_a_broker_by_its_address_too(talk: Conversation) -> None:
    sent_in_a_circle(talk, talk.client("a", "kafka-1:9092"), 6)
    assert "C-12" in talk.settled_rules()


def test_C_12_allows_refusals_by_a_broker_that_is_not_named(talk: Conversation) -> None:
    sent_in_a_circle(talk, talk.client("a", "1"), 6, node_id=2)
    assert "C-12" not in talk.settled_rules()


def test_C_12_needs_it_to_be_named_again(talk: Conversation) -> None:
    a = talk.client("a", "1")
    talk.find_coordinator(a, node_id=1)
    for _ in range(8):
        talk.commit(a, 16, **SIMPLE)
        talk.wait(2_500)
    assert "C-12" not in talk.settled_rules()


def test_C_12_counts_anew_when_another_is_named_or_it_acts(talk: Conversation) -> None:
    a, b = talk.client("a", "1"), talk.client("b", "2")
    for _ in range(3):
        sent_in_a_circle(talk, a, 3)
        talk.commit(a, **SIMPLE)
    for _ in range(6):
        sent_in_a_circle(talk, a, 1)
        sent_in_a_circle(talk, b, 1, node_id=2)
    assert "C-12" not in talk.settled_rules()


def test_C_12_knows_nothing_after_a_loss(talk: Conversation) -> None:
    a = talk.client("a", "1")
    sent_in_a_circle(talk, a, 4)
    talk.gap()
    for _ in range(4):
        talk.commit(a, 16, **SIMPLE)
        talk.wait(2_500)
    assert "C-12" not in talk.settled_rules()


def test_C_12_resolves_when_it_acts(talk: Conversation) -> None:
    a = talk.client("a", "1")
    sent_in_a_circle(talk, a, 6)
    talk.settle()
    talk.round([a], 1)
    talk.wait(1_000)
    assert resolved(talk, "C-12")


# ---------------------------------------------------------------------------------------------------- C-13


def test_C_13_fires_when_no_coordinator_is_found_for_half_a_minute(talk: Conversation) -> None:
    a = talk.client("a", "9")
    for _ in range(8):
        talk.find_coordinator(a, error=15)
        talk.wait(5_000)
    talk.settle()
    finding = talk.the("C-13")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.ERROR, Certainty.CERTAIN, Blame.BROKER)
    assert f"latest from broker 9 to a FindCoordinator of client a at {a.host}" in finding.summary


def test_C_13_fires_when_commits_cannot_be_written_although_a_coordinator_is_named(talk: Conversation) -> None:
    a, _ = settled(talk)
    for _ in range(8):
        talk.commit(a, 15)
        talk.find_coordinator(a)
        talk.wait(5_000)
    assert "C-13" in talk.settled_rules()


def test_C_13_allows_half_a_minute(talk: Conversation) -> None:
    a = talk.client("a", "9")
    for _ in range(6):
        talk.find_coordinator(a, error=15, version=2)
        talk.wait(5_000)
    assert "C-13" not in talk.settled_rules()


def test_C_13_counts_anew_after_a_success_and_after_a_pause(talk: Conversation) -> None:
    a, _ = settled(talk)
    for _ in range(3):
        for _ in range(4):
            talk.find_coordinator(a, error=15)
            talk.commit(a, 15)
            talk.wait(5_000)
        talk.find_coordinator(a)
        talk.commit(a)
    talk.find_coordinator(a, error=15)
    talk.wait(31_000)
    talk.find_coordinator(a, error=15)
    assert "C-13" not in talk.settled_rules()


def test_C_13_resolves_with_a_success(talk: Conversation) -> None:
    a = talk.client("a", "1")
    for _ in range(8):
        talk.find_coordinator(a, error=15)
        talk.wait(5_000)
    talk.find_coordinator(a)
    talk.round([a], 1)
    talk.wait(1_000)
    assert resolved(talk, "C-13")


# ---------------------------------------------------------------------------------------------------- all of them


def test_a_failover_and_a_rolling_restart_are_silent(talk: Conversation) -> None:
    clients = settled(talk)
    for move, broker in enumerate(("2", "1")):
        talk.heartbeat(clients[0], 16)
        talk.heartbeat(clients[1], 16)
        for one in clients:
            talk.find_coordinator(one, error=15)
        talk.wait(2_000)
        clients = [one.reconnected(broker) for one in clients]
        for one in clients:
            talk.find_coordinator(one, node_id=int(broker))
            talk.refuse_join(talk.ask_join(one), 14)
        talk.wait(2_000)
        talk.round(clients, 4 + move)
        live(talk, clients, 120)
    assert [rule for rule in talk.rules() if rule.startswith("C")] == []


def test_snapshots_at_any_point_give_identical_findings(talk: Conversation) -> None:
    clients = settled(talk, generation=5)
    talk.heartbeat(clients[0], -1)
    clients = fail_over(talk, clients)
    for _ in range(6):
        talk.find_coordinator(clients[0], node_id=1)
        talk.commit(clients[0].reconnected("1"), 16)
        talk.wait(2_500)
    talk.round(clients, 4)
    turns(talk, talk.client("x", "1"), talk.client("y", "2"), times=6)
    for _ in range(8):
        talk.commit(clients[0], 15)
        talk.refuse_join(talk.ask_join(talk.client("z")), 81)
        talk.wait(5_000)
    loads(talk, talk.client("z"), 65)
    mismatched(talk, clients[1])
    ask_heartbeat(talk, clients[0])
    talk.wait(40_000)
    assert {"C-01", "C-05", "C-06", "C-08", "C-09", "C-10", "C-11", "C-12"} <= set(talk.rules())
    assert talk.found_when_restored() == talk.findings


def test_C_02_takes_no_heartbeat_of_a_member_that_waits_itself_for_a_sign_that_no_phase_is_on(talk: Conversation) -> None:
    """Found by a random history: on a connection of its own, a member goes on heartbeating while its JoinGroup waits."""
    a, b = talk.client("a", instance_id="i-a"), talk.client("b", instance_id="i-b")
    talk.round([a, b], 1)
    talk.ask_join(a)
    talk.ask_join(b)
    other = b.reconnected()
    beat(talk, [other], 12, 27)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- C-14


def lost(talk: Conversation) -> list[Client]:
    """Three members whose coordinator has just died."""
    clients = settled(talk, "abc")
    beat(talk, clients, 5)
    for client in clients:
        talk.close(client)
    return clients


def test_C_14_warns_once_of_a_group_that_lost_its_coordinator_and_blames_none_of_its_members(talk: Conversation) -> None:
    """Killed with -9, nobody took over for 12 s, session 10 s: T-04 was said of 24 of 26 live members."""
    clients = lost(talk)
    searching(talk, clients, 15)
    assert talk.rules() == ["C-14"]
    finding = talk.the("C-14")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.CONFIRMED, Blame.BROKER)
    assert finding.summary == (
        "Group g has had no coordinator for more than 5.0 s, since it lost 1 at 22:13:25: its 3 members cannot heartbeat, commit or rejoin; "
        "3 clients ask for a coordinator."
    )
    again = [client.reconnected("2") for client in clients]
    beat(talk, again, 30)
    assert talk.rules() == ["C-14"]
    assert talk.the("C-14").status is Status.RESOLVED
    assert talk.the("C-14").summary == (
        "Group g had no coordinator for 16.0 s after it lost 1 at 22:13:25; 2 answers now, and 3 of its 3 members are back."
    )


@pytest.mark.parametrize(("named", "rules"), [(1, []), (2, ["C-14"])])
def test_C_14_believes_that_a_broker_is_there_which_names_itself_as_coordinator(
    talk: Conversation, named: int, rules: list[str]
) -> None:
    """kafka-go connects anew for each generation; its JoinGroups waited for a member that was killed."""
    clients = lost(talk)
    for client in clients:
        again = client.reconnected("1")
        talk.find_coordinator(again, named)
        talk.ask_join(again)
    talk.wait(6_000)
    assert talk.rules() == rules


def test_C_14_takes_a_held_JoinGroup_for_a_coordinator_where_another_broker_answers_FindCoordinator(talk: Conversation) -> None:
    """kafka-go asks the brokers that it was given for the coordinator, and then opens the connection for the next generation."""
    clients = lost(talk)
    waiting = []
    for client in clients[:2]:
        talk.find_coordinator(talk.client(client.name, "2"), 1)
        waiting.append(client.reconnected("1"))
    asked = [talk.ask_join(client) for client in waiting]
    talk.wait(9_000)
    complete(talk, asked, 4, waiting[0], waiting)
    talk.sync_all(waiting)
    live(talk, waiting, 10)
    assert talk.rules() == []


def test_C_14_and_the_members_that_do_not_come_back_are_told_apart(talk: Conversation) -> None:
    clients = lost(talk)
    searching(talk, clients, 15)
    again = [client.reconnected("1") for client in clients[:2]]
    beat(talk, again, 30)
    assert talk.rules() == ["C-14", "T-04"]
    assert "2 of its 3 members are back" in talk.the("C-14").summary
    assert talk.the("T-04").client_id == "c"


def test_T_04_knows_a_client_that_comes_back_as_another_member_after_the_coordinator_was_lost(talk: Conversation) -> None:
    """Clients of librdkafka do, on a new connection; one was said to have fallen silent, and its partitions to have been idle."""
    clients = lost(talk)
    searching(talk, clients, 15)
    again = [client.reconnected("1") for client in clients]
    again[2].member_id = "c-anew"
    asked = [talk.ask_join(client) for client in again]
    complete(talk, asked, 4, again[0], again)
    talk.sync_all(again)
    live(talk, again, 30)
    assert talk.rules() == ["C-14"]


def test_C_14_allows_a_coordinator_that_is_back_within_half_a_session(talk: Conversation) -> None:
    clients = lost(talk)
    searching(talk, clients, 3)
    again = [client.reconnected("2") for client in clients]
    beat(talk, again, 30)
    assert talk.rules() == []


def test_C_14_notes_that_a_broker_or_all_clients_are_gone(talk: Conversation) -> None:
    lost(talk)
    talk.wait(30_000)
    assert talk.rules() == ["C-14"]
    finding = talk.the("C-14")
    assert (finding.severity, finding.certainty) == (Severity.INFO, Certainty.HEURISTIC)
    assert "that broker is gone, or all of them are" in finding.summary
    assert finding.action.startswith("If these processes were stopped on purpose, nothing. Else: Look at the broker named")


@pytest.mark.parametrize("serves", [True, False])
def test_C_14_calls_no_broker_gone_that_serves_other_groups(talk: Conversation, *, serves: bool) -> None:
    """Two members that were killed made "that broker is gone" of a broker that served twenty other groups, for 16 minutes."""
    talk.group = "h"
    other = talk.client("other")
    talk.round([other], 3)
    talk.group = "g"
    lost(talk)
    for _ in range(30):
        talk.wait(1_000)
        if serves:
            talk.group = "h"
            talk.heartbeat(other)
            talk.group = "g"
    assert ("C-14" in [finding.rule for finding in talk.findings if finding.group == "g"]) is not serves


def test_C_14_does_not_call_a_broker_gone_that_holds_new_requests(talk: Conversation) -> None:
    """Segmentio's kafka-go makes a new connection for each generation, on which its JoinGroup waits for one that was killed."""
    clients = lost(talk)
    talk.wait(100)
    waiting = [client.reconnected("1") for client in clients[:2]]
    asked = [talk.ask_join(client) for client in waiting]
    talk.wait(9_000)
    complete(talk, asked, 4, waiting[0], waiting)
    talk.sync_all(waiting)
    live(talk, waiting, 10)
    assert talk.rules() == []


@pytest.mark.parametrize("addresses", [("1", "1"), ("inside:9092", "outside:9093")], ids=["one listener", "two listeners"])
@pytest.mark.parametrize("restored", [False, True])
def test_C_14_notes_that_a_broker_is_gone_where_each_of_its_groups_has_one_member(
    talk: Conversation, addresses: tuple[str, str], *, restored: bool
) -> None:
    """Their clients were said to have died without leaving, and to have fallen silent, while they waited for their only broker."""
    clients = {}
    for talk.group, address in zip(("g", "h"), addresses, strict=True):
        talk.find_coordinator(client := talk.client(talk.group, address), 1)
        talk.round([client], 3)
        clients[talk.group] = client
    for talk.group, client in clients.items():
        talk.heartbeat(client)
        talk.wait(300)
    for talk.group, client in clients.items():
        talk.close(client)
        talk.wait(500)
    if restored:
        talk.restore()
    talk.wait(30_000)
    assert talk.rules() == ["C-14"]
    told = {finding.group: finding for finding in talk.findings}
    assert {name: finding.severity for name, finding in told.items()} == {"g": Severity.INFO, "h": Severity.INFO}
    assert f"lost its connection to {addresses[0]} together with other groups" in told["g"].summary


def test_C_14_takes_no_notice_of_groups_whose_only_members_end_one_after_the_other(talk: Conversation) -> None:
    clients = {}
    for talk.group in ("g", "h"):
        talk.round([client := talk.client(talk.group)], 3)
        clients[talk.group] = client
    for talk.group, client in clients.items():
        talk.heartbeat(client)
        talk.close(client)
        talk.wait(2_500)
    talk.wait(30_000)
    assert talk.rules() == ["T-09", "T-04"]


def test_C_14_counts_a_member_that_comes_back_after_a_session(talk: Conversation) -> None:
    """It said "2 of its 3 members are back" where the third, of librdkafka, had taken a new id and waited until its old one was evicted."""
    clients = lost(talk)
    searching(talk, clients, 15)
    again = [client.reconnected("2") for client in clients]
    for number in range(30):
        talk.wait(1_000)
        for client in again if number > 10 else again[:2]:
            talk.heartbeat(client)
    assert talk.rules() == ["C-14"]
    assert "2 answers now, and 3 of its 3 members are back" in talk.the("C-14").summary


def test_C_14_is_quiet_about_consumers_that_were_killed_and_started_again(talk: Conversation) -> None:
    """With 8 s between, it said of a group of one that it had had no coordinator for 14 s."""
    one = talk.client("a")
    talk.round([one], 3)
    talk.wait(1_000)
    talk.heartbeat(one)
    talk.close(one)
    talk.wait(8_000)
    again = talk.client("a")
    talk.find_coordinator(again)
    talk.hand_out_id(again)
    asked = talk.ask_join(again)
    talk.wait(3_000)
    talk.joined(asked, generation=4, leader=again, roster=[again])
    talk.sync_all([again])
    beat(talk, [again], 20)
    assert talk.rules() == ["T-09", "T-04"]


def test_C_14_takes_no_notice_of_members_that_left(talk: Conversation) -> None:
    clients = settled(talk)
    for client in clients:
        talk.leave(client)
        talk.close(client)
    searching(talk, clients, 30)
    assert talk.rules() == []


def test_C_14_takes_no_notice_of_the_only_member_that_died_and_comes_back(talk: Conversation) -> None:
    """Its new process asks for the coordinator, which answers it and waits for the session of the old one."""
    talk.round([a := talk.client("a")], 3)
    talk.wait(1_000)
    talk.heartbeat(a)
    talk.close(a)
    again = Client(talk, "a", "1")
    talk.find_coordinator(again)
    talk.hand_out_id(again)
    talk.ask_join(again)
    talk.wait(8_000)
    assert talk.rules() == ["T-09"]
