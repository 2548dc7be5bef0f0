"""What a DeleteGroups changes in what is known of the group."""

from __future__ import annotations

from tests.coordinator_model.classic import live, settled
from tests.coordinator_model.conversation import Conversation


def members(talk: Conversation) -> list[str]:
    return [member["member_id"] for member in talk.group_json()["members"]]


def test_a_deletion_ends_the_members_with_the_group(talk: Conversation) -> None:
    """Only an empty group can be deleted: the session that had just run out is nobody's any more (false T-04)."""
    a, b = settled(talk)
    live(talk, [a, b], 3)
    talk.leave(a)
    talk.leave(b)
    talk.round([c := talk.client("c")], 5)
    talk.wait(10_500)  # its session has run out, and the coordinator knows; slack has not passed
    assert members(talk) == [c.member_id]
    talk.delete()
    assert members(talk) == []
    talk.wait(30_000)
    assert talk.rules() == []
    assert talk.group_json()["state"] == "Dead"
