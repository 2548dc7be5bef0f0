"""Which taps have fallen silent while others still write, and which write what they kept: nothing is known of their clients meanwhile.

Each tap writes a tick to every partition each second, with its host and its listeners. One that ticks no longer is missed: its clients are
cut off, and nothing else shows it. When all fall silent, the mirror is (V-03), and nobody is missed here: without records no time passes.
After that one tap may write what it kept long before another does, so that its ticks prove nothing about the other: it marks them (*held*).

A tap is known by its place, so that one that was started again is the same. A silent one is not missed while a tap on another host has the
same listeners before the same brokers: as a pod that took the place of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from coordinator_model.stored import Stored
from coordinator_model.wire.record import MirrorRecord, Place, TickFacts

SILENT_US: Final = 12_000_000  #: ticks come each second; a tap that is started again is back sooner
BEHIND_US: Final = 3_000_000  #: three ticks in a row
_CAUGHT_UP_US: Final = 1_500_000
_AWAITED_US: Final = 900_000_000  #: clients of one that is silent for longer are elsewhere, or gone
_MISSED_US: Final = 86_400_000_000  #: one that is silent for longer was taken away
_AT_MOST: Final = 256
_OF_ITS_HOST: Final = ("localhost:", "127.", "[::1]:")


def tap_of(connection: str) -> str:
    """Return the name of the tap that carries a connection, if a tap does."""
    return connection.rpartition("-")[0]


class SilentTap(NamedTuple):
    """A tap that ticked before, and does so no longer."""

    cluster: str
    place: Place
    ticked_us: int  #: when its newest tick came


class Tap(Stored):
    """The process that ticked last at a place. Times are the partition's: the clocks of hosts differ."""

    name: str
    ticked_us: int  #: when its newest tick came
    reached_us: int  #: how far it has written, which is that time unless it writes what it kept
    lag_us: int  #: how long after their own time its ticks come at the least, which shows how its clock differs
    behind_since_us: int = 0  #: since when it writes what it kept, 0 if it does not
    awaited: bool = True  #: what is due in the groups that it showed waits for it


class TapWatch(Stored):
    """When each tap ticked last."""

    ticked: dict[tuple[str, str, str], Tap] = {}  #: by cluster, host and listeners
    held_us: int = 0  #: when the newest tick came that its tap had to keep

    def note(self, record: MirrorRecord, facts: TickFacts, now_us: int) -> str:
        """Take note of a tick at the partition's time; return the name of the process that this one took the place of, "" if none."""
        if facts.held:
            self.held_us = now_us
        if facts.place is None:
            return ""
        key = (record.cluster, *facts.place)
        known = self.ticked.get(key)
        is_another = known is not None and known.name != record.connection
        before = known.name if known is not None and is_another and now_us - known.ticked_us > BEHIND_US else ""
        lag_us = now_us - record.at_us
        if known is None or is_another:
            self.ticked[key] = Tap(record.connection, now_us, now_us, lag_us)
        else:
            least_us = min(known.lag_us, lag_us)
            since_us = known.behind_since_us or (now_us if now_us - known.reached_us > BEHIND_US else 0)
            if since_us and now_us - since_us > _AWAITED_US:
                least_us = lag_us  # it does not catch up: its clock was set back
            if lag_us - least_us <= _CAUGHT_UP_US:
                since_us = 0
            self.ticked[key] = Tap(record.connection, now_us, record.at_us + least_us, least_us, since_us)
        if len(self.ticked) > _AT_MOST:
            del self.ticked[min(self.ticked, key=lambda one: self.ticked[one].ticked_us)]
        return before

    def behind(self, now_us: int) -> frozenset[str]:
        """Return the names of the taps of which nothing is known for seconds while others write, but for those that were replaced."""
        if len(self.ticked) < 2:
            return frozenset()
        return frozenset(
            tap.name
            for (cluster, host, listeners), tap in self.ticked.items()
            if tap.awaited
            and (tap.behind_since_us or now_us - tap.reached_us > BEHIND_US)
            and not self._is_replaced((cluster, host, listeners), now_us)
        )

    def given_up(self, now_us: int) -> Iterator[str]:
        """Yield the names of the taps that are awaited no longer, once each."""
        for tap in self.ticked.values():
            if tap.awaited and now_us - tap.ticked_us > _AWAITED_US:
                tap.awaited = False
                yield tap.name

    def silent(self, now_us: int, since_us: int) -> Iterator[SilentTap]:
        """Yield the taps that are missed.

        :param since_us: end of the last time in which nothing at all was captured: what follows it says nothing of the time before.
        """
        since_us = max(since_us, self.held_us)
        for (cluster, host, listeners), tap in list(self.ticked.items()):
            if now_us - tap.ticked_us > _MISSED_US:
                del self.ticked[cluster, host, listeners]
            elif now_us - max(tap.ticked_us, since_us) > SILENT_US and not self._is_replaced((cluster, host, listeners), now_us):
                yield SilentTap(cluster, Place(host, listeners), tap.ticked_us)

    def _is_replaced(self, tap: tuple[str, str, str], now_us: int) -> bool:
        cluster, host, listeners = tap
        if any(listener.partition("=")[2].startswith(_OF_ITS_HOST) for listener in listeners.split(",")):
            return False  # a tap on each broker's host: equal listeners, and each before another broker
        return any(
            (known[0], known[2]) == (cluster, listeners) and known[1] != host and now_us - other.ticked_us <= SILENT_US
            for known, other in self.ticked.items()
        )
