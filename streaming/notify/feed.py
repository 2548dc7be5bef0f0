"""Follows compacted topics from their beginning: what is there already, and then what comes.

The trap: a compacted topic has no end at which one may stop; records come while it is read. "Caught up" means as far as it went when we
began, and whether a record was there already is told with it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException, TopicPartition

from streaming.kafka.clients import LastingConsumer
from streaming.kafka.credentials import Credentials
from streaming.kafka.topics import SetupError
from streaming.kafka.watermarks import bounds_of
from streaming.mirror.destination import not_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from streaming.config.settings import Kafka

_BATCH: Final = 1000
_BLIND: Final = (KafkaError._ALL_BROKERS_DOWN,)  # noqa: SLF001 - public in all but name
_LOOK_FOR_PARTITIONS_S: Final = 300.0
_LOOK_AGAIN_S: Final = 0.1


class Record(NamedTuple):
    """One record of one of the topics."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    written_s: float  #: seconds since the epoch; 0 when unknown


class FindingsFeed:
    """A context manager.

    :param trouble: called with a sentence when Kafka cannot be read, once until it can again.
    """

    def __init__(self, kafka: Kafka, topics: Iterable[str], *, trouble: Callable[[str], None] = lambda _sentence: None) -> None:
        self.ends: dict[tuple[str, int], int] = {}  #: where each partition ended when we began
        self.in_trouble = False
        self._kafka = kafka
        self._topics = tuple(topics)
        self._trouble = trouble
        self._next: dict[tuple[str, int], int] = {}
        self._looked_s = time.monotonic()
        self._consumer = LastingConsumer(
            Credentials(kafka.for_librdkafka, "the reader of the topics", self._credentials_trouble),
            {
                "group.id": "rebalance-monitor-notify",  # required by the library; no offset is ever committed
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            },
            on_error=lambda error: self._say(error.str()) if error.fatal() or error.code() in _BLIND else None,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    def start(self) -> None:
        """Find the topics and where they end.

        :raises SetupError: when that cannot be found out.
        """
        try:
            places = self._found()
        except KafkaException as error:
            raise SetupError(f"cannot read the topics {', '.join(self._topics)}: {error.args[0].str()}") from None
        try:
            for place in places:
                first, end = bounds_of(self._consumer.client, place, self._kafka.reach_timeout_s)
                self.ends[place.topic, place.partition] = end
                self._next[place.topic, place.partition] = first
            self._consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in self.ends])
        except KafkaException as error:
            why = not_readable(self._kafka.for_librdkafka(), place.topic, error.args[0])
            raise SetupError(f"cannot read the topic {place.topic}: {why}") from None

    def history(self) -> Iterator[Record]:
        """What was there when we began.

        :raises SetupError: when for a while nothing comes although there should be more.
        """
        patience_s = self._kafka.reach_timeout_s
        deadline = time.monotonic() + patience_s
        while self._behind():
            records = self.poll(0.2)
            if records:
                deadline = time.monotonic() + patience_s
            elif time.monotonic() > deadline:
                topic, partition = next(iter(self._behind()))
                raise SetupError(f"nothing more came of topic {topic}, partition {partition}, within {patience_s:g} s")
            yield from records

    def poll(self, timeout_s: float) -> list[Record]:
        """What came, waiting up to ``timeout_s`` for something."""
        records: list[Record] = []
        for message in self._consumer.consume(_BATCH, timeout_s):
            problem = message.error()
            if problem is not None:
                if problem.code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:  # the consumer tells that, with the remedy
                    self._say(problem.str())
                continue
            kind, written_ms = message.timestamp()
            written_s = 0.0 if kind == TIMESTAMP_NOT_AVAILABLE else written_ms / 1000
            place = (message.topic(), message.partition())
            self._next[place] = message.offset() + 1
            records.append(Record(*place, message.offset(), message.key(), message.value(), written_s))
        if records:
            self.in_trouble = False
        if time.monotonic() - self._looked_s > _LOOK_FOR_PARTITIONS_S:
            self._looked_s = time.monotonic()
            self._take_in_new_partitions()
        return records

    def was_there(self, record: Record) -> bool:
        """Whether the record is older than our reading."""
        return record.offset < self.ends.get((record.topic, record.partition), 0)

    def _behind(self) -> list[tuple[str, int]]:
        for place in [place for place, end in self.ends.items() if self._next[place] < end]:
            # What a compaction removed at the end is never read; the consumer's position passes it.
            position = self._consumer.client.position([TopicPartition(*place)])[0].offset
            self._next[place] = max(self._next[place], position)
        return [place for place, end in self.ends.items() if self._next[place] < end]

    def _found(self) -> list[TopicPartition]:
        """A topic that was created just now is unknown to a broker for a moment."""
        deadline = time.monotonic() + self._kafka.reach_timeout_s
        while True:
            try:
                return self._listed()
            except SetupError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_AGAIN_S)

    def _listed(self) -> list[TopicPartition]:
        places = []
        for topic in self._topics:
            found = self._consumer.client.list_topics(topic, timeout=self._kafka.reach_timeout_s).topics[topic]
            if found.error is not None:
                why = not_readable(self._kafka.for_librdkafka(), topic, found.error)
                raise SetupError(f"cannot read the topic {topic}: {why}")
            places += [TopicPartition(topic, partition) for partition in found.partitions]
        return places

    def _take_in_new_partitions(self) -> None:
        try:
            new = [place for place in self._listed() if (place.topic, place.partition) not in self._next]
        except (KafkaException, SetupError):
            return  # that Kafka is away is said by the callback
        for place in new:
            self._next[place.topic, place.partition] = 0
        if new:
            self._consumer.add([TopicPartition(place.topic, place.partition, OFFSET_BEGINNING) for place in new])

    def _credentials_trouble(self, sentence: str) -> None:
        """Until the next record comes it is not known to be over, even when the client was built again."""
        self.in_trouble = True
        self._trouble(sentence)

    def _say(self, reason: str) -> None:
        if not self.in_trouble:
            self.in_trouble = True
            self._trouble(f"Kafka at {self._kafka.bootstrap_servers}: {reason}")
