"""What each rebalance did to the lag of its group: how much it built up, and how long until that was gone.

The lag is asked for every few seconds, and that is the resolution of everything here: two rebalances between two questions are one.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.wording import iso_utc
from streaming.published.finding_json import microseconds
from streaming.published.records import REBALANCING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streaming.metrics.metrics_state import Group, Lags

KEPT: Final = 20
"""Rebalances of a group."""

Key = tuple[str, str]
"""Cluster and group."""


@dataclass(slots=True)
class Buildup:
    """The lag of one rebalance, in records."""

    generation: int | None  #: that it led to; None while it has not
    began_us: int  #: when the group was first seen in it
    before: int  #: when the group was last seen settled, and without lag of an earlier rebalance
    highest: int
    gone_us: int | None = None  #: when the lag was first seen as low as before

    def as_json(self) -> dict[str, Any]:
        return {
            "generation": self.generation,
            "began_at": iso_utc(self.began_us),
            "before": self.before,
            "highest": self.highest,
            "gone_at": None if self.gone_us is None else iso_utc(self.gone_us),
        }

    @classmethod
    def of(cls, published: Mapping[str, Any]) -> Buildup:
        gone_at = published["gone_at"]
        return cls(
            published["generation"],
            microseconds(published["began_at"]),
            published["before"],
            published["highest"],
            None if gone_at is None else microseconds(gone_at),
        )


@dataclass(slots=True)
class GroupLag:
    """What is known of a group's lag between two looks at it."""

    generation: int | None = None
    settled: int | None = None  #: lag when it was last seen settled, and without lag of a rebalance; None before
    rebalances: bool = False
    buildups: deque[Buildup] = field(default_factory=lambda: deque(maxlen=KEPT))

    def look(self, group: Group, lag: int, at_us: int) -> None:
        """Take in how a group is, and its lag. Nothing is to be learned of one that the model itself is learning."""
        if group.learning or group.generation is None:
            return
        is_settled = group.state not in REBALANCING
        if self.settled is not None and self.generation is not None:
            led_to = group.generation if group.generation != self.generation else None
            if led_to is not None or not (is_settled or self.rebalances):
                self._rebalance(led_to, self.settled, at_us)
        self.generation, self.rebalances = group.generation, not is_settled
        followed = [one for one in self.buildups if one.gone_us is None]
        for one in followed[-1:]:  # what an earlier one built up grows no more once the next has begun
            one.highest = max(one.highest, lag)
        if is_settled:
            for one in followed:
                one.gone_us = at_us if lag <= one.before else None
            if all(one.gone_us is not None for one in followed):
                self.settled = lag

    def _rebalance(self, led_to: int | None, before: int, at_us: int) -> None:
        if self.rebalances and self.buildups and self.buildups[-1].generation is None:
            self.buildups[-1].generation = led_to  # it was seen to run, and has led to this one
        else:
            self.buildups.append(Buildup(led_to, at_us, before, before))


class LagHistory:
    """The lag of all groups that are asked about.

    :param max_partitions: of a group that its record names; those that are furthest behind.
    """

    def __init__(self, max_partitions: int) -> None:
        self._max_partitions = max_partitions
        self._groups: dict[Key, GroupLag] = {}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Take in what an earlier run published of a group, as :func:`~streaming.published.records.lag_of` reads it."""
        buildups = deque(map(Buildup.of, record["rebalances"]), maxlen=KEPT)
        self._groups[record["cluster"], record["group"]] = GroupLag(buildups=buildups)

    def observe(self, groups: Iterable[Group], lags: Mapping[Key, Lags], at_us: int) -> dict[Key, dict[str, Any] | None]:
        """Return the records to publish, by cluster and group; None for a group that is gone.

        :param groups: those that were asked about.
        :param lags: of those that are known.
        """
        asked = {(group.cluster, group.name): group for group in groups}
        gone = self._groups.keys() - asked.keys()
        for key in gone:
            del self._groups[key]
        records: dict[Key, dict[str, Any] | None] = dict.fromkeys(gone)
        for key, behind in lags.items():
            known = self._groups.setdefault(key, GroupLag())
            known.look(asked[key], sum(behind.values()), at_us)
            records[key] = self._record(key, behind, known, at_us)
        return records

    def _record(self, key: Key, behind: Lags, known: GroupLag, at_us: int) -> dict[str, Any]:
        partitions: dict[str, dict[str, int]] = {}
        furthest = heapq.nlargest(self._max_partitions, behind.items(), key=lambda one: one[1])
        for (topic, partition), lag in sorted(furthest):
            partitions.setdefault(topic, {})[str(partition)] = lag
        return {
            "cluster": key[0],
            "group": key[1],
            "at": iso_utc(at_us),
            "lag": sum(behind.values()),
            "partitions": partitions,
            "left_out": len(behind) - len(furthest),
            "rebalances": [buildup.as_json() for buildup in known.buildups],
        }
