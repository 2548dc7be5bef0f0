"""What is published of what models find: one row for each finding, event and group, the status of a partition, and what is set aside.

The job writes the rows to the result topics; ``watch`` hands the same rows to its page, its metrics and its alerts.
"""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.wire.record import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from coordinator_model.events import GroupEvent
    from coordinator_model.finding import Finding
    from streaming.engine.intake import GroupRow, MirrorRow, Model, Taken

STATUS_AT_MOST_EVERY_S: Final = 1.0
STATUS_AT_LEAST_EVERY_S: Final = 10.0
"""A sign of life: what changes with each tick alone is no reason for a status before."""


class OutputRow(NamedTuple):
    """One record of a result topic; a value of None is a tombstone."""

    topic: str
    key: str
    value: str | None


class Outputs(NamedTuple):
    """Names of the result topics; makes the records of each."""

    findings: str
    groups: str
    events: str
    status: str
    dead_letters: str

    def finding(self, finding: Finding) -> OutputRow:
        return OutputRow(self.findings, finding.id, _dumps(finding.as_json()))

    def event(self, event: GroupEvent) -> OutputRow:
        return OutputRow(self.events, event.key, _dumps(event.as_json()))

    def group(self, group: GroupRow) -> OutputRow:
        """What is known of a group that changed."""
        content = group.as_json()
        return OutputRow(self.groups, group.key, None if content is None else _dumps(content))

    def starting(self, topic: str) -> OutputRow:
        """A sign of life of a monitor that has read nothing yet."""
        now_ms = time.time_ns() // 1_000_000
        return OutputRow(
            self.status, f"{topic}/monitor", _dumps({"topic": topic, "written_ms": now_ms, "starting_since_ms": now_ms})
        )

    def taken(self, taken: Taken, topic: str) -> Iterator[OutputRow]:
        """What came of some rows of a mirror topic."""
        yield from map(self.finding, taken.findings)
        yield from map(self.event, taken.events)
        for row, reason in taken.set_aside:
            yield self._dead_letter(topic, row, reason)

    def _dead_letter(self, topic: str, row: MirrorRow, reason: str) -> OutputRow:
        partition, offset, timestamp_ms, key, value, envelope = row
        letter = {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timestamp_ms": timestamp_ms,
            "reason": reason,
            "key": _base64(key),
            "value": _base64(value),
            "mirror": _base64(envelope),
        }
        return OutputRow(self.dead_letters, f"{topic}/{partition}/{offset}", _dumps(letter))


class Status(NamedTuple):
    """The newest status of a partition that was published."""

    at_s: float  #: by a monotonic clock
    figures: Mapping[str, Any]

    def row(self, topic: str, outputs: Outputs, partition: int, **measured: Any) -> OutputRow:
        """The record that publishes it.

        :param measured: what is said beside the model's own figures.
        """
        status = {"topic": topic, "partition": partition, "written_ms": time.time_ns() // 1_000_000, **measured, **self.figures}
        return OutputRow(outputs.status, f"{topic}/{partition}", _dumps(status))


def status_due(model: Model, before: Status | None) -> Status | None:
    """The status to publish now, None if the one before is fresh enough.

    :param before: None in a new process, which says at once how things are.
    """
    now_s = time.monotonic()
    if before is not None and now_s - before.at_s < STATUS_AT_MOST_EVERY_S:
        return None
    status = Status(now_s, model.figures())
    if before is None or now_s - before.at_s >= STATUS_AT_LEAST_EVERY_S:
        return status
    return status if _but_ticks(status.figures) != _but_ticks(before.figures) else None


def _but_ticks(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures without what each tick moves on."""
    counters = {name: count for name, count in figures.get("counters", {}).items() if name != Kind.TICK.value}
    return {name: value for name, value in figures.items() if name not in {"last_tick_ms", "taps"}} | {"counters": counters}


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
