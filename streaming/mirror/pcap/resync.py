"""Finds where a frame begins in the middle of a connection: after bytes that were not captured, or when the capture began late.

Nothing in Kafka's framing marks a beginning. A request is recognised by its header, and believed when its body uses the frame up to its
last byte, or, where the body's layout is not known here, when another request follows or the frame ends with the segment. A response has
nothing but a correlation id, so only answers to requests that were seen are looked for.

Whatever is taken for a beginning decides how everything behind it is read. Better wait for the next frame than believe a poor
candidate: of what passes unread, the caller says so.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.wire import DecodeError, decode, supported_versions
from coordinator_model.wire.record import MIRRORED_API_KEYS
from streaming.mirror.conversation import FRAME_CAP, LARGEST_REQUEST

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_HELD_AT_MOST: Final = 1 << 20  # bytes kept of candidates whose end has not come yet

# Size below 256 MiB, API key below 128, version below 32, client id null or shorter than 1024: what a request's header looks like.
_LOOKS_LIKE_REQUEST: Final = re.compile(
    rb"(?=[\x00-\x0f][\s\S]{3}\x00[\x00-\x7f]\x00[\x00-\x1f][\s\S]{4}(?:\xff\xff|[\x00-\x03][\s\S]))"
)
_HEADER: Final = struct.Struct(">ihhih")
HEADER: Final = _HEADER.size
"""Bytes by which the beginning of a connection is judged: a request's first fields."""
_LONGEST_HEADER: Final = _HEADER.size + 1023

_NO, _PERHAPS, _YES = range(3)


def may_begin(data: bytes) -> bool:
    """Whether the first bytes of a connection can be those of a Kafka request; fewer than 14 bytes always can."""
    return len(data) < _HEADER.size or _client_id(data, 0) is not None


class AwaitedResponse(NamedTuple):
    """A request whose response may be recognised."""

    correlation_id: int
    api_key: int
    api_version: int
    is_mirrored: bool


class _Search:
    """Collects one direction's bytes until a frame's beginning is found among them."""

    def __init__(self) -> None:
        self._data = b""
        self._segments: set[int] = set()  # where they begin in the data
        self._passed_over = 0

    def missed(self, count: int) -> None:
        """The next bytes were not captured."""
        self._passed_over += count + len(self._data)
        self._keep_from(len(self._data))

    def passed_over(self) -> int:
        """How many bytes have been given up since the last call, those before the beginning included."""
        count, self._passed_over = self._passed_over, 0
        return count

    def _cut_frame(self, missing: int) -> int | None:
        """Where a frame begins that is the newest segment, so far as that was captured: its length ends with the missing bytes."""
        begin = max(self._segments, default=-1)
        if begin < 0 or len(self._data) - begin < _HEADER.size:
            return None
        size = int.from_bytes(self._data[begin : begin + 4], "big")
        return begin if begin + 4 + size == len(self._data) + missing else None

    def _add(self, data: bytes) -> None:
        self._segments.add(len(self._data))
        self._data += data

    def _found_at(self, position: int) -> bytes:
        self._passed_over += position
        return self._data[position:]

    def _keep_from(self, position: int) -> None:
        self._data = self._data[position:]
        self._segments = {begins - position for begins in self._segments if begins >= position}

    def _give_up_to(self, position: int) -> None:
        if len(self._data) - position > _HELD_AT_MOST:
            position = len(self._data)
        self._passed_over += position
        self._keep_from(position)


class RequestSearch(_Search):
    """Looks for the first whole request, or one that a snap length has cut."""

    def __init__(self) -> None:
        super().__init__()
        self._scanned = 0
        self._open: list[int] = []  # candidates that need more bytes

    def feed(self, data: bytes) -> bytes | None:
        """Take the next bytes; return those from the beginning of a request on once one is found."""
        self._add(data)
        candidates = self._open + [found.start() for found in _LOOKS_LIKE_REQUEST.finditer(self._data, self._scanned)]
        self._open = []
        for position in candidates:
            verdict = self._verdict(position)
            if verdict == _YES:
                return self._found_at(position)
            if verdict == _PERHAPS:
                self._open.append(position)
        self._scanned = max(len(self._data) - _HEADER.size + 1, self._scanned)
        self._give_up_to(self._open[0] if self._open else self._scanned)
        return None

    def cut(self, missing: int) -> bytes | None:
        """Take note that the next bytes were not captured; return those of the request that they end, if it is one of a group."""
        position = self._cut_frame(missing)
        if position is not None and _client_id(self._data, position):
            _, key, version, _, _ = _HEADER.unpack_from(self._data, position)
            if key in MIRRORED_API_KEYS and version in supported_versions(key):
                return self._found_at(position)
        self.missed(missing)
        return None

    def _keep_from(self, position: int) -> None:
        super()._keep_from(position)
        self._scanned = max(self._scanned - position, 0)
        self._open = [candidate - position for candidate in self._open if candidate >= position]

    def _verdict(self, position: int) -> int:
        data = self._data
        client_id = _client_id(data, position)
        if client_id is None:
            return _NO
        size, key, version, _, _ = _HEADER.unpack_from(data, position)
        end = position + 4 + size
        is_mirrored = key in MIRRORED_API_KEYS
        if is_mirrored and (version not in supported_versions(key) or size > FRAME_CAP):
            return _NO
        if not is_mirrored and not client_id:
            return _NO  # without a name it looks like many a response
        begins_segment = position in self._segments
        if end > len(data):
            return _YES if begins_segment and not is_mirrored else _PERHAPS
        if is_mirrored:
            return _YES if _decodes(data[position + 4 : end], request=True, api_key=key, api_version=version) else _NO
        if end == len(data):
            return _YES if begins_segment else _PERHAPS
        if end + _LONGEST_HEADER > len(data) and len(data) < end + _HEADER.size + len(client_id):
            return _PERHAPS
        return _YES if _client_id(data, end) == client_id else _NO


class ResponseSearch(_Search):
    """Looks for the first response to a request that was seen."""

    def feed(self, data: bytes, awaited: Collection[AwaitedResponse]) -> bytes | None:
        """Take the next bytes; return those from the beginning of a response on once one is found.

        :param awaited: the requests that are not answered yet, oldest first.
        """
        self._add(data)
        perhaps = len(self._data) - 7 if awaited else len(self._data)
        for position, asked in sorted(self._candidates(awaited)):
            verdict = self._verdict(position, asked, awaited)
            if verdict == _YES:
                return self._found_at(position)
            if verdict == _PERHAPS:
                perhaps = min(perhaps, position)
        self._give_up_to(max(perhaps, 0))
        return None

    def cut(self, missing: int, awaited: Collection[AwaitedResponse]) -> bytes | None:
        """Take note that the next bytes were not captured; return those of the awaited response that they end."""
        position = self._cut_frame(missing)
        if position is not None:
            correlation_id = int.from_bytes(self._data[position + 4 : position + 8], "big", signed=True)
            if any(asked.correlation_id == correlation_id for asked in awaited):
                return self._found_at(position)
        self.missed(missing)
        return None

    def _candidates(self, awaited: Iterable[AwaitedResponse]) -> Iterator[tuple[int, AwaitedResponse]]:
        for asked in awaited:
            pattern = asked.correlation_id.to_bytes(4, "big", signed=True)
            found = self._data.find(pattern, 4)
            while found >= 0:
                yield found - 4, asked
                found = self._data.find(pattern, found + 1)

    def _verdict(self, position: int, asked: AwaitedResponse, awaited: Iterable[AwaitedResponse]) -> int:
        data = self._data
        size = int.from_bytes(data[position : position + 4], "big")
        end = position + 4 + size
        if not 4 <= size <= (FRAME_CAP if asked.is_mirrored else LARGEST_REQUEST):
            return _NO
        begins_segment = position in self._segments
        if end > len(data):
            # Zeros are everywhere: a correlation id of 0 says nothing.
            return _YES if begins_segment and not asked.is_mirrored and asked.correlation_id else _PERHAPS
        if asked.is_mirrored:
            frame = data[position + 4 : end]
            return _YES if _decodes(frame, request=False, api_key=asked.api_key, api_version=asked.api_version) else _NO
        if end == len(data):
            return _YES if begins_segment else _PERHAPS
        if end + 8 > len(data):
            return _PERHAPS
        following = int.from_bytes(data[end + 4 : end + 8], "big", signed=True)
        return _YES if any(following == other.correlation_id for other in awaited) else _NO


def _client_id(data: bytes, position: int) -> bytes | None:
    """The client id in what may be a request's size and header, as far as it is there; None when it cannot be one."""
    if position + _HEADER.size > len(data):
        return None
    size, key, version, _, length = _HEADER.unpack_from(data, position)
    if not (_HEADER.size - 4 + max(length, 0) <= size <= LARGEST_REQUEST and 0 <= key < 128 and 0 <= version < 32 and length >= -1):
        return None
    begin = position + _HEADER.size
    client_id = data[begin : begin + max(length, 0)]
    try:
        text = client_id.decode()
    except UnicodeDecodeError:
        return None
    return client_id if text.isprintable() else None


def _decodes(frame: bytes, *, request: bool, api_key: int, api_version: int) -> bool:
    try:
        decode(frame, request=request, api_key=api_key, api_version=api_version)
    except DecodeError:
        return False
    return True
