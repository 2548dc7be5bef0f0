"""Reads the result topics into the metrics state in a thread, and the mirror's offsets every few seconds.

The thread shares the interpreter with the driver's loop. So it passes on only the newest value of each key of a fetch, and leaves the
parsing of groups to the scrape.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.background import Background
from streaming.errors import SetupError
from streaming.kafka.compacted import CompactedReader, TopicError
from streaming.kafka.connection import SILENT_LOGGER
from streaming.metrics.metrics_state import FINDINGS, GROUPS, STATUS

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.config.settings import MonitorConfig
    from streaming.kafka.topics import Mirror
    from streaming.metrics.metrics_state import MetricsState
    from streaming.metrics.vitals import Vitals

_WAIT_S: Final = 0.25
_ENDS_EVERY_S: Final = 5.0
_LOOK_WITHIN_S: Final = 10.0  # a Kafka that takes longer is away, as far as the probes are concerned
_RETRY_S: Final = 5.0

_log: Final = logging.getLogger(__name__)


class MetricsFeed(Background):
    """Reads the result topics while the context lasts.

    :param metrics_state: the state that it fills.
    :param vitals: notes whether Kafka answers.
    :param tell: called with a sentence when Kafka or a topic cannot be read.
    """

    ends_within_s = None

    def __init__(
        self,
        config: MonitorConfig,
        mirror: Mirror,
        metrics_state: MetricsState,
        vitals: Vitals,
        *,
        tell: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        super().__init__("metrics")
        self._config = config
        self._mirror = mirror
        self._metrics_state = metrics_state
        self._vitals = vitals
        self._kinds = {config.topics.findings: FINDINGS, config.topics.groups: GROUPS, config.topics.status: STATUS}
        self._tell = tell
        self._said = ""
        self._reader: CompactedReader | None = None

    @property
    def refused(self) -> str | None:
        """Why Kafka refuses the reader's credentials; None while it accepts them."""
        return None if self._reader is None else self._reader.refused

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except Exception:  # a failure of the metrics must not end the monitor, and must be logged
                _log.exception("the reader for metrics failed; it reads the result topics again from their beginning")
                self._metrics_state.begin_anew()
                self._stop.wait(_RETRY_S)

    def _follow(self) -> None:
        client, admin, looked_at = None, None, 0.0
        with CompactedReader(
            self._config.kafka.for_librdkafka,
            self._kinds,
            "the reader for metrics",
            reach_timeout_s=self._config.kafka.reach_timeout_s,
            trouble=self._tell,
        ) as reader:
            self._reader = reader
            while not self._stop.is_set():
                if reader.ends or self._started(reader):
                    self._read(reader)
                if admin is None or reader.client is not client:  # the first one, or credentials have changed
                    client, admin = reader.client, AdminClient(self._config.kafka.for_librdkafka(), logger=SILENT_LOGGER)
                if time.monotonic() - looked_at >= _ENDS_EVERY_S:
                    looked_at = time.monotonic()
                    self._look_at_the_mirror(admin)

    def _started(self, reader: CompactedReader) -> bool:
        try:
            reader.start(patience_s=0)
        except SetupError as error:
            if isinstance(error, TopicError) and str(error) != self._said:
                self._said = str(error)
                self._tell(f"the reader for metrics: {error}")
            reader.poll(_WAIT_S)  # returns no records yet, but serves the callback that reports refused credentials
            return False
        return True

    def _read(self, reader: CompactedReader) -> None:
        self._metrics_state.take(reader.poll(_WAIT_S), self._kinds)
        if not self._metrics_state.is_complete() and reader.caught_up():
            self._metrics_state.read_to_the_end()

    def _look_at_the_mirror(self, admin: AdminClient) -> None:
        topic, timeout_s = self._mirror.topic, min(self._config.kafka.reach_timeout_s, _LOOK_WITHIN_S)
        try:
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
        except KafkaException:  # Kafka is unreachable: the last known offsets stay
            self._vitals.observe_kafka(answers=False)
            return
        self._vitals.observe_kafka(answers=True)
        self._metrics_state.observe_mirror(begins, ends)
