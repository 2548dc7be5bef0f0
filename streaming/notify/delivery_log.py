"""The delivery log, which is read at the start: a compacted topic (``kafka_log``), or a file (``file_log``) where no Kafka has the results.

It has one record for each receiver and finding that was sent to it as open. It also has one record for each receiver and partition of the
findings topic: the position below which every finding is processed (``streaming.notify.outbox``); and one for each host on which a notifier
runs, a sign of life. The findings topic is part of the key, so notifiers of several clusters can share one log.

A delivery and its log record are not atomic, and a kill may come between them. So the record is written and flushed right after the
delivery; only what was accepted in those milliseconds is repeated. The record of a resolved finding may be deleted only when the position
has passed it. Otherwise the resolution would look like one that the notifier missed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol

from streaming.kafka.record import ALIVE
from streaming.notify.notification import Delivered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_POSITION: Final = "@"


class Memory:
    """The content of the delivery log at the start.

    :param findings: the findings topic; records of other findings topics are ignored.
    """

    def __init__(self, findings: str) -> None:
        self.unreadable = 0  #: number of records that cannot be parsed
        self._prefix = f"{findings}/"
        self._delivered: dict[str, dict[str, Delivered]] = {}
        self._positions: dict[str, dict[int, int]] = {}

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Apply one record of the topic; a newer record replaces an older one with the same key."""
        try:
            name = (key or b"").decode()
            if not name.startswith(self._prefix):
                return
            receiver, _, what = name.removeprefix(self._prefix).rpartition("/")
            if receiver == ALIVE:
                return
            content: dict[str, Any] | None = json.loads(value) if value else None
            self._apply(receiver, what, content)
        except (ValueError, LookupError, TypeError):
            self.unreadable += 1

    def _apply(self, receiver: str, what: str, content: dict[str, Any] | None) -> None:
        if what.startswith(_POSITION):
            if content is not None:
                self._positions.setdefault(receiver, {})[int(what.removeprefix(_POSITION))] = int(content["position"])
        elif content is None:
            self._delivered.get(receiver, {}).pop(what, None)
        else:
            self._delivered.setdefault(receiver, {})[what] = Delivered.from_json(content)

    def delivered(self, receiver: str) -> Mapping[str, Delivered]:
        return self._delivered.get(receiver, {})

    def positions(self, receiver: str) -> Mapping[int, int]:
        return self._positions.get(receiver, {})


class DeliveryLog(Protocol):
    """Stores deliveries and positions."""

    def remember(self, receiver: str, delivered: Mapping[str, Delivered]) -> None:
        """Store what was delivered to a receiver just now, by finding id."""

    def advance(self, receiver: str, positions: Mapping[int, int], forget: Iterable[str]) -> None:
        """Store the positions of a receiver, then delete the records of the finding ids in ``forget``."""

    def live(self, host: str, at_s: float) -> None:
        """Write that the notifier on a host is alive (seconds since the epoch)."""


class NoDeliveryLog:
    """A delivery log for dry runs that stores nothing."""

    def remember(self, receiver: str, delivered: Mapping[str, Delivered]) -> None: ...

    def advance(self, receiver: str, positions: Mapping[int, int], forget: Iterable[str]) -> None: ...

    def live(self, host: str, at_s: float) -> None: ...


class KeyedDeliveryLog:
    """A delivery log of keys and values, wherever these are kept.

    :param findings: the findings topic.
    """

    def __init__(self, findings: str) -> None:
        self._findings = findings

    def remember(self, receiver: str, delivered: Mapping[str, Delivered]) -> None:
        for name, content in delivered.items():
            self._write(receiver, name, content.as_json())
        if delivered:
            self.flush()  # while Kafka is unreachable the records stay queued; no new findings arrive then either

    def advance(self, receiver: str, positions: Mapping[int, int], forget: Iterable[str]) -> None:
        for partition, position in positions.items():
            self._write(receiver, f"{_POSITION}{partition}", {"position": position})
        if self.flush():
            for name in forget:
                self._write(receiver, name, None)

    def live(self, host: str, at_s: float) -> None:
        self._write(ALIVE, host, {"at_ms": round(at_s * 1000)})

    def _write(self, receiver: str, what: str, content: dict[str, Any] | None) -> None:
        value = None if content is None else json.dumps(content, separators=(",", ":")).encode()
        self.write(f"{self._findings}/{receiver}/{what}".encode(), value)

    def write(self, key: bytes, value: bytes | None) -> None:
        """Store a record, or that there is none any more."""
        raise NotImplementedError

    def flush(self) -> bool:
        """Wait until all records are stored; return False if they are not."""
        raise NotImplementedError
