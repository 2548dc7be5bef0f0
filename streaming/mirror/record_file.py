"""A file of mirror records, written from their topic and read again: the format of :mod:`coordinator_model.wire.recording`.

That module's reader ends at the first record that cannot be read. Here such a record is handed on as what it is: the Spark job goes on
behind it and reports a finding, and a replay of the same records must report the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack

from coordinator_model.wire.record import MirrorRecord, RecordError, unpack_record
from coordinator_model.wire.recording import MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from streaming.mirror.pcap.files import Source

_LARGEST_RECORD: Final = 128 * 2**20


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
        self._pack = msgpack.Packer().pack
        self.records = 0
        stream.write(MAGIC)

    def write(self, *, partition: int, offset: int, key: bytes | None, value: bytes | None, envelope: bytes | None) -> None:
        """Append one record; ``envelope`` is its ``mirror`` header, None if it has none."""
        self._stream.write(self._pack((partition, offset, key, value, envelope)))
        self.records += 1


def is_record_file(beginning: bytes) -> bool:
    """Whether a file that begins so (as many bytes as :data:`MAGIC` has) holds mirror records."""
    return beginning == MAGIC


def records(source: Source, damage: Callable[[str], None]) -> Iterator[MirrorRecord | Unreadable]:
    """The records of a file, one by one.

    :param damage: called with half a sentence that says why reading ended before the file did.
    """
    source.read(len(MAGIC))
    unpacker = msgpack.Unpacker(max_buffer_size=_LARGEST_RECORD)
    number = fed = whole = 0
    try:
        while chunk := source.more():
            unpacker.feed(chunk)
            fed += len(chunk)
            for fields in unpacker:
                number += 1
                whole = unpacker.tell()
                yield _record(fields)
    except _NotARecordError:
        damage(f"is damaged: record {number} is none")
    except Exception as error:  # msgpack raises half a dozen unrelated types on bad bytes
        damage(f"is damaged behind record {number:,} ({error or type(error).__name__})")
    else:
        if whole != fed:
            damage(f"ends in the middle of a record, behind {number:,} whole ones")


class _NotARecordError(Exception):
    pass


def _record(fields: Any) -> MirrorRecord | Unreadable:
    match fields:
        case [int(partition), int(offset), bytes() | None as key, bytes() | None as value, bytes() | None as envelope]:
            try:
                return unpack_record(partition=partition, offset=offset, key=key, value=value, envelope=envelope)
            except RecordError as error:
                return Unreadable(partition, offset, None if key is None else key.decode(errors="replace"), str(error))
    raise _NotARecordError
