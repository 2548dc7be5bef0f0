"""What has been told whom: a compacted topic, ``rebalance-notifications``, read at the start.

A topic and not a file, because then the notifier keeps nothing on its disk and may be started anywhere. There is a record for each
receiver and finding that it knows to be open, and one for each receiver and partition of the findings topic with the position below
which all is dealt with (``streaming.notify.outbox``). The findings topic is part of the key, so that notifiers of several clusters can
share one ledger.

The trap: a delivery and its record are two things, and a kill may come between them. So the record is written, and waited for, right
after the delivery; what is repeated after a kill is what was taken in those milliseconds. And the end of a finding may be forgotten only
once the position has passed it, or else it would look like something that happened unseen.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

from streaming.kafka.clients import LastingProducer, Queued
from streaming.kafka.credentials import Credentials
from streaming.notify.notification import Delivered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streaming.config.settings import Kafka

_FLUSH_S: Final = 10.0
_POSITION: Final = "@"


class Memory:
    """What the ledger held at the start.

    :param findings: the findings topic that it is about.
    """

    def __init__(self, findings: str) -> None:
        self.unreadable = 0  #: records that are none of ours
        self._prefix = f"{findings}/"
        self._told: dict[str, dict[str, Delivered]] = {}
        self._positions: dict[str, dict[int, int]] = {}

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record of the topic; the newest of a key counts."""
        try:
            name = (key or b"").decode()
            if not name.startswith(self._prefix):
                return
            receiver, _, what = name.removeprefix(self._prefix).rpartition("/")
            content: dict[str, Any] | None = json.loads(value) if value else None
            self._apply(receiver, what, content)
        except (ValueError, LookupError, TypeError):
            self.unreadable += 1

    def _apply(self, receiver: str, what: str, content: dict[str, Any] | None) -> None:
        if what.startswith(_POSITION):
            if content is not None:
                self._positions.setdefault(receiver, {})[int(what.removeprefix(_POSITION))] = int(content["position"])
        elif content is None:
            self._told.get(receiver, {}).pop(what, None)
        else:
            self._told.setdefault(receiver, {})[what] = Delivered.from_json(content)

    def told(self, receiver: str) -> Mapping[str, Delivered]:
        return self._told.get(receiver, {})

    def positions(self, receiver: str) -> Mapping[int, int]:
        return self._positions.get(receiver, {})


class DeliveryLog(Protocol):
    """Where it is written down."""

    def remember(self, receiver: str, told: Mapping[str, Delivered]) -> None:
        """By finding id, what a receiver was told just now."""

    def advance(self, receiver: str, positions: Mapping[int, int], forget: Iterable[str]) -> None:
        """The positions of a receiver, and then the ids of which nothing need be known any more."""


class NoLedger:
    """For a dry run: nothing is written down."""

    def remember(self, receiver: str, told: Mapping[str, Delivered]) -> None: ...

    def advance(self, receiver: str, positions: Mapping[int, int], forget: Iterable[str]) -> None: ...


class KafkaLedger:
    """Writes the topic. May be used by several threads."""

    def __init__(self, kafka: Kafka, topic: str, findings: str, *, tell: Callable[[str], None] = lambda _sentence: None) -> None:
        self._topic = topic
        self._findings = findings
        self._lock = threading.Lock()  # several threads flush
        self._producer = LastingProducer(Credentials(kafka.for_librdkafka, "the writer of notifications", tell), {"linger.ms": 0})
        self._producer.start()

    def remember(self, receiver: str, told: Mapping[str, Delivered]) -> None:
        for name, content in told.items():
            self._write(receiver, name, content.as_json())
        if told:
            self._flush()  # while Kafka is away it stays queued; there are no new findings then either

    def advance(self, receiver: str, positions: Mapping[int, int], forget: Iterable[str]) -> None:
        for partition, position in positions.items():
            self._write(receiver, f"{_POSITION}{partition}", {"position": position})
        if self._flush():
            for name in forget:
                self._write(receiver, name, None)

    def close(self) -> bool:
        """Wait until everything is written; False when time ran out."""
        return self._flush()

    def _write(self, receiver: str, what: str, content: dict[str, Any] | None) -> None:
        value = None if content is None else json.dumps(content, separators=(",", ":")).encode()
        self._producer.produce(Queued(self._topic, value, f"{self._findings}/{receiver}/{what}".encode()))

    def _flush(self) -> bool:
        with self._lock:
            return self._producer.flush(_FLUSH_S) == 0
