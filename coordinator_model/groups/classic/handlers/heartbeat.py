"""Heartbeat: nine frames in ten.

A success does not prove membership: a coordinator that is still loading answers every Heartbeat with success.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from coordinator_model.groups.classic.state import SHOWN, Observation
from coordinator_model.groups.classic.trackers.sessions import THIN_SHARE
from coordinator_model.groups.events import SLOW_US, RejoinAsked
from coordinator_model.groups.evidence import response_evidence
from coordinator_model.groups.group_coordinator import is_coordinator
from coordinator_model.groups.records import Exchange, Generation, Member
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import COORDINATOR_MOVES, HEARTBEAT, NONE, NOT_ADMITTED, REBALANCE_IN_PROGRESS

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup

_SERVED: Final = SHOWN[Observation.HEARTBEAT_OK]


def is_unchanged_request(group: ClassicGroup, exchange: Exchange, member: Member) -> bool:  # noqa: ARG001
    """Return True if a request contains nothing new and came in its member's usual pace: only the member's times change then."""
    return (
        exchange.api_key == HEARTBEAT
        and member.joined in {None, exchange.generation}
        and exchange.instance_id == member.instance_id
        and exchange.key[0] == member.actor.connection
        and member.removed is None
        and member.fenced_us is None
        and (not member.heartbeat_us or _keeps_pace(member, exchange.inv_us - member.heartbeat_us))
    )


def _keeps_pace(member: Member, pause_us: int) -> bool:
    least_us, timeout_ms = member.least_interval_us, member.session_timeout_ms
    return 0 < least_us - least_us // 8 <= pause_us and (timeout_ms is None or pause_us <= timeout_ms * 1_000 * THIN_SHARE)


def on_unchanged_request(group: ClassicGroup, exchange: Exchange, member: Member) -> tuple[Event, ...]:  # noqa: ARG001
    """Process a request that contains nothing new. It and :func:`on_unchanged_response` alone leave the slow part of a group as it is."""
    _note_pace(member, exchange.inv_us)
    member.last_frame_us = exchange.inv_us
    member.last_api = HEARTBEAT
    return NOTHING


def is_unchanged_response(group: ClassicGroup, exchange: Exchange, member: Member, body: Any) -> bool:
    """Return True if a response shows nothing new, and nothing was open that it could settle: see :func:`on_unchanged_response`."""
    if exchange.api_key != HEARTBEAT or body.error_code:
        return False
    newest = group.newest_generation
    return (
        _is_known(group, exchange, member, newest)
        and is_coordinator(group, exchange.broker)
        and member.removed is None
        and member.rejoin_asked_us is None
        and not (member.leaving or (newest is not None and newest.rejoin_asked) or group.member_identity.alert)
        and group.state in _SERVED
        and not (group.coordinator_changes.watches_answers or group.effects.unanswered)
        and not (exchange.silence_us or body.throttle_time_ms)
        and exchange.res_us - exchange.inv_us <= SLOW_US
    )


def _is_known(group: ClassicGroup, exchange: Exchange, member: Member, newest: Generation | None) -> bool:
    """Return True if the member is in the roster of its generation or, where that was not captured, was served in it before."""
    if newest is not None and newest.generation != exchange.generation:
        return False
    if newest is not None and newest.roster is not None:
        return member.id in newest.roster
    return (
        group.generation_seen == exchange.generation
        and group.settled
        and member.proven_us is not None
        and member.fenced_us is None
        and not group.loading_near(exchange.broker, exchange.res_us)
    )


def on_unchanged_response(group: ClassicGroup, exchange: Exchange, member: Member) -> None:  # noqa: ARG001
    """Process a response that shows nothing new."""
    member.proven_us = exchange.res_us


def on_request(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    member = group.members.get(exchange.member_id)
    if member is None:
        return NOTHING
    late: tuple[Event, ...] = NOTHING
    pause_us = _note_pace(member, exchange.inv_us)
    if member.session_timeout_ms is not None and pause_us > member.session_timeout_ms * 1_000 * THIN_SHARE:
        late = group.sessions.thin_margin(group, exchange, member)
    if exchange.key[0] != member.actor.connection:
        late += group.member_identity.check_connection(group, exchange, member)
    return late


def _note_pace(member: Member, at_us: int) -> int:
    """Update the member's heartbeat interval; return the microseconds since its previous Heartbeat, 0 if there was none."""
    before_us, member.heartbeat_us = member.heartbeat_us, at_us
    if not before_us:
        return 0
    pause_us = at_us - before_us
    known, least = member.heartbeat_interval_us, member.least_interval_us
    member.heartbeat_interval_us = pause_us if known == 0 else (3 * known + pause_us) // 4
    if (pause_us < least - least // 8 or not least) and before_us > member.joined_us:
        member.least_interval_us = pause_us
    return pause_us


def on_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    error = exchange.error = body.error_code
    newest = group.generations[-1] if group.generations else None
    if error == NONE:
        member = group.members.get(exchange.member_id)
        if (
            member is not None
            and newest is not None
            and newest.generation == exchange.generation
            and newest.roster is not None
            and member.id in newest.roster
            and member.removed is None
            and is_coordinator(group, exchange.broker)
        ):
            member.proven_us = exchange.res_us
            if member.leaving:
                group.stays(member, exchange)
            group.coordinator_changes.returned(group, exchange)
            if member.rejoin_asked_us is not None:
                member.rejoin_asked_us = None
                group.changed = True
            if group.state not in _SERVED:
                group.served(exchange)
            return group.unlawful(exchange) if newest.rejoin_asked else NOTHING
        return _accepted(group, exchange)
    if error in COORDINATOR_MOVES:
        return group.coordinator_moves(exchange)
    if error in NOT_ADMITTED:
        return group.refuse(exchange, error)
    if error == REBALANCE_IN_PROGRESS and exchange.member_id:
        return _rejoin_asked(group, exchange, newest)
    return NOTHING


def _accepted(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    if group.loading_near(exchange.broker, exchange.res_us) or not exchange.member_id:
        return NOTHING
    group.accepted(exchange)
    member = group.member_of(exchange)
    newest = group.newest_generation
    if newest is None or newest.generation <= exchange.generation:
        if newest is not None and newest.generation < exchange.generation:
            group.assignments.ahead(group, exchange)
        group.generation_seen = max(exchange.generation, group.generation_seen or 0)
        if newest is None or newest.roster is None or member.id in newest.roster:
            group.prove(member, exchange)
        member.rejoin_asked_us = None
        group.observe(Observation.HEARTBEAT_OK, exchange.res_us)
    return group.unlawful(exchange)


def _rejoin_asked(group: ClassicGroup, exchange: Exchange, newest: Generation | None) -> tuple[Event, ...]:
    member = group.member_of(exchange)
    events: tuple[Event, ...] = NOTHING
    if newest is None or newest.generation == exchange.generation:
        group.accepted(exchange)
        if newest is None or newest.roster is None or member.id in newest.roster:
            group.prove(member, exchange)
        group.observe(Observation.TOLD_TO_REJOIN, exchange.res_us)
    if group.phases_proven_by(exchange):
        if newest is not None and newest.generation == exchange.generation:
            newest.rejoin_asked = (*(id_ for id_ in newest.rejoin_asked if id_ != member.id), member.id)
        events = group.unlawful(exchange)
    if group.parked(member):
        return events
    if member.rejoin_asked_us is None:
        member.rejoin_asked_us = exchange.res_us
        member.rejoin_frames = []
    member.rejoin_asked_last_us = exchange.res_us
    member.rejoin_frames = [*member.rejoin_frames[:1], response_evidence(exchange, REBALANCE_IN_PROGRESS)]
    return (*events, RejoinAsked(exchange, member))
