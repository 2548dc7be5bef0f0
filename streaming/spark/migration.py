"""Models out of a checkpoint that Spark cannot go on from, and into one that it can.

Spark goes on with its own state only in a query of the same shape, over the same partitions. The models' snapshots are readable for ever.
So a migration takes them out with Spark's reader of state, and lets Spark write them as the state of a new query. That query reads
them from a file; then its only batch is made out to have read the mirror topic as far as the snapshots do.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Final

import pandas as pd
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.state import GroupStateTimeout

from coordinator_model.snapshots import state_of
from streaming.engine.results import OutputRow
from streaming.errors import SetupError
from streaming.spark import checkpoint
from streaming.spark.session import reason
from streaming.spark.worker import OUTPUT_SCHEMA, STATE_SCHEMA, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import Row, SparkSession
    from pyspark.sql.streaming.state import GroupState

_CARRIED: Final = "carried"


def snapshots(spark: SparkSession, folder: Path) -> dict[int, bytes]:
    """The snapshots in a checkpoint by mirror partition, as of each lane's newest committed batch.

    :raises streaming.errors.SetupError: when Spark cannot read them.
    :raises coordinator_model.snapshots.SnapshotError: when the state holds none.
    """
    _ = spark.streams.active  # brings up Spark's coordinator of state stores, without which none can be read
    rows = (row for lane in checkpoint.lanes_in(folder) for row in _rows(spark, lane))
    return {partition: blob for row in rows for partition, blob in unpacked(bytes(row["snapshots"])).items()}


def _rows(spark: SparkSession, query: Path) -> list[Row]:
    try:
        rows: list[Row] = spark.read.format("statestore").load(str(query.resolve())).select("value.groupState.*").collect()
    except (PySparkException, Py4JError) as error:
        raise SetupError(f"Spark cannot read the state in {query}: {reason(str(error))}") from None
    return rows


def write(spark: SparkSession, folder: Path, found: Mapping[int, bytes], *, topic: str, lanes: int) -> None:
    """Make the findings queries' part of a checkpoint in which nothing is yet: each model in the lane that reads its partition.

    :raises streaming.errors.SetupError: when Spark cannot.
    """
    for lane in range(lanes):
        mine = {partition: blob for partition, blob in found.items() if partition % lanes == lane}
        if mine:
            try:
                _write(spark, folder, lane, mine, topic)
            except (PySparkException, Py4JError) as error:
                raise SetupError(f"Spark cannot write the state in {folder}: {reason(str(error))}") from None


def _write(spark: SparkSession, folder: Path, lane: int, found: Mapping[int, bytes], topic: str) -> None:
    query, carried = checkpoint.of_lane(folder, lane), folder / _CARRIED
    columns = f"lane int, {STATE_SCHEMA}"
    spark.createDataFrame([(lane, bytearray(packed(found)))], columns).write.parquet(str(carried))
    running = (
        spark.readStream.schema(columns)
        .parquet(str(carried))
        .coalesce(1)
        .groupBy("lane")
        .applyInPandasWithState(_taken_over, OUTPUT_SCHEMA, STATE_SCHEMA, "update", GroupStateTimeout.NoTimeout)
        .writeStream.format("noop")
        .outputMode("update")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(query))
        .start()
    )
    running.awaitTermination()
    offsets = {
        topic: {str(partition): offset for partition, blob in found.items() if (offset := state_of(blob).next_offset) is not None}
    }
    log = query / "offsets" / "0"
    log.write_text("\n".join([*log.read_text().splitlines()[:-1], json.dumps(offsets)]))
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    for file_source in (carried, query / "sources"):
        shutil.rmtree(file_source, ignore_errors=True)


def _taken_over(_key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """The stateful function of a query that takes over a state."""
    for frame in frames:
        state.update((bytes(frame["snapshots"].iloc[0]),))
    yield pd.DataFrame(columns=OutputRow._fields)
