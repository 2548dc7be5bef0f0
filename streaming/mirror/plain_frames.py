"""Converts frames to plain JSON values, field by field, for a person or another program to read."""

from __future__ import annotations

import base64
import dataclasses
from collections import Counter
from typing import Any, Final

from coordinator_model import wire
from coordinator_model.wire.record import Kind, MirrorRecord
from coordinator_model.wording import counted, iso_utc, plural

_METADATA: Final = ("JoinGroupRequestProtocol", "JoinGroupResponseMember")


class Counts(Counter[str]):
    """Counts of what was read, and the reasons why some of it could not be decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: Counter[str] = Counter()
        self.first: dict[str, str] = {}  #: where each reason occurred first

    def unreadable(self, kind: str, reason: str, where: str) -> None:
        self[kind] += 1
        self.reasons[f"{kind}: {reason}"] += 1
        self.first.setdefault(f"{kind}: {reason}", where)


def plain_frame(record: MirrorRecord, protocol_types: dict[str | None, str], counts: Counts) -> dict[str, Any]:
    """Return a frame as plain JSON values, field by field; with ``unreadable`` in place of ``body`` if it cannot be decoded.

    :param protocol_types: protocol type by group, as far as frames have named it; this adds to it.
    """
    line: dict[str, Any] = {
        "at": iso_utc(record.at_us) if record.at_us else None,
        "kind": "request" if record.kind is Kind.REQUEST else "response",
        "api": wire.API_NAMES.get(record.api_key, str(record.api_key)),
        "version": record.api_version,
        "correlation_id": record.correlation_id,
        "client_id": record.client_id,
        "client_address": record.client_address or None,
        "connection": record.connection or None,
        "exchange": record.exchange if record.exchange >= 0 else None,
        "groups": [] if record.group is None else [record.group],
    }
    try:
        header, body = wire.decode(
            record.frame, request=record.kind is Kind.REQUEST, api_key=record.api_key, api_version=record.api_version
        )
    except wire.DecodeError as error:
        counts.unreadable("unreadable", f"{line['api']} v{line['version']} {line['kind']}: {error}", _where(line))
        cut = (
            f" ({counted(record.cut_bytes, 'byte')} {plural(record.cut_bytes, 'was', 'were')} not captured)"
            if record.cut_bytes
            else ""
        )
        return {**line, "unreadable": f"{error}{cut}", "frame": base64.b64encode(record.frame).decode()}
    if record.kind is Kind.REQUEST:
        line["client_id"] = header.client_id
    line["correlation_id"] = header.correlation_id
    line["groups"] = list(dict.fromkeys([*line["groups"], *wire.groups_named(body)]))
    protocol_type = getattr(body, "protocol_type", None)
    if protocol_type:
        protocol_types[record.group] = protocol_type
    plain = _Plain(protocol_type or protocol_types.get(record.group, ""), counts, _where(line))
    return {**line, "body": plain.struct(body)}


class _Plain:
    """Converts messages to plain JSON values, including the messages embedded in their bytes fields."""

    def __init__(self, protocol_type: str, counts: Counts, where: str) -> None:
        self._protocol_type = protocol_type
        self._counts = counts
        self._where = where

    def struct(self, struct: wire.Struct) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for field in dataclasses.fields(struct):  # type: ignore[arg-type]
            value = getattr(struct, field.name)
            if field.name == "unknown_tags":
                if value:
                    out["unknown_tags"] = {str(tag): base64.b64encode(raw).decode() for tag, raw in value}
                continue
            out[field.name] = self.value(value, type(struct).__name__, field.name)
            if field.name == "error_code":
                out["error"] = wire.error_name(value)
        return out

    def value(self, value: Any, struct: str, field: str) -> Any:
        if isinstance(value, wire.Struct):
            return self.struct(value)
        if isinstance(value, tuple):
            return [self.value(item, struct, field) for item in value]
        return self.embedded(value, struct, field) if isinstance(value, bytes) else value

    def embedded(self, raw: bytes, struct: str, field: str) -> Any:
        text = base64.b64encode(raw).decode()
        if not raw or field not in ("metadata", "assignment"):
            return text
        is_metadata = struct in _METADATA
        decode, read = (
            (wire.decode_metadata, wire.read_metadata)
            if is_metadata
            else (wire.decode_member_assignment, wire.read_member_assignment)
        )
        try:
            found = decode(self._protocol_type, raw)
        except wire.DecodeError as error:
            of = f"{field} of protocol type {self._protocol_type!r} in {struct}"
            self._counts.unreadable("embedded unreadable", f"{of}: {error}", self._where)
            what_there_is = read(self._protocol_type, raw)
            fields = {} if what_there_is is None else self.struct(what_there_is.body)
            return {**fields, "unreadable": str(error), "bytes": text}
        if isinstance(found, bytes):
            self._counts["embedded of another type"] += 1
            return text
        return self.struct(found)


def _where(line: dict[str, Any]) -> str:
    groups = f" of group {', '.join(line['groups'])}" if line["groups"] else ""
    return f"in {line['api']} v{line['version']} {line['kind']} {line['correlation_id']}{groups} at {line['at']}"
