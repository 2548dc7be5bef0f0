"""Cuts a byte stream into Kafka's size-prefixed frames without holding them back.

A capturer needs the first 8 to 12 bytes of most frames and the whole of a few. So the caller decides, frame by frame, how many
first bytes to keep, and only counts the rest: a 50 MB fetch response costs an addition per chunk.

Not every size prefix is followed by a Kafka header (SASL tokens before KIP-152 are not), and not every stream is Kafka (TLS). What
the bytes mean is therefore decided by the caller; this module only counts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE_PREFIX: Final = 4
REQUEST_PREFIX: Final = 8
"""API key, version and correlation id stand first in every request header, whatever its version."""
RESPONSE_PREFIX: Final = 4
"""The correlation id stands first in every response header."""

# A header that carries more tagged fields than this is not worth following to the acks behind it: none exists today.
_MOST_HEADER_TAGS: Final = 8


class UnreadableError(Exception):
    """The bytes of a connection cannot be followed any further; the message says why."""


class FrameReader:
    """Follows one direction of a connection.

    :param wanted: called with a frame's size and what is kept of it so far, first with nothing; returns how many of its first bytes
        to keep. It is called again when these have come, until it wants no more than there are. It may raise
        :class:`UnreadableError`.
    :param finished: called at the end of each frame with its size and its kept first bytes.
    """

    __slots__ = ("_finished", "_head", "_size", "_skip", "_want", "_wanted")

    def __init__(self, wanted: Callable[[int, bytes], int], finished: Callable[[int, bytes], None]) -> None:
        self._wanted = wanted
        self._finished = finished
        self._head = bytearray()
        self._size = -1  # of the frame being read; -1 while that itself is being read
        self._want = SIZE_PREFIX
        self._skip = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream, in whatever portions they come.

        :raises UnreadableError: from ``wanted``; nothing may be fed afterwards.
        """
        position, end = 0, len(data)
        while position < end:
            if self._skip:
                step = min(self._skip, end - position)
                position += step
                self._skip -= step
                if not self._skip:
                    self._finish()
                continue
            missing = self._want - len(self._head)
            part = data[position : position + missing]
            position += len(part)
            self._head += part
            if len(part) == missing:
                self._settle()

    def _settle(self) -> None:
        """All bytes asked for are there: ask for more, skip the rest of the frame, or finish it."""
        if self._size < 0:
            self._size = int.from_bytes(self._head, "big")
            self._head.clear()
        kept = len(self._head)
        want = min(self._wanted(self._size, bytes(self._head)), self._size)
        if want > kept:
            self._want = want
            return
        self._skip = self._size - kept
        if not self._skip:
            self._finish()

    def _finish(self) -> None:
        size, kept = self._size, bytes(self._head)
        self._head.clear()
        self._size = -1
        self._want = SIZE_PREFIX
        self._finished(size, kept)


def client_id(request: bytes) -> str | None:
    """The client id of a request header (v1 and v2: nullable, with a 2-byte length); None also where the bytes end sooner."""
    length = int.from_bytes(request[8:10], "big", signed=True)
    if len(request) < 10 or length < 0 or 10 + length > len(request):
        return None
    return request[10 : 10 + length].decode(errors="replace")


def bytes_up_to_acks(version: int, head: bytes) -> int:
    """Return how many first bytes of a Produce request hold everything up to its acks, as far as ``head`` shows.

    When that is no more than ``head`` has, acks are its last two. Schema: header v1, from version 9 on v2; then the transactional
    id from version 3 on, compact from 9 on; then acks.

    :raises UnreadableError: when the header carries so many tagged fields that it is not worth following.
    """
    walk = _Walk(head, REQUEST_PREFIX)
    try:
        walk.skip(max(walk.int16(), 0))
        if version >= 9:
            tags = walk.uvarint()
            if tags > _MOST_HEADER_TAGS:
                raise UnreadableError(f"{tags} tagged fields in a request header")
            for _ in range(tags):
                walk.uvarint()
                walk.skip(walk.uvarint())
            walk.skip(max(walk.uvarint() - 1, 0))
        elif version >= 3:
            walk.skip(max(walk.int16(), 0))
        walk.skip(2)
    except _ShortError as short:
        return short.needed
    return walk.position


class _ShortError(Exception):
    def __init__(self, needed: int) -> None:
        self.needed = needed


class _Walk:
    """Steps over the first fields of a frame of which only the beginning is there."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self.data):
            raise _ShortError(self.position)

    def int16(self) -> int:
        self.skip(2)
        return int.from_bytes(self.data[self.position - 2 : self.position], "big", signed=True)

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            self.skip(1)
            byte = self.data[self.position - 1]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise UnreadableError("a length in a request header has more than five bytes")
