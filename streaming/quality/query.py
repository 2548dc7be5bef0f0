"""The second query of the Spark application: every record of the mirror topic, batch by batch, to Great Expectations in the driver.

Great Expectations cannot look at a stream, and on its Spark engine it takes ten times as long as on pandas; so each micro-batch is
fetched whole. The record limit of the trigger bounds it.

The trap: a batch is ten seconds of records, a core's work for a second or two, and a finding must not wait for it. Spark's fair pools
share tasks, not the time in Python; so the thread that checks gives way to everybody else.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
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

NICENESS: Final = 10
"""A tenth of a contended core's time: findings hardly feel it, and a machine that is always busy leaves something for the checks."""


def start(spark: SparkSession, config: MonitorConfig, checker: Checker) -> StreamingQuery:
    """Start the query; it resumes from its own part of the checkpoint."""

    def check(frame: DataFrame, batch: int) -> None:
        _give_way()
        columns = frame.toArrow().to_pydict()
        checker.check(zip(*(columns[name] for name in INPUT_COLUMNS), strict=True), batch)

    spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
    try:
        mirror = {"subscribe": config.topics.mirror}
        rows = job.records(spark, config, mirror, max_records=config.quality.max_records_per_batch).coalesce(1)
        return (
            rows.writeStream.queryName(checkpoint.QUALITY)
            .foreachBatch(check)
            .trigger(processingTime=f"{int(config.quality.trigger_s * 1000)} milliseconds")
            .option("checkpointLocation", str((config.job.checkpoint / checkpoint.QUALITY).resolve()))
            .start()
        )
    finally:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]


def _give_way() -> None:
    """Lower the priority of this thread, which runs the checks; only Linux has one for each thread."""
    if sys.platform == "linux":
        lower = min(19, os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS)
        with contextlib.suppress(PermissionError):  # it is lower already
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), lower)
