"""The notifier: reads findings and the monitor's status, and has a courier for each receiver.

One thread reads, one per receiver tells. The trap: until all that is in the topics has been read nothing may be told, for the newest
state of a finding may be the last record of all.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from streaming.kafka.topics import SetupError
from streaming.notify.alertmanager import AlertmanagerChannel
from streaming.notify.delivery_log import Memory
from streaming.notify.dispatcher import Dispatcher
from streaming.notify.feed import FindingsFeed
from streaming.notify.notification import ObservedFinding, UnreadableFindingError, on_one_line
from streaming.notify.outbox import Outbox, Policy
from streaming.notify.settings import Wants
from streaming.notify.watchdog import Watchdog
from streaming.notify.webhook import HeartbeatChannel, StdoutChannel, WebhookChannel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from streaming.config.settings import MonitorConfig
    from streaming.notify.delivery import Channel
    from streaming.notify.delivery_log import DeliveryLog
    from streaming.notify.feed import Record
    from streaming.notify.settings import Alertmanager, Notify, Stdout, Webhook

_POLL_S: Final = 0.25
_END_WITHIN_S: Final = 20.0
_SAY_UNREADABLE: Final = 10


class Receiver(NamedTuple):
    """A channel, and what holds for it; without a policy it wants no findings."""

    channel: Channel
    policy: Policy | None


def receivers(config: MonitorConfig, pulse: Watchdog) -> list[Receiver]:
    """Everybody who is to be told something.

    :raises SetupError: when there is nobody, or a template cannot be used.
    """
    notify, cluster = config.notify, config.cluster
    found: list[Receiver] = []
    for name, manager in notify.alertmanager.items():
        channel = AlertmanagerChannel(name, manager, rule_url=notify.rule_url, cluster=cluster, pulse=pulse)
        found.append(Receiver(channel, _policy(notify, manager)._replace(keep_s=manager.keep_firing_s)))
    for name, webhook in notify.webhook.items():
        found.append(Receiver(WebhookChannel(name, webhook, rule_url=notify.rule_url), _messages(notify, webhook)))
    if notify.stdout is not None:
        found.append(Receiver(StdoutChannel(notify.stdout, rule_url=notify.rule_url), _messages(notify, notify.stdout)))
    for name, heartbeat in notify.heartbeat.items():
        found.append(Receiver(HeartbeatChannel(name, heartbeat, cluster=cluster, pulse=pulse), None))
    if not found:
        raise SetupError(
            "nobody is to be told: add a section [notify.alertmanager.NAME], [notify.webhook.NAME] or [notify.stdout] to the "
            "configuration; deploy/rebalance-monitor.toml has all their keys"
        )
    return found


def _policy(notify: Notify, wants: Alertmanager | Webhook | Stdout) -> Policy:
    return Policy(wants, notify.wait_s, tuple(notify.maintenance.values()))


def _messages(notify: Notify, settings: Webhook | Stdout) -> Policy:
    return _policy(notify, settings)._replace(tells_resolved=settings.tell_resolved)


class Notifier:
    """A context manager: entering it reads what is there already.

    :param tell: called with a sentence for whatever an operator should know.
    :param adapt: given each channel, gives the one to use: for a dry run.
    """

    def __init__(
        self,
        config: MonitorConfig,
        ledger: DeliveryLog,
        *,
        tell: Callable[[str], None],
        adapt: Callable[[Channel], Channel] = lambda channel: channel,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.open: set[str] = set()  #: ids of open findings
        self.unreadable = 0  #: records that are no finding
        self._config = config
        self._ledger = ledger
        self._tell = tell
        self._adapt = adapt
        self._clock = clock
        self._feed = FindingsFeed(config.kafka, (config.topics.findings, config.topics.status), trouble=tell)
        self._pulse = Watchdog(
            cluster=config.cluster,
            topic=config.topics.mirror,
            stalled_s=config.notify.stalled_s,
            started_s=clock(),
            hint=lambda: ", which the notifier cannot reach either" if self._feed.in_trouble else "",
        )
        self._receivers = receivers(config, self._pulse)
        self._everybody: list[Dispatcher] = []
        self._readers: list[Dispatcher] = []  #: those who want findings

    @property
    def couriers(self) -> Sequence[Dispatcher]:
        return self._everybody

    def __enter__(self) -> Self:
        """Read the ledger, and then all there is to know.

        :raises SetupError: when Kafka does not let us.
        """
        try:
            self._start()
        except BaseException:
            self._feed.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._feed.close()

    def _start(self) -> None:
        memory = self._remembered()
        self._feed.start()
        findings = self._config.topics.findings
        ends = {partition: end for (topic, partition), end in self._feed.ends.items() if topic == findings}
        notify = self._config.notify
        for channel, policy in self._receivers:
            known = policy or Policy(Wants(), notify.wait_s)
            outbox = Outbox(known, memory.told(channel.name), memory.positions(channel.name))
            outbox.begin(ends)
            courier = Dispatcher(
                self._adapt(channel),
                outbox,
                self._ledger,
                tell=self._tell,
                retry_s=(notify.retry_wait_s, notify.retry_wait_max_s),
                clock=self._clock,
            )
            self._everybody.append(courier)
            if policy is not None:
                self._readers.append(courier)
        for record in self._feed.history():
            self._take(record)
        self._look()

    def run(self, stop: threading.Event) -> None:
        """Tell whatever happens until told to stop."""
        threads = [
            threading.Thread(target=courier.run, args=(stop,), name=courier.name, daemon=True) for courier in self._everybody
        ]
        for thread in threads:
            thread.start()
        try:
            while not stop.is_set():
                for record in self._feed.poll(_POLL_S):
                    self._take(record)
                self._look()
        finally:
            stop.set()
            for courier in self._everybody:
                courier.wake()
            deadline = time.monotonic() + _END_WITHIN_S
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))

    def once(self, stop: threading.Event) -> bool:
        """Tell what there is to tell now; whether all of it was taken."""
        left = list(self._everybody)
        while left and not stop.is_set():
            wake_s = min(courier.step() for courier in left)
            left = [courier for courier in left if courier.has_ripe() and not courier.failures]
            if left:
                stop.wait(min(1.0, max(0.0, wake_s - self._clock())))
        for courier in self._everybody:
            courier.tidy()
        return not any(courier.failures or courier.refused for courier in self._everybody)

    def _remembered(self) -> Memory:
        topics = self._config.topics
        memory = Memory(topics.findings)
        with FindingsFeed(self._config.kafka, (topics.notifications,), trouble=self._tell) as feed:
            feed.start()
            for record in feed.history():
                memory.take(record.key, record.value)
        if memory.unreadable:
            self._tell(
                f"{memory.unreadable} records of {topics.notifications} cannot be read: what they remember may be told again"
            )
        return memory

    def _take(self, record: Record) -> None:
        now_s = self._clock()
        if record.topic == self._config.topics.status:
            self._pulse.status(record.value, now_s, live=not self._feed.was_there(record))
            return
        if not record.value:
            self._gone((record.key or b"").decode(errors="replace"))
            return
        try:
            heard = ObservedFinding.parse(
                record.value, heard_s=min(now_s, record.written_s or now_s), partition=record.partition, offset=record.offset
            )
        except UnreadableFindingError as error:
            self.unreadable += 1
            if self.unreadable <= _SAY_UNREADABLE:
                self._tell(
                    f"{record.topic}, partition {record.partition}, offset {record.offset} is no finding: {on_one_line(str(error))}"
                )
            return
        self._hear(heard)

    def _gone(self, name: str) -> None:
        """An operator has deleted a finding from the topic."""
        self.open.discard(name)
        for courier in self._readers:
            courier.gone(name)

    def _look(self) -> None:
        heard = self._pulse.look(self._clock())
        if heard is not None:
            self._hear(heard)

    def _hear(self, heard: ObservedFinding) -> None:
        (self.open.discard if heard.is_over else self.open.add)(heard.id)
        self._pulse.hear(heard)
        for courier in self._readers:
            courier.hear(heard)


def windows_now(config: MonitorConfig, now_s: float) -> list[str]:
    """Names of the maintenance windows that are on."""
    return [name for name, window in config.notify.maintenance.items() if window.end_of(now_s) is not None]
