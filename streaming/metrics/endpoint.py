"""The metrics endpoint of ``rebalance-monitor run``.

It is opened before Spark starts, so that a port in use is reported at once. A later failure of the metrics does not end the monitor.
Beside the metrics it answers the probes (``vitals``).
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from streaming.metrics.collector import Collector
from streaming.metrics.feed import MetricsFeed
from streaming.metrics.lag import LagWatch
from streaming.metrics.metrics_state import MetricsState
from streaming.metrics.server import opened
from streaming.metrics.vitals import Vitals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streaming.config.settings import MonitorConfig
    from streaming.kafka.topics import Mirror
    from streaming.sinks.findings import FindingsReader
    from streaming.spark.monitor import Monitor


class Endpoint:
    """The driver loop's handle on the metrics: the URL, and :meth:`observe` for the monitor's own figures."""

    def __init__(self, metrics_state: MetricsState, vitals: Vitals, url: str, feed: MetricsFeed) -> None:
        self.url = url
        self._feed = feed
        self._vitals = vitals
        self._metrics_state = metrics_state
        self._seen: str | None = None

    def observe(self, monitor: Monitor, reader: FindingsReader) -> None:
        """Record the monitor's status and progress; to be called several times a second."""
        metrics_state, progress = self._metrics_state, monitor.progress
        clients = {
            "findings_writer": monitor.writer.refused,
            "findings_reader": reader.refused,
            "metrics_reader": self._feed.refused,
        }
        accepted = {name: refused is None for name, refused in clients.items()}
        running = monitor.is_running and all(accepted.values())
        metrics_state.observe(running=running, restarts=monitor.restarts.copy(), accepted=accepted)
        self._vitals.observe(running=running)
        if progress is not None and progress.at != self._seen:
            self._seen = progress.at
            self._vitals.observe_progress()
            batch_s = progress.batch_ms / 1_000 if progress.rows else None
            metrics_state.observe_progress(time.time(), batch_s, progress.read)


@contextlib.contextmanager
def serving(
    config: MonitorConfig, mirror: Mirror, *, tell: Callable[[str], None] = lambda _sentence: None
) -> Iterator[Endpoint | None]:
    """Serve metrics as long as the context lasts; yield None if they are disabled.

    :raises SetupError: when the endpoint cannot listen on the address.
    """
    settings = config.metrics
    if not settings.enabled:
        if config.lag.enabled:
            tell("lag.enabled has no effect without metrics.enabled")
        yield None
        return
    metrics_state, vitals = MetricsState(mirror.topic), Vitals()
    collector = Collector(metrics_state, settings, max_partitions=config.lag.max_partitions)
    remedy = "set another port, or metrics.enabled = false"
    with (
        opened(settings.listen, collector, vitals.probes, option="metrics.listen", remedy=remedy) as url,
        MetricsFeed(config, mirror, metrics_state, vitals, tell=tell) as feed,
        LagWatch(config, metrics_state, tell=tell) if config.lag.enabled else contextlib.nullcontext(),
    ):
        yield Endpoint(metrics_state, vitals, url, feed)
