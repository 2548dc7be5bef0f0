"""Since when a coordinator has had a request in hand, and whom it waits for."""

from __future__ import annotations

from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.records import Exchange, Member
from coordinator_model.wire.constants import JOIN_GROUP


def processed_since(group: ClassicGroup, waiting: Exchange) -> int | None:
    """Since when the coordinator has had this open request in hand; None while others of its connection are ahead of it."""
    if waiting.effective_us < 0:
        return None
    if not waiting.queued_behind:
        return waiting.effective_us
    connection, number = waiting.key
    if any(other.key[0] == connection and other.key[1] < number for other in group.open.values()):
        return None
    line = group.connections.get(connection)
    return waiting.effective_us if line is None else max(waiting.effective_us, line.last_response_us)


def awaited_members(group: ClassicGroup) -> list[Member]:
    """Members that the join phase waits for: proven, not gone, and without a JoinGroup under way."""
    return [
        member
        for member in group.present_members()
        if member.parked_join not in group.open
        and not (member.abandoned_request is not None and member.abandoned_request.api_key == JOIN_GROUP)
    ]
