"""Hands the results of an engine to readers in the same process, as topics would: to the page, metrics, alerts and the terminal.

The engine never waits for a reader. Of each key a reader gets the newest value, as from a compacted topic, so what waits for it is bounded
by what there is; of events, which have no key, the oldest are dropped when too many wait.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from streaming.kafka.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from streaming.engine.results import OutputRow, Outputs

EVENTS_WAITING: Final = 20_000


class Handover:
    """Takes rows of result topics, in the engine's thread.

    :param outputs: names of the topics.
    :param offsets: the next one of each topic; those of an earlier run go on.
    """

    def __init__(self, outputs: Outputs, offsets: Mapping[str, int]) -> None:
        self.offsets = Counter(offsets)
        self._events = outputs.events
        self._feeds: list[LocalFeed] = []

    def feed(self, *topics: str) -> LocalFeed:
        """Return a new reader of these topics, which gets what is handed on from now on."""
        return self._added(LocalFeed(topics, self, each={self._events}))

    def log(self, *topics: str) -> LocalFeed:
        """Return a new reader that gets each record of these topics, not only the newest of a key."""
        return self._added(LocalFeed(topics, self, each=topics))

    def _added(self, feed: LocalFeed) -> LocalFeed:
        self._feeds.append(feed)
        return feed

    def hand_on(self, rows: Iterable[OutputRow]) -> None:
        """Give rows to the readers of their topics."""
        now_s = time.time()
        records = []
        for topic, key, value in rows:
            offset = self.offsets[topic]
            self.offsets[topic] += 1
            records.append(Record(topic, 0, offset, key.encode(), None if value is None else value.encode(), now_s))
        for feed in self._feeds:
            feed.put(records)

    def drop(self, feed: LocalFeed) -> None:
        """Forget a reader."""
        if feed in self._feeds:
            self._feeds.remove(feed)


class LocalFeed:
    """What one reader has not taken yet; a ``Feed`` (``streaming.published.feed``).

    :param each: topics of which each record counts, as of events.
    """

    in_trouble = False

    def __init__(self, topics: Iterable[str], handover: Handover, each: Iterable[str]) -> None:
        self.ends: dict[tuple[str, int], int] = {}
        self.dropped = 0  #: events that the reader was too slow for
        self._topics = frozenset(topics)
        self._handover = handover
        self._each = frozenset(each)
        self._waiting: dict[tuple[str, bytes | int], Record] = {}
        self._events = 0
        self._came = threading.Condition()

    def put(self, records: Iterable[Record]) -> None:
        """Add what came, in the engine's thread."""
        with self._came:
            for record in records:
                if record.topic not in self._topics:
                    continue
                is_event = record.topic in self._each
                key = (record.topic, record.offset if is_event else record.key or b"")
                self._waiting.pop(key, None)
                self._waiting[key] = record
                self._events += is_event
            while self._events > EVENTS_WAITING:
                del self._waiting[next(key for key in self._waiting if key[0] in self._each)]
                self._events -= 1
                self.dropped += 1
            self._came.notify()

    def start(self) -> None:
        """Take what waits now for what was there at the start."""
        self.ends = {(topic, 0): self._handover.offsets[topic] for topic in self._topics}

    def history(self) -> Iterator[Record]:
        """What was there at the start."""
        yield from self.poll(0.0)

    def poll(self, timeout_s: float) -> list[Record]:
        """What came, waiting up to ``timeout_s`` for something."""
        with self._came:
            if not self._waiting:
                self._came.wait(timeout_s)
            waiting, self._waiting, self._events = self._waiting, {}, 0
        return list(waiting.values())

    def was_there(self, record: Record) -> bool:
        """Whether the record is older than the reading."""
        return record.offset < self.ends.get((record.topic, 0), 0)

    def close(self) -> None:
        """Read no more."""
        self._handover.drop(self)
