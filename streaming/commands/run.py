"""``rebalance-monitor run``: the checks before the start, the loop, and what an operator sees of it.

The trap: everything that starts a JVM takes seconds and fails in Java's words. So whatever can be known beforehand (configuration,
Kafka, topics, checkpoint) is checked first and fails in ours.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from coordinator_model.finding import Severity
from streaming.config.settings import ConfigError, Job, MonitorConfig, load
from streaming.kafka.retention import History
from streaming.kafka.topics import Mirror, SetupError, prepare
from streaming.logs import log_to
from streaming.replay.report import COLOURS
from streaming.sinks.findings import FindingsReader, News
from streaming.spark import checkpoint
from streaming.spark.jvm import JvmError, refused_options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from streaming.spark.supervisor import Progress

EXIT_OK: Final = 0
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130

_POLL_S: Final = 0.25
_STATUS_EVERY_S: Final = 10.0


def run_command(
    config: Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="Configuration file (TOML).", show_default=False)],
) -> None:
    """Run the monitor until it is stopped: read the mirror topic, replay it through the coordinator model, publish findings.

    rebalance-monitor run --config deploy/rebalance-monitor.toml

    REBALANCE_MONITOR_KAFKA__BOOTSTRAP_SERVERS=kafka-1:9092 rebalance-monitor run -c monitor.toml

    SIGTERM or Ctrl-C stops it after the current batch; the next start continues from there.
    """
    raise typer.Exit(run(config))


def run(file: Path) -> int:
    """Run the monitor with a configuration file until a signal ends it; gives the exit status."""
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        configuration = load(file)
        with stop_signals() as stop:
            mirror = prepare(configuration)
            _check_logs(configuration.job)
            _check_jvm_options(configuration.job)
            folder = configuration.job.checkpoint.absolute()  # as messages name it: whoever reads them may be elsewhere
            with checkpoint.locked(folder) as lock:
                notes = checkpoint.check(folder, mirror, lanes=configuration.job.lanes)
                _watch(configuration, mirror, lock, stop, notes)
    except (ConfigError, SetupError, JvmError) as error:
        for line in str(error).splitlines():
            errors.print(Text("error: ", "bold red"), Text(line), sep="")
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return EXIT_OK


def _watch(configuration: MonitorConfig, mirror: Mirror, lock: int, stop: threading.Event, notes: list[str]) -> None:
    # Imported late: Spark and pandas take most of a second, which a wrong configuration should not cost.
    from streaming.metrics.endpoint import serving  # noqa: PLC0415
    from streaming.spark.monitor import Monitor  # noqa: PLC0415

    log_to(configuration.job.python_log)
    topics, kafka = configuration.topics, configuration.kafka
    with (
        contextlib.closing(Screen(Console(soft_wrap=True, highlight=False))) as screen,
        serving(configuration, mirror, tell=screen.say) as metrics,
        FindingsReader(kafka, topics.findings, tell=screen.say) as reader,
    ):
        if metrics is not None:
            screen.say(f"metrics at {metrics.url}")
        for sentence in notes:
            screen.say(sentence)
        reader.catch_up(kafka.reach_timeout_s)
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
            screen.say("stopping after the batch in hand")
        screen.say("stopped")


@contextlib.contextmanager
def _until_asked_to_end(stop: threading.Event) -> Iterator[None]:
    """Once the end is asked for, a JVM that fails is part of it: a service manager may signal all processes, and it may go first."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - as above
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (Py4JError, PySparkException, SetupError, JvmError, OSError):
        if not stop.is_set():
            raise
        logging.getLogger(__name__).info("failed while it was stopping", exc_info=True)


def _check_jvm_options(job: Job) -> None:
    """Spark has its JVM ignore what that does not know: a mistyped option would be without effect, and nobody would know.

    :raises SetupError: when Java does not start with them.
    """
    refused = refused_options(job.jvm_options)
    if refused is not None:
        raise SetupError(f"job.jvm_options: Java does not start with them: {refused}")


def _check_logs(job: Job) -> None:
    """See that the logs can be written, before something that starts later fails for it.

    :raises SetupError: when not.
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
    """What the operator sees: a line for each thing that happens, and how it goes: at the foot of a terminal, or now and then a line."""

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
        self._console.print(Text(time.strftime("%H:%M:%S "), "dim"), Text(sentence), sep="")

    def news(self, news: News) -> None:
        finding = news.finding
        severity = finding["severity"] if news.opened else "resolved"
        where = f" {finding['group']}:" if finding["group"] else ""
        self._console.print(
            Text(time.strftime("%H:%M:%S "), "dim"),
            Text(f"{severity:<9}", COLOURS.get(severity, "green")),
            Text(f"{finding['rule']} {finding['name']}:{where} {finding['summary']}"),
            sep="",
        )

    def status(self, progress: Progress | None, not_reading: str | None, open_findings: list[dict[str, Any]]) -> None:
        line = f"{self._reading(progress, not_reading)} · {describe_open(open_findings)}"
        if self._foot is not None:
            self._foot.update(Text(line))
        elif time.monotonic() - self._said_at >= _STATUS_EVERY_S:
            self._said_at = time.monotonic()
            self.say(line)

    def _reading(self, progress: Progress | None, not_reading: str | None) -> str:
        if progress is None:
            return not_reading or "starting"
        pace = self._pace.of(progress)
        how = not_reading or f"{pace:,.0f} records/s · {_behind(progress.behind, pace)}"
        return f"batch {progress.batches} ({progress.batch_ms} ms) · {how}"


class Pace:
    """Records of the mirror read per second, over the last few seconds: frames, and a tick per partition and second."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def of(self, progress: Progress) -> float:
        now, read = time.monotonic(), sum(progress.read.values())
        self._seen = [(at, count) for at, count in self._seen if now - at < _STATUS_EVERY_S] + [(now, read)]
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return (last - first) / (ended - began) if ended > began else 0.0


def describe_open(findings: list[dict[str, Any]]) -> str:
    """``open findings: 1 critical, 2 error``."""
    counts = Counter(finding["severity"] for finding in findings)
    named = [f"{counts[severity]} {severity}" for severity in reversed([each.value for each in Severity]) if counts[severity]]
    return f"open findings: {', '.join(named) or 'none'}"


def _behind(records: int, pace: float) -> str:
    if not records:
        return "up to date"
    took = f" ({records / pace:,.0f} s at this pace)" if pace >= 1 else ""
    return f"behind by {records:,} records{took}"


@contextlib.contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """The first SIGTERM or SIGINT asks for an orderly end; the second interrupts whatever is going on."""
    stop = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
