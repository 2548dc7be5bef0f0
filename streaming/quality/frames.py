"""A micro-batch of the mirror topic as a pandas frame with one row for each record, which Great Expectations validates.

Every column states a fact or answers a question about one record; None means that the question does not apply to it, and expectations
skip it. Which answers are right is the suite's business (``suite.json``). The columns are documented in ``docs/quality.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from coordinator_model.wire import DecodeError, decode, decode_request_header, groups_named, supported_versions
from coordinator_model.wire.record import Kind, RecordError, unpack_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator_model.wire.record import MirrorRecord
    from streaming.quality.continuity import Continuity

COLUMNS: Final = (
    "partition",
    "offset",
    "timestamp_ms",
    "key",
    "envelope_error",
    "kind",
    "at_us",
    "cluster",
    "broker",
    "connection",
    "exchange",
    "api_key",
    "api_version",
    "client_id",
    "cut_bytes",
    "version_known",
    "decode_error",
    "header_agrees",
    "key_in_frame",
    "clock_difference_ms",
    "request_seen",
    "group_in_one_partition",
    "missing_offsets",
    "missing_exchanges",
    "missing_exchanges_of",
)

_LIST_GROUPS: Final = 16  # names every group of a broker, and is mirrored to those seen on its connection
_FRAMED: Final = (Kind.REQUEST, Kind.RESPONSE)

Raw = tuple[int, int, int, bytes | None, bytes | None, bytes | None]
"""partition, offset, timestamp_ms, key, value, envelope: ``streaming.replay.INPUT_COLUMNS``."""


def to_frame(rows: Iterable[Raw], continuity: Continuity) -> pd.DataFrame:
    """One row for each record that was not in an earlier batch, by time, so that the first offending one is the earliest.

    :param continuity: is moved on by these records.
    """
    described = [row for row in (_describe(raw, continuity) for raw in sorted(rows, key=lambda raw: raw[:2])) if row is not None]
    described.sort(key=lambda row: row["timestamp_ms"])
    holes = continuity.holes()
    if described:
        newest = described[-1]  # a hole has no record of its own: it is told on the one by which it became certain
        newest["missing_exchanges"] = sum(hole.exchanges for hole in holes)
        newest["missing_exchanges_of"] = "; ".join(f"{hole.first} to {hole.last} of {hole.connection}" for hole in holes) or None
    return pd.DataFrame({name: pd.Series([row.get(name) for row in described], dtype=object) for name in COLUMNS})


def _describe(raw: Raw, continuity: Continuity) -> dict[str, Any] | None:
    partition, offset, timestamp_ms, key, value, envelope = raw
    row: dict[str, Any] = {"partition": partition, "offset": offset, "timestamp_ms": timestamp_ms}
    try:
        record = unpack_record(partition=partition, offset=offset, key=key, value=value, envelope=envelope)
    except RecordError as error:
        missing = continuity.see_offset(partition, offset)
        if missing is None:
            return None
        return row | {
            "missing_offsets": missing,
            "envelope_error": str(error),
            "key": None if key is None else key.decode(errors="replace"),
        }
    seen = continuity.see(record)
    if seen.repeated:
        return None
    row |= {
        "key": record.group,
        "kind": record.kind.value,
        "at_us": record.at_us,
        "cluster": record.cluster,
        "broker": record.broker,
        "connection": record.connection or None,
        "clock_difference_ms": record.at_us / 1000 - timestamp_ms,
        "request_seen": seen.request_seen,
        "group_in_one_partition": seen.group_in_one_partition,
        "missing_offsets": seen.missing_before,
    }
    if record.kind in _FRAMED:
        row |= _frame(record)
    return row


def _frame(record: MirrorRecord) -> dict[str, Any]:
    is_request = record.kind is Kind.REQUEST
    versions = supported_versions(record.api_key)
    facts: dict[str, Any] = {
        "exchange": record.exchange,
        "api_key": record.api_key,
        "api_version": record.api_version,
        "client_id": record.client_id,
        "cut_bytes": record.cut_bytes,
        "version_known": record.api_version in versions if versions else None,
        "header_agrees": _header_agrees(record) if is_request else record.frame[:4] == _int32(record.correlation_id),
    }
    if record.cut_bytes or record.api_version not in versions:
        return facts  # the fault has its own column
    try:
        body = decode(record.frame, request=is_request, api_key=record.api_key, api_version=record.api_version).body
    except DecodeError as error:
        return facts | {"decode_error": str(error)}
    named = groups_named(body)
    if named and record.api_key != _LIST_GROUPS:
        facts["key_in_frame"] = record.group in named
    return facts


def _header_agrees(record: MirrorRecord) -> bool:
    try:
        header = decode_request_header(record.frame)
    except DecodeError:
        return False
    labelled = (record.api_key, record.api_version, record.correlation_id)
    return (header.api_key, header.api_version, header.correlation_id) == labelled


def _int32(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "big")
