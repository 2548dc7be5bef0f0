"""How far groups are behind: the watched brokers are asked for committed offsets and the ends of partitions.

Commits pass the monitor anyway, but the model keeps positions of the newest generation only, and of at most 256 partitions: it would know
least during a rebalance, when lag matters. So the brokers are asked for both. The requests for committed offsets are under way together,
up to :data:`AT_ONCE`; the ends of all partitions are one question. Offsets come before ends, or a busy partition would seem to be ahead.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, Self

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from streaming.kafka.topics import SILENT_LOGGER
from streaming.metrics.collector import selected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from streaming.config.settings import MonitorConfig
    from streaming.metrics.metrics_state import Lags, MetricsState

AT_ONCE: Final = 100
"""Groups whose offsets are asked for at once: each is a request of its own."""

_ENDS_WITHIN_S: Final = 5.0

_log: Final = logging.getLogger(__name__)


class LagWatch:
    """Asks every ``lag.every_s`` seconds while the context lasts, for the groups that have series of their own.

    :param board: where the groups come from and the lag goes to.
    :param tell: called with a sentence when the brokers stop answering.
    """

    def __init__(self, config: MonitorConfig, board: MetricsState, *, tell: Callable[[str], None] = lambda _sentence: None) -> None:
        self._config = config
        self._board = board
        self._tell = tell
        self._is_answered = True
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lag", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(_ENDS_WITHIN_S)  # an answer that does not come must not hold up the end

    def _run(self) -> None:
        settings = self._config.lag
        watched = self._config.kafka.for_librdkafka()
        if settings.bootstrap_servers:
            watched["bootstrap.servers"] = settings.bootstrap_servers
        admin = AdminClient(watched, logger=SILENT_LOGGER)
        while not self._stop.is_set():
            try:
                self._ask(admin)
            except Exception:  # lag is an extra: its failure must not end the monitor, and must be logged
                _log.exception("the watched brokers could not be asked for the lag of groups")
            self._stop.wait(settings.every_s)

    def _ask(self, admin: AdminClient) -> None:
        view = self._board.look()
        mine = self._config.cluster
        groups = [group for group in selected(view, self._config.metrics).shown if mine in ("", group.cluster)]
        told = lags_of(admin, {group.name for group in groups}, timeout_s=self._config.kafka.reach_timeout_s)
        lags = {(group.cluster, group.name): told[group.name] for group in groups if group.name in told}
        self._board.observe_lag(lags, unknown=len(groups) - len(lags))
        is_answered = bool(lags) or not groups
        if self._is_answered and not is_answered:
            self._tell(
                "the watched brokers tell the lag of no group: check lag.bootstrap_servers, and the right to describe groups and topics"
            )
        self._is_answered = is_answered


def lags_of(admin: AdminClient, groups: Iterable[str], *, timeout_s: float) -> dict[str, Lags]:
    """How far each partition with a committed offset is behind, in records; without groups of which nothing is told.

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
