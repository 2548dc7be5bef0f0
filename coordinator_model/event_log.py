"""The events of a partition's groups until they are drained, with those folded that come faster than a person reads.

A client in a loop joins a thousand times a second, and each time is an event. The first :data:`READ` of a kind and a member within a
minute are events of their own; from then on, until the member pauses for ten seconds, those of ten seconds are one, with their number.
The record of a rebalance, and what concerns the group as a whole, is never folded.

Events of a group stay in order: what was folded is written before the next event that is not. Everything here depends on the records
alone, so nothing of it on where batches end.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from msgspec.structs import replace

from coordinator_model.events import AnyMemberEvent, GroupEvent
from coordinator_model.stored import Stored

READ: Final = 20
"""Events of one kind and member that are written within :data:`WINDOW_US`, each by itself."""

WINDOW_US: Final = 60_000_000
FOLDED_US: Final = 10_000_000
"""The longest time that one event stands for, and the pause after which a member's events are written by themselves again."""

_Key = tuple[str, str, str, str]
"""Cluster, group, kind, and the member."""


class _Rate(Stored):
    """How often an event came lately. In milliseconds, since a partition keeps many."""

    since_ms: int
    count: int
    last_ms: int


class _Fold(Stored):
    """Events that will be written as one."""

    since_us: int
    count: int
    last: AnyMemberEvent


class StoredEvents(Stored):
    """What a snapshot holds of them."""

    swept_us: int = 0
    rates: list[tuple[int, int, int, int]] = []  #: checksum of the key, and a rate whose times are before or after ``swept_us``
    folds: list[_Fold] = []


class EventLog:
    """Collects the events of all groups of one partition."""

    def __init__(self, stored: StoredEvents | None = None) -> None:
        known = stored or StoredEvents()
        base_ms = known.swept_us // 1_000
        self._events: list[GroupEvent] = []
        self._rates = {  # by checksum of the key
            number: _Rate(base_ms + since_ms, count, base_ms + last_ms) for number, since_ms, count, last_ms in known.rates
        }
        self._folds: dict[_Key, _Fold] = {_key(fold.last): fold for fold in known.folds}
        self._added = 0
        self._swept_us = known.swept_us

    def __len__(self) -> int:
        """Return how many events were ever added here."""
        return self._added

    def append(self, event: GroupEvent) -> None:
        """Add what happened in a group."""
        self._added += 1
        if isinstance(event, AnyMemberEvent):
            key = _key(event)
            if self._is_too_fast(key, event.at_us):
                known = self._folds.get(key)
                if known is None:
                    self._folds[key] = _Fold(event.at_us, 1, event)
                else:
                    known.count, known.last = known.count + 1, event
                return
        if self._folds:
            self._write([known for known in self._folds if known[:2] == (event.cluster, event.group)])
        self._events.append(event)

    def settle(self, now_us: int) -> None:
        """Let time pass: write what was folded for long enough, and forget what came long ago."""
        if self._folds:
            self._write([key for key, fold in self._folds.items() if now_us >= fold.since_us + FOLDED_US])
        if now_us >= self._swept_us + FOLDED_US:
            self._swept_us = now_us
            self._rates = {key: rate for key, rate in self._rates.items() if now_us // 1_000 < rate.last_ms + FOLDED_US // 1_000}

    def conclude(self) -> None:
        """Write what was folded, since no record follows."""
        self._write(list(self._folds))

    def drain(self) -> list[GroupEvent]:
        """Return the events since the last call, in order."""
        drained, self._events = self._events, []
        return drained

    def stored(self) -> StoredEvents:
        """Return what a snapshot holds. Call :meth:`drain` before."""
        base_ms = self._swept_us // 1_000  # times before or after it take half the bytes
        rates = [(key, rate.since_ms - base_ms, rate.count, rate.last_ms - base_ms) for key, rate in self._rates.items()]
        return StoredEvents(self._swept_us, rates, list(self._folds.values()))

    def _is_too_fast(self, key: _Key, at_us: int) -> bool:
        number = crc32("\x00".join(key).encode(errors="surrogatepass"))
        at_ms = at_us // 1_000
        rate = self._rates.get(number)
        if rate is None:
            rate = self._rates[number] = _Rate(at_ms, 0, at_ms)
        over = rate.count <= READ and at_ms >= rate.since_ms + WINDOW_US // 1_000
        if over or at_ms >= rate.last_ms + FOLDED_US // 1_000:
            rate.since_ms, rate.count = at_ms, 0
        rate.count += 1
        rate.last_ms = at_ms
        return rate.count > READ

    def _write(self, keys: list[_Key]) -> None:
        folds = [self._folds.pop(key) for key in keys]
        self._events += (_folded(fold) for fold in sorted(folds, key=lambda fold: fold.last.at_us))


def _key(event: AnyMemberEvent) -> _Key:
    """Return what events are counted by."""
    member = event.instance_id or event.member_id or f"{event.client_id} {event.client_address}"
    return event.cluster, event.group, event.kind, member


def _folded(fold: _Fold) -> AnyMemberEvent:
    return fold.last if fold.count == 1 else replace(fold.last, count=fold.count, since_us=fold.since_us)
