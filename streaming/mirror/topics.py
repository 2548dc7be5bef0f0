"""What Metadata responses that pass by say of topics: their names by id, and how many partitions they have.

Assignments and newer commits name topics by id alone, and no frame of a group says how many partitions there are to assign. A capturer
keeps what it has seen, and writes it when it is news, as a fact: nothing else of a Metadata response is kept.

The trap: a Metadata response lists every partition, and may be megabytes long. Only small ones are read, which are those of consumers
that ask for their own topics, and one that was read before is not read again.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final, NamedTuple
from zlib import crc32

METADATA: Final = 3

READ_AT_MOST: Final = 64 * 1024
"""Bytes of a Metadata response that is read: some 2,000 partitions, a few milliseconds."""

_KNOWN_AT_MOST: Final = 10_000
_SEEN_AT_MOST: Final = 1_024
_NO_ID: Final = bytes(16)
_NO_ERROR: Final = 0
_UNKNOWN_TOPIC_OR_PARTITION: Final = 3


class Topic(NamedTuple):
    """A topic in a Metadata response."""

    name: str
    id: str  #: as Kafka writes it; "" before version 10
    partitions: int  #: 0 if the broker says that there is no such topic


class KnownTopics:
    """A cluster's topics, as far as they were seen."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._partitions: dict[str, tuple[str, int]] = {}  # name → id, number of partitions
        self._seen: dict[int, None] = {}  # checksums of responses

    def read(self, frame: bytes, api_version: int) -> dict[str, str | int]:
        """Return what a Metadata response, with its header, says that was not known yet: see :meth:`learn`."""
        checksum = crc32(frame[4:])
        if checksum in self._seen:
            return {}
        self._seen[checksum] = None
        _limit(self._seen, _SEEN_AT_MOST)
        try:
            return self.learn(topics_in(frame, api_version))
        except (IndexError, UnicodeDecodeError):
            return {}

    def learn(self, topics: Iterable[Topic]) -> dict[str, str | int]:
        """Return what was not known yet: id → name, and name → number of partitions.

        A topic never loses partitions: with the same id, the higher number is the newer one, whichever broker says it last.
        """
        news: dict[str, str | int] = {}
        for topic in topics:
            if topic.id and self._names.get(topic.id) != topic.name:
                news[topic.id] = self._names[topic.id] = topic.name
            known_id, known = self._partitions.get(topic.name, ("", 0))
            is_older = bool(topic.id) and topic.id == known_id and topic.partitions < known
            if topic.partitions != known and not is_older:
                news[topic.name] = topic.partitions
                self._partitions[topic.name] = topic.id, topic.partitions
        _limit(self._names, _KNOWN_AT_MOST)
        _limit(self._partitions, _KNOWN_AT_MOST)
        return news


def _limit(kept: dict[str, str] | dict[str, tuple[str, int]] | dict[int, None], most: int) -> None:
    while len(kept) > most:
        del kept[next(iter(kept))]  # type: ignore[arg-type]


def topic_told(error_code: int, name: str, id_: str, partitions: int) -> Topic | None:
    """Return the topic of an entry in a Metadata response, None if the entry tells neither of one nor that there is none."""
    is_described = error_code == _NO_ERROR and partitions > 0
    is_missing = error_code == _UNKNOWN_TOPIC_OR_PARTITION
    return Topic(name, id_, partitions) if name and (is_described or is_missing) else None


def topics_in(frame: bytes, api_version: int) -> list[Topic]:
    """Return the topics in a Metadata response with its header: those that it describes, and those that do not exist.

    :raises IndexError: if the frame ends too soon.
    """
    walk = _Walk(frame, flexible=api_version >= 9)
    walk.skip(4)  # correlation id
    walk.tags()
    walk.skip(4 if api_version >= 3 else 0)  # throttle time
    for _ in range(walk.length()):  # brokers
        walk.skip(4)
        walk.text()
        walk.skip(4)
        if api_version >= 1:
            walk.text()  # rack
        walk.tags()
    if api_version >= 2:
        walk.text()  # cluster id
    walk.skip(4 if api_version >= 1 else 0)  # controller
    listed = [_topic(walk, api_version) for _ in range(walk.length())]
    return [topic for topic in listed if topic is not None]


def _topic(walk: _Walk, api_version: int) -> Topic | None:
    error_code = int.from_bytes(walk.take(2), "big", signed=True)
    name = walk.text()
    id_ = walk.take(16) if api_version >= 10 else _NO_ID
    walk.skip(1 if api_version >= 1 else 0)  # internal
    partitions = walk.length()
    for _ in range(partitions):
        walk.skip(14 if api_version >= 7 else 10)  # error, index, leader, leader's epoch
        for _ in range(3 if api_version >= 5 else 2):  # replicas, those in sync, those offline
            walk.skip(4 * walk.length())
        walk.tags()
    walk.skip(4 if api_version >= 8 else 0)  # authorized operations
    walk.tags()
    kafka_id = "" if id_ == _NO_ID else base64.urlsafe_b64encode(id_).rstrip(b"=").decode()
    return topic_told(error_code, name, kafka_id, partitions)


class _Walk:
    """Steps through a message. Flexible versions have compact lengths and tagged fields."""

    __slots__ = ("data", "flexible", "position")

    def __init__(self, data: bytes, *, flexible: bool) -> None:
        self.data = data
        self.flexible = flexible
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

    def length(self, width: int = 4) -> int:
        """Return the length of an array, or of a text, whose length has two bytes before flexible versions; 0 for null."""
        return max(self.uvarint() - 1 if self.flexible else int.from_bytes(self.take(width), "big", signed=True), 0)

    def text(self) -> str:
        return self.take(self.length(2)).decode()

    def tags(self) -> None:
        for _ in range(self.uvarint() if self.flexible else 0):
            self.uvarint()
            self.skip(self.uvarint())
