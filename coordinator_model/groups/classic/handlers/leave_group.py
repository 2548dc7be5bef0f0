"""LeaveGroup: a member leaves, or another client removes it (an admin client, by its instance id)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator_model.groups.protocol.classic import TABLE, Sender
from coordinator_model.groups.protocol.table import Effect, ways
from coordinator_model.groups.records import Exchange, LeaveFacts, Removed
from coordinator_model.groups.responses import leave_outcomes
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.releases import first_release
from coordinator_model.wire.constants import COORDINATOR_MOVES, LEAVE_GROUP, NONE, UNKNOWN_MEMBER_ID

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup


def on_request(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    assert isinstance(exchange.facts, LeaveFacts)
    for id_, _ in exchange.facts.members:
        member = group.members.get(id_)
        if member is not None and member.actor.client_id == exchange.actor.client_id:
            member.leaving, member.leave_asked_us = True, exchange.inv_us
    return NOTHING


def on_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    assert isinstance(exchange.facts, LeaveFacts)
    error = exchange.error = body.error_code
    if error != NONE:
        for id_, _ in exchange.facts.members:
            _not_left(group, id_)
    if error in COORDINATOR_MOVES:
        return group.coordinator_moves(exchange)
    if error != NONE:
        return NOTHING
    group.accepted(exchange)
    reasons = exchange.facts.reasons
    for index, (id_, instance_id, outcome) in enumerate(leave_outcomes(exchange, body)):
        holder = group.instances.get(instance_id) if instance_id is not None and not id_ else None
        member = group.members.get(holder.member_id if holder is not None else id_)
        if group.issued.pop(id_, None) and _may_prepare(exchange, outcome) and group.generations:
            group.generations[-1].unsettled_us = group.generations[-1].unsettled_us or exchange.res_us
        if outcome == NONE and member is not None and (id_ or member.joined_us < exchange.inv_us):
            if member.removed != Removed.LEFT:
                group.rebalances.on_left(group, exchange, member, reasons[index] if reasons else "")
            group.effects.note(exchange, exchange.res_us)  # a load may bring the member back: not each leave is written at once
            group.remove(member, Removed.LEFT, exchange.res_us)
            group.usual.removed_by(member.id, exchange.actor)
            if member.instance_id is not None:
                group.instances.pop(member.instance_id, None)
        elif outcome != NONE:
            _not_left(group, id_)
            own = member is not None and instance_id in {None, member.instance_id}
            served_since = member is not None and (member.proven_us or 0) >= exchange.effective_us
            if outcome == UNKNOWN_MEMBER_ID and member is not None and own and not served_since and member.removed is None:
                group.remove(member, Removed.REFUSED, exchange.res_us)
    group.changed = True
    return NOTHING


def _may_prepare(exchange: Exchange, outcome: int) -> bool:
    """Return True if a join phase may begin where an id leaves that was no member's yet. Not all releases begin one."""
    found = ways(TABLE, LEAVE_GROUP, exchange.api_version, outcome, first_release(LEAVE_GROUP, exchange.api_version))
    return any(Effect.PREPARES in way.row.effects for way in found if way.sender is Sender.PENDING)


def _not_left(group: ClassicGroup, member_id: str) -> None:
    """Process a refused LeaveGroup. One that repeats a granted one is refused as well."""
    member = group.members.get(member_id)
    if member is not None and member.removed != Removed.LEFT:
        member.leaving = False
