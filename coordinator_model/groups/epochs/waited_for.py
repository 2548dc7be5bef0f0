"""For whom others waited in a rebalance of members with epochs, and how long: the ``waited_for`` of its record.

*A partition moves when its holder has given it up*: with its own heartbeats, or when it is removed. No frame shows which member is to get
it. So a member that holds partitions and does not come to the epoch counts only if another one holds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator_model.events import GONE, NOT_GIVEN_UP, NOT_TOLD
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.rebalance_recorder import OpenRebalance, Waited


def waited_for(current: OpenRebalance, present: Iterable[EpochMember], ended_us: int) -> list[Waited]:
    """Return for whom others waited.

    :param present: the members at the end of the rebalance, ``ended_us``.
    """
    return [*_present(current, present, ended_us), *_gone(current)]


def _present(current: OpenRebalance, present: Iterable[EpochMember], ended_us: int) -> Iterator[Waited]:
    for member in present:
        progress = current.members.get(member.id)
        if progress is None:
            continue
        gave_up_us = 0 if member.pending else progress.acknowledged_us
        if member.pending or gave_up_us:
            waited_us = (gave_up_us or ended_us) - current.began_us
            yield Waited(progress.identity, NOT_GIVEN_UP, max(0, waited_us), came=bool(gave_up_us))
        elif member.holds and (member.epoch or 0) < (current.generation or 0):
            why = GONE if member.disconnected_us > member.last_frame_us else NOT_TOLD
            yield Waited(progress.identity, why, max(0, ended_us - _idle_since_us(current, member.id, ended_us)), came=False)


def _gone(current: OpenRebalance) -> Iterator[Waited]:
    for id_, one in current.awaited.items():
        since_us = current.began_us if one.why == NOT_GIVEN_UP else _idle_since_us(current, id_, one.gone_us)
        yield Waited(one.identity, one.why, max(0, one.gone_us - since_us), came=False)


def _idle_since_us(current: OpenRebalance, but: str, otherwise_us: int) -> int:
    """Return since when another member holds nothing in this rebalance."""
    stopped = (one.stopped_us for id_, one in current.members.items() if one.stopped_us and id_ != but)
    return max(current.began_us, min(stopped, default=otherwise_us))
