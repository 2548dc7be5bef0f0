"""Takes published records into the state that the page shows: records of topics, what an engine in this process finds, or lines of a file.

It needs no Kafka client.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from streaming.errors import SetupError, why_not
from streaming.published.records import Json, event_of, finding_of, group_of, lag_of

if TYPE_CHECKING:
    from pathlib import Path

    from coordinator_model.events import GroupEvent
    from coordinator_model.finding import Finding
    from coordinator_model.group_view import GroupView
    from streaming.kafka.record import Record
    from streaming.published.page_state import Key, PageState


class TopicNames(NamedTuple):
    """The topics that the page reads."""

    groups: str
    findings: str
    status: str
    events: str
    lag: str


class Taker:
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
        raise SetupError(f"{file} cannot be read: {why_not(error)}") from None
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
