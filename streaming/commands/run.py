"""``rebalance-monitor run``: the checks before the start, the main loop, and its output for the operator.

Starting a JVM takes seconds, and its errors are Java stack traces. So configuration, Kafka, topics and checkpoint are checked first, with
clear messages.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from coordinator_model.finding import Severity
from coordinator_model.wording import counted
from streaming.commands.output import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNUSABLE, print_error, say, stdout
from streaming.commands.stopping import stop_signals
from streaming.config.settings import ConfigError, Job, MonitorConfig, load
from streaming.config.spark import is_submitted
from streaming.errors import SetupError
from streaming.kafka.topics import Mirror, prepare
from streaming.logs import log_to
from streaming.published.wire_text import visible
from streaming.replay.timeline import COLOURS
from streaming.sinks.findings import FindingsReader, News
from streaming.sinks.retention import History
from streaming.spark import checkpoint
from streaming.spark.jvm import JvmError, refused_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from streaming.spark.supervisor import QueryProgress


_POLL_S: Final = 0.25
_STATUS_EVERY_S: Final = 10.0
_AT_MOST_S: Final = 2.0


def run_command(config: Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="Configuration file (TOML).")]) -> None:
    """Run the monitor until it is stopped: read the mirror topic, replay it through the coordinator model, publish findings.

    rebalance-monitor run --config deploy/rebalance-monitor.toml

    REBALANCE_MONITOR_KAFKA__BOOTSTRAP_SERVERS=kafka-1:9092 rebalance-monitor run -c monitor.toml

    SIGTERM or Ctrl-C stops it after the current batch; the next start continues from there.
    """
    raise typer.Exit(run(config))


def run(file: Path) -> int:
    """Run the monitor with a configuration file until a signal ends it; return the exit status."""
    try:
        configuration = load(file)
        with stop_signals() as stop:
            mirror = prepare(configuration)
            _check_logs(configuration.job)
            _check_jvm_options(configuration.job)
            folder = configuration.job.checkpoint.absolute()  # absolute, because messages contain it
            with checkpoint.locked(folder, tell=lambda sentence: say(stdout(), sentence)) as lock:
                is_local = configuration.job.state is None  # else Spark has to run before anything of it can be seen
                notes = checkpoint.check(folder, mirror, lanes=configuration.job.lanes) if is_local else []
                _watch(configuration, mirror, lock, stop, notes)
    except (ConfigError, SetupError, JvmError) as error:
        print_error(error)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return EXIT_OK


def _watch(configuration: MonitorConfig, mirror: Mirror, lock: int, stop: threading.Event, notes: list[str]) -> None:
    # Imported late: Spark and pandas take most of a second, and an invalid configuration is reported before.
    from streaming.metrics.endpoint import serving  # noqa: PLC0415
    from streaming.spark.monitor import Monitor  # noqa: PLC0415

    log_to(configuration.job.python_log)
    topics, kafka = configuration.topics, configuration.kafka
    with (
        contextlib.closing(Screen(stdout())) as screen,
        serving(configuration, mirror, tell=screen.say) as metrics,
        FindingsReader(kafka, topics.findings, tell=screen.say) as reader,
    ):
        if metrics is not None:
            screen.say(f"metrics at {metrics.url}")
        for sentence in notes:
            screen.say(sentence)
        reader.catch_up()
        screen.say(f"{describe_open(list(reader.open.values()))}; starting Spark on topic {mirror.topic}")
        with (
            _until_asked_to_end(stop),
            Monitor(configuration, mirror, lock=lock, published=list(reader.open.values()), tell=screen.say) as monitor,
        ):
            history = History(reader, monitor.writer, topics.findings_days)
            screen.say("watching")
            while not stop.is_set():
                for news in reader.poll(_POLL_S):
                    screen.news(news)
                history.tidy()
                if stop.is_set():
                    break
                monitor.tend()
                if metrics is not None:
                    metrics.observe(monitor, reader)
                screen.status(monitor.progress, monitor.not_reading, list(reader.open.values()))
            screen.say("stopping after the current batch")
        screen.say("stopped")


@contextlib.contextmanager
def _until_asked_to_end(stop: threading.Event) -> Iterator[None]:
    """Ignore JVM errors once ``stop`` is set: a service manager may signal all processes, and the JVM may end first."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - as above
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (Py4JError, PySparkException, SetupError, JvmError, OSError):
        if not stop.is_set():
            raise
        logging.getLogger(__name__).info("failed while it was stopping", exc_info=True)


def _check_jvm_options(job: Job) -> None:
    """Check that Java accepts ``job.jvm_options``: Spark's JVM ignores unknown options, so a mistyped one would have no effect.

    :raises SetupError: when Java does not start with the options.
    """
    is_default = job.jvm_options == Job.model_fields["jvm_options"].default  # Java takes those, and half a second to say so
    refused = None if is_submitted() or is_default else refused_options(job.jvm_options)
    if refused is not None:
        raise SetupError(f"job.jvm_options: Java does not start with them: {refused}")


def _check_logs(job: Job) -> None:
    """Check that the logs can be written, before a process that starts later fails because of them.

    :raises SetupError: when a log cannot be written.
    """
    folder = job.log_file.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for log in (job.log_file, job.jvm_log, job.python_log, job.quality_log):
            with log.open("ab"):
                pass
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise SetupError(
            f"cannot write the log {error.filename}: {why}; let this user write to {folder}, or set job.log_file to another place"
        ) from None


class Screen:
    """The operator's output: one line per event, and a status at the foot of a terminal or as a periodic line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._foot = console.status("starting", spinner="dots") if console.is_terminal else None
        if self._foot is not None:
            self._foot.start()
        self._said_at = time.monotonic()
        self._pace = Pace()

    def close(self) -> None:
        if self._foot is not None:
            self._foot.stop()

    def say(self, sentence: str) -> None:
        say(self._console, sentence)

    def news(self, news: News) -> None:
        finding = news.finding
        severity = finding["severity"] if news.opened else "resolved"
        where = f" {finding['group']}:" if finding["group"] else ""
        self._console.print(
            Text(time.strftime("%H:%M:%S "), "dim"),
            Text(f"{severity:<9}", COLOURS.get(severity, "green")),
            Text(visible(f"{finding['rule']} {finding['name']}:{where} {finding['summary']}")),
            sep="",
        )

    def status(self, progress: QueryProgress | None, not_reading: str | None, open_findings: list[dict[str, Any]]) -> None:
        line = f"{self._reading(progress, not_reading)} · {describe_open(open_findings)}"
        if self._foot is not None:
            self._foot.update(Text(line))
        elif time.monotonic() - self._said_at >= _STATUS_EVERY_S:
            self._said_at = time.monotonic()
            self.say(line)

    def _reading(self, progress: QueryProgress | None, not_reading: str | None) -> str:
        if progress is None:
            return not_reading or "starting"
        pace = self._pace.of(progress)
        how = not_reading or f"{pace:,.0f} records/s · {_behind(progress, pace)}"
        return f"batch {progress.batches} ({progress.batch_ms} ms) · {how}"


class Pace:
    """The rate at which mirror records (frames and ticks) are read, over the last few seconds."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def of(self, progress: QueryProgress) -> float:
        now, read = time.monotonic(), sum(progress.read.values())
        self._seen = [(at, count) for at, count in self._seen if now - at < _STATUS_EVERY_S] + [(now, read)]
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return (last - first) / (ended - began) if ended > began else 0.0


def describe_open(findings: list[dict[str, Any]]) -> str:
    """Return the counts by severity: ``open findings: 1 critical, 2 error``."""
    counts = Counter(finding["severity"] for finding in findings)
    named = [f"{counts[severity]} {severity}" for severity in reversed([each.value for each in Severity]) if counts[severity]]
    return f"open findings: {', '.join(named) or 'none'}"


def _behind(progress: QueryProgress, pace: float) -> str:
    """What is left to read. Records come while a batch runs: as many as come in two batches are none that it is behind by."""
    left_s = progress.behind / pace if pace >= 1 else 0.0
    if not progress.behind or 0 < left_s <= max(_AT_MOST_S, 2 * progress.batch_ms / 1000):
        return "up to date"
    return f"behind by {counted(progress.behind, 'record')}" + (f" ({left_s:,.0f} s at this pace)" if left_s else "")
