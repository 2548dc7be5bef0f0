"""The metrics of a notifier: what each receiver accepted and rejected, and whether it can be reached; and its probes."""

from __future__ import annotations

import contextlib
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from streaming.metrics.server import Probes, opened
from streaming.metrics.table import NOTIFY_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric as Family

    from streaming.notify.notifier import Notifier

STUCK_S: Final = 60.0
"""The loop comes round several times a second, with or without Kafka."""

_FAMILIES: Final = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}


class NotifyCollector:
    """Registered with prometheus_client, which calls :meth:`collect` in the thread of a scrape."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    def describe(self) -> Iterable[Family]:
        return self._families().values()

    def collect(self) -> Iterable[Family]:
        notifier, families = self._notifier, self._families()
        values = {
            "rebalance_notify_kafka_up": not notifier.in_trouble,
            "rebalance_notify_open_findings": len(notifier.open),
            "rebalance_notify_unreadable_records_total": notifier.unreadable,
        }
        for name, value in values.items():
            families[name].add_metric((), value)
        families["rebalance_notify_build_info"].add_metric((version("rebalance-monitor"),), 1)
        for dispatcher in notifier.dispatchers:
            families["rebalance_notify_sent_total"].add_metric((dispatcher.name,), dispatcher.accepted)
            families["rebalance_notify_rejected_total"].add_metric((dispatcher.name,), dispatcher.refused)
            families["rebalance_notify_failures"].add_metric((dispatcher.name,), dispatcher.failures)
        return families.values()

    @staticmethod
    def _families() -> dict[str, GaugeMetricFamily | CounterMetricFamily]:
        return {metric.name: _FAMILIES[metric.kind](metric.name, metric.help, labels=metric.labels) for metric in NOTIFY_METRICS}


def probes(notifier: Notifier) -> Probes:
    """Return the probes of a notifier that has read the topics: not ready while it cannot go on reading them, not healthy when it hangs."""

    def unhealthy() -> str | None:
        still_s = time.monotonic() - notifier.looked_s
        return None if still_s < STUCK_S else f"nothing was read for {still_s:.0f} s: the notifier hangs"

    def unready() -> str | None:
        return "Kafka cannot be read" if notifier.in_trouble else unhealthy()

    return Probes(unhealthy, unready)


@contextlib.contextmanager
def serving(listen: str, notifier: Notifier) -> Iterator[str]:
    """Serve metrics and probes of a notifier as long as the context lasts; yield the URL of the metrics.

    :raises streaming.errors.SetupError: when the address is invalid, or cannot be listened on.
    """
    registry = CollectorRegistry()
    registry.register(NotifyCollector(notifier))
    with opened(listen, registry, probes(notifier), option="--metrics", remedy="choose another port") as url:
        yield url
