"""``rebalance-monitor notify``: sends notifications about the monitor's findings until it is stopped.

Standard output may be a receiver, and its reader expects only JSON lines. So all messages for the operator go to standard error.
"""

from __future__ import annotations

import contextlib
import json
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from coordinator_model.finding import Blame, Certainty, Severity
from coordinator_model.rules import Rule
from coordinator_model.wording import counted
from streaming.commands.options import MetricsOption
from streaming.commands.output import EXIT_FOUND, EXIT_INTERRUPTED, EXIT_OK, EXIT_UNUSABLE, print_error, print_json, say, stderr
from streaming.commands.stopping import stop_signals
from streaming.config.settings import ConfigError, MonitorConfig, load
from streaming.errors import SetupError
from streaming.kafka.topics import prepare_notifier
from streaming.metrics.notify import serving
from streaming.notify.delivery import Channel
from streaming.notify.delivery_log import NoDeliveryLog
from streaming.notify.http import Accepted, Outcome, Rejected, Unreachable
from streaming.notify.kafka_log import KafkaDeliveryLog, remembered, results
from streaming.notify.notification import Event, Notification, made_here
from streaming.notify.notifier import Notifier, receivers, windows_now
from streaming.notify.watchdog import Watchdog

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from streaming.notify.delivery import Delivery, DeliveryPlan
    from streaming.notify.delivery_log import DeliveryLog
    from streaming.notify.outbox import Outbox


_TEST: Final = Rule(
    id="X-00",
    name="monitor test",
    severity=Severity.WARNING,
    certainty=Certainty.CERTAIN,
    blame=Blame.OPERATOR,
    meaning="An operator checks that alerts arrive.",
    condition="rebalance-monitor notify test",
    expected="The notification arrives at the receiver.",
    action="Nothing: this is a test.",
    false_alarms="None known.",
)

notify = typer.Typer(invoke_without_command=True)

Config = Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help="Configuration file (TOML).")]


@notify.callback()
def notify_command(
    context: typer.Context,
    *,
    config: Config = None,
    once: Annotated[
        bool, typer.Option("--once", help="Send what is due now, then exit: 0 if the receivers accepted all of it, else 1.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be sent, as JSON lines. Nothing is sent and no state is kept.")
    ] = False,
    metrics: MetricsOption = None,
) -> None:
    """Send alerts about findings to Alertmanager, webhooks and standard output until it is stopped.

    rebalance-monitor notify --config monitor.toml

    rebalance-monitor notify test --config monitor.toml

    rebalance-monitor notify --config monitor.toml --dry-run --once

    The command reads the findings topic, so it can run on any machine; another one than the monitor's is best. Receivers and routes are
    in the [notify…] sections of the monitor's configuration file. SIGTERM or Ctrl-C stops it; the next start continues from there.
    """
    if context.invoked_subcommand is not None:
        context.obj = config
        return
    raise typer.Exit(_said(lambda: _notify(_required(config), metrics, once=once, dry_run=dry_run)))


@notify.command("test")
def try_receivers(
    context: typer.Context,
    *,
    config: Config = None,
    receiver: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Test only this receiver, for example webhook/chat. Can be repeated.")
    ] = None,
    severity: Annotated[
        Severity, typer.Option(help="Severity of the test, to see which receivers it is routed to.")
    ] = Severity.WARNING,
    group: Annotated[str, typer.Option(help="Group of the test, to see which receivers it is routed to.")] = "test",
) -> None:
    """Send a test notification to every receiver and print which of them accepted it. Needs no Kafka.

    rebalance-monitor notify test --config monitor.toml

    rebalance-monitor notify test --config monitor.toml --receiver webhook/chat --severity critical --group orders

    A test alert in Alertmanager ends after some minutes; an incident at PagerDuty has to be resolved by hand.

    Exit status: 0 if all receivers accepted the test, else 1.
    """
    raise typer.Exit(_said(lambda: _test(_required(config or context.obj), receiver or [], severity, group)))


def _required(config: Path | None) -> Path:
    if config is None:
        raise ConfigError("a configuration file is required: --config FILE; deploy/rebalance-monitor.toml is a template")
    return config


def _said(work: Callable[[], int]) -> int:
    """Run ``work`` and return its exit status; errors are printed as sentences."""
    try:
        return work()
    except (ConfigError, SetupError) as error:
        print_error(error)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


# --- notify -------------------------------------------------------------------------------------------------------------


def _notify(file: Path, metrics: str | None, *, once: bool, dry_run: bool) -> int:
    config, tell = load(file), partial(say, stderr())
    receivers(config, _never_beats(config))  # checks templates and settings before the first request to Kafka
    with stop_signals() as stop:
        prepare_notifier(config)
        if dry_run:
            dry = _notifier(config, NoDeliveryLog(), tell, adapt=_DryChannel, sends_traces=False)
            return _run(dry, config, tell, stop, metrics, once=once)
        delivery_log = KafkaDeliveryLog(config.kafka, config.topics.notifications, config.topics.findings, tell=tell)
        try:
            return _run(_notifier(config, delivery_log, tell), config, tell, stop, metrics, once=once)
        finally:
            if not delivery_log.flush():
                tell("Kafka did not accept the whole delivery log: some notifications may be sent again at the next start")


def _notifier(config: MonitorConfig, delivery_log: DeliveryLog, tell: Callable[[str], None], **adapted: Any) -> Notifier:
    feed = results(config, tell)
    return Notifier(config, delivery_log, feed=feed, memory=lambda: remembered(config, tell), tell=tell, **adapted)


def _run(
    notifier: Notifier,
    config: MonitorConfig,
    tell: Callable[[str], None],
    stop: threading.Event,
    metrics: str | None,
    *,
    once: bool,
) -> int:
    with notifier, contextlib.nullcontext() if metrics is None else serving(metrics, notifier) as url:
        if url is not None:
            tell(f"metrics at {url}")
        names = ", ".join([*(dispatcher.name for dispatcher in notifier.dispatchers), *(["traces"] if notifier.traces else [])])
        tell(f"{counted(len(notifier.open), 'open finding')} in {config.topics.findings}; sending to {names}")
        for window in windows_now(config, time.time()):
            tell(f"planned maintenance {window} is active")
        if once:
            return EXIT_OK if notifier.once(stop) else EXIT_FOUND
        notifier.run(stop)
        tell(f"stopped; {_summary(notifier)}")
    return EXIT_OK


def _summary(notifier: Notifier) -> str:
    counts = [
        (dispatcher.name, dispatcher.accepted, dispatcher.refused)
        for dispatcher in notifier.dispatchers
        if not dispatcher.name.startswith(("heartbeat/", "digest/"))
    ]
    if notifier.traces is not None:
        counts.append(("traces", notifier.traces.sent, notifier.traces.refused))
    receivers = [f"{name} {sent}" + (f" (rejected {refused})" if refused else "") for name, sent, refused in counts]
    return f"sent to {', '.join(receivers)}" if receivers else "no receiver gets findings"


class _DryChannel(Channel):
    """Prints what another channel would send."""

    def __init__(self, channel: Channel) -> None:
        self.name = channel.name
        self._channel = channel

    def plan(self, outbox: Outbox, now_s: float) -> DeliveryPlan:
        return self._channel.plan(outbox, now_s)

    def send(self, delivery: Delivery) -> Outcome:
        if delivery.problem:
            return Rejected(delivery.problem)
        try:
            body = json.loads(delivery.body)
        except ValueError:
            body = delivery.body.decode()
        print_json({"receiver": self.name, "body": body})
        return Accepted()

    def missed(self) -> None:
        self._channel.missed()

    def only(self, notice: Notification, now_s: float) -> Delivery:
        return self._channel.only(notice, now_s)


# --- notify test --------------------------------------------------------------------------------------------------------


def _test(file: Path, wanted: list[str], severity: Severity, group: str) -> int:
    config, now_s = load(file), time.time()
    everybody = {receiver.channel.name: receiver.channel for receiver in receivers(config, _never_beats(config))}
    unknown = [name for name in wanted if name not in everybody]
    if unknown:
        raise ConfigError(f"there is no receiver {unknown[0]}; the receivers are {', '.join(everybody)}")
    finding = made_here(
        _TEST,
        subject=str(now_s),
        cluster=config.cluster,
        group=group,
        severity=severity,
        at_us=int(now_s * 1e6),
        summary=f"This is a test by rebalance-monitor, sent like a finding of severity {severity} about group {group}.",
        observed="An operator ran 'rebalance-monitor notify test'.",
    )
    notice = Notification(Event.OPEN, finding)
    taken = [_try(channel, notice, now_s) for name, channel in everybody.items() if not wanted or name in wanted]
    return EXIT_OK if all(taken) else EXIT_FOUND


def _try(channel: Channel, notice: Notification, now_s: float) -> bool:
    console = stderr()
    match channel.send(channel.only(notice, now_s)):
        case Accepted():
            console.print(Text("accepted    ", "green"), Text(channel.name), sep="")
            return True
        case Rejected(reason, _):
            console.print(Text("rejected    ", "bold red"), Text(f"{channel.name}: {reason}"), sep="")
        case Unreachable(reason, _):
            console.print(Text("unreachable ", "bold red"), Text(f"{channel.name}: {reason}"), sep="")
    return False


def _never_beats(config: MonitorConfig) -> Watchdog:
    return Watchdog(cluster=config.cluster, topic=config.topics.mirror, stalled_s=config.notify.stalled_s, started_s=time.time())
