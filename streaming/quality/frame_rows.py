"""A micro-batch of the mirror topic as a pandas frame with one row for each record, which Great Expectations validates.

Every column states a fact or answers a question about one record; None means that the question does not apply to it, and expectations
skip it. Which answers are right is the suite's business (``suite.json``). The columns are documented in ``docs/quality.md``.
"""

from __future__ import annotations

import struct
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, get_type_hints

import pandas as pd

from coordinator_model.wire import DecodeError, decode, groups_named, supported_versions
from coordinator_model.wire.record import Kind, RecordError, unpack_record
from streaming.quality.record_sequences import RecordSequences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinator_model.wire.record import MirrorRecord

PLACE: Final = ("partition", "offset")
"""What names a record; always in the frame."""

_LIST_GROUPS: Final = 16  # names every group of a broker, and is mirrored to those seen on its connection
_FRAMED: Final = (Kind.REQUEST, Kind.RESPONSE)

Raw = tuple[int, int, int, bytes | None, bytes | None, bytes | None]
"""partition, offset, timestamp_ms, key, value, envelope: ``streaming.spark.worker.INPUT_COLUMNS``."""


class FrameRow(NamedTuple):
    """What is known of one record; the fields are :data:`COLUMNS`."""

    partition: int
    offset: int
    timestamp_ms: int
    key: str | None = None
    envelope_error: str | None = None
    kind: str | None = None
    at_us: int | None = None
    cluster: str | None = None
    broker: str | None = None
    connection: str | None = None
    exchange: int | None = None
    api_key: int | None = None
    api_version: int | None = None
    client_id: str | None = None
    cut_bytes: int | None = None
    version_known: bool | None = None
    decode_error: str | None = None
    header_agrees: bool | None = None
    key_in_frame: bool | None = None
    clock_difference_ms: float | None = None
    request_seen: bool | None = None
    group_in_one_partition: bool | None = None
    missing_offsets: int | None = None
    missing_exchanges: int | None = None
    missing_exchanges_of: str | None = None


COLUMNS: Final = FrameRow._fields

_TYPES: Final = {
    int: "int64",
    int | None: "Int64",
    float | None: "Float64",
    bool | None: "boolean",
    str | None: "string[pyarrow]",
}
"""Type of a field → pandas type of its column. Great Expectations copies the frame some twenty times a batch; with Python objects in it,
that alone costs more than reading the records."""

_KINDS: Final = {name: _TYPES[type_] for name, type_ in get_type_hints(FrameRow).items()}

EXAMPLES: Final = tuple(
    FrameRow(
        partition=0,
        offset=offset,
        timestamp_ms=1_700_000_000_000,
        key="orders",
        envelope_error="envelope lacks 'at'",
        kind=kind,
        at_us=1_700_000_000_000_000,
        cluster="prod",
        broker="1",
        connection="1#1",
        exchange=0,
        api_key=12,
        api_version=4,
        client_id="orders-1",
        cut_bytes=0,
        version_known=True,
        decode_error="runs past the end",
        header_agrees=True,
        key_in_frame=True,
        clock_difference_ms=0.5,
        request_seen=True,
        group_in_one_partition=True,
        missing_offsets=0,
        missing_exchanges=0,
        missing_exchanges_of="7 to 9 of 1#1",
    )
    for offset, kind in enumerate(("req", "res"))
)
"""Two records with something in every column, to try a suite on."""


class Describer:
    """Describes the records of one mirror topic, in order; what it must remember is bounded.

    Two heartbeats of a member differ in their correlation id alone. So what a frame is found to be without it is remembered.
    """

    def __init__(self) -> None:
        self._continuity = RecordSequences()
        self._known: dict[tuple[bool, int, int, bytes], _Read] = {}

    def describe(self, rows: Iterable[Raw]) -> list[FrameRow]:
        """One row for each record that was not in an earlier batch, by time, so that the first offending one is the earliest."""
        described = [row for raw in sorted(rows, key=_PLACE_OF) if (row := self._describe(raw)) is not None]
        described.sort(key=_TIME_OF)
        holes = self._continuity.holes()
        if described:  # a hole has no record of its own: it is reported with the one that made it certain
            missing = sum(hole.exchanges for hole in holes)
            which = "; ".join(f"{hole.first} to {hole.last} of {hole.connection}" for hole in holes) or None
            described[-1] = described[-1]._replace(missing_exchanges=missing, missing_exchanges_of=which)
        return described

    def _describe(self, raw: Raw) -> FrameRow | None:
        partition, offset, timestamp_ms, key, value, envelope = raw
        try:
            record = unpack_record(partition=partition, offset=offset, key=key, value=value, envelope=envelope)
        except RecordError as error:
            missing = self._continuity.see_offset(partition, offset)
            if missing is None:
                return None
            group = None if key is None else key.decode(errors="replace")
            return FrameRow(partition, offset, timestamp_ms, group, str(error), missing_offsets=missing)
        seen = self._continuity.see(record)
        if seen.repeated:
            return None
        return FrameRow(
            partition,
            offset,
            timestamp_ms,
            record.group,
            None,
            record.kind.value,
            record.at_us,
            record.cluster,
            record.broker,
            record.connection or None,
            *(self._of_frame(record) if record.kind in _FRAMED else _NO_FRAME),
            record.at_us / 1000 - timestamp_ms,
            seen.request_seen,
            seen.group_in_one_partition,
            seen.missing_before,
        )

    def _of_frame(self, record: MirrorRecord) -> _OfFrame:
        is_request = record.kind is Kind.REQUEST
        api_key, version, frame = record.api_key, record.api_version, record.frame
        if is_request:
            label, agrees = 8, frame[:8] == _LABEL(api_key & 0xFFFF, version & 0xFFFF, record.correlation_id & 0xFFFFFFFF)
        else:
            label, agrees = 4, frame[:4] == (record.correlation_id & 0xFFFFFFFF).to_bytes(4, "big")
        versions = supported_versions(api_key)
        readable = version in versions
        decode_error = key_in_frame = None
        if readable and not record.cut_bytes:  # else the fault has its own column
            decode_error, named = self._read(is_request, api_key, version, frame, label)
            key_in_frame = record.group in named if named else None
        return (
            record.exchange,
            api_key,
            version,
            record.client_id,
            record.cut_bytes,
            readable if versions else None,
            decode_error,
            agrees,
            key_in_frame,
        )

    def _read(self, is_request: bool, api_key: int, version: int, frame: bytes, label: int) -> _Read:  # noqa: FBT001 - part of a key
        what = (is_request, api_key, version, frame[label:])
        found = self._known.get(what)
        if found is None:
            found = _read(frame, is_request=is_request, api_key=api_key, version=version)
            if len(frame) <= _REMEMBERED_BYTES:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[what] = found
        return found


def to_frame(described: Sequence[FrameRow], columns: Iterable[str] = COLUMNS) -> pd.DataFrame:
    """The rows as a frame with these columns and :data:`PLACE`."""
    values = dict(zip(COLUMNS, zip(*described, strict=True), strict=True)) if described else dict.fromkeys(COLUMNS, ())
    wanted = {*PLACE, *columns}
    return pd.DataFrame({name: pd.array(values[name], dtype=kind) for name, kind in _KINDS.items() if name in wanted})  # type: ignore[call-overload]


_PLACE_OF: Final = itemgetter(0, 1)
_TIME_OF: Final = itemgetter(2)


_OfFrame = tuple[int | None, int | None, int | None, str | None, int | None, bool | None, str | None, bool | None, bool | None]
"""The columns from ``exchange`` to ``key_in_frame``."""

_NO_FRAME: Final[_OfFrame] = (None,) * 9


_Read = tuple[str | None, tuple[str, ...]]
"""Why a frame does not decode, and the groups that it names."""

_LABEL: Final = struct.Struct(">HHI").pack
_REMEMBERED: Final = 50_000
_REMEMBERED_BYTES: Final = 512  # rare and long frames are read again


def _read(frame: bytes, *, is_request: bool, api_key: int, version: int) -> _Read:
    try:
        body = decode(frame, request=is_request, api_key=api_key, api_version=version).body
    except DecodeError as error:
        return str(error), ()
    return None, () if api_key == _LIST_GROUPS else groups_named(body)
