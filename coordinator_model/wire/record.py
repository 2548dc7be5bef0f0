"""The mirror record: one frame of group traffic as it crossed the wire, with the envelope that the wire does not carry.

A response names neither its API, version nor group, so whoever captures it must say what it answers: the capturer holds the
connection anyway, the reader does not. The format is documented for other capturers in ``docs/mirror-format.md``.

The trap: capture times of two records say nothing certain about the order in which the coordinator acted on them. Only the interval
from a request to its response does.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgpack

FORMAT_VERSION: Final = 1
HEADER_NAME: Final = "mirror"

MIRRORED_API_KEYS: Final = frozenset({8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 28, 42, 47, 68, 69, 76, 77, 88, 89})
"""Group coordination and what names its actors. Never produce, fetch, SASL, tokens or SCRAM: payloads and secrets
stay where they are."""


class Kind(StrEnum):
    """What a mirror record reports."""

    REQUEST = "req"
    RESPONSE = "res"
    TICK = "tick"  #: the capturer is alive; carries the partition's clock while its groups are silent
    OPEN = "open"
    CLOSE = "close"
    GAP = "gap"  #: records were lost between capture and topic; the value is a :class:`Loss`


class RecordError(ValueError):
    """The envelope of a mirror record cannot be read; the message names the field."""


class MirrorRecord(NamedTuple):
    """One record of the mirror topic."""

    partition: int  #: -1 before the record is in the topic, as the offset
    offset: int
    group: str | None  #: the record's key; None on ticks and on gaps that concern the whole partition
    kind: Kind
    at_us: int  #: capture time, microseconds since the epoch
    cluster: str = ""
    broker: str = ""  #: node id or host:port
    connection: str = ""  #: unique for ever
    #: Numbers the mirrored exchanges of a connection from 0. A response has its request's. -1 where there is none.
    exchange: int = -1
    api_key: int = -1  #: -1 where there is none
    api_version: int = -1
    correlation_id: int = 0  #: may be negative: some proxies issue their own
    client_id: str | None = None
    client_address: str = ""
    client_software: str = ""  #: "name version" as sent in ApiVersions v3+ (KIP-511), else ""
    cut_bytes: int = 0  #: bytes of the frame that were not captured
    queued_behind: int = 0  #: unanswered requests ahead of this one on its connection when it was seen, mirrored or not
    frame: bytes = b""  #: header and body without the 4-byte length; empty for ticks, open and close


class DecodedRecord(MirrorRecord):
    """A record of a frame that its maker has decoded already: the reader need not do it again.

    Equal to the plain record of the same content, and stored like it; what :meth:`_replace` gives is to be decoded again.
    """

    body: Any = None  #: the message, if there is one; nobody changes it. Its correlation id is the record's


class Loss(NamedTuple):
    """What a ``gap`` record's value says was lost."""

    records: int
    bytes: int
    from_us: int
    to_us: int


def tick(at_us: int, *, cluster: str, connection: str) -> MirrorRecord:
    """Return the sign of life of the capturer that ``connection`` names, to be written to every partition."""
    return MirrorRecord(-1, -1, None, Kind.TICK, at_us, cluster, connection=connection)


def gap(at_us: int, loss: Loss, *, cluster: str) -> MirrorRecord:
    """Return the record of a loss that concerns every partition, to be written to each of them."""
    return MirrorRecord(-1, -1, None, Kind.GAP, at_us, cluster, frame=pack_loss(loss))


# Envelope key in the msgpack map → (field, type, default). A missing key means its default; `...` marks those that must be there.
_ENVELOPE: Final[tuple[tuple[str, str, type, Any], ...]] = (
    ("at", "at_us", int, ...),
    ("cl", "cluster", str, ""),
    ("br", "broker", str, ""),
    ("cn", "connection", str, ""),
    ("sq", "exchange", int, -1),
    ("api", "api_key", int, -1),
    ("ver", "api_version", int, -1),
    ("cor", "correlation_id", int, 0),
    ("cid", "client_id", str, None),
    ("ip", "client_address", str, ""),
    ("sw", "client_software", str, ""),
    ("cut", "cut_bytes", int, 0),
    ("out", "queued_behind", int, 0),
)
_NEEDED_BY_FRAMES: Final = ("cn", "sq", "api", "ver", "cor")


def pack_envelope(record: MirrorRecord) -> bytes:
    """The value of the ``mirror`` record header: a msgpack map without the fields that hold their default."""
    envelope: dict[str, Any] = {"v": FORMAT_VERSION, "k": record.kind.value}
    for key, field, _, default in _ENVELOPE:
        value = getattr(record, field)
        if default is ... or value != default or key in _NEEDED_BY_FRAMES:
            envelope[key] = value
    return msgpack.packb(envelope)  # type: ignore[no-any-return]


def unpack_record(*, partition: int, offset: int, key: bytes | None, value: bytes | None, envelope: bytes | None) -> MirrorRecord:
    """Read one record of the mirror topic.

    :raises RecordError: when the envelope is missing, is not a msgpack map, lacks a field or holds one of another type.
    """
    fields = _read_map(envelope)
    version = fields.get("v")
    if version != FORMAT_VERSION:
        raise RecordError(f"mirror format version {version!r} is not {FORMAT_VERSION}")
    try:
        kind = Kind(fields.get("k", ""))
    except ValueError:
        raise RecordError(f"unknown kind {fields.get('k')!r}") from None
    if kind in _FRAMED:
        for needed in _NEEDED_BY_FRAMES:
            if needed not in fields:
                raise RecordError(f"envelope lacks {needed!r}")
    values: list[Any] = []
    for name, _, expected, default in _ENVELOPE:
        found = fields.get(name, default)
        if found is not default and type(found) is not expected:
            if name == "br" and type(found) is int:
                found = str(found)
            else:
                raise RecordError(f"envelope field {name!r} is {type(found).__name__}, not {expected.__name__}")
        if found is ...:
            raise RecordError(f"envelope lacks {name!r}")
        values.append(found)
    try:
        group = None if key is None else key.decode()
    except UnicodeDecodeError:
        raise RecordError("key is not UTF-8") from None
    return MirrorRecord._make((partition, offset, group, kind, *values, value or b""))


def pack_loss(loss: Loss) -> bytes:
    """The value of a ``gap`` record."""
    return msgpack.packb(loss._asdict())  # type: ignore[no-any-return]


def unpack_loss(value: bytes) -> Loss:
    """Read the value of a ``gap`` record.

    :raises RecordError: when it is not the map that :func:`pack_loss` writes.
    """
    try:
        return Loss(**{name: int(count) for name, count in _read_map(value).items()})
    except (TypeError, ValueError):
        raise RecordError("value of a gap record is not a map of records, bytes, from_us, to_us") from None


_FRAMED: Final = frozenset({Kind.REQUEST, Kind.RESPONSE})


def _read_map(packed: bytes | None) -> dict[Any, Any]:
    if packed is None:
        raise RecordError(f"record header {HEADER_NAME!r} is missing")
    try:
        fields = msgpack.unpackb(packed)
    except Exception as error:  # msgpack raises half a dozen unrelated types on bad bytes
        raise RecordError(f"record header {HEADER_NAME!r} is not msgpack: {error}") from None
    if not isinstance(fields, dict):
        raise RecordError(f"record header {HEADER_NAME!r} is not a map")
    return fields
