"""What heartbeats, syncs, leaves and deletions make of the facts that were known before."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.test_rules import live, settled


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


def members(talk: Conversation) -> list[str]:
    return [member["member_id"] for member in talk.group_json()["members"]]


# ---------------------------------------------------------------------------------------------------- LeaveGroup


@pytest.mark.parametrize("error", [25, 82])
def test_a_member_whose_removal_was_refused_is_still_one(talk: Conversation, error: int) -> None:
    """An administrator named the wrong instance for it: the group goes on, and when the member dies, that is told (T-04 missed)."""
    a, b = settled(talk)
    live(talk, [a, b], 3)
    wrong = wire.LeaveGroupRequestMemberIdentity(member_id=b.member_id, group_instance_id="another")
    refused = wire.LeaveGroupResponseMemberResponse(member_id=b.member_id, group_instance_id="another", error_code=error)
    request = wire.LeaveGroupRequest(group_id="g", members=(wrong,))
    talk.call(talk.client("admin"), request, wire.LeaveGroupResponse(members=(refused,)))
    assert talk.group_json()["state"] == "Stable"
    assert members(talk) == [a.member_id, b.member_id]
    live(talk, [a], 14)
    assert talk.rules() == ["M-10", "T-04"]


def test_of_a_leave_for_two_only_the_one_that_was_granted_counts(talk: Conversation) -> None:
    a, b, c = settled(talk, ("a", "b", "c"))
    live(talk, [a, b, c], 3)
    entries = tuple(wire.LeaveGroupRequestMemberIdentity(member_id=one.member_id) for one in (b, c))
    outcomes = tuple(
        wire.LeaveGroupResponseMemberResponse(member_id=one.member_id, error_code=error) for one, error in ((b, 82), (c, 0))
    )
    talk.call(
        talk.client("admin"), wire.LeaveGroupRequest(group_id="g", members=entries), wire.LeaveGroupResponse(members=outcomes)
    )
    assert members(talk) == [a.member_id, b.member_id]


# ---------------------------------------------------------------------------------------------------- Heartbeat


def test_a_steady_heartbeat_on_another_broker_is_a_failover(talk: Conversation) -> None:
    """Each coordinator that loads the group starts all sessions again, that of a silent member as well (false T-04, T-02)."""
    a, b = settled(talk)
    live(talk, [a, b], 2)
    for broker in ("2", "1"):
        a = a.reconnected(broker)
        live(talk, [a], 8)
    assert talk.group_json()["incarnation"] == 3
    live(talk, [a, b], 3)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- SyncGroup


def stale_beside_a_late_sync(talk: Conversation, old: Client, member: Client) -> None:
    """A Heartbeat at the generation before, under way while a member asks for its assignment once more."""
    asked = talk.ask(old, wire.HeartbeatRequest(group_id="g", generation_id=old.generation, member_id=old.member_id))
    talk.wait(500)
    talk.call(member, talk.sync_request(member, []), talk.synced())
    talk.wait(500)
    talk.answer(asked, wire.HeartbeatResponse())
    talk.settle()


def test_a_generation_is_written_with_the_first_sync_not_the_latest(talk: Conversation) -> None:
    """After all connections ended only what is written counts, and it was, long before the stale Heartbeat (G-02 missed)."""
    a, b = settled(talk)
    talk.round([a, b], 4)
    live(talk, [a, b], 3)
    talk.close(a)
    talk.close(b)
    a, b = a.reconnected(), b.reconnected()
    b.generation = 3
    stale_beside_a_late_sync(talk, b, a)
    assert talk.rules() == ["G-02"]


def test_a_generation_that_was_first_synced_after_all_connections_ended_proves_nothing_before(talk: Conversation) -> None:
    """The twin of the above: the coordinator may have come back without it, and been at the generation before."""
    a, b = settled(talk)
    live(talk, [a, b], 3)
    talk.join_all([a, b], 4)
    talk.close(a)
    talk.close(b)
    a, b = a.reconnected(), b.reconnected()
    b.generation = 3
    stale_beside_a_late_sync(talk, b, a)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- DeleteGroups


def delete(talk: Conversation) -> None:
    result = wire.DeleteGroupsResponseDeletableGroupResult(group_id="g", error_code=0)
    talk.call(talk.client("admin"), wire.DeleteGroupsRequest(groups_names=("g",)), wire.DeleteGroupsResponse(results=(result,)))


def test_a_deletion_ends_the_members_with_the_group(talk: Conversation) -> None:
    """Only an empty group can be deleted: the session that had just run out is nobody's any more (false T-04)."""
    a, b = settled(talk)
    live(talk, [a, b], 3)
    talk.leave(a)
    talk.leave(b)
    talk.round([c := talk.client("c")], 5)
    talk.wait(10_500)  # its session has run out, and the coordinator knows; slack has not passed
    assert members(talk) == [c.member_id]
    delete(talk)
    assert members(talk) == []
    talk.wait(30_000)
    assert talk.rules() == []
    assert talk.group_json()["state"] == "Dead"
