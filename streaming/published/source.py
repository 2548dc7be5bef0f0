"""Where the published records come from: the result topics, followed for as long as it runs.

Topics may be missing, refused or out of reach for a while, and the page must say so instead of showing the past as if it were now.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException, TopicPartition

from streaming.background import Background
from streaming.errors import SetupError
from streaming.kafka.compacted import CompactedReader, TopicError
from streaming.kafka.watermarks import bounds_of
from streaming.published.page_state import KEPT_S
from streaming.published.taking import Taker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streaming.kafka.record import Record
    from streaming.published.page_state import PageState
    from streaming.published.taking import TopicNames

_WAIT_S: Final = 0.1
_RETRY_S: Final = 3.0
_ASK_AGAIN_S: Final = 10.0
_LOOK_AT_THE_MIRROR_EVERY_S: Final = 5.0

_log: Final = logging.getLogger(__name__)


class _OptionalReader:
    """Topics that may not be there yet: a monitor of an earlier release writes no events, and one that does not ask for lag none of that.

    :param missing: called with the reason why there are no records, and None once there are.
    """

    def __init__(self, reader: CompactedReader, missing: Callable[[str | None], None] = lambda _why: None) -> None:
        self._reader = reader
        self._missing = missing
        self._ask_at_s = 0.0

    def poll(self) -> list[Record]:
        reader = self._reader
        if not reader.ends:
            if time.monotonic() < self._ask_at_s:
                return []
            self._ask_at_s = time.monotonic() + _ASK_AGAIN_S
            try:
                reader.start(patience_s=0)
            except SetupError as error:
                self._missing(str(error))
                return []
            self._missing(None)
        return reader.poll(_WAIT_S)

    def caught_up(self) -> bool:
        """Whether everything is read that was there."""
        return not self._reader.ends or self._reader.caught_up()


def read_topics(state: PageState, properties: Callable[[], Mapping[str, Any]], names: TopicNames, *, since_s: float) -> None:
    """Read the result topics to their end, events from a moment on.

    :param properties: returns librdkafka's properties.
    :raises SetupError: when one cannot be read; that of events and that of lag may be missing.
    """
    taker = Taker(state, names)
    with CompactedReader(properties, (names.groups, names.findings, names.status), "the reader") as reader:
        reader.start(patience_s=0)
        for record in reader.history():
            taker.take(record)
    later: tuple[tuple[str, Callable[[str], None]], ...] = ((names.events, state.say_no_events), (names.lag, lambda _: None))
    for topic, missing in later:
        with CompactedReader(properties, (topic,), "the reader", since_s=since_s if topic == names.events else None) as reader:
            try:
                reader.start(patience_s=0)
            except TopicError as error:
                missing(str(error))
                continue
            for record in reader.history():
                taker.take(record)
    state.read_to_the_end()


class TopicsSource(Background):
    """Follows the result topics in a thread; a context manager.

    :param properties: returns librdkafka's properties.
    """

    def __init__(self, state: PageState, properties: Callable[[], Mapping[str, Any]], names: TopicNames) -> None:
        super().__init__("topics")
        self._state = state
        self._properties = properties
        self._names = names
        self._taker = Taker(state, names)
        self._look_at_s = 0.0

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except Exception as error:  # the page goes on showing what it has, and says that it is old
                _log.exception("the result topics are followed anew")
                self._state.say(f"the topics cannot be read: {error}")
            self._stop.wait(_RETRY_S)

    def _follow(self) -> None:
        names, since_s = self._names, time.time() - KEPT_S
        results = (names.groups, names.findings, names.status)
        with (
            CompactedReader(self._properties, results, "the reader", trouble=self._state.say) as reader,
            CompactedReader(self._properties, (names.events,), "the reader", since_s=since_s) as events_reader,
            CompactedReader(self._properties, (names.lag,), "the reader") as lag_reader,
        ):
            events, lag = _OptionalReader(events_reader, self._state.say_no_events), _OptionalReader(lag_reader)
            while not self._stop.is_set() and not self._started(reader):
                self._stop.wait(_RETRY_S)
            while not self._stop.is_set():
                for record in [*reader.poll(_WAIT_S), *events.poll(), *lag.poll()]:
                    self._taker.take(record)
                self._look_at_the_mirror(reader)
                if not reader.in_trouble:
                    self._state.say(None)
                if not self._state.complete and reader.caught_up() and events.caught_up() and lag.caught_up():
                    self._state.read_to_the_end()

    def _started(self, reader: CompactedReader) -> bool:
        try:
            reader.start(patience_s=0)
        except (TopicError, SetupError) as error:
            self._state.say(str(error))
            return False
        return True

    def _look_at_the_mirror(self, reader: CompactedReader) -> None:
        """Take note of how far the mirror goes, now and then; without the right to see that topic its lag is not known."""
        if time.monotonic() < self._look_at_s:
            return
        self._look_at_s = time.monotonic() + _LOOK_AT_THE_MIRROR_EVERY_S
        for partition, status in list(self._state.status.items()):
            try:
                place = TopicPartition(str(status.get("topic") or ""), partition)
                self._state.mirror_end(partition, bounds_of(reader.client, place, within_s=1.0)[1])
            except (KafkaException, ValueError):
                return
