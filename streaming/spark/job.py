"""The Spark queries: rows of the mirror topic → one Coordinator per partition → rows of the result topics, and nothing else.

The partitions are dealt out to *lanes*. A lane has one key of state, which holds the models of all its partitions:
``applyInPandasWithState`` costs wall time per key and batch, whatever the rows (``docs/decisions.md``). What is done with the rows
of a lane is in ``streaming.spark.worker``.

Each lane is a query of its own. Within a batch Spark and Python take turns: all rows of a task are sorted before the first goes to Python.
So one lane leaves half of two cores idle, and a second one uses them.

*Models live in Python workers*, and Spark hands a task to whichever worker is idle. It keeps a pool of workers for each
environment, though, so each lane names itself in its own: in a pool of one, the worker is always the one that has the model. *The
checkpoint pins the number of lanes*: under another, a partition would find the offsets and the state of others.

There is no timeout in the queries. A processing-time timeout fires only together with data, or else spins empty batches for ever; so it
would be late in the one case that it is for, a mirror that is dead altogether. ``streaming.engine.mirror_silence`` watches for that.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses
from pyspark.sql.streaming.state import GroupStateTimeout

from coordinator_model.wire.record import HEADER_NAME
from streaming.engine.results import Outputs
from streaming.spark import checkpoint
from streaming.spark.versions import FILE_MANAGER
from streaming.spark.worker import OUTPUT_SCHEMA, STATE_SCHEMA, Replay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from coordinator_model.settings import Settings
    from streaming.config.settings import MonitorConfig
    from streaming.engine.intake import Model

_LANE: Final = "REBALANCE_LANE"
"""Environment variable of a lane's Python workers. No code reads it; the module's docstring says why it is set."""

_STATE_STORE: Final = "spark.sql.streaming.stateStore"

SPARK_SETTINGS: Final[tuple[tuple[str, str, str], ...]] = (
    # setting, value, why; beside those that the configuration must not change (streaming.config.spark)
    (f"{_STATE_STORE}.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider", "see next"),
    (f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled", "true", "a batch writes what changed, not the whole store"),
    (f"{_STATE_STORE}.maintenanceInterval", "10s", "old versions go soon: a batch may leave megabytes behind"),
    ("spark.sql.streaming.minBatchesToRetain", "10", "the default of 100 batches is gigabytes at 10,000 groups"),
    ("spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER, "the default forks a process at each rename on a local disk"),
    ("spark.sql.streaming.noDataProgressEventInterval", "1s", "how often a query without data says so; silence is seen by it"),
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "50000", "few Arrow batches per key; the record limit bounds memory"),
    (
        "spark.kafka.consumer.cache.capacity",
        "4096",
        "a consumer for each partition of each query; beyond the default of 64 each batch makes new ones",
    ),
    ("spark.sql.session.timeZone", "UTC", "times are microseconds since the epoch everywhere"),
    (
        "spark.sql.codegen.factoryMode",
        "NO_CODEGEN",
        "interpreted projections: a generated one costs milliseconds a partition and batch",
    ),
    ("spark.sql.adaptive.enabled", "false", "Spark turns it off in streams anyway, and warns each time"),
    ("spark.scheduler.mode", "FAIR", "the quality query's tasks must not stand before those of the findings"),
    ("spark.ui.enabled", "false", "one port less, and half a second of start-up"),
    ("spark.ui.showConsoleProgress", "false", "the terminal is the monitor's"),
    ("spark.ui.retainedJobs", "10", "kept for a UI that is off; thousands of batches an hour"),
    ("spark.ui.retainedStages", "10", "likewise"),
    ("spark.ui.retainedTasks", "100", "likewise"),
    ("spark.sql.ui.retainedExecutions", "5", "likewise"),
)

_SOURCE_OPTIONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("includeHeaders", "true", "the envelope is a record header"),
    ("failOnDataLoss", "false", "a hole in the offsets is seen by the model, told as a finding and survived"),
    (
        "kafka.fetch.max.wait.ms",
        "1",
        "a task waits so long at each of its partitions, and fetches only what is there; the default is 500",
    ),
    ("kafka.max.poll.records", "5000", "the client's default of 500 costs a loop per 500 records in a backlog"),
    ("kafka.allow.auto.create.topics", "false", "a mirror topic that was deleted must not come back by itself"),
    ("kafka.check.crcs", "true", "the default, said aloud: the evidence must be what was captured"),
)


def lanes_of(config: MonitorConfig, partitions: int) -> int:
    """How many lanes have a mirror partition to read."""
    return min(config.job.lanes, partitions)


def partitions_of(lane: int, config: MonitorConfig, partitions: int) -> list[int]:
    """The mirror partitions of a lane. One that has been dealt out stays where it is when the topic gains others."""
    return list(range(lane, partitions, config.job.lanes))


def start(
    spark: SparkSession, config: MonitorConfig, lane: int, *, model: type[Model], settings: Settings, partitions: int
) -> StreamingQuery:
    """Start the findings query of a lane.

    :param model: class of the coordinator model, importable by the workers.
    :param settings: handed to the model as it is.
    :param partitions: of the mirror topic.
    """
    replay = stateful(config, model=model, settings=settings, partitions=partitions)
    spark.sparkContext.environment[_LANE] = str(lane)
    results = by_lane(records_of(spark, config, lane, partitions), config).applyInPandasWithState(
        replay, OUTPUT_SCHEMA, STATE_SCHEMA, "update", GroupStateTimeout.NoTimeout
    )
    return write(results, config, lane)


def by_lane(rows: DataFrame, config: MonitorConfig) -> GroupedData:
    """All rows of a lane under its one key. That is computed, since Spark groups by no constant."""
    return rows.withColumn("lane", F.col("partition") % config.job.lanes).groupBy("lane")


def stateful(config: MonitorConfig, *, model: type[Model], settings: Settings, partitions: int) -> Replay:
    """What is done with the rows of a lane; parameters as for :func:`start`."""
    return Replay(
        topic=config.topics.mirror,
        outputs=Outputs(
            findings=config.topics.findings,
            groups=config.topics.groups,
            events=config.topics.events,
            status=config.topics.status,
            dead_letters=config.topics.dead_letters,
        ),
        model=model,
        settings=settings,
        run_id=uuid.uuid4().hex,
        partitions=partitions,
    )


def write(results: DataFrame, config: MonitorConfig, lane: int) -> StreamingQuery:
    """Start a query that writes rows of :data:`streaming.spark.worker.OUTPUT_SCHEMA` to their topics."""
    return (
        results.writeStream.queryName(f"{checkpoint.FINDINGS}-{lane}")
        .format("kafka")
        .options(**config.kafka.for_spark())
        .outputMode("update")
        .trigger(processingTime=f"{config.job.trigger_ms} milliseconds")
        .option("checkpointLocation", f"{config.job.place}/{checkpoint.FINDINGS}/{lane}")
        .start()
    )


def records_of(spark: SparkSession, config: MonitorConfig, lane: int, partitions: int) -> DataFrame:
    """A lane's share of the mirror topic, see :func:`records`."""
    topic, mine = config.topics.mirror, partitions_of(lane, config, partitions)
    job, lanes = config.job, lanes_of(config, partitions)
    source = {"assign": json.dumps({topic: mine})}
    if job.wait_for_records and job.wait_ms:
        source |= {"minOffsetsPerTrigger": str(-(-job.wait_for_records // lanes)), "maxTriggerDelay": f"{job.wait_ms}ms"}
    return records(spark, config, source, max_records=-(-job.max_records_per_batch // lanes))


def records(spark: SparkSession, config: MonitorConfig, source: Mapping[str, str], *, max_records: int) -> DataFrame:
    """The mirror topic, or partitions of it, as a stream with the columns :data:`streaming.spark.worker.INPUT_COLUMNS`.

    One task reads it, which needs no shuffle. The columns are made behind that: before it, Spark would make them anew for each partition,
    in each batch.

    :param source: options of Spark's Kafka source: which topic or partitions, and when a batch is worth it.
    """
    stream = (
        spark.readStream.format("kafka")
        .options(**{name: value for name, value, _ in _SOURCE_OPTIONS})
        .options(**config.kafka.for_spark())
        .options(**source)
        .option("startingOffsets", config.job.starting_offsets)
        .option("maxOffsetsPerTrigger", max_records)
        .load()
        .coalesce(1)
    )
    timestamp = F.unix_millis("timestamp")
    return stream.select("partition", "offset", timestamp.alias("timestamp_ms"), "key", "value", _envelope().alias("envelope"))


def _envelope() -> Column:
    """The first header of the right name, which nearly always is the first of all: filtering an array is interpreted, row by row."""
    first = F.get("headers", F.lit(0))
    among_others = F.get(F.filter("headers", lambda header: header["key"] == HEADER_NAME), F.lit(0))
    return F.when(first["key"] == HEADER_NAME, first["value"]).otherwise(among_others["value"])
