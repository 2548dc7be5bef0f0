"""The one reader of compacted topics: what is there already, and then what comes.

A compacted topic has no end at which one may stop; records come while it is read, and the last ones that were there may be compacted away.
"Caught up" means as far as the topic went when the reader looked, by its position and not by the records that it got.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException, TopicPartition

from streaming.background import Closing
from streaming.errors import SetupError
from streaming.kafka.acls import not_readable
from streaming.kafka.clients import LastingConsumer, reason_of
from streaming.kafka.credentials import Credentials
from streaming.kafka.record import Record
from streaming.kafka.watermarks import bounds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from confluent_kafka import Consumer

_BATCH: Final = 5000
_BLIND: Final = (KafkaError._ALL_BROKERS_DOWN,)  # noqa: SLF001 - public in all but name
_LOOK_FOR_PARTITIONS_S: Final = 300.0
_LOOK_AGAIN_S: Final = 0.1


class TopicError(SetupError):
    """A topic is missing or refused; the message names it, and the remedy."""


class CompactedReader(Closing):
    """Reads topics from their beginning, or from a time on, without a group and without committing; a context manager.

    :param properties: returns librdkafka's properties; it is called again when Kafka refuses the credentials.
    :param who: who reads, at the beginning of a sentence about refused credentials.
    :param reach_timeout_s: how long Kafka may take to answer.
    :param trouble: called with a sentence when Kafka cannot be read, once until it can again.
    :param since_s: seconds since the epoch; records that were written before are not read. None reads all.
    :param positions: by topic and partition, the offset at which to begin; others begin as ``since_s`` says.
    """

    def __init__(
        self,
        properties: Callable[[], Mapping[str, Any]],
        topics: Iterable[str],
        who: str,
        *,
        reach_timeout_s: float = 10.0,
        trouble: Callable[[str], None] = lambda _sentence: None,
        since_s: float | None = None,
        positions: Mapping[tuple[str, int], int] | None = None,
    ) -> None:
        self.missed: dict[tuple[str, int], int] = {}  #: records behind a position that were deleted before they were read
        self.ends: dict[tuple[str, int], int] = {}  #: where each partition ended when the reader looked last
        self.in_trouble = False
        self._properties = properties
        self._topics = tuple(topics)
        self._reach_timeout_s = reach_timeout_s
        self._trouble = trouble
        self._since_s = since_s
        self._positions = dict(positions or {})
        self._next: dict[tuple[str, int], int] = {}
        self._refused: dict[str, str] = {}  # topic → why
        self._looked_s = time.monotonic()
        self._consumer = LastingConsumer(
            Credentials(properties, who, self._credentials_trouble),
            {
                "group.id": "rebalance-monitor-reader",  # required by the library; no offset is ever committed
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            },
            on_error=lambda error: self._say(error.str()) if error.fatal() or error.code() in _BLIND else None,
        )

    def close(self) -> None:
        self._consumer.close()

    @property
    def client(self) -> Consumer:
        """The client of now; another one once it was built again with new credentials."""
        return self._consumer.client

    @property
    def refused(self) -> str | None:
        """Why Kafka does not accept the credentials; None while it does."""
        return self._consumer.credentials.refused

    def start(self, patience_s: float | None = None) -> None:
        """Find the topics and where they end, and begin to read them.

        :param patience_s: how long to look for a topic that is not there; the time that Kafka may take to answer by default, because a
            topic that was created just now is unknown to a broker for a moment.
        :raises TopicError: when a topic is missing or refused.
        :raises SetupError: when Kafka does not answer.
        """
        deadline = time.monotonic() + (self._reach_timeout_s if patience_s is None else patience_s)
        while True:
            try:
                places = self._listed()
                break
            except TopicError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_LOOK_AGAIN_S)
        self.ends, self._next = {}, {}
        self._look_at_ends(places)
        if self._since_s is not None:
            self._skip_older(self._since_s)
        self._go_on()
        is_chosen = self._since_s is not None or self._positions
        self._consumer.assign([TopicPartition(*place, self._next[place] if is_chosen else OFFSET_BEGINNING) for place in self.ends])

    def look_at_ends(self) -> None:
        """Take the topics' ends of now for those to which :meth:`history` reads.

        :raises SetupError: when Kafka does not answer, or refuses.
        """
        self._look_at_ends([TopicPartition(*place) for place in self._next])

    def history(self) -> Iterator[Record]:
        """What is there up to the ends.

        :raises TopicError: when a topic is refused.
        :raises SetupError: when for a while nothing comes although there should be more.
        """
        deadline = time.monotonic() + self._reach_timeout_s
        while not self.caught_up():
            records = self.poll(0.2)
            for topic, why in self._refused.items():
                raise TopicError(self._not_readable(topic, why))
            if records:
                deadline = time.monotonic() + self._reach_timeout_s
            elif time.monotonic() > deadline:
                topic, partition = self._behind()[0]
                raise SetupError(f"nothing more came of topic {topic}, partition {partition}, within {self._reach_timeout_s:g} s")
            yield from records

    def poll(self, timeout_s: float) -> list[Record]:
        """What came, waiting up to ``timeout_s`` for something."""
        records: list[Record] = []
        for message in self._consumer.consume(_BATCH, timeout_s):
            problem = message.error()
            if problem is None:
                kind, written_ms = message.timestamp()
                written_s = 0.0 if kind == TIMESTAMP_NOT_AVAILABLE else written_ms / 1000
                place = (message.topic(), message.partition())
                self._next[place] = message.offset() + 1
                records.append(Record(*place, message.offset(), message.key(), message.value(), written_s))
            elif problem.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:  # the consumer reports that, with the remedy
                self._refused[message.topic()] = not_readable(self._properties(), message.topic(), problem)
            else:
                self._say(problem.str())
        if records:
            self.in_trouble = False
        if time.monotonic() - self._looked_s > _LOOK_FOR_PARTITIONS_S:
            self._looked_s = time.monotonic()
            self._take_in_new_partitions()
        return records

    def was_there(self, record: Record) -> bool:
        """Whether the record is older than the reading."""
        return record.offset < self.ends.get((record.topic, record.partition), 0)

    def caught_up(self) -> bool:
        """Whether the topics were found and are read up to the ends."""
        for place in self._behind():
            # What a compaction removed at the end is never read; the consumer's position passes it.
            position = self._consumer.client.position([TopicPartition(*place)])[0].offset
            self._next[place] = max(self._next[place], position)
        return bool(self.ends) and not self._behind()

    def _behind(self) -> list[tuple[str, int]]:
        return [place for place, end in self.ends.items() if self._next[place] < end]

    def _listed(self) -> list[TopicPartition]:
        places = []
        for topic in self._topics:
            try:
                found = self._consumer.client.list_topics(topic, timeout=self._reach_timeout_s).topics[topic]
            except KafkaException as error:
                raise SetupError(self._not_readable(topic, _no_answer(error))) from None
            if found.error is not None:
                missing = found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                why = "it does not exist" if missing else not_readable(self._properties(), topic, found.error)
                raise TopicError(self._not_readable(topic, why))
            places += [TopicPartition(topic, partition) for partition in sorted(found.partitions)]
        return places

    def _look_at_ends(self, places: Iterable[TopicPartition]) -> None:
        for place in places:
            try:
                first, end = bounds_of(self._consumer.client, place, self._reach_timeout_s)
            except KafkaException as error:
                raise TopicError(
                    self._not_readable(place.topic, not_readable(self._properties(), place.topic, error.args[0]))
                ) from None
            self.ends[place.topic, place.partition] = end
            self._next.setdefault((place.topic, place.partition), first)

    def _skip_older(self, since_s: float) -> None:
        asked = [TopicPartition(*place, int(since_s * 1000)) for place in self._next]
        try:
            found = self._consumer.client.offsets_for_times(asked, timeout=self._reach_timeout_s)
        except KafkaException as error:
            raise SetupError(self._not_readable(asked[0].topic, _no_answer(error))) from None
        for place in found:
            key = (place.topic, place.partition)
            self._next[key] = place.offset if place.offset >= 0 else self.ends[key]  # nothing is as new as that

    def _go_on(self) -> None:
        """Begin at the positions; a topic that was made anew has none of them, and begins at its beginning."""
        for place, position in self._positions.items():
            if position <= self.ends.get(place, -1):
                self.missed |= {place: self._next[place] - position} if position < self._next[place] else {}
                self._next[place] = max(self._next[place], position)

    def _not_readable(self, topic: str, why: str) -> str:
        return f"cannot read the topic {topic} on {self._properties().get('bootstrap.servers')}: {why}"

    def _take_in_new_partitions(self) -> None:
        try:
            new = [place for place in self._listed() if (place.topic, place.partition) not in self._next]
        except SetupError:
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
            self._trouble(f"Kafka at {self._properties().get('bootstrap.servers')}: {reason}")


def _no_answer(error: KafkaException) -> str:
    return f"Kafka does not answer ({reason_of(error)}); check that a broker runs there, and the security settings"
