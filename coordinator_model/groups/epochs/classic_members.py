"""Members of a consumer group that still use the classic protocol, while the group is being migrated.

Their JoinGroup never waits: it is answered at once with the member's own epoch as generation, without a leader and without members.
REBALANCE_IN_PROGRESS asks them to join again; their next JoinGroup acknowledges what they give up.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from coordinator_model.groups.epochs import classic_positions, identity, reconciliation
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import AskedToRejoin
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.evidence import epoch_response_evidence
from coordinator_model.groups.records import Exchange, JoinFacts, Removed
from coordinator_model.groups.responses import leave_outcomes
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import (
    COORDINATOR_MOVES,
    FENCED_INSTANCE_ID,
    HEARTBEAT,
    JOIN_GROUP,
    NONE,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
    UNKNOWN_MEMBER_ID,
)


def on_response(group: EpochGroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    """Process the response to a JoinGroup, a SyncGroup or a Heartbeat."""
    exchange.error = body.error_code
    if exchange.error in COORDINATOR_MOVES:
        return group.coordinator_moves(exchange)
    judged = classic_positions.unlawful(group, exchange, group.members.get(exchange.member_id))
    return judged + _answered(group, exchange, body)


def _answered(group: EpochGroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    error = exchange.error
    if error == NONE:
        if exchange.api_key == JOIN_GROUP:
            return _joined(group, exchange, body)
        member = group.members.get(exchange.member_id)
        if member is None:
            _was_there(group, exchange)
        elif member.classic:
            member.proven_us = member.accepted_us = exchange.res_us
            member.accepted_asked_us = exchange.inv_us
            member.rejoin_asked_us = None
            if exchange.api_key == SYNC_GROUP:
                member.synced_us = exchange.res_us
        return NOTHING
    if exchange.api_key == JOIN_GROUP:
        group.changed = True
    member = group.members.get(exchange.member_id)
    if member is None:
        if error == REBALANCE_IN_PROGRESS:
            _was_there(group, exchange)
        return NOTHING
    if error == UNKNOWN_MEMBER_ID and member.classic and member.removed is None:
        own_name = exchange.instance_id in {None, member.instance_id}
        gone = own_name and exchange.gap_free and not classic_positions.may_be_moved(group, exchange, member)
        group.remove(member, Removed.FENCED, exchange.res_us, epoch_response_evidence(exchange))
        member.gone = gone
    elif error == REBALANCE_IN_PROGRESS and member.classic and exchange.api_key != JOIN_GROUP:
        member.proven_us = member.accepted_us = exchange.res_us
        if member.rejoin_asked_us is None:
            member.rejoin_asked_us = exchange.res_us
            member.rejoin_frames = []
        member.rejoin_frames = [*member.rejoin_frames[:1], epoch_response_evidence(exchange)]
        if exchange.api_key == HEARTBEAT and not _joins_now(group, member):
            return (AskedToRejoin(exchange, member, member.rejoin_asked_us),)
    elif error == FENCED_INSTANCE_ID:
        return identity.refused(group, exchange, member)
    return NOTHING


def _was_there(group: EpochGroupData, exchange: Exchange) -> None:
    """Note a member that never joined this group: it was one of the classic group that was converted unseen."""
    if exchange.member_id:
        member = group.member_of(exchange)
        member.classic, member.instance_id, member.epoch = True, exchange.instance_id, exchange.generation
        member.proven_us = member.accepted_us = exchange.res_us
        member.accepted_asked_us = exchange.inv_us
        if exchange.instance_id is not None:
            group.instances.setdefault(exchange.instance_id, member.id)
        group.born_us = 0
        group.changed = True


def _joins_now(group: EpochGroupData, member: EpochMember) -> bool:
    return any(other.api_key == JOIN_GROUP and other.member_id == member.id for other in group.open.values())


def _joined(group: EpochGroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    facts = exchange.facts
    assert isinstance(facts, JoinFacts)
    group.accepted(exchange)
    member = group.member_of(exchange, body.member_id)
    if member.removed is not None or member.proven_us is None or not member.classic:
        group.may_have_raised("joined", member.id)
        group.mixed_since_us = group.mixed_since_us or exchange.res_us
    member.classic = True
    member.removed, member.gone = None, False
    member.session_timeout_ms, member.rebalance_timeout_ms = facts.session_timeout_ms, facts.rebalance_timeout_ms
    events = NOTHING
    if exchange.instance_id is not None:
        events = identity.take(group, exchange, member, exchange.instance_id)
    member.granted = member.ever = None
    member.pending = frozenset()
    member.rejoin_asked_us = None
    member.rejoin_frames = []
    member.proven_us = member.accepted_us = exchange.res_us
    member.accepted_asked_us = exchange.inv_us
    group.changed = True
    return events + reconciliation.deliver(group, exchange, member, body.generation_id, overlapped=False)


def on_left(group: EpochGroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    """Process the response to a LeaveGroup, which may name members of both protocols, by id or by instance."""
    exchange.error = body.error_code
    if exchange.error in COORDINATOR_MOVES:
        return group.coordinator_moves(exchange)
    events = NOTHING
    for member_id, instance_id, error in leave_outcomes(exchange, body):
        member = group.members.get(member_id or group.instances.get(instance_id or "", ""))
        if error != NONE:
            if member is not None and member_id and member.actor.connection == exchange.actor.connection:
                own = replace(exchange, member_id=member_id, instance_id=instance_id, error=error)
                events += classic_positions.unlawful(group, own, member)
            continue
        if member is not None and member.keeps_place and (member_id or _held(group, exchange, member)):
            _remove(group, exchange, member)
            if member_id:
                continue
        group.effects.note(exchange, exchange.res_us)  # the join of the member that it removed may be captured later
    group.doubles = []
    return events


def _remove(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> None:
    why = Removed.LEFT if member.actor.connection == exchange.actor.connection else Removed.REMOVED
    moves = any(effect.may_move(member.id) for effect in group.possible(exchange, exchange.inv_us))
    moves = moves or _let_in_us(member) + group.clock_skew_us >= exchange.inv_us  # perhaps by a join that came after the removal
    group.remove(member, why, exchange.res_us, epoch_response_evidence(exchange))
    group.usual.removed_by(member.id, exchange.actor)
    member.gone = exchange.gap_free and not moves
    if member.instance_id is not None and group.instances.get(member.instance_id) == member.id:
        del group.instances[member.instance_id]
    group.effects.note_overlap(exchange, group.open.values())


def _held(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> bool:
    """Return True if it was this member that held the instance id when the coordinator acted on a LeaveGroup that names that alone."""
    return _let_in_us(member) < exchange.inv_us and not any(
        effect.may_take(member.instance_id) for effect in group.possible(exchange, exchange.inv_us)
    )


def _let_in_us(member: EpochMember) -> int:
    return member.joins[-1] if member.joins else member.accepted_us
