"""Encode messages, for tests, fixtures and raw clients.

The encoder walks the layout field by field and is not optimised. A value that a version cannot represent is an error, unless the schema
marks the field as ignorable or the value is the default.

Tagged fields with their default are omitted, as by Kafka's own classes, and known and unknown tags are merged by number.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from typing import Any, Final

from coordinator_model.wire import messages
from coordinator_model.wire.layouts import INTEGERS, LAYOUTS, Field, Layout
from coordinator_model.wire.message import ZERO_UUID, Message, UnknownTags

_ZEROS: Final[dict[str, Any]] = {"bool": False, "string": "", "bytes": b"", "uuid": ZERO_UUID}


def encode_request(
    body: Message, *, api_version: int, correlation_id: int, client_id: str | None = None, header_tags: UnknownTags = ()
) -> bytes:
    """Encode header and body of a request, without the 4-byte length that precedes them on the wire.

    :param header_tags: tagged fields for the header of flexible versions (request header v2).
    :raises ValueError: if ``body`` is no request, the version is unknown, or it cannot represent a field's value.
    """
    layout = _layout(body, "Request", api_version)
    out = bytearray(struct.pack(">hhi", layout.api_key, api_version, _int32(correlation_id)))
    _Writer(out, layout.name, compact=False).text("string", client_id, "client_id", nullable=True)
    _header_tags(out, layout, header_tags, allowed=api_version in layout.flexible)
    return _body(out, layout, api_version, body)


def encode_response(body: Message, *, api_version: int, correlation_id: int, header_tags: UnknownTags = ()) -> bytes:
    """Encode header and body of a response, without the 4-byte length that precedes them on the wire.

    :param header_tags: tagged fields for the header of flexible versions (response header v1), except those of ApiVersions.
    :raises ValueError: if ``body`` is no response, the version is unknown, or it cannot represent a field's value.
    """
    layout = _layout(body, "Response", api_version)
    out = bytearray(struct.pack(">i", _int32(correlation_id)))
    _header_tags(out, layout, header_tags, allowed=api_version in layout.flexible and layout.name != "ApiVersionsResponse")
    return _body(out, layout, api_version, body)


def encode_embedded(body: Any, api_version: int) -> bytes:
    """Encode a message embedded in another's bytes: its version (int16, unless it is a field itself), then its fields.

    :raises ValueError: as :func:`encode_request`.
    """
    layout = _layout(body, "", api_version)
    names_version = layout.structs[layout.name][0].name == "version"
    return _body(bytearray() if names_version else bytearray(struct.pack(">h", api_version)), layout, api_version, body)


def _int32(correlation_id: int) -> int:
    if not -(2**31) <= correlation_id < 2**31:
        raise ValueError(f"correlation id {correlation_id} is not within int32")
    return correlation_id


def _layout(body: Any, kind: str, version: int) -> Layout:
    name = type(body).__name__
    layout = LAYOUTS.get(name)
    if layout is None or not isinstance(body, getattr(messages, name)) or not name.endswith(kind):
        raise ValueError(f"{name} is not a {kind.lower() or 'n embedded'} message")
    if version not in layout.versions:
        raise ValueError(f"{name} has no version {version}, only {layout.versions.first} to {layout.versions.last}")
    return layout


def _header_tags(out: bytearray, layout: Layout, tags: UnknownTags, *, allowed: bool) -> None:
    if allowed:
        _Writer(out, layout.name, compact=True).tag_section(dict(tags))
    elif tags:
        raise ValueError(f"{layout.name}: the header of this version has no tagged fields")


def _body(out: bytearray, layout: Layout, version: int, body: Any) -> bytes:
    writer = _Writer(out, f"{layout.name} v{version}", compact=version in layout.flexible)
    writer.struct(layout, layout.name, version, body, "")
    return bytes(out)


class _Writer:
    """Appends encoded fields of one version to a buffer."""

    def __init__(self, out: bytearray, what: str, *, compact: bool) -> None:
        self.out = out
        self.what = what
        self.compact = compact

    def refuse(self, path: str, reason: str) -> ValueError:
        return ValueError(f"{self.what}: {path} {reason}")

    def struct(self, layout: Layout, name: str, version: int, value: Any, path: str) -> None:
        expected = getattr(messages, name)
        if not isinstance(value, expected):
            raise self.refuse(path, f"is {type(value).__name__}, not {name}")
        for field in layout.structs[name]:
            if version not in field.versions and not field.ignorable and getattr(value, field.name) != default_of(field):
                raise self.refuse(_join(path, field.name), "is not in this version and may not be ignored")
        for field in layout.fields(name, version):
            self.field(layout, field, version, getattr(value, field.name), _join(path, field.name))
        if self.compact:
            self.tags(layout, name, version, value, path)

    def field(self, layout: Layout, field: Field, version: int, value: Any, path: str) -> None:
        nullable = version in field.nullable
        if value is None and not nullable:
            raise self.refuse(path, "is null where this version does not allow it")
        if field.is_array:
            self.array(layout, field, version, value, path)
        elif field.type in layout.structs:
            if nullable:
                self.out.append(0xFF if value is None else 1)
            if value is not None:
                self.struct(layout, field.type, version, value, path)
        else:
            self.scalar(field.type, value, path, nullable=nullable)

    def array(self, layout: Layout, field: Field, version: int, value: Any, path: str) -> None:
        if value is None:
            self.length(None, "i")
            return
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise self.refuse(path, f"is {type(value).__name__}, not an array")
        self.length(len(value), "i")
        for index, item in enumerate(value):
            inner = f"{path}[{index}]"
            if field.item_type in layout.structs:
                self.struct(layout, field.item_type, version, item, inner)
            else:
                self.scalar(field.item_type, item, inner, nullable=False)

    def scalar(self, type_: str, value: Any, path: str, *, nullable: bool) -> None:
        if type_ in INTEGERS:
            try:
                self.out += struct.pack(">" + INTEGERS[type_], value)
            except struct.error:
                raise self.refuse(path, f"is {value!r}, which is no {type_}") from None
        elif type_ == "uuid":
            self.out += self.uuid(value, path)
        else:
            self.text(type_, value, path, nullable=nullable)

    def uuid(self, value: Any, path: str) -> bytes:
        try:
            raw = urlsafe_b64decode(value + "==")
        except (TypeError, ValueError):
            raw = b""
        if len(raw) != 16 or len(value) != 22:
            raise self.refuse(path, f"is {value!r}, not a UUID in Kafka's 22 characters")
        return raw

    def text(self, type_: str, value: Any, path: str, *, nullable: bool) -> None:
        if value is None and nullable:
            self.length(None, "h" if type_ == "string" else "i")
            return
        expected = str if type_ == "string" else bytes
        if not isinstance(value, expected):
            raise self.refuse(path, f"is {type(value).__name__}, not {expected.__name__}")
        try:
            raw = value.encode() if isinstance(value, str) else value
        except UnicodeEncodeError:
            raise self.refuse(path, "holds half of a surrogate pair, which UTF-8 cannot say") from None
        if type_ == "string" and len(raw) > 32767:
            raise self.refuse(path, f"takes {len(raw)} bytes, more than the 32767 of a string")
        self.length(len(raw), "h" if type_ == "string" else "i")
        self.out += raw

    def length(self, length: int | None, letter: str) -> None:
        """Append a length or count; None for null."""
        if self.compact:
            self.out += varint(0 if length is None else length + 1)
        else:
            self.out += struct.pack(">" + letter, -1 if length is None else length)

    def tags(self, layout: Layout, name: str, version: int, value: Any, path: str) -> None:
        tags: dict[int, bytes] = {}
        unknown: UnknownTags = value.unknown_tags
        for field in layout.tagged(name, version):
            held = getattr(value, field.name)
            if held != default_of(field):
                inner = _Writer(bytearray(), self.what, compact=True)
                inner.field(layout, field, version, held, _join(path, field.name))
                tags[field.tag or 0] = bytes(inner.out)
        for tag, raw in unknown:
            if tag in tags or any(field.tag == tag for field in layout.tagged(name, version)):
                raise self.refuse(_join(path, "unknown_tags"), f"holds tag {tag}, which is known or there twice")
            tags[tag] = raw
        self.tag_section(tags)

    def tag_section(self, tags: dict[int, bytes]) -> None:
        """Append the count, then the tags in ascending order."""
        self.out += varint(len(tags))
        for tag, raw in sorted(tags.items()):
            self.out += varint(tag) + varint(len(raw)) + raw


def varint(value: int) -> bytes:
    """Encode an unsigned varint (KIP-482)."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def default_of(field: Field) -> Any:
    """Return a field's default value."""
    if field.default is not None:
        return {"null": None, "true": True}[field.default] if field.default in ("null", "true") else int(field.default)
    if field.is_array:
        return ()
    if field.type in _ZEROS or field.type in INTEGERS:
        return _ZEROS.get(field.type, 0)
    return getattr(messages, field.type)()


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
