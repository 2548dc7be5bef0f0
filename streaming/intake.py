"""Rows of a mirror partition into its model: what Spark's workers do with a batch, without Spark.

The trap: one bad record must not stop the query, nor every restart of it. Whatever a record makes the model raise is set aside with the
record, counted, and said; the next one is handed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

from coordinator_model.coordinator import raised_in_words
from coordinator_model.sieve import NOTHING_SIFTED, Sieve
from coordinator_model.wire.reader import RecordReader
from coordinator_model.wire.record import RecordError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinator_model.findings import Finding
    from coordinator_model.pulse import Run
    from coordinator_model.settings import Settings
    from coordinator_model.sieve import MirrorRow, Sifted
    from coordinator_model.wire.record import MirrorRecord


class GroupSnapshot(Protocol):
    """What is known of a group, for the groups topic."""

    @property
    def key(self) -> str: ...

    def as_json(self) -> dict[str, Any] | None: ...


class Model(Protocol):
    """What the job asks of a model: ``coordinator_model.coordinator.Coordinator`` is one, the bench's empty model another."""

    @property
    def next_offset(self) -> int | None: ...

    def figures(self) -> Mapping[str, Any]: ...

    def __init__(self, *, topic: str, partition: int, settings: Settings) -> None: ...

    @classmethod
    def restore(cls, blob: bytes, *, settings: Settings) -> Self: ...

    def receive(self, record: MirrorRecord) -> list[Finding]: ...

    def go_on(self, key: tuple[str, str], runs: Sequence[Run], until_us: int) -> bool: ...

    def pass_over(self, times_us: Sequence[int]) -> list[Finding]: ...

    def receive_unreadable(self, offset: int, at_us: int, group: str | None, reason: str) -> list[Finding]: ...

    def spread_over(self, partitions: int) -> list[Finding]: ...

    def drain_set_aside(self) -> Sequence[tuple[int, str]]: ...

    def changed_groups(self) -> Sequence[GroupSnapshot]: ...

    def snapshot(self) -> bytes: ...


class Taken(NamedTuple):
    """What came of some rows."""

    findings: list[Finding]  #: in the order in which they were found
    set_aside: list[tuple[MirrorRow, str]]  #: rows that the model could make nothing of, and why


_reader: Final = RecordReader()
_sieve: Final = Sieve(_reader)
"""Of this process; what they remember changes nothing of what is known."""


def take_in(model: Model, rows: Sequence[MirrorRow], partitions: int | None) -> Taken:
    """Let a model take in rows of its partition.

    :param rows: in offset order.
    :param partitions: of the mirror topic; None when nobody has counted.
    """
    found = [] if partitions is None else model.spread_over(partitions)
    sifted = _sieve.sift(rows) if are_next(rows, model.next_offset) else NOTHING_SIFTED
    taken = _taken_in(model, sifted, len(rows))
    begin = 0
    for end in [*(place for place, at_us in enumerate(taken) if at_us is None), len(rows)]:
        found += _pass_over(model, rows[begin:end], taken[begin:end])
        if end < len(rows):
            found += _receive(model, rows[end], sifted.read.get(end))
        begin = end + 1
    return Taken(found, _set_aside(model, rows))


def _set_aside(model: Model, rows: Sequence[MirrorRow]) -> list[tuple[MirrorRow, str]]:
    set_aside = model.drain_set_aside()
    if not set_aside:
        return []
    by_offset = {row[1]: row for row in rows}
    return [(by_offset[offset], reason) for offset, reason in set_aside]


def are_next(rows: Sequence[MirrorRow], next_offset: int | None) -> bool:
    """Whether the rows' offsets go on from ``next_offset`` without a hole or a repeat."""
    return next_offset is not None and [row[1] for row in rows] == list(range(next_offset, next_offset + len(rows)))


def _taken_in(model: Model, sifted: Sifted, count: int) -> list[int | None]:
    """Give the model the heartbeats that were sifted out; gives the capture times of the rows that it has taken in so."""
    taken: list[int | None] = [None] * count
    times_us = sifted.times_us
    newest_us = max(times_us, default=0)
    for group in sifted.groups:
        if model.go_on(group.key, group.runs(), newest_us):
            for place in group.places:
                taken[place] = times_us[place]
    return taken


def _pass_over(model: Model, rows: Sequence[MirrorRow], times_us: Sequence[Any]) -> list[Finding]:
    """Let the model go past rows that it has taken in."""
    found: list[Finding] = []
    begin = rows[0][1] if rows else 0
    while times_us:
        try:
            return found + model.pass_over(times_us)
        except Exception as error:  # as in _receive
            passed = (model.next_offset or 0) - begin
            found += _unreadable(model, rows[passed - 1], raised_in_words(error))
            begin, rows, times_us = begin + passed, rows[passed:], times_us[passed:]
    return found


def _receive(model: Model, row: MirrorRow, read: MirrorRecord | RecordError | None) -> list[Finding]:
    """Hand a row in; ``read`` is what is known to be in it."""
    try:
        record = _read(row) if read is None else read
        if isinstance(record, RecordError):
            return _unreadable(model, row, str(record))
        _sieve.learn(record, row)
        return model.receive(record)
    except Exception as error:  # one bad record must not stop the query, nor every restart of it
        return _unreadable(model, row, raised_in_words(error))


def _read(row: MirrorRow) -> MirrorRecord | RecordError:
    partition, offset, _timestamp_ms, key, value, envelope = row
    try:
        return _reader.read(partition, offset, key, value, envelope)
    except RecordError as error:
        return error


def _unreadable(model: Model, row: MirrorRow, reason: str) -> list[Finding]:
    _partition, offset, timestamp_ms, key, _value, _envelope = row
    return model.receive_unreadable(offset, timestamp_ms * 1000, None if key is None else key.decode(errors="replace"), reason)
