"""The job with ``transformWithStateInPandas`` instead of ``applyInPandasWithState``: the same function, the same state. A mode of ``make bench``.

Needs Spark 4.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from streaming.spark import job
from streaming.spark.monitor import Monitor
from streaming.spark.worker import OUTPUT_SCHEMA, STATE_SCHEMA, Replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class _State:
    """What of a ``GroupState`` the function uses, on a state variable."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    @property
    def exists(self) -> bool:
        return bool(self._variable.exists())

    @property
    def get(self) -> Any:
        return self._variable.get()

    def update(self, value: Any) -> None:
        self._variable.update(value)


class ReplayProcessor(StatefulProcessor):
    """Calls the function with the rows of a lane."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = _State(handle.getValueState("snapshots", STATE_SCHEMA))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N803
        del timerValues
        return self._replay(key, rows, self._state)  # type: ignore[arg-type]

    def close(self) -> None:
        pass


class WithProcessor(Monitor):
    """The monitor with the other operator in its queries."""

    def _start_lane(self, lane: int, spark: SparkSession) -> StreamingQuery:
        config = self._config
        replay = job.stateful(config, model=self._model, settings=config.model, partitions=self._partitions)
        rows = job.records_of(spark, config, lane, self._partitions)
        results = job.by_lane(rows, config).transformWithStateInPandas(ReplayProcessor(replay), OUTPUT_SCHEMA, "update", "none")
        return job.write(results, config, lane)
