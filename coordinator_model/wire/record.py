"""The mirror record: one captured frame of group traffic, and an envelope with what the frame does not contain.

A response names neither its API, version nor group. The capturer, which follows the connection, must therefore add those of its request.
``docs/mirror-format.md`` documents the format for other capturers.

The capture times of two records do not prove the order in which the coordinator acted on them. Only the intervals from request to
response do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Any, Final, NamedTuple, Self

import msgspec
from msgspec import Struct

FORMAT_VERSION: Final = 1
HEADER_NAME: Final = "mirror"
_HOST: Final = "host"
_LISTENERS: Final = "listeners"
_NOT_OFFERED: Final = "not_offered"
_HELD: Final = "held"
_NOT_OFFERED_AT_MOST: Final = 32
_PLACE_AT_MOST: Final = 500

MIRRORED_API_KEYS: Final = frozenset({8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 28, 42, 47, 68, 69, 76, 77, 88, 89})
"""APIs of group coordination, and those that identify its clients. Never Produce, Fetch, SASL, tokens or SCRAM: payloads and
secrets are not mirrored."""


class Kind(StrEnum):
    """What a mirror record reports."""

    REQUEST = "req"
    RESPONSE = "res"
    TICK = "tick"  #: the capturer is alive; advances the partition's clock while its groups are silent. See :func:`unpack_tick`
    OPEN = "open"
    CLOSE = "close"
    GAP = "gap"  #: records were lost between capture and topic; the value is a :class:`Loss`
    TOPICS = "topics"  #: names of topics and numbers of their partitions, see :func:`pack_topics`
    EXPIRED = "expired"  #: a broker's own log records that the coordinator ended a session; the value is the member's id
    UNREACHED = "unreached"  #: a client's connections to a broker's address fail; the value is :class:`Unreached`
    OTHER = "other"  #: of a kind that a newer capturer writes; it is skipped

    @classmethod
    def _missing_(cls, value: object) -> Kind:  # noqa: ARG003 - whatever it is
        return cls.OTHER


NO_RIGHT: Final = -1
"""Number of partitions of a topic that a client asked for and has no right to know."""

NO_END: Final = b"no end"
"""The frame of an OPEN record of an input that does not see when a connection ends."""


class RecordError(ValueError):
    """The envelope of a mirror record cannot be read; the message names the field."""


_KEYS: Final = {
    "kind": "k", "at_us": "at", "cluster": "cl", "broker": "br", "connection": "cn", "exchange": "sq", "api_key": "api",
    "api_version": "ver", "correlation_id": "cor", "client_id": "cid", "client_address": "ip", "client_software": "sw",
    "cut_bytes": "cut", "queued_behind": "out", "capped_bytes": "cap", "principal": "pr",
    "step_us": "st",
}  # fmt: skip
"""Field of a record → key of the envelope, in the order in which they are written. A missing key means the field's default."""


def _key_of(field: str) -> str | None:
    """Return the key that a field is read from. The version of the format stands in the place of the partition until that is set."""
    return _KEYS.get(field, "v" if field == "partition" else f"no key: {field}")


class _Decoded:
    """Outside the record's fields: a decoded record equals one that is not."""

    __slots__ = ()

    body: Any = None  #: the message, if it is decoded already; not to be changed. Its correlation id is the record's


class MirrorRecord(_Decoded, Struct, dict=True, rename=_key_of):
    """One record of the mirror topic. Do not change one that others have."""

    partition: int = -1  #: -1 before the record is in the topic, as is the offset
    offset: int = -1
    group: str | None = None  #: the record's key; None on ticks and on gaps that concern the whole partition
    kind: Kind = Kind.OTHER
    at_us: int = 0  #: capture time, microseconds since the epoch
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
    principal: str = ""  #: as whom the client is authenticated and by which listener, where the input contains it
    step_us: int = 0  #: how coarse the capture time is: the frame passed in the step that begins with it

    def _replace(self, **changes: Any) -> Self:
        """Return a copy with changes, which must be decoded again."""
        return msgspec.structs.replace(self, **changes)


class Cause(IntEnum):
    """Why there is a gap."""

    NOT_DELIVERED = 0  #: with a connection: it cannot be followed
    NOT_CAPTURED = 1  #: packets of the connection are missing
    ONE_DIRECTION = 2  #: of the connection only one side's packets were captured
    MAY_WAIT = 3  #: a request of the connection may wait for its response, and is not reported before
    ENDED = 4  #: one of several captures ended, and others go on
    UNREADABLE = 5  #: a request stands in a log, and its line cannot be read
    DROPPED = 6  #: packets came faster than the capturer could read them
    NOT_RUNNING = 7  #: the capture did not run, or its interface was away
    SET_BACK = 8  #: nothing is missing: times in a log without zones go back, since its clock was set back
    PORT_UNREAD = 9  #: a broker's port was found that was not read until then


class Unreached(NamedTuple):
    """Connections of one host to one address that failed: the value of an ``unreached`` record, whose broker is that address."""

    refused: int  #: connections answered with a reset, or by the tap, which could not reach the broker itself
    unanswered: int
    from_us: int  #: the first of them


class Loss(NamedTuple):
    """The loss that a ``gap`` record's value describes."""

    records: int
    bytes: int
    from_us: int
    to_us: int
    cause: int = Cause.NOT_DELIVERED


class Place(NamedTuple):
    """Where a tap is."""

    host: str
    listeners: str  #: as its option names them: ``0.0.0.0:9092=broker1:9093``, with commas between several


class TickFacts(NamedTuple):
    """What a tick says of its capturer."""

    place: Place | None = None  #: of a tap; a capture has none
    not_offered: tuple[str, ...] = ()  #: versions of APIs that the brokers support and its clients are not offered, each as text
    held: bool = False  #: nothing could be written to the topic then: the tick was kept


def tick(at_us: int, *, cluster: str, connection: str, place: Place | None = None, not_offered: Sequence[str] = ()) -> MirrorRecord:
    """Return the tick of the capturer that ``connection`` names, to be written to every partition.

    :param place: of a tap, whose absence is to be noticed.
    :param not_offered: versions of APIs that the brokers support and the capturer's clients are not offered, each as text.
    """
    said: dict[str, Any] = {_NOT_OFFERED: list(not_offered)} if not_offered else {}
    if place is not None:
        said |= {_HOST: place.host, _LISTENERS: place.listeners}
    return MirrorRecord(-1, -1, None, Kind.TICK, at_us, cluster, connection=connection, frame=_encode(said) if said else b"")


def as_held(record: MirrorRecord) -> MirrorRecord:
    """Return a tick that says that the topic takes nothing now."""
    return record._replace(frame=_encode(_tick_fields(record.frame) | {_HELD: True}))


def unpack_tick(value: bytes) -> TickFacts:
    """Read the value of a tick; what is no text is left out, and what cannot be read is nothing."""
    found = _tick_fields(value)
    host, listeners, texts = found.get(_HOST), found.get(_LISTENERS), found.get(_NOT_OFFERED)
    place = None
    if isinstance(host, str) and isinstance(listeners, str) and listeners:
        place = Place(host[:_PLACE_AT_MOST], listeners[:_PLACE_AT_MOST])
    not_offered = (one for one in texts if isinstance(one, str)) if isinstance(texts, list) else ()
    return TickFacts(place, tuple(not_offered)[:_NOT_OFFERED_AT_MOST], found.get(_HELD) is True)


def _tick_fields(value: bytes) -> dict[Any, Any]:
    try:
        return _read_map(value) if value else {}
    except RecordError:
        return {}


def gap(at_us: int, loss: Loss, *, cluster: str) -> MirrorRecord:
    """Return the record of a loss that concerns every partition, to be written to each of them."""
    return MirrorRecord(-1, -1, None, Kind.GAP, at_us, cluster, frame=pack_loss(loss))


def expired(at_us: int, group: str, member_id: str, *, cluster: str) -> MirrorRecord:
    """Return the record of a session that the coordinator ended, as a broker's own log records."""
    return MirrorRecord(-1, -1, group, Kind.EXPIRED, at_us, cluster, frame=member_id.encode())


_NEEDED: Final = ("k", "at")
_NEEDED_BY_FRAMES: Final = ("cn", "sq", "api", "ver", "cor")

_decode: Final = msgspec.msgpack.Decoder(MirrorRecord).decode
_encode: Final = msgspec.msgpack.Encoder().encode

_DEFAULTS: Final = {field.name: field.default for field in msgspec.structs.fields(MirrorRecord)}
_WRITTEN: Final = tuple(
    (key, field, ... if key in {*_NEEDED, *_NEEDED_BY_FRAMES} else _DEFAULTS[field]) for field, key in _KEYS.items()
)
"""Key, field, and the value that is not written."""


def pack_envelope(record: MirrorRecord) -> bytes:
    """Return the value of the ``mirror`` record header: a msgpack map without fields that have their default."""
    envelope: dict[str, Any] = {"v": FORMAT_VERSION}
    for key, field, default in _WRITTEN:
        value = getattr(record, field)
        if value != default:
            envelope[key] = value
    return _encode(envelope)


def unpack_record(*, partition: int, offset: int, key: bytes | None, value: bytes | None, envelope: bytes | None) -> MirrorRecord:
    """Read one record of the mirror topic.

    :raises RecordError: if the envelope is missing, is not a msgpack map, lacks a field or holds one of another type.
    """
    try:
        record = _decode(envelope)  # type: ignore[arg-type]  # None is refused
    except _BAD_BYTES:
        record = _from_map(_read_map(envelope))
    has_all = record.at_us and record.connection and record.correlation_id and record.kind is not Kind.OTHER
    if record.partition != FORMAT_VERSION or not has_all or min(record.exchange, record.api_key, record.api_version) < 0:
        _check_keys(_read_map(envelope), record.kind)  # what has its default may be missing
    record.partition, record.offset, record.frame = partition, offset, value or b""
    try:
        record.group = None if key is None else key.decode()
    except UnicodeDecodeError:
        raise RecordError("key is not UTF-8") from None
    return record


def _check_keys(fields: dict[Any, Any], kind: Kind) -> None:
    if fields.get("v") != FORMAT_VERSION:
        raise RecordError(f"mirror format version {fields.get('v')!r} is not {FORMAT_VERSION}")
    for needed in (*_NEEDED, *(_NEEDED_BY_FRAMES if kind in {Kind.REQUEST, Kind.RESPONSE} else ())):
        if needed not in fields:
            raise RecordError(f"envelope lacks {needed!r}")


def _from_map(fields: dict[Any, Any]) -> MirrorRecord:
    """Return the record of an envelope that names its broker by a number; raise for any other that the decoder refuses."""
    _check_keys(fields, Kind.OTHER)
    if type(fields.get("br")) is int:
        fields["br"] = str(fields["br"])
    try:
        return msgspec.convert(fields, MirrorRecord)
    except msgspec.ValidationError as error:
        wrong = _WRONG_TYPE.match(str(error))
        text = f"envelope field {wrong[3]!r} is {wrong[2]}, not {wrong[1]}" if wrong else f"envelope cannot be read: {error}"
        raise RecordError(text) from None


_WRONG_TYPE: Final = re.compile(r"Expected `(\w+).*`, got `(\w+)` - at `\$\.(\w+)`")
_BAD_BYTES: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError)


def pack_topics(facts: Mapping[str, str | int]) -> bytes:
    """Return the value of a ``topics`` record: topic id → name, and name → number of partitions.

    That is 0 of a topic that is no more, and :data:`NO_RIGHT` of one that is not for the client.
    """
    return _encode(dict(facts))


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
        elif isinstance(key, str) and type(fact) is int and fact >= NO_RIGHT:
            partitions[key] = fact
    return names, partitions


def topics(
    at_us: int, facts: Mapping[str, str | int], *, cluster: str, client: tuple[str | None, str] = (None, "")
) -> MirrorRecord:
    """Return the record of facts about topics, to be written to every partition.

    :param client: id and address of the client that asked; a topic that does not exist, or is not for it, is news for each.
    """
    client_id, address = client
    return MirrorRecord(
        -1, -1, None, Kind.TOPICS, at_us, cluster, client_id=client_id, client_address=address, frame=pack_topics(facts)
    )


def unreached(at_us: int, address: str, client_address: str, failed: Unreached, *, cluster: str) -> MirrorRecord:
    """Return the record of connections that failed, to be written to every partition."""
    frame = _encode({name: int(count) for name, count in failed._asdict().items()})
    return MirrorRecord(-1, -1, None, Kind.UNREACHED, at_us, cluster, address, client_address=client_address, frame=frame)


def unpack_unreached(value: bytes) -> Unreached:
    """Read the value of an ``unreached`` record.

    :raises RecordError: if it is not the map that :func:`unreached` writes.
    """
    try:
        return Unreached(**{name: int(count) for name, count in _read_map(value).items()})
    except (TypeError, ValueError):
        raise RecordError("value of an unreached record is not a map of refused, unanswered, from_us") from None


def pack_loss(loss: Loss) -> bytes:
    """Return the value of a ``gap`` record."""
    return _encode({name: int(count) for name, count in loss._asdict().items() if name != "cause" or count})


def unpack_loss(value: bytes) -> Loss:
    """Read the value of a ``gap`` record.

    :raises RecordError: if it is not the map that :func:`pack_loss` writes.
    """
    try:
        return Loss(**{name: int(count) for name, count in _read_map(value).items()})
    except (TypeError, ValueError):
        raise RecordError("value of a gap record is not a map of records, bytes, from_us, to_us") from None


def _read_map(packed: bytes | None) -> dict[Any, Any]:
    if packed is None:
        raise RecordError(f"record header {HEADER_NAME!r} is missing")
    try:
        fields = msgspec.msgpack.decode(packed)
    except _BAD_BYTES as error:
        raise RecordError(f"record header {HEADER_NAME!r} is not msgpack: {error}") from None
    if not isinstance(fields, dict):
        raise RecordError(f"record header {HEADER_NAME!r} is not a map")
    return fields
