"""Names of topics by their ids, read from the Metadata responses that pass by.

Assignments and newer commits name topics by id alone. A capturer keeps the names that it has seen, and writes each pair once, as a fact:
nothing else of a Metadata response is kept.

The trap: a Metadata response lists every partition, and may be megabytes long. Only small ones are read, which are those of consumers
that ask for their own topics, and one that was read before is not read again.
"""

from __future__ import annotations

import base64
from typing import Final
from zlib import crc32

METADATA: Final = 3
IDS_SINCE: Final = 10
"""The first version of the Metadata response with topic ids."""

READ_AT_MOST: Final = 64 * 1024
"""Bytes of a Metadata response that is read: some 2,000 partitions, a few milliseconds."""

_KNOWN_AT_MOST: Final = 10_000
_SEEN_AT_MOST: Final = 1_024
_NO_ID: Final = bytes(16)


class KnownTopics:
    """The names of a cluster's topics, as far as they were seen."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._seen: dict[int, None] = {}  # checksums of responses

    def read(self, frame: bytes, api_version: int) -> dict[str, str]:
        """Return id → name of the topics in a Metadata response, with its header, that were not known yet."""
        checksum = crc32(frame[4:])
        if checksum in self._seen:
            return {}
        self._seen[checksum] = None
        if len(self._seen) > _SEEN_AT_MOST:
            del self._seen[next(iter(self._seen))]
        try:
            found = topics_in(frame, api_version)
        except (IndexError, UnicodeDecodeError):
            return {}
        new = {id_: name for id_, name in found.items() if self._names.get(id_) != name}
        self._names.update(new)
        while len(self._names) > _KNOWN_AT_MOST:
            del self._names[next(iter(self._names))]
        return new


def topics_in(frame: bytes, api_version: int) -> dict[str, str]:
    """Return id → name of the topics in a Metadata response of version 10 or later, with its header.

    :raises IndexError: if the frame ends too soon.
    """
    if api_version < IDS_SINCE:
        return {}
    walk = _Walk(frame)
    walk.skip(4)  # correlation id
    walk.tags()
    walk.skip(4)  # throttle time
    for _ in range(walk.length()):  # brokers
        walk.skip(4)
        walk.text()
        walk.skip(4)
        walk.text()
        walk.tags()
    walk.text()  # cluster id
    walk.skip(4)  # controller
    found = {}
    for _ in range(walk.length()):
        walk.skip(2)  # error
        name = walk.text()
        id_ = walk.take(16)
        walk.skip(1)  # internal
        for _ in range(walk.length()):  # partitions
            walk.skip(14)  # error, index, leader, leader's epoch
            for _ in range(3):  # replicas, those in sync, those offline
                walk.skip(4 * walk.length())
            walk.tags()
        walk.skip(4)  # authorized operations
        walk.tags()
        if name and id_ != _NO_ID:
            found[base64.urlsafe_b64encode(id_).rstrip(b"=").decode()] = name
    return found


class _Walk:
    """Steps through a message of a flexible version."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self.data):
            raise IndexError

    def take(self, count: int) -> bytes:
        self.skip(count)
        return self.data[self.position - count : self.position]

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise IndexError

    def length(self) -> int:
        """Return the length of a compact array or text, 0 for null."""
        return max(self.uvarint() - 1, 0)

    def text(self) -> str:
        return self.take(self.length()).decode()

    def tags(self) -> None:
        for _ in range(self.uvarint()):
            self.uvarint()
            self.skip(self.uvarint())
