"""Decides what is sent to one receiver, and when; a state machine without I/O or clock.

It keeps, for each finding, the newest state and what the receiver was sent. The difference is what to send next. So an unreachable
receiver needs no queue: it gets the current state when it is reachable again. A notification is delayed for one of four reasons:

* Flapping: a finding must have been open for ``wait_s`` of its severity. A finding that is resolved sooner is never sent. A finding that
  lasted longer but could not be sent in time is sent as over.
* Planned maintenance: a finding that opens in a window waits for the end of the window.
* Grouping and back-off: the sender implements both.

The delivery log (``streaming.notify.delivery_log``) stores what was sent, and supplies it at the start. The topic keeps resolved findings
for weeks. A resolved finding that was never sent is either old, or happened while the notifier was down. The position tells them apart: the
offset below which every finding is processed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streaming.config.maintenance import held_until
from streaming.config.patterns import matches
from streaming.notify.notification import OWN, Delivered, Event, Notification, without_evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streaming.config.maintenance import Maintenance
    from streaming.config.notify import FindingFilter, Patience
    from streaming.notify.notification import ObservedFinding


_REMEMBER_S: Final = 3600.0
"""How long after a kill the job may rewrite records that it wrote before."""


class Policy(NamedTuple):
    """The delivery settings of one receiver."""

    filter: FindingFilter
    patience: Patience
    windows: Sequence[Maintenance] = ()
    tells_resolved: bool = True
    keep_s: float = 0.0
    """Minimum time between sending a finding as open and as resolved. If set, a finding that is resolved unsent is first sent as open."""

    def passes(self, heard: ObservedFinding) -> bool:
        """Return True if the receiver's filters accept the finding."""
        chosen = self.filter
        if heard.severity.rank < chosen.minimum_severity.rank or matches(heard.finding["rule"], chosen.deny_rules):
            return False
        # A finding without a group is about the monitor itself: group filters must not drop it.
        return not heard.group or (matches(heard.group, chosen.allow_groups) and not matches(heard.group, chosen.deny_groups))

    def held_until(self, heard: ObservedFinding, at_s: float, now_s: float) -> float:
        """Return when maintenance no longer delays an event at ``at_s``; the capture's clock may be ahead of the local clock."""
        return held_until(self.windows, heard.group, min(at_s, now_s), now_s)


class DueNotification(NamedTuple):
    """A notification, and the time from which it is due."""

    notice: Notification
    due_s: float


@dataclass(slots=True)
class _Entry:
    heard: ObservedFinding | None = None  #: the newest state; None if the finding is only in the delivery log
    first_s: float = 0.0  #: when the finding was first observed
    told: Delivered | None = None
    refused: str | None = None  #: key of the notification that the receiver rejected


class Outbox:
    """The pending notifications of one receiver.

    :param told: what the receiver was sent earlier, by finding id.
    :param positions: by partition of the findings topic, the offset below which every finding is processed.
    """

    def __init__(self, policy: Policy, told: Mapping[str, Delivered], positions: Mapping[int, int]) -> None:
        self._policy = policy
        self._positions = dict(positions)
        self._heard_to: dict[int, int] = {}  #: next offset by partition
        self._entries = {name: _Entry(told=known) for name, known in told.items()}
        self._open_questions = set(self._entries)  #: ids of findings that may need a notification

    def begin(self, ends: Mapping[int, int]) -> None:
        """Set the end offsets of the topic's partitions; call it before :meth:`hear`.

        Findings resolved before the first start are not sent. A position beyond the end means that the topic was created again.
        """
        for partition, end in ends.items():
            self._positions[partition] = min(self._positions.get(partition, end), end)

    def hear(self, heard: ObservedFinding) -> None:
        """Process the newest state of a finding."""
        if heard.partition != OWN:
            self._heard_to[heard.partition] = heard.offset + 1
        entry = self._entries.get(heard.id)
        if entry is None:
            if heard.is_over and not self._is_news(heard):
                return
            entry = self._entries[heard.id] = _Entry()
        if entry.told is not None and entry.told.is_over:
            return  # the job may rewrite records that it wrote before it was killed
        if entry.heard is None:
            entry.first_s = heard.heard_s
        elif (heard.updated_s, heard.is_over) < (entry.heard.updated_s, entry.heard.is_over):
            return
        entry.heard = heard
        self._open_questions.add(heard.id)

    def gone(self, name: str) -> None:
        """Process a finding that was deleted from the topic."""
        entry = self._entries.get(name)
        if entry is not None:
            entry.heard = None
            self._open_questions.add(name)

    def due(self, now_s: float) -> list[DueNotification]:
        """Return all pending notifications, the most severe first, with the time from which each is due.

        Call it only after the topic is read to its end: a finding that was sent but not read counts as deleted.
        """
        found: list[DueNotification] = []
        for name in list(self._open_questions):
            entry = self._entries.get(name)
            due = self._judge(entry, now_s) if entry is not None else None
            if due is not None and due.notice.event is Event.RESOLVED and not self._policy.tells_resolved:
                self.tell([due.notice], now_s)  # not logged; a restart reaches the same conclusion
            elif due is not None:
                found.append(due)
            else:
                self._open_questions.discard(name)
                self._forget_if_over(name)
        found.sort(key=lambda due: (-due.notice.severity.rank, due.due_s))
        return found

    def open(self) -> list[dict[str, Any]]:
        """Return the findings that were sent as open, in their newest state if that has the severity that was sent."""
        return [
            told.finding if heard is None or heard.is_over or heard.severity is not told.severity else heard.finding
            for told, heard in ((entry.told, entry.heard) for entry in self._entries.values())
            if told is not None and not told.is_over
        ]

    def tell(self, notices: Iterable[Notification], now_s: float) -> dict[str, Delivered]:
        """Mark notifications as accepted; return what to store in the delivery log."""
        remember: dict[str, Delivered] = {}
        for notice in notices:
            name = str(notice.finding["id"])
            entry = self._entries.setdefault(name, _Entry())
            before, heard = entry.told, entry.heard
            partition, offset = (OWN, 0) if heard is None else (heard.partition, heard.offset)
            entry.told = remember[name] = Delivered(
                finding=without_evidence(notice.finding) if notice.is_open else {"id": name},
                first_s=now_s if before is None else before.first_s,
                last_s=now_s,
                is_over=not notice.is_open,
                partition=partition,
                offset=offset,
            )
            entry.refused = None
            if not notice.is_open:
                entry.heard = None
            self._open_questions.add(name)
        return remember

    def refuse(self, notices: Iterable[Notification], now_s: float) -> dict[str, Delivered]:
        """Mark notifications as rejected: they are not sent again unless the finding changes.

        A resolved finding does not change any more, so its notification counts as sent. Return what to store in the delivery log.
        """
        ends = []
        for notice in notices:
            if notice.event is Event.RESOLVED:
                ends.append(notice)
            else:
                self._entries[str(notice.finding["id"])].refused = notice.key
        return self.tell(ends, now_s)

    def positions(self) -> dict[int, int]:
        """Return by partition the offset below which every finding is processed; it never decreases."""
        for partition, end in self._heard_to.items():
            self._positions[partition] = max(self._positions.get(partition, 0), min([end, *self._untold(partition)]))
        return dict(self._positions)

    def settled(self, now_s: float) -> list[str]:
        """Drop the findings whose resolution was sent a while ago and is below the position; return their ids."""
        done = [
            name
            for name, entry in self._entries.items()
            if entry.told is not None
            and entry.told.is_over
            and name not in self._open_questions
            and not 0 <= now_s - entry.told.last_s < _REMEMBER_S
            and entry.told.offset < self._positions.get(entry.told.partition, entry.told.offset + 1)
        ]
        for name in done:
            del self._entries[name]
        return done

    def _judge(self, entry: _Entry, now_s: float) -> DueNotification | None:
        due = self._new(entry.heard, entry.first_s, now_s) if entry.told is None else self._known(entry.heard, entry.told, now_s)
        return None if due is None or due.notice.key == entry.refused else due

    def _new(self, heard: ObservedFinding | None, first_s: float, now_s: float) -> DueNotification | None:
        if heard is None or not self._policy.passes(heard):
            return None
        wait_s = self._policy.patience.of(heard.severity)
        if not heard.is_over:
            return DueNotification(
                Notification(Event.OPEN, heard.finding),
                max(first_s + wait_s, self._policy.held_until(heard, heard.opened_s, now_s)),
            )
        if not self._is_news(heard) or heard.lasted_s < wait_s or self._ended_in_maintenance(heard):
            return None
        return DueNotification(Notification(Event.OPEN if self._policy.keep_s else Event.OVER, heard.finding), heard.heard_s)

    def _known(self, heard: ObservedFinding | None, told: Delivered, now_s: float) -> DueNotification | None:
        if told.is_over:
            return None
        keep_until_s = told.first_s + self._policy.keep_s
        if heard is None:
            gone = Notification(Event.RESOLVED, told.finding, told.finding, "it is no longer in the findings topic")
            return DueNotification(gone, keep_until_s)
        if heard.is_over:
            return DueNotification(Notification(Event.RESOLVED, heard.finding, told.finding), max(heard.heard_s, keep_until_s))
        if not self._policy.passes(heard):
            reason = "it no longer matches this receiver's filters (severity, groups, rules)"
            return DueNotification(Notification(Event.RESOLVED, heard.finding, told.finding, reason), heard.heard_s)
        if heard.severity is not told.severity:
            due_s = max(heard.heard_s, self._policy.held_until(heard, heard.updated_s, now_s))
            return DueNotification(Notification(Event.SEVERITY, heard.finding, told.finding), due_s)
        return None

    def _is_news(self, heard: ObservedFinding) -> bool:
        return heard.partition == OWN or heard.offset >= self._positions.get(heard.partition, 0)

    def _ended_in_maintenance(self, heard: ObservedFinding) -> bool:
        ended_s = heard.resolved_s if heard.resolved_s is not None else heard.updated_s
        return self._policy.held_until(heard, heard.opened_s, ended_s) > ended_s

    def _forget_if_over(self, name: str) -> None:
        entry = self._entries.get(name)
        if entry is not None and entry.told is None and (entry.heard is None or entry.heard.is_over):
            del self._entries[name]

    def _untold(self, partition: int) -> list[int]:
        """Return the offsets of resolved findings that are not sent yet."""
        waiting = (self._entries[name] for name in self._open_questions if name in self._entries)
        return [
            entry.heard.offset
            for entry in waiting
            if entry.heard is not None and entry.heard.is_over and entry.heard.partition == partition and entry.told is None
        ]
