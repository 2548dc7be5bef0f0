"""Fuzz target. Its invariant: any bytes, taken for any message, are either read whole, so that encoding the result and reading that again
gives the same result, or refused with a DecodeError.

    python tests/coordinator_model/wire/fuzz_decode.py -runs=1000000

needs atheris, which is no dependency of this project; without it the same check runs under Hypothesis in the test suite.
"""

from __future__ import annotations

import contextlib
import struct
import sys

from coordinator_model.wire import (
    DecodeError,
    decode,
    decode_assignment,
    decode_request_header,
    decode_subscription,
    encode_assignment,
    encode_request,
    encode_response,
    encode_subscription,
)
from coordinator_model.wire.decoder import exact_decoder
from coordinator_model.wire.layouts import REQUESTS, RESPONSES, Layout

TARGETS: list[tuple[Layout, int]] = [
    (layout, version)
    for layouts in (REQUESTS, RESPONSES)
    for layout in layouts.values()
    for version in range(layout.versions.first, layout.versions.last + 1)
]


def check_message(layout: Layout, version: int, raw: bytes) -> bool:
    """The invariant for one message and version; whether the bytes were read."""
    key = layout.api_key
    assert key is not None
    if layout.is_request:
        raw = struct.pack(">hh", key, version) + raw  # else nearly every input would end at the first four bytes
    try:
        header, body = decode(raw, request=layout.is_request, api_key=key, api_version=version)
    except DecodeError:
        return False
    version = header.api_version  # 0 for an ApiVersions answer with error 35
    assert exact_decoder(layout.name, version)(raw).body == body
    again = _encode(layout, version, header, body)
    assert decode(again, request=layout.is_request, api_key=key, api_version=version).body == body
    return True


def _encode(layout: Layout, version: int, header, body) -> bytes:
    if layout.is_request:
        return encode_request(
            body,
            api_version=version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
            header_tags=header.unknown_tags,
        )
    return encode_response(body, api_version=version, correlation_id=header.correlation_id, header_tags=header.unknown_tags)


def check_embedded(raw: bytes) -> None:
    """The invariant for what travels in a message's bytes."""
    for decode_one, encode_one in ((decode_subscription, encode_subscription), (decode_assignment, encode_assignment)):
        try:
            read = decode_one(raw)
        except DecodeError:
            continue
        version = min(int.from_bytes(raw[:2], "big"), 3)
        assert decode_one(encode_one(read, version)) == read


def check_any_bytes(raw: bytes) -> None:
    """The invariant for every message and version at once."""
    for layout, version in TARGETS:
        check_message(layout, version, raw)
    check_embedded(raw)
    with contextlib.suppress(DecodeError):
        decode_request_header(raw)


def fuzz_one(raw: bytes) -> None:
    """The first byte chooses message and version, so that the fuzzer's coverage feedback has something to learn from."""
    if not raw:
        return
    if raw[0] >= len(TARGETS):
        check_embedded(raw[1:])
    else:
        check_message(*TARGETS[raw[0]], raw[1:])


if __name__ == "__main__":
    import atheris

    atheris.instrument_all()
    atheris.Setup(sys.argv, fuzz_one)
    atheris.Fuzz()
