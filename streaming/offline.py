"""Replays mirror records without Spark or Kafka: the same models, fed in the same order, so that they find the same.

The trap: Spark feeds each partition's model for itself, and so must whoever replays several. A capture has no partitions; it is read as
one, since no finding depends on how groups are spread, and its records are numbered as they come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.coordinator import Coordinator, raised_in_words
from coordinator_model.wire.record import Kind, MirrorRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from coordinator_model.findings import Finding
    from coordinator_model.overview import GroupSnapshot
    from coordinator_model.settings import Settings
    from streaming.mirror.record_file import Unreadable
    from streaming.mirror.stretch import Piece, Stretch

LOOK_US: Final = 100_000
"""How often, in capture time, groups that have changed are looked at."""


class _Rest(NamedTuple):
    """What a group repeats and has not taken in yet, with nothing else of it in between."""

    group: tuple[str, str]
    pieces: Sequence[Piece]
    patience: int = 1  #: so much of each is looked at record by record before it is asked again


class Offline:
    """Models of all partitions of a mirror topic.

    :param found: takes each finding as it opens, changes or is resolved.
    :param changed: takes a group in which something happened, and when, at most every :data:`LOOK_US`; None where nobody is to be told.
    """

    def __init__(
        self,
        *,
        topic: str,
        settings: Settings,
        found: Callable[[Finding], None],
        changed: Callable[[GroupSnapshot, int], None] | None = None,
    ) -> None:
        self.counters: Counter[str] = Counter()  #: kinds of records, and ``frames``
        self.groups: set[tuple[str, str]] = set()
        self.first_us = self.last_us = 0  #: capture time of the first and the newest record
        self._topic = topic
        self._settings = settings
        self._found = found
        self._changed = changed
        self._models: dict[int, Coordinator] = {}
        self._next_look_us = 0
        self._numbered = 0

    def captured(self, record: MirrorRecord) -> None:
        """Take a record that has no place in a topic yet."""
        numbered = tuple.__new__(MirrorRecord, (0, self._numbered, *record[2:]))
        self._numbered += 1
        self.recorded(numbered)

    def recorded(self, record: MirrorRecord) -> None:
        """Take the next record of its partition."""
        model = self._models.get(record.partition) or self._model(record.partition)
        try:
            findings = model.receive(record)
        except Exception as error:  # as in the job: one bad record must not stop the rest
            findings = model.receive_unreadable(record.offset, record.at_us, record.group, raised_in_words(error))
        self._report(findings)
        kind, at_us = record.kind, record.at_us
        if kind is Kind.REQUEST or kind is Kind.RESPONSE:
            self.counters["frames"] += 1
            if record.group is not None:
                self.groups.add((record.cluster, record.group))
        else:
            self.counters[kind.value] += 1
        if at_us > self.last_us:
            self.last_us = at_us
            if at_us >= self._next_look_us:
                self._look(at_us)

    def stretch(self, stretch: Stretch) -> None:
        """Take the next records of a capture, with what repeats among them.

        What repeats of calm groups goes past the records; what this leaves, and what it tells in which order, is as if it had not.
        """
        model = self._models.get(0) or self._model(0)
        agenda: list[_Item] = [(record.offset - stretch.offset, record) for record in stretch.records]
        is_whole = all(record.kind is not Kind.GAP for record in stretch.records)
        others: dict[tuple[str, str], list[int]] = {}
        for record in stretch.records:
            others.setdefault((record.cluster, record.group or ""), []).append(record.offset - stretch.offset)
        for key, pieces in stretch.groups().items():
            if not is_whole:
                agenda += stretch.records_of(pieces)
            elif key in others:
                agenda += _between(stretch, key, pieces, others[key])
            else:
                agenda += self._take_in(model, stretch, _Rest(key, pieces))
        heapify(agenda)
        passed = 0
        while agenda:
            place, due = heappop(agenda)
            self._pass_over(stretch.times_us[passed:place])
            passed = place
            if isinstance(due, _Rest):
                self._report(model.advance(stretch.times_us[place]))
                for item in self._take_in(model, stretch, due):
                    heappush(agenda, item)
            else:
                self.recorded(due)
                passed += 1
        self._pass_over(stretch.times_us[passed:])

    def _take_in(self, model: Coordinator, stretch: Stretch, rest: _Rest) -> Iterator[_Item]:
        """Let a group take in what it repeats up to the time at which something falls due for it.

        :return: what is left to be done, at which places: to look at some of its records one by one, or to go on once that time has come.
        """
        key, pieces, _ = rest
        due_us = model.due_us(key)
        if due_us is None or (self._changed is not None and key in model.changes_untold):
            return _looked_at(stretch, rest)
        ends_us = stretch.ends_us(pieces)
        if ends_us >= due_us and model.go_on_past(key, stretch.runs(pieces), ends_us):
            return iter(())
        before, amid, later = (pieces, (), ()) if ends_us < due_us else stretch.split_at_us(pieces, due_us)
        if amid or (before and not model.go_on(key, stretch.runs(before), stretch.ends_us(before))):
            return _looked_at(stretch, rest)
        return _put_off(stretch, _Rest(key, later))

    def _pass_over(self, times_us: Sequence[int]) -> None:
        """Go past records that were taken in, and stop where it is time to look."""
        self.counters["frames"] += len(times_us)
        passed = 0
        while passed < len(times_us):
            look = bisect_left(times_us, self._next_look_us, passed) if self._changed is not None else len(times_us)
            self._report(self._models[0].pass_over(times_us[passed : look + 1]))
            if look < len(times_us):
                self._look(times_us[look])
            passed = look + 1

    def _report(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._found(finding)

    def unreadable(self, record: Unreadable) -> None:
        """Take note of a record that cannot be read."""
        model = self._models.get(record.partition) or self._model(record.partition)
        self.counters["unreadable"] += 1
        for finding in model.receive_unreadable(record.offset, model.now_us, record.group, record.reason):
            self._found(finding)

    def finish(self) -> None:
        """The records have ended: let time pass until what was held back for a late frame is told."""
        for model in self._models.values():
            self.last_us = max(self.last_us, model.now_us)  # nobody noted the times of beats
            for finding in model.advance(model.now_us + self._settings.reorder_window_ms * 1_000 + 1):
                self._found(finding)
        self._look(self.last_us)

    @property
    def next_offset(self) -> int:
        """Number of the next record of a capture."""
        return (self._models[0].next_offset or 0) if self._models else 0

    def model_counters(self) -> Counter[str]:
        """What the models counted, all partitions together."""
        return sum((model.counters for model in self._models.values()), Counter())

    def _model(self, partition: int) -> Coordinator:
        model = self._models[partition] = Coordinator(topic=self._topic, partition=partition, settings=self._settings)
        return model

    def _look(self, at_us: int) -> None:
        self.first_us = self.first_us or at_us
        self._next_look_us = at_us + LOOK_US
        for model in self._models.values():
            model.drain_set_aside()  # the file has them
            if self._changed is None:
                model.leave_changes_untold()
                continue
            for group in model.changed_groups():
                self._changed(group, at_us)


_Item = tuple[int, MirrorRecord | _Rest]
"""What is to be done at a place of a stretch."""


def _put_off(stretch: Stretch, rest: _Rest) -> Iterator[_Item]:
    if rest.pieces:
        yield stretch.begins_at(rest.pieces), rest


def _looked_at(stretch: Stretch, rest: _Rest) -> Iterator[_Item]:
    """A group that is not calm is shown records, and asked again later, less and less often."""
    before, later = stretch.split_behind(rest.pieces, rest.patience)
    yield from stretch.records_of(before)
    yield from _put_off(stretch, _Rest(rest.group, later, 2 * rest.patience))


def _between(stretch: Stretch, key: tuple[str, str], pieces: Sequence[Piece], places: Iterable[int]) -> Iterator[_Item]:
    """What a group repeats between other records of it, which stand at these places."""
    for place in places:
        before, amid, pieces = stretch.split_at_place(pieces, place)
        yield from stretch.records_of(amid)
        yield from _put_off(stretch, _Rest(key, before))
    yield from _put_off(stretch, _Rest(key, pieces))
