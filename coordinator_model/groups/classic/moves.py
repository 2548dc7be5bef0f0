"""What a rebalance of a classic group did to its partitions: which moved, and for how long nobody held them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from coordinator_model.groups.classic.assignment_checks import Partitions
from coordinator_model.groups.rebalance_recorder import MemberProgress, Moved, TopicPartition


def moves(
    before: Mapping[str, Partitions],
    after: Mapping[str, Partitions],
    members: Mapping[str, MemberProgress],
    *,
    gone_us: Mapping[str, int],
    unheld: Iterable[tuple[str, int, int]],
    ended_us: int,
) -> tuple[Moved, tuple[tuple[str, int, int], ...]]:
    """Return what happened to the partitions of a group in a rebalance, and which of them nobody holds at its end, ``ended_us``.

    :param before: holder → partitions; so is ``after``.
    :param members: by holder.
    :param gone_us: holder → when it ceased to be a member.
    :param unheld: topic, partition and since when nobody has held it, from earlier rebalances.
    """
    old, new = dict(_holders(before)), dict(_holders(after))
    since_us = {(topic, partition): at_us for topic, partition, at_us in unheld}
    unheld_us: dict[TopicPartition, int] = {}
    left = []
    for each in {**old, **since_us}:
        holder, next_holder = old.get(each), new.get(each)
        released_us = since_us.get(each, 0) if holder is None else _released_us(holder, next_holder, members, gone_us)
        if next_holder is None:
            left.append((*each, ended_us))
        if released_us:
            taker = members.get(next_holder) if next_holder is not None else None
            held_us = taker.served_us if taker is not None and taker.served_us else ended_us
            unheld_us[each] = max(0, held_us - released_us)
    stayed = sum(new.get(each) == holder for each, holder in old.items())
    return Moved(len({**old, **new}) - stayed, stayed, dict(sorted(unheld_us.items()))), tuple(left)


def _released_us(holder: str, next_holder: str | None, members: Mapping[str, MemberProgress], gone_us: Mapping[str, int]) -> int:
    """Return when a holder stopped consuming a partition, 0 if it never did."""
    progress = members.get(holder)
    if holder in gone_us:
        return gone_us[holder]
    if progress is None:
        return 0
    if progress.stopped_us:
        return progress.stopped_us
    return 0 if next_holder == holder else progress.served_us  # a cooperative member gives it up on its new assignment


def _holders(held: Mapping[str, Partitions]) -> Iterator[tuple[TopicPartition, str]]:
    for holder, owned in held.items():
        for topic, partitions in owned.items():
            for partition in partitions:
                yield (topic, partition), holder


def size_of(held: Mapping[str, Partitions]) -> int:
    """Return the number of partitions held."""
    return sum(len(partitions) for owned in held.values() for partitions in owned.values())
