"""What is noted of a classic group's member that goes, and who holds partitions."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from coordinator_model.groups.classic.assignment_checks import Partitions
from coordinator_model.groups.records import Member, Removed
from coordinator_model.groups.usual import Gone

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData


def note_departure(
    group: GroupData, member: Member, why: Removed, *, stopped_us: int, known_us: int, held: Partitions | None
) -> None:
    """Note a member that is none from now on.

    :param stopped_us: when it stopped consuming, as far as frames and its connection show.
    :param held: what it held; None if that is not known.
    """
    if why == Removed.LEFT and not member.leaving:
        why = Removed.REMOVED
    elif why == Removed.DROPPED and member.leaving:
        why = Removed.LEFT  # its LeaveGroup is answered later than the JoinGroups that waited for it
    was_member_us = stopped_us - member.joined_us if member.joined_us else 0
    gone = Gone.of(member, why, stopped_us=stopped_us, known_us=known_us, was_member_us=was_member_us, held=held)
    left = sum(1 for _ in group.present_members())
    group.usual.went(gone, left, group.settings.usual_ms * 1_000, group.committed_offsets.offset_of)


def holders_of(held: Mapping[str, Partitions], gone: Container[str], partitions: Container[tuple[str, int]]) -> list[str]:
    """Return who holds any of these partitions.

    :param gone: those that have gone since the last rebalance.
    """
    return [
        holder
        for holder, owned in held.items()
        if holder not in gone and any((topic, number) in partitions for topic, numbers in owned.items() for number in numbers)
    ]
