"""What a member is assigned, what it was told to give up, and who may have it already.

The coordinator gives a partition to one member at a time. A member that is told to give some up gets a smaller assignment at the epoch
that it has; it acknowledges by a request that no longer lists them. What is possible after a missing frame is wider than what was seen,
so nothing here survives a gap.
"""

from __future__ import annotations

from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import DoubleOwned
from coordinator_model.groups.epochs.evidence import answer_evidence
from coordinator_model.groups.epochs.records import NO_PARTITIONS, DoubleGrant, EpochMember
from coordinator_model.groups.records import Exchange, HeartbeatFacts, Partitions
from coordinator_model.groups.tracker import NOTHING, Event

_DOUBLES_KEPT = 16


def joins(exchange: Exchange, member: EpochMember, assignment: Partitions | None) -> None:
    """Process the success of a join: what the member owned and was told before is settled."""
    member.pending = NO_PARTITIONS
    member.told_us = 0
    member.told_frame = None
    member.granted = assignment
    member.ever = None if assignment is None else dict.fromkeys(assignment, 0)
    member.granted_us = exchange.res_us
    member.granted_frame = answer_evidence(exchange)


def stays(
    group: EpochGroupData,
    exchange: Exchange,
    member: EpochMember,
    epoch: int,
    assignment: Partitions | None,
    *,
    overlapped: bool,
) -> None:
    """Process the success of an ordinary heartbeat, before the member's epoch changes.

    :param epoch: that the response returned.
    :param overlapped: the order of this heartbeat and another of the member is not known.
    """
    facts = exchange.facts
    assert isinstance(facts, HeartbeatFacts)
    rose = member.epoch is None or epoch > member.epoch
    if rose or overlapped or not group.traits.exclusive:
        member.pending = NO_PARTITIONS
    elif facts.owned is not None:
        member.pending &= facts.owned  # also without an assignment: it may have the target's epoch already
    if assignment is not None and overlapped:
        member.granted = member.ever = None  # this may be older than the one before, which may have taken something
    if assignment is None or overlapped:
        _note_told(group, exchange, member, NO_PARTITIONS)
        return
    before = member.granted
    taken = NO_PARTITIONS
    if before is not None and member.epoch is not None:
        taken = before - assignment
        if facts.owned is not None:
            taken &= facts.owned  # the rest may have been given up with this very request
        elif rose:
            taken = NO_PARTITIONS  # so much cannot have been taken without a frame that was missed
    elif before is not None and before - assignment:
        member.ever = None  # it was told to give them up, or gave them up before its epoch rose: which of both is not known
    if before is None or assignment - before:
        member.granted_us = exchange.res_us
        member.granted_frame = answer_evidence(exchange)
    member.granted = assignment
    member.was_assigned(assignment, epoch)
    if not group.traits.exclusive:
        taken = NO_PARTITIONS  # share groups take partitions at once
    member.pending = (member.pending - assignment) | taken
    _note_told(group, exchange, member, taken)


def _note_told(group: EpochGroupData, exchange: Exchange, member: EpochMember, taken: Partitions) -> None:
    """Start the clock of what the member was told to give up: each answer that takes more starts it again."""
    if taken:
        member.told_us = exchange.res_us
        member.told_frame = answer_evidence(exchange)
        member.told_timeout_ms = member.rebalance_timeout_ms
        group.changed = True
    elif not member.pending and member.told_us:
        member.told_us = 0
        member.told_frame = None
        group.changed = True


def removal_overdue_us(group: EpochGroupData, member: EpochMember) -> int | None:
    """Return until when the coordinator must have removed a member that does not give up what it was told to, None if that is not known."""
    timeout_ms = member.told_timeout_ms
    if not member.pending or not member.told_us or timeout_ms is None:
        return None
    return member.told_us + longest_kept_us(group, timeout_ms)


def longest_kept_us(group: EpochGroupData, timeout_ms: int) -> int:
    """Return for how long a coordinator may keep a member that does not do within its rebalance timeout what it was told to.

    A group that is loaded again starts the member's time anew, and between two heartbeats no frame shows it. One whose partition's leader
    epoch rises again and again is loaded as often: hence three times the time.
    """
    return 3 * timeout_ms * 1_000 + group.settings.slack_us(timeout_ms)


def note_double_grants(group: EpochGroupData, exchange: Exchange, member: EpochMember, assignment: Partitions) -> None:
    """Note partitions of an assignment that another member held for the whole time in which it can have been made."""
    skew_us = group.settings.clock_skew_us
    for other in group.members.values():
        if other is member or other.granted is None or other.removed is not None or other.classic:
            continue
        if other.granted_us + skew_us >= exchange.inv_us or other.holds.isdisjoint(assignment):
            continue
        both = other.holds & assignment
        frames = (*(() if other.granted_frame is None else (other.granted_frame,)), answer_evidence(exchange))
        group.doubles = [known for known in group.doubles if (known.holder, known.other) != (other.id, member.id)]
        group.doubles.append(DoubleGrant(other.id, member.id, tuple(sorted(both)), exchange.res_us, frames))
        del group.doubles[:-_DOUBLES_KEPT]


def prove_double_grants(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> tuple[Event, ...]:
    """Return events for what the member held all along while others got it. Call this before its success is processed."""
    skew_us = group.settings.clock_skew_us
    concerned = [known for known in group.doubles if known.holder == member.id and known.at_us + skew_us < exchange.inv_us]
    if not concerned:
        return NOTHING
    group.doubles = [known for known in group.doubles if known not in concerned]
    if member.epoch != exchange.generation or not exchange.gap_free:
        return NOTHING
    events = []
    for known in concerned:
        held = member.holds.intersection(known.partitions)
        if held:
            events.append(DoubleOwned(exchange, known, frozenset(held)))
    return tuple(events)
