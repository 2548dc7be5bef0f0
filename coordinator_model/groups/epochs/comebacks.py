"""Crash loops: a client's process ends without leaving, and another one takes its place, repeatedly.

A client of these protocols keeps its member id for life, so a new id is a new process. As in classic groups, a return is added to earlier
ones only if the member that died was the one that had returned: processes that share a client id and are killed together do not count.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import CameBackDead
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.sameness import SAMENESS
from coordinator_model.groups.tracker import NOTHING, Event

_TIMES_KEPT: Final = 32
_IDS_KEPT: Final = 64


def check(group: EpochGroupData, exchange: Exchange, joined: EpochMember) -> tuple[Event, ...]:
    """Return an event if a member that joins under a new id is the successor of one that died. Call this before the join is noted."""
    found = _dead_before(group, exchange, joined)
    if found is None:
        return NOTHING
    dead, known_by = found
    since_us = exchange.res_us - group.settings.crash_loop_ms * 1_000
    times = (*(at_us for at_us in group.returns.get(dead.id, ()) if at_us > since_us), exchange.res_us)[-_TIMES_KEPT:]
    others = [(id_, kept) for id_, kept in group.returns.items() if id_ != dead.id]
    group.returns = dict([*others, (joined.id, times)][-_IDS_KEPT:])
    group.succeeded = (*group.succeeded, dead.id)[-_IDS_KEPT:]
    return (CameBackDead(exchange, joined, dead, known_by, times),)


def _dead_before(group: EpochGroupData, exchange: Exchange, joined: EpochMember) -> tuple[EpochMember, str] | None:
    """Return the member that died, of several the one with most returns, and what shows that it was the same client."""
    ended = [
        one
        for one in group.members.values()
        if one is not joined and one.id not in group.succeeded and died_us(group, one) is not None
    ]
    if exchange.instance_id is not None:
        return _most_returned(group, [one for one in ended if one.instance_id == exchange.instance_id], "instance id")
    for known_by, is_same in SAMENESS:
        same = [one for one in ended if one.instance_id is None and is_same(group, one.actor, exchange.actor)]
        if same:
            return _most_returned(group, same, known_by)
    return None


def _most_returned(group: EpochGroupData, dead: list[EpochMember], known_by: str) -> tuple[EpochMember, str] | None:
    if not dead:
        return None
    return max(dead, key=lambda one: (len(group.returns.get(one.id, ())), one.id)), known_by


def died_us(group: EpochGroupData, member: EpochMember) -> int | None:
    """Return when a member's process ended without leaving, as far as frames and its connection show; None if it did not."""
    if member.removed not in {None, "silent"} or member.classic or not member.last_frame_us:
        return None
    if member.disconnected_us >= member.last_frame_us and member.actor.connection not in group.connections:
        return member.disconnected_us
    return member.last_frame_us if member.removed == "silent" else None
