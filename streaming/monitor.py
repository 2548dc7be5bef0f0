"""The running monitor: the findings query, the quality query, and the watch over the mirror's silence, put together."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Self

from coordinator_model.coordinator import Coordinator
from streaming import checkpoint, job
from streaming.quality.checker import Checker
from streaming.quality.query import start as start_quality
from streaming.silence import SilenceWatch, subjects
from streaming.sinks.findings import FindingsWriter
from streaming.sinks.topics import newest_record_us
from streaming.standing import Standing
from streaming.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from streaming.config import MonitorConfig
    from streaming.replay import Model
    from streaming.sinks.topics import Mirror
    from streaming.supervisor import Progress

_PROGRESS_EVERY_S: Final = 1.0
_FLUSH_S: Final = 10.0


class Monitor:
    """A context manager; :meth:`tend` is to be called several times a second.

    :param lock: file descriptor of the checkpoint's lock.
    :param published: the findings that are open in the findings topic.
    :param tell: called with one sentence about anything an operator should know.
    :param model: class of the coordinator model; the bench has another one.
    """

    def __init__(
        self,
        config: MonitorConfig,
        mirror: Mirror,
        *,
        lock: int,
        published: Sequence[dict[str, Any]],
        tell: Callable[[str], None],
        model: type[Model] = Coordinator,
    ) -> None:
        self.progress: Progress | None = None
        self._looked_at = 0.0
        self._config = config
        self._model = model
        self._writer = FindingsWriter(config.kafka, config.topics.findings)
        self._silence = SilenceWatch(
            topic=mirror.topic,
            allowed_ms=config.model.silence_ms,
            newest_us=lambda partition: newest_record_us(config, partition),
            standing=Standing(config.cluster, published, subjects(mirror.topic, mirror.partitions)),
        )
        queries: dict[str, Callable[[SparkSession], StreamingQuery]] = {checkpoint.FINDINGS: self._start_findings}
        if config.quality.enabled:
            checker = Checker(config, published=published, publisher=self._writer)
            queries[checkpoint.QUALITY] = lambda spark: start_quality(spark, config, checker)
        self._supervisor = Supervisor(config, queries, lock=lock, tell=tell)

    def __enter__(self) -> Self:
        try:
            self._supervisor.start()
        except BaseException:
            self._supervisor.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._supervisor.stop()
        self._writer.flush(_FLUSH_S)

    def tend(self) -> None:
        """Start again what ended, and look whether the mirror speaks.

        :raises SetupError: when something failed for a reason that does not go away.
        """
        self._supervisor.tend()
        if time.monotonic() - self._looked_at < _PROGRESS_EVERY_S:
            return
        self._looked_at = time.monotonic()
        if not self._supervisor.is_running():
            self._silence.pause()
            return
        self.progress = self._supervisor.progress()
        if self.progress is not None:
            found = self._silence.observe(self.progress.read, self.progress.available, time.time_ns() // 1000)
            self._writer.publish(found)

    def _start_findings(self, spark: SparkSession) -> StreamingQuery:
        folder = self._config.job.checkpoint / checkpoint.FINDINGS
        return job.start(spark, self._config, model=self._model, settings=self._config.model, checkpoint=folder)
