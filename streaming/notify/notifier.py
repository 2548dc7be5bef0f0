"""The notifier: reads findings and the monitor's status, and runs a dispatcher for each receiver.

One thread reads; each dispatcher sends in a thread of its own. Nothing may be sent before all that is there has been read, because the
newest state of a finding may be the last record.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from streaming.config.notify import FindingFilter
from streaming.errors import SetupError
from streaming.notify.alertmanager import AlertmanagerChannel
from streaming.notify.dispatcher import Dispatcher
from streaming.notify.notification import Links, ObservedFinding, UnreadableFindingError, on_one_line
from streaming.notify.outbox import Outbox, Policy
from streaming.notify.watchdog import Watchdog
from streaming.notify.webhook import HeartbeatChannel, StdoutChannel, WebhookChannel

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.config.notify import Alertmanager, Notify, Stdout, Webhook
    from streaming.config.settings import MonitorConfig
    from streaming.kafka.record import Record
    from streaming.notify.delivery import Channel
    from streaming.notify.delivery_log import DeliveryLog, Memory
    from streaming.published.feed import Feed
    from streaming.traces.sender import TraceSender

_POLL_S: Final = 0.25
_END_WITHIN_S: Final = 20.0
_SAY_UNREADABLE: Final = 10
_ALIVE_EVERY_S: Final = 5.0


class Receiver(NamedTuple):
    """A channel and its policy; a channel without a policy gets no findings."""

    channel: Channel
    policy: Policy | None


def receivers(config: MonitorConfig, watchdog: Watchdog) -> list[Receiver]:
    """Return all configured receivers.

    :raises SetupError: when there is none, or a template is invalid.
    """
    notify, cluster = config.notify, config.cluster
    links = Links(notify.rule_url, notify.page_url)
    found: list[Receiver] = []
    for name, manager in notify.alertmanager.items():
        channel = AlertmanagerChannel(name, manager, links=links, cluster=cluster, watchdog=watchdog)
        found.append(Receiver(channel, _policy(notify, manager)._replace(keep_s=manager.keep_firing_s)))
    for name, webhook in notify.webhook.items():
        found.append(Receiver(WebhookChannel(name, webhook, links=links), _messages(notify, webhook)))
    if notify.stdout is not None:
        found.append(Receiver(StdoutChannel(notify.stdout, links=links), _messages(notify, notify.stdout)))
    for name, heartbeat in notify.heartbeat.items():
        found.append(Receiver(HeartbeatChannel(name, heartbeat, cluster=cluster, watchdog=watchdog), None))
    for name, digest in notify.digest.items():
        from streaming.notify.digest import DigestChannel, weekly  # noqa: PLC0415 - what makes reports, which few ask for

        sends = DigestChannel(name, digest, cluster=cluster, page_url=notify.page_url, read=weekly(config, digest))
        found.append(Receiver(sends, None))
    if not found and config.traces.endpoint is None:
        raise SetupError(
            "no receiver is configured: add a section [notify.alertmanager.NAME], [notify.webhook.NAME], [notify.digest.NAME], "
            "[notify.stdout] or [traces] to the configuration; deploy/rebalance-monitor.toml has all their keys"
        )
    return found


def _policy(notify: Notify, wants: Alertmanager | Webhook | Stdout) -> Policy:
    return Policy(wants, notify.wait_s, tuple(notify.maintenance.values()))


def _messages(notify: Notify, settings: Webhook | Stdout) -> Policy:
    return _policy(notify, settings)._replace(sends_resolved=settings.tell_resolved)


class Notifier:
    """A context manager that reads the existing records on entry.

    :param feed: the findings and the monitor's status.
    :param memory: returns what the delivery log holds.
    :param tell: called with a sentence for each event that an operator should know.
    :param adapt: maps each channel to the one to use, for a dry run, which sends no traces either.
    """

    def __init__(
        self,
        config: MonitorConfig,
        delivery_log: DeliveryLog,
        *,
        feed: Feed,
        memory: Callable[[], Memory],
        tell: Callable[[str], None],
        adapt: Callable[[Channel], Channel] = lambda channel: channel,
        sends_traces: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.open: set[str] = set()  #: ids of open findings
        self.looked_s = time.monotonic()  #: when the loop last came round, by the monotonic clock
        self.unreadable = 0  #: number of records that are not findings
        self._config = config
        self._delivery_log = delivery_log
        self._tell = tell
        self._adapt = adapt
        self._sends_traces = sends_traces
        self._clock = clock
        self._feed = feed
        self._memory = memory
        self._watchdog = Watchdog(
            cluster=config.cluster,
            topic=config.topics.mirror,
            stalled_s=config.notify.stalled_s,
            started_s=clock(),
            hint=lambda: ", which the notifier cannot reach either" if self._feed.in_trouble else "",
        )
        self._receivers = receivers(config, self._watchdog)
        self._lived_s = -_ALIVE_EVERY_S  #: when it last gave a sign of life, by the monotonic clock
        self.dispatchers: list[Dispatcher] = []
        self._readers: list[Dispatcher] = []  #: those that get findings
        self.traces: TraceSender | None = None

    @property
    def in_trouble(self) -> bool:
        """Whether Kafka cannot be read at the moment."""
        return self._feed.in_trouble

    def __enter__(self) -> Self:
        """Read the delivery log, then the findings and the status.

        :raises SetupError: when a topic cannot be read.
        """
        try:
            self._start()
        except BaseException:
            self._feed.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._feed.close()

    def _start(self) -> None:
        memory = self._memory()
        if self._sends_traces:
            self.traces = trace_sender(self._config, self._delivery_log, memory, tell=self._tell)
        self._feed.start()
        findings = self._config.topics.findings
        ends = {partition: end for (topic, partition), end in self._feed.ends.items() if topic == findings}
        notify = self._config.notify
        for channel, policy in self._receivers:
            known = policy or Policy(FindingFilter(), notify.wait_s)
            outbox = Outbox(known, memory.delivered(channel.name), memory.positions(channel.name))
            outbox.begin(ends)
            dispatcher = Dispatcher(
                self._adapt(channel),
                outbox,
                self._delivery_log,
                tell=self._tell,
                retry_s=(notify.retry_wait_s, notify.retry_wait_max_s),
                clock=self._clock,
            )
            self.dispatchers.append(dispatcher)
            if policy is not None:
                self._readers.append(dispatcher)
        for record in self._feed.history():
            self._take(record)
        self._look()

    def run(self, stop: threading.Event) -> None:
        """Send notifications until ``stop`` is set."""
        threads = [
            threading.Thread(target=dispatcher.run, args=(stop,), name=dispatcher.name, daemon=True)
            for dispatcher in self.dispatchers
        ]
        if self.traces is not None:
            threads.append(threading.Thread(target=self.traces.run, args=(stop,), name="traces", daemon=True))
        for thread in threads:
            thread.start()
        try:
            while not stop.is_set():
                for record in self._feed.poll(_POLL_S):
                    self._take(record)
                self._look()
                self._live()
        finally:
            stop.set()
            for dispatcher in self.dispatchers:
                dispatcher.wake()
            deadline = time.monotonic() + _END_WITHIN_S
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))

    def once(self, stop: threading.Event) -> bool:
        """Send what is due now; return True if the receivers accepted all of it."""
        left = list(self.dispatchers)
        while left and not stop.is_set():
            wake_s = min(dispatcher.step() for dispatcher in left)
            left = [dispatcher for dispatcher in left if dispatcher.has_ripe() and not dispatcher.failures]
            if left:
                stop.wait(min(1.0, max(0.0, wake_s - self._clock())))
        for dispatcher in self.dispatchers:
            dispatcher.tidy()
        sent = self.traces is None or self.traces.once(stop)
        return sent and not any(dispatcher.failures or dispatcher.refused for dispatcher in self.dispatchers)

    def _take(self, record: Record) -> None:
        now_s = self._clock()
        if record.topic == self._config.topics.status:
            self._watchdog.status(record.value, now_s, live=not self._feed.was_there(record))
            return
        if not record.value:
            self._gone((record.key or b"").decode(errors="replace"))
            return
        try:
            observed = ObservedFinding.parse(
                record.value, written_s=min(now_s, record.written_s or now_s), partition=record.partition, offset=record.offset
            )
        except UnreadableFindingError as error:
            self.unreadable += 1
            if self.unreadable <= _SAY_UNREADABLE:
                self._tell(
                    f"{record.topic}, partition {record.partition}, offset {record.offset} is not a finding: {on_one_line(str(error))}"
                )
            return
        self._observe(observed)

    def _gone(self, name: str) -> None:
        """Process a finding that was deleted from the topic."""
        self.open.discard(name)
        for dispatcher in self._readers:
            dispatcher.gone(name)

    def _look(self) -> None:
        self.looked_s = time.monotonic()
        observed = self._watchdog.look(self._clock())
        if observed is not None:
            self._observe(observed)

    def _live(self) -> None:
        """Give a sign of life, which the job misses when it does not come (rule V-12)."""
        if self.looked_s - self._lived_s >= _ALIVE_EVERY_S:
            self._lived_s = self.looked_s
            self._delivery_log.live(socket.gethostname(), self._clock())

    def _observe(self, observed: ObservedFinding) -> None:
        (self.open.discard if observed.is_over else self.open.add)(observed.id)
        self._watchdog.observe(observed)
        for dispatcher in self._readers:
            dispatcher.observe(observed)


def trace_sender(
    config: MonitorConfig, delivery_log: DeliveryLog, memory: Memory, *, tell: Callable[[str], None]
) -> TraceSender | None:
    """Return what sends rebalances as traces; None if the configuration names no receiver of them.

    :raises SetupError: when OpenTelemetry is not installed.
    """
    if config.traces.endpoint is None:
        return None
    try:
        from streaming.traces import sender  # noqa: PLC0415 - its libraries are an extra
    except ModuleNotFoundError as error:
        raise SetupError(
            f"[traces] needs OpenTelemetry, and {error.name} is missing: pip install 'rebalance-monitor[traces]'"
        ) from None
    return sender.TraceSender(config, delivery_log, memory.positions(sender.NAME), tell=tell)


def windows_now(config: MonitorConfig, now_s: float) -> list[str]:
    """Return the names of the active maintenance windows."""
    return [name for name, window in config.notify.maintenance.items() if window.end_of(now_s) is not None]
