"""What Metadata responses that pass by say of topics: their names by id, and how many partitions they have.

Assignments and newer commits name topics by id alone, and no frame of a group says how many partitions there are to assign. A capturer
keeps what it has seen, and writes it when it is news, as a fact: nothing else of a Metadata response is kept.

A Metadata response lists every partition, and may be megabytes long. Only small ones are read, which are those of consumers that ask for
their own topics, and one that was read before is not read again.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple
from zlib import crc32

from streaming.mirror.rewriting.walk import LAYOUTS, fixed_size

METADATA: Final = 3
_LAYOUT: Final = LAYOUTS[METADATA]

READ_AT_MOST: Final = 64 * 1024
"""Bytes of a Metadata response that is read: some 2,000 partitions, ten to twenty milliseconds."""

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


Client = tuple[str | None, str]
"""Client id and address."""


class KnownTopics:
    """A cluster's topics, as far as they were seen."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._partitions: dict[str, tuple[str, int]] = {}  # name → id, number of partitions
        self._seen: dict[int, tuple[str, ...]] = {}  # checksum of a response → topics that do not exist
        self._missed: dict[tuple[Client, str], None] = {}  # client, and a topic that it asked for in vain

    def read(self, frame: bytes, api_version: int, client: Client = (None, "")) -> dict[str, str | int]:
        """Return what a Metadata response, with its header, says that was not known yet: see :meth:`learn`.

        That a topic does not exist is news for each client that asks for it.
        """
        checksum = crc32(frame[4:])
        news: dict[str, str | int] = {}
        missing = self._seen.get(checksum)
        if missing is None:
            try:
                found = topics_in(frame, api_version)
            except (IndexError, UnicodeDecodeError):
                found = []
            news = self.learn(found)
            missing = self._seen[checksum] = tuple(topic.name for topic in found if not topic.partitions)
            _limit(self._seen, _SEEN_AT_MOST)
        for name in missing:
            if (client, name) not in self._missed:
                self._missed[client, name] = None
                news[name] = 0
        _limit(self._missed, _SEEN_AT_MOST)
        return news

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


def _limit(kept: dict[Any, Any], most: int) -> None:
    while len(kept) > most:
        del kept[next(iter(kept))]


def topic_of(error_code: int, name: str, id_: str, partitions: int) -> Topic | None:
    """Return the topic of an entry in a Metadata response, None if the entry neither describes one nor says that there is none."""
    is_described = error_code == _NO_ERROR and partitions > 0
    is_missing = error_code == _UNKNOWN_TOPIC_OR_PARTITION
    return Topic(name, id_, partitions) if name and (is_described or is_missing) else None


def topics_in(frame: bytes, api_version: int) -> list[Topic]:
    """Return the topics in a Metadata response with its header: those that it describes, and those that do not exist.

    :raises IndexError: if the frame ends too soon.
    """
    walk = _Walk(frame, flexible=api_version in _LAYOUT.flexible)
    walk.skip(4)  # correlation id
    walk.tags()
    found = []
    for topic in walk.struct(_LAYOUT.name, min(api_version, _LAYOUT.versions.last))["topics"]:
        id_ = topic.get("topic_id", _NO_ID)
        kafka_id = "" if id_ == _NO_ID else base64.urlsafe_b64encode(id_).rstrip(b"=").decode()
        error_code = int.from_bytes(topic["error_code"], "big", signed=True)
        found.append(topic_of(error_code, topic["name"], kafka_id, len(topic["partitions"])))
    return [topic for topic in found if topic is not None]


@cache
def _fields(name: str, version: int) -> list[tuple[str, str, int, bool]]:
    """Return the fields of a struct: name, type, fixed size or 0, and whether they are an array of these."""
    fields = _LAYOUT.fields(name, version)
    return [(field.name, field.item_type, fixed_size(field.item_type), field.is_array) for field in fields]


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

    def struct(self, name: str, version: int) -> dict[str, Any]:
        """Return the fields of the message or of a struct in it: texts, raw bytes, and arrays of structs as lists."""
        found: dict[str, Any] = {}
        for field, type_, size, is_array in _fields(name, version):
            if size:
                found[field] = self.take(size * self.length() if is_array else size)
            elif is_array:
                found[field] = [self.struct(type_, version) for _ in range(self.length())]
            else:
                found[field] = self.take(self.length(2)).decode()
        self.tags()
        return found

    def tags(self) -> None:
        for _ in range(self.uvarint() if self.flexible else 0):
            self.uvarint()
            self.skip(self.uvarint())
