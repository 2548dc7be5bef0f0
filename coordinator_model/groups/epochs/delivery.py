"""The epochs of members and of their group: delivered, risen, and why."""

from __future__ import annotations

from typing import Final

from coordinator_model.groups.epochs.data import BUMPS_KEPT, EpochGroupData
from coordinator_model.groups.epochs.events import EpochRose
from coordinator_model.groups.epochs.evidence import answer_evidence
from coordinator_model.groups.epochs.records import JOIN_EPOCH, Bump, EpochMember
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.tracker import NOTHING, Event

UNSEEN_CAUSE: Final = "topics, a pattern or the configuration changed"
DID_NOT_GIVE_UP: Final = "removed, did not give partitions up"
DID_NOT_COME_BACK: Final = "did not come back"
KEPT_OUT: Final = "removed, its joins were refused"
WENT_SILENT: Final = "went silent"
CAUSES: Final = (
    *("joined", "left", "removed", "fenced", "silent", "changed its subscription"),
    *(WENT_SILENT, KEPT_OUT, DID_NOT_GIVE_UP, DID_NOT_COME_BACK, UNSEEN_CAUSE),
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
        member.epoch_frame = answer_evidence(exchange, epoch)
        group.changed = True
    member.epoch_us = exchange.res_us
    member.reloaded = False
    if group.epoch is not None and epoch <= group.epoch:
        return NOTHING
    return _rose(group, exchange, member, epoch)


def removal_due_us(group: EpochGroupData, member: EpochMember) -> int | None:
    """Return when the coordinator may have removed a member that neither left nor was refused, None if it was not accepted yet."""
    if not member.accepted_us:
        return None
    session_us = max(member.accepted_us, member.removed_us) + group.shortest_session_ms(member) * 1_000
    if member.pending and member.told_us and member.told_timeout_ms is not None:
        return min(session_us, member.told_us + member.told_timeout_ms * 1_000)
    return session_us


def _removed_by_time(group: EpochGroupData, at_us: int) -> tuple[str, str]:
    """Return what raised the epoch if no frame did: a member whose time ran out, else something that no frame shows.

    A member that was away is none any more then. Of the others that is not certain: the epoch may have risen for another reason.
    """
    for member in group.members.values():
        due_us = removal_due_us(group, member)
        if due_us is None or due_us > at_us or member.removed not in {None, "aside"} or member.proven_us is None:
            continue
        if member.removed == "aside":
            group.remove(member, "did not come back", at_us)
            group.recent = []
            return DID_NOT_COME_BACK, member.id
        if member.is_kept_out:
            return KEPT_OUT, member.id
        return (DID_NOT_GIVE_UP if member.pending else WENT_SILENT), member.id
    return UNSEEN_CAUSE, ""


def _rose(group: EpochGroupData, exchange: Exchange, member: EpochMember, epoch: int) -> tuple[Event, ...]:
    before, group.epoch, group.epoch_us = group.epoch, epoch, exchange.res_us
    group.changed = True
    causes, group.recent = group.recent, []
    if before is None:
        return NOTHING
    explained = causes or [_removed_by_time(group, exchange.res_us)]
    cause, member_id = explained[0]
    if epoch - before > len(explained) or cause == UNSEEN_CAUSE:
        group.born_us = 0  # something raised it that was not seen: perhaps a member that joins elsewhere
    bump = Bump(exchange.res_us, epoch, cause, member_id or None, answer_evidence(exchange, epoch))
    pause_us = int(_STORM_PAUSES * (member.interval_ms or _USUAL_INTERVAL_MS) * 1_000)
    if not group.bumps or bump.at_us - group.bumps[-1].at_us > pause_us:
        group.storm_since_us, group.storm_times, group.storm_causes = bump.at_us, 0, {}
    group.bumps = [*group.bumps[1 - BUMPS_KEPT :], bump]
    group.storm_times += 1
    group.storm_causes[cause] = group.storm_causes.get(cause, 0) + 1
    group.causes[cause] = group.causes.get(cause, 0) + 1
    causes_by_number = tuple(sorted(group.storm_causes.items(), key=lambda known: -known[1]))
    return (EpochRose(bump, group.storm_since_us, group.storm_times, causes_by_number),)
