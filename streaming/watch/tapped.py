"""Input of an own tap: clients connect to it, and it passes every byte on to the brokers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from coordinator_model.wording import counted
from streaming.errors import SetupError
from streaming.mirror.listener import TapError
from streaming.mirror.tap import Tap
from streaming.watch.watch import CAPTURE, Tally

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from streaming.mirror.listener import Listener
    from streaming.watch.watch import Watch

_TEND_S: Final = 0.05


class TapInput:
    """A tap and the monitor in one process.

    :param tell: called with a sentence for each address that it listens on.
    """

    def __init__(self, listeners: Sequence[Listener], *, cluster: str, tell: Callable[[str], None]) -> None:
        self.title = f"a tap before {', '.join(listener.broker for listener in listeners)}"
        self.topic = CAPTURE
        self._listeners = listeners
        self._cluster = cluster
        self._tell = tell
        self._tap: Tap | None = None

    def run(self, watch: Watch, stop: threading.Event) -> None:
        """Stand between clients and brokers until ``stop`` is set."""
        try:
            asyncio.run(self._serve(watch, stop))
        except TapError as error:
            raise SetupError(str(error)) from None

    async def _serve(self, watch: Watch, stop: threading.Event) -> None:
        self._tap = Tap(self._listeners, watch, cluster=self._cluster)
        async with self._tap as running:
            for address, listener in zip(running.addresses, self._listeners, strict=True):
                self._tell(f"listening on {address} for broker {listener.broker}")
            while not stop.is_set():
                watch.tend()
                await asyncio.sleep(_TEND_S)

    def tally(self) -> Tally:
        """Return what was read; a tap loses nothing."""
        return Tally()

    def why_nothing(self) -> str | None:
        """Why no frame of a group was read, and the next step."""
        stats = self._tap.stats if self._tap is not None else None
        if stats is None or stats.frames:
            return None
        if stats.unreachable:
            return f"broker {next(iter(stats.unreachable))} cannot be reached: clients are turned away. Check --listen."
        if stats.opaque:
            return (
                f"{stats.opaque:,} of {counted(stats.connections, 'connection')} cannot be read, as with TLS that passes "
                "through. Read the brokers' "
                "request log (--request-log), or give 'rebalance-monitor tap' certificates."
            )
        if not stats.connections:
            return "No client has connected to the tap: the brokers have to advertise its address (docs/tap.md)."
        return f"{counted(stats.connections, 'connection')} through the tap, and no request of a group: the coordinator is another broker."
