"""What Metadata responses that pass by say of topics: their names by id, and how many partitions they have.

Assignments and newer commits name topics by id alone, and no frame of a group says how many partitions there are to assign. A capturer
keeps what it has seen, and writes it when it is news, as a fact: nothing else of a Metadata response is kept.

A Metadata response lists every partition, and may be megabytes long. Only small ones are read, which are those of consumers that ask for
their own topics, and one that was read before is not read again.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from zlib import crc32

from coordinator_model.wire.record import NO_RIGHT
from streaming.mirror.answer_fields import AnswerFields

METADATA: Final = 3

READ_AT_MOST: Final = 64 * 1024
"""Bytes of a Metadata response that is read: some 2,000 partitions, ten to twenty milliseconds."""

_KNOWN_AT_MOST: Final = 10_000
_SEEN_AT_MOST: Final = 1_024
_NO_ID: Final = bytes(16)
_NO_ERROR: Final = 0
_UNKNOWN_TOPIC_OR_PARTITION: Final = 3
_TOPIC_AUTHORIZATION_FAILED: Final = 29


class Topic(NamedTuple):
    """A topic in a Metadata response."""

    name: str
    id: str  #: as Kafka writes it; "" before version 10
    partitions: int  #: 0 if the broker says that there is no such topic, NO_RIGHT if that the client may not know of it


Client = tuple[str | None, str]
"""Client id and address."""


class KnownTopics:
    """A cluster's topics, as far as they were seen."""

    def __init__(self) -> None:
        self.clusters: set[str] = set()  #: ids that responses name; more than one if brokers of several are taken for one cluster's
        self._names: dict[str, str] = {}
        self._partitions: dict[str, tuple[str, int]] = {}  # name → id, number of partitions
        self._seen: dict[int, dict[str, int]] = {}  # checksum of a response → topics that do not exist, or are not for the client
        self._missed: dict[tuple[Client, str, int], None] = {}  # client, and a topic that it asked for in vain

    def read(self, frame: bytes, api_version: int, client: Client = (None, "")) -> dict[str, str | int]:
        """Return what a Metadata response, with its header, says that was not known yet: see :meth:`learn`.

        That a topic does not exist, or is not for a client to know, is news for each client that asks for it.
        """
        checksum = crc32(frame[4:])
        news: dict[str, str | int] = {}
        missing = self._seen.get(checksum)
        if missing is None:
            try:
                fields = dict(AnswerFields(frame, METADATA, api_version))
            except (IndexError, UnicodeDecodeError):
                fields = {"topics": []}
            found = topics_in(fields)
            if cluster := fields.get("cluster_id"):
                self.clusters.add(cluster)
            news = self.learn(found)
            for topic in found:
                if topic.partitions > 0 and (client, topic.name, NO_RIGHT) in self._missed:
                    del self._missed[client, topic.name, NO_RIGHT]
                    news[topic.name] = topic.partitions
            missing = self._seen[checksum] = {topic.name: topic.partitions for topic in found if topic.partitions <= 0}
            _limit(self._seen, _SEEN_AT_MOST)
        for name, why in missing.items():
            if (client, name, why) not in self._missed:
                self._missed[client, name, why] = None
                news[name] = why
        _limit(self._missed, _SEEN_AT_MOST)
        return news

    def learn(self, topics: Iterable[Topic]) -> dict[str, str | int]:
        """Return what was not known yet: id → name, and name → number of partitions.

        A topic never loses partitions: with the same id, the higher number is the newer one, whichever broker says it last.
        """
        news: dict[str, str | int] = {}
        for topic in topics:
            if topic.partitions == NO_RIGHT:
                continue  # it is so for one client
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
    """Return the topic of an entry in a Metadata response, None if the entry neither describes one nor says why it does not."""
    is_described = error_code == _NO_ERROR and partitions > 0
    is_missing = error_code == _UNKNOWN_TOPIC_OR_PARTITION
    if name and error_code == _TOPIC_AUTHORIZATION_FAILED:
        return Topic(name, "", NO_RIGHT)
    return Topic(name, id_, partitions) if name and (is_described or is_missing) else None


def topics_in(fields: Mapping[str, Any]) -> list[Topic]:
    """Return the topics in the fields of a Metadata response: those that it describes, and those that do not exist."""
    found = []
    for topic in fields["topics"]:
        id_ = topic.get("topic_id", _NO_ID)
        kafka_id = "" if id_ == _NO_ID else base64.urlsafe_b64encode(id_).rstrip(b"=").decode()
        error_code = int.from_bytes(topic["error_code"], "big", signed=True)
        found.append(topic_of(error_code, topic["name"], kafka_id, len(topic["partitions"])))
    return [topic for topic in found if topic is not None]
