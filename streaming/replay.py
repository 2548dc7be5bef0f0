"""What runs in Spark's Python workers: all new rows of one mirror partition in, rows for the result topics out.

State is where the snapshot of the partition's model is, see ``streaming.model_files``.

The trap: a Python worker outlives batches, so it can keep the live model and spare itself the reading of the snapshot. But a task may fail
half-way and be retried, here or in another worker, and a restart begins at the last commit. So a kept model counts only if the committed
state names the very snapshot that this worker took when it finished with it; else the file is the truth.
"""

from __future__ import annotations

import base64
import itertools
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

import pandas as pd

from coordinator_model.coordinator import raised_in_words
from coordinator_model.sieve import NOTHING_SIFTED, Sieve
from coordinator_model.wire.reader import RecordReader
from coordinator_model.wire.record import RecordError
from streaming import model_files, seeds
from streaming.garbage import keep_collections_short
from streaming.model_files import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql.streaming.state import GroupState

    from coordinator_model.findings import Finding
    from coordinator_model.pulse import Run
    from coordinator_model.settings import Settings
    from coordinator_model.sieve import MirrorRow, Sifted
    from coordinator_model.wire.record import MirrorRecord

INPUT_COLUMNS: Final = ("partition", "offset", "timestamp_ms", "key", "value", "envelope")
STATE_SCHEMA: Final = "partition int, sequence long, digest string"
OUTPUT_SCHEMA: Final = "topic string, key string, value string"


class GroupSnapshot(Protocol):
    """What is known of a group, for the groups topic."""

    @property
    def key(self) -> str: ...

    def as_json(self) -> dict[str, Any] | None: ...


class Model(Protocol):
    """What the job asks of a model: ``coordinator_model.coordinator.Coordinator`` is one, the bench's empty model another."""

    @property
    def next_offset(self) -> int | None: ...

    def figures(self) -> Mapping[str, Any]: ...

    def __init__(self, *, topic: str, partition: int, settings: Settings) -> None: ...

    @classmethod
    def restore(cls, blob: bytes, *, settings: Settings) -> Self: ...

    def receive(self, record: MirrorRecord) -> list[Finding]: ...

    def go_on(self, key: tuple[str, str], runs: Sequence[Run], until_us: int) -> bool: ...

    def pass_over(self, times_us: Sequence[int]) -> list[Finding]: ...

    def receive_unreadable(self, offset: int, at_us: int, group: str | None, reason: str) -> list[Finding]: ...

    def spread_over(self, partitions: int) -> list[Finding]: ...

    def drain_set_aside(self) -> Sequence[tuple[int, str]]: ...

    def changed_groups(self) -> Sequence[GroupSnapshot]: ...

    def snapshot(self) -> bytes: ...


class Outputs(NamedTuple):
    """Names of the topics that the query writes."""

    findings: str
    groups: str
    status: str
    dead_letters: str


class Row(NamedTuple):
    """One row for the Kafka sink; a value of None is a tombstone."""

    topic: str
    key: str
    value: str | None


class _Kept(NamedTuple):
    place: Place
    model: Model


_kept: dict[tuple[str, int], _Kept] = {}
"""Live models of this worker process by (run id, partition)."""

_reader: Final = RecordReader()
_sieve: Final = Sieve(_reader)
"""Of this worker process; what they remember changes nothing of what is known."""


@dataclass(frozen=True)
class Replay:
    """The stateful function: called with all new rows of one partition.

    :param models: folder of the models' snapshots.
    :param partitions: of the mirror topic; None when nobody has counted.
    :param seeds: folder of snapshots that a partition without state begins with, see ``streaming.seeds``.
    """

    topic: str
    outputs: Outputs
    model: type[Model]
    settings: Settings
    run_id: str
    models: Path
    partitions: int | None = None
    seeds: Path | None = None

    def __call__(self, _key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        started = time.perf_counter()
        keep_collections_short()
        rows = in_offset_order(frames)
        partition: int = rows[0][0]
        committed = Place(*state.get) if state.exists else None
        model = self._model(partition, committed)
        out = [] if self.partitions is None else self._findings(model.spread_over(self.partitions))
        out += self._replay(model, rows)
        out += self._dead_letters(model, rows)
        for group in model.changed_groups():
            snapshot = group.as_json()
            out.append(Row(self.outputs.groups, group.key, None if snapshot is None else _dumps(snapshot)))
        blob = model.snapshot()
        took_ms = (time.perf_counter() - started) * 1000
        out.append(self._status(partition, model, rows, took_ms, len(blob)))
        place = model_files.write(self.models, partition, committed.sequence + 1 if committed else 0, blob)
        state.update(tuple(place))
        _kept[self.run_id, partition] = _Kept(place, model)
        if committed is not None:
            model_files.forget(self.models, committed)
        yield pd.DataFrame(out, columns=Row._fields)

    def _replay(self, model: Model, rows: list[MirrorRow]) -> list[Row]:
        sifted = _sieve.sift(rows) if are_next(rows, model.next_offset) else NOTHING_SIFTED
        taken = _taken_in(model, sifted, len(rows))
        out: list[Row] = []
        begin = 0
        for end in [*(place for place, at_us in enumerate(taken) if at_us is None), len(rows)]:
            found = _pass_over(model, rows[begin:end], taken[begin:end])
            if end < len(rows):
                found += _receive(model, rows[end], sifted.read.get(end))
            if found:
                out += self._findings(found)
            begin = end + 1
        return out

    def _dead_letters(self, model: Model, rows: list[MirrorRow]) -> list[Row]:
        """What the model could make nothing of, with its bytes."""
        set_aside = model.drain_set_aside()
        if not set_aside:
            return []
        by_offset = {row[1]: row for row in rows}
        return [self._dead_letter(by_offset[offset], reason) for offset, reason in set_aside]

    def _dead_letter(self, row: MirrorRow, reason: str) -> Row:
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
        return Row(self.outputs.dead_letters, f"{self.topic}/{partition}/{offset}", _dumps(letter))

    def _findings(self, findings: list[Finding]) -> list[Row]:
        return [Row(self.outputs.findings, finding.id, _dumps(finding.as_json())) for finding in findings]

    def _status(self, partition: int, model: Model, rows: list[MirrorRow], took_ms: float, snapshot_bytes: int) -> Row:
        status = {
            "topic": self.topic,
            "partition": partition,
            "next_offset": model.next_offset,
            "newest_record_ms": rows[-1][2],
            "written_ms": time.time_ns() // 1_000_000,
            "records": len(rows),
            "took_ms": round(took_ms, 1),
            "snapshot_bytes": snapshot_bytes,
            **model.figures(),
        }
        return Row(self.outputs.status, f"{self.topic}/{partition}", _dumps(status))

    def _model(self, partition: int, committed: Place | None) -> Model:
        """The model as the committed state has it. A kept one is taken out: a failure from here on leaves nothing half-advanced."""
        if _kept and next(iter(_kept))[0] != self.run_id:
            _kept.clear()
        kept = _kept.pop((self.run_id, partition), None)
        if committed is None:
            seed = None if self.seeds is None else seeds.read(self.seeds, partition)
            if seed is not None:
                return self.model.restore(seed, settings=self.settings)
            return self.model(topic=self.topic, partition=partition, settings=self.settings)
        if kept is not None and kept.place == committed:
            return kept.model
        return self.model.restore(model_files.read(self.models, committed), settings=self.settings)


def are_next(rows: Sequence[MirrorRow], next_offset: int | None) -> bool:
    """Whether the rows' offsets go on from ``next_offset`` without a hole or a repeat."""
    return next_offset is not None and [row[1] for row in rows] == list(range(next_offset, next_offset + len(rows)))


def _taken_in(model: Model, sifted: Sifted, count: int) -> list[int | None]:
    """Give the model the heartbeats that were sifted out; gives the capture times of the rows that it has taken in so."""
    taken: list[int | None] = [None] * count
    times_us = sifted.times_us
    newest_us = max(times_us, default=0)
    for group in sifted.groups:
        if model.go_on(group.key, group.runs(), newest_us):
            for place in group.places:
                taken[place] = times_us[place]
    return taken


def _pass_over(model: Model, rows: Sequence[MirrorRow], times_us: Sequence[Any]) -> list[Finding]:
    """Let the model go past rows that it has taken in."""
    found: list[Finding] = []
    begin = rows[0][1] if rows else 0
    while times_us:
        try:
            return found + model.pass_over(times_us)
        except Exception as error:  # as in _receive
            passed = (model.next_offset or 0) - begin
            found += _unreadable(model, rows[passed - 1], raised_in_words(error))
            begin, rows, times_us = begin + passed, rows[passed:], times_us[passed:]
    return found


def _receive(model: Model, row: MirrorRow, read: MirrorRecord | RecordError | None) -> list[Finding]:
    """Hand a row in; ``read`` is what is known to be in it."""
    try:
        record = _read(row) if read is None else read
        if isinstance(record, RecordError):
            return _unreadable(model, row, str(record))
        _sieve.learn(record, row)
        return model.receive(record)
    except Exception as error:  # one bad record must not stop the query, nor every restart of it
        return _unreadable(model, row, raised_in_words(error))


def _read(row: MirrorRow) -> MirrorRecord | RecordError:
    partition, offset, _timestamp_ms, key, value, envelope = row
    try:
        return _reader.read(partition, offset, key, value, envelope)
    except RecordError as error:
        return error


def _unreadable(model: Model, row: MirrorRow, reason: str) -> list[Finding]:
    _partition, offset, timestamp_ms, key, _value, _envelope = row
    return model.receive_unreadable(offset, timestamp_ms * 1000, None if key is None else key.decode(errors="replace"), reason)


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
