"""Read the first bytes of a frame that cannot be decoded as a whole.

The bytes may be no such message at all. The results are for the text of a finding, never for the model.
"""

from __future__ import annotations

import struct

from coordinator_model.wire.layouts import INTEGERS, RESPONSES


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
