"""Channels that send messages: webhooks, standard output, and services that only get a heartbeat.

A receiver of messages does not deduplicate, so a message that is sent twice notifies twice. A message therefore counts as delivered
as soon as the receiver accepts it. The few messages that are repeated after a kill have the same keys as before.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, BinaryIO, Final

from streaming.notify.delivery import Channel, Delivery, DeliveryPlan
from streaming.notify.http import Accepted, Outcome, Rejected, post
from streaming.notify.notification import Event, iso
from streaming.notify.templating import MessageError, Template, context, message_key, shipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streaming.config.notify import GroupBy, Heartbeat, Stdout, Webhook
    from streaming.notify.notification import Links, Notification
    from streaming.notify.outbox import DueNotification, Outbox
    from streaming.notify.watchdog import Watchdog

_IDLE_S: Final = 60.0
_MOST: Final = 50  # notifications of one message


def grouped(
    waiting: Iterable[DueNotification], group_by: GroupBy, wait_s: float, now_s: float
) -> tuple[list[list[Notification]], float]:
    """Return the messages to send now, and the time of the next check.

    A notification waits ``wait_s`` for others of its group or cluster, unless one of them is critical.
    """
    heaps: dict[tuple[str, ...], list[DueNotification]] = defaultdict(list)
    wake_s = now_s + _IDLE_S
    for due in waiting:
        if due.due_s <= now_s:
            heaps[_heap(due.notice, group_by)].append(due)
        else:
            wake_s = min(wake_s, due.due_s)
    ready: list[list[Notification]] = []
    for heap in heaps.values():
        goes_s = min(due.due_s for due in heap) + wait_s
        if goes_s <= now_s or any(_is_urgent(due.notice) for due in heap):
            notices = [due.notice for due in heap]
            ready += [notices[begin : begin + _MOST] for begin in range(0, len(notices), _MOST)]
        else:
            wake_s = min(wake_s, goes_s)
    return ready, wake_s


def _heap(notice: Notification, group_by: GroupBy) -> tuple[str, ...]:
    finding = notice.finding
    keys: dict[str, tuple[str, ...]] = {
        "finding": (finding["cluster"], finding["group"], finding["id"]),
        "group": (finding["cluster"], finding["group"]),
        "cluster": (finding["cluster"],),
    }
    return keys[group_by]


def _is_urgent(notice: Notification) -> bool:
    return notice.event is not Event.RESOLVED and notice.finding["severity"] == "critical"


class _Messages(Channel):
    """Base class of webhooks and standard output."""

    def __init__(
        self, name: str, settings: Webhook | Stdout, template: Template, *, links: Links, secret: str | None = None
    ) -> None:
        self.name = name
        self._group_by = settings.group_by
        self._group_wait_s = settings.group_wait_s
        self._template = template
        self._links = links
        self._secret = secret

    def plan(self, outbox: Outbox, now_s: float) -> DeliveryPlan:
        """Return one delivery for each message."""
        messages, wake_s = grouped(outbox.due(now_s), self._group_by, self._group_wait_s, now_s)
        return DeliveryPlan([self._delivery(notices) for notices in messages], wake_s)

    def only(self, notice: Notification, _now_s: float) -> Delivery:
        return self._delivery([notice])

    def _delivery(self, notices: Sequence[Notification]) -> Delivery:
        values = context(notices, receiver=self.name, links=self._links, secret=self._secret)
        try:
            return Delivery(tuple(notices), self._template.render(values))
        except MessageError as error:
            return Delivery(tuple(notices), b"", str(error))


class WebhookChannel(_Messages):
    """Sends messages by POST."""

    def __init__(self, name: str, settings: Webhook, *, links: Links) -> None:
        self._settings = settings
        self._headers = {"Content-Type": "application/json"} | {key.title(): value for key, value in settings.headers.items()}
        template = Template(
            settings.template_file or shipped(settings.template), makes_json="json" in self._headers["Content-Type"].lower()
        )
        super().__init__(f"webhook/{name}", settings, template, links=links, secret=settings.template_secret())

    def send(self, delivery: Delivery) -> Outcome:
        if delivery.problem:
            return Rejected(delivery.problem)
        key = message_key(self.name, delivery.notices)
        return post(self._settings.address(), delivery.body, {**self._headers, "Idempotency-Key": key}, self._settings)


class StdoutChannel(_Messages):
    """Writes one line for each message."""

    def __init__(self, settings: Stdout, *, links: Links, stream: BinaryIO | None = None) -> None:
        super().__init__("stdout", settings, Template(shipped("generic")), links=links)
        self._stream = stream or sys.stdout.buffer

    def send(self, delivery: Delivery) -> Outcome:
        try:
            self._stream.write(json.dumps(json.loads(delivery.body), separators=(",", ":")).encode() + b"\n")
            self._stream.flush()
        except (OSError, ValueError):
            return Rejected("standard output is closed")
        return Accepted()


class HeartbeatChannel(Channel):
    """Sends pings while the monitor is alive, and no findings."""

    def __init__(self, name: str, settings: Heartbeat, *, cluster: str, watchdog: Watchdog) -> None:
        self.name = f"heartbeat/{name}"
        self._settings = settings
        self._cluster = cluster
        self._watchdog = watchdog
        self._pinged_s: float | None = None

    def plan(self, _outbox: Outbox, now_s: float) -> DeliveryPlan:
        """Return a ping if ``every_s`` has passed and the monitor is alive."""
        every_s = self._settings.every_s
        waits = self._pinged_s is not None and 0 <= now_s - self._pinged_s < every_s  # a clock set back must not stop the pings
        if waits or not self._watchdog.beats(now_s):
            return DeliveryPlan([], now_s + 1.0)
        self._pinged_s = now_s
        return DeliveryPlan([self._ping(now_s)], now_s + every_s)

    def send(self, delivery: Delivery) -> Outcome:
        return post(self._settings.address(), delivery.body, {"Content-Type": "application/json"}, self._settings)

    def missed(self) -> None:
        """Retry without waiting for ``every_s``."""
        self._pinged_s = None

    def only(self, _notice: Notification, now_s: float) -> Delivery:
        return self._ping(now_s)

    def _ping(self, now_s: float) -> Delivery:
        beat = {"heartbeat": "rebalance-monitor", "cluster": self._cluster, "at": iso(now_s)}
        return Delivery((), json.dumps(beat).encode())
