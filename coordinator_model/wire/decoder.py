"""Decode frames: find the compiled decoder, compile it on first use, convert every failure to a :class:`DecodeError`.

A broker that does not support the version of an ApiVersions request responds in version 0, which only error 35 shows. Bytes behind a
message are refused, but for those that old releases of librdkafka send behind an ApiVersions request.
"""

from __future__ import annotations

import functools
import struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from coordinator_model.wire.compiler import Decoder, compile_request, compile_response, explain
from coordinator_model.wire.errors import DecodeError
from coordinator_model.wire.layouts import LAYOUTS, REQUESTS, RESPONSES, Layout
from coordinator_model.wire.message import Frame, Header

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

API_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {key: layout.name.removesuffix("Request") for key, layout in REQUESTS.items()}
)
"""Names of the APIs that :func:`decode` knows, by API key."""

_API_VERSIONS: Final = 18
_API_VERSIONS_RESPONSE: Final = RESPONSES[_API_VERSIONS]
_UNSUPPORTED_VERSION: Final = 35
_API_VERSIONS_REQUEST: Final = REQUESTS[_API_VERSIONS]
_LAST_EMPTY_VERSION: Final = 2
_NO_KEYS: Final = bytes(4)
"""An array of no API keys: old releases of librdkafka send it, though these versions of ApiVersions have no body. Brokers ignore it."""
_REQUEST_HEADER: Final = struct.Struct(">hhih")


def decode(frame: bytes | memoryview, *, request: bool, api_key: int, api_version: int) -> Frame:
    """Decode one frame: header and body, without the 4-byte length.

    :param request: True for a request. For a response, key and version are those of its request.
    :raises DecodeError: if API or version is unknown, or the bytes are not exactly one such message. No bytes raise anything else; time
        and memory are proportional to the frame's size.
    """
    try:
        return (_REQUEST_DECODERS if request else _RESPONSE_DECODERS)[api_key][api_version](frame)  # type: ignore[arg-type, no-any-return]
    except Exception:  # whatever generated code raises on bad bytes
        return _second_look(frame, request, api_key, api_version)


def supported_versions(api_key: int) -> range:
    """Return the versions of an API that :func:`decode` knows; an empty range for an unknown API."""
    layout = REQUESTS.get(api_key)
    return range(layout.versions.first, layout.versions.last + 1) if layout else range(0)


def decode_request_header(frame: bytes | memoryview) -> Header:
    """Decode the header of a request of any API, from the frame's first bytes. Bytes after the client id are ignored.

    :raises DecodeError: if it is no request header, or the bytes end within it (``reason`` is then "runs past the end").
    """
    try:
        api_key, api_version, correlation_id, length = _REQUEST_HEADER.unpack_from(frame)
    except struct.error:
        raise DecodeError("RequestHeader", None, "", len(frame), "runs past the end") from None
    name = "RequestHeader"
    if not 0 <= api_key <= _LARGEST_KEY:
        raise DecodeError(name, None, "api_key", 0, f"is {api_key}")
    if not 0 <= api_version <= _LARGEST_VERSION:
        raise DecodeError(name, None, "api_version", 2, f"is {api_version}")
    if length < -1:
        raise DecodeError(name, None, "client_id", 8, "has a negative length")
    raw = bytes(frame[10 : 10 + max(length, 0)])
    if len(raw) < length:
        raise DecodeError(name, None, "client_id", 8, "runs past the end")
    try:
        client_id = None if length < 0 else raw.decode()
    except UnicodeDecodeError:
        raise DecodeError(name, None, "client_id", 8, "is not UTF-8") from None
    return Header(api_key, api_version, correlation_id, client_id)


# Kafka 4.4 has keys below 100 and versions below 20. These limits leave room, and distinguish a request from other bytes.
_LARGEST_KEY: Final = 1023
_LARGEST_VERSION: Final = 255


def _second_look(frame: bytes | memoryview, request: bool, api_key: int, api_version: int) -> Frame:  # noqa: FBT001
    layout = (REQUESTS if request else RESPONSES).get(api_key)
    if type(frame) is not bytes:
        return decode(bytes(frame), request=request, api_key=api_key, api_version=api_version)
    if layout is _API_VERSIONS_RESPONSE and api_version != 0 and frame[4:6] == _UNSUPPORTED_VERSION.to_bytes(2, "big"):
        return decode(frame, request=False, api_key=_API_VERSIONS, api_version=0)
    if layout is _API_VERSIONS_REQUEST and api_version <= _LAST_EMPTY_VERSION and frame.endswith(_NO_KEYS):
        frame = frame[: -len(_NO_KEYS)]
    if layout is None:
        raise DecodeError(f"API {api_key}", api_version, "", 0, "is not an API of the group protocol") from None
    if api_version not in layout.versions:
        known = f"{layout.versions.first} to {layout.versions.last}"
        raise DecodeError(layout.name, api_version, "", 0, f"is not a known version, {known} are") from None
    try:
        return exact_decoder(layout.name, api_version)(frame)  # type: ignore[no-any-return]
    except Exception as found:  # whatever generated code raises on bad bytes
        raise explain(found, frame) from None


_Compiler: TypeAlias = "Callable[[Layout, int], Decoder]"
_compile_request: Final = functools.partial(compile_request, exact=False)
_compile_response: Final = functools.partial(compile_response, exact=False)


@functools.cache
def exact_decoder(name: str, api_version: int) -> Decoder:
    """Return the decoder that reports exactly what is wrong with a frame. :func:`decode` uses it for the frames that it refuses."""
    layout = LAYOUTS[name]
    compile_ = compile_request if layout.is_request else compile_response
    return compile_(layout, api_version, exact=True)


def _on_first_use(layout: Layout, version: int, table: dict[int, Decoder], compile_: _Compiler) -> Decoder:
    def first(frame: bytes) -> Frame:
        table[version] = decoder = compile_(layout, version)
        return decoder(frame)  # type: ignore[no-any-return]

    return first


def _decoders(layouts: Mapping[int, Layout], compile_: _Compiler) -> dict[int, dict[int, Decoder]]:
    tables: dict[int, dict[int, Decoder]] = {}
    for key, layout in layouts.items():
        table = tables[key] = {}
        for version in range(layout.versions.first, layout.versions.last + 1):
            table[version] = _on_first_use(layout, version, table, compile_)
    return tables


_REQUEST_DECODERS: Final = _decoders(REQUESTS, _compile_request)
_RESPONSE_DECODERS: Final = _decoders(RESPONSES, _compile_response)
