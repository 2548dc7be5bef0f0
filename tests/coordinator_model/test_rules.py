"""Each rule: what fires it, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model.conversation import Client, Conversation


def settled(talk: Conversation, names: tuple[str, ...] = ("a", "b"), generation: int = 3) -> list[Client]:
    """A stable group whose membership is known."""
    clients = [talk.client(name) for name in names]
    talk.round(clients, generation)
    return clients


def live(talk: Conversation, clients: list[Client], seconds: int) -> None:
    for _ in range(seconds):
        for client in clients:
            talk.heartbeat(client)
        talk.wait(1_000)


def test_lawful_life_is_silent(talk: Conversation) -> None:
    a, b = settled(talk, generation=1)
    live(talk, [a, b], 30)
    c = talk.client("c")
    talk.hand_out_id(c)
    newcomer = talk.ask_join(c)
    talk.heartbeat(a, 27)
    talk.heartbeat(b, 27)
    again = [talk.ask_join(a), talk.ask_join(b)]
    for asked in (*again, newcomer):
        talk.joined(asked, generation=2, leader=a, roster=[a, b, c])
    talk.sync_all([a, b, c])
    live(talk, [a, b, c], 30)
    talk.leave(c)
    talk.heartbeat(a, 27)
    talk.heartbeat(b, 27)
    talk.round([a, b], 3)
    live(talk, [a, b], 30)
    talk.leave(a)
    talk.heartbeat(b, 27)
    talk.round([b], 4)
    talk.leave(b)
    talk.wait(120_000)
    assert talk.findings == []
    assert talk.group_json()["state"] == "Empty"


# ---------------------------------------------------------------------------------------------------- G-01


def zombie(talk: Conversation, client: Client, error: int, times: int = 5, every_ms: int = 3_000) -> None:
    for _ in range(times):
        talk.heartbeat(client, error)
        talk.wait(every_ms)


def beside(talk: Conversation, living: Client, client: Client, error: int) -> None:
    """A zombie beside a member that lives."""
    for _ in range(5):
        talk.heartbeat(living)
        zombie(talk, client, error, times=1)
    talk.settle()


def left_behind(talk: Conversation) -> Client:
    """A client that still heartbeats at generation 3, while its own member id is at 4."""
    a, b = settled(talk)
    talk.round([a, b], 4)
    old = b.reconnected()
    old.generation = 3
    return old


def test_G_01_fires_on_a_member_that_ignores_illegal_generation(talk: Conversation) -> None:
    old = left_behind(talk)
    zombie(talk, old, 22)
    finding = talk.the("G-01")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.CLIENT
    assert finding.certainty is Certainty.HEURISTIC
    assert finding.member_id == old.member_id
    assert finding.client_id == "b"
    assert finding.generation == 3
    assert "generation 3" in finding.summary
    assert "generation 4" in finding.summary
    assert [evidence.frame for evidence in finding.evidence if "ILLEGAL_GENERATION" in evidence.frame]


def test_G_01_waits_for_three_refusals_over_ten_seconds(talk: Conversation) -> None:
    old = left_behind(talk)
    for _ in range(12):
        talk.heartbeat(old, 22)
        talk.wait(500)
    talk.settle()
    assert talk.rules() == []


def test_G_01_waits_for_two_of_the_members_own_heartbeat_intervals(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(3):
        talk.wait(8_000)
        talk.heartbeat(a)
        talk.heartbeat(b)
    talk.round([a, b], 4)
    old = b.reconnected()
    old.generation = 3
    for _ in range(3):
        talk.heartbeat(old, 22)
        talk.wait(6_000)
    talk.settle()
    assert talk.rules() == ["T-04"]


def test_G_01_is_reset_by_a_join_in_between(talk: Conversation) -> None:
    old = left_behind(talk)
    zombie(talk, old, 22, times=3)
    talk.ask_join(old)
    zombie(talk, old, 22, times=3)
    talk.settle()
    assert talk.rules() == ["T-04"]


def test_G_01_needs_proof_of_a_higher_generation(talk: Conversation) -> None:
    a, _ = settled(talk)
    old = a.reconnected()
    old.generation = 7
    zombie(talk, old, 22)
    talk.settle()
    assert talk.rules() == ["G-07", "T-04"]


def test_G_01_gives_an_absent_static_member_its_rebalance_timeout(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    b.instance_id = "i"
    talk.round([a, b], 3)
    asked = talk.ask_join(a)
    talk.wait(1_000)
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    talk.sync_all([a])
    zombie(talk, b, 22, times=5)
    assert talk.rules() == ["R-11", "T-04"]
    zombie(talk, b, 22, times=5)
    talk.settle()
    assert "R-11" in talk.rules()  # which is the cause that G-01 folds under


def test_G_01_resolves_when_the_member_joins(talk: Conversation) -> None:
    old = left_behind(talk)
    zombie(talk, old, 22)
    asked = talk.ask_join(old)
    talk.joined(asked, generation=4, leader=old, roster=[old])
    talk.wait(2_000)
    assert talk.the("G-01").status is Status.RESOLVED


def test_G_01_resolves_when_it_stops(talk: Conversation) -> None:
    old = left_behind(talk)
    zombie(talk, old, 22)
    talk.wait(90_000)
    assert talk.the("G-01").status is Status.RESOLVED


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
    talk.settle()
    assert talk.rules() == ["G-02", "O-02"]
    other = Conversation()
    old = left_behind(other)
    other.call(old, other.sync_request(old, []), other.synced())
    other.settle()
    assert other.rules() == ["G-02"]


def test_G_02_counts_a_heartbeat_told_to_rejoin_from_brokers_that_validate_first(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.heartbeat(old, 27, version=2)
    talk.settle()
    assert talk.rules() == []
    talk.heartbeat(old, 27, version=3)
    talk.settle()
    assert talk.rules() == ["G-02"]


def test_G_02_allows_a_request_that_was_under_way_when_the_round_completed(talk: Conversation) -> None:
    a, b = settled(talk)
    body = b_heartbeat(talk, b)
    pending = talk.ask(b, body)
    other = b.reconnected()
    asked = [talk.ask_join(a), talk.ask_join(other)]
    for one in asked:
        talk.joined(one, generation=4, leader=a, roster=[a, b])
    talk.answer(pending, heartbeat_ok())
    talk.settle()
    assert talk.rules() == []


def test_G_02_takes_a_request_queued_behind_a_parked_one_as_asked_when_that_was_answered(talk: Conversation) -> None:
    a, b = settled(talk)
    parked = [talk.ask_join(a), talk.ask_join(b)]
    queued = talk.ask(b, b_heartbeat(talk, b))
    for one in parked:
        talk.joined(one, generation=4, leader=a, roster=[a, b])
    talk.answer(queued, heartbeat_refused())
    talk.settle()
    assert talk.rules() == []


def test_G_02_ignores_heartbeats_while_the_broker_says_it_loads(talk: Conversation) -> None:
    old = left_behind(talk)
    a = talk.client("x")
    talk.refuse_join(talk.ask_join(a), 14)
    talk.heartbeat(old)
    talk.settle()
    assert talk.rules() == []


def test_G_02_does_not_compare_across_a_failover(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.heartbeat(old, 16)
    moved = old.reconnected(broker="2")
    talk.heartbeat(moved)
    talk.settle()
    assert talk.rules() == []


def test_G_02_ignores_a_commit_whose_partitions_never_reached_the_coordinator(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.commit(old, 3)
    talk.settle()
    assert talk.rules() == []


def test_G_02_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    old = left_behind(talk)
    talk.heartbeat(old)
    talk.wait(90_000)
    assert talk.the("G-02").status is Status.RESOLVED


def b_heartbeat(talk: Conversation, client: Client):
    from coordinator_model import wire

    return wire.HeartbeatRequest(
        group_id=talk.group, generation_id=client.generation, member_id=client.member_id, group_instance_id=client.instance_id
    )


def heartbeat_ok():
    from coordinator_model import wire

    return wire.HeartbeatResponse(error_code=0)


def heartbeat_refused():
    from coordinator_model import wire

    return wire.HeartbeatResponse(error_code=22)


# ---------------------------------------------------------------------------------------------------- G-04, G-05


def test_G_04_fires_when_the_generation_falls_under_a_living_member(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.round([a, b], 3)
    talk.settle()
    finding = talk.the("G-04")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert "from generation 5 to 3" in finding.summary
    assert "it needs the group's generation (J22, J25, J27): generation 5 was handed out" in finding.observed


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
    for one in asked:
        talk.joined(one, generation=7, leader=a, roster=[a, b])
    talk.joined(late, generation=6, leader=a, roster=[a, b])
    talk.settle()
    assert talk.rules() == []


def test_G_04_allows_a_failover_to_reissue(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.heartbeat(a, 16)
    a, b = a.reconnected("2"), b.reconnected("2")
    talk.round([a, b], 5)
    talk.round([a, b], 4)  # and only within the new incarnation is this a fall
    talk.settle()
    assert talk.rules() == ["G-04"]


def test_G_05_documents_a_reset_after_deletion(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.leave(a)
    talk.leave(b)
    admin = talk.client("admin")
    result = wire.DeleteGroupsResponseDeletableGroupResult(group_id="g", error_code=0)
    talk.call(admin, wire.DeleteGroupsRequest(groups_names=("g",)), wire.DeleteGroupsResponse(results=(result,)))
    talk.round([talk.client("c")], 1)
    talk.settle()
    assert talk.rules() == ["G-05"]
    assert "deleted" in talk.the("G-05").summary


def test_G_05_documents_a_reset_of_a_group_that_may_have_expired_empty(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.leave(a)
    talk.leave(b)
    talk.wait(700_000)
    talk.round([talk.client("c")], 1)
    talk.settle()
    assert talk.rules() == ["G-05"]
    assert talk.the("G-05").severity is Severity.INFO


def test_G_05_does_not_excuse_a_deletion_before_the_later_generation(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    talk.leave(a)
    talk.leave(b)
    result = wire.DeleteGroupsResponseDeletableGroupResult(group_id="g", error_code=0)
    request, reply = wire.DeleteGroupsRequest(groups_names=("g",)), wire.DeleteGroupsResponse(results=(result,))
    talk.call(talk.client("admin"), request, reply)
    talk.wait(1_000)
    a, b = settled(talk, generation=7)
    talk.round([a, b], 6)
    talk.settle()
    assert "G-04" in talk.rules()
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


# ---------------------------------------------------------------------------------------------------- M


def test_M_01_fires_on_an_evicted_member_that_goes_on(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a], 4)
    zombie(talk, b, 25)
    finding = talk.the("M-01")
    assert finding.member_id == b.member_id
    assert finding.severity is Severity.WARNING
    beside(talk, a, b, 25)
    assert talk.the("M-01").severity is Severity.ERROR


def test_M_01_is_no_error_before_the_rebalance_timeout_has_passed(talk: Conversation) -> None:
    """The application of a starved machine polls again after 50 s, and rejoins then, as it may."""
    a, b = settled(talk)
    talk.joined(talk.ask_join(b, rebalance_timeout_ms=60_000), generation=4, leader=b, roster=[b])
    talk.joined(talk.ask_join(a), generation=5, leader=a, roster=[a])
    for _ in range(4):
        beside(talk, a, b, 25)
    assert talk.the("M-01").severity is Severity.WARNING
    for _ in range(2):
        beside(talk, a, b, 25)
    assert talk.the("M-01").severity is Severity.ERROR


def test_M_01_does_not_add_up_refusals_in_two_generations(talk: Conversation) -> None:
    """Each is too few and too short by itself: the member joined in between."""
    a, b = settled(talk)
    talk.round([a], 4)
    zombie(talk, b, 25, times=2, every_ms=3_000)
    talk.round([a, b], 5)
    talk.round([a], 6)
    zombie(talk, b, 25, times=2, every_ms=3_000)
    talk.settle()
    assert "M-01" not in talk.rules()


def test_M_01_allows_refusals_around_its_own_leave(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.leave(b)
    zombie(talk, b, 25, times=8, every_ms=700)
    talk.settle()
    assert talk.rules() == []


def test_M_01_fires_on_a_member_that_goes_on_after_its_own_leave(talk: Conversation) -> None:
    """A zombie that had once sent LeaveGroup, after a poll timeout, was never reported."""
    a, b = settled(talk)
    talk.leave(b, reason="consumer poll timeout has expired.")
    talk.round([a], 4)
    beside(talk, a, b, 25)
    assert talk.rules() == ["T-05", "M-01"]


def test_M_01_fires_on_a_member_whose_leave_was_refused_by_a_coordinator_that_moved(talk: Conversation) -> None:
    a, b = settled(talk)
    identity = wire.LeaveGroupRequestMemberIdentity(member_id=b.member_id)
    talk.call(b, wire.LeaveGroupRequest(group_id="g", members=(identity,)), wire.LeaveGroupResponse(error_code=16))
    a, b = a.reconnected("2"), b.reconnected("2")
    talk.round([a], 4)
    beside(talk, a, b, 25)
    assert talk.rules() == ["M-01"]


def test_M_01_allows_a_recovery_within_ten_seconds(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a], 4)
    zombie(talk, b, 25, times=8, every_ms=700)
    b.member_id = ""
    talk.round([a, b], 5)
    talk.settle()
    assert talk.rules() == []


def test_M_01_resolves_when_the_member_joins(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a], 4)
    zombie(talk, b, 25)
    talk.refuse_join(talk.ask_join(b), 25, b.member_id)
    talk.wait(2_000)
    assert talk.the("M-01").status is Status.RESOLVED


def test_M_02_fires_when_a_stranger_is_accepted(talk: Conversation) -> None:
    settled(talk)
    stranger = talk.client("s")
    stranger.member_id, stranger.generation = "stranger", 3
    talk.heartbeat(stranger)
    talk.settle()
    finding = talk.the("M-02")
    assert finding.severity is Severity.CRITICAL
    assert finding.member_id == "stranger"


def test_M_02_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk)
    stranger = talk.client("s")
    stranger.member_id, stranger.generation = "stranger", 3
    talk.heartbeat(stranger)
    live(talk, [a, b], 50)
    assert talk.the("M-02").status is Status.OPEN
    live(talk, [a, b], 15)
    assert talk.the("M-02").status is Status.RESOLVED


def test_M_02_needs_the_full_roster(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    a.member_id, b.member_id = "m-a", "m-b"
    asked = talk.ask_join(b)
    talk.joined(asked, generation=3, leader=a, roster=[])
    stranger = talk.client("s")
    stranger.member_id, stranger.generation = "stranger", 3
    talk.heartbeat(stranger)
    talk.settle()
    assert talk.rules() == []


def test_M_02_knows_a_static_member_that_replaced_another(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    b.instance_id = "i"
    talk.round([a, b], 3)
    talk.close(b)
    new = talk.client("b")
    new.instance_id = "i"
    talk.joined(talk.ask_join(new), generation=3, leader=a, roster=[], member_id="i-new")
    talk.call(new, talk.sync_request(new, []), talk.synced())
    live(talk, [a, new], 5)
    assert talk.rules() == []


def test_M_02_waits_for_a_new_roster_after_lost_records(talk: Conversation) -> None:
    settled(talk)
    talk.lose(5)
    stranger = talk.client("s")
    stranger.member_id, stranger.generation = "stranger", 3
    talk.heartbeat(stranger)
    talk.settle()
    assert talk.rules() == ["V-01"]


def test_M_08_fires_when_the_answer_names_another_member(talk: Conversation) -> None:
    a, b = settled(talk)
    asked = talk.ask_join(b)
    own = b.member_id
    talk.joined(asked, generation=4, leader=a, roster=[], member_id=a.member_id)
    finding = talk.the("M-08")
    assert finding.member_id == own
    assert a.member_id in finding.summary
    talk.wait(61_000)
    assert talk.the("M-08").status is Status.RESOLVED


def test_M_08_allows_a_new_id_for_one_that_named_none(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    b.instance_id = "i"
    talk.round([a, b], 3)
    successor = b.reconnected()
    successor.member_id = ""
    talk.joined(talk.ask_join(successor), generation=3, leader=a, roster=[], member_id="m-new")
    talk.settle()
    assert talk.rules() == []


def test_M_08_allows_an_error_that_names_another_member(talk: Conversation) -> None:
    """What an error carries beside its code means nothing; brokers echo whatever they were asked with."""
    a, b = settled(talk)
    talk.refuse_join(talk.ask_join(b), 25, a.member_id)
    talk.settle()
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- S


def replace(talk: Conversation, leader: Client, name: str) -> Client:
    """A process takes over instance id i."""
    client = talk.client(name)
    client.instance_id = "i"
    talk.joined(talk.ask_join(client), generation=3, leader=leader, roster=[], member_id=f"i-{client.connection}")
    talk.call(client, talk.sync_request(client, []), talk.synced())
    return client


def static_group(talk: Conversation) -> tuple[Client, Client]:
    leader, first = talk.client("lead"), talk.client("one")
    first.instance_id = "i"
    talk.round([leader, first], 3)
    return leader, first


BOTH_CAUSES = "Either a second process was started while the first still ran, or one group.instance.id is configured for two."


def test_S_01_fires_when_two_processes_fence_each_other(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    talk.close(first)
    talk.wait(1_000)
    replace(talk, leader, "one")
    talk.heartbeat(second, 82)
    talk.settle()
    finding = talk.the("S-01")
    assert finding.severity is Severity.ERROR
    assert finding.instance_id == "i"
    assert "one at" in finding.summary
    assert "two at" in finding.summary
    assert BOTH_CAUSES in finding.summary


def test_S_01_names_each_process_once_however_often_it_reconnected(talk: Conversation) -> None:
    leader, current = static_group(talk)
    for name in ("two", "one", "two", "one"):
        other = replace(talk, leader, name)
        talk.heartbeat(current, 82)
        talk.wait(1_000)
        current = other
    talk.settle()
    summary = talk.the("S-01").summary
    assert (summary.count("one at 10.0.0.1:"), summary.count("two at 10.0.0.1:")) == (1, 1), summary


def test_S_01_tells_two_processes_of_one_client_id_and_host_apart_by_their_ports(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "one")
    talk.heartbeat(first, 82)
    talk.wait(1_000)
    third = replace(talk, leader, "one")
    talk.heartbeat(second, 82)
    talk.settle()
    summary = talk.the("S-01").summary
    assert f"one at {second.host}:{second.port} and one at {third.host}:{third.port}" in summary


def test_S_01_allows_a_restart(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.close(first)
    talk.wait(2_000)
    second = replace(talk, leader, "one")
    live(talk, [leader, second], 20)
    assert talk.rules() == []


def test_S_01_allows_a_crash_loop_whose_losers_are_dead(talk: Conversation) -> None:
    leader, current = static_group(talk)
    for _ in range(6):
        talk.close(current)
        talk.wait(1_500)
        talk.heartbeat(leader)
        current = replace(talk, leader, "one")
    talk.settle()
    assert talk.rules() == ["M-13"]


def test_S_01_allows_an_overlapping_restart_with_one_loser(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    talk.close(first)
    live(talk, [leader, second], 20)
    assert talk.rules() == []


def test_S_01_resolves_when_only_one_is_left(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    third = replace(talk, leader, "one")
    talk.heartbeat(second, 82)
    live(talk, [leader, third], 90)
    assert talk.the("S-01").status is Status.RESOLVED


def test_S_02_fires_on_a_fenced_member_that_goes_on(talk: Conversation) -> None:
    leader, first = static_group(talk)
    replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    talk.wait(3_000)
    talk.heartbeat(first, 82)
    talk.commit(first, 82)
    talk.settle()
    finding = talk.the("S-02")
    assert finding.member_id == first.member_id
    assert finding.client_id == "one"
    assert f"client one at {first.host}:{first.port}" in finding.summary
    assert "client two at 10.0.0.1:" in finding.summary
    assert BOTH_CAUSES in finding.summary


def test_S_02_allows_requests_that_were_queued_when_it_was_fenced(talk: Conversation) -> None:
    leader, first = static_group(talk)
    replace(talk, leader, "two")
    queued = [talk.ask(first, b_heartbeat(talk, first)) for _ in range(4)]
    from coordinator_model import wire

    for one in queued:
        talk.answer(one, wire.HeartbeatResponse(error_code=82))
    talk.settle()
    assert talk.rules() == []


def test_S_02_allows_a_leave(talk: Conversation) -> None:
    leader, first = static_group(talk)
    replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    talk.wait(3_000)
    talk.leave(first, 82)
    talk.leave(first, 82)
    talk.settle()
    assert talk.rules() == ["M-10"]


# ---------------------------------------------------------------------------------------------------- R


def test_R_01_warns_at_half_time_and_names_the_missing(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.hand_out_id(a)
    talk.hand_out_id(b)
    for asked in (talk.ask_join(a, session_timeout_ms=60_000), talk.ask_join(b, session_timeout_ms=60_000)):
        talk.joined(asked, generation=3, leader=a, roster=[a, b])
    talk.sync_all([a, b])
    talk.ask_join(a)
    talk.wait(15_000)
    finding = talk.the("R-01")
    assert finding.severity is Severity.WARNING
    assert finding.member_id == b.member_id
    assert b.member_id in finding.summary


def test_R_01_becomes_an_error_past_the_rebalance_timeout(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.ask_join(a)
    talk.wait(26_000)
    assert talk.the("R-01").severity is Severity.ERROR
    assert talk.the("R-01").certainty is Certainty.CONFIRMED


def test_R_01_guesses_twice_the_timeout_while_learning(talk: Conversation) -> None:
    a = talk.client("a")
    a.member_id = "m-a"
    talk.ask_join(a)
    talk.wait(24_000)
    assert talk.rules() == []
    talk.wait(4_000)
    assert talk.the("R-01").certainty is Certainty.HEURISTIC


def test_R_01_does_not_wait_for_a_superseded_join(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    again = a.reconnected()
    asked = [talk.ask_join(again), talk.ask_join(b)]
    for one in asked:
        talk.joined(one, generation=4, leader=a, roster=[a, b])
    talk.sync_all([again, b])
    live(talk, [again, b], 60)
    assert talk.rules() == []


def test_R_01_does_not_wait_for_a_join_on_a_closed_connection(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    talk.close(a)
    live(talk, [b], 40)
    assert talk.rules() == []


def test_R_01_takes_an_unbounded_timeout_as_ten_minutes_and_only_warns(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.hand_out_id(a)
    talk.hand_out_id(b)
    for client in (a, b):
        asked = talk.ask_join(client, rebalance_timeout_ms=2**31 - 1)
        talk.joined(asked, generation=3, leader=a, roster=[a, b])
    talk.sync_all([a, b])
    talk.ask_join(a, rebalance_timeout_ms=2**31 - 1)
    talk.wait(590_000)
    assert "R-01" not in talk.rules()
    talk.wait(310_000)
    assert talk.the("R-01").severity is Severity.WARNING
    assert "600.0 s, assumed since the members' own timeouts are longer" in talk.the("R-01").summary


def test_R_01_resolves_when_the_phase_ends(talk: Conversation) -> None:
    a, b = settled(talk)
    asked = talk.ask_join(a)
    talk.wait(15_000)
    talk.joined(asked, generation=4, leader=a, roster=[a])
    talk.sync_all([a])
    talk.wait(1_000)
    assert talk.the("R-01").status is Status.RESOLVED
    assert b.member_id not in talk.group_json()["waits_for"]


def test_R_02_warns_at_half_time_and_names_the_leader(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.join_all([a, b], 3)
    waiting = talk.ask(b, talk.sync_request(b, []))
    for _ in range(11):
        talk.heartbeat(a)
        talk.wait(1_000)
    finding = talk.the("R-02")
    assert finding.severity is Severity.WARNING
    assert finding.client_id == "a"
    talk.answer(waiting, talk.synced(27))
    talk.round([b], 4)
    talk.wait(1_000)
    assert talk.the("R-02").status is Status.RESOLVED


def test_R_02_becomes_an_error_past_the_timeout(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.join_all([a, b], 3)
    talk.ask(b, talk.sync_request(b, []))
    for _ in range(26):
        talk.heartbeat(a)
        talk.wait(1_000)
    assert talk.the("R-02").severity is Severity.ERROR


def test_R_02_is_no_matter_of_a_leader_whose_connection_ended(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.join_all([a, b], 3)
    talk.ask(b, talk.sync_request(b, []))
    talk.close(a)
    talk.wait(11_500)
    assert talk.rules() == ["T-09"]


def test_R_03_warns_about_a_follower_that_does_not_sync(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.join_all([a, b], 3)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    for _ in range(12):
        talk.heartbeat(a)
        talk.heartbeat(b)
        talk.wait(1_000)
    finding = talk.the("R-03")
    assert finding.client_id == "b"
    assert finding.severity is Severity.WARNING
    talk.call(b, talk.sync_request(b, []), talk.synced())
    talk.wait(1_000)
    assert talk.the("R-03").status is Status.RESOLVED


@pytest.mark.parametrize("instead", ["hangs up", "joins again"])
def test_R_03_allows_a_follower_that_does_something_else(talk: Conversation, instead: str) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.join_all([a, b], 3)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    if instead == "hangs up":
        talk.close(b)
    else:
        talk.ask_join(b.reconnected())
    for _ in range(30):
        talk.heartbeat(a)
        talk.wait(1_000)
    assert "R-03" not in talk.rules()


def test_R_04_fires_when_the_assignment_is_sent_and_nobody_is_answered(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.join_all([a, b], 3)
    waiting = [talk.ask(b, talk.sync_request(b, [])), talk.ask(a, talk.sync_request(a, [a, b]))]
    talk.wait(9_000)
    assert talk.the("R-04").blame is Blame.BROKER
    for one in waiting:
        talk.answer(one, talk.synced())
    talk.wait(1_000)
    assert talk.the("R-04").status is Status.RESOLVED


def test_R_04_owes_nothing_to_closed_connections(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.join_all([a, b], 3)
    talk.ask(a, talk.sync_request(a, [a, b]))
    talk.close(a)
    talk.wait(9_000)
    assert talk.rules() == []


def told_to_rejoin(talk: Conversation, client: Client, seconds: int) -> None:
    for _ in range(seconds):
        talk.heartbeat(client, 27)
        talk.wait(1_000)


def test_R_08_warns_at_half_the_rebalance_timeout_and_names_the_member(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    told_to_rejoin(talk, b, 12)
    finding = talk.the("R-08")
    assert finding.severity is Severity.WARNING
    assert finding.client_id == "b"
    assert "1 other waits" in finding.summary
    assert talk.rules() == ["R-08"]


def test_R_08_becomes_an_error_past_the_rebalance_timeout(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    told_to_rejoin(talk, b, 23)
    assert talk.the("R-08").severity is Severity.WARNING, "a timer may be late by 2 s and a tenth"
    told_to_rejoin(talk, b, 4)
    assert talk.the("R-08").severity is Severity.ERROR


def test_R_08_names_the_largest_timeout_of_the_group_and_what_becomes_of_a_static_member(talk: Conversation) -> None:
    """The coordinator dropped it after 6 s, it said: the others' 60 s counted, and a static member stays."""
    a, b = talk.client("a"), talk.client("b")
    b.instance_id = "i-b"
    talk.hand_out_id(a)
    asked = [talk.ask_join(a, rebalance_timeout_ms=60_000), talk.ask_join(b, rebalance_timeout_ms=6_000)]
    b.member_id = "i-b-1"
    for one in asked:
        talk.joined(one, generation=3, leader=a, roster=[a, b])
    talk.sync_all([a, b])
    live(talk, [a, b], 3)
    talk.ask_join(a, rebalance_timeout_ms=60_000)
    told_to_rejoin(talk, b, 20)
    assert talk.rules() == ["P-10", "R-18"]
    told_to_rejoin(talk, b, 15)
    finding = talk.the("R-08")
    assert finding.severity is Severity.WARNING
    assert "waits for up to 60.0 s, the largest rebalance timeout of the members, and then goes on without it" in finding.summary
    assert "keeps the place of instance i-b" in finding.summary


def test_R_08_is_quiet_while_the_join_is_under_way(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    other = b.reconnected()
    talk.ask_join(other)
    told_to_rejoin(talk, b, 12)
    assert talk.rules() == []


def test_R_08_resolves_when_the_member_rejoins(talk: Conversation) -> None:
    a, b = settled(talk)
    parked = talk.ask_join(a)
    told_to_rejoin(talk, b, 12)
    again = talk.ask_join(b)
    for one in (parked, again):
        talk.joined(one, generation=4, leader=a, roster=[a, b])
    talk.sync_all([a, b])
    talk.wait(1_000)
    assert talk.the("R-08").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- T


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
    identity = wire.LeaveGroupRequestMemberIdentity(member_id=b.member_id)
    talk.call(b.reconnected("2"), wire.LeaveGroupRequest(group_id="g", members=(identity,)), wire.LeaveGroupResponse(error_code=16))
    live(talk, [a, b], 5)
    live(talk, [a], 16)
    assert talk.rules() == ["T-04"]


def test_T_04_fires_on_a_member_that_was_served_after_its_leave(talk: Conversation) -> None:
    """The answer to its LeaveGroup was never captured: the coordinator had not got it."""
    a, b = settled(talk)
    other = b.reconnected()
    talk.ask(other, wire.LeaveGroupRequest(group_id="g", members=(wire.LeaveGroupRequestMemberIdentity(member_id=b.member_id),)))
    talk.close(other)
    live(talk, [a, b], 5)
    live(talk, [a], 16)
    assert talk.rules() == ["T-04"]


@pytest.mark.parametrize(("served_s", "said"), [(2, []), (4, ["T-04"])])
def test_T_04_takes_a_member_for_served_after_its_leave_beyond_the_clocks_difference(served_s: int, said: list[str]) -> None:
    talk = Conversation(clock_skew_ms=2_000)
    a, b = settled(talk)
    other = b.reconnected()
    talk.ask(other, wire.LeaveGroupRequest(group_id="g", members=(wire.LeaveGroupRequestMemberIdentity(member_id=b.member_id),)))
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
    identity = wire.LeaveGroupRequestMemberIdentity(member_id=b.member_id)
    leave = talk.ask(b, wire.LeaveGroupRequest(group_id="g", members=(identity,)))
    talk.joined(follower, generation=4, leader=a, roster=[])
    talk.ask(b, talk.sync_request(b, []))
    outcome = wire.LeaveGroupResponseMemberResponse(member_id=b.member_id)
    talk.answer(leave, wire.LeaveGroupResponse(members=(outcome,)))
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
