"""What runs in Spark's Python workers: all new rows of one lane in, rows for the result topics out.

State is the snapshots of the models of the lane's mirror partitions, one row of Spark's state store, written with every batch.

A Python worker outlives batches, so it can keep the live models and spare itself the unpacking. But a task may fail half-way and be
retried, here or in another worker, and a restart begins at the last commit. So kept models count only if the committed state is the very
one that this worker made when it finished with them; else the state is the truth.
"""

from __future__ import annotations

import base64
import time
from collections import defaultdict
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa

from coordinator_model.snapshots import SnapshotError
from streaming.engine.intake import take_in
from streaming.engine.results import OutputRow, Outputs, Status, status_due
from streaming.gc_tuning import keep_collections_short

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.streaming.state import GroupState

    from coordinator_model.settings import Settings
    from streaming.engine.intake import MirrorRow, Model

INPUT_COLUMNS: Final = ("partition", "offset", "timestamp_ms", "key", "value", "envelope")
STATE_SCHEMA: Final = "snapshots binary"
OUTPUT_SCHEMA: Final = "topic string, key string, value string"


class _Live(NamedTuple):
    """A model in this worker's memory."""

    model: Model
    snapshot: bytes = b""
    published: Status | None = None  #: None in a new worker, which says at once how things are


class _Kept(NamedTuple):
    """All models of a lane."""

    state: bytes  #: that holds their snapshots
    by_partition: dict[int, _Live]


_kept: dict[tuple[str, int], _Kept] = {}
"""By (run id, lane)."""


@dataclass(frozen=True)
class Replay:
    """The stateful function: called with all new rows of one lane.

    :param partitions: of the mirror topic; None if unknown.
    """

    topic: str
    outputs: Outputs
    model: type[Model]
    settings: Settings
    run_id: str
    partitions: int | None = None

    def __call__(self, key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        keep_collections_short()
        (lane,) = key
        models = self._models(lane, bytes(state.get[0]) if state.exists else None)
        out: list[OutputRow] = []
        for partition, rows in in_offset_order(frames).items():
            live = models.get(partition) or _Live(self.model(topic=self.topic, partition=partition, settings=self.settings))
            models[partition] = self._gone_on(partition, live, rows, out)
        kept = _Kept(packed({partition: live.snapshot for partition, live in models.items()}), models)
        state.update((kept.state,))
        _kept[self.run_id, lane] = kept
        yield pd.DataFrame(out, columns=OutputRow._fields)

    def _gone_on(self, partition: int, live: _Live, rows: list[MirrorRow], out: list[OutputRow]) -> _Live:
        """The model of a partition after some rows; what came of them is added to ``out``."""
        started = time.perf_counter()
        model, outputs = live.model, self.outputs
        out += [*outputs.taken(take_in(model, rows, self.partitions), self.topic), *map(outputs.group, model.changed_groups())]
        live = live._replace(snapshot=model.snapshot())
        if status := status_due(model, live.published):
            live = live._replace(published=status)
            measured = {
                "next_offset": model.next_offset,
                "newest_record_ms": rows[-1][2],
                "records": len(rows),
                "took_ms": round((time.perf_counter() - started) * 1000, 1),
                "snapshot_bytes": len(live.snapshot),
            }
            out.append(status.row(self.topic, outputs, partition, **measured))
        return live

    def _models(self, lane: int, committed: bytes | None) -> dict[int, _Live]:
        """The models as the committed state has them, by partition.

        Kept ones are taken out: a failure from here on leaves nothing half-advanced.
        """
        if _kept and next(iter(_kept))[0] != self.run_id:
            _kept.clear()
        kept = _kept.pop((self.run_id, lane), None)
        if committed is None:
            return {}
        if kept is not None and kept.state == committed:
            return kept.by_partition
        return {
            partition: _Live(self.model.restore(snapshot, settings=self.settings), snapshot)
            for partition, snapshot in unpacked(committed).items()
        }


_COMPRESSION: Final = pa.Codec("zstd", compression_level=1)
_decode: Final = msgspec.msgpack.Decoder(dict[int, bytes]).decode


def packed(snapshots: Mapping[int, bytes]) -> bytes:
    """Snapshots by partition as the state keeps them.

    In ASCII: Spark hands the state to Python as text, which takes a multiple of the time for any other bytes. Compression takes away what
    base64 adds.
    """
    return base64.b64encode(_COMPRESSION.compress(msgspec.msgpack.encode(snapshots), asbytes=True))


def unpacked(state: bytes) -> dict[int, bytes]:
    """The snapshots that :func:`packed` was given.

    :raises coordinator_model.snapshots.SnapshotError: when it was given none.
    """
    try:
        stored = pa.BufferReader(base64.b64decode(state, validate=True))
        return _decode(pa.CompressedInputStream(stored, "zstd").read())
    except (ValueError, OSError) as error:
        raise SnapshotError(f"no state of a lane: {error}") from None


def in_offset_order(frames: Iterator[pd.DataFrame]) -> dict[int, list[MirrorRow]]:
    """All rows of one key, by partition, as tuples of :data:`INPUT_COLUMNS` in offset order: Spark promises none."""
    by_partition: dict[int, list[MirrorRow]] = defaultdict(list)
    for frame in frames:
        for row in zip(*(frame[name].tolist() for name in INPUT_COLUMNS), strict=True):
            by_partition[row[0]].append(row)
    for rows in by_partition.values():
        rows.sort(key=itemgetter(1))
    return by_partition
