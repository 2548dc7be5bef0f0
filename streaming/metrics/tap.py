"""The metrics of a tap: connections, captured frames, buffered and lost records."""

from __future__ import annotations

import contextlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from streaming.metrics.server import opened
from streaming.metrics.table import TAP_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric as Family

    from streaming.mirror.producer import KafkaSink
    from streaming.mirror.tap import Tap

_FAMILIES: Final = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}


class TapCollector:
    """Registered with prometheus_client, which calls :meth:`collect` in the thread of a scrape."""

    def __init__(self, tap: Tap, sink: KafkaSink) -> None:
        self._tap = tap
        self._sink = sink

    def describe(self) -> Iterable[Family]:
        return self._families().values()

    def collect(self) -> Iterable[Family]:
        stats, sink, families = self._tap.stats, self._sink, self._families()
        values = {
            "rebalance_tap_open_connections": stats.open_connections,
            "rebalance_tap_connections_total": stats.connections,
            "rebalance_tap_refused_connections_total": stats.refused,
            "rebalance_tap_unreadable_connections_total": stats.opaque,
            "rebalance_tap_frames_total": stats.frames,
            "rebalance_tap_mirror_up": sink.trouble is None and sink.written > 0,
            "rebalance_tap_written_records_total": sink.written,
            "rebalance_tap_buffered_records": sink.buffered,
            "rebalance_tap_buffered_bytes": sink.buffered_bytes,
            "rebalance_tap_lost_records_total": sink.lost,
        }
        for name, value in values.items():
            families[name].add_metric((), value)
        families["rebalance_tap_build_info"].add_metric((version("rebalance-monitor"),), 1)
        for broker in self._tap.brokers:
            families["rebalance_tap_unreachable_total"].add_metric((broker,), stats.unreachable[broker])
        return families.values()

    @staticmethod
    def _families() -> dict[str, GaugeMetricFamily | CounterMetricFamily]:
        return {metric.name: _FAMILIES[metric.kind](metric.name, metric.help, labels=metric.labels) for metric in TAP_METRICS}


@contextlib.contextmanager
def serving(listen: str, tap: Tap, sink: KafkaSink) -> Iterator[str]:
    """Serve a tap's metrics as long as the context lasts; yield the URL.

    :raises ValueError: when the address is invalid.
    :raises streaming.kafka.topics.SetupError: when the server cannot listen on it.
    """
    registry = CollectorRegistry()
    registry.register(TapCollector(tap, sink))
    with opened(listen, registry, option="--metrics", remedy="choose another port") as url:
        yield url
