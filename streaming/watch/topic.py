"""Input of a mirror topic: several taps, one monitor. It goes on from its next offset; its clock is the topic's ticks alone.

A topic that falls silent is V-03, as in the job. While Kafka is away nothing can be said of the mirror.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from coordinator_model.wire.record import HEADER_NAME
from streaming.engine.mirror_silence import SilenceWatch, subjects
from streaming.engine.own_findings import Standing
from streaming.errors import SetupError
from streaming.kafka.acls import not_readable
from streaming.kafka.clients import without_group
from streaming.kafka.connection import NO_TOPIC_BY_ITSELF, SILENT_LOGGER
from streaming.kafka.mirror_topic import topic_partitions
from streaming.kafka.watermarks import bounds_of
from streaming.watch.watch import Tally

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from coordinator_model.settings import Settings
    from streaming.watch.watch import Watch

_BATCH: Final = 2_000
_POLL_S: Final = 0.1
_LOOK_S: Final = 1.0
_REACH_S: Final = 10.0
_AWAY: Final = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - public in all but name


class MirrorTopic:
    """Records of the mirror topic.

    :param properties: of librdkafka.
    :param last_minutes: how much of the past the first start reads.
    :param tell: called with a sentence when Kafka is away, and when it is back.
    :raises SetupError: when the topic cannot be read.
    """

    def __init__(
        self,
        properties: Mapping[str, Any],
        topic: str,
        *,
        last_minutes: float,
        cluster: str,
        settings: Settings,
        tell: Callable[[str], None],
    ) -> None:
        self.title = f"topic {topic} on {properties['bootstrap.servers']}"
        self._properties = dict(properties)
        self.topic = topic
        self._partitions = topic_partitions(self._properties, topic, operation="Read")
        self._since_ms = int((time.time() - last_minutes * 60) * 1000)
        self._cluster = cluster
        self._settings = settings
        self._tell = tell
        self._away_since_s: float | None = None
        self._read: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._newest_ms = 0
        self._frames = 0

    def run(self, watch: Watch, stop: threading.Event) -> None:
        """Read records until ``stop`` is set."""
        consumer = Consumer(
            {
                **self._properties,
                "group.id": "rebalance-monitor-watch",  # required by the library; no offset is ever committed
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                "log.connection.close": False,
                "error_cb": self._on_error,
                **NO_TOPIC_BY_ITSELF,
            },
            logger=SILENT_LOGGER,
        )
        try:
            self._begin(consumer, watch)
            self._follow(consumer, watch, stop)
        except KafkaException as error:
            why = not_readable(self._properties, self.topic, error.args[0])
            raise SetupError(f"topic {self.topic!r} cannot be read: {why}") from None
        finally:
            consumer.close()

    def _begin(self, consumer: Consumer, watch: Watch) -> None:
        models = watch.engine.models
        asked = [TopicPartition(self.topic, number, self._since_ms) for number in range(self._partitions)]
        places = consumer.offsets_for_times(asked, timeout=_REACH_S)
        for place in places:
            low, high = bounds_of(consumer, TopicPartition(self.topic, place.partition), within_s=_REACH_S)
            model = models.get(place.partition)
            known = model.next_offset if model is not None else None
            first = known if known is not None and known <= high else place.offset if place.offset >= 0 else high
            place.offset = self._read[place.partition] = max(first, low)
            self._ends[place.partition] = high
        consumer.assign(places)

    def _follow(self, consumer: Consumer, watch: Watch, stop: threading.Event) -> None:
        topic = self.topic
        known = subjects(topic, self._partitions)
        silence = SilenceWatch(
            topic=topic,
            allowed_ms=self._settings.silence_ms,
            newest_us=lambda number: model.now_us if (model := watch.engine.models.get(number)) is not None else None,
            standing=Standing(self._cluster, (), known),
        )
        looked_s = 0.0
        while not stop.is_set():
            for message in without_group(consumer.consume(_BATCH, _POLL_S)):
                self._take(message, watch)
            watch.tend()
            if time.monotonic() - looked_s < _LOOK_S:
                continue
            looked_s = time.monotonic()
            for number in self._read:
                high = consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)[1]
                self._ends[number] = max(self._ends[number], high)
            if self._away_since_s is not None:
                silence.pause()
            else:
                watch.found(silence.observe(self._read, self._ends, time.time_ns() // 1000))

    def _take(self, message: Any, watch: Watch) -> None:
        if message.error() is not None:
            raise KafkaException(message.error())
        if self._away_since_s is not None:
            away_s, self._away_since_s = time.monotonic() - self._away_since_s, None
            self._tell(f"Kafka answers again after {away_s:,.0f} s: reading goes on at the next record")
        envelope = dict(message.headers() or ()).get(HEADER_NAME)
        self._newest_ms = message.timestamp()[1]
        self._read[message.partition()] = message.offset() + 1
        self._frames += message.key() is not None
        watch.row((message.partition(), message.offset(), self._newest_ms, message.key(), message.value(), envelope))

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == _AWAY and self._away_since_s is None:
            self._away_since_s = time.monotonic()
            self._tell(f"Kafka at {self._properties['bootstrap.servers']} is away: nothing is read until it is back")

    def tally(self) -> Tally:
        """Return what was read."""
        waiting = sum(max(0, end - self._read.get(number, 0)) for number, end in self._ends.items())
        behind_s = max(0.0, time.time() - self._newest_ms / 1000) if waiting > _BATCH and self._newest_ms else 0.0
        return Tally(behind_s=behind_s)

    def why_nothing(self) -> str | None:
        """Why no frame of a group was read, and the next step."""
        if self._frames:
            return None
        if not self._newest_ms:
            return f"{self.title} has no new record, not even a tick: check that a tap runs and writes to it."
        return f"{self.title} has ticks, and no frame of a group: check that clients connect to the tap."
