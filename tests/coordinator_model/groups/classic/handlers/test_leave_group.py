"""What a LeaveGroup changes in what is known of the group."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from tests.coordinator_model.classic import live, settled
from tests.coordinator_model.conversation import Conversation


def members(talk: Conversation) -> list[str]:
    return [member["member_id"] for member in talk.group_json()["members"]]


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
    outcomes = tuple(
        wire.LeaveGroupResponseMemberResponse(member_id=one.member_id, error_code=error) for one, error in ((b, 82), (c, 0))
    )
    talk.call(talk.client("admin"), talk.leave_request(b, c), wire.LeaveGroupResponse(members=outcomes))
    assert members(talk) == [a.member_id, b.member_id]
