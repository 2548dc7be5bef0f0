"""Which taps have fallen silent while others still write: their clients are cut off, and nothing else shows it.

Each tap writes a tick to every partition each second, with its host and its listeners. One that ticks no longer is missed. When all fall
silent, the mirror is (V-03), and nobody is missed here: without records no time passes.

A tap is known by its place, so that one that was started again is the same. A silent one is not missed while a tap on another host has the
same listeners before the same brokers: as a pod that took the place of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from coordinator_model.stored import Stored
from coordinator_model.wire.record import Place

SILENT_US: Final = 12_000_000  #: ticks come each second; a tap that is started again is back sooner
_MISSED_US: Final = 86_400_000_000  #: one that is silent for longer was taken away
_AT_MOST: Final = 256
_OF_ITS_HOST: Final = ("localhost:", "127.", "[::1]:")


class SilentTap(NamedTuple):
    """A tap that ticked before, and does so no longer."""

    cluster: str
    place: Place
    ticked_us: int  #: when its newest tick came


class TapWatch(Stored):
    """When each tap ticked last, by the partition's clock: the clocks of hosts differ."""

    ticked: dict[tuple[str, str, str], int] = {}  #: cluster, host and listeners → time

    def note(self, cluster: str, place: Place, now_us: int) -> None:
        """Take note of a tick."""
        self.ticked[cluster, *place] = now_us
        if len(self.ticked) > _AT_MOST:
            del self.ticked[min(self.ticked, key=self.ticked.__getitem__)]

    def silent(self, now_us: int, since_us: int) -> Iterator[SilentTap]:
        """Yield the taps that are missed.

        :param since_us: end of the last time in which nothing at all was captured: what follows it says nothing of the time before.
        """
        for (cluster, host, listeners), ticked_us in list(self.ticked.items()):
            if now_us - ticked_us > _MISSED_US:
                del self.ticked[cluster, host, listeners]
            elif now_us - max(ticked_us, since_us) > SILENT_US and not self._is_replaced(cluster, listeners, now_us):
                yield SilentTap(cluster, Place(host, listeners), ticked_us)

    def _is_replaced(self, cluster: str, listeners: str, now_us: int) -> bool:
        if any(listener.partition("=")[2].startswith(_OF_ITS_HOST) for listener in listeners.split(",")):
            return False  # a tap on each broker's host: equal listeners, and each before another broker
        return any(
            known[0] == cluster and known[2] == listeners and now_us - ticked_us <= SILENT_US
            for known, ticked_us in self.ticked.items()
        )
