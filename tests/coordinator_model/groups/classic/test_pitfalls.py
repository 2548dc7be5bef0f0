"""The pitfalls of judging a coordinator by what frames leave possible. Each has raised a false alarm or hidden a breach."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from tests.coordinator_model.classic import complete, live, replace, settled, static_group
from tests.coordinator_model.conversation import Asked, Client, Conversation
from tests.coordinator_model.shadow import verdicts


def at_generation_4(talk: Conversation) -> list[Client]:
    """A stable group that was at generation 3 until a second ago."""
    clients = settled(talk)
    talk.round(clients, 4)
    talk.wait(1_000)
    return clients


def ask_heartbeat(talk: Conversation, client: Client, generation: int) -> Asked:
    return talk.ask(client, wire.HeartbeatRequest(group_id="g", generation_id=generation, member_id=client.member_id))


def test_absence_may_judge_and_never_adopts(talk: Conversation) -> None:
    """A commit succeeds in Stable and in PreparingRebalance. What shows the join phase is captured after it."""
    a, b = settled(talk)
    with verdicts() as found:
        talk.commit(a)  # in the join phase
        talk.heartbeat(b, 27)
        talk.commit(a)
        talk.heartbeat(a, 27)
    assert found == []


@pytest.mark.parametrize("loads", [True, False])
def test_a_breach_waits_for_the_frames_that_may_be_late(talk: Conversation, *, loads: bool) -> None:
    a, b = at_generation_4(talk)
    talk.heartbeat(a, generation=3)
    assert talk.rules() == []
    if loads:
        talk.refuse_join(talk.ask_join(b), 14)
    assert talk.settled_rules() == ([] if loads else ["G-02"])


def test_the_end_of_all_connections_counts_by_its_capture_time(talk: Conversation) -> None:
    """Nobody was given an assignment, so a coordinator that restarted while nobody was connected does not know the generation."""
    a, b = settled(talk)
    talk.join_all([a, b], 4)
    talk.close(a)
    talk.close(b)
    talk.wait(1_000)
    with verdicts() as found:
        talk.heartbeat(a.reconnected(), generation=3)
    assert found == []


@pytest.mark.parametrize(("said", "unlawful"), [(True, 0), (False, 1)])
def test_loading_is_a_phase_in_which_heartbeats_succeed_unchecked(talk: Conversation, *, said: bool, unlawful: int) -> None:
    a, b = at_generation_4(talk)
    if said:
        talk.refuse_join(talk.ask_join(b), 14)
    with verdicts() as found:
        talk.heartbeat(a, generation=3)
    assert len(found) == unlawful


def test_a_late_answer_of_the_coordinator_before_is_not_judged_by_its_successor(talk: Conversation) -> None:
    a, b = at_generation_4(talk)
    late = ask_heartbeat(talk, b, 3)
    talk.heartbeat(a, 16)
    with verdicts() as found:
        talk.answer(late, wire.HeartbeatResponse(error_code=0))
    assert found == []


def test_a_new_coordinator_starts_from_what_was_written(talk: Conversation) -> None:
    """Generation 4 was never synced, so the log has generation 3."""
    a, b = settled(talk)
    talk.join_all([a, b], 4)
    talk.heartbeat(a, 16)
    there = [client.reconnected("2") for client in (a, b)]
    with verdicts() as found:
        for client in there:
            talk.heartbeat(client, generation=3)
            talk.heartbeat(client, 22, generation=4)
    talk.settle()
    assert found == []
    assert talk.rules() == []


@pytest.mark.parametrize("how", ["answered at once", "static member replaced", "join phase ended"])
def test_only_the_end_of_a_join_phase_starts_the_sessions_of_others_anew(talk: Conversation, how: str) -> None:
    """A member that says nothing for 13.5 s has lost its session of 10 s, unless something started it anew."""
    leader, follower, static, silent = (talk.client(name) for name in ("a", "b", "one", "z"))
    static.instance_id, silent.instance_id = "i", "j"
    everybody = [leader, follower, static, silent]
    talk.round(everybody, 3)
    alive = [leader, follower, static]
    live(talk, alive, 7)
    match how:
        case "answered at once":
            talk.joined(talk.ask_join(follower), generation=3, leader=leader, roster=[])
        case "static member replaced":
            talk.close(static)
            alive[2] = replace(talk, leader, "one")
        case "join phase ended":
            asked = [talk.ask_join(client) for client in alive]
            complete(talk, asked, 4, leader, everybody)
            talk.sync_all(alive)
    live(talk, alive, 6)
    talk.wait(500)
    talk.heartbeat(silent, 22 if how == "join phase ended" else 0)
    assert ("T-02" in talk.settled_rules()) == (how != "join phase ended")


def test_a_request_behind_a_held_one_may_act_after_its_connection_ended(talk: Conversation) -> None:
    """The coordinator reads b's LeaveGroup once it has answered b's JoinGroup, which it held when b hung up."""
    a, b = settled(talk)
    again = b.reconnected()
    talk.heartbeat(a, 27)
    asked = [talk.ask_join(a), talk.ask_join(b)]
    talk.ask(b, talk.leave_request(b))
    talk.close(b)
    with verdicts() as found:
        talk.joined(asked[0], generation=4, leader=a, roster=[a, b])
        talk.call(a, talk.sync_request(a, [a, b]), talk.synced(27))
        talk.heartbeat(again, 25, generation=4)
        talk.round([a], 5)
        live(talk, [a], 5)
    assert found == []
    assert talk.rules() == []


def test_a_removal_may_act_after_the_connection_of_who_asked_for_it_ended(talk: Conversation) -> None:
    """An operator removes a member, and does not wait for the answer."""
    a, b = settled(talk)
    live(talk, [a, b], 3)
    admin = talk.client("admin")
    talk.ask(admin, talk.leave_request(b))
    talk.close(admin)
    talk.heartbeat(b, 25)
    assert talk.settled_rules() == []


def test_a_join_that_is_refused_may_have_begun_a_join_phase(talk: Conversation) -> None:
    """The broker lost the group's log while it wrote, and has it again: the phase that the leader began goes on."""
    a, b = settled(talk)
    live(talk, [a, b], 2)
    with verdicts() as found:
        talk.refuse_join(talk.ask_join(a), 16)
        talk.heartbeat(b, 27)
        talk.commit(b)
        talk.heartbeat(b, 27)
        talk.heartbeat(a, 27)
        talk.round([a, b], 4)
        live(talk, [a, b], 2)
    assert found == []
    assert talk.rules() == []


@pytest.mark.parametrize(("own", "unlawful"), [(True, 1), (False, 0)])
def test_clocks_differ_between_connections_only(*, own: bool, unlawful: int) -> None:
    """50 ms everywhere would hide what one connection shows by itself."""
    talk = Conversation(clock_skew_ms=50)
    a, b = settled(talk)
    talk.join_all([a, b], 4, leader=a)
    talk.wait(20)
    who = a if own else a.reconnected()
    with verdicts() as found:
        talk.heartbeat(who, generation=3)
    assert len(found) == unlawful


def test_a_gap_takes_away_what_bounds(talk: Conversation) -> None:
    """Whatever happened in it may explain what comes after."""
    a, _ = at_generation_4(talk)
    talk.gap()
    with verdicts() as found:
        talk.heartbeat(a, generation=3)
    assert found == []


@pytest.mark.parametrize("answered", [True, False])
def test_a_join_phase_that_may_have_begun_starts_no_session_anew(talk: Conversation, *, answered: bool) -> None:
    """The leader asks to rejoin, which begins a join phase if it arrives. No generation followed, so none has ended."""
    leader, silent = settled(talk)
    live(talk, [leader], 7)
    asked = talk.ask_join(leader)
    if answered:
        talk.refuse_join(asked, 27)
    else:
        talk.close(leader)
        leader = leader.reconnected()
    live(talk, [leader], 6)
    talk.wait(500)
    talk.heartbeat(silent)
    assert "T-02" in talk.settled_rules()


def test_what_is_owed_is_a_matter_of_deadlines_and_not_of_the_table(talk: Conversation) -> None:
    """An answer that does not come is no answer: the table has nothing to say, and C-02 says for how long that is bearable."""
    a, b = settled(talk)
    with verdicts() as found:
        asked = [talk.ask_join(a), talk.ask_join(b)]
        talk.joined(asked[0], generation=4, leader=a, roster=[a, b])
        talk.wait(6_000)
        assert "C-02" not in talk.rules()
        talk.wait(3_000)
    assert found == []
    assert "C-02" in talk.rules()


def test_a_member_that_was_replaced_is_judged_by_what_was_settled_then(talk: Conversation) -> None:
    """The instance id is another's from the moment at which the log has it."""
    leader, first = static_group(talk)
    replace(talk, leader, "two")
    talk.wait(1_000)
    with verdicts() as found:
        talk.heartbeat(first, 82)
        talk.heartbeat(first)
    assert [sorted(verdict.about) for verdict in found] == [["replaced"]]


def test_a_static_member_that_was_replaced_may_be_heard_of_after_its_successor(talk: Conversation) -> None:
    """The first process joined, and the second took its place 100 ms later. The first one's answer is captured last."""
    first, second = talk.client("one", instance_id="i"), talk.client("two", instance_id="i")
    asked = talk.ask_join(first)
    talk.wait(3_000)
    joined_us = talk.now_us
    first.member_id = "i-1"
    talk.wait(100)
    talk.joined(talk.ask_join(second), generation=1, leader=first, roster=[], member_id="i-2")
    talk.call(second, talk.sync_request(second, []), talk.synced())
    talk.wait(200)
    later_us, talk.now_us = talk.now_us, joined_us
    talk.joined(asked, generation=1, leader=first, roster=[first])
    talk.call(first, talk.sync_request(first, [first]), talk.synced())
    talk.now_us = later_us
    with verdicts() as found:
        live(talk, [second], 3)
        talk.commit(second)
    talk.settle()
    assert found == []
    assert talk.rules() == []


def test_a_member_may_commit_before_its_joining_is_captured(talk: Conversation) -> None:
    """It commits on another connection than it joined on."""
    leader, first = static_group(talk)
    talk.wait(1_000)
    talk.close(first)
    second = talk.client("two", instance_id="i")
    asked = talk.ask_join(second)
    joined_us = talk.now_us
    committing = second.reconnected()
    committing.member_id, committing.generation = "i-2", 3
    talk.wait(300)
    talk.commit(committing)
    assert talk.rules() == []
    later_us, talk.now_us = talk.now_us, joined_us
    talk.joined(asked, generation=3, leader=leader, roster=[], member_id="i-2")
    talk.call(second, talk.sync_request(second, []), talk.synced())
    talk.now_us = later_us
    assert talk.settled_rules() == []
