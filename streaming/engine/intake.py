"""Records of a mirror partition into its model, read by Spark's workers, ``replay`` and ``watch``.

One bad record must not stop the query, nor every restart of it. Whatever a record makes the model raise is set aside with the record,
counted, and said; the next one is handed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from coordinator_model.coordinator import raised_in_words
from coordinator_model.wire.record import RecordError, unpack_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinator_model.events import GroupEvent
    from coordinator_model.finding import Finding
    from coordinator_model.settings import Settings
    from coordinator_model.wire.record import MirrorRecord


MirrorRow = tuple[int, int, int, bytes | None, bytes | None, bytes | None]
"""A record as Spark hands it over: partition, offset, timestamp in ms, key, value, envelope."""


class GroupRow(Protocol):
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

    def receive_unreadable(self, offset: int, at_us: int, group: str | None, reason: str) -> list[Finding]: ...

    def on_partition_count(self, partitions: int) -> list[Finding]: ...

    def drain_dead_letters(self) -> Sequence[tuple[int, str]]: ...

    def drain_events(self) -> Sequence[GroupEvent]: ...

    def changed_groups(self) -> Sequence[GroupRow]: ...

    def snapshot(self) -> bytes: ...


class Taken(NamedTuple):
    """What came of some rows."""

    findings: list[Finding]  #: in the order in which they were found
    events: Sequence[GroupEvent]  #: what happened in the groups, in order
    set_aside: list[tuple[MirrorRow, str]]  #: rows that the model could make nothing of, and why


def take_in(model: Model, rows: Sequence[MirrorRow], partitions: int | None) -> Taken:
    """Let a model take in rows of its partition.

    :param rows: in offset order.
    :param partitions: of the mirror topic; None if unknown.
    """
    found = [] if partitions is None else model.on_partition_count(partitions)
    for row in rows:
        found += receive_row(model, row)
    return Taken(found, model.drain_events(), _set_aside(model, rows))


def receive_row(model: Model, row: MirrorRow) -> list[Finding]:
    """Let a model receive a record as it stands in the topic; return what it finds."""
    partition, offset, timestamp_ms, key, value, envelope = row
    try:
        record = unpack_record(partition=partition, offset=offset, key=key, value=value, envelope=envelope)
    except RecordError as error:
        group = None if key is None else key.decode(errors="replace")
        return model.receive_unreadable(offset, timestamp_ms * 1000, group, str(error))
    return receive(model, record)


def receive(model: Model, record: MirrorRecord) -> list[Finding]:
    """Let a model receive a record; return what it finds. A record on which it raises is set aside, and the next one follows."""
    try:
        return model.receive(record)
    except Exception as error:  # one bad record must not stop the query, nor every restart of it
        return model.receive_unreadable(record.offset, record.at_us, record.group, raised_in_words(error))


def _set_aside(model: Model, rows: Sequence[MirrorRow]) -> list[tuple[MirrorRow, str]]:
    set_aside = model.drain_dead_letters()
    if not set_aside:
        return []
    by_offset = {row[1]: row for row in rows}
    return [(by_offset[offset], reason) for offset, reason in set_aside]
