"""Models in one process, without Spark: the same models, fed in the same order, so that they find the same.

Spark feeds each partition's model separately, and so must who reads several partitions here. A capture has no partitions; it is read as
one, since no finding depends on how groups are spread, and its records are numbered as they come.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from coordinator_model.coordinator import Coordinator
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.engine.intake import receive, receive_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coordinator_model.events import GroupEvent
    from coordinator_model.finding import Finding
    from coordinator_model.group_view import GroupView
    from coordinator_model.settings import Settings
    from streaming.engine.intake import MirrorRow
    from streaming.mirror.record_file import Unreadable

LOOK_US: Final = 100_000
"""How often, in capture time, what the model keeps for others is dropped."""


@dataclass(slots=True, eq=False)
class _Partition:
    """A model, and how far its own records have come: those of another partition may be older or newer, all of them."""

    model: Coordinator
    first_us: int = 0
    last_us: int = 0
    next_look_us: int = 0


class Engine:
    """Models of all partitions of a mirror topic.

    :param found: takes each finding as it opens, changes or is resolved.
    :param shown: called by :meth:`show` with each group that has changed; None if not needed.
    :param seen: called with each record; None if not needed.
    :param happened: called with each event of a group, before the findings of the same record; None if not needed.
    :param snapshots: of the models of an earlier run, by partition.
    :raises SnapshotError: when they cannot be read.
    """

    def __init__(
        self,
        *,
        topic: str,
        settings: Settings,
        found: Callable[[Finding], None],
        shown: Callable[[GroupView], None] | None = None,
        happened: Callable[[GroupEvent], None] | None = None,
        seen: Callable[[MirrorRecord], None] | None = None,
        snapshots: Mapping[int, bytes] = MappingProxyType({}),
    ) -> None:
        self.counters: Counter[str] = Counter()  #: kinds of records, and ``frames``
        self.groups: set[tuple[str, str]] = set()
        self._topic = topic
        self._settings = settings
        self._found = found
        self._shown = shown
        self._happened = happened
        self._seen = seen
        self._partitions = {number: _Partition(Coordinator.restore(blob, settings=settings)) for number, blob in snapshots.items()}
        self._numbered = self.next_offset

    def captured(self, record: MirrorRecord) -> None:
        """Take a record that has no place in a topic yet."""
        numbered = record._replace(partition=0, offset=self._numbered)
        numbered.body = record.body
        self._numbered += 1
        self.recorded(numbered)

    def recorded(self, record: MirrorRecord) -> None:
        """Take the next record of its partition."""
        partition = self._partitions.get(record.partition) or self._partition(record.partition)
        self._report(partition.model, receive(partition.model, record))
        if self._seen is not None:
            self._seen(record)
        kind, at_us = record.kind, record.at_us
        if kind is Kind.REQUEST or kind is Kind.RESPONSE:
            self.counters["frames"] += 1
            if record.group:
                self.groups.add((record.cluster, record.group))
        else:
            self.counters[kind.value] += 1
        if at_us > partition.last_us:
            partition.last_us = at_us
            if at_us >= partition.next_look_us:
                self._look(partition)

    def _report(self, model: Coordinator, findings: Iterable[Finding]) -> None:
        if self._happened is not None:
            for event in model.drain_events():
                self._happened(event)
        for finding in findings:
            self._found(finding)

    def unreadable(self, record: Unreadable) -> None:
        """Take note of a record that cannot be read."""
        model = (self._partitions.get(record.partition) or self._partition(record.partition)).model
        self.counters["unreadable"] += 1
        self._report(model, model.receive_unreadable(record.offset, model.now_us, record.group, record.reason))

    def finish(self) -> None:
        """The records have ended: let time pass until all findings that wait for a late frame are out."""
        for partition in self._partitions.values():
            model = partition.model
            self._report(model, model.advance(model.now_us + self._settings.reorder_window_ms * 1_000 + 1))
            self._report(model, model.conclude())
            self._look(partition)
        self.show()

    def show(self) -> None:
        """Hand on the groups that have changed since the last time."""
        if self._shown is not None:
            for partition in self._partitions.values():
                for group in partition.model.changed_groups():
                    self._shown(group)

    def stand(self) -> None:
        """Hand on the findings that are open, and let :meth:`show` hand on all groups: for readers that have neither, after a start."""
        for partition in self._partitions.values():
            for finding in partition.model.standing():
                self._found(finding)

    def row(self, row: MirrorRow) -> None:
        """Take the next record of its partition as it stands in the topic."""
        partition = self._partitions.get(row[0]) or self._partition(row[0])
        self.counters["records"] += 1
        self._report(partition.model, receive_row(partition.model, row))
        partition.model.drain_dead_letters()

    def forget_unknown(self) -> None:
        """Forget the names of groups that no model knows any more."""
        self.groups.intersection_update(key for partition in self._partitions.values() for key in partition.model.groups)

    def snapshots(self) -> dict[int, bytes]:
        """Return the state of all models, by partition."""
        return {number: partition.model.snapshot() for number, partition in self._partitions.items()}

    @property
    def models(self) -> dict[int, Coordinator]:
        """The models, by partition."""
        return {number: partition.model for number, partition in self._partitions.items()}

    @property
    def first_us(self) -> int:
        """Capture time of the first record, 0 if there was none."""
        return min((partition.first_us for partition in self._partitions.values() if partition.first_us), default=0)

    @property
    def last_us(self) -> int:
        """Capture time of the newest record, 0 if there was none."""
        return max((partition.last_us for partition in self._partitions.values()), default=0)

    @property
    def next_offset(self) -> int:
        """Number of the next record of a capture."""
        return (self._partitions[0].model.next_offset or 0) if self._partitions else 0

    def model_counters(self) -> Counter[str]:
        """What the models counted, all partitions together."""
        return sum((partition.model.record_counts for partition in self._partitions.values()), Counter())

    def _partition(self, number: int) -> _Partition:
        model = Coordinator(topic=self._topic, partition=number, settings=self._settings)
        partition = self._partitions[number] = _Partition(model)
        return partition

    def _look(self, partition: _Partition) -> None:
        model, at_us = partition.model, partition.last_us
        partition.first_us = partition.first_us or at_us
        partition.next_look_us = at_us + LOOK_US
        model.drain_dead_letters()  # the file has them
        model.drain_events()  # no caller wants them, or they are reported
        if self._shown is None:
            model.discard_changes()
