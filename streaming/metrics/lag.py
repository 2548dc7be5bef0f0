"""How far groups are behind: the watched brokers are asked for committed offsets and the ends of partitions.

Commits pass the monitor anyway, but the model keeps positions of the newest generation only, and of at most 256 partitions: it would know
least during a rebalance, when lag matters. So the brokers are asked for both. The requests for committed offsets are under way together,
up to :data:`AT_ONCE`; the ends of all partitions are one question. Offsets come before ends, or a busy partition would seem to be ahead.

What is known is among the metrics, and in the topic ``[topics] lag``: one record for each group, with what its rebalances did to it.
"""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.background import Background
from streaming.errors import SetupError
from streaming.kafka.clients import LastingProducer, Queued
from streaming.kafka.compacted import CompactedReader
from streaming.kafka.connection import SILENT_LOGGER
from streaming.kafka.credentials import Credentials
from streaming.metrics.collector import selected
from streaming.metrics.lag_history import LagHistory
from streaming.published.records import lag_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streaming.config.settings import MonitorConfig
    from streaming.metrics.metrics_state import Lags, MetricsState

AT_ONCE: Final = 100
"""Groups whose offsets are asked for at once: each is a request of its own."""


_log: Final = logging.getLogger(__name__)


class LagWatch(Background):
    """Asks every ``lag.every_s`` seconds while the context lasts, for the groups that have series of their own, and publishes the answers.

    :param metrics_state: where the groups come from and the lag goes to.
    :param tell: called with a sentence when the brokers stop answering.
    """

    def __init__(
        self, config: MonitorConfig, metrics_state: MetricsState, *, tell: Callable[[str], None] = lambda _sentence: None
    ) -> None:
        super().__init__("lag")
        self._config = config
        self._metrics_state = metrics_state
        self._tell = tell
        self._is_answered = True
        self._history = LagHistory(config.lag.max_partitions)

    def _run(self) -> None:
        settings, kafka = self._config.lag, self._config.kafka
        watched = kafka.for_librdkafka()
        if settings.bootstrap_servers:
            watched["bootstrap.servers"] = settings.bootstrap_servers
        admin = AdminClient(watched, logger=SILENT_LOGGER)
        producer = LastingProducer(Credentials(kafka.for_librdkafka, "the writer of lag", self._tell), {"linger.ms": 5})
        producer.start()
        self._read_back()
        while not self._stop.is_set():
            try:
                self._ask(admin, producer)
            except Exception:  # lag is an extra: its failure must not end the monitor, and must be logged
                _log.exception("the watched brokers could not be asked for the lag of groups")
            self._stop.wait(settings.every_s)
        producer.close()

    def _read_back(self) -> None:
        """Go on with what an earlier run knew of rebalances; without it, if that cannot be read."""
        config = self._config
        try:
            with CompactedReader(config.kafka.for_librdkafka, (config.topics.lag,), "the reader of lag") as reader:
                reader.start()
                for record in reader.history():
                    lag = None if record.value is None else lag_of(record.value)
                    if lag is not None:  # what is none is replaced as soon as the group is asked about
                        self._history.restore(lag)
        except SetupError as error:
            self._tell(f"What earlier rebalances did to the lag of groups is not known: {error}")

    def _ask(self, admin: AdminClient, producer: LastingProducer) -> None:
        view = self._metrics_state.look()
        if not view.complete:
            return
        mine = self._config.cluster
        groups = [group for group in selected(view, self._config.metrics).shown if mine in ("", group.cluster)]
        found_lags = lags_of(admin, {group.name for group in groups}, timeout_s=self._config.kafka.reach_timeout_s)
        lags = {(group.cluster, group.name): found_lags[group.name] for group in groups if group.name in found_lags}
        self._metrics_state.observe_lag(lags, unknown=len(groups) - len(lags))
        for (cluster, name), record in self._history.observe(groups, lags, time.time_ns() // 1_000).items():
            value = None if record is None else json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
            producer.produce(Queued(self._config.topics.lag, value, f"{cluster}/{name}".encode()))
        producer.flush(self._config.kafka.reach_timeout_s)
        is_answered = bool(lags) or not groups
        if self._is_answered and not is_answered:
            self._tell(
                "the watched brokers tell the lag of no group: check lag.bootstrap_servers, and the right to describe groups and topics"
            )
        self._is_answered = is_answered


def lags_of(admin: AdminClient, groups: Iterable[str], *, timeout_s: float) -> dict[str, Lags]:
    """How far each partition with a committed offset is behind, in records; without groups of which nothing is known.

    :param timeout_s: of each request.
    """
    committed: dict[str, Mapping[tuple[str, int], int]] = {}
    names = sorted(groups)
    for first in range(0, len(names), AT_ONCE):
        asked = {
            group: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=timeout_s)[group]
            for group in names[first : first + AT_ONCE]
        }
        for group, answer in asked.items():
            try:
                partitions = answer.result().topic_partitions or ()
            except KafkaException:
                continue
            committed[group] = {(one.topic, one.partition): one.offset for one in partitions if one.offset >= 0 and not one.error}
    ends = _ends(admin, {place for places in committed.values() for place in places}, timeout_s)
    return {
        group: {place: max(ends[place] - offset, 0) for place, offset in places.items() if place in ends}
        for group, places in committed.items()
    }


def _ends(admin: AdminClient, places: Iterable[tuple[str, int]], timeout_s: float) -> dict[tuple[str, int], int]:
    wanted = {TopicPartition(*place): OffsetSpec.latest() for place in places}
    found: dict[tuple[str, int], int] = {}
    for asked, answer in admin.list_offsets(wanted, request_timeout=timeout_s).items() if wanted else ():
        try:
            found[asked.topic, asked.partition] = answer.result().offset
        except KafkaException:
            continue  # deleted since, without a leader, or not to be described
    return found
