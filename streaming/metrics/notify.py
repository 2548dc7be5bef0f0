"""The metrics of a notifier: what each receiver accepted and rejected, and whether it can be reached; and its probes."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from streaming.metrics.families import SamplesCollector
from streaming.metrics.server import Probes, opened
from streaming.metrics.table import NOTIFY_METRICS

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from streaming.metrics.families import Samples
    from streaming.notify.notifier import Notifier

STUCK_S: Final = 60.0
"""The loop comes round several times a second, with or without Kafka."""


def _samples(notifier: Notifier) -> Samples:
    yield "rebalance_notify_build_info", 1, (version("rebalance-monitor"),)
    yield "rebalance_notify_kafka_up", not notifier.in_trouble, ()
    yield "rebalance_notify_open_findings", len(notifier.open), ()
    yield "rebalance_notify_unreadable_records_total", notifier.unreadable, ()
    for dispatcher in notifier.dispatchers:
        yield "rebalance_notify_sent_total", dispatcher.accepted, (dispatcher.name,)
        yield "rebalance_notify_rejected_total", dispatcher.refused, (dispatcher.name,)
        yield "rebalance_notify_failures", dispatcher.failures, (dispatcher.name,)


def probes(notifier: Notifier) -> Probes:
    """Return the probes of a notifier that has read the topics: not ready while it cannot go on reading them, not healthy when it hangs."""

    def unhealthy() -> str | None:
        still_s = time.monotonic() - notifier.looked_s
        return None if still_s < STUCK_S else f"nothing was read for {still_s:.0f} s: the notifier hangs"

    def unready() -> str | None:
        return "Kafka cannot be read" if notifier.in_trouble else unhealthy()

    return Probes(unhealthy, unready)


def serving(listen: str, notifier: Notifier) -> AbstractContextManager[str]:
    """Serve metrics and probes of a notifier as long as the context lasts; it gives the URL of the metrics.

    :raises streaming.errors.SetupError: when the address is invalid, or cannot be listened on.
    """
    collector = SamplesCollector(NOTIFY_METRICS, lambda: _samples(notifier))
    return opened(listen, collector, probes(notifier), option="--metrics", remedy="choose another port")
