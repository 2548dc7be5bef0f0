"""The running monitor: the findings queries, the quality query, and the watch over the mirror's silence, put together."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from py4j.protocol import Py4JError

from coordinator_model.coordinator import Coordinator
from streaming.config.spark import is_submitted
from streaming.engine.mirror_silence import SilenceWatch, subjects
from streaming.engine.notifier_watch import NotifierWatch
from streaming.engine.own_findings import Standing
from streaming.kafka.mirror_watch import MirrorWatch
from streaming.kafka.topics import newest_record_us
from streaming.quality.process import QualityProcess
from streaming.quality.query import start as start_quality
from streaming.sinks.findings import FindingsWriter
from streaming.sinks.notifiers import SignsOfLife
from streaming.spark import checkpoint, job, jvm
from streaming.spark.hadoop import HadoopPath
from streaming.spark.lease import Lease
from streaming.spark.supervisor import JVM_ENDS_WITHIN_S, Supervisor

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from streaming.config.settings import MonitorConfig
    from streaming.engine.intake import Model
    from streaming.kafka.topics import Mirror
    from streaming.spark.supervisor import QueryProgress

_PROGRESS_EVERY_S: Final = 1.0
_SAY_STARTING_EVERY_S: Final = 10.0
_STARTS_WITHIN_S: Final = 180.0  # one that takes longer is not called alive any more
_FETCHES_WITHIN_S: Final = 900.0  # on a slow line
_STALLED_S: Final = 5.0  # without a word from a lane, which says something each second, data or not
_SAY_STALLED_S: Final = 45.0
_FLUSH_S: Final = 10.0
_LONG_OR_AWAY: Final = "a long batch, or no answer from Kafka"


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
        self.progress: QueryProgress | None = None
        self._looked_at = 0.0
        self._started_at = self._said_starting_at = self._progress_at = 0.0
        self.is_running = False  #: whether the findings queries run, as far as is known without asking the JVM, which may be dying
        self._moved_at = time.monotonic()
        self._said_stalled = False
        self._tell = tell
        self._config = config
        self._model = model
        self.writer = FindingsWriter(config.kafka, config.topics.findings, tell=tell)  #: of the driver's own
        self._mirror_watch = MirrorWatch(config, mirror, tell=tell)
        self._partitions = mirror.partitions
        self._silence = SilenceWatch(
            topic=mirror.topic,
            allowed_ms=config.model.silence_ms,
            newest_us=lambda partition: newest_record_us(config, partition),
            standing=Standing(config.cluster, published, subjects(mirror.topic, mirror.partitions)),
        )
        self._notifiers, self._signs = NotifierWatch(config.cluster, published), SignsOfLife(config, tell=tell)
        self._checks = QualityProcess(config) if config.quality.enabled else None
        others = {} if self._checks is None else {checkpoint.QUALITY: partial(start_quality, config=config, checks=self._checks)}
        self._mirror = mirror
        self._folder = config.job.checkpoint if config.job.state is None else HadoopPath(config.job.state)
        lease = None if isinstance(self._folder, Path) else Lease(self._folder)
        self._supervisor = Supervisor(config, others=others, lock=lock, lease=lease, admit=self._check_state, tell=tell)
        self._add_lanes()

    def __enter__(self) -> Self:
        try:
            self._fetch()
            with self._saying_starting(_STARTS_WITHIN_S):
                self._supervisor.start()
            took_s = time.monotonic() - self._started_at
            self._tell(f"Spark runs after {took_s:.0f} s; the first batch, in a JVM that is still cold, takes up to a minute")
        except BaseException:
            self._stop()
            raise
        self._mirror_watch.__enter__()
        self._moved_at = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._signs.close()
        self._mirror_watch.__exit__()
        self._stop()
        self.writer.flush(_FLUSH_S)

    def _stop(self) -> None:
        with nullcontext() if self._checks is None else self._checks.closing(self._config.job.stop_wait_s):
            self._supervisor.stop()

    @property
    def not_reading(self) -> str | None:
        """That nothing is read, since when and why, as far as is known; None while records are read or there are none."""
        still_s = time.monotonic() - self._progress_at
        if self.progress is None:
            return f"starting for {still_s:.0f} s, nothing read yet"
        if not self.is_running:
            return f"nothing read for {still_s:.0f} s: a query or the JVM is being started again"
        return f"nothing read for {still_s:.0f} s: {_LONG_OR_AWAY}" if still_s > _STALLED_S else None

    @property
    def restarts(self) -> Counter[str]:
        """How often the queries and the JVM had to be started again."""
        return self._supervisor.restarts

    def tend(self) -> None:
        """Restart what ended, and check that the mirror is alive.

        :raises SetupError: when something failed for a reason that does not go away.
        """
        self.writer.tend()
        try:
            self._follow_the_mirror()
            self._supervisor.tend()
            self._look()
        except (Py4JError, OSError):
            self.is_running = False
            if not self._supervisor.jvm_has_ended(JVM_ENDS_WITHIN_S):
                raise  # the next round sees that it is gone, and starts another

    def _follow_the_mirror(self) -> None:
        """A restart hands the new number of partitions to the models, and the partitions to the lanes."""
        partitions = self._mirror_watch.partitions()
        if partitions != self._partitions:
            self._partitions = partitions
            checkpoint.note(self._folder, partitions=partitions)
            self._supervisor.restart_lanes()
            self._add_lanes()

    def _check_state(self) -> None:
        """What is kept elsewhere can be looked at only now that Spark runs; a local folder has been looked at before."""
        if not isinstance(self._folder, Path):
            for sentence in checkpoint.check(self._folder, self._mirror, lanes=self._config.job.lanes):
                self._tell(sentence)

    def _fetch(self) -> None:
        """Fetch what a JVM of our own needs beyond Spark, unless it is there."""
        if not is_submitted() and not jvm.are_fetched():
            self._tell("fetching Spark's Kafka connector (60 MB, once for this user)")
            with self._saying_starting(_FETCHES_WITHIN_S):
                jvm.jars("spark")

    @contextmanager
    def _saying_starting(self, within_s: float) -> Iterator[None]:
        """Say it again and again while this thread waits for something else, but for no longer than that may take."""
        self._started_at = self._progress_at = time.monotonic()
        started = threading.Event()

        def say() -> None:
            while time.monotonic() - self._started_at < within_s:
                self._say_starting()
                if started.wait(_SAY_STARTING_EVERY_S):
                    break

        starting_notice = threading.Thread(target=say, name="starting")
        starting_notice.start()
        try:
            yield
        finally:
            started.set()
            starting_notice.join()

    def _say_starting(self) -> None:
        """Write to the status topic that the monitor starts: a slow start would look like a dead monitor."""
        now = time.monotonic()
        topics, now_ms = self._config.topics, time.time_ns() // 1_000_000
        value = {"topic": topics.mirror, "written_ms": now_ms, "starting_since_ms": now_ms - int((now - self._started_at) * 1000)}
        self.writer.publish_json(topics.status, f"{topics.mirror}/monitor", value)
        self._said_starting_at = now

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked_at < _PROGRESS_EVERY_S:
            return
        self._looked_at = now
        if (
            self.progress is None
            and now - self._said_starting_at >= _SAY_STARTING_EVERY_S
            and now - self._started_at < _STARTS_WITHIN_S
        ):
            self._say_starting()
        self.is_running = self._supervisor.is_running()
        if not self.is_running:
            self._pause()
            self._moved_at = time.monotonic()  # why, the supervisor has said
            return
        progress = self._supervisor.progress()
        if progress is None or (self.progress is not None and progress.at == self.progress.at):
            self._stalled(time.monotonic() - self._moved_at)
            return
        self._moved_at = self._progress_at = time.monotonic()
        if self.progress is None:
            self._tell(f"the first batch is done, {self._moved_at - self._started_at:.0f} s after the start")
        self.progress, self._said_stalled = progress, False
        self.writer.publish(self._silence.observe(progress.read, progress.available, time.time_ns() // 1000))
        signs = self._signs.read()
        if signs is not None:
            self.writer.publish(self._notifiers.observe(signs, time.time_ns() // 1000))

    def _pause(self) -> None:
        """While nothing is read, nothing can be said of what others write."""
        self._silence.pause()
        self._notifiers.pause(time.time_ns() // 1000)

    def _stalled(self, stalled_s: float) -> None:
        if stalled_s > _STALLED_S:
            self._pause()
        if stalled_s > _SAY_STALLED_S and not self._said_stalled:
            self._said_stalled = True
            servers = self._config.kafka.bootstrap_servers
            self._tell(f"nothing was read for {stalled_s:.0f} s: {_LONG_OR_AWAY} at {servers}")

    def _add_lanes(self) -> None:
        """Those that have a partition to read by now."""
        for lane in range(self._supervisor.lanes, job.lanes_of(self._config, self._partitions)):
            self._supervisor.add_lane(partial(self._start_lane, lane))

    def _start_lane(self, lane: int, spark: SparkSession) -> StreamingQuery:
        return job.start(spark, self._config, lane, model=self._model, settings=self._config.model, partitions=self._partitions)
