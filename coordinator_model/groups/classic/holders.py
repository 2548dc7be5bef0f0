"""Who holds which partitions of a classic group, before and after a rebalance."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_model.groups.classic.assignment_checks import Partitions
from coordinator_model.groups.rebalance import MemberProgress, TopicPartition
from coordinator_model.groups.records import Member, Removed


def holds_after(member: MemberProgress, held: dict[str, Partitions]) -> Partitions:
    """Return what a member holds at the end of a rebalance; one that was not served keeps what it had if it did not stop."""
    if member.served_us:
        return member.partitions or {}
    return {} if member.stopped_us else held.get(member.identity.holder, {})


def holders(held: dict[str, Partitions]) -> Iterator[tuple[TopicPartition, str]]:
    """Yield each partition that is held, with its holder."""
    for holder, owned in held.items():
        for topic, partitions in owned.items():
            for partition in partitions:
                yield (topic, partition), holder


def released_us(holder: str, next_holder: str | None, members: dict[str, MemberProgress], gone_us: dict[str, int]) -> int:
    """Return when a holder stopped consuming a partition, 0 if it never did."""
    progress = members.get(holder)
    if holder in gone_us:
        return gone_us[holder]
    if progress is None:
        return 0
    if progress.stopped_us:
        return progress.stopped_us
    return 0 if next_holder == holder else progress.served_us  # a cooperative member gives it up on its new assignment


def consumed_until_us(member: Member, why: Removed, at_us: int) -> int:
    """Return until when a member that was removed consumed, as far as frames and its connection show."""
    if member.disconnected_us and member.disconnected_us >= member.last_frame_us:
        return member.disconnected_us
    if why == Removed.LEFT or member.leaving:
        return member.leave_asked_us or at_us
    if why in {Removed.SILENT, Removed.REPLACED} or (why == Removed.DROPPED and _session_ended(member, at_us)):
        return member.last_frame_us
    return at_us


def _session_ended(member: Member, at_us: int) -> bool:
    """Return True if a member was silent for its session timeout: the join phase without it came before that was certain."""
    return member.session_timeout_ms is not None and member.last_frame_us + member.session_timeout_ms * 1_000 <= at_us
