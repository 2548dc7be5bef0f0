"""Family S; each rule: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.groups.protocol.classic import TABLE
from coordinator_model.groups.protocol.table import Effect
from tests.cells import Change, changed_table
from tests.coordinator_model.classic import ask_heartbeat, complete, live, replace, static_group, told_to_rejoin
from tests.coordinator_model.conversation import SUBSCRIBED, Asked, Client, Conversation, assignment
from tests.coordinator_model.rules.coordinators import fail_over


def static(talk: Conversation, name: str, instance_id: str = "i") -> Client:
    return talk.client(name, instance_id=instance_id)


def replaced(talk: Conversation, asked: Asked, leader: Client, *, generation: int = 3, leader_id: str | None = None) -> Client:
    """The coordinator's answer to a static member that comes back within a generation."""
    client = asked.client
    client.member_id, client.generation = f"i-{client.connection}", generation
    talk.answer(
        asked,
        wire.JoinGroupResponse(
            error_code=0,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name="range",
            leader=leader_id or leader.member_id,
            member_id=client.member_id,
        ),
    )
    return client


# ---------------------------------------------------------------------------------------------------- S-01, S-02


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
    assert (finding.instance_id, finding.client_id) == ("i", None)
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
    assert talk.settled_rules() == ["M-13"]


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
    queued = [ask_heartbeat(talk, first) for _ in range(4)]
    for one in queued:
        talk.answer(one, wire.HeartbeatResponse(error_code=82))
    assert talk.settled_rules() == []


def test_S_02_allows_a_leave(talk: Conversation) -> None:
    leader, first = static_group(talk)
    replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    talk.wait(3_000)
    talk.leave(first, 82)
    talk.leave(first, 82)
    assert talk.settled_rules() == ["M-10"]


# ---------------------------------------------------------------------------------------------------- S-01, S-02: their guards


def test_S_01_allows_two_restarts_of_which_the_first_overlapped(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "one")
    talk.heartbeat(first, 82)
    talk.close(first)
    live(talk, [leader, second], 30)
    talk.close(second)
    third = replace(talk, leader, "one")
    live(talk, [leader, third], 5)
    assert talk.rules() == []


def test_S_01_allows_a_crash_loop_of_which_one_restart_overlapped(talk: Conversation) -> None:
    leader, first = static_group(talk)
    current = replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    talk.close(first)
    for _ in range(4):
        talk.close(current)
        talk.wait(1_500)
        talk.heartbeat(leader)
        current = replace(talk, leader, "two")
    assert talk.settled_rules() == ["M-13"]


def test_S_01_fires_on_ever_new_processes_that_fence_each_other(talk: Conversation) -> None:
    leader, current = static_group(talk)
    for name in ("two", "three", "four"):
        new = replace(talk, leader, name)
        talk.heartbeat(current, 82)
        current = new
    talk.settle()
    assert "changed hands 3 times" in talk.the("S-01").observed


def test_S_01_is_no_matter_of_a_holder_that_is_gone(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    live(talk, [leader], 13)
    talk.ask_join(static(talk, "one"))
    assert talk.settled_rules() == ["T-04"]
    assert second.member_id


@pytest.mark.parametrize(("then", "said"), [("silent", False), ("served", True)])
def test_S_01_needs_to_know_that_the_holder_lives_after_a_gap(talk: Conversation, then: str, *, said: bool) -> None:
    """The end of its connection may be among the frames that are missing."""
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    talk.lose(20)
    live(talk, [leader, second] if then == "served" else [leader], 3)
    talk.ask_join(static(talk, "one"))
    assert ("S-01" in talk.settled_rules()) == said


def test_S_01_allows_a_return_long_after(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    live(talk, [leader, second], 301)
    talk.ask_join(static(talk, "one"))
    assert talk.settled_rules() == []


def test_S_02_allows_a_burst_while_a_client_closes(talk: Conversation) -> None:
    leader, first = static_group(talk)
    replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    for _ in range(4):
        talk.commit(first, 82)
    assert talk.settled_rules() == []


def test_S_02_allows_one_more_frame_however_late_it_comes(talk: Conversation) -> None:
    """What a client had in its queue when it was fenced, behind a pause of its own."""
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.heartbeat(first, 82)
    live(talk, [leader, second], 6)
    talk.commit(first, 82)
    live(talk, [leader, second], 3)
    assert talk.rules() == []
    talk.commit(first, 82)
    live(talk, [leader, second], 1)
    assert talk.rules() == ["S-02"]


def test_S_02_resolves_when_its_replacement_was_undone(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.lose(1)
    talk.joined(talk.ask_join(leader), generation=4, leader=leader, roster=[leader, first])
    first.generation = 4
    talk.heartbeat(first, 82)
    talk.wait(4_000)
    talk.heartbeat(first, 82)
    talk.heartbeat(first, 82)
    assert "S-02" in talk.settled_rules()
    talk.heartbeat(first)
    talk.wait(1_000)
    assert talk.the("S-02").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- S-03


@pytest.mark.parametrize("how", ["heartbeat", "told to rejoin", "commit", "join"])
def test_S_03_fires_when_a_replaced_member_is_let_through(talk: Conversation, how: str) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.wait(1_000)
    match how:
        case "heartbeat":
            talk.heartbeat(first)
        case "told to rejoin":
            talk.heartbeat(first, 27)
        case "commit":
            talk.commit(first)
        case _:
            talk.joined(talk.ask_join(first), generation=3, leader=leader, roster=[])
    talk.settle()
    finding = talk.the("S-03")
    assert finding.severity is Severity.CRITICAL
    assert finding.blame is Blame.BROKER
    assert finding.member_id == first.member_id
    assert finding.instance_id == "i"
    assert second.member_id in finding.summary
    talk.wait(70_000)
    assert talk.the("S-03").status is Status.RESOLVED


def test_S_03_allows_what_was_asked_before_the_successor_had_its_assignment(talk: Conversation) -> None:
    leader, first = static_group(talk)
    body = wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=first.member_id, group_instance_id="i")
    pending = talk.ask(first, body)
    replace(talk, leader, "two")
    talk.answer(pending, wire.HeartbeatResponse(error_code=0))
    assert talk.settled_rules() == []


def test_S_03_allows_a_replacement_that_could_not_be_written(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.refuse_join(talk.ask_join(static(talk, "two")), 15)
    leader, first = leader.reconnected(), first.reconnected()
    talk.heartbeat(first)
    assert talk.settled_rules() == []


def test_S_03_allows_a_replacement_that_was_not_synced_before_the_coordinator_moved(talk: Conversation) -> None:
    leader, first = static_group(talk)
    replaced(talk, talk.ask_join(static(talk, "two")), leader)
    talk.heartbeat(leader, 16)
    first = first.reconnected("2")
    talk.heartbeat(first)
    talk.joined(talk.ask_join(first), generation=3, leader=leader, roster=[])
    assert talk.settled_rules() == []


@pytest.mark.parametrize("apart_ms", [60, -60])
def test_S_03_needs_to_know_which_of_two_holders_replaced_the_other(apart_ms: int) -> None:
    """The first came late, and its clock may be off: its answer is captured before or after that to the second."""
    talk = Conversation(clock_skew_ms=100)
    first, second = static(talk, "one"), static(talk, "two")
    earlier = talk.ask_join(first)
    talk.wait(3_000)
    for asked in (talk.ask_join(second), earlier):
        talk.joined(asked, generation=1, leader=asked.client, roster=[asked.client], member_id=f"i-{asked.client.name}")
        talk.sync_all([asked.client])
        talk.now_us += apart_ms * 1_000
    talk.wait(1_000)
    talk.heartbeat(second)
    assert talk.settled_rules() == []


def test_S_03_allows_a_refusal(talk: Conversation) -> None:
    leader, first = static_group(talk)
    replace(talk, leader, "two")
    talk.wait(1_000)
    talk.heartbeat(first, 82)
    assert talk.settled_rules() == []


def test_S_03_is_no_matter_of_a_stranger_with_that_instance_id(talk: Conversation) -> None:
    leader, _ = static_group(talk)
    replace(talk, leader, "two")
    talk.wait(1_000)
    stranger = talk.client("s", member_id="stranger", generation=3)
    talk.heartbeat(stranger)
    stranger.instance_id = "i"
    talk.heartbeat(stranger)
    assert talk.settled_rules() == ["M-02", "M-11"]


# ---------------------------------------------------------------------------------------------------- S-04


def restart(talk: Conversation, leader: Client, first: Client, **fields: Any) -> Asked:
    """Everybody is in sync and alive; the static member's process starts again."""
    live(talk, [leader, first], 3)
    talk.close(first)
    return talk.ask_join(static(talk, "one"), **fields)


def rebalanced(talk: Conversation, asked: Asked, leader: Client, others: tuple[Asked, ...] = ()) -> None:
    asked.client.member_id = "i-new"
    complete(talk, (*others, asked), 4, leader, [leader, asked.client])
    talk.sync_all([leader, asked.client])
    talk.settle()


def test_S_04_fires_when_a_restart_makes_the_group_rebalance(talk: Conversation) -> None:
    leader, first = static_group(talk)
    asked = restart(talk, leader, first)
    talk.heartbeat(leader, 27)
    rebalanced(talk, asked, leader, (talk.ask_join(leader),))
    finding = talk.the("S-04")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.BROKER
    assert finding.instance_id == "i"
    assert "from generation 3 to 4" in finding.summary
    talk.wait(70_000)
    assert talk.the("S-04").status is Status.RESOLVED


def test_S_04_fires_in_a_group_of_one(talk: Conversation) -> None:
    only = static(talk, "one")
    talk.round([only], 3)
    live(talk, [only], 3)
    talk.close(only)
    asked = talk.ask_join(static(talk, "one"))
    asked.client.member_id = "i-new"
    talk.joined(asked, generation=4, leader=asked.client, roster=[asked.client])
    assert "S-04" in talk.settled_rules()


def test_S_04_allows_an_answer_at_the_same_generation(talk: Conversation) -> None:
    leader, first = static_group(talk)
    replaced(talk, restart(talk, leader, first), leader)
    assert talk.settled_rules() == []


@pytest.mark.parametrize("who", ["leader", "newcomer", "leaver"])
def test_S_04_allows_another_trigger(talk: Conversation, who: str) -> None:
    leader, first = static_group(talk)
    asked = restart(talk, leader, first)
    other = ()
    if who == "leader":
        other = (talk.ask_join(leader),)  # unasked: its topics have changed
    elif who == "newcomer":
        talk.hand_out_id(talk.client("new"))
    else:
        talk.leave(leader)
    rebalanced(talk, asked, leader, other)
    assert talk.rules() == []


def test_S_04_allows_a_join_that_was_under_way(talk: Conversation) -> None:
    leader, first = static_group(talk)
    live(talk, [leader, first], 3)
    talk.close(first)
    other = talk.ask_join(talk.client("c"))
    asked = talk.ask_join(static(talk, "one"))
    talk.refuse_join(other, 79, "c-1")
    rebalanced(talk, asked, leader)
    assert talk.rules() == []


def restart_after_an_id_left(talk: Conversation) -> list[str]:
    leader, first = static_group(talk)
    live(talk, [leader, first], 3)
    talk.close(first)
    newcomer = talk.client("c")
    talk.hand_out_id(newcomer)
    talk.leave(newcomer)
    rebalanced(talk, talk.ask_join(static(talk, "one")), leader)
    return talk.rules()


def test_S_04_allows_the_leave_of_a_client_that_had_only_its_id_because_the_row_says_so(talk: Conversation) -> None:
    assert restart_after_an_id_left(talk) == []
    row = TABLE["L7"]
    with changed_table(Change(row, "then prepares", row._replace(effects=row.effects - {Effect.PREPARES}))):
        assert restart_after_an_id_left(Conversation()) == ["S-04"]


@pytest.mark.parametrize("protocols", [("range", "roundrobin"), ("roundrobin", "range"), ()])
def test_S_04_allows_changed_protocols(talk: Conversation, protocols: tuple[str, ...]) -> None:
    leader, first = static_group(talk)
    offered = tuple(wire.JoinGroupRequestProtocol(name=name, metadata=SUBSCRIBED) for name in protocols)
    asked = restart(talk, leader, first, protocols=offered)
    rebalanced(talk, asked, leader)
    assert "S-04" not in talk.rules()


def test_S_04_needs_all_sessions_fresh(talk: Conversation) -> None:
    leader, first = static_group(talk)
    live(talk, [leader], 6)
    talk.close(first)
    asked = talk.ask_join(static(talk, "one"))
    rebalanced(talk, asked, leader)
    assert talk.rules() == []


def test_S_04_needs_everybody_in_sync(talk: Conversation) -> None:
    leader, first = talk.client("lead"), static(talk, "one")
    talk.join_all([leader, first], 3)
    talk.call(leader, talk.sync_request(leader, [leader, first]), talk.synced())
    asked = restart(talk, leader, first)
    rebalanced(talk, asked, leader)
    assert talk.rules() == []


def test_S_04_needs_the_roster(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.lose(1)
    asked = restart(talk, leader, first)
    rebalanced(talk, asked, leader)
    assert talk.rules() == ["V-01"]


def test_S_04_needs_members_that_are_known(talk: Conversation) -> None:
    leader, first, other = talk.client("lead"), static(talk, "one"), talk.client("unseen", member_id="m-unseen")
    talk.hand_out_id(leader)
    first.member_id = "i-1"
    asked = [talk.ask_join(leader), talk.ask_join(first)]
    complete(talk, asked, 3, leader, [leader, first, other])
    talk.sync_all([leader, first])
    again = restart(talk, leader, first)
    rebalanced(talk, again, leader)
    assert talk.rules() == []


def test_S_04_does_not_judge_a_second_restart_within_a_generation(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "one")
    talk.close(first)
    asked = restart(talk, leader, second)
    rebalanced(talk, asked, leader)
    assert talk.rules() == []


def test_S_04_does_not_judge_a_holder_that_is_not_of_this_generation(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.round([leader], 4)
    talk.close(first)
    live(talk, [leader], 2)
    asked = talk.ask_join(static(talk, "one"))
    asked.client.member_id = "i-new"
    talk.joined(asked, generation=5, leader=leader, roster=[])
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- S-05


def led_by_static(talk: Conversation) -> tuple[Client, Client]:
    leader, other = static(talk, "lead"), talk.client("b")
    talk.round([leader, other], 3)
    talk.close(leader)
    return leader, other


def test_S_05_warns_when_nobody_leads_for_ten_minutes(talk: Conversation) -> None:
    old, other = led_by_static(talk)
    asked = talk.ask(new := static(talk, "lead"), talk.join_request(new), version=8)
    replaced(talk, asked, old)
    talk.call(new, talk.sync_request(new, []), talk.synced())
    live(talk, [new, other], 590)
    assert talk.rules() == []
    live(talk, [new, other], 15)
    finding = talk.the("S-05")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CONFIG
    assert finding.member_id == new.member_id
    talk.round([new, other], 4)
    talk.wait(1_000)
    assert talk.the("S-05").status is Status.RESOLVED


def test_S_05_allows_a_group_whose_members_are_all_gone(talk: Conversation) -> None:
    old, other = led_by_static(talk)
    asked = talk.ask(new := static(talk, "lead"), talk.join_request(new), version=8)
    replaced(talk, asked, old)
    talk.call(new, talk.sync_request(new, []), talk.synced())
    live(talk, [new, other], 10)
    talk.leave(other)
    talk.wait(620_000)
    assert "S-05" not in talk.rules()


def test_S_05_allows_a_leader_that_is_told_so(talk: Conversation) -> None:
    _, other = led_by_static(talk)
    new = static(talk, "lead")
    asked = talk.ask_join(new)
    replaced(talk, asked, new, leader_id=f"i-{new.connection}")
    talk.call(new, talk.sync_request(new, []), talk.synced())
    live(talk, [new, other], 620)
    assert talk.rules() == ["P-04"]


def test_S_05_allows_a_replaced_follower(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.close(first)
    asked = talk.ask(new := static(talk, "one"), talk.join_request(new), version=8)
    replaced(talk, asked, leader)
    live(talk, [leader, new], 620)
    assert talk.rules() == ["R-03"]


def test_S_05_is_over_when_the_successor_is_not_known_either(talk: Conversation) -> None:
    old, other = led_by_static(talk)
    asked = talk.ask(new := static(talk, "lead"), talk.join_request(new), version=8)
    replaced(talk, asked, old)
    live(talk, [new, other], 610)
    identity = wire.LeaveGroupRequestMemberIdentity(member_id="", group_instance_id="i")
    outcome = wire.LeaveGroupResponseMemberResponse(member_id="", group_instance_id="i")
    admin = talk.client("admin")
    talk.call(admin, wire.LeaveGroupRequest(group_id="g", members=(identity,)), wire.LeaveGroupResponse(members=(outcome,)))
    talk.wait(1_000)
    assert talk.the("S-05").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- S-06


def blocked(talk: Conversation, *others: Client, rebalance_timeout_ms: int = 20_000) -> tuple[Client, Client, Client]:
    """A dynamic member left; the static ones are away, so the phase is re-armed until somebody joins and waits in it."""
    gone, lead, first = talk.client("gone"), talk.client("lead"), static(talk, "one")
    talk.hand_out_id(gone)
    talk.hand_out_id(lead)
    first.member_id = "i-1"
    roster = [gone, lead, first, *others]
    asked = [talk.ask_join(one, session_timeout_ms=300_000, rebalance_timeout_ms=rebalance_timeout_ms) for one in roster]
    complete(talk, asked, 3, lead, roster)
    talk.sync_all([lead, gone, first, *others])
    for one in (first, *others):
        talk.close(one)
    talk.leave(gone)
    return gone, lead, first


def test_S_06_blames_none_of_several_that_are_away(talk: Conversation) -> None:
    other = static(talk, "two")
    other.instance_id, other.member_id = "j", "j-1"
    _, lead, first = blocked(talk, other)
    talk.ask_join(lead)
    talk.wait(25_000)
    finding = talk.the("S-06")
    assert all(one.member_id in finding.summary for one in (first, other))
    assert (finding.instance_id, finding.member_id, finding.client_id) == (None, None, None)


def test_S_06_fires_on_a_join_phase_that_only_absent_static_members_hold_up(talk: Conversation) -> None:
    _, lead, first = blocked(talk)
    talk.wait(14_000)
    parked = talk.ask_join(lead)
    talk.wait(23_000)  # counted from what the coordinator holds: when the phase began, no frame tells
    assert talk.rules() == ["P-10", "R-01", "R-18"]
    talk.wait(2_000)
    finding = talk.the("S-06")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.CLIENT
    assert finding.instance_id == "i"
    assert finding.member_id == first.member_id
    assert "300.0 s" in finding.summary
    talk.joined(parked, generation=4, leader=lead, roster=[lead, first])
    talk.sync_all([lead])
    talk.wait(1_000)
    assert talk.the("S-06").status is Status.RESOLVED


def test_S_06_allows_a_phase_within_its_timeout(talk: Conversation) -> None:
    _, lead, _ = blocked(talk)
    talk.ask_join(lead)
    talk.wait(20_000)
    assert talk.rules() == ["P-10", "R-01", "R-18"]


def test_S_06_needs_somebody_who_waits(talk: Conversation) -> None:
    _, lead, _ = blocked(talk)
    told_to_rejoin(talk, lead, 40)
    assert talk.rules() == ["P-10", "R-08"]


def test_S_06_is_no_matter_of_absent_dynamic_members(talk: Conversation) -> None:
    gone, lead, _ = blocked(talk)
    other = talk.client("other")
    talk.hand_out_id(other)
    asked = [talk.ask_join(one, session_timeout_ms=300_000) for one in (lead, other)]
    complete(talk, asked, 4, lead, [lead, other, static_like(gone)])
    talk.sync_all([lead, other])
    talk.ask_join(lead)
    talk.wait(30_000)
    assert talk.rules() == ["P-10", "R-18", "R-01"]


def static_like(client: Client) -> Client:
    client.instance_id, client.member_id = "never-seen", "never-seen-1"
    return client


def test_S_06_takes_no_unbounded_timeout_for_one(talk: Conversation) -> None:
    _, lead, _ = blocked(talk, rebalance_timeout_ms=2**31 - 1)
    talk.ask_join(lead, session_timeout_ms=300_000, rebalance_timeout_ms=2**31 - 1)
    talk.wait(60_000)
    assert talk.rules() == ["P-10", "R-18"]


def test_S_06_needs_every_rebalance_timeout(talk: Conversation) -> None:
    lead, first = talk.client("lead"), static(talk, "one")
    talk.hand_out_id(lead)
    first.member_id, first.generation = "i-1", 3
    talk.heartbeat(first)
    talk.joined(talk.ask_join(lead), generation=3, leader=lead, roster=[lead, first])
    talk.sync_all([lead])
    talk.ask_join(lead)
    talk.wait(60_000)
    assert talk.rules() == ["R-18", "R-01"]


# ---------------------------------------------------------------------------------------------------- S-07


def test_S_07_fires_when_a_static_member_drops_its_instance_id(talk: Conversation) -> None:
    _, first = static_group(talk)
    first.instance_id = None
    talk.heartbeat(first, 25)
    finding = talk.the("S-07")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.CERTAIN
    assert finding.blame is Blame.CLIENT
    assert "names no instance id in its Heartbeat" in finding.summary
    talk.wait(70_000)
    assert talk.the("S-07").status is Status.RESOLVED


@pytest.mark.parametrize("api", ["join", "sync", "commit"])
def test_S_07_looks_at_every_request_of_a_member(talk: Conversation, api: str) -> None:
    _, first = static_group(talk)
    first.instance_id = "other"
    match api:
        case "join":
            talk.ask_join(first)
        case "sync":
            talk.ask(first, talk.sync_request(first, []))
        case _:
            talk.commit(first, 25)
    assert "the instance id other" in talk.the("S-07").summary


def test_S_07_allows_versions_that_do_not_have_the_field(talk: Conversation) -> None:
    _, first = static_group(talk)
    talk.heartbeat(first, version=2)
    assert talk.settled_rules() == []


@pytest.mark.parametrize(("version", "said"), [(6, []), (7, ["S-07"])])
def test_S_07_allows_commits_before_version_7(talk: Conversation, version: int, said: list[str]) -> None:
    """OffsetCommit has the field since v7 (KIP-345)."""
    leader, first = static_group(talk)
    request = talk.commit_request(first, {0: 5}, group_instance_id=None)
    talk.call(first, request, talk.committed({0: 0}), version=version)
    live(talk, [leader, first], 2)
    assert talk.rules() == said


def test_S_07_allows_commits_without_a_generation(talk: Conversation) -> None:
    _, first = static_group(talk)
    talk.commit(first, generation_id_or_member_epoch=-1, group_instance_id=None)
    assert talk.settled_rules() == []


def test_S_07_needs_a_member_that_was_proven(talk: Conversation) -> None:
    client = static(talk, "one")
    client.member_id, client.generation = "m", 3
    talk.heartbeat(client, 25)
    client.instance_id = "other"
    talk.heartbeat(client, 25)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- S-08


def test_S_08_tells_of_a_static_member_that_leaves_by_itself(talk: Conversation) -> None:
    _, first = static_group(talk)
    talk.leave(first)
    talk.settle()
    finding = talk.the("S-08")
    assert finding.severity is Severity.INFO
    assert finding.blame is Blame.CLIENT
    assert finding.instance_id == "i"
    talk.wait(70_000)
    assert talk.the("S-08").status is Status.RESOLVED


def test_S_08_allows_an_operator_to_take_it_out(talk: Conversation) -> None:
    _, first = static_group(talk)
    admin = talk.client("admin", member_id=first.member_id, instance_id="i")
    talk.leave(admin)
    assert talk.settled_rules() == []


def test_S_08_is_no_matter_of_dynamic_members(talk: Conversation) -> None:
    leader, _ = static_group(talk)
    talk.leave(leader)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- S-09


def test_S_09_fires_when_the_holder_is_fenced_and_accepted_again(talk: Conversation) -> None:
    _, first = static_group(talk)
    talk.wait(1_000)
    talk.heartbeat(first, 82)
    talk.wait(1)
    talk.heartbeat(first)
    talk.settle()
    finding = talk.the("S-09")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert finding.member_id == first.member_id
    assert finding.instance_id == "i"
    talk.wait(70_000)
    assert talk.the("S-09").status is Status.RESOLVED


def test_S_09_fires_when_the_next_member_list_has_the_fenced_one_still(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.wait(1_000)
    talk.heartbeat(first, 82)
    talk.wait(1)
    talk.joined(talk.ask_join(leader), generation=4, leader=leader, roster=[leader, first])
    talk.settle()
    assert "still the holder" in talk.the("S-09").summary


def test_S_09_fires_when_a_failover_brings_back_the_one_before(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.close(first)
    leader, second = fail_over(talk, [leader, second])
    talk.joined(talk.ask_join(leader), generation=3, leader=leader, roster=[])
    talk.heartbeat(second, 82)
    talk.wait(1)
    talk.joined(talk.ask_join(leader), generation=4, leader=leader, roster=[leader, first])
    talk.settle()
    finding = talk.the("S-09")
    assert finding.member_id == second.member_id
    assert first.member_id in finding.summary


def test_S_09_allows_the_loser_of_a_replacement_to_be_fenced(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.wait(1_000)
    talk.heartbeat(first, 82)
    talk.wait(1)
    talk.joined(talk.ask_join(leader), generation=4, leader=leader, roster=[leader, second])
    assert talk.settled_rules() == []


def test_S_09_allows_a_replacement_that_was_undone(talk: Conversation) -> None:
    _, first = static_group(talk)
    talk.wait(1_000)
    rival = talk.ask_join(static(talk, "two"))
    talk.heartbeat(first, 82)
    talk.refuse_join(rival, -1)
    talk.wait(1)
    talk.heartbeat(first)
    assert talk.settled_rules() == ["C-08"]


def test_S_09_allows_a_replacement_that_was_undone_just_before(talk: Conversation) -> None:
    _, first = static_group(talk)
    talk.wait(1_000)
    rival = talk.ask_join(static(talk, "two"))
    body = wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=first.member_id, group_instance_id="i")
    pending = talk.ask(first, body)
    talk.refuse_join(rival, -1)
    talk.answer(pending, wire.HeartbeatResponse(error_code=82))
    talk.wait(1)
    talk.heartbeat(first)
    assert talk.settled_rules() == ["C-08"]


def test_S_09_allows_a_newer_member_that_was_not_captured(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.wait(1_000)
    talk.heartbeat(first, 82)
    talk.wait(1)
    unseen = static(talk, "unseen")
    unseen.member_id = "i-unseen"
    talk.joined(talk.ask_join(leader), generation=4, leader=leader, roster=[leader, unseen])
    assert talk.settled_rules() == []


def test_S_09_waits_for_a_member_list_that_was_made_after_the_refusal(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.wait(1_000)
    parked = talk.ask_join(leader)
    talk.heartbeat(first, 82)
    talk.joined(parked, generation=4, leader=leader, roster=[leader, first])
    assert talk.settled_rules() == []


def test_S_09_needs_an_instance_id(talk: Conversation) -> None:
    leader, _ = static_group(talk)
    talk.wait(1_000)
    talk.heartbeat(leader, 82)
    talk.wait(1)
    talk.heartbeat(leader)
    assert talk.settled_rules() == ["P-07"]  # nobody can be fenced who names none


# ---------------------------------------------------------------------------------------------------- S-10


def assigned_to_absent(talk: Conversation, **partitions: tuple[int, ...]) -> tuple[Client, Client]:
    """The static member was away when generation 4 was made, and its leader assigned to it all the same."""
    leader, first = static_group(talk)
    talk.close(first)
    talk.wait(100)
    asked = talk.ask_join(leader)
    talk.wait(100)
    talk.joined(asked, generation=4, leader=leader, roster=[leader, first])
    assignments = tuple(
        wire.SyncGroupRequestAssignment(member_id=one.member_id, assignment=assignment(**partitions)) for one in (leader, first)
    )
    talk.call(leader, talk.sync_request(leader, [], assignments=assignments), talk.synced())
    return leader, first


def test_S_10_warns_of_partitions_assigned_to_a_member_that_is_away(talk: Conversation) -> None:
    leader, first = assigned_to_absent(talk, t=(0, 1))
    live(talk, [leader], 4)
    assert talk.rules() == ["A-03", "A-05"]
    live(talk, [leader], 2)
    finding = talk.the("S-10")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CLIENT
    assert finding.instance_id == "i"
    assert finding.member_id == first.member_id
    replaced(talk, talk.ask_join(static(talk, "one")), leader, generation=4)
    talk.wait(1_000)
    assert talk.the("S-10").status is Status.RESOLVED


def test_S_10_allows_one_that_was_given_nothing(talk: Conversation) -> None:
    leader, _ = assigned_to_absent(talk)
    live(talk, [leader], 8)
    assert talk.rules() == []


def test_S_10_allows_one_that_speaks(talk: Conversation) -> None:
    leader, first = assigned_to_absent(talk, t=(0, 1))
    first = first.reconnected()
    talk.heartbeat(first, 22)
    live(talk, [leader], 8)
    assert talk.rules() == ["A-03", "A-05"]


def test_S_10_allows_one_that_asks_to_join(talk: Conversation) -> None:
    leader, first = assigned_to_absent(talk, t=(0, 1))
    talk.ask_join(first.reconnected())
    live(talk, [leader], 8)
    assert talk.rules() == ["A-03", "A-05"]


def test_S_10_needs_to_have_seen_the_client(talk: Conversation) -> None:
    leader, unseen = talk.client("lead"), static(talk, "unseen")
    talk.hand_out_id(leader)
    unseen.member_id = "i-unseen"
    talk.joined(talk.ask_join(leader), generation=4, leader=leader, roster=[leader, unseen])
    talk.call(leader, talk.sync_request(leader, [leader, unseen]), talk.synced())
    live(talk, [leader], 30)
    assert talk.rules() == []


def test_S_10_needs_its_session_timeout(talk: Conversation) -> None:
    leader, first = talk.client("lead"), static(talk, "one")
    first.member_id, first.generation = "i-1", 3
    talk.heartbeat(first)
    talk.heartbeat(first)
    talk.hand_out_id(leader)
    talk.wait(100)
    asked = talk.ask_join(leader)
    talk.wait(100)
    talk.joined(asked, generation=4, leader=leader, roster=[leader, first])
    given = (wire.SyncGroupRequestAssignment(member_id="i-1", assignment=assignment(t=(0,))),)
    talk.call(leader, talk.sync_request(leader, [], assignments=given), talk.synced())
    live(talk, [leader], 30)
    assert talk.rules() == []


def test_S_10_is_no_matter_before_the_leader_assigned(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.close(first)
    talk.joined(talk.ask_join(leader), generation=4, leader=leader, roster=[leader, first])
    live(talk, [leader], 8)
    assert talk.rules() == []
