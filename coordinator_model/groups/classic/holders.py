"""Who holds which partitions of a classic group, before and after a rebalance."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_model.groups.classic.assignment_checks import Partitions
from coordinator_model.groups.rebalance import MemberProgress, TopicPartition


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
