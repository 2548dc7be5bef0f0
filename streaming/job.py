"""The Spark query: rows of the mirror topic → one Coordinator per partition → rows of the result topics, and nothing else.

State is keyed by mirror partition: ``applyInPandasWithState`` costs wall time per key and batch, whatever the rows, and offsets of
one partition are contiguous, so that the model itself sees a repeat or a hole (``docs/decisions.md``). What is done with the rows
of a partition is in ``streaming.replay``.

The trap: the checkpoint pins the number of shuffle partitions and, through it, where each key's state lies. Whatever changes the
grouping value of a mirror partition orphans its state in silence.

There is no timeout in the query. A processing-time timeout fires only together with data, or else spins empty batches for ever; so it
would be late in the one case that it is for, a mirror that is dead altogether. ``streaming.silence`` watches for that.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses
from pyspark.sql.streaming.state import GroupStateTimeout

from coordinator_model.wire.record import HEADER_NAME
from streaming import model_files, seeds
from streaming.config import MAX_PARTITIONS
from streaming.replay import OUTPUT_SCHEMA, STATE_SCHEMA, Model, Outputs, Replay

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from coordinator_model.settings import Settings
    from streaming.config import MonitorConfig

QUERY_NAME: Final = "findings"

_FILE_MANAGER: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_STATE_STORE: Final = "spark.sql.streaming.stateStore"

SPARK_SETTINGS: Final[tuple[tuple[str, str, str], ...]] = (
    # setting, value, why
    (f"{_STATE_STORE}.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider", "see next"),
    (f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled", "true", "a batch writes what changed, not the whole store"),
    (f"{_STATE_STORE}.maintenanceInterval", "10s", "old versions go soon: a batch may leave megabytes behind"),
    ("spark.sql.streaming.minBatchesToRetain", "10", "the default of 100 batches is gigabytes at 10,000 groups"),
    ("spark.sql.streaming.checkpointFileManagerClass", _FILE_MANAGER, "the default forks a process at each rename on a local disk"),
    ("spark.sql.streaming.noDataProgressEventInterval", "1s", "how often a query without data says so; silence is seen by it"),
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "50000", "few Arrow batches per key; the record limit bounds memory"),
    ("spark.sql.session.timeZone", "UTC", "times are microseconds since the epoch everywhere"),
    ("spark.sql.adaptive.enabled", "false", "Spark turns it off in streams anyway, and warns each time"),
    ("spark.scheduler.mode", "FAIR", "the quality query's tasks must not stand before those of the findings"),
    ("spark.python.worker.reuse", "true", "the kept model lives in the worker"),
    ("spark.ui.enabled", "false", "one port less, and half a second of start-up"),
    ("spark.ui.showConsoleProgress", "false", "the terminal is the monitor's"),
    ("spark.ui.retainedJobs", "10", "kept for a UI that is off; thousands of batches an hour"),
    ("spark.ui.retainedStages", "10", "likewise"),
    ("spark.ui.retainedTasks", "100", "likewise"),
    ("spark.sql.ui.retainedExecutions", "5", "likewise"),
    ("spark.driver.host", "127.0.0.1", "one process on one machine: nothing listens outside"),
    ("spark.driver.bindAddress", "127.0.0.1", "likewise"),
)

_SOURCE_OPTIONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("includeHeaders", "true", "the envelope is a record header"),
    ("failOnDataLoss", "false", "a hole in the offsets is seen by the model, told as a finding and survived"),
    ("kafka.max.poll.records", "5000", "the client's default of 500 costs a loop per 500 records in a backlog"),
    ("kafka.check.crcs", "true", "the default, said aloud: the evidence must be what was captured"),
)


def start(
    spark: SparkSession, config: MonitorConfig, *, model: type[Model], settings: Settings, checkpoint: Path, partitions: int
) -> StreamingQuery:
    """Start the findings query.

    :param model: class of the coordinator model, importable by the workers.
    :param settings: handed to the model as it is.
    :param checkpoint: folder of this query's checkpoint; the models' snapshots lie beside it, and seeds for them may.
    :param partitions: of the mirror topic.
    """
    folder = checkpoint.parent.resolve()
    seeded = folder / seeds.FOLDER
    begin = seeds.starting_offsets(seeded, config.topics.mirror, partitions) if seeded.is_dir() else None
    replay = Replay(
        topic=config.topics.mirror,
        outputs=Outputs(config.topics.findings, config.topics.groups, config.topics.status, config.topics.dead_letters),
        model=model,
        settings=settings,
        run_id=uuid.uuid4().hex,
        models=folder / model_files.FOLDER,
        partitions=partitions,
        seeds=seeded if seeded.is_dir() else None,
    )
    shuffle_partitions = config.job.shuffle_partitions
    rows = records(spark, config, max_records=config.job.max_records_per_batch, starting_offsets=begin)
    if shuffle_partitions == 1:
        rows = rows.coalesce(1)  # already where the state is: no shuffle at all
    results = (
        rows.withColumn("slot", _slot(shuffle_partitions))
        .groupBy("slot")
        .applyInPandasWithState(replay, OUTPUT_SCHEMA, STATE_SCHEMA, "update", GroupStateTimeout.NoTimeout)
    )
    return write(results, config, checkpoint)


def write(results: DataFrame, config: MonitorConfig, checkpoint: Path) -> StreamingQuery:
    """Start a query that writes rows of :data:`streaming.replay.OUTPUT_SCHEMA` to their topics."""
    return (
        results.writeStream.queryName(QUERY_NAME)
        .format("kafka")
        .options(**config.kafka.for_spark())
        .outputMode("update")
        .trigger(processingTime=f"{config.job.trigger_ms} milliseconds")
        .option("checkpointLocation", str(checkpoint.resolve()))
        .start()
    )


def records(spark: SparkSession, config: MonitorConfig, *, max_records: int, starting_offsets: str | None = None) -> DataFrame:
    """The mirror topic as a stream with the columns :data:`streaming.replay.INPUT_COLUMNS`.

    :param starting_offsets: where a query without a checkpoint begins, in the words of Spark's Kafka source; as configured if None.
    """
    source = (
        spark.readStream.format("kafka")
        .options(**{name: value for name, value, _ in _SOURCE_OPTIONS})
        .options(**config.kafka.for_spark())
        .option("subscribe", config.topics.mirror)
        .option("startingOffsets", starting_offsets or config.job.starting_offsets)
        .option("maxOffsetsPerTrigger", max_records)
        .load()
    )
    timestamp = F.unix_millis("timestamp")
    return source.select("partition", "offset", timestamp.alias("timestamp_ms"), "key", "value", _envelope().alias("envelope"))


def _envelope() -> Column:
    """The first header of the right name, which nearly always is the first of all: filtering an array is interpreted, row by row."""
    first = F.get("headers", F.lit(0))
    among_others = F.get(F.filter("headers", lambda header: header["key"] == HEADER_NAME), F.lit(0))
    return F.when(first["key"] == HEADER_NAME, first["value"]).otherwise(among_others["value"])


def _slot(shuffle_partitions: int) -> Column:
    if shuffle_partitions == 1:
        return F.col("partition")
    return F.element_at(F.array(*map(F.lit, spread(shuffle_partitions))), F.col("partition") + 1)


def spread(shuffle_partitions: int, *, partitions: int = MAX_PARTITIONS) -> list[int]:
    """For each mirror partition a grouping value that Spark's hash sends to shuffle partition ``partition % shuffle_partitions``.

    Few keys hashed into few shuffle partitions leave about a third of them idle. A value depends on nothing but the two numbers, so
    that a restart, and a topic that has gained partitions, find the same state again.
    """
    values: list[int] = []
    candidates = [iter(range(wanted, 2**31, shuffle_partitions)) for wanted in range(shuffle_partitions)]
    for partition in range(partitions):
        wanted = partition % shuffle_partitions
        values.append(next(value for value in candidates[wanted] if spark_hash(value) % shuffle_partitions == wanted))
    return values


def spark_hash(value: int) -> int:
    """Spark SQL's ``hash`` of an INT: Murmur3 x86 32 of its four bytes with seed 42, as a signed number."""
    block = _rotated(value * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
    mixed = (_rotated(42 ^ block, 13) * 5 + 0xE6546B64) & _WORD
    mixed ^= 4  # length in bytes
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _WORD
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _WORD
    mixed ^= mixed >> 16
    return mixed - 2**32 if mixed >= 2**31 else mixed


_WORD: Final = 0xFFFFFFFF


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
