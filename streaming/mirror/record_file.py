"""A file of mirror records, written from their topic and read again: the format of :mod:`coordinator_model.wire.recording`.

That module's reader ends at the first record that cannot be read. Here such a record is handed on as what it is: the Spark job goes on
behind it and reports a finding, and a replay of the same records must report the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator_model.wire.record import MirrorRecord, RecordError, unpack_record
from coordinator_model.wire.recording import MAGIC, CutShortError, Row, pack_row, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from streaming.mirror.pcap.files import Source


class Unreadable(NamedTuple):
    """A record of the topic whose envelope cannot be read."""

    partition: int
    offset: int
    group: str | None
    reason: str


class RecordFile:
    """Writes records as they stand in the topic."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.records = 0
        stream.write(MAGIC)

    def write(self, *, partition: int, offset: int, key: bytes | None, value: bytes | None, envelope: bytes | None) -> None:
        """Append one record; ``envelope`` is its ``mirror`` header, None if it has none."""
        self._stream.write(pack_row((partition, offset, key, value, envelope)))
        self.records += 1


def is_record_file(beginning: bytes) -> bool:
    """Whether a file that begins so (as many bytes as :data:`MAGIC` has) holds mirror records."""
    return beginning == MAGIC


def records(source: Source, damage: Callable[[str], None]) -> Iterator[MirrorRecord | Unreadable]:
    """The records of a file, one by one.

    :param damage: called with half a sentence that says why reading ended before the file did.
    """
    source.read(len(MAGIC))
    whole = 0
    try:
        for row in rows(source.more):
            whole += 1
            yield _record(row)
    except CutShortError:
        damage(f"ends in the middle of a record, behind {whole:,} whole ones")
    except Exception as error:  # a damaged archive raises half a dozen unrelated types
        damage(f"is damaged behind record {whole:,} ({error or type(error).__name__})")


def _record(row: Row) -> MirrorRecord | Unreadable:
    partition, offset, key, value, envelope = row
    try:
        return unpack_record(partition=partition, offset=offset, key=key, value=value, envelope=envelope)
    except RecordError as error:
        return Unreadable(partition, offset, None if key is None else key.decode(errors="replace"), str(error))
