"""Read mirror records as :func:`~coordinator_model.wire.record.unpack_record` does, but faster for known connections.

The envelopes of a connection differ only in capture time, exchange number and correlation id. The bytes before and after these are
cached with their meaning. All records of a connection therefore also share their strings.

Text that a client chose may contain bytes that look like a field's name. An envelope is therefore cached only if
:func:`~coordinator_model.wire.record.pack_envelope` would write the same bytes, and each of the marks below occurs in it once. Any other
is read by ``unpack_record``, with the same record or error.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from coordinator_model.wire.record import FORMAT_VERSION, Kind, MirrorRecord, pack_envelope, unpack_record

KNOWN_LIMIT: Final = 100_000
"""Maximum number of cached connections, of half a kilobyte each. Above it the cache is cleared, and each is read once again."""

_HEADS: Final = {
    bytes((0x80 | fields, 0xA1, ord("v"), FORMAT_VERSION, 0xA1, ord("k"), 0xA3, *kind.value.encode(), 0xA2, *b"at", 0xCF)): (
        kind,
        fields,
    )
    for kind in (Kind.REQUEST, Kind.RESPONSE)
    for fields in range(16)
}
"""The first bytes of a frame's envelope, up to its capture time: number of fields, version and kind."""

_HEAD_ENDS: Final = 14
_AT_ENDS: Final = _HEAD_ENDS + 8
_EXCHANGE: Final = b"\xa2sq"
"""Precedes the exchange number."""

_CORRELATION: Final = b"\xa3cor"
_LABEL_BYTES: Final = 14  # api and version, up to the correlation id: b"\xa3api" n b"\xa3ver" n b"\xa3cor"

# First byte of a msgpack integer → its struct format, and its size.
_WIDTHS: Final = {0xCE: ("xI", 5), 0xCD: ("xH", 3), 0xCC: ("xB", 2)} | dict.fromkeys(range(0x80), ("B", 1))
_EXCHANGE_AND_LABEL: Final = {
    first: (struct.Struct(f">{form}{_LABEL_BYTES}s").unpack_from, width + _LABEL_BYTES) for first, (form, width) in _WIDTHS.items()
}
_NUMBER: Final = {first: (struct.Struct(f">{form}").unpack_from, width) for first, (form, width) in _WIDTHS.items()}
_CAPTURE_TIME: Final = struct.Struct(">Q").unpack_from

_NOT_AS_USUAL: Final = (ValueError, IndexError, KeyError, struct.error)

_record: Final = tuple.__new__


class _Known(NamedTuple):
    """Content of the constant parts of a connection's envelopes."""

    fields: int
    key: bytes | None
    group: str | None
    before: tuple[str, str, str]  #: cluster, broker, connection
    behind: tuple[str | None, str, str, int, int]  #: from client id on
    last: tuple[int, str]  #: what stands behind the frame


class RecordReader:
    """Reads records, with a cache of connections. The result depends only on a record's bytes."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes], _Known] = {}
        self._labels: dict[bytes, tuple[int, int]] = {}

    def read(self, partition: int, offset: int, key: bytes | None, value: bytes | None, envelope: bytes | None) -> MirrorRecord:
        """Read one record of the mirror topic.

        :raises RecordError: as :func:`~coordinator_model.wire.record.unpack_record`.
        """
        if envelope is None or (head := _HEADS.get(envelope[:_HEAD_ENDS])) is None:
            return unpack_record(partition=partition, offset=offset, key=key, value=value, envelope=envelope)
        try:
            mark = envelope.index(_EXCHANGE, _AT_ENDS)
            unpack, width = _EXCHANGE_AND_LABEL[envelope[mark + 3]]
            exchange, label = unpack(envelope, mark + 3)
            at = mark + 3 + width
            unpack, width = _NUMBER[envelope[at]]
            (correlation_id,) = unpack(envelope, at)
            fields, known_key, group, before, behind, last = self._known[envelope[_AT_ENDS:mark], envelope[at + width :]]
            api_key, api_version = self._labels[label]
        except _NOT_AS_USUAL:
            return self._learn(partition, offset, key, value, envelope)
        if head[1] != fields or known_key != key:
            return self._learn(partition, offset, key, value, envelope)
        at_us = _CAPTURE_TIME(envelope, _HEAD_ENDS)[0]
        label_read = exchange, api_key, api_version, correlation_id
        return _record(MirrorRecord, (partition, offset, group, head[0], at_us, *before, *label_read, *behind, value or b"", *last))

    def _learn(self, partition: int, offset: int, key: bytes | None, value: bytes | None, envelope: bytes) -> MirrorRecord:
        record = unpack_record(partition=partition, offset=offset, key=key, value=value, envelope=envelope)
        if envelope.count(_EXCHANGE) != 1 or envelope.count(_CORRELATION) != 1 or pack_envelope(record) != envelope:
            return record
        parts = _parts(envelope)
        if parts is not None:
            if len(self._known) >= KNOWN_LIMIT:
                self._known.clear()
            self._labels[parts.label] = record.api_key, record.api_version
            self._known[parts.before, parts.behind] = _Known(
                envelope[0] & 0x0F, key, record.group, record[5:8], record[12:17], record[18:]
            )
        return record


class _Parts(NamedTuple):
    """The bytes that all envelopes of a connection and API share."""

    before: bytes  #: from the end of the capture time to the exchange number's name
    label: bytes  #: API, version and the correlation id's name
    behind: bytes  #: from the end of the correlation id


def _parts(envelope: bytes) -> _Parts | None:
    """Split the envelope of a frame; return None for any other, or one with a negative or wide number."""
    try:
        mark = envelope.index(_EXCHANGE, _AT_ENDS)
        unpack, width = _EXCHANGE_AND_LABEL[envelope[mark + 3]]
        label = unpack(envelope, mark + 3)[1]
        at = mark + 3 + width
        behind = at + _NUMBER[envelope[at]][1]
    except _NOT_AS_USUAL:
        return None
    return _Parts(envelope[_AT_ENDS:mark], label, envelope[behind:]) if label.endswith(_CORRELATION) else None
