"""Delivers notifications to one receiver: plan, send, log, and retry when the receiver is unreachable.

Each receiver has a dispatcher, and each dispatcher a thread, so a receiver that hangs does not delay the others. A failed request is not
repeated. Instead, the dispatcher makes a new plan after a pause: it may have fewer or newer notifications.

Sending takes seconds, and findings change meanwhile. The lock is held while planning and while recording the outcome, never while sending.
A finding that changed in between is due again.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Final

from streaming.notify.http import Accepted, Rejected, Unreachable
from streaming.notify.notification import Event, on_one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.notify.delivery import Channel, Delivery
    from streaming.notify.delivery_log import DeliveryLog
    from streaming.notify.notification import Notification, ObservedFinding
    from streaming.notify.outbox import Outbox

_TIDY_S: Final = 5.0
_LONGEST_NAP_S: Final = 5.0  # limits the effect of a clock that is set


class Dispatcher:
    """Runs the deliveries of one receiver.

    :param tell: called with a sentence for each notification that was delivered, rejected or delayed.
    :param retry_s: first and longest pause before a retry when the receiver is unreachable.
    :param jitter: returns random numbers from 0 to 1.
    """

    def __init__(
        self,
        channel: Channel,
        outbox: Outbox,
        delivery_log: DeliveryLog,
        *,
        tell: Callable[[str], None],
        retry_s: tuple[float, float],
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name = channel.name
        self.accepted = 0  #: notifications that the receiver accepted
        self.refused = 0  #: notifications that the receiver rejected
        self.failures = 0  #: failed attempts since the last success
        self._channel = channel
        self._outbox = outbox
        self._delivery_log = delivery_log
        self._tell = tell
        self._retry_s = retry_s
        self._clock = clock
        self._jitter = jitter
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._not_before_s = 0.0
        self._away_since_s = 0.0
        self._last_refusal = ""
        self._written: dict[int, int] = {}
        self._tidied_s = 0.0

    def observe(self, observed: ObservedFinding) -> None:
        """Process the newest state of a finding."""
        with self._lock:
            self._outbox.observe(observed)
        self._news.set()

    def gone(self, name: str) -> None:
        """Process a finding that was deleted from the topic."""
        with self._lock:
            self._outbox.gone(name)
        self._news.set()

    def run(self, stop: threading.Event) -> None:
        """Deliver until ``stop`` is set; :meth:`wake` ends a pause."""
        while not stop.is_set():
            self._news.clear()
            try:
                pause_s = self.step() - self._clock()
            except Exception as error:  # a missing secret file or a bug must not end the thread without a log line
                self._away(f"{type(error).__name__}: {error}", None)
                continue
            if pause_s > 0:
                self._news.wait(min(pause_s, _LONGEST_NAP_S))
        self.tidy()

    def wake(self) -> None:
        self._news.set()

    def step(self) -> float:
        """Send what is due; return the time of the next step (seconds since the epoch)."""
        now_s = self._clock()
        if now_s < self._not_before_s <= now_s + self._longest_pause_s():
            return self._not_before_s
        with self._lock:
            plan = self._channel.plan(self._outbox, now_s)
        for delivery in plan.deliveries:
            if not self._hand_over(delivery):
                return self._not_before_s
        if now_s - self._tidied_s >= _TIDY_S or now_s < self._tidied_s:
            self._tidied_s = now_s
            self.tidy()
        return plan.wake_s

    def tidy(self) -> None:
        """Store the positions, and delete the log records that these make obsolete."""
        with self._lock:
            positions = self._outbox.positions()
            forget = self._outbox.settled(self._clock())
        moved = {partition: position for partition, position in positions.items() if self._written.get(partition) != position}
        if moved or forget:
            self._delivery_log.advance(self.name, moved, forget)
            self._written = positions

    def _hand_over(self, delivery: Delivery) -> bool:
        """Send one delivery; return True if the receiver answered, with acceptance or rejection."""
        outcome = self._channel.send(delivery)
        match outcome:
            case Unreachable(reason, pause_s):
                self._away(reason, pause_s)
                return False
            case Rejected(reason, _):
                self._back()
                parts = self._channel.split(delivery) if outcome.for_its_content else []
                if parts:
                    return all(self._hand_over(part) for part in parts)
                self._refuse(delivery, reason)
            case Accepted():
                self._back()
                self._last_refusal = ""
                self._take(delivery)
        return True

    def _take(self, delivery: Delivery) -> None:
        if not delivery.notices:
            return
        with self._lock:
            remember = self._outbox.accept(delivery.notices, self._clock())
        self._delivery_log.remember(self.name, remember)
        self.accepted += len(delivery.notices)
        for notice in delivery.notices:
            self._tell(f"{self.name}: sent {in_words(notice)}")

    def _refuse(self, delivery: Delivery, reason: str) -> None:
        with self._lock:
            remember = self._outbox.refuse(delivery.notices, self._clock())
        self._delivery_log.remember(self.name, remember)
        self.refused += len(delivery.notices)
        if reason != self._last_refusal:
            self._last_refusal = reason
            count = len(delivery.notices)
            what = f"{count} notification{'s' if count > 1 else ''}" if count else "the request"
            self._tell(f"{self.name}: rejected {what} (no retry): {reason}")

    def _away(self, reason: str, pause_s: float | None) -> None:
        first_s, longest_s = self._retry_s
        wait_s = min(longest_s, first_s * 2.0 ** min(self.failures, 30)) * (0.5 + self._jitter())
        now_s = self._clock()
        self._not_before_s = now_s + max(wait_s, pause_s or 0.0)
        with self._lock:
            self._channel.missed()
        if self.failures == 0:
            self._away_since_s = now_s
            self._tell(f"{self.name}: delivery failed: {reason}; retrying")
        self.failures += 1

    def _back(self) -> None:
        if self.failures:
            self._tell(
                f"{self.name}: reachable again after {self._clock() - self._away_since_s:.0f} s and {self.failures} failed attempts"
            )
        self.failures = 0

    def has_ripe(self) -> bool:
        """Return True if a notification is due, or waits only for others to be grouped with it."""
        now_s = self._clock()
        with self._lock:
            return any(due.due_s <= now_s for due in self._outbox.due(now_s))

    def _longest_pause_s(self) -> float:
        return max(2 * self._retry_s[1], 3600.0)


def in_words(notice: Notification) -> str:
    """Return one log line about a notification."""
    finding = notice.finding
    what = {Event.OPEN: "open", Event.SEVERITY: "now", Event.RESOLVED: "resolved", Event.OVER: "over already"}[notice.event]
    if notice.event is Event.OPEN and finding.get("status") == "resolved":
        what = "open, over already,"
    where = f" {finding['group']}:" if finding["group"] else ""
    return on_one_line(f"{what} {finding['severity']} {finding['rule']} {finding['name']}:{where} {finding['summary']}", 400)
