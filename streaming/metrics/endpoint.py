"""The HTTP endpoint of ``rebalance-monitor run``: opened before anything else, fed by the result topics and by the running monitor.

The trap: a port that is taken must be said before Spark is started, not after. And whatever goes wrong with metrics later must not end
the monitor: they are the mirror in which it is seen, not what it does.
"""

from __future__ import annotations

import contextlib
import errno
import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

from streaming.metrics.board import Board
from streaming.metrics.collector import Collector
from streaming.metrics.feed import Feed
from streaming.metrics.settings import parse_address
from streaming.sinks.topics import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from wsgiref.simple_server import WSGIServer

    from streaming.config import MonitorConfig
    from streaming.metrics.settings import Metrics
    from streaming.monitor import Monitor
    from streaming.sinks.topics import Mirror


class Endpoint:
    """What the driver's loop sees of the metrics."""

    def __init__(self, board: Board, url: str) -> None:
        self.url = url
        self._board = board
        self._seen: str | None = None

    def observe(self, monitor: Monitor) -> None:
        """Take note of how the monitor is; to be called several times a second."""
        board, progress = self._board, monitor.progress
        board.observe(running=monitor.is_running, restarts=monitor.restarts.copy())
        if progress is not None and progress.at != self._seen:
            self._seen = progress.at
            board.observe_progress(time.time(), progress.batch_ms / 1_000 if progress.rows else None)


@contextlib.contextmanager
def serving(config: MonitorConfig, mirror: Mirror) -> Iterator[Endpoint | None]:
    """Serve metrics as long as the context lasts; None if they are not wanted.

    :raises SetupError: when the address cannot be listened on.
    """
    settings = config.metrics
    if not settings.enabled:
        yield None
        return
    board = Board(mirror.topic)
    registry = CollectorRegistry()
    registry.register(Collector(board, settings))
    ProcessCollector(registry=registry)
    server = _listen(settings, registry)
    host, port = server.server_address[:2]
    shown = f"[{host!s}]" if ":" in str(host) else str(host)
    try:
        with Feed(config, mirror, board):
            yield Endpoint(board, f"http://{shown}:{port}/metrics")
    finally:
        server.shutdown()
        server.server_close()


def _listen(settings: Metrics, registry: CollectorRegistry) -> WSGIServer:
    address = parse_address(settings.listen)
    try:
        server, _thread = start_http_server(address.port, address.host, registry)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SetupError(
                f"metrics.listen: {settings.listen} is in use, by another monitor perhaps; set another port, or metrics.enabled = false"
            ) from None
        raise SetupError(f"metrics.listen: cannot listen on {settings.listen}: {error.strerror or error}") from None
    return server
