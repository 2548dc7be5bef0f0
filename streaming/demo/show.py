"""Runs the demo: starts broker, faulty proxy, tap, monitor and consumers, injects the faults, and compares the findings with them.

    consumers ⇄ tap ⇄ faulty proxy ⇄ broker          tap ─► mirror topic ─► monitor ─► result topics ─► this process, the page

All processes share a few cores, and a consumer without CPU time misses heartbeats, which is an unintended fault. So the expensive steps
(the JVMs, Spark's first batch) are over before the first fault begins.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka.admin import AdminClient
from rich.console import Console
from rich.text import Text

from coordinator_model.wire.constants import ILLEGAL_GENERATION
from streaming.config.settings import SHORT_LIVED_JVM, Topics
from streaming.demo import view
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.faulty_proxy import HostileProxy, success_for
from streaming.demo.processes import Child, ChildError, ChildReport, Processes, check
from streaming.demo.raw_client import Connection, RawClientError
from streaming.demo.scenarios import (
    HEALTHY_GROUP,
    LYING_GROUP,
    MISSING_MS,
    PARTITIONS,
    PROPERTIES,
    STANDING,
    TOPIC,
    TROUBLES,
    USUAL_MS,
    Scenario,
    Scene,
    Stage,
)
from streaming.demo.screen_state import ScreenState, Watcher, now_us, settled
from streaming.demo.verdicts import Truth, exit_status
from streaming.kafka.connection import SILENT_LOGGER

LEAST_DURATION_S: Final = 45.0
_LAST_TROUBLE_S: Final = 25.0  #: time from the start of the last fault to the end, enough to find it on a slow machine
_INITIAL_REBALANCE_DELAY_MS: Final = 1_000
_MIRROR_PARTITIONS: Final = 2
_READY_TIMEOUT_S: Final = 120.0
_POLL_S: Final = 0.1
_END_S: Final = 2.0
_QUIET_MS: Final = 15_000  # short, so that findings resolve during the demo

Tell = Callable[[str], None]


class Spectacle(NamedTuple):
    """The options of a run."""

    duration_s: float
    folder: Path  #: for data, logs and checkpoint
    keep: bool  #: let everything run at the end, until Ctrl-C
    plain: bool
    troubles: Sequence[Scenario] = TROUBLES


def run(spectacle: Spectacle, console: Console) -> int:
    """Run the demo and print its summary; return the exit status.

    :raises BrokerError, JvmError, ChildError, KafkaException, OSError: when a part cannot be started, or ends.
    """
    began = time.monotonic()
    plain = spectacle.plain or not console.is_terminal
    log = view.Log(console)
    with ExitStack() as stack:
        screen_state = ScreenState(on_note=log.note, on_observation=log.observation) if plain else ScreenState()
        try:
            with _progress(console, plain=plain) as tell:
                stage, page = _set_up(spectacle, screen_state, stack, tell)
            console.print(f"the page: {page}", soft_wrap=True)
            play = _Play(stage, screen_state, spectacle)
            _perform(play, page, console, plain=plain)
        except (KeyboardInterrupt, SystemError) as error:
            # A signal can arrive while a librdkafka client is closed; the call that was about to return then raises a SystemError.
            if isinstance(error, SystemError) and not isinstance(error.__cause__, KeyboardInterrupt):
                raise
            console.print(Text("interrupted; stopping everything; press Ctrl-C again to exit at once", "dim"))
            raise KeyboardInterrupt from None
        outcome = view.outcome(play.lines(), screen_state, time.monotonic() - began)
        console.print(view.summary(outcome, console.width))
        if spectacle.keep:
            console.print(f"everything still runs, with the page at {page}; Ctrl-C ends it", soft_wrap=True)
            with contextlib.suppress(KeyboardInterrupt):
                _go_on(stage)
        with _progress(console, plain=plain) as tell:
            tell("stopping everything")
            stack.close()
    return exit_status((line.verdict for line in outcome.lines), outcome.about_healthy, healthy_seen=outcome.healthy is not None)


# --- setting up ----------------------------------------------------------------------------------------------


def _set_up(spectacle: Spectacle, screen_state: ScreenState, stack: ExitStack, tell: Tell) -> tuple[Stage, str]:
    """Start all parts and wait until the monitor knows the groups that run from the start; ``stack`` ends all parts.

    :return: the stage, and the address of the page.
    """
    folder, topics = spectacle.folder, Topics()
    tap_address = f"{HOST}:{free_port()}"
    proxy_address = f"{HOST}:{free_port()}"

    tell("starting a Kafka broker")
    broker = stack.enter_context(
        Broker(
            data=folder / "broker",
            advertised={"PLAINTEXT": tap_address},
            initial_rebalance_delay_ms=_INITIAL_REBALANCE_DELAY_MS,
            properties=PROPERTIES,
        )
    )
    broker.create_topic(TOPIC, PARTITIONS)
    broker.create_topic(topics.mirror, _MIRROR_PARTITIONS)

    tamper = success_for(LYING_GROUP, ILLEGAL_GENERATION)
    proxy = stack.enter_context(HostileProxy(listen=proxy_address, broker=broker.address(), tampers=[tamper]))
    leftovers = [] if spectacle.keep else [folder]
    processes = stack.enter_context(Processes(folder / "logs", partial(_take_report, screen_state), leftovers=leftovers))

    tell("starting the tap and the monitor")
    tap = processes.start("tap", _tap_command(tap_address, proxy_address, broker.internal, topics.mirror))
    _wait(lambda: _answers(tap_address), [tap], "the tap does not forward connections")
    config = folder / "monitor.toml"
    config.write_text(_monitor_config(folder, broker.internal))
    monitor = processes.start("monitor", [sys.executable, "-m", "streaming.cli", "run", "--config", str(config)])

    page_port = free_port()
    command = [sys.executable, "-m", "streaming.cli", "web", "--config", str(config), "--listen", f"{HOST}:{page_port}"]
    page = processes.start("page", command)

    stage = Stage(processes, screen_state, tap_address, lambda: proxy.lies, vital=(tap, monitor, page))
    processes.start("producer", [sys.executable, "-m", "streaming.demo.load", tap_address, TOPIC])
    for group, clients in STANDING.items():
        for kind, client_id in clients:
            stage.standing[client_id] = stage.consumer(kind, group, client_id)

    tell("starting Spark")
    said = f"the monitor does not start; see {folder / 'logs' / 'monitor.log'}"
    _wait(lambda: _topics_exist(broker.internal, topics.findings, topics.groups), [monitor, tap], said)
    tell(f"waiting until the monitor has learnt the groups {' and '.join(STANDING)}")
    stack.enter_context(Watcher(screen_state, broker.internal, findings=topics.findings, groups=topics.groups))
    _wait(
        lambda: all(settled(screen_state.group(group), len(clients)) for group, clients in STANDING.items()),
        [monitor, tap, *stage.standing.values()],
        f"the monitor does not see the groups {' and '.join(STANDING)} become stable",
    )
    _wait(lambda: _listens(page_port), [page, monitor, tap], "the page does not start")
    return stage, f"http://{HOST}:{page_port}/"


def _take_report(screen_state: ScreenState, report: ChildReport) -> None:
    """Store the process id of a started child, and note that a child was fenced; ignore all other reports."""
    if report.event == "started":
        screen_state.process_started(report.name, report.pid)
    elif report.event == "fenced":
        screen_state.note(f"{report.name} (pid {report.pid}) was fenced and exits")


def _tap_command(listen: str, broker: str, mirror: str, topic: str) -> list[str]:
    return [
        *(sys.executable, "-m", "streaming.cli", "tap"),
        *("--listen", f"{listen}={broker}"),
        *("--bootstrap-server", mirror),
        *("--topic", topic),
        *("--cluster", "demo"),
        *("--status-every", "0"),
    ]


def _monitor_config(folder: Path, bootstrap: str) -> str:
    quoted = json.dumps  # a TOML string is written like a JSON one
    return f"""\
cluster = "demo"

[kafka]
bootstrap_servers = {quoted(bootstrap)}

[job]
checkpoint = {quoted(str(folder / "checkpoint"))}
log_file = {quoted(str(folder / "logs" / "spark.log"))}
jvm_options = {quoted(SHORT_LIVED_JVM)}
wait_for_records = 0

[quality]
docs = {quoted(str(folder / "data-docs"))}

[model]
group_initial_rebalance_delay_ms = {_INITIAL_REBALANCE_DELAY_MS}
quiet_ms = {_QUIET_MS}
usual_ms = {USUAL_MS}
missing_ms = {MISSING_MS}
"""


def _answers(address: str) -> bool:
    try:
        with Connection(address, client_id="demo", timeout_s=1) as connection:
            connection.introduce()
    except RawClientError:
        return False
    return True


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False


def _topics_exist(bootstrap: str, *topics: str) -> bool:
    existing = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER).list_topics(timeout=10).topics
    return all(topic in existing for topic in topics)


def _wait(condition: Callable[[], bool], children: Sequence[Child], otherwise: str) -> None:
    """Wait for a condition while all children run.

    :raises ChildError: when a child ends, or the condition is not met in time.
    """
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while not condition():
        check(children)
        if time.monotonic() > deadline:
            raise ChildError(f"{otherwise}{children[0].last_words()}")
        time.sleep(_POLL_S)


@contextlib.contextmanager
def _progress(console: Console, *, plain: bool) -> Iterator[Tell]:
    if plain:
        yield lambda text: console.print(Text(f"{text} …", "dim"))
        return
    with console.status("starting") as status:
        yield lambda text: status.update(f"{text} …")


# --- the faults ----------------------------------------------------------------------------------------------


class _Play:
    """Runs the scenarios, each from its start time in a thread of its own."""

    def __init__(self, stage: Stage, screen_state: ScreenState, spectacle: Spectacle) -> None:
        self.stage = stage
        self.screen_state = screen_state
        self.troubles = spectacle.troubles
        self.duration_s = spectacle.duration_s
        self.truths = {trouble.name: Truth() for trouble in self.troubles}
        self._began: set[str] = set()
        self._ended: set[str] = set()
        self._threads: list[threading.Thread] = []

    def begin_due(self, passed_s: float) -> None:
        """Start the scenarios that are due."""
        gap = (self.duration_s - _LAST_TROUBLE_S) / max(1, len(self.troubles) - 1)
        for number, trouble in enumerate(self.troubles):
            if number * gap <= passed_s and trouble.name not in self._began:
                self._began.add(trouble.name)
                thread = threading.Thread(target=self._act, args=(trouble,), name=trouble.name, daemon=True)
                thread.start()
                self._threads.append(thread)

    def lines(self) -> list[view.ScreenLine]:
        observations = self.screen_state.observations()
        return [
            view.standing(
                trouble,
                self.truths[trouble.name],
                observations,
                began=trouble.name in self._began,
                ended=trouble.name in self._ended,
            )
            for trouble in self.troubles
        ]

    def end(self) -> None:
        """End all waiting, and so the scenarios. One that waits for a child's report ends when the child ends."""
        self.stage.over.set()
        deadline = time.monotonic() + _END_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _act(self, trouble: Scenario) -> None:
        truth = self.truths[trouble.name]
        self.screen_state.note(f"{trouble.expected.group}: {trouble.means}")
        try:
            trouble.act(Scene(self.stage, truth))
        except Exception as error:  # the summary shows why a fault could not be injected
            truth.failure = str(error).partition("\n")[0] or type(error).__name__
        finally:
            self._ended.add(trouble.name)


def _perform(play: _Play, page: str, console: Console, *, plain: bool) -> None:
    began_us = now_us()
    restart = _RollingRestart(play.stage, play.screen_state)
    screen = view.DemoScreen(console, play.screen_state, play.lines, page=page, began_us=began_us, duration_s=play.duration_s)
    with contextlib.nullcontext() if plain else screen:
        try:
            while (passed_s := (now_us() - began_us) / 1e6) < play.duration_s:
                play.begin_due(passed_s)
                if passed_s > play.duration_s / 2:
                    restart.once()
                check(play.stage.vital)
                time.sleep(_POLL_S)
        finally:
            play.end()


def _go_on(stage: Stage) -> None:
    """Let everything run until Ctrl-C.

    :raises ChildError: when a part ends.
    """
    while True:
        check(stage.vital)
        time.sleep(_POLL_S)


class _RollingRestart:
    """Restarts one worker of the healthy group, as a deployment does. This is valid behaviour, so no finding is expected."""

    def __init__(self, stage: Stage, screen_state: ScreenState) -> None:
        self._stage = stage
        self._screen_state = screen_state
        self._done = False

    def once(self) -> None:
        if not self._done:
            self._done = True
            threading.Thread(target=self._restart, name="rolling restart", daemon=True).start()

    def _restart(self) -> None:
        kind, client_id = STANDING[HEALTHY_GROUP][0]
        self._screen_state.note(f"{HEALTHY_GROUP}: restart of {client_id}, as in a deployment; no finding is expected")
        self._stage.standing[client_id].stop()
        if not self._stage.over.is_set():
            self._stage.standing[client_id] = self._stage.consumer(kind, HEALTHY_GROUP, client_id)


# --- the folder ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def working_folder(*, keep: bool) -> Iterator[Path]:
    """Create a folder for everything that the demo writes; remove it at the end unless ``keep`` is set."""
    folder = Path(tempfile.mkdtemp(prefix="rebalance-monitor-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
