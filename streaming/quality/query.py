"""The second query of the Spark application: every record of the mirror topic, batch by batch, to Great Expectations.

Great Expectations cannot look at a stream, and on its Spark engine it takes ten times as long as on pandas; so each micro-batch is
fetched whole. The record limit of the trigger bounds it.

The driver is to do no more with a batch than to hand it on, as it came from the JVM, to the process that checks
(``streaming.quality.process``); whatever is done here, the findings wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from streaming.spark import checkpoint, job
from streaming.spark.versions import to_arrow
from streaming.spark.worker import INPUT_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from streaming.config.settings import MonitorConfig
    from streaming.quality.process import QualityProcess

POOL: Final = "quality"
"""Spark's scheduler shares cores between pools; in one pool it would be first come, first served."""


def start(spark: SparkSession, config: MonitorConfig, checks: QualityProcess) -> StreamingQuery:
    """Start the query; it resumes from its own part of the checkpoint."""

    def check(frame: DataFrame, batch: int) -> None:
        checks.check(as_stream(to_arrow(frame)), batch)

    spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
    try:
        mirror = {"subscribe": config.topics.mirror}
        rows = job.records(spark, config, mirror, max_records=config.quality.max_records_per_batch)
        return (
            rows.writeStream.queryName(checkpoint.QUALITY)
            .foreachBatch(check)
            .trigger(processingTime=f"{int(config.quality.trigger_s * 1000)} milliseconds")
            .option("checkpointLocation", f"{config.job.place}/{checkpoint.QUALITY}")
            .start()
        )
    finally:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)


def as_stream(table: pa.Table) -> memoryview:
    """A batch as ``streaming.quality.process`` takes it."""
    rows = table.select(INPUT_COLUMNS)
    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, rows.schema) as stream:
        stream.write_table(rows)
    return memoryview(written.getvalue())
