"""The metrics of the table as prometheus_client's families, and the collector of a process that reads their values off its own objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, SummaryMetricFamily

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

    from streaming.metrics.table import Metric

_FAMILIES: Final[dict[str, Callable[..., Family]]] = {
    "gauge": GaugeMetricFamily,
    "counter": CounterMetricFamily,
    "histogram": HistogramMetricFamily,
    "summary": SummaryMetricFamily,
}

Samples = Iterable[tuple[str, float, tuple[str, ...]]]
"""Metric, value and labels of each."""


def families_of(metrics: Iterable[Metric]) -> dict[str, Any]:
    """Return the families by name, without samples."""
    return {metric.name: _FAMILIES[metric.kind](metric.name, metric.help, labels=metric.labels) for metric in metrics}


class SamplesCollector:
    """Registered with prometheus_client, which calls :meth:`collect` in the thread of a scrape.

    :param samples: returns the values of now.
    """

    def __init__(self, metrics: Iterable[Metric], samples: Callable[[], Samples]) -> None:
        self._metrics = metrics
        self._samples = samples

    def describe(self) -> Iterable[Family]:
        return families_of(self._metrics).values()

    def collect(self) -> Iterable[Family]:
        families = families_of(self._metrics)
        for name, value, labels in self._samples():
            families[name].add_metric(labels, value)
        return families.values()
