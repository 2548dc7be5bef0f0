"""The ends of sessions, which no frame names: what answers show of them, and how long a session therefore lasts."""

from __future__ import annotations

from coordinator_model.groups.epochs import delivery, identity
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import WentSilent
from coordinator_model.groups.epochs.rebalance_events import stopped_us_of
from coordinator_model.groups.epochs.records import JOIN_EPOCH, EpochMember
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.tracker import NOTHING, Event


def outlasts(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> bool:
    """Return True if a heartbeat came later than after the shortest session that is possible."""
    return exchange.inv_us - member.accepted_us > group.shortest_session_ms(member) * 1_000


def note_pause(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> None:
    """Note that a session outlasted the time before this heartbeat. Call this before its success is noted.

    A coordinator that loads the group again restarts all sessions, and a restart that no frame shows ends all connections.
    """
    if (
        outlasts(group, exchange, member)
        and member.accepted_us
        and member.disconnected_us < member.accepted_us
        and exchange.generation > JOIN_EPOCH
        and exchange.gap_free
        and not (member.reloaded or member.classic or member.removed)
    ):
        group.session_bounds = group.session_bounds.outlasted(exchange.inv_us - member.accepted_us)


def note_end(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> None:
    """Note that a member, which has just been told that it is none, had not been heard for a session. Its removal is noted afterwards."""
    silence_us = exchange.res_us - member.accepted_asked_us
    sent_nothing = not (member.pending or member.reloaded or member.classic or member.removed)
    if member.accepted_asked_us and sent_nothing and silence_us >= group.shortest_session_ms(member) * 1_000:
        _learn(group, silence_us)


def ended_by_grant(group: EpochGroupData, exchange: Exchange) -> tuple[Event, ...]:
    """Remove the members whose partitions this answer gave to another, and whose session can have ended; return their events.

    One whose connection stood then, and that was accepted less than the shortest session before, stays a member: A-12 judges such a grant.
    """
    taker = group.members.get(exchange.member_id)
    if taker is None or not taker.granted or not group.rebalance_events.gone or not exchange.gap_free:
        return NOTHING
    events: list[Event] = []
    for id_ in list(group.rebalance_events.gone):
        member = group.members.get(id_)
        if member is None or member is taker or not member.present or member.classic or member.holds.isdisjoint(taker.granted):
            continue
        silence_us = exchange.res_us - member.accepted_asked_us
        hung_up_before = taker.granted_us > member.disconnected_us >= member.last_frame_us > 0
        hung_up = hung_up_before and member.actor.connection not in group.connections
        if not hung_up and silence_us < group.shortest_session_ms(member) * 1_000:
            continue
        if not member.pending:
            _learn(group, silence_us)
        events += end(group, member, exchange.res_us, taken=True)
    return tuple(events)


def begins_anew(group: EpochGroupData, exchange: Exchange, epoch: int) -> bool:
    """Return True if a join got a lower epoch than was seen before, in a group that can have been empty and deleted since.

    The coordinator deletes an empty group without offsets when it next cleans up, and no frame shows it. An epoch never falls otherwise.
    """
    since_us = group.epoch_us + group.settings.clock_skew_us
    if group.epoch is None or epoch >= group.epoch or exchange.inv_us <= since_us or not exchange.gap_free:
        return False
    return all(_can_be_gone(group, member, exchange.inv_us) for member in group.members.values())


def _can_be_gone(group: EpochGroupData, member: EpochMember, at_us: int) -> bool:
    due_us = delivery.removal_due_us(group, member)
    return member.removed not in {None, "aside"} or member.epoch is None or due_us is None or due_us <= at_us


def begin_anew(group: EpochGroupData, at_us: int) -> tuple[Event, ...]:
    """Note that the coordinator had deleted the group: the sessions of all that were its members are over; return their events."""
    events = NOTHING
    for member in list(group.members.values()):
        if member.present:
            events += end(group, member, at_us, taken=False)
        elif member.removed == "aside":
            group.remove(member, "did not come back", at_us)
    group.begin_anew()
    return events


def _learn(group: EpochGroupData, silence_us: int) -> None:
    group.session_bounds = group.session_bounds.ended(silence_us)


def end(group: EpochGroupData, member: EpochMember, at_us: int, *, taken: bool) -> tuple[Event, ...]:
    """Remove a member whose session is over; return an event if it was silent. One whose joins were refused was not.

    :param taken: True if others have been given what it held.
    """
    events = NOTHING if member.is_kept_out else (WentSilent(member, at_us, stopped_us_of(member, "silent", at_us), taken),)
    due_us = delivery.removal_due_us(group, member)
    has_risen = taken or (due_us is not None and group.epoch_us >= due_us)
    recent = list(group.recent)
    if not member.leaving:
        identity.left_behind(group, member, at_us)
    group.remove(member, "silent", at_us)
    if has_risen:
        group.recent = recent
    return events
