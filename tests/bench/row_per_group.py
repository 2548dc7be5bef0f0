"""The natural alternative to the job: one state row per group. A mode of ``make bench``, so that what it costs stays visible.

It is given every advantage: no status, no dead letters, offsets numbered per group so that the model misses none. What it lacks is
what the real job is keyed by partition for: nobody sees a hole in the topic, and no clock moves a silent group.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from coordinator_model.coordinator import Coordinator
from coordinator_model.wire.record import unpack_record
from streaming.engine.results import OutputRow
from streaming.spark import job
from streaming.spark.monitor import Monitor
from streaming.spark.worker import OUTPUT_SCHEMA, in_offset_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from coordinator_model.settings import Settings


class GroupReplay:
    """Called with all new rows of one group."""

    def __init__(self, topic: str, findings: str, groups: str, settings: Settings) -> None:
        self.topic, self.findings, self.groups, self.settings = topic, findings, groups, settings

    def __call__(self, _key: tuple[bytes], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        out: list[OutputRow] = []
        if state.exists:
            model = Coordinator.restore(base64.b64decode(state.get[0]), settings=self.settings)
        else:
            model = Coordinator(topic=self.topic, partition=0, settings=self.settings)
        (rows,) = in_offset_order(frames).values()
        for partition, _offset, _timestamp_ms, key, value, envelope in rows:
            record = unpack_record(partition=partition, offset=model.next_offset or 0, key=key, value=value, envelope=envelope)
            out += [OutputRow(self.findings, found.id, json.dumps(found.as_json())) for found in model.receive(record)]
        out += [OutputRow(self.groups, group.key, json.dumps(group.as_json())) for group in model.changed_groups()]
        state.update((base64.b64encode(model.snapshot()).decode("ascii"),))
        yield pd.DataFrame(out, columns=OutputRow._fields)


class RowPerGroup(Monitor):
    """The monitor with the other queries in it."""

    def _start_lane(self, lane: int, spark: SparkSession) -> StreamingQuery:
        config = self._config
        replay = GroupReplay(config.topics.mirror, config.topics.findings, config.topics.groups, config.model)
        results = (
            job.records_of(spark, config, lane, self._partitions)
            .where(F.col("key").isNotNull())
            .groupBy("key")
            .applyInPandasWithState(replay, OUTPUT_SCHEMA, "snapshot string", "update", GroupStateTimeout.NoTimeout)
        )
        return job.write(results, config, lane)
