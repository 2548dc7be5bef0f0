"""Follows the result topics in a thread and puts what they say on the board; looks now and then how far the mirror goes.

The trap: the thread shares the interpreter with the driver's loop. So of everything that is fetched at once only the newest value of each
key is handed on, and what costs is left to whoever scrapes.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Final, Self

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.kafka.clients import LastingConsumer
from streaming.kafka.credentials import Credentials
from streaming.kafka.topics import SILENT_LOGGER
from streaming.metrics.state import FINDINGS, GROUPS, STATUS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from streaming.config.settings import MonitorConfig
    from streaming.kafka.topics import Mirror
    from streaming.metrics.state import MetricsState

_BATCH: Final = 5_000
_WAIT_S: Final = 0.25
_ENDS_EVERY_S: Final = 5.0
_RETRY_S: Final = 5.0

_log: Final = logging.getLogger(__name__)


class MetricsFeed:
    """A context manager: reads from its beginning to its end."""

    def __init__(
        self, config: MonitorConfig, mirror: Mirror, board: MetricsState, *, tell: Callable[[str], None] = lambda _sentence: None
    ) -> None:
        self._config = config
        self._mirror = mirror
        self._board = board
        self._kinds = {config.topics.findings: FINDINGS, config.topics.groups: GROUPS, config.topics.status: STATUS}
        self._to_read: set[tuple[str, int]] = set()
        self._credentials = Credentials(config.kafka.for_librdkafka, "the reader for metrics", tell)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    @property
    def refused(self) -> str | None:
        """Why Kafka does not accept the reader; None while it does."""
        return self._credentials.refused

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except Exception:  # metrics must not end the monitor, nor end without a word
                _log.exception("the result topics are followed anew for the metrics")
                self._to_read.clear()
                self._board.begin_anew()
                self._stop.wait(_RETRY_S)

    def _follow(self) -> None:
        consumer = LastingConsumer(
            self._credentials,
            {
                "group.id": "rebalance-monitor-metrics",  # required by the library; no offset is ever committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            },
        )
        client, admin, looked_at = None, None, 0.0
        try:
            while not self._stop.is_set():
                if not self._to_read and not self._board.is_complete():
                    self._assign(consumer)
                self._read(consumer)
                if admin is None or consumer.client is not client:  # the first one, or credentials have changed
                    client, admin = consumer.client, AdminClient(self._config.kafka.for_librdkafka(), logger=SILENT_LOGGER)
                if time.monotonic() - looked_at >= _ENDS_EVERY_S:
                    looked_at = time.monotonic()
                    self._look_at_the_mirror(admin)
        finally:
            consumer.close()

    def _assign(self, consumer: LastingConsumer) -> None:
        with contextlib.suppress(KafkaException):  # Kafka is away: the next round tries again
            found = set()
            for topic in self._kinds:
                partitions = consumer.partitions_of(topic, self._config.kafka.reach_timeout_s)
                if not partitions:
                    return  # it is not known there yet, or refused, which the consumer tells
                found |= {(topic, partition) for partition in partitions}
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in found])
            self._to_read = found

    def _read(self, consumer: LastingConsumer) -> None:
        if not self._to_read and not self._board.is_complete():
            self._stop.wait(_WAIT_S)
            consumer.consume(1, 0)  # nothing is assigned yet: only for what is told of its credentials
            return
        newest: dict[str, dict[str, bytes | None]] = {kind: {} for kind in self._kinds.values()}
        for message in consumer.consume(_BATCH, _WAIT_S):
            problem = message.error()
            if problem is None:
                newest[self._kinds[message.topic()]][(message.key() or b"").decode(errors="replace")] = message.value()
            elif problem.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - public in all but name
                self._to_read.discard((message.topic(), message.partition()))
        for kind, records in newest.items():
            self._board.apply(kind, records)
        if not self._to_read:
            self._board.read_to_the_end()

    def _look_at_the_mirror(self, admin: AdminClient) -> None:
        topic, timeout_s = self._mirror.topic, self._config.kafka.reach_timeout_s
        with contextlib.suppress(KafkaException):  # Kafka is away: what was known stays, and ages
            partitions = admin.list_topics(topic, timeout=timeout_s).topics[topic].partitions
            begins, ends = (
                {where.partition: future.result().offset for where, future in asked.items()}
                for asked in (
                    admin.list_offsets(
                        {TopicPartition(topic, partition): spec for partition in partitions}, request_timeout=timeout_s
                    )
                    for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
                )
            )
            self._board.observe_mirror(begins, ends)
