"""Read the first bytes of a frame that cannot be decoded as a whole.

The bytes may be no such message at all. The results name the frame, in a finding and as the group that it belongs to; the model learns
nothing from them.
"""

from __future__ import annotations

import struct
from typing import Final

from coordinator_model.wire.layouts import INTEGERS, REQUESTS, RESPONSES, Field
from coordinator_model.wire.naming import GROUP_KEY_TYPE

_HEADER: Final = 8  #: API key, version and correlation id of a request
_NAMES_GROUPS: Final = frozenset({"group_id", "groups", "group_ids", "groups_names", "coordinator_keys"})


def leading_error_code(frame: bytes, api_key: int, api_version: int) -> int | None:
    """Return the error code of a response if only fields of fixed size precede it, else None."""
    layout = RESPONSES.get(api_key)
    if layout is None or api_version not in layout.versions:
        return None
    at = 4  # after the correlation id
    if api_version in layout.flexible:
        if frame[at : at + 1] != b"\0":
            return None  # no broker writes tagged fields into the header
        at += 1
    for field in layout.fields(layout.name, api_version):
        letter = INTEGERS.get(field.type)
        size = struct.calcsize(f">{letter}") if letter else 0
        if not letter or len(frame) < at + size:
            return None
        if field.name == "error_code":
            return int(struct.unpack_from(f">{letter}", frame, at)[0])
        at += size
    return None


def names_correlation(frame: bytes, correlation_id: int) -> bool:
    """Return True if a response begins with this correlation id."""
    return frame[:4] == correlation_id.to_bytes(4, "big", signed=True)


def names_request(frame: bytes, api_key: int, api_version: int, correlation_id: int) -> bool:
    """Return True if a request begins with this API, version and correlation id."""
    return frame[:8] == struct.pack(">hhi", api_key, api_version, correlation_id)


def leading_group(frame: bytes, api_key: int, api_version: int) -> str | None:
    """Return the group that the first bytes of a request name, None if they do not reach so far or it names several."""
    layout = REQUESTS.get(api_key)
    if layout is None or api_version not in layout.versions:
        return None
    walk = _Walk(frame, flexible=api_version in layout.flexible)
    try:
        walk.skip_header()
        for field in layout.fields(layout.name, api_version):
            if field.name in _NAMES_GROUPS:
                return walk.only_name(field)
            value = walk.value(field)
            if field.name == "key_type" and value != GROUP_KEY_TYPE:
                return None
    except (struct.error, IndexError, ValueError):
        return None
    return None


class _Walk:
    """Steps over the first fields of a request. Raises ``struct.error``, ``IndexError`` or ``ValueError`` where it cannot go on."""

    def __init__(self, frame: bytes, *, flexible: bool) -> None:
        self._frame = frame
        self._flexible = flexible
        self._at = _HEADER

    def skip_header(self) -> None:
        (length,) = self._unpack("h")  # of the client id, which is never compact
        self._take(max(length, 0))
        for _ in range(self._uvarint() if self._flexible else 0):
            self._uvarint()
            self._take(self._uvarint())

    def value(self, field: Field) -> int | str:
        """Return a field that is an integer or a string."""
        letter = INTEGERS.get(field.type)
        if letter is not None:
            return int(self._unpack(letter)[0])
        if field.type != "string":
            raise ValueError(field.type)
        length = self._uvarint() - 1 if self._flexible else self._unpack("h")[0]
        return self._take(max(length, 0)).decode()

    def only_name(self, field: Field) -> str | None:
        """Return the string that the field is, or that the only element of its array begins with."""
        if field.is_array and (self._uvarint() - 1 if self._flexible else self._unpack("i")[0]) != 1:
            return None
        return str(self.value(field._replace(type="string"))) or None

    def _unpack(self, letter: str) -> tuple[int, ...]:
        return struct.unpack(f">{letter}", self._take(struct.calcsize(f">{letter}")))

    def _take(self, count: int) -> bytes:
        begin, self._at = self._at, self._at + count
        if self._at > len(self._frame):
            raise IndexError(count)
        return self._frame[begin : self._at]

    def _uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError(value)
