"""Member ids and instance ids: who takes a group.instance.id from whom, who comes back, and who leaves ids behind.

A client of these protocols keeps one member id for its life. The same id that joins again is therefore the same process, and a new id
of the same client is a new one.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.finding import Evidence
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import CameBack, InstanceTaken, LostInstanceRefused
from coordinator_model.groups.epochs.records import EpochMember, InstanceUse
from coordinator_model.groups.events import NewId
from coordinator_model.groups.evidence import client_text, epoch_response_evidence
from coordinator_model.groups.records import Exchange, Removed
from coordinator_model.groups.tracker import NOTHING, Event

ABANDONED_US: Final = 3_600_000_000
_KEPT: Final = 6  #: changes of hands, and refusals, of one instance id
_TIMES_KEPT: Final = 16
_CLIENTS_KEPT: Final = 32


def take(group: EpochGroupData, exchange: Exchange, member: EpochMember, instance_id: str) -> tuple[Event, ...]:
    """Note that a member holds an instance id from here on; its last holder is replaced."""
    holder = group.members.get(group.instances.get(instance_id, ""))
    member.instance_id = instance_id
    group.instances[instance_id] = member.id
    group.claims.pop(instance_id, None)
    if holder is None or holder is member or not holder.keeps_place:
        return NOTHING
    replace(group, holder, exchange.res_us)
    known = group.instance_uses.get(instance_id) or InstanceUse(((holder.joins[-1] if holder.joins else 0, holder.id),))
    takes = (*known.takes[1 - _KEPT :], (exchange.res_us, member.id))
    use = group.instance_uses[instance_id] = known._replace(
        takes=takes, frames=(*known.frames[-2:], epoch_response_evidence(exchange))
    )
    return (InstanceTaken(exchange, instance_id, use),)


def goes_away(group: EpochGroupData, exchange: Exchange, member: EpochMember, frame: Evidence) -> None:
    """Note that a static member has left for a while, unless another holds its instance id already."""
    instance_id = exchange.instance_id
    if instance_id is not None:
        member.instance_id = instance_id
        holder = group.members.get(group.instances.get(instance_id, ""))
        if holder is not None and holder is not member and holder.joins and holder.joins[-1] >= exchange.inv_us:
            replace(group, member, exchange.res_us)  # the answer to its successor was captured first
            return
        group.instances[instance_id] = member.id
    group.remove(member, Removed.AWAY, exchange.res_us, frame)
    member.epoch = member.previous = None


def replace(group: EpochGroupData, member: EpochMember, at_us: int) -> None:
    """Note that another member has taken a member's place."""
    if member.keeps_place:
        group.remove(member, Removed.REPLACED, at_us)
        group.recent.pop()  # a replacement alone raises no epoch


def refused(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> tuple[Event, ...]:
    """Note a refusal of an instance id: it matters if the member held it before another took it."""
    instance_id = exchange.instance_id or (member.instance_id if member is not None else None)
    known = group.instance_uses.get(instance_id or "")
    if instance_id is None or known is None or group.instances.get(instance_id) == exchange.member_id:
        return NOTHING
    if all(member_id != exchange.member_id for _, member_id in known.takes):
        return NOTHING
    lost = (*known.refused[1 - _KEPT :], (exchange.res_us, exchange.member_id))
    use = group.instance_uses[instance_id] = known._replace(
        refused=lost, frames=(*known.frames[-2:], epoch_response_evidence(exchange))
    )
    return (LostInstanceRefused(exchange, instance_id, use),)


def returned(exchange: Exchange, member: EpochMember) -> tuple[Event, ...]:
    """Return an event if a member that had left joins again. Call this before its join is processed."""
    if member.removed not in {Removed.LEFT, Removed.AWAY} or not member.joins:
        return NOTHING
    left_us = member.removed_us
    return (CameBack(exchange, member, left_us - member.joins[-1], left_us - member.accepted_us, left_us, member.removed_frame),)


def left_behind(group: EpochGroupData, member: EpochMember, at_us: int) -> None:
    """Note that the session of a member ended that had not left. A static member keeps its place under its instance id."""
    if member.instance_id is not None or member.classic:
        return
    client = client_text(member.actor)
    times = tuple(known for known in group.abandoned.get(client, ()) if known > at_us - ABANDONED_US)
    group.abandoned[client] = (*times[1 - _TIMES_KEPT :], at_us)
    while len(group.abandoned) > _CLIENTS_KEPT:
        del group.abandoned[next(iter(group.abandoned))]


def new_id(group: EpochGroupData, exchange: Exchange) -> tuple[Event, ...]:
    """Return an event if the client of a new member left ids behind within the hour."""
    times = group.abandoned.get(client_text(exchange.actor), ())
    recent = sum(1 for at_us in times if at_us > exchange.res_us - ABANDONED_US)
    return (NewId(exchange, exchange.member_id, recent),) if recent else NOTHING
