"""The mirror record: one captured frame of group traffic, and an envelope with what the frame does not contain.

A response names neither its API, version nor group. The capturer, which follows the connection, must therefore add those of its request.
``docs/mirror-format.md`` documents the format for other capturers.

The capture times of two records do not prove the order in which the coordinator acted on them. Only the intervals from request to
response do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Any, Final, NamedTuple

import msgpack

FORMAT_VERSION: Final = 1
HEADER_NAME: Final = "mirror"
_NOT_OFFERED: Final = "not_offered"
_NOT_OFFERED_AT_MOST: Final = 32

MIRRORED_API_KEYS: Final = frozenset({8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 28, 42, 47, 68, 69, 76, 77, 88, 89})
"""APIs of group coordination, and those that identify its clients. Never Produce, Fetch, SASL, tokens or SCRAM: payloads and
secrets are not mirrored."""


class Kind(StrEnum):
    """What a mirror record reports."""

    REQUEST = "req"
    RESPONSE = "res"
    TICK = (
        "tick"  #: the capturer is alive; advances the partition's clock while its groups are silent. See :func:`unpack_not_offered`
    )
    OPEN = "open"
    CLOSE = "close"
    GAP = "gap"  #: records were lost between capture and topic; the value is a :class:`Loss`
    TOPICS = "topics"  #: names of topics and numbers of their partitions, see :func:`pack_topics`
    EXPIRED = "expired"  #: a broker's own log says that the coordinator ended a session; the value is the member's id
    OTHER = "other"  #: of a kind that a newer capturer writes; it is skipped


class RecordError(ValueError):
    """The envelope of a mirror record cannot be read; the message names the field."""


class MirrorRecord(NamedTuple):
    """One record of the mirror topic."""

    partition: int  #: -1 before the record is in the topic, as is the offset
    offset: int
    group: str | None  #: the record's key; None on ticks and on gaps that concern the whole partition
    kind: Kind
    at_us: int  #: capture time, microseconds since the epoch
    cluster: str = ""
    broker: str = ""  #: node id or host:port
    connection: str = ""  #: unique, never reused
    #: Number of the exchange among the mirrored ones of its connection, from 0; -1 if there is none.
    exchange: int = -1
    api_key: int = -1  #: -1 where there is none
    api_version: int = -1
    correlation_id: int = 0  #: may be negative, since some proxies use their own
    client_id: str | None = None
    client_address: str = ""
    client_software: str = ""  #: "name version" as sent in ApiVersions v3+ (KIP-511) on any connection of the client, else ""
    cut_bytes: int = 0  #: bytes of the frame that were not captured
    queued_behind: int = 0  #: unanswered requests before this one on its connection at capture, mirrored or not
    frame: bytes = b""  #: header and body without the 4-byte length; empty for open and close
    capped_bytes: int = 0  #: those of ``cut_bytes`` that the capturer saw and left out, since the frame is longer than it keeps
    principal: str = ""  #: as whom the client is authenticated and by which listener, where the input says it


class DecodedRecord(MirrorRecord):
    """A record of a frame that is already decoded, so that the reader need not decode it again.

    It equals the plain record of the same content, and is stored like it. The result of :meth:`_replace` must be decoded again.
    """

    body: Any = None  #: the message, if there is one; not to be changed. Its correlation id is the record's


class Cause(IntEnum):
    """Why there is a gap."""

    NOT_DELIVERED = 0  #: with a connection: it cannot be followed
    NOT_CAPTURED = 1  #: packets of the connection are missing
    ONE_DIRECTION = 2  #: of the connection only one side's packets were captured
    MAY_WAIT = 3  #: a request of the connection may wait for its answer, and is not told before
    ENDED = 4  #: one of several captures ended, and others go on
    UNREADABLE = 5  #: a request stands in a log, and its line cannot be read


class Loss(NamedTuple):
    """The loss that a ``gap`` record's value describes."""

    records: int
    bytes: int
    from_us: int
    to_us: int
    cause: int = Cause.NOT_DELIVERED


def tick(at_us: int, *, cluster: str, connection: str, not_offered: Sequence[str] = ()) -> MirrorRecord:
    """Return the tick of the capturer that ``connection`` names, to be written to every partition.

    :param not_offered: versions of APIs that the brokers speak and the capturer's clients are not offered, each as text.
    """
    value = msgpack.packb({_NOT_OFFERED: list(not_offered)}) if not_offered else b""
    return MirrorRecord(-1, -1, None, Kind.TICK, at_us, cluster, connection=connection, frame=value)


def unpack_not_offered(value: bytes) -> tuple[str, ...]:
    """Read what clients are not offered from the value of a tick; what is no text is left out, and what cannot be read is nothing."""
    if not value:
        return ()
    try:
        found = _read_map(value).get(_NOT_OFFERED)
    except RecordError:
        return ()
    return tuple(one for one in found if isinstance(one, str))[:_NOT_OFFERED_AT_MOST] if isinstance(found, list) else ()


def gap(at_us: int, loss: Loss, *, cluster: str) -> MirrorRecord:
    """Return the record of a loss that concerns every partition, to be written to each of them."""
    return MirrorRecord(-1, -1, None, Kind.GAP, at_us, cluster, frame=pack_loss(loss))


def expired(at_us: int, group: str, member_id: str, *, cluster: str) -> MirrorRecord:
    """Return the record of a session that the coordinator ended, as a broker's own log says."""
    return MirrorRecord(-1, -1, group, Kind.EXPIRED, at_us, cluster, frame=member_id.encode())


# Envelope key in the msgpack map, field, type and default. A missing key means the default; `...` marks required keys.
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
    ("cap", "capped_bytes", int, 0),
    ("pr", "principal", str, ""),
)
_NEEDED_BY_FRAMES: Final = ("cn", "sq", "api", "ver", "cor")


def pack_envelope(record: MirrorRecord) -> bytes:
    """Return the value of the ``mirror`` record header: a msgpack map without fields that have their default."""
    envelope: dict[str, Any] = {"v": FORMAT_VERSION, "k": record.kind.value}
    for key, field, _, default in _ENVELOPE:
        value = getattr(record, field)
        if default is ... or value != default or key in _NEEDED_BY_FRAMES:
            envelope[key] = value
    return msgpack.packb(envelope)  # type: ignore[no-any-return]


def unpack_record(*, partition: int, offset: int, key: bytes | None, value: bytes | None, envelope: bytes | None) -> MirrorRecord:
    """Read one record of the mirror topic.

    :raises RecordError: if the envelope is missing, is not a msgpack map, lacks a field or holds one of another type.
    """
    fields = _read_map(envelope)
    version = fields.get("v")
    if version != FORMAT_VERSION:
        raise RecordError(f"mirror format version {version!r} is not {FORMAT_VERSION}")
    named = fields.get("k")
    if not isinstance(named, str):
        raise RecordError(f"envelope field 'k' is {type(named).__name__}, not str")
    kind = _KINDS.get(named, Kind.OTHER)
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
    *values, capped_bytes, principal = values
    try:
        group = None if key is None else key.decode()
    except UnicodeDecodeError:
        raise RecordError("key is not UTF-8") from None
    return MirrorRecord._make((partition, offset, group, kind, *values, value or b"", capped_bytes, principal))


def pack_topics(facts: Mapping[str, str | int]) -> bytes:
    """Return the value of a ``topics`` record: topic id → name, and name → number of partitions, 0 of a topic that is no more."""
    return msgpack.packb(dict(facts))  # type: ignore[no-any-return]


def unpack_topics(value: bytes) -> tuple[dict[str, str], dict[str, int]]:
    """Return the names by id, and the numbers of partitions by name, from the value of a ``topics`` record.

    What is neither is left out.

    :raises RecordError: if it is no map.
    """
    names: dict[str, str] = {}
    partitions: dict[str, int] = {}
    for key, fact in _read_map(value).items():
        if isinstance(key, str) and isinstance(fact, str):
            names[key] = fact
        elif isinstance(key, str) and type(fact) is int and fact >= 0:
            partitions[key] = fact
    return names, partitions


def topics(at_us: int, facts: Mapping[str, str | int], *, cluster: str) -> MirrorRecord:
    """Return the record of facts about topics, to be written to every partition."""
    return MirrorRecord(-1, -1, None, Kind.TOPICS, at_us, cluster, frame=pack_topics(facts))


def pack_loss(loss: Loss) -> bytes:
    """Return the value of a ``gap`` record."""
    fields = {name: int(count) for name, count in loss._asdict().items() if name != "cause" or count}
    return msgpack.packb(fields)  # type: ignore[no-any-return]


def unpack_loss(value: bytes) -> Loss:
    """Read the value of a ``gap`` record.

    :raises RecordError: if it is not the map that :func:`pack_loss` writes.
    """
    try:
        return Loss(**{name: int(count) for name, count in _read_map(value).items()})
    except (TypeError, ValueError):
        raise RecordError("value of a gap record is not a map of records, bytes, from_us, to_us") from None


_KINDS: Final = {kind.value: kind for kind in Kind}
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
