"""Where the published records come from: the result topics, followed for as long as it runs, or a file that is read once.

Topics may be missing, refused or out of reach for a while, and the page must say so instead of showing the past as if it were now.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from confluent_kafka import KafkaException, TopicPartition

from streaming.errors import SetupError
from streaming.kafka.compacted import CompactedReader, Record, TopicError
from streaming.kafka.watermarks import bounds_of
from streaming.published.page_state import KEPT_S
from streaming.published.records import Json, event_of, finding_of, group_of, lag_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    from coordinator_model.events import GroupEvent
    from coordinator_model.finding import Finding
    from coordinator_model.group_view import GroupView
    from streaming.published.page_state import Key, PageState

_WAIT_S: Final = 0.1
_RETRY_S: Final = 3.0
_ASK_AGAIN_S: Final = 10.0
_LOOK_AT_THE_MIRROR_EVERY_S: Final = 5.0

_log: Final = logging.getLogger(__name__)


class TopicNames(NamedTuple):
    """The topics that the page reads."""

    groups: str
    findings: str
    status: str
    events: str
    lag: str


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


class _Taker:
    """Takes records of the topics into the page's state."""

    def __init__(self, state: PageState, names: TopicNames) -> None:
        self._state = state
        self._names = names
        self._keys: dict[str, Key] = {}  # of a group's record → cluster and group: a tombstone has the key alone

    def take(self, record: Record) -> None:
        match record.topic:
            case self._names.groups:
                is_read = self._group(record)
            case self._names.findings:
                is_read = self._finding(record)
            case self._names.events:
                is_read = self._event(record)
            case self._names.lag:
                is_read = self._lag(record)
            case _:
                is_read = self._status(record)
        if not is_read:
            self._state.unreadable += 1

    def _group(self, record: Record) -> bool:
        content = None if record.value is None else group_of(record.value)
        if content is not None:
            self._keys[record.name] = (content["cluster"], content["group"])
            self._state.group(self._keys[record.name], content)
        elif record.value is None and record.name in self._keys:
            self._state.group(self._keys.pop(record.name), None)
        return content is not None or record.value is None

    def _finding(self, record: Record) -> bool:
        content = None if record.value is None else finding_of(record.value)
        if content is not None or record.value is None:
            self._state.finding(record.name, content)
            return True
        return False

    def _event(self, record: Record) -> bool:
        content = None if record.value is None else event_of(record.value)
        if content is not None:
            self._state.event(content)
        return content is not None

    def _lag(self, record: Record) -> bool:
        """A tombstone comes when the group is gone, and its own record says so."""
        content = None if record.value is None else lag_of(record.value)
        if content is not None:
            self._state.lag((content["cluster"], content["group"]), content)
        return content is not None or record.value is None

    def _status(self, record: Record) -> bool:
        content = _status_of(record.value)
        if content is not None:
            self._state.monitor_status(content, record.written_s)
        return content is not None or record.value is None


def read_topics(state: PageState, properties: Callable[[], Mapping[str, Any]], names: TopicNames, *, since_s: float) -> None:
    """Read the result topics to their end, events from a moment on.

    :param properties: returns librdkafka's properties.
    :raises SetupError: when one cannot be read; that of events and that of lag may be missing.
    """
    taker = _Taker(state, names)
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


class TopicsSource:
    """Follows the result topics in a thread; a context manager.

    :param properties: returns librdkafka's properties.
    """

    def __init__(self, state: PageState, properties: Callable[[], Mapping[str, Any]], names: TopicNames) -> None:
        self._state = state
        self._properties = properties
        self._names = names
        self._taker = _Taker(state, names)
        self._look_at_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="topics", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(5.0)

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


class IntoState:
    """Takes what a replay finds into the page's state."""

    def __init__(self, state: PageState) -> None:
        self._state = state

    def event(self, event: GroupEvent) -> None:
        self._state.event(event)

    def group(self, group: GroupView) -> None:
        if group.content is not None:
            take_line(self._state, json.dumps(group.content))

    def finding(self, finding: Finding) -> None:
        take_line(self._state, json.dumps(finding.as_json()))

    def finish(self) -> None:
        self._state.read_to_the_end()


def read_file(state: PageState, file: Path) -> None:
    """Read JSON lines, one published record a line: groups, findings and events in any order; the newest of each is shown.

    :raises SetupError: when the file cannot be read, or none of its lines is such a record.
    """
    read = 0
    try:
        with file.open("rb") as lines:
            for line in lines:
                if line.strip():
                    read += take_line(state, line)
    except OSError as error:
        raise SetupError(f"{file} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if not read:
        raise SetupError(
            f"{file} holds no published record: 'rebalance-monitor replay --format json --events' prints those of a capture or a log, "
            "'groups --json' and 'findings --json' those of the monitor"
        )
    state.read_to_the_end()


def take_line(state: PageState, line: bytes | str) -> bool:
    """Take in one published record; False, and it is counted, when it is none."""
    event = event_of(line)
    if event is not None:
        state.event(event)
        return True
    group = group_of(line)
    if group is not None:
        state.group((group["cluster"], group["group"]), group)
        return True
    finding = finding_of(line)
    if finding is not None:
        state.finding(finding["id"], finding)
        return True
    state.unreadable += 1
    return False


def _status_of(value: bytes | None) -> Json | None:
    try:
        content: Json = json.loads(value or b"")
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
