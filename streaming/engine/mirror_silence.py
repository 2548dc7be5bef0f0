"""A dead mirror writes nothing, and a monitor that reads nothing must report that (rule V-03).

The model's clock is in the data, so it cannot notice that there are none; the driver can. It sees how far each partition has been
read, and that there is nothing more to read.

Silence of the mirror and silence of our own reading look alike. Only a query that runs, and has read all there is, may call the
mirror silent. And a finding's id must not hang on when we happened to look: it is opened at the time of the newest record there is,
plus the time allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator_model.rules.observation import V_03

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coordinator_model.finding import Finding
    from streaming.engine.own_findings import Standing, Subject


@dataclass(slots=True)
class _Partition:
    end: int
    moved_us: int  #: when it was last seen to advance, by our own clock


class SilenceWatch:
    """Reports when the mirror topic, or one of its partitions, falls silent and when it is back.

    :param allowed_ms: silence up to this long is none.
    :param newest_us: capture time of a partition's newest record in microseconds, None when it has none.
    :param standing: knows the subjects of :func:`subjects`.
    """

    def __init__(self, *, topic: str, allowed_ms: int, newest_us: Callable[[int], int | None], standing: Standing) -> None:
        self._topic = topic
        self._allowed_us = allowed_ms * 1000
        self._newest_us = newest_us
        self._standing = standing
        self._partitions: dict[int, _Partition] = {}

    def pause(self) -> None:
        """The query does not run: what follows says nothing about the mirror until it does again."""
        self._partitions.clear()

    def observe(self, read: Mapping[int, int], available: Mapping[int, int], now_us: int) -> list[Finding]:
        """Take note of how far each partition is read and filled (offsets); return findings that opened or were resolved."""
        for number, end in available.items():
            known = self._partitions.get(number)
            if known is None:
                self._partitions[number] = _Partition(end, now_us)
            elif end > known.end or read.get(number, 0) < end:
                known.end, known.moved_us = end, now_us
        idle = {number: now_us - partition.moved_us for number, partition in self._partitions.items()}
        if not idle:
            return []
        whole = whole_topic(self._topic)
        findings = self._judge(whole, idle, min(idle.values()), now_us)
        if self._standing.is_open(V_03.id, whole):
            return findings
        dying = min(idle.values()) > self._allowed_us // 2  # the rest of the topic is about to follow
        for number, us in idle.items():
            if us < self._allowed_us or not dying:
                findings += self._judge(one_partition(self._topic, number), [number], us, now_us)
        return findings

    def _judge(self, subject: str, partitions: Iterable[int], idle_us: int, now_us: int) -> list[Finding]:
        known = self._standing.open_finding(V_03.id, subject)
        if known is None and idle_us >= self._allowed_us:
            return [self._silent(subject, self._newest(partitions))]
        if known is not None and idle_us < self._allowed_us:
            newest_us = self._newest(partitions)
            # The first look after a start is no sign of life.
            if newest_us is not None and newest_us + self._allowed_us > known.opened_at_us:
                return self._standing.settle(V_03.id, subject, at_us=now_us)
        return []

    def _silent(self, subject: str, newest_us: int | None) -> Finding:
        return self._standing.report(
            V_03,
            subject,
            at_us=(newest_us or 0) + self._allowed_us,
            summary=f"Nothing has come in on the {subject} for more than {self._allowed_us / 1e6:.0f} s: its groups are not seen.",
            observed="no record at all" if newest_us is None else "no record since the one before",
        )

    def _newest(self, partitions: Iterable[int]) -> int | None:
        return max((at for at in map(self._newest_us, partitions) if at is not None), default=None)


def subjects(topic: str, partitions: int) -> list[Subject]:
    """What can be silent: the topic, and each of its partitions."""
    names = [whole_topic(topic), *(one_partition(topic, number) for number in range(partitions))]
    return [(V_03.id, name) for name in names]


def whole_topic(topic: str) -> str:
    return f"mirror topic {topic}"


def one_partition(topic: str, number: int) -> str:
    return f"partition {number} of the mirror topic {topic}"
