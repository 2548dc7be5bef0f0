"""Sessions of members with epochs: how long they last, when they end, why a live member is silent, and whose process came back.

No frame names the end of a session: answers show it. A live member sends nothing while it is throttled, leaves, or looks for its
coordinator. A client of these protocols keeps its member id for life, so a new id is a new process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.groups.epochs import identity, reconciliation
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import WentSilent
from coordinator_model.groups.epochs.kinds import STREAMS
from coordinator_model.groups.epochs.rebalance import stopped_us_of
from coordinator_model.groups.epochs.records import JOIN_EPOCH, EpochMember
from coordinator_model.groups.events import Throttled
from coordinator_model.groups.evidence import client_text
from coordinator_model.groups.records import Exchange, LeaveFacts, Removed
from coordinator_model.groups.successors import Dead, came_back
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import COORDINATOR_MOVES, FIND_COORDINATOR, JOIN_GROUP, LEAVE_GROUP


def outlasts(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> bool:
    """Return True if a heartbeat came later than after the shortest session that is possible."""
    return exchange.inv_us - member.accepted_us > group.shortest_session_ms(member) * 1_000


def note_pause(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> None:
    """Note that a session outlasted the time before this heartbeat. Call this before its success is noted.

    A coordinator that loads the group again restarts all sessions, and a restart that no frame shows ends all connections. A pause counts
    only if nothing is missing from the capture of it: heartbeats may be.
    """
    if (
        outlasts(group, exchange, member)
        and _seen_since(group, member.accepted_us)
        and member.disconnected_us < member.accepted_us
        and exchange.generation > JOIN_EPOCH
        and exchange.gap_free
        and not (member.classic or member.removed)
    ):
        group.session_bounds = group.session_bounds.outlasted(exchange.inv_us - member.accepted_us)


def note_end(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> None:
    """Note that a member, just refused as none, had sent nothing for a session. Its removal is noted afterwards."""
    silence_us = exchange.res_us - member.accepted_asked_us
    sent_nothing = not (member.pending or member.classic or member.removed)
    if _seen_since(group, member.accepted_asked_us) and sent_nothing and silence_us >= group.shortest_session_ms(member) * 1_000:
        _learn(group, silence_us)


def _seen_since(group: EpochGroupData, at_us: int) -> bool:
    """Return True if a member was accepted at this time, and since then all frames were captured and no session began anew."""
    return at_us >= max(1, group.covered_since_us, group.effects.hole_us, group.effects.loaded_us)


def ended_by_grant(group: EpochGroupData, exchange: Exchange) -> tuple[Event, ...]:
    """Remove the members whose partitions this answer gave to another, and whose session can have ended; return their events.

    One whose connection stood then, and that was accepted less than the shortest session before, stays a member: A-12 judges such a grant.
    """
    taker = group.members.get(exchange.member_id)
    if taker is None or not taker.granted or not group.rebalances.gone or not exchange.gap_free:
        return NOTHING
    events: list[Event] = []
    for id_ in list(group.rebalances.gone):
        member = group.members.get(id_)
        if member is None or member is taker or not member.present or member.classic or member.holds.isdisjoint(taker.granted):
            continue
        silence_us = exchange.res_us - member.accepted_asked_us
        hung_up_before = taker.granted_us > member.disconnected_us >= member.last_frame_us > 0
        hung_up = hung_up_before and member.actor.connection not in group.connections
        if not hung_up and silence_us < group.shortest_session_ms(member) * 1_000:
            continue
        if not member.pending and _seen_since(group, member.accepted_asked_us):
            _learn(group, silence_us)
        events += end(group, member, exchange.res_us, taken=True)
    return tuple(events)


def begins_anew(group: EpochGroupData, exchange: Exchange, epoch: int) -> bool:
    """Return True if a join got a lower epoch than was seen before, in a group that can have been empty and deleted since.

    The coordinator deletes an empty group without offsets when it next cleans up, and no frame shows it. An epoch never falls otherwise.
    """
    since_us = group.epoch_us + group.clock_skew_us
    if group.epoch is None or epoch >= group.epoch or exchange.inv_us <= since_us or not exchange.gap_free:
        return False
    return all(_can_be_gone(group, member, exchange.inv_us) for member in group.members.values())


def _can_be_gone(group: EpochGroupData, member: EpochMember, at_us: int) -> bool:
    due_us = reconciliation.removal_due_us(group, member)
    return not member.keeps_place or member.epoch is None or due_us is None or due_us <= at_us


def begin_anew(group: EpochGroupData, at_us: int) -> tuple[Event, ...]:
    """Note that the coordinator had deleted the group: the sessions of all that were its members are over; return their events."""
    events = NOTHING
    for member in list(group.members.values()):
        if member.present:
            events += end(group, member, at_us, taken=False)
        elif member.removed == Removed.AWAY:
            group.remove(member, Removed.NOT_BACK, at_us)
    group.begin_anew()
    return events


def _learn(group: EpochGroupData, silence_us: int) -> None:
    group.session_bounds = group.session_bounds.ended(silence_us)


def end(group: EpochGroupData, member: EpochMember, at_us: int, *, taken: bool) -> tuple[Event, ...]:
    """Remove a member whose session is over; return an event if it was silent. One whose joins were refused was not.

    :param taken: True if others have been given what it held.
    """
    events = NOTHING if member.is_kept_out else (WentSilent(member, at_us, stopped_us_of(member, Removed.SILENT, at_us), taken),)
    due_us = reconciliation.removal_due_us(group, member)
    has_risen = taken or (due_us is not None and group.epoch_us >= due_us)
    recent = list(group.recent)
    if not member.leaving:
        identity.left_behind(group, member, at_us)
    group.remove(member, Removed.SILENT, at_us)
    if has_risen:
        group.recent = recent
    return events


# ---------------------------------------------------------------------------------------------------- silence

USUAL_INTERVAL_MS: Final = 5_000
"""The heartbeat interval that coordinators set by default."""

_CLIENTS_KEPT: Final = 32
_FAILS_US: Final = 10_000_000  #: within which a thread of Kafka Streams ends after it was given tasks, and is replaced


def on_request(group: EpochGroupData, exchange: Exchange) -> None:
    """Note that a client looks for its coordinator or has found it, or that a LeaveGroup names members."""
    if exchange.api_key == FIND_COORDINATOR:
        group.coordinator_changes.searched(group, exchange)
        client = client_text(exchange.actor)
        group.searches.pop(client, None)
        group.searches[client] = exchange.inv_us
        while len(group.searches) > _CLIENTS_KEPT:
            del group.searches[next(iter(group.searches))]
    elif exchange.api_key == LEAVE_GROUP and isinstance(exchange.facts, LeaveFacts):
        for member_id, instance_id in exchange.facts.members:
            member = group.members.get(member_id or group.instances.get(instance_id or "", ""))
            if member is not None:
                member.leaving = True
    elif exchange.api_key == JOIN_GROUP:
        found_coordinator(group, exchange)


def found_coordinator(group: EpochGroupData, exchange: Exchange) -> None:
    """Note that a client joins: who looked for the coordinator was a process that has just started."""
    group.searches.pop(client_text(exchange.actor), None)


def on_response(group: EpochGroupData, exchange: Exchange, throttle_ms: int) -> tuple[Event, ...]:
    """Process an answer that throttles its client, or that shows it that its coordinator has gone: both concern the connection.

    :param throttle_ms: the throttle time in the answer, for which the client sends nothing on the connection.
    """
    if exchange.error_codes & COORDINATOR_MOVES:
        for member in _on_connection(group, exchange):
            member.heartbeat_us = 0  # it sends the next one when it has found another
    if not throttle_ms:
        return NOTHING
    for member in _on_connection(group, exchange):
        member.throttled_until_us = max(member.throttled_until_us, exchange.res_us + throttle_ms * 1_000)
    sender = group.members.get(exchange.member_id)
    interval_ms = (0 if sender is None else sender.interval_ms) or USUAL_INTERVAL_MS
    return (Throttled(exchange, throttle_ms, interval_ms * 1_000),) if throttle_ms > interval_ms else NOTHING


def _on_connection(group: EpochGroupData, exchange: Exchange) -> Iterator[EpochMember]:
    return (member for member in group.members.values() if member.actor.connection == exchange.actor.connection)


def looks_for_coordinator(group: EpochGroupData, member: EpochMember, since_us: int) -> bool:
    """Return True if a client like that of the member has asked for its coordinator after this time, and has not found it."""
    return group.searches.get(client_text(member.actor), 0) > since_us


# ----------------------------------------------------------------------------------------------------- restarts


def comes_back(group: EpochGroupData, exchange: Exchange, joined: EpochMember) -> tuple[Event, ...]:
    """Return an event if a member that joins under a new id is the successor of one that died. Call this before the join is noted."""
    alike = [one for one in group.members.values() if one is not joined and one.instance_id == exchange.instance_id]
    dead = [Dead(one.id, one.actor) for one in alike if died_us(group, one) is not None]
    if group.kind == STREAMS:
        dead += [Dead(one.id, one.actor, one.removed_us) for one in alike if _failed(one, exchange, alike)]
    return came_back(group, group, exchange, joined.id, dead)


def _failed(thread: EpochMember, exchange: Exchange, alike: list[EpochMember]) -> bool:
    """Return True if a thread of Kafka Streams that left soon after it was given tasks may have been replaced by the one that joins.

    A process that is started anew has threads of the same names, all of which lived together.
    """
    lived_us, away_us = thread.removed_us - thread.granted_us, exchange.res_us - thread.removed_us
    if thread.removed != Removed.LEFT or not thread.granted_us or max(lived_us, away_us) > _FAILS_US:
        return False
    named = [one for one in alike if one.actor.named == exchange.actor.named]
    return not any(one.removed_us > thread.granted_us for one in named)


def died_us(group: EpochGroupData, member: EpochMember) -> int | None:
    """Return when a member's process ended without leaving, as far as frames and its connection show; None if it did not."""
    if member.removed not in {None, Removed.SILENT} or member.classic or not member.last_frame_us:
        return None
    if member.disconnected_us >= member.last_frame_us and member.actor.connection not in group.connections:
        return member.disconnected_us
    return member.last_frame_us if member.removed == Removed.SILENT else None
