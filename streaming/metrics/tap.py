"""The metrics of a tap: connections, captured frames, buffered and lost records; and its probes.

Clients reach Kafka through the tap. A tap that called itself not ready while the mirror is away would lose its clients to that. So
both probes ask only whether it passes bytes on; ``rebalance_tap_mirror_up`` shows the state of the mirror.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from streaming.metrics.families import SamplesCollector
from streaming.metrics.server import Probes, opened
from streaming.metrics.table import TAP_METRICS

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from streaming.metrics.families import Samples
    from streaming.mirror.producer import KafkaSink
    from streaming.mirror.tap import Tap


def collector(tap: Tap, sink: KafkaSink) -> SamplesCollector:
    """Return the collector of a tap's metrics."""
    return SamplesCollector(TAP_METRICS, lambda: _samples(tap, sink))


def _samples(tap: Tap, sink: KafkaSink) -> Samples:
    stats = tap.stats
    yield "rebalance_tap_build_info", 1, (version("rebalance-monitor"),)
    yield "rebalance_tap_open_connections", stats.open_connections, ()
    yield "rebalance_tap_connections_total", stats.connections, ()
    for broker in tap.brokers:
        yield "rebalance_tap_unreachable_total", stats.unreachable[broker], (broker,)
    yield "rebalance_tap_refused_connections_total", stats.refused, ()
    yield "rebalance_tap_unreadable_connections_total", stats.opaque, ()
    yield "rebalance_tap_ended_connections_total", tap.stand_in.stats.ended if tap.stand_in is not None else 0, ()
    yield "rebalance_tap_frames_total", stats.frames, ()
    yield "rebalance_tap_mirror_up", sink.trouble is None and sink.written > 0, ()
    yield "rebalance_tap_written_records_total", sink.written, ()
    yield "rebalance_tap_buffered_records", sink.buffered, ()
    yield "rebalance_tap_buffered_bytes", sink.buffered_bytes, ()
    yield "rebalance_tap_lost_records_total", sink.lost, ()


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


def serving(listen: str, tap: Tap, sink: KafkaSink) -> AbstractContextManager[str]:
    """Serve metrics and probes of a tap that runs in this loop, as long as the context lasts; it gives the URL of the metrics.

    :raises streaming.errors.SetupError: when the address is invalid, or cannot be listened on.
    """
    answers = probes(asyncio.get_running_loop())
    return opened(listen, collector(tap, sink), answers, option="--metrics", remedy="choose another port")
