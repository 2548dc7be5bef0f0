"""Mirror records in a file: the input of ``decode`` and ``replay`` besides packet captures, and the format of golden transcripts.

The first line identifies the format. One msgpack array per record follows: partition, offset, key, value, ``mirror`` header. The last
three are the unchanged bytes of the mirror topic.

A recording whose writer was killed may end within a record. The records before it are valid, so the error is raised after them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgpack

from coordinator_model.wire.record import MirrorRecord, RecordError, pack_envelope, unpack_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

MAGIC: Final = b"rebalance-monitor mirror records 1\n"
_CHUNK: Final = 1024 * 1024
_LARGEST_RECORD: Final = 128 * 1024 * 1024  # above Kafka's own limit for a request (socket.request.max.bytes)


def pack_record(record: MirrorRecord) -> bytes:
    """Return one record as stored in a recording, where :data:`MAGIC` precedes the first."""
    key = None if record.group is None else record.group.encode()
    return msgpack.packb((record.partition, record.offset, key, record.frame, pack_envelope(record)))  # type: ignore[no-any-return]


def read_recording(stream: BinaryIO) -> Iterator[MirrorRecord]:
    """Yield the records of a recording.

    :raises RecordError: if it is no recording, a record cannot be read, or the last one is cut short.
    """
    if stream.read(len(MAGIC)) != MAGIC:
        raise RecordError("not a file of mirror records")
    unpacker = msgpack.Unpacker(max_buffer_size=_LARGEST_RECORD)
    number = fed = whole = 0
    try:
        while chunk := stream.read(_CHUNK):
            unpacker.feed(chunk)
            fed += len(chunk)
            for fields in unpacker:
                number += 1
                whole = unpacker.tell()
                yield _record(fields)
    except RecordError as error:
        raise RecordError(f"record {number}: {error}") from None
    except Exception as error:  # msgpack raises half a dozen unrelated types on bad bytes
        raise RecordError(f"record {number + 1}: not msgpack ({error})") from None
    if whole != fed:
        raise RecordError(f"record {number + 1} is cut short: the file ends in the middle of it")


def _record(fields: Any) -> MirrorRecord:
    match fields:
        case [int(partition), int(offset), bytes() | None as key, bytes() | None as value, bytes() as envelope]:
            return unpack_record(partition=partition, offset=offset, key=key, value=value, envelope=envelope)
    raise RecordError("not an array of partition, offset, key, value and envelope")
