"""Keeps the queries running: one Spark application, its queries, and what to do when one of them or the JVM ends.

A query that failed is started again after a wait that doubles, for nearly all that fails comes back: a broker, a disk, a worker. What
does not, a checkpoint that cannot be read, stops the monitor with the remedy.

A query resumes from its checkpoint, so a failure that lies in the checkpoint or in a record comes again at once. Records are therefore set
aside one by one in the worker, and the checkpoint's failures are distinguished by name below. But Spark calls a checkpoint broken, too,
that it merely cannot unpack on a full disk; so before anything is called damaged, the disk is tried.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streaming.config.spark import is_submitted
from streaming.errors import SetupError
from streaming.kafka.acls import refused_topics
from streaming.spark import session as jvm_spark
from streaming.spark.checkpoint import FINDINGS, disk_trouble, remedy
from streaming.spark.session import reason, text_of
from streaming.spark.versions import causes, offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.errors import StreamingQueryException
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from streaming.config.settings import MonitorConfig
    from streaming.spark.lease import Lease

    Start = Callable[[SparkSession], StreamingQuery]

_HEAD_START_S: Final = 30.0
JVM_ENDS_WITHIN_S: Final = 5.0
"""A call to a dying JVM fails in any way: so long it may take until it is gone."""

_CHECKPOINT_IS_DAMAGED: Final = re.compile(
    r"SnapshotError|CANNOT_LOAD_STATE_STORE|STATE_STORE_\w*(?:CHECKSUM|INVALID|CORRUPT)|INVALID_LOG_VERSION|MALFORMED_LOG_FILE"
    r"|FAILED_TO_READ_\w*|CANNOT_READ_CHECKPOINT|BATCH_METADATA_NOT_FOUND|ChecksumException|MISSING_METADATA_FILE"
)
_NOT_ON_EXECUTORS: Final = re.compile(r"No module named '(?:streaming|coordinator_model)\b|cannot import name .* from 'streaming")


class QueryProgress(NamedTuple):
    """How far the lanes are."""

    at: str  #: when the trigger began, batch or not, in the lane whose progress is oldest: it moves on while all lanes live
    batches: int  #: since the checkpoint was begun
    batch_ms: int  #: the newest batch, of the lane that took longest
    read: dict[int, int]  #: next offset by partition
    available: dict[int, int]  #: end offset by partition, when the batch began
    rows: int = 0  #: records of the newest batches; none if there was nothing to do

    @property
    def behind(self) -> int:
        """Records not read yet."""
        return sum(max(0, end - self.read.get(partition, 0)) for partition, end in self.available.items())


@dataclass(slots=True, eq=False)
class _Task:
    """One query, running or waiting to be started again."""

    name: str  #: of which part of the monitor: restarts are counted by it
    title: str  #: what messages to the operator call it
    start: Start
    query: StreamingQuery | None = None
    failures: int = 0
    start_at: float = 0.0
    started_at: float = 0.0


class Supervisor:
    """Runs queries in a Spark application of its own.

    :param others: how to start the queries beside the lanes, by name; they come after those.
    :param lock: file descriptor that the JVM inherits.
    :param lease: of a state that lies elsewhere.
    :param admit: called when Spark runs, before the first query; what it raises ends the monitor.
    :param tell: called with one sentence at each restart.
    """

    def __init__(
        self,
        config: MonitorConfig,
        *,
        others: Mapping[str, Start] = MappingProxyType({}),
        lock: int,
        lease: Lease | None = None,
        admit: Callable[[], None] = lambda: None,
        tell: Callable[[str], None],
    ) -> None:
        self._lease = lease
        self._admit = admit
        self._config = config
        self._lock = lock
        self._tell = tell
        self._lanes: list[_Task] = []
        self._others = [_Task(name, f"{name} query", start) for name, start in others.items()]
        self._spark: SparkSession | None = None
        self._jvm_failures = 0
        self.restarts: Counter[str] = Counter()  #: of lanes, of each other query, and of the JVM
        self._jvm_start_at: float | None = None  # None while it runs
        self._jvm_started_at = 0.0

    def add_lane(self, start: Start) -> None:
        """Have another lane, which is started at the next :meth:`tend`."""
        number = len(self._lanes)
        self._lanes.append(_Task(FINDINGS, f"{FINDINGS} query of lane {number}", start))

    @property
    def lanes(self) -> int:
        """How many there are."""
        return len(self._lanes)

    @property
    def _tasks(self) -> list[_Task]:
        return self._lanes + self._others

    def start(self) -> None:
        """Start the JVM and the queries.

        :raises SetupError: when that fails for good.
        """
        try:
            self._open()
        except (Py4JError, PySparkException, OSError) as error:
            raise SetupError(f"Spark does not start: {reason(text_of(error))}; see {self._config.job.jvm_log}") from None
        if self._lease is not None:
            self._lease.take()
        self._admit()
        for lane in self._lanes:
            try:
                self._begin(lane)
            except (Py4JError, PySparkException, OSError) as error:  # put into words now: later there is no JVM to ask for them
                raise SetupError(f"the {lane.title} does not start: {self._why(text_of(error))}") from None

    def tend(self) -> None:
        """Look after everything; to be called several times a second.

        :raises SetupError: when a query failed for a reason that does not go away.
        """
        if self._jvm_start_at is not None:
            self._start_jvm_again()
        elif self._spark is None or not jvm_spark.jvm_is_alive(self._spark):
            self._jvm_ended()
        if self._spark is None:
            return
        if self._lease is not None:
            self._lease.keep()
        for task in self._tasks:
            if task.query is None:
                if time.monotonic() >= task.start_at and (task in self._lanes or self._lanes_have_begun()):
                    self._begin_again(task)
            elif not task.query.isActive:
                self._failed(task, task.query)

    def _begin(self, task: _Task) -> None:
        assert self._spark is not None
        task.query = task.start(self._spark)
        task.started_at = time.monotonic()

    def _begin_again(self, task: _Task) -> None:
        try:
            self._begin(task)
        except (Py4JError, PySparkException, OSError) as error:
            text = text_of(error)
            if not self.jvm_has_ended(JVM_ENDS_WITHIN_S):  # else it failed for that, which the next round sees
                self._again_later(task, f"the {task.title} does not start: {self._why(text)}")

    def restart_lanes(self) -> None:
        """Let them finish their batches, and start them again at the next :meth:`tend`, with whatever has changed."""
        for task in self._lanes:
            if task.query is not None:
                _stop_between_batches(task.query, time.monotonic() + self._config.job.stop_wait_s)
                task.query, task.start_at = None, 0.0

    def jvm_has_ended(self, wait_s: float) -> bool:
        """Whether the JVM is gone, or goes within ``wait_s``: any call to it may fail in any way while it dies."""
        return self._spark is not None and not jvm_spark.jvm_is_alive(self._spark, wait_s=wait_s)

    def _lanes_have_begun(self) -> bool:
        """The other queries let the lanes have the cold JVM to themselves: their first batch is what an operator waits for."""
        return not any(_is_about_to_begin(lane) for lane in self._lanes)

    def is_running(self) -> bool:
        """Whether all lanes run."""
        return all(lane.query is not None and lane.query.isActive for lane in self._lanes)

    def progress(self) -> QueryProgress | None:
        """Of all lanes together; None while one of them has not said anything yet."""
        reports = [report for lane in self._lanes if lane.query is not None and (report := _progress(lane.query)) is not None]
        if len(reports) < len(self._lanes):
            return None
        return QueryProgress(
            at=min(report.at for report in reports),
            batches=sum(report.batches for report in reports),
            batch_ms=max(report.batch_ms for report in reports),
            read={partition: offset for report in reports for partition, offset in report.read.items()},
            available={partition: offset for report in reports for partition, offset in report.available.items()},
            rows=sum(report.rows for report in reports),
        )

    def stop(self) -> None:
        """Let each query finish its batch, then end them and the JVM."""
        if self._spark is None:
            return
        if jvm_spark.jvm_is_alive(self._spark):
            deadline = time.monotonic() + self._config.job.stop_wait_s
            for task in self._tasks:
                if task.query is not None:
                    with contextlib.suppress(Py4JError, PySparkException, OSError):  # a JVM that got the signal too is going
                        _stop_between_batches(task.query, deadline)
            if self._lease is not None:
                self._lease.release()
        jvm_spark.close_session(self._spark)
        self._spark = None

    def _open(self) -> None:
        self._spark = jvm_spark.open_session(self._config.job, self._config.spark, inherited=(self._lock,))
        self._jvm_started_at, self._jvm_start_at = time.monotonic(), None

    def _jvm_ended(self) -> None:
        if is_submitted():
            raise SetupError("the JVM that spark-submit has started ended; submit the monitor again")
        if self._has_recovered(self._jvm_started_at):
            self._jvm_failures = 0
        self._jvm_again_later(f"the JVM ended by itself, see {self._config.job.jvm_log}")
        if self._spark is not None:
            jvm_spark.close_session(self._spark)
        self._spark = None
        for task in self._tasks:
            task.query = None

    def _jvm_again_later(self, why: str) -> None:
        wait = self._wait(self._jvm_failures)
        self._jvm_failures += 1
        self.restarts["jvm"] += 1
        self._jvm_start_at = time.monotonic() + wait
        self._tell(f"{why}; starting it again in {wait:.0f} s")

    def _start_jvm_again(self) -> None:
        assert self._jvm_start_at is not None
        if time.monotonic() < self._jvm_start_at:
            return
        try:
            self._open()
        except (Py4JError, PySparkException, OSError) as error:
            self._jvm_again_later(f"the JVM does not start: {reason(text_of(error))}, see {self._config.job.jvm_log}")

    def _failed(self, task: _Task, query: StreamingQuery) -> None:
        error = query.exception()
        text = _in_full(error) if error is not None else "it was stopped from outside"
        why = self._why(text)
        if self._has_recovered(task.started_at):
            task.failures = 0
        self._again_later(task, f"the {task.title} stopped: {why}")

    def _why(self, text: str) -> str:
        """One sentence out of what Spark said of a failure.

        :raises SetupError: when the checkpoint is damaged: that does not go away.
        """
        kafka, mirror, folder = self._config.kafka, self._config.topics.mirror, self._config.job.checkpoint.absolute()
        why = refused_topics(kafka.for_librdkafka(), text, read=[mirror]) or reason(text)
        if (trouble := disk_trouble(folder, text)) is not None:
            return trouble
        if _NOT_ON_EXECUTORS.search(text):
            raise SetupError(
                f"the Python of the executors has no rebalance-monitor, or another package named streaming before it: {why}"
            )
        if _CHECKPOINT_IS_DAMAGED.search(text):
            raise SetupError(f"the checkpoint cannot be read: {why}; {remedy(folder)}")
        return why

    def _again_later(self, task: _Task, what: str) -> None:
        wait = self._wait(task.failures)
        task.failures += 1
        self.restarts[task.name] += 1
        task.query, task.start_at = None, time.monotonic() + wait
        self._tell(f"{what}; starting it again in {wait:.0f} s")

    def _has_recovered(self, started_at: float) -> bool:
        """Whether what was started then ran for so long that its end is a new failure."""
        return time.monotonic() - started_at > 2 * self._config.job.restart_wait_max_s

    def _wait(self, failures: int) -> float:
        job = self._config.job
        return min(job.restart_wait_max_s, job.restart_wait_s * 2.0 ** min(failures, 20))


def _is_about_to_begin(lane: _Task) -> bool:
    patient = time.monotonic() - lane.started_at < _HEAD_START_S
    return patient and lane.query is not None and lane.query.isActive and lane.query.lastProgress is None


def _progress(query: StreamingQuery) -> QueryProgress | None:
    """Of one lane; None before its first batch."""
    report = query.lastProgress
    if not report or not report["sources"]:
        return None
    source = report["sources"][0]
    return QueryProgress(
        at=report["timestamp"],
        batches=report["batchId"] + 1,
        batch_ms=int(report["durationMs"].get("triggerExecution", 0)),
        read=_offsets(source["endOffset"]),
        available=_offsets(source["latestOffset"]),
        rows=report["numInputRows"],
    )


def _in_full(error: StreamingQueryException) -> str:
    """What a query's exception says, then its cause, and so on: where the driver failed, Spark shows no more than the outermost."""
    return "\n".join(map(str, causes(error)))


def _stop_between_batches(query: StreamingQuery, deadline: float) -> None:
    """A batch that is broken off is repeated after the restart: no harm, but its work is lost."""
    begun = _batches(query)
    while query.isActive and query.status["isTriggerActive"] and _batches(query) == begun and time.monotonic() < deadline:
        time.sleep(0.02)
    query.stop()


def _batches(query: StreamingQuery) -> Any:
    report = query.lastProgress
    return report["batchId"] if report else None


def _offsets(reported: Any) -> dict[int, int]:
    """Offsets by partition out of Spark's ``{"topic": {"0": 17}}``."""
    return {int(partition): offset for topic in offsets(reported).values() for partition, offset in topic.items()}
