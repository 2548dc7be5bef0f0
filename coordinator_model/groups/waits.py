"""Who waits for whom, in words, for findings, pages and records of rebalances.

*In a classic group all wait for all*: for members to rejoin, and then for the leader's assignment.

*In a group with epochs a partition moves only when its holder has given it up.* Three things keep it there: the holder was not asked yet,
was asked and has not acknowledged, or has gone. Which members wait is never certain, since no frame shows what a member is to get.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from coordinator_model.events import GONE, ID_NOT_USED, NO_ASSIGNMENT, NOT_GIVEN_UP, NOT_REJOINED, NOT_TOLD, RECONCILING, State
from coordinator_model.groups.epochs.data import EpochGroupData, partitions_text
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.records import Partitions, Removed
from coordinator_model.wording import clock, counted, iso_utc

_SHOWN: Final = 5
_HELD_UP: Final = {
    NOT_REJOINED: "did not rejoin",
    ID_NOT_USED: "did not use its member id",
    NO_ASSIGNMENT: "sent no assignment",
    NOT_GIVEN_UP: "gave no partitions up",
    NOT_TOLD: "sent no heartbeat",
    GONE: "was gone",
}
_AWAITED: Final = {State.PREPARING.value: "rejoin", RECONCILING: "come to the newest epoch"}


def of_all(state: str, named: str, held: int) -> str:
    """Return for whom the others wait in a state, as a sentence without its full stop.

    :param named: for whom.
    :param held: how many others there are.
    """
    others = f"; {counted(held, 'member is', 'members are')} held up" if held else ""
    return f"Waits for {named} to {_AWAITED.get(state, 'hand out the partitions')}{others}"


def held_up(named: str, why: str, lasted: str) -> str:
    """Return who held a rebalance up that is over, and for how long: "orders-2 did not rejoin for 25.0 s"."""
    return f"{named} {_HELD_UP.get(why, 'was waited for')} for {lasted}"


class Wait(NamedTuple):
    """What keeps partitions with a member."""

    kind: str
    holder: EpochMember
    partitions: Partitions  #: empty if they are not known
    since_us: int
    until_us: int | None  #: when the coordinator ends it; None if that is not known


def wait_for(group: EpochGroupData, member: EpochMember) -> Wait | None:
    """Return what keeps partitions with a member, None if nothing does."""
    if member.proven_us is None or not member.keeps_place:
        return None
    session_us = group.shortest_session_ms(member) * 1_000
    if member.removed == Removed.AWAY:
        return Wait(GONE, member, member.holds, member.removed_us, member.accepted_us + session_us) if member.holds else None
    if member.disconnected_us > member.last_frame_us and member.holds:
        return Wait(GONE, member, member.holds, member.disconnected_us, member.accepted_us + session_us)
    if member.rejoin_asked_us is not None:
        return Wait(
            NOT_GIVEN_UP, member, member.holds, member.rejoin_asked_us, _after(member.rejoin_asked_us, member.rebalance_timeout_ms)
        )
    if member.pending and member.revoking_us:
        until_us = _after(member.revoking_us, member.revoking_timeout_ms)
        return Wait(NOT_GIVEN_UP, member, member.pending, member.revoking_us, until_us)
    if member.epoch is not None and group.epoch is not None and member.epoch < group.epoch:
        return Wait(NOT_TOLD, member, member.holds, group.epoch_us, member.accepted_us + session_us)
    return None


def _after(at_us: int, timeout_ms: int | None) -> int | None:
    return None if timeout_ms is None else at_us + timeout_ms * 1_000


def waits(group: EpochGroupData) -> list[Wait]:
    """Return what keeps partitions with members of the group, what lasts longest first."""
    found = [wait for member in group.members.values() if (wait := wait_for(group, member)) is not None]
    return sorted(found, key=lambda wait: (wait.since_us, wait.holder.id))


def sentence(group: EpochGroupData, wait: Wait, named: str, ago: str = "", of: str = "") -> str:
    """Return the wait as a sentence without its full stop.

    :param named: the holder, to begin with.
    :param ago: how long it has lasted, such as ``11.0 s ago``; the time at which it began if empty.
    :param of: more about the partitions, such as "of group orders".
    """
    since = ago or f"at {clock(wait.since_us)}"
    what = (partitions_text(group, wait.partitions) if wait.partitions else "what it holds") + of
    if wait.kind == NOT_GIVEN_UP:
        asked = f"give up {what}" if not wait.holder.classic else "join again and give up what it must"
        ends = f"; the coordinator removes that member at {clock(wait.until_us)}" if wait.until_us is not None else ""
        return f"{named} was asked to {asked} {since} and has not; nobody gets it before{ends}"
    ends = "" if wait.until_us is None else f", by default at {clock(wait.until_us)}"
    if wait.kind == GONE:
        went = "left for a while" if wait.holder.removed == Removed.AWAY else "lost its connection"
        return f"{named} {went} {since} and keeps {what}; nobody gets it before that member's session ends{ends}"
    return (
        f"{named} has not been told of epoch {group.epoch}, which began {since}; {what} cannot move before its next heartbeat, or before "
        f"its session ends{ends}"
    )


def as_json(group: EpochGroupData) -> list[dict[str, Any]]:
    """Return the longest waits, as published."""
    return [
        {
            "member_id": wait.holder.id,
            "kind": wait.kind,
            "partitions": len(wait.partitions) or None,
            "since": iso_utc(wait.since_us),
            "until": None if wait.until_us is None else iso_utc(wait.until_us),
            "text": sentence(group, wait, wait.holder.instance_id or wait.holder.actor.client_id or wait.holder.id),
        }
        for wait in waits(group)[:_SHOWN]
    ]
