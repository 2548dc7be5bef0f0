"""What the laboratory met: each a finding that was false or missing in a run with real brokers, reduced to its frames."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from tests.coordinator_model.classic import beat, completing_rebalance, settled
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.rules.coordinators import fail_over


def test_G_04_sees_a_lowered_generation_also_when_another_member_was_answered_first(talk: Conversation) -> None:
    """A proxy told the leader generation 3 again, a moment after a follower had been told 5: that is no late answer."""
    a, b = settled(talk, generation=3)
    talk.round([a, b], 4)
    lowered, right = talk.ask_join(a), talk.ask_join(b)
    talk.joined(right, generation=5, leader=a, roster=[a, b])
    talk.joined(lowered, generation=3, leader=a, roster=[a, b])
    assert talk.settled_rules() == ["G-04"]
    assert "from generation 4 to 3" in talk.the("G-04").summary


def test_T_02_knows_that_another_broker_starts_the_sessions_anew(talk: Conversation) -> None:
    """A broker was killed, and nobody was told NOT_COORDINATOR: the members found its successor after their sessions had ended."""
    a, b = settled(talk)
    talk.heartbeat(a)
    talk.heartbeat(b)
    talk.wait(15_000)
    for member in (a, b):
        talk.heartbeat(member.reconnected("2"))
    assert talk.settled_rules() == ["T-04"]


def test_T_02_knows_that_a_restarted_broker_starts_the_sessions_anew(talk: Conversation) -> None:
    """All connections ended with it; it came back fast enough that nobody was told that it loads."""
    a, b = settled(talk)
    talk.heartbeat(a)
    talk.heartbeat(b)
    talk.close(a)
    talk.close(b)
    talk.wait(15_000)
    for member in (a, b):
        talk.heartbeat(member.reconnected())
    assert talk.settled_rules() == ["C-14"]


def test_O_07_lets_a_client_repeat_old_commits_behind_new_ones_after_a_failover(talk: Conversation) -> None:
    """After its coordinator had moved, a client repeated at once what had found none: 14, then 12; and soon committed 18."""
    a, _ = settled(talk)
    for offset in (14, 12):
        talk.commit_offsets(a, {0: offset})
    talk.wait(200)
    talk.commit_offsets(a, {0: 18})
    assert talk.settled_rules() == ["O-05"]
    talk.commit_offsets(a, {0: 17})
    talk.wait(200)
    talk.commit_offsets(a, {0: 17})
    assert "O-07" in talk.settled_rules()


def test_G_06_says_what_the_two_leaders_were_told_differently(talk: Conversation) -> None:
    """A proxy made a follower the leader too, with the same members: the text told of members that did not differ."""
    a, b = settled(talk)
    first, second = talk.ask_join(a), talk.ask_join(b)
    talk.joined(first, generation=4, leader=a, roster=[a, b])
    talk.joined(second, generation=4, leader=b, roster=[a, b])
    talk.settle()
    summary = talk.the("G-06").summary
    assert f"was told leader {b.member_id} instead of {a.member_id}." in summary


def test_G_02_does_not_count_from_the_answer_that_a_queued_request_waited_for(talk: Conversation) -> None:
    """A member sent Heartbeat, OffsetCommit and JoinGroup at once; their answers took longer to the tap than another member's."""
    a, b = settled(talk)
    joining = talk.ask_join(b)
    beat = talk.ask(a, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=a.member_id))
    commit = talk.ask(a, talk.commit_request(a, {0: 5}))
    rejoining = talk.ask_join(a)
    talk.joined(joining, generation=4, leader=a, roster=[a, b])
    talk.answer(beat, wire.HeartbeatResponse(error_code=27))
    talk.answer(commit, talk.committed({0: 0}))
    talk.joined(rejoining, generation=4, leader=a, roster=[a, b])
    assert not {"G-02", "O-02"} & set(talk.settled_rules())


@pytest.mark.parametrize("deleted", [True, False])
@pytest.mark.parametrize("failover", [True, False])
def test_G_06_and_O_06_know_a_group_that_began_anew_with_the_same_generation(
    talk: Conversation, *, deleted: bool, failover: bool
) -> None:
    """A group that had never got beyond generation 1 was deleted and started again, at generation 1."""
    a, b = settled(talk, generation=1)
    if failover:
        a, b = fail_over(talk, [a, b])
        talk.heartbeat(a)
        talk.heartbeat(b)
    talk.commit_offsets(a, {0: 5})
    talk.leave(a)
    talk.leave(b)
    if deleted:
        result = wire.DeleteGroupsResponseDeletableGroupResult(group_id="g", error_code=0)
        admin = talk.client("admin", a.broker)
        talk.call(admin, wire.DeleteGroupsRequest(groups_names=("g",)), wire.DeleteGroupsResponse(results=(result,)))
    talk.wait(1_000 if deleted else 700_000)
    c, d = talk.client("c", a.broker), talk.client("d", a.broker)
    talk.round([c, d], 1)
    talk.commit_offsets(c, {0: 7})
    assert not {"G-06", "O-06"} & set(talk.settled_rules())
    if not failover:
        assert "began again at generation 1" in talk.the("G-05").summary


def test_the_state_stays_when_the_answer_to_a_leave_comes_after_the_next_generation(talk: Conversation) -> None:
    """A member left while the others joined; that it was let go was captured after one of them had the new generation."""
    a, b = settled(talk, generation=1)
    c = talk.client("c")
    talk.round([a, b, c], 2)
    leader, follower = talk.ask_join(a), talk.ask_join(b)
    leaving = talk.ask(c, talk.leave_request(c))
    talk.joined(follower, generation=3, leader=a, roster=[a, b])
    talk.answer(leaving, talk.left(c))
    talk.joined(leader, generation=3, leader=a, roster=[a, b])
    talk.sync_all([a, b])
    assert talk.group_json()["state"] == "Stable"


def test_the_state_returns_when_a_join_never_reached_the_coordinator(talk: Conversation) -> None:
    """A network cut a newcomer's connection behind the tap, and it never came back: the others are served as before."""
    a, b = settled(talk)
    c = talk.client("c")
    talk.hand_out_id(c)
    talk.ask_join(c)
    assert talk.group_json()["state"] == "PreparingRebalance"
    talk.heartbeat(a)
    talk.wait(1_000)
    talk.heartbeat(b)  # the coordinator may not have got to the newcomer yet
    assert talk.group_json()["state"] == "PreparingRebalance"
    talk.close(c)
    talk.heartbeat(a)
    assert talk.group_json()["state"] == "Stable"


def test_the_state_returns_when_a_restarted_coordinator_starts_the_sessions_anew(talk: Conversation) -> None:
    """All fell silent while a broker was restarted, nobody was told that it loads, and then all were served as before."""
    a, b = settled(talk)
    talk.close(a)
    talk.close(b)
    talk.wait(15_000)
    assert talk.group_json()["state"] == "Empty"
    for member in (a, b):
        talk.heartbeat(member.reconnected())
    assert talk.group_json()["state"] == "Stable"


def test_G_04_sees_a_lowered_generation_also_behind_a_queued_request(talk: Conversation) -> None:
    """All connections ended before generation 5 was synced; then a member sent SyncGroup and JoinGroup one behind the other."""
    a, b = settled(talk, generation=3)
    talk.round([a, b], 4)
    talk.join_all([a, b], 5)
    talk.close(a)
    talk.close(b)
    again = a.reconnected()
    syncing = talk.ask(again, talk.sync_request(again, [a, b]))
    joining = talk.ask_join(again)
    talk.answer(syncing, talk.synced())
    talk.joined(joining, generation=3, leader=a, roster=[a, b])
    talk.settle()
    assert "from generation 5 to 3" in talk.the("G-04").summary


def test_P_10_does_not_take_a_client_that_starves_for_one_that_is_told_to_beat_seldom(talk: Conversation) -> None:
    """On a machine under load a client's heartbeats came 3 to 5 s apart instead of 1, at a session of 10 s here."""
    a, b = settled(talk)
    for turn in range(60):
        talk.wait(1_000 if turn % 20 == 0 else 5_000)
        talk.heartbeat(a)
        talk.heartbeat(b)
    assert talk.settled_rules() == []
    c, d = talk.client("c"), talk.client("d")
    talk.round([a, b, c, d], 4)
    for _ in range(40):
        talk.wait(5_000)
        for member in (a, b, c, d):
            talk.heartbeat(member)
    assert "heartbeats every 5.0 s at a session timeout of 10000 ms" in talk.the("P-10").summary


def test_a_group_of_the_new_protocol_keeps_its_type_and_its_members_when_its_coordinator_moves(talk: Conversation) -> None:
    """Its members' commits were refused while a broker was restarted; after that the group was said to be merely not known yet."""
    a = talk.client("a", member_id="a-1", generation=7)
    talk.consumer_heartbeat(a, epoch=7)
    talk.commit_offsets(a, {0: 5})
    talk.commit_offsets(a, {0: 6}, {0: 16})
    content = talk.group_json()
    assert (content["group_type"], content["learning"], len(content["members"])) == ("consumer", None, 1)
    assert talk.rules() == []


def test_T_03_knows_that_a_sync_of_a_stable_group_restarts_no_session(talk: Conversation) -> None:
    """A broker of 4.4 on a busy machine removed a member 2.8 s after the answer to its late SyncGroup, 7.7 s after the join phase."""
    a, b = completing_rebalance(talk)
    talk.answer(talk.ask(a, talk.sync_request(a, [a, b])), talk.synced())
    beat(talk, [a], 5)
    talk.answer(talk.ask(b, talk.sync_request(b, [])), talk.synced())
    beat(talk, [a], 3)
    talk.heartbeat(b, 25)
    assert talk.settled_rules() == []


def test_T_03_goes_by_the_heartbeat_that_was_accepted_since_the_sync(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.answer(talk.ask(a, talk.sync_request(a, [a, b])), talk.synced())
    beat(talk, [a], 5)
    talk.answer(talk.ask(b, talk.sync_request(b, [])), talk.synced())
    beat(talk, [b], 1)
    beat(talk, [a], 2)
    talk.heartbeat(b, 25)
    assert talk.settled_rules() == ["T-03"]
