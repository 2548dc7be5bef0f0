"""Traces of Envoy's tap transport socket (``envoy.data.tap.v3.TraceWrapper``): JSON, binary messages one behind the other, or each with
its length before it. Both kinds of trace are read: streamed, a message for each event of a connection, and buffered, one for a connection.

A binary message becomes the dictionary that Envoy would have written as JSON, so what follows reads one form.

A sink's limit cuts an event (``truncated``). How much it cut follows from ``seq_num`` (Envoy 1.40 has it), which counts the bytes of a
streamed connection, both directions together; so does whether anything is missing at all, for ``truncated`` also stands where a write took
a part of Envoy's buffer. A buffered trace holds nothing more of a direction once it was cut.
"""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from streaming.mirror.pcap.files import CaptureError, Source
from streaming.mirror.pcap.sockets import UNKNOWN, SocketEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Sides = tuple[tuple[str, int], tuple[str, int]]

BEGINNING: Final = 48
"""Bytes by which a file of traces is recognised."""

CUT: Final = "Envoy's tap kept no more of it: raise max_buffered_rx_bytes and max_buffered_tx_bytes, or stream"

_LARGEST: Final = 1 << 30  # bytes of a message; a longer one is taken for damage
_BUFFERED, _STREAMED = "socket_buffered_trace", "socket_streamed_trace_segment"
_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5

_FIELDS: Final[dict[str, dict[int, tuple[str, str]]]] = {
    "wrapper": {3: (_BUFFERED, "trace"), 4: (_STREAMED, "segment")},
    "trace": {1: ("trace_id", ""), 2: ("connection", "connection"), 3: ("events", "event")},
    "segment": {1: ("trace_id", ""), 2: ("connection", "connection"), 3: ("event", "event"), 4: ("events", "events")},
    "events": {1: ("events", "event")},
    "event": {1: ("timestamp", "time"), 2: ("read", "io"), 3: ("write", "io"), 4: ("closed", "closed"), 6: ("seq_num", "")},
    "io": {1: ("data", "body")},
    "body": {1: ("as_bytes", ""), 3: ("truncated", "")},
    "closed": {},
    "time": {1: ("seconds", ""), 2: ("nanos", "")},
    "connection": {1: ("local_address", "address"), 2: ("remote_address", "address")},
    "address": {1: ("socket_address", "socket"), 2: ("pipe", "pipe")},
    "socket": {2: ("address", ""), 3: ("port_value", "")},
    "pipe": {1: ("path", "")},
}
"""Message → number of a field → its name, and the message in it: envoy/data/tap/v3 of Envoy 1.40."""

_HALF_CLOSES: Final = 2
"""Bytes that Envoy counts and neither side sent: one for the end of each direction."""

_OLDER_CONNECTION: Final = {2: ("local_address", "address"), 3: ("remote_address", "address")}


def is_traces(beginning: bytes) -> bool:
    """Whether a file that begins so (:data:`BEGINNING` bytes) holds Envoy's traces of sockets."""
    return _is_json(beginning) or _is_binary(beginning) or _is_delimited(beginning)


def traces(source: Source, damage: Callable[[str], None], name: str) -> Iterator[list[SocketEvent]]:
    """What happened on the connections of a file of traces, in the file's order, in lists as they come.

    :param damage: called with half a sentence that says why reading ended before the file did.
    :param name: distinguishes the traces of this file from those of others, whose numbers may be the same.
    """
    beginning = source.peek(BEGINNING)
    split = _json_messages if _is_json(beginning) else _delimited_messages if _is_delimited(beginning) else _binary_messages
    reader = _Traces(name)
    try:
        for wrapper in split(source):
            found = list(reader.events(wrapper))
            if found:
                yield found
    except CaptureError as error:
        damage(str(error))
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, binascii.Error):
        damage("is damaged: a trace that contradicts itself")


# --- messages out of bytes -------------------------------------------------------------------------------------------------------------


def _is_json(beginning: bytes) -> bool:
    return beginning.lstrip()[:1] == b"{" and (_BUFFERED.encode() in beginning or _STREAMED.encode() in beginning)


def _is_binary(beginning: bytes) -> bool:
    return beginning[:1] in {b"\x1a", b"\x22"} and _varint(beginning, 1) is not None


def _is_delimited(beginning: bytes) -> bool:
    outer = _varint(beginning, 0)
    if outer is None or beginning[outer[1] : outer[1] + 1] not in {b"\x1a", b"\x22"}:
        return False
    size, at = outer
    inner = _varint(beginning, at + 1)
    return inner is not None and inner[0] + inner[1] - at == size


def _json_messages(source: Source) -> Iterator[dict[str, Any]]:
    """A message ends with the brace at the beginning of a line, or with the line if it is all in one."""
    for text in _cut(source, _end_of_json):
        if text.strip():
            yield json.loads(text)


def _end_of_json(data: bytes) -> int:
    begin = len(data) - len(data.lstrip())
    end = data.find(b"\n", begin)
    if end < 0 or data[begin:end].strip() != b"{":
        return end
    closing = data.find(b"\n}", end)
    return closing + 2 if closing >= 0 else -1


def _delimited_messages(source: Source) -> Iterator[dict[str, Any]]:
    for message in _cut(source, lambda data: _end(data, 0)):
        begin = _varint(message, 0)
        assert begin is not None
        yield _read(message[begin[1] :], "wrapper")


def _binary_messages(source: Source) -> Iterator[dict[str, Any]]:
    for message in _cut(source, lambda data: _end(data, 1)):
        yield _read(message, "wrapper")


def _end(data: bytes, at: int) -> int:
    """Where a length at this place and what it counts end; -1 while that is not all there."""
    found = _varint(data, at)
    if found is None:
        return -1
    if found[0] > _LARGEST:
        raise CaptureError(f"is damaged: a trace of {found[0]:,} bytes")
    return sum(found) if sum(found) <= len(data) else -1


def _cut(source: Source, end_of: Callable[[bytes], int]) -> Iterator[bytes]:
    data = b""
    while more := source.more():
        data += more
        while (end := end_of(data)) >= 0:
            yield data[:end]
            data = data[end:].lstrip(b"\r\n") if data[:1] == b"{" else data[end:]
    if data.strip():
        raise CaptureError("ends in the middle of a trace")


# --- the wire format of protocol buffers -----------------------------------------------------------------------------------------------


def _varint(data: bytes, at: int) -> tuple[int, int] | None:
    """The number at this place and where it ends; None while it is not all there.

    :raises CaptureError: when it is longer than 64 bits.
    """
    value = shift = 0
    for end in range(at, len(data)):
        value |= (data[end] & 0x7F) << shift
        if data[end] < 0x80:
            return value, end + 1
        shift += 7
        if shift > 63:
            return None
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a message."""
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        if tag & 7 == _VARINT:
            value, at = _number(data, at)
            yield tag >> 3, value
            continue
        size = {_FIXED_64: 8, _FIXED_32: 4}.get(tag & 7)
        if tag & 7 == _LENGTH:
            size, at = _number(data, at)
        if size is None or at + size > len(data):
            raise ValueError
        yield tag >> 3, data[at : at + size]
        at += size


def _number(data: bytes, at: int) -> tuple[int, int]:
    found = _varint(data, at)
    if found is None:
        raise ValueError
    return found


def _read(data: bytes, message: str) -> dict[str, Any]:
    known, pairs = _FIELDS[message], list(_fields(data))
    if message == "connection" and any(number == 3 for number, _ in pairs):
        known = _OLDER_CONNECTION
    found: dict[str, Any] = {}
    for number, value in pairs:
        name, inside = known.get(number, ("", ""))
        content = _read(value, inside) if inside and isinstance(value, bytes) else value
        if name == "events" and inside == "event":
            found.setdefault(name, []).append(content)
        elif name:
            found[name] = content
    return found


# --- events out of messages ------------------------------------------------------------------------------------------------------------


class _Trace:
    """A connection whose trace goes on."""

    def __init__(self, name: str, sides: Sides, *, is_whole: bool) -> None:
        self.name = name
        self.sides = sides
        self.is_whole = is_whole
        self.counted = 0  #: bytes of both directions so far, by Envoy's count; 0 while it does not count
        self.side = 0  #: who sent the newest ones
        self.is_cut = False


class _Traces:
    """The connections of one file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: dict[int, _Trace] = {}

    def events(self, wrapper: dict[str, Any]) -> Iterator[SocketEvent]:
        """The events of a message."""
        if _BUFFERED in wrapper:
            yield from self._buffered(wrapper[_BUFFERED])
        elif _STREAMED in wrapper:
            yield from self._streamed(wrapper[_STREAMED])

    def _buffered(self, message: dict[str, Any]) -> Iterator[SocketEvent]:
        trace = self._trace(message, is_whole=True)
        happened = message.get("events", [])
        for event in happened:
            side, data, is_cut = _bytes_of(event)
            yield _event(trace, event, side=side, data=data, unreadable=CUT if is_cut else "")
            if is_cut:
                break
        if happened:
            yield _event(trace, happened[-1], is_closed=True)

    def _streamed(self, message: dict[str, Any]) -> Iterator[SocketEvent]:
        number = int(message.get("trace_id", 0))
        if "connection" in message:
            self._open[number] = self._trace(message, is_whole=True)
            return
        trace = self._open.get(number) or self._open.setdefault(number, self._trace(message, is_whole=False))
        for event in [message["event"]] if "event" in message else message.get("events", {}).get("events", []):
            yield from self._happened(trace, event)
            if "closed" in event:
                self._open.pop(number, None)

    def _happened(self, trace: _Trace, event: dict[str, Any]) -> Iterator[SocketEvent]:
        counted = int(event.get("seq_num", 0))
        side, data, is_cut = _bytes_of(event)
        missing = counted - trace.counted if trace.counted and counted else 0
        if trace.is_cut and missing > 0:
            yield _event(trace, event, side=trace.side, missing=missing)
        elif missing > _HALF_CLOSES:  # whole events are missing
            yield _event(trace, event, side=0, missing=UNKNOWN)
            yield _event(trace, event, side=1, missing=UNKNOWN)
        trace.counted, trace.side, trace.is_cut = counted + len(data) if counted else 0, side, is_cut
        unknown = UNKNOWN if is_cut and not counted else 0
        yield _event(trace, event, side=side, data=data, missing=unknown, is_closed="closed" in event)

    def _trace(self, message: dict[str, Any], *, is_whole: bool) -> _Trace:
        connection = message.get("connection", {})
        sides = _address(connection.get("remote_address", {})), _address(connection.get("local_address", {}))
        return _Trace(f"{self._name}-{int(message.get('trace_id', 0))}", sides, is_whole=is_whole)


def _event(trace: _Trace, event: dict[str, Any], *, side: int = 0, **what: Any) -> SocketEvent:
    return SocketEvent(_at_us(event["timestamp"]), trace.name, trace.sides, trace.is_whole, side, **what)


def _bytes_of(event: dict[str, Any]) -> tuple[int, bytes, bool]:
    """Who sent the bytes of an event, these, and whether some were not kept."""
    side = 1 if "write" in event else 0
    body = event.get("write" if side else "read", {}).get("data", {})
    if "as_string" in body:
        raise CaptureError(
            "has bytes as text, which spoils them: let Envoy write JSON_BODY_AS_BYTES or PROTO_BINARY_LENGTH_DELIMITED"
        )
    data = body.get("as_bytes", b"")
    return side, base64.b64decode(data, validate=True) if isinstance(data, str) else data, bool(body.get("truncated"))


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _at_us(timestamp: str | dict[str, int]) -> int:
    if isinstance(timestamp, str):
        return (datetime.fromisoformat(timestamp) - _EPOCH) // timedelta(microseconds=1)
    return timestamp.get("seconds", 0) * 1_000_000 + timestamp.get("nanos", 0) // 1000


def _address(address: dict[str, Any]) -> tuple[str, int]:
    """Address and port; without a port for a pipe, and empty for what Envoy does not know yet when a connection begins."""
    socket, pipe = address.get("socket_address", {}), address.get("pipe", {})
    return _text(socket.get("address") or pipe.get("path", "")), int(socket.get("port_value", 0))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
