"""The HTTP endpoint of ``rebalance-monitor run``: opened before anything else, fed by the result topics and by the running monitor.

The trap: a port that is taken must be said before Spark is started, not after. And whatever goes wrong with metrics later must not end
the monitor: they are the mirror in which it is seen, not what it does.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from streaming.metrics.collector import Collector
from streaming.metrics.feed import MetricsFeed
from streaming.metrics.server import opened
from streaming.metrics.state import MetricsState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streaming.config.settings import MonitorConfig
    from streaming.kafka.topics import Mirror
    from streaming.sinks.findings import FindingsReader
    from streaming.spark.monitor import Monitor


class Endpoint:
    """What the driver's loop sees of the metrics."""

    def __init__(self, board: MetricsState, url: str, feed: MetricsFeed) -> None:
        self.url = url
        self._feed = feed
        self._board = board
        self._seen: str | None = None

    def observe(self, monitor: Monitor, reader: FindingsReader) -> None:
        """Take note of how the monitor is; to be called several times a second."""
        board, progress = self._board, monitor.progress
        clients = {
            "findings_writer": monitor.writer.refused,
            "findings_reader": reader.refused,
            "metrics_reader": self._feed.refused,
        }
        accepted = {name: refused is None for name, refused in clients.items()}
        board.observe(running=monitor.is_running and all(accepted.values()), restarts=monitor.restarts.copy(), accepted=accepted)
        if progress is not None and progress.at != self._seen:
            self._seen = progress.at
            batch_s = progress.batch_ms / 1_000 if progress.rows else None
            board.observe_progress(time.time(), batch_s, progress.read)


@contextlib.contextmanager
def serving(
    config: MonitorConfig, mirror: Mirror, *, tell: Callable[[str], None] = lambda _sentence: None
) -> Iterator[Endpoint | None]:
    """Serve metrics as long as the context lasts; None if they are not wanted.

    :raises SetupError: when the address cannot be listened on.
    """
    settings = config.metrics
    if not settings.enabled:
        yield None
        return
    board = MetricsState(mirror.topic)
    registry = CollectorRegistry()
    registry.register(Collector(board, settings))
    remedy = "set another port, or metrics.enabled = false"
    with (
        opened(settings.listen, registry, option="metrics.listen", remedy=remedy) as url,
        MetricsFeed(config, mirror, board, tell=tell) as feed,
    ):
        yield Endpoint(board, url, feed)
