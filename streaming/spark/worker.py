"""What runs in Spark's Python workers: all new rows of one mirror partition in, rows for the result topics out.

State is the snapshot of the partition's model, a row of Spark's state store, written with every batch.

The trap: a Python worker outlives batches, so it can keep the live model and spare itself the unpacking. But a task may fail half-way and
be retried, here or in another worker, and a restart begins at the last commit. So a kept model counts only if the committed state is the
very snapshot that this worker made when it finished with it; else the snapshot is the truth.
"""

from __future__ import annotations

import base64
import itertools
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd

from coordinator_model.wire.record import Kind
from streaming.gc_tuning import keep_collections_short
from streaming.spark.intake import take_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.streaming.state import GroupState

    from coordinator_model.settings import Settings
    from streaming.spark.intake import MirrorRow, Model, Taken

INPUT_COLUMNS: Final = ("partition", "offset", "timestamp_ms", "key", "value", "envelope")
STATE_SCHEMA: Final = "snapshot binary"
OUTPUT_SCHEMA: Final = "topic string, key string, value string"


class Outputs(NamedTuple):
    """Names of the topics that the query writes."""

    findings: str
    groups: str
    events: str
    status: str
    dead_letters: str


class OutputRow(NamedTuple):
    """One row for the Kafka sink; a value of None is a tombstone."""

    topic: str
    key: str
    value: str | None


STATUS_AT_MOST_EVERY_S: Final = 1.0
STATUS_AT_LEAST_EVERY_S: Final = 10.0
"""A sign of life: what changes with each tick alone is no reason for a status before."""


class _Status(NamedTuple):
    """The newest status of a partition that was published."""

    at_s: float  #: by a monotonic clock
    figures: Mapping[str, Any]


class _Live(NamedTuple):
    """A model in this worker's memory."""

    model: Model
    snapshot: bytes | None  #: of the committed state; None before the first batch
    published: _Status | None = None  #: None in a new worker, which says at once how things are


_kept: dict[tuple[str, int], _Live] = {}
"""By (run id, partition)."""


@dataclass(frozen=True)
class Replay:
    """The stateful function: called with all new rows of one partition.

    :param partitions: of the mirror topic; None if unknown.
    """

    topic: str
    outputs: Outputs
    model: type[Model]
    settings: Settings
    run_id: str
    partitions: int | None = None

    def __call__(self, _key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        started = time.perf_counter()
        keep_collections_short()
        rows = in_offset_order(frames)
        partition: int = rows[0][0]
        live = self._live(partition, bytes(state.get[0]) if state.exists else None)
        taken = take_in(live.model, rows, self.partitions)
        out = [*self._told(taken), *self._groups(live.model)]
        live = live._replace(snapshot=live.model.snapshot())
        state.update((live.snapshot,))
        if status := _status_due(live):
            live = live._replace(published=status)
            out.append(self._status(partition, live, status.figures, rows, (time.perf_counter() - started) * 1000))
        _kept[self.run_id, partition] = live
        yield pd.DataFrame(out, columns=OutputRow._fields)

    def _told(self, taken: Taken) -> Iterator[OutputRow]:
        """What came of some rows."""
        for finding in taken.findings:
            yield OutputRow(self.outputs.findings, finding.id, _dumps(finding.as_json()))
        for event in taken.events:
            yield OutputRow(self.outputs.events, event.key, _dumps(event.as_json()))
        for row, reason in taken.set_aside:
            yield self._dead_letter(row, reason)

    def _groups(self, model: Model) -> Iterator[OutputRow]:
        """What is known of the groups that changed."""
        for group in model.changed_groups():
            snapshot = group.as_json()
            yield OutputRow(self.outputs.groups, group.key, None if snapshot is None else _dumps(snapshot))

    def _dead_letter(self, row: MirrorRow, reason: str) -> OutputRow:
        partition, offset, timestamp_ms, key, value, envelope = row
        letter = {
            "topic": self.topic,
            "partition": partition,
            "offset": offset,
            "timestamp_ms": timestamp_ms,
            "reason": reason,
            "key": _base64(key),
            "value": _base64(value),
            "mirror": _base64(envelope),
        }
        return OutputRow(self.outputs.dead_letters, f"{self.topic}/{partition}/{offset}", _dumps(letter))

    def _status(self, partition: int, live: _Live, figures: Mapping[str, Any], rows: list[MirrorRow], took_ms: float) -> OutputRow:
        status = {
            "topic": self.topic,
            "partition": partition,
            "next_offset": live.model.next_offset,
            "newest_record_ms": rows[-1][2],
            "written_ms": time.time_ns() // 1_000_000,
            "records": len(rows),
            "took_ms": round(took_ms, 1),
            "snapshot_bytes": len(live.snapshot or b""),
            **figures,
        }
        return OutputRow(self.outputs.status, f"{self.topic}/{partition}", _dumps(status))

    def _live(self, partition: int, committed: bytes | None) -> _Live:
        """The model as the committed state has it.

        A kept one is taken out: a failure from here on leaves nothing half-advanced.
        """
        if _kept and next(iter(_kept))[0] != self.run_id:
            _kept.clear()
        kept = _kept.pop((self.run_id, partition), None)
        if committed is None:
            return _Live(self.model(topic=self.topic, partition=partition, settings=self.settings), None)
        if kept is not None and kept.snapshot == committed:
            return kept
        return _Live(self.model.restore(committed, settings=self.settings), committed)


def _status_due(live: _Live) -> _Status | None:
    """The status to publish now, None if the one before is fresh enough."""
    now_s, before = time.monotonic(), live.published
    if before is not None and now_s - before.at_s < STATUS_AT_MOST_EVERY_S:
        return None
    status = _Status(now_s, live.model.figures())
    if before is None or now_s - before.at_s >= STATUS_AT_LEAST_EVERY_S:
        return status
    return status if _but_ticks(status.figures) != _but_ticks(before.figures) else None


def _but_ticks(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures without what each tick moves on."""
    counters = {name: count for name, count in figures.get("counters", {}).items() if name != Kind.TICK.value}
    return {name: value for name, value in figures.items() if name not in {"last_tick_ms", "taps"}} | {"counters": counters}


def in_offset_order(frames: Iterator[pd.DataFrame]) -> list[MirrorRow]:
    """All rows of one key as tuples of :data:`INPUT_COLUMNS` in offset order: Spark promises none."""
    rows: list[MirrorRow] = []
    for frame in frames:
        rows += zip(*(frame[name].tolist() for name in INPUT_COLUMNS), strict=True)
    offsets = [row[1] for row in rows]
    if any(after < before for before, after in itertools.pairwise(offsets)):
        rows.sort(key=lambda row: row[1])
    return rows


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
