"""``rebalance-monitor watch``: the monitor in one process, on what one has: packets, a pipe, a tap, a request log, or the mirror topic.

The input and the models run in a thread of their own; the terminal, the page, metrics and alerts never hold them up.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_model.settings import Settings
from coordinator_model.wording import counted
from streaming.commands.options import STDIN, BrokerPorts, HoldBack, KeyLogFile, PropertiesOption, key_log_of
from streaming.commands.output import EXIT_INTERRUPTED, EXIT_OK, fail, say, stderr, stdout
from streaming.commands.stopping import stop_signals
from streaming.engine.results import Outputs
from streaming.errors import SetupError
from streaming.gc_tuning import keep_collections_short
from streaming.mirror import DEFAULT_TOPIC
from streaming.mirror.broker_log import HELD_BACK_US
from streaming.mirror.listener import Listener, TapError
from streaming.mirror.pcap.files import CaptureError, opened
from streaming.mirror.pcap.packet_socket import ANY, InterfaceGoneError
from streaming.mirror.pcap.tls.key_log import KeyLogError
from streaming.not_shown import REQUESTS_LACK
from streaming.published.page_state import PageState
from streaming.terminal.keyboard import Keyboard
from streaming.terminal.live_view import LiveView
from streaming.terminal.screen import show
from streaming.watch.lines import json_lines
from streaming.watch.packets import Interfaces, Pipe
from streaming.watch.said import Said
from streaming.watch.saved import SavedRecords
from streaming.watch.self_check import SelfCheck
from streaming.watch.shown import WatchShown, into_state
from streaming.watch.state import StateFile
from streaming.watch.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streaming.config.settings import MonitorConfig
    from streaming.engine.handover import LocalFeed
    from streaming.mirror.producer import MirrorSink
    from streaming.watch.watch import Input

OUTPUTS: Final = Outputs("rebalance-findings", "rebalance-groups", "rebalance-events", "rebalance-status", "rebalance-dead-letters")
PAGE: Final = "127.0.0.1:8080"


_LOOK_S: Final = 1.0
_FLUSH_S: Final = 10.0


def watch(
    pipe: Annotated[
        str | None, typer.Argument(metavar="[-]", help="Read packets from standard input, as tcpdump -U -w - writes them.")
    ] = None,
    *,
    interface: Annotated[str, typer.Option("--interface", "-i", help="Read packets of this interface.")] = ANY,
    port: BrokerPorts = None,
    key_log: KeyLogFile = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[HOST]:PORT=BROKER:PORT",
            help="Be the tap as well: clients connect here, and go on to the broker. Can be repeated.",
        ),
    ] = None,
    request_log: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Follow a broker's request log from its end on, across rotation. Can be repeated."),
    ] = None,
    hold_back: HoldBack = HELD_BACK_US / 1_000_000,
    bootstrap_server: Annotated[
        str | None, typer.Option(metavar="HOST:PORT[,…]", help="Read the mirror topic of this Kafka, which taps write.")
    ] = None,
    command_config: PropertiesOption = None,
    topic: Annotated[str, typer.Option(help="The mirror topic, of --bootstrap-server and of --mirror-to.")] = DEFAULT_TOPIC,
    last: Annotated[
        float, typer.Option(min=0, metavar="MINUTES", help="With --bootstrap-server: read the last minutes of the topic first.")
    ] = 10.0,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Send the alerts of this configuration of the monitor, and use its [model] settings.",
        ),
    ] = None,
    web: Annotated[
        str | None,
        typer.Option(metavar="[HOST:PORT]", help=f"Show the page at this address, by default {PAGE}; port 0 takes a free one."),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve Prometheus metrics at this address, path /metrics.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep what is known in this file, and go on from it. By default in ~/.local/state."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep the records in files by the hour, for replay, report and web --file."),
    ] = None,
    save_mib: Annotated[int, typer.Option(min=1, metavar="MIB", help="How large the files of --save may become together.")] = 1024,
    mirror_to: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT[,…]", help="Write the records to the mirror topic of this Kafka, too: 'run' reads it."),
    ] = None,
    cluster: Annotated[str, typer.Option(help="Name of the cluster in the output.")] = "",
    no_screen: Annotated[
        bool, typer.Option("--no-screen", help="Print findings and events as JSON lines, even on a terminal.")
    ] = False,
) -> None:
    """Watch groups live, in one process: without Kafka topics, Java or Spark.

    rebalance-monitor watch

    rebalance-monitor watch -i eth0 --port 9092

    tcpdump -i any -U -w - port 9092 | rebalance-monitor watch -

    rebalance-monitor watch --listen :9092=kafka-1:9093

    rebalance-monitor watch --request-log /var/log/kafka/kafka-request.log

    rebalance-monitor watch --bootstrap-server monitor:9092 --last 10

    Packets need root, or the right cap_net_raw. Groups are learned at their next rebalance.
    """
    console = stderr()
    said = Said(lambda sentence: say(console, sentence))
    if pipe not in {None, STDIN}:
        fail(f"{pipe}: watch reads packets of interfaces, or of a pipe (-); 'rebalance-monitor replay {pipe}' reads a file")
    inputs = {"-": pipe, "--listen": listen, "--request-log": request_log, "--bootstrap-server": bootstrap_server}
    given = [name for name, value in inputs.items() if value]
    if len(given) > 1:
        fail(f"{' and '.join(given)} are different inputs: give one of them")
    of_packets = {"--interface": interface != ANY, "--port": port, "--key-log": key_log}
    idle = [name for name, value in of_packets.items() if value and given and (given != ["-"] or name == "--interface")]
    if idle:
        fail(f"{idle[0]} has no effect with {given[0]}: it says which packets of this machine are read")
    if command_config and not (bootstrap_server or mirror_to):
        fail("--command-config has no effect without --bootstrap-server or --mirror-to")
    try:
        configuration = _configuration(config)
        cluster = cluster or (configuration.cluster if configuration else "")
        settings = configuration.model if configuration else Settings()
        source: Input
        if listen:
            from streaming.watch.tapped import TapInput  # noqa: PLC0415 - a tap's libraries take their time

            source = TapInput(list(map(Listener.parse, listen)), cluster=cluster, tell=said.say)
        elif request_log:
            from streaming.watch.logged import RequestLogs  # noqa: PLC0415 - what reads logs is large

            source = RequestLogs(request_log, held_back_s=hold_back, cluster=cluster, tell=said.say)
        elif bootstrap_server:
            source = _topic(
                bootstrap_server, command_config, topic, last_minutes=last, cluster=cluster, settings=settings, said=said
            )
        else:
            secrets = key_log_of(key_log, said.say)
            source = (
                Interfaces(interface, ports=port or (), cluster=cluster, key_log=secrets, tell=said.say)
                if pipe is None
                else Pipe(sys.stdin.buffer, opened, ports=port or (), cluster=cluster, key_log=secrets, tell=said.say)
            )
        with stop_signals() as stop, ExitStack() as stack:
            sinks: list[MirrorSink] = []
            if save is not None:
                sinks.append(stack.enter_context(closing(SavedRecords(save, save_mib * 2**20, said.say))))
            if mirror_to is not None:
                sinks.append(stack.enter_context(_mirror(mirror_to, command_config, topic, cluster, said)))
            kept = state or _default_state(given[0].strip("-") or "pipe" if given else f"packets-{interface}")
            _Run(
                source,
                said=said,
                stop=stop,
                config=configuration,
                state=kept,
                sinks=sinks,
                notes=[REQUESTS_LACK] if request_log else [],
            ).run(web, metrics, is_screen=not no_screen)
    except InterfaceGoneError as error:
        fail(f"{error}; 'ip link' lists those there are")
    except (SetupError, KeyLogError, CaptureError, TapError) as error:
        fail(error)
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    raise typer.Exit(EXIT_OK)


class _Run:
    """One run of the command."""

    def __init__(
        self,
        source: Input,
        *,
        said: Said,
        stop: threading.Event,
        config: MonitorConfig | None,
        state: Path,
        sinks: Sequence[MirrorSink],
        notes: list[str],
    ) -> None:
        self._source = source
        self._notes = notes
        self._said = said
        self._stop = stop
        self._config = config
        self._state = state
        topics = config.topics if config else None
        self._topic = source.topic
        self._outputs = (
            OUTPUTS
            if topics is None
            else Outputs(topics.findings, topics.groups, topics.events, topics.status, topics.dead_letters)
        )
        self._watch = Watch(
            topic=self._topic,
            settings=config.model if config else Settings(),
            outputs=self._outputs,
            state=StateFile(state, source.title, said.say),
            sinks=sinks,
            tell=said.say,
        )
        self._check = SelfCheck(source, self._watch, said.say)
        self._is_screen = False
        self._failed: BaseException | None = None

    def run(self, web: str | None, metrics: str | None, *, is_screen: bool) -> None:
        """Watch until it is stopped, or the input ends.

        :raises SetupError: when the input, or a receiver of results, cannot be set up.
        """
        keep_collections_short()
        outputs, handover = self._outputs, self._watch.handover
        console = stdout(soft_wrap=False)
        self._is_screen = is_screen = is_screen and console.is_terminal and not console.is_dumb_terminal
        with ExitStack() as stack:
            page_state = PageState()
            page_state.notes = self._notes
            if is_screen or web is not None:
                shown = handover.feed(outputs.groups, outputs.findings, outputs.events, outputs.status)
                stack.enter_context(into_state(shown, page_state, outputs, self._fail))
            url = stack.enter_context(_page(page_state, web or PAGE)) if web is not None else None
            if metrics:
                self._serve_metrics(stack, metrics)
            if not is_screen:
                stack.enter_context(json_lines(handover.log(outputs.findings, outputs.events), self._stop, self._fail))
            alerts = handover.feed(outputs.findings, outputs.status) if self._config else None
            self._watch.begin()
            if alerts is not None:
                self._alert(stack, alerts)
            stack.enter_context(self._engine())
            if is_screen:
                self._show(page_state, url)
            else:
                while not self._stop.wait(_LOOK_S):
                    self._check.look()
        if self._failed is not None:
            raise self._failed

    @contextmanager
    def _engine(self) -> Iterator[None]:
        """Run input and models in a thread as long as the context lasts."""

        def run() -> None:
            try:
                try:
                    self._source.run(self._watch, self._stop)
                    if not self._stop.is_set():
                        self._said.say(f"{self._source.title} have ended")
                finally:
                    self._watch.end()
            except BaseException as error:
                self._fail(error)
            if not self._is_screen:
                self._stop.set()

        thread = threading.Thread(target=run, name="engine")
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _fail(self, error: BaseException) -> None:
        """End the watch because one of its threads has failed."""
        self._failed = self._failed or error
        self._stop.set()

    def _show(self, page_state: PageState, url: str | None) -> None:
        logging.getLogger().addHandler(logging.NullHandler())
        terminal = sys.stdin.fileno() if sys.stdin.isatty() else os.open("/dev/tty", os.O_RDONLY)
        self._said.keep()
        try:
            with Keyboard(terminal) as keyboard:
                shown = WatchShown(self._source, self._check, self._said, web=url)
                show(LiveView(page_state, shown), keyboard, stdout(soft_wrap=False), self._stop)
        finally:
            self._said.release()

    def _serve_metrics(self, stack: ExitStack, listen: str) -> None:
        from streaming.config.metrics import Metrics  # noqa: PLC0415 - an extra
        from streaming.watch.measured import measuring  # noqa: PLC0415

        outputs = self._outputs
        feed = self._watch.handover.feed(outputs.findings, outputs.groups, outputs.status)
        settings = self._config.metrics if self._config else Metrics()
        url = stack.enter_context(
            measuring(listen, settings, feed, outputs=outputs, topic=self._topic, check=self._check, failed=self._fail)
        )
        self._said.say(f"metrics at {url}")

    def _alert(self, stack: ExitStack, feed: LocalFeed) -> None:
        from streaming.watch.alerts import alerting, has_receivers, of_one_process  # noqa: PLC0415 - an extra

        assert self._config is not None
        config = of_one_process(self._config, self._topic, self._said.say)
        if has_receivers(config):
            log = self._state.with_suffix(".alerts")
            stack.enter_context(alerting(config, feed, log, self._said.say, self._fail))


@contextmanager
def _page(state: PageState, listen: str) -> Iterator[str]:
    """Serve the page as long as the context lasts; yield its URL.

    :raises SetupError: when it cannot be.
    """
    from streaming.web.guard import Guard, NotSafeError  # noqa: PLC0415 - an extra
    from streaming.web.server import STREAMS, Page  # noqa: PLC0415
    from streaming.web.serving import page_address, serving  # noqa: PLC0415

    address = page_address(listen, "--web", PAGE)
    guard = Guard(address.host, frozenset(), None, None)
    try:
        guard.check()
    except NotSafeError:
        raise SetupError(
            f"--web: {listen} would open the page to others. Keep it on 127.0.0.1, and forward the port (ssh -L, kubectl port-forward); or "
            "write the topics (--mirror-to), and let 'rebalance-monitor web' ask who looks"
        ) from None
    with serving(Page(state, guard, streams=STREAMS, frames=None), address, "--web") as (url, _):
        stderr().print(f"the page is at {url}")
        yield url


def _topic(
    servers: str, properties: list[str] | None, topic: str, *, last_minutes: float, cluster: str, settings: Settings, said: Said
) -> Input:
    from streaming.kafka.client_options import client_options  # noqa: PLC0415 - an extra
    from streaming.watch.topic import MirrorTopic  # noqa: PLC0415

    return MirrorTopic(
        client_options(servers, properties), topic, last_minutes=last_minutes, cluster=cluster, settings=settings, tell=said.say
    )


@contextmanager
def _mirror(servers: str, properties: list[str] | None, topic: str, cluster: str, said: Said) -> Iterator[MirrorSink]:
    """Write records to a mirror topic as long as the context lasts."""
    from streaming.kafka.client_options import client_options  # noqa: PLC0415 - an extra
    from streaming.mirror.producer import ReconnectingSink  # noqa: PLC0415

    sink = ReconnectingSink(lambda: client_options(servers, properties), topic=topic, cluster=cluster, tell=said.say)
    try:
        yield sink
    finally:
        unsent = sink.close(_FLUSH_S)
        said.say(f"{counted(sink.written, 'record')} written to topic {topic}, {sink.lost + unsent:,} lost")


def _configuration(file: Path | None) -> MonitorConfig | None:
    """Read the configuration; one process needs no [kafka] in it.

    :raises SetupError: when it is invalid.
    """
    if file is None:
        return None
    from streaming.config.settings import ConfigError, load  # noqa: PLC0415 - an extra

    try:
        return load(file, kafka={"bootstrap_servers": "localhost:9092"})
    except ConfigError as error:
        raise SetupError(str(error)) from None


def _default_state(name: str) -> Path:
    folder = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(folder) / "rebalance-monitor" / f"watch-{name}.state"
