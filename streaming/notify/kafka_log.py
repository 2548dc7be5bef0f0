"""The delivery log as a compacted topic, and the topics that a notifier reads: it needs no disk and can run on any machine."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from coordinator_model.wording import counted, plural
from streaming.kafka.clients import LastingProducer, Queued
from streaming.kafka.compacted import CompactedReader
from streaming.kafka.credentials import Credentials
from streaming.notify.delivery_log import KeyedDeliveryLog, Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streaming.config.settings import Kafka, MonitorConfig

_FLUSH_S: Final = 10.0


def results(config: MonitorConfig, tell: Callable[[str], None]) -> CompactedReader:
    """Return what reads the findings and the monitor's status."""
    return _reader(config, (config.topics.findings, config.topics.status), tell)


def remembered(config: MonitorConfig, tell: Callable[[str], None]) -> Memory:
    """Read the delivery log.

    :raises SetupError: when it cannot be read.
    """
    topics = config.topics
    memory = Memory(topics.findings)
    with _reader(config, (topics.notifications,), tell) as feed:
        feed.start()
        for record in feed.history():
            memory.take(record.key, record.value)
    if memory.unreadable:
        tell(
            f"{counted(memory.unreadable, 'record')} of {topics.notifications} cannot be parsed: "
            f"{plural(memory.unreadable, 'its', 'their')} notifications may be sent again"
        )
    return memory


def _reader(config: MonitorConfig, topics: Iterable[str], tell: Callable[[str], None]) -> CompactedReader:
    kafka = config.kafka
    return CompactedReader(
        kafka.for_librdkafka, topics, "the reader of the topics", reach_timeout_s=kafka.reach_timeout_s, trouble=tell
    )


class KafkaDeliveryLog(KeyedDeliveryLog):
    """A delivery log that writes to the topic. Thread-safe."""

    def __init__(self, kafka: Kafka, topic: str, findings: str, *, tell: Callable[[str], None] = lambda _sentence: None) -> None:
        super().__init__(findings)
        self._topic = topic
        self._lock = threading.Lock()  # several threads flush
        self._producer = LastingProducer(Credentials(kafka.for_librdkafka, "the writer of notifications", tell), {"linger.ms": 0})
        self._producer.start()

    def write(self, key: bytes, value: bytes | None) -> None:
        self._producer.produce(Queued(self._topic, value, key))

    def flush(self) -> bool:
        with self._lock:
            return self._producer.flush(_FLUSH_S) == 0
