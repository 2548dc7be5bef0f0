"""Helpers about parked requests: since when the coordinator holds one, which members it waits for, and what to do if for none."""

from __future__ import annotations

from typing import Final

from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.records import Exchange, Member
from coordinator_model.wire.constants import JOIN_GROUP

RESTART_THE_BROKER: Final = (
    "Keep the coordinator's log and a thread dump of it: it should have gone on by itself. If the group does not go on, restart that "
    "broker: another takes the group over, and all join anew."
)
"""What to do if a coordinator goes on holding requests for no reason that frames show."""


def processed_since(group: ClassicGroup, waiting: Exchange) -> int | None:
    """Return since when the coordinator holds this open request, None while others of its connection precede it."""
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
    """Return the members that the join phase waits for: present, and without an open or abandoned JoinGroup."""
    return [
        member
        for member in group.present_members()
        if member.parked_join not in group.open
        and not (member.abandoned_request is not None and member.abandoned_request.api_key == JOIN_GROUP)
    ]
