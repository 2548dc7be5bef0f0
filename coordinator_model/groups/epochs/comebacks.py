"""Whose process ended without leaving, and has come back as another member: crash loops are made of it.

A client of these protocols keeps its member id for life, so a new id is a new process.
"""

from __future__ import annotations

from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.sameness import Dead, came_back
from coordinator_model.groups.tracker import Event


def check(group: EpochGroupData, exchange: Exchange, joined: EpochMember) -> tuple[Event, ...]:
    """Return an event if a member that joins under a new id is the successor of one that died. Call this before the join is noted."""
    alike = [one for one in group.members.values() if one is not joined and one.instance_id == exchange.instance_id]
    dead = [Dead(one.id, one.actor) for one in alike if died_us(group, one) is not None]
    return came_back(group, group, exchange, joined.id, dead)


def died_us(group: EpochGroupData, member: EpochMember) -> int | None:
    """Return when a member's process ended without leaving, as far as frames and its connection show; None if it did not."""
    if member.removed not in {None, "silent"} or member.classic or not member.last_frame_us:
        return None
    if member.disconnected_us >= member.last_frame_us and member.actor.connection not in group.connections:
        return member.disconnected_us
    return member.last_frame_us if member.removed == "silent" else None
