"""Epochs, delivered and risen, and partitions: what a member is assigned, what it has to give up, and who may have it already.

The coordinator gives a partition to one member at a time. A member that is asked to give some up gets a smaller assignment at the epoch
that it has; it acknowledges by a request that no longer lists them. What is possible after a missing frame is wider than what was seen,
so nothing here survives a gap.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.events import TOPICS_CHANGED
from coordinator_model.groups.effects import Does
from coordinator_model.groups.epochs.data import BUMPS_KEPT, EpochGroupData
from coordinator_model.groups.epochs.events import DoubleOwned, EpochRose
from coordinator_model.groups.epochs.group import UNSEEN_CAUSE
from coordinator_model.groups.epochs.kinds import SHARE, STREAMS
from coordinator_model.groups.epochs.records import JOIN_EPOCH, NO_PARTITIONS, Bump, DoubleGrant, EpochMember
from coordinator_model.groups.evidence import epoch_response_evidence
from coordinator_model.groups.records import Exchange, HeartbeatFacts, Partitions, Removed
from coordinator_model.groups.tracker import NOTHING, Event

_DOUBLES_KEPT = 16


def joins(exchange: Exchange, member: EpochMember, assignment: Partitions | None) -> None:
    """Process the success of a join: what the member owned and was asked before is settled."""
    member.pending = NO_PARTITIONS
    member.revoking_us = 0
    member.revoking_frame = None
    member.granted = assignment
    member.ever = None if assignment is None else dict.fromkeys(assignment, 0)
    member.granted_us = exchange.res_us
    member.granted_frame = epoch_response_evidence(exchange)


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
        _note_revoking(group, exchange, member, NO_PARTITIONS)
        return
    before = member.granted
    taken = NO_PARTITIONS
    if before is not None and member.epoch is not None:
        taken = before - assignment
        if facts.owned is not None:
            taken &= facts.owned  # others may have been given up with this very request
        elif rose:
            taken = NO_PARTITIONS  # so much cannot have been taken without a frame that was missed
    elif before is not None and before - assignment:
        member.ever = None  # it was asked to give them up, or gave them up before its epoch rose: which of both is not known
    if before is None or assignment - before:
        member.granted_us = exchange.res_us
        member.granted_frame = epoch_response_evidence(exchange)
    member.granted = assignment
    member.was_assigned(assignment, epoch)
    if not group.traits.exclusive:
        taken = NO_PARTITIONS  # share groups take partitions at once
    member.pending = (member.pending - assignment) | taken
    _note_revoking(group, exchange, member, taken)


def _note_revoking(group: EpochGroupData, exchange: Exchange, member: EpochMember, taken: Partitions) -> None:
    """Start the clock of what the member was asked to give up: each answer that takes more starts it again."""
    if taken:
        member.revoking_us = exchange.res_us
        member.revoking_frame = epoch_response_evidence(exchange)
        member.revoking_timeout_ms = member.rebalance_timeout_ms
        group.changed = True
    elif not member.pending and member.revoking_us:
        member.revoking_us = 0
        member.revoking_frame = None
        group.changed = True


def removal_overdue_us(group: EpochGroupData, member: EpochMember) -> int | None:
    """Return by when the coordinator must have removed a member that does not give up what it was asked to, None if that is not known."""
    timeout_ms = member.revoking_timeout_ms
    if not member.pending or not member.revoking_us or timeout_ms is None:
        return None
    return member.revoking_us + longest_kept_us(group, timeout_ms)


def longest_kept_us(group: EpochGroupData, timeout_ms: int) -> int:
    """Return for how long a coordinator may keep a member that does not do within its rebalance timeout what it was asked to.

    A group that is loaded again starts the member's time anew, and between two heartbeats no frame shows it. One whose partition's leader
    epoch rises again and again is loaded as often: hence three times the time.
    """
    return 3 * timeout_ms * 1_000 + group.settings.slack_us(timeout_ms)


def note_double_grants(group: EpochGroupData, exchange: Exchange, member: EpochMember, assignment: Partitions) -> None:
    """Note partitions of an assignment that another member held for the whole time in which it can have been made."""
    skew_us = group.clock_skew_us
    for other in group.members.values():
        if other is member or other.granted is None or other.removed is not None or other.classic:
            continue
        if other.granted_us + skew_us >= exchange.inv_us or other.holds.isdisjoint(assignment):
            continue
        both = other.holds & assignment
        frames = (*(() if other.granted_frame is None else (other.granted_frame,)), epoch_response_evidence(exchange))
        group.doubles = [known for known in group.doubles if (known.holder, known.other) != (other.id, member.id)]
        group.doubles.append(DoubleGrant(other.id, member.id, tuple(sorted(both)), exchange.res_us, frames))
        del group.doubles[:-_DOUBLES_KEPT]


def prove_double_grants(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> tuple[Event, ...]:
    """Return events for what the member held all along while others got it. Call this before its success is processed."""
    skew_us = group.clock_skew_us
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


# ---------------------------------------------------------------------------------------------------- epochs

PUT_OFF: Final = "the assignment had been put off"
"""A group of Streams waits for members and for internal topics first, a share group for its partitions: then its epoch rises by itself."""

UNSEEN_CAUSES: Final = frozenset({UNSEEN_CAUSE, PUT_OFF})
DID_NOT_GIVE_UP: Final = "removed, did not give partitions up"
DID_NOT_COME_BACK: Final = "did not come back"
KEPT_OUT: Final = "removed, its joins were refused"
WENT_SILENT: Final = "went silent"
CAUSES: Final = (
    *("joined", "left", "removed", "fenced", "silent", "changed its subscription"),
    *(WENT_SILENT, KEPT_OUT, DID_NOT_GIVE_UP, DID_NOT_COME_BACK, UNSEEN_CAUSE, PUT_OFF),
    *TOPICS_CHANGED,
)
"""Why the epoch of a group rises."""

_USUAL_INTERVAL_MS: Final = 5_000
_STORM_PAUSES: Final = 1.5  #: heartbeat intervals without a new epoch that end a storm


def deliver(group: EpochGroupData, exchange: Exchange, member: EpochMember, epoch: int, *, overlapped: bool) -> tuple[Event, ...]:
    """Note that a success returned an epoch to a member; return an event if it is a new one of the group.

    :param overlapped: the order of this heartbeat and another of the member is not known.
    """
    if overlapped:
        member.epoch = member.previous = None
    elif epoch != member.epoch:
        member.previous = None if exchange.generation == JOIN_EPOCH else member.epoch
        member.epoch = epoch
        member.epoch_frame = epoch_response_evidence(exchange, epoch)
        group.changed = True
    member.epoch_us = exchange.res_us
    if group.epoch is not None and epoch <= group.epoch:
        group.epoch_us = group.epoch_us or exchange.res_us
        return NOTHING
    return _rose(group, exchange, member, epoch)


def removal_due_us(group: EpochGroupData, member: EpochMember) -> int | None:
    """Return when the coordinator may have removed a member that neither left nor was refused, None if it was not accepted yet."""
    if not member.accepted_us:
        return None
    session_us = max(member.accepted_us, member.removed_us) + group.shortest_session_ms(member) * 1_000
    if member.pending and member.revoking_us and member.revoking_timeout_ms is not None:
        return min(session_us, member.revoking_us + member.revoking_timeout_ms * 1_000)
    return session_us


_RAISES: Final = {Does.JOINS: "joined", Does.LEAVES: "left"}


def _raised_unseen(group: EpochGroupData, since_us: int, at_us: int) -> tuple[str, str]:
    """Return what raised the epoch if no answer did: a request whose answer does not show it, a member whose time ran out, or neither.

    A member that was away is none any more then. Of the others that is not certain: the epoch may have risen for another reason.

    :param since_us: when the epoch before was first seen.
    """
    for effect in group.effects.since(since_us, group.open.values()):
        if effect.does in _RAISES and effect.since_us < at_us:
            return _RAISES[effect.does], effect.member_id
    for member in group.members.values():
        due_us = removal_due_us(group, member)
        if due_us is None or due_us > at_us or not member.keeps_place or member.proven_us is None:
            continue
        if member.removed == Removed.AWAY:
            group.remove(member, Removed.NOT_BACK, at_us)
            group.recent = []
            return DID_NOT_COME_BACK, member.id
        if member.is_kept_out:
            return KEPT_OUT, member.id
        return (DID_NOT_GIVE_UP if member.pending else WENT_SILENT), member.id
    waits = group.kind in {SHARE, STREAMS} and all(member.empty_since_us for member in group.present_members())
    return PUT_OFF if waits else UNSEEN_CAUSE, ""


def _rose(group: EpochGroupData, exchange: Exchange, member: EpochMember, epoch: int) -> tuple[Event, ...]:
    before, followed_us = group.epoch, group.epoch_us
    group.epoch, group.epoch_us = epoch, exchange.res_us
    group.changed = True
    causes, group.recent = group.recent, []
    if before is None or not followed_us:
        return NOTHING  # it may have risen in a hole of the capture, for a reason that was not seen
    explained = causes or [_raised_unseen(group, followed_us, exchange.res_us)]
    cause, member_id = explained[0]
    if epoch - before > len(explained) or cause in UNSEEN_CAUSES:
        group.born_us = 0  # something raised it that was not seen: perhaps a member that joins elsewhere
    bump = Bump(exchange.res_us, epoch, cause, member_id or None, epoch_response_evidence(exchange, epoch))
    pause_us = int(_STORM_PAUSES * (member.interval_ms or _USUAL_INTERVAL_MS) * 1_000)
    if not group.bumps or bump.at_us - group.bumps[-1].at_us > pause_us:
        group.storm_since_us, group.storm_times, group.storm_causes = bump.at_us, 0, {}
    group.bumps = [*group.bumps[1 - BUMPS_KEPT :], bump]
    group.storm_times += 1
    group.storm_causes[cause] = group.storm_causes.get(cause, 0) + 1
    group.causes[cause] = group.causes.get(cause, 0) + 1
    causes_by_number = tuple(sorted(group.storm_causes.items(), key=lambda known: -known[1]))
    return (EpochRose(bump, group.storm_since_us, group.storm_times, causes_by_number),)
