"""Reader and writer of the findings topic.

The topic is compacted, at-least-once and holds findings of earlier runs. A reader that starts at the end misses the open findings;
one that reports each record reports some twice. So the reader starts at the beginning and reports only changes of status.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator_model.finding import Finding, Status
from streaming.background import Closing
from streaming.kafka.clients import LastingProducer, Queued
from streaming.kafka.compacted import CompactedReader
from streaming.kafka.credentials import Credentials
from streaming.kafka.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streaming.config.settings import Kafka


class News(NamedTuple):
    """A finding that opened or was resolved."""

    finding: dict[str, Any]  #: the published object
    opened: bool  #: else resolved


class FindingsReader(Closing):
    """Reads the findings topic from its beginning; a context manager.

    ``open`` holds the open findings by id. ``resolved`` holds, by id, when the resolution was written, in seconds since the epoch, for
    the resolved findings that are still in the topic.

    :param tell: called with a sentence when Kafka cannot be read.
    """

    def __init__(self, kafka: Kafka, topic: str, *, tell: Callable[[str], None] = lambda _sentence: None) -> None:
        self.open: dict[str, dict[str, Any]] = {}
        self.resolved: dict[str, float] = {}
        self.unreadable = 0  #: records that are not findings
        self._records = CompactedReader(
            kafka.for_librdkafka, (topic,), "the reader of findings", reach_timeout_s=kafka.reach_timeout_s, trouble=tell
        )

    def close(self) -> None:
        self._records.close()

    @property
    def refused(self) -> str | None:
        """Why Kafka refuses the reader's credentials; None while it accepts them."""
        return self._records.refused

    def catch_up(self) -> None:
        """Read up to the current end of the topic, without reporting news.

        :raises SetupError: when the topic cannot be read to its end.
        """
        self._records.start()
        for record in self._records.history():
            self._apply(record)

    def poll(self, timeout_s: float) -> list[News]:
        """Return what changed; wait up to ``timeout_s`` for a record."""
        return [news for record in self._records.poll(timeout_s) for news in self._apply(record)]

    def _apply(self, record: Record) -> list[News]:
        name, value = record.name, record.value
        try:
            finding: dict[str, Any] = {} if value is None else json.loads(value)
            is_open = value is not None and Status(finding["status"]) is not Status.RESOLVED
        except (ValueError, LookupError, TypeError):
            self.unreadable += 1
            return []
        known = self.open.pop(name, None)
        self.resolved.pop(name, None)
        if is_open:
            self.open[name] = finding
            return [News(finding, opened=True)] if known is None else []
        if value is not None:  # else a tombstone: of streaming.sinks.retention, or of an operator
            self.resolved[name] = record.written_s
        return [] if known is None else [News(finding or known, opened=False)]


class FindingsWriter:
    """Publishes the findings of the driver itself; the streaming query writes those of the model."""

    def __init__(self, kafka: Kafka, topic: str, *, tell: Callable[[str], None] = lambda _sentence: None) -> None:
        self._topic = topic
        self._producer = LastingProducer(Credentials(kafka.for_librdkafka, "the writer of findings", tell), {"linger.ms": 0})
        self._producer.start()

    @property
    def refused(self) -> str | None:
        """Why Kafka refuses the writer's credentials; None while it accepts them."""
        return self._producer.credentials.refused

    def tend(self) -> None:
        """Serve the queue and its delivery reports; to be called often."""
        self._producer.poll(0)

    def publish(self, findings: Iterable[Finding]) -> None:
        """Queue findings; :meth:`flush` waits for them."""
        for finding in findings:
            self.publish_json(self._topic, finding.id, finding.as_json())

    def publish_json(self, topic: str, key: str, value: dict[str, Any]) -> None:
        """Queue one record for any topic."""
        self._producer.produce(Queued(topic, json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(), key.encode()))
        self._producer.poll(0)

    def withdraw(self, names: Iterable[str]) -> None:
        """Queue tombstones for findings, by id, so that compaction removes them."""
        for name in names:
            self._producer.produce(Queued(self._topic, None, name.encode()))
            self._producer.poll(0)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is written; return False if ``timeout_s`` passes first."""
        return bool(self._producer.flush(timeout_s) == 0)
