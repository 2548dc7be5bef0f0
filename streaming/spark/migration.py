"""Models out of a checkpoint that Spark cannot go on from, and into one that it can.

Spark goes on with its own state only in a query of the same shape, over the same partitions. The models' snapshots are readable for ever.
So a migration takes them out with Spark's reader of state, and lets Spark write them as the state of a new query. That query reads
them from a file; then its only batch is made out to have read the mirror topic as far as the snapshots do.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.state import GroupStateTimeout

from coordinator_model.snapshots import SnapshotError, next_offset, unpack_partition
from streaming.kafka.topics import SetupError
from streaming.spark import checkpoint
from streaming.spark.session import reason
from streaming.spark.worker import OUTPUT_SCHEMA, STATE_SCHEMA, OutputRow, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import Row, SparkSession
    from pyspark.sql.streaming.state import GroupState

_CARRIED: Final = "carried"


def snapshots(spark: SparkSession, folder: Path) -> dict[int, bytes]:
    """The snapshots in a checkpoint by mirror partition, as of each lane's newest committed batch.

    :raises streaming.kafka.topics.SetupError: when Spark cannot read them.
    :raises coordinator_model.snapshots.SnapshotError: when one of them is none, or gone.
    """
    _ = spark.streams.active  # brings up Spark's coordinator of state stores, without which none can be read
    blobs = [blob for lane in checkpoint.lanes_in(folder) for row in _rows(spark, lane) for blob in _blobs(row.asDict(), folder)]
    return {unpack_partition(blob)[0]["partition"]: blob for blob in blobs}


def _rows(spark: SparkSession, query: Path) -> list[Row]:
    try:
        rows: list[Row] = spark.read.format("statestore").load(str(query.resolve())).select("value.groupState.*").collect()
    except (PySparkException, Py4JError) as error:
        raise SetupError(f"Spark cannot read the state in {query}: {reason(str(error))}") from None
    return rows


def _blobs(row: dict[str, Any], folder: Path) -> Iterable[bytes]:
    """The snapshots of a state row.

    Up to the fifth format it has one: as bytes, or as base64 in the second; the third and fourth name a file of it.
    """
    if "snapshots" in row:
        return unpacked(bytes(row["snapshots"])).values()
    if "snapshot" not in row:
        return [_from_file(folder / "models" / str(row["partition"]), row.get("base", row["sequence"]))]
    snapshot = row["snapshot"]
    return [base64.b64decode(snapshot) if isinstance(snapshot, str) else bytes(snapshot)]


def _from_file(folder: Path, sequence: int) -> bytes:
    """A snapshot that formats 3 and 4 kept in a file, named by its digest; what an attempt that failed has left is as good."""
    for file in folder.glob(f"{sequence}-*.snapshot"):
        blob = file.read_bytes()
        if hashlib.sha256(blob).hexdigest()[:32] == file.stem.partition("-")[2]:
            return blob
    raise SnapshotError(f"no whole snapshot {sequence} in {folder}")


def write(spark: SparkSession, folder: Path, found: Mapping[int, bytes], *, topic: str, lanes: int) -> None:
    """Make the findings queries' part of a checkpoint in which nothing is yet: each model in the lane that reads its partition.

    :raises streaming.kafka.topics.SetupError: when Spark cannot.
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
    offsets = {topic: {str(partition): offset for partition, blob in found.items() if (offset := next_offset(blob)) is not None}}
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
