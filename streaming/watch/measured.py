"""Metrics of a watch: those of the groups as the job has them, on what the engine hands on."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streaming.metrics.collector import Collector
from streaming.metrics.metrics_state import FINDINGS, GROUPS, STATUS, MetricsState
from streaming.metrics.server import Probes, opened
from streaming.watch.shown import FeedThread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streaming.config.metrics import Metrics
    from streaming.engine.handover import LocalFeed
    from streaming.engine.results import Outputs
    from streaming.kafka.record import Record
    from streaming.watch.self_check import SelfCheck
    from streaming.watch.shown import Failed


@contextmanager
def measuring(
    listen: str, settings: Metrics, feed: LocalFeed, *, outputs: Outputs, topic: str, check: SelfCheck, failed: Failed
) -> Iterator[str]:
    """Serve metrics as long as the context lasts; yield their URL.

    :raises SetupError: when the address cannot be listened on.
    """
    state = MetricsState(topic)
    kinds = {outputs.findings: FINDINGS, outputs.groups: GROUPS, outputs.status: STATUS}

    def take(records: list[Record]) -> None:
        state.take(records, kinds)
        if not state.is_complete():
            state.read_to_the_end()
        state.observe(running=True, restarts=Counter())
        state.observe_progress(time.time(), None, {})

    probes = Probes(lambda: None, lambda: check.nothing)
    with (
        opened(listen, Collector(state, settings), probes, option="--metrics", remedy="name another port") as url,
        FeedThread(feed, take, "metrics", failed),
    ):
        yield url
