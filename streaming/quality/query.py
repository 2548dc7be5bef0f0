"""The second query of the Spark application: every record of the mirror topic, batch by batch, to Great Expectations in the driver.

Great Expectations cannot look at a stream, and on its Spark engine it takes ten times as long as on pandas; so each micro-batch is
fetched whole. The record limit of the trigger bounds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streaming import checkpoint, job
from streaming.replay import INPUT_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from streaming.config import MonitorConfig
    from streaming.quality.checker import Checker

POOL: Final = "quality"
"""Spark's scheduler shares cores between pools; in one pool it would be first come, first served."""


def start(spark: SparkSession, config: MonitorConfig, checker: Checker) -> StreamingQuery:
    """Start the query; it resumes from its own part of the checkpoint."""

    def check(frame: DataFrame, batch: int) -> None:
        columns = frame.toArrow().to_pydict()
        checker.check(zip(*(columns[name] for name in INPUT_COLUMNS), strict=True), batch)

    spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
    try:
        rows = job.records(spark, config, max_records=config.quality.max_records_per_batch).coalesce(1)
        return (
            rows.writeStream.queryName(checkpoint.QUALITY)
            .foreachBatch(check)
            .trigger(processingTime=f"{int(config.quality.trigger_s * 1000)} milliseconds")
            .option("checkpointLocation", str((config.job.checkpoint / checkpoint.QUALITY).resolve()))
            .start()
        )
    finally:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
