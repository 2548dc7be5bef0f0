"""The findings topic as its readers and the driver see it: the newest state of each finding, and what changed since.

The trap: the topic is compacted, at-least-once and holds findings of earlier runs. Who only listens from now on never learns what
is open; who takes each record for news rings twice. So everything is read from the beginning, and only a change of status is news.
"""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from coordinator_model.finding import Blame, Certainty, Evidence, Finding, Severity, Status
from streaming.kafka.clients import LastingConsumer, LastingProducer, Queued
from streaming.kafka.credentials import Credentials
from streaming.kafka.topics import SetupError
from streaming.mirror.destination import not_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from streaming.config.settings import Kafka

_BATCH: Final = 1000


class News(NamedTuple):
    """A finding that opened or was resolved."""

    finding: dict[str, Any]  #: the published object
    opened: bool  #: else resolved


class FindingsReader:
    """Follows the findings topic from its beginning.

    ``open`` holds the open findings by id; ``resolved`` those that the topic still holds, and when that was written, in seconds.
    """

    def __init__(self, kafka: Kafka, topic: str, *, tell: Callable[[str], None] = lambda _sentence: None) -> None:
        self.open: dict[str, dict[str, Any]] = {}
        self.resolved: dict[str, float] = {}
        self.unreadable = 0  #: records that are no finding
        self._read_to_end: set[int] = set()
        self._forbidden = ""
        self._kafka = kafka
        self._topic = topic
        self._consumer = LastingConsumer(
            Credentials(kafka.for_librdkafka, "the reader of findings", tell),
            {
                "group.id": "rebalance-monitor-reader",  # required by the library; no offset is ever committed
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                "enable.partition.eof": True,
            },
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._consumer.close()

    @property
    def refused(self) -> str | None:
        """Why Kafka does not accept the reader; None while it does."""
        return self._consumer.credentials.refused

    def catch_up(self, timeout_s: float) -> None:
        """Read what is there already; none of it is news.

        :raises SetupError: when the topic cannot be read to its end in time.
        """
        deadline = time.monotonic() + timeout_s
        try:
            listed = self._consumer.client.list_topics(self._topic, timeout=timeout_s).topics[self._topic].partitions
            self._consumer.assign([TopicPartition(self._topic, partition, OFFSET_BEGINNING) for partition in listed])
        except KafkaException as error:
            why = not_readable(self._kafka.for_librdkafka(), self._topic, error.args[0])
            raise SetupError(f"cannot read the findings topic {self._topic}: {why}") from None
        while not self._read_to_end >= set(listed):
            self.poll(0.1)
            if self._forbidden:
                raise SetupError(f"the findings topic {self._topic} cannot be read: {self._forbidden}")
            if time.monotonic() > deadline:
                raise SetupError(f"the findings topic {self._topic} could not be read to its end within {timeout_s:.0f} s")

    def poll(self, timeout_s: float) -> list[News]:
        """What changed, waiting up to ``timeout_s`` for something."""
        news: list[News] = []
        for message in self._consumer.consume(_BATCH, timeout_s):
            problem = message.error()
            if problem is None:
                news += self._apply(message.key(), message.value(), message.timestamp()[1] / 1000)
            elif problem.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - public in all but name
                self._read_to_end.add(message.partition())
            elif problem.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                self._forbidden = not_readable(self._kafka.for_librdkafka(), self._topic, problem)
            # Other errors are librdkafka's own to mend; that Kafka is away is said by the queries.
        return news

    def _apply(self, key: bytes | None, value: bytes | None, written_s: float) -> list[News]:
        try:
            name = (key or b"").decode()
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
        if value is not None:  # else it was withdrawn (streaming.kafka.retention), or somebody deleted it
            self.resolved[name] = written_s
        return [] if known is None else [News(finding or known, opened=False)]


class FindingsWriter:
    """Publishes findings of the driver itself; what the model finds is written by the query."""

    def __init__(self, kafka: Kafka, topic: str, *, tell: Callable[[str], None] = lambda _sentence: None) -> None:
        self._topic = topic
        self._producer = LastingProducer(Credentials(kafka.for_librdkafka, "the writer of findings", tell), {"linger.ms": 0})
        self._producer.start()

    @property
    def refused(self) -> str | None:
        """Why Kafka does not accept the writer; None while it does."""
        return self._producer.credentials.refused

    def tend(self) -> None:
        """See to what is queued; to be called often."""
        self._producer.poll(0)

    def publish(self, findings: Iterable[Finding]) -> None:
        """Queue findings; :meth:`flush` waits for them."""
        for finding in findings:
            self.publish_json(self._topic, finding.id, finding.as_json())

    def publish_json(self, topic: str, key: str, value: dict[str, Any]) -> None:
        """Queue one record of any topic."""
        self._producer.produce(Queued(topic, json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(), key.encode()))
        self._producer.poll(0)

    def withdraw(self, names: Iterable[str]) -> None:
        """Queue tombstones for findings, by id: the topic's compaction then takes them away."""
        for name in names:
            self._producer.produce(Queued(self._topic, None, name.encode()))
            self._producer.poll(0)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is written; False when time ran out."""
        return bool(self._producer.flush(timeout_s) == 0)


def from_json(published: dict[str, Any]) -> Finding:
    """The finding that :meth:`Finding.as_json` published.

    :raises KeyError: when a field is missing.
    :raises ValueError: when a field does not hold what it should.
    """
    times = {name: published[name] for name in ("opened_at", "updated_at", "resolved_at")}
    plain = {name: value for name, value in published.items() if name not in times and name != "evidence"}
    return Finding(
        **plain
        | {
            "severity": Severity(published["severity"]),
            "certainty": Certainty(published["certainty"]),
            "blame": Blame(published["blame"]),
            "status": Status(published["status"]),
            "evidence": tuple(
                Evidence(
                    partition=frame["partition"],
                    offset=frame["offset"],
                    connection=frame["connection"],
                    exchange=frame["exchange"],
                    at_us=microseconds(frame["at"]),
                    frame=frame["frame"],
                )
                for frame in published["evidence"]
            ),
            **{f"{name}_us": None if at is None else microseconds(at) for name, at in times.items()},
        }
    )


def microseconds(moment: str) -> int:
    """Microseconds since the epoch of an ISO 8601 time, exactly: a float would round the last digit."""
    parsed = datetime.fromisoformat(moment)
    return int(parsed.replace(microsecond=0).timestamp()) * 1_000_000 + parsed.microsecond
