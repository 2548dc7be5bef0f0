"""The metrics of a tap: connections, captured frames, buffered and lost records; and its probes.

Clients reach Kafka through the tap. A tap that called itself not ready while the mirror is away would lose its clients to that. So
both probes ask only whether it passes bytes on; ``rebalance_tap_mirror_up`` shows the state of the mirror.
"""

from __future__ import annotations

import asyncio
import contextlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from streaming.metrics.server import Probes, opened
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
            "rebalance_tap_ended_connections_total": self._tap.stand_in.stats.ended if self._tap.stand_in is not None else 0,
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


ANSWERS_WITHIN_S: Final = 5.0
"""Who passes all bytes on in one loop comes round much sooner."""


def probes(loop: asyncio.AbstractEventLoop) -> Probes:
    """Return the probes of a tap that listens: does its loop still turn?

    :param loop: in which the tap runs; another thread asks it.
    """

    def stuck() -> str | None:
        turned = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop)
        try:
            turned.result(ANSWERS_WITHIN_S)
        except TimeoutError:
            turned.cancel()
            return f"the tap has passed nothing on for {ANSWERS_WITHIN_S:.0f} s"
        return None

    return Probes(stuck, stuck)


@contextlib.contextmanager
def serving(listen: str, tap: Tap, sink: KafkaSink) -> Iterator[str]:
    """Serve metrics and probes of a tap that runs in this loop, as long as the context lasts; yield the URL of the metrics.

    :raises streaming.errors.SetupError: when the address is invalid, or cannot be listened on.
    """
    registry = CollectorRegistry()
    registry.register(TapCollector(tap, sink))
    answers = probes(asyncio.get_running_loop())
    with opened(listen, registry, answers, option="--metrics", remedy="choose another port") as url:
        yield url
