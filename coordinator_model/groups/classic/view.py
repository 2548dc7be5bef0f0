"""The view of a classic group."""

from __future__ import annotations

from coordinator_model.events import State
from coordinator_model.group_view import GroupView
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.records import Member
from coordinator_model.groups.view import member_of, view_of


def view(group: ClassicGroup, open_findings: int, partition: int, now_us: int) -> GroupView:
    """Return the view of a group at ``now_us``."""
    newest = group.newest_generation
    members = list(group.present_members())
    own = {
        "state": group.state.value,
        "leader": (newest.leader or None) if newest is not None else None,
        "protocol_type": group.protocol_type or None,
        "protocol": newest.protocol if newest is not None else None,
        "members": [member_of(member, _member_state(group, member)) for member in members],
        "waits_for": _waits_for(group, members),
    }
    return view_of(group, own, open_findings, partition, now_us)


def _member_state(group: ClassicGroup, member: Member) -> str:
    if member.parked_join in group.open:
        return "rejoining"
    if group.state is State.PREPARING:
        return "not rejoined"
    newest = group.newest_generation
    if newest is None or member.in_sync == newest.generation:
        return "in sync"
    if member.parked_sync in group.open:
        return "waits for its assignment"
    return "joined" if member.joined == newest.generation else "in sync"


def _waits_for(group: ClassicGroup, members: list[Member]) -> list[str]:
    """Return the ids of the members that the current phase waits for."""
    newest = group.newest_generation
    if group.state is State.PREPARING:
        return [member.id for member in members if member.parked_join not in group.open]
    if group.state is State.COMPLETING and newest is not None and newest.leader_synced_us is None:
        return [newest.leader]
    return []
