"""Mirror records in a file: the input of ``decode`` and ``replay`` besides packet captures, and the format of golden transcripts.

The first line identifies the format. One msgpack array per record follows: partition, offset, key, value, ``mirror`` header. The last
three are the unchanged bytes of the mirror topic.

A recording whose writer was killed may end within a record. The records before it are valid, so the error is raised after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO, Final

import msgspec

from coordinator_model.wire.record import MirrorRecord, RecordError, pack_envelope, unpack_record

MAGIC: Final = b"rebalance-monitor mirror records 1\n"
_CHUNK: Final = 1024 * 1024
_LARGEST_RECORD: Final = 128 * 1024 * 1024  # above Kafka's own limit for a request (socket.request.max.bytes)

Row = tuple[int, int, bytes | None, bytes | None, bytes | None]
"""Partition, offset, key, value, and ``mirror`` header, None if the record has none."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Row).decode

_ARRAY_OF_5: Final = 0x95
_NUMBER_BYTES: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_LENGTH_BYTES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_NIL: Final = 0xC0


class CutShortError(RecordError):
    """A recording ends in the middle of a record."""


def pack_row(row: Row) -> bytes:
    """Return one record as stored in a recording, where :data:`MAGIC` precedes the first."""
    return _encode(row)


def pack_record(record: MirrorRecord) -> bytes:
    """Return one record as stored in a recording."""
    key = None if record.group is None else record.group.encode()
    return pack_row((record.partition, record.offset, key, record.frame, pack_envelope(record)))


def rows(more: Callable[[], bytes]) -> Iterator[Row]:
    """Yield the records of a recording as they are stored.

    :param more: returns the next bytes behind :data:`MAGIC`, none at the end.
    :raises CutShortError: if the last one is cut short.
    :raises RecordError: if one is none.
    """
    held = bytearray()
    while chunk := more():
        held += chunk
        at = 0
        while end := _end_of_row(held, at):
            yield _decode(held[at:end])
            at = end
        del held[:at]
    if held:
        raise CutShortError("is cut short: the file ends in the middle of it")


def _end_of_row(data: bytearray, at: int) -> int:
    """Return where the row at ``at`` ends, 0 if the data ends before it."""
    try:
        if data[at] != _ARRAY_OF_5:
            raise RecordError("not an array of partition, offset, key, value and envelope")
        end = at + 1
        for _ in range(5):
            first = data[end]
            end += 1
            if width := _LENGTH_BYTES.get(first):
                length = int.from_bytes(data[end : end + width], "big")
                if length > _LARGEST_RECORD:
                    raise RecordError(f"a field of {length:,} bytes, which is more than Kafka takes")
                end += width + length
            elif first in _NUMBER_BYTES:
                end += _NUMBER_BYTES[first]
            elif first != _NIL and 0x80 <= first < 0xE0:
                raise RecordError("not an array of partition, offset, key, value and envelope")
    except IndexError:
        return 0
    return end if end <= len(data) else 0


def read_recording(stream: BinaryIO) -> Iterator[MirrorRecord]:
    """Yield the records of a recording.

    :raises RecordError: if it is no recording, a record cannot be read, or the last one is cut short.
    """
    if stream.read(len(MAGIC)) != MAGIC:
        raise RecordError("not a file of mirror records")
    number = 1
    try:
        for partition, offset, key, value, envelope in rows(partial(stream.read, _CHUNK)):
            yield unpack_record(partition=partition, offset=offset, key=key, value=value, envelope=envelope)
            number += 1
    except CutShortError as error:
        raise RecordError(f"record {number} {error}") from None
    except (RecordError, msgspec.ValidationError) as error:
        raise RecordError(f"record {number}: {error}") from None
