"""Decides what is sent to one receiver, and when; a state machine without I/O or clock.

It keeps, for each finding, the newest state and what the receiver was sent. The difference is what to send next. So an unreachable
receiver needs no queue: it gets the current state when it is reachable again. A notification is delayed for one of four reasons:

* Flapping: a finding must have been open for ``wait_s`` of its severity. A finding that is resolved sooner is never sent. A finding that
  lasted longer but could not be sent in time is sent as over.
* Planned maintenance: a finding that opens in a window waits for the end of the window.
* Grouping and back-off: the sender implements both.

Each partition of the mirror has a model of its own, and all of them see a gap; each group finds that its broker is away. What several of
them find is one event, and is sent once: the first message stands for all that open before it is over, and it is over when all of them are.
So it is with a message that comes when all is over already, as after a job's start that reads what came before.

The delivery log (``streaming.notify.delivery_log``) stores what was sent, and supplies it at the start. The topic keeps resolved findings
for weeks. A resolved finding that was never sent is either old, or happened while the notifier was down. The position tells them apart: the
offset below which every finding is processed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streaming.config.maintenance import held_until
from streaming.config.patterns import matches, selects
from streaming.notify.notification import OWN, Delivered, Event, Notification, without_evidence
from streaming.published.finding_rows import STANDS_FOR, place, stands_for

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
    sends_resolved: bool = True
    keep_s: float = 0.0
    """Minimum time between sending a finding as open and as resolved. If set, a finding that is resolved unsent is first sent as open."""

    def passes(self, newest: ObservedFinding) -> bool:
        """Return True if the receiver's filters accept the finding."""
        chosen = self.filter
        if newest.severity.rank < chosen.minimum_severity.rank or matches(newest.finding["rule"], chosen.deny_rules):
            return False
        # A finding without a group is about the monitor itself: group filters must not drop it.
        return not newest.group or selects(newest.group, chosen.allow_groups, chosen.deny_groups)

    def held_until(self, newest: ObservedFinding, at_s: float, now_s: float) -> float:
        """Return when maintenance no longer delays an event at ``at_s``; the capture's clock may be ahead of the local clock."""
        return held_until(self.windows, newest.group, min(at_s, now_s), now_s)


class DueNotification(NamedTuple):
    """A notification, and the time from which it is due."""

    notice: Notification
    due_s: float


@dataclass(slots=True)
class _Entry:
    observed: ObservedFinding | None = None  #: the newest state; None if the finding is only in the delivery log
    first_s: float = 0.0  #: when the finding was first observed
    delivered: Delivered | None = None
    refused: str | None = None  #: key of the notification that the receiver rejected


class Outbox:
    """The pending notifications of one receiver.

    :param delivered: what the receiver was sent earlier, by finding id.
    :param positions: by partition of the findings topic, the offset below which every finding is processed.
    """

    def __init__(self, policy: Policy, delivered: Mapping[str, Delivered], positions: Mapping[int, int]) -> None:
        self._policy = policy
        self._positions = dict(positions)
        self._read_to: dict[int, int] = {}  #: next offset by partition
        self._entries = {name: _Entry(delivered=known) for name, known in delivered.items()}
        self._open_questions = set(self._entries)  #: ids of findings that may need a notification
        self._seen_by_many: set[str] = set()  #: ids of findings of events that many see
        self._over_s: dict[tuple[object, str], float] = {}
        #: place and rule of such an event → end, on the capture's clock, of the newest one sent that covers it

    def begin(self, ends: Mapping[int, int]) -> None:
        """Set the end offsets of the topic's partitions; call it before :meth:`observe`.

        Findings resolved before the first start are not sent. A position beyond the end means that the topic was created again.
        """
        for partition, end in ends.items():
            self._positions[partition] = min(self._positions.get(partition, end), end)

    def observe(self, observed: ObservedFinding) -> None:
        """Process the newest state of a finding."""
        if observed.partition != OWN:
            self._read_to[observed.partition] = observed.offset + 1
        entry = self._entries.get(observed.id)
        if entry is None:
            if observed.is_over and not self._is_news(observed):
                return
            entry = self._entries[observed.id] = _Entry()
        if entry.delivered is not None and entry.delivered.is_over:
            return  # the job may rewrite records that it wrote before it was killed
        if entry.observed is None:
            entry.first_s = observed.written_s
        elif (observed.updated_s, observed.is_over) < (entry.observed.updated_s, entry.observed.is_over):
            return
        entry.observed = observed
        self._open_questions.add(observed.id)
        if place(observed.finding) is not None:
            self._seen_by_many = (self._seen_by_many & self._entries.keys()) | {observed.id}
            self._open_questions |= self._seen_by_many

    def gone(self, name: str) -> None:
        """Process a finding that was deleted from the topic."""
        entry = self._entries.get(name)
        if entry is not None:
            entry.observed = None
            self._open_questions |= self._seen_by_many | {name}

    def due(self, now_s: float) -> list[DueNotification]:
        """Return all pending notifications, the most severe first, with the time from which each is due.

        Call it only after the topic is read to its end: a finding that was sent but not read counts as deleted.
        """
        found: list[DueNotification] = []
        for name in list(self._open_questions):
            entry = self._entries.get(name)
            due = self._judge(entry, now_s) if entry is not None else None
            if due is not None and due.notice.event is Event.RESOLVED and not self._policy.sends_resolved:
                self.accept([due.notice], now_s)  # not logged; a restart reaches the same conclusion
            elif due is not None:
                found.append(due)
            else:
                self._open_questions.discard(name)
                self._forget_if_over(name)
        found.sort(key=lambda due: (-due.notice.severity.rank, due.due_s))
        return self._each_event_once(found)

    def open(self) -> list[dict[str, Any]]:
        """Return the findings that were sent as open, in their newest state if that has the severity that was sent."""
        return [
            delivered.finding
            if observed is None or observed.is_over or observed.severity is not delivered.severity
            else observed.finding
            for delivered, observed in ((entry.delivered, entry.observed) for entry in self._entries.values())
            if delivered is not None and not delivered.is_over
        ]

    def accept(self, notices: Iterable[Notification], now_s: float) -> dict[str, Delivered]:
        """Mark notifications as accepted; return what to store in the delivery log."""
        remember: dict[str, Delivered] = {}
        for notice in notices:
            name = str(notice.finding["id"])
            entry = self._entries.setdefault(name, _Entry())
            before, observed = entry.delivered, entry.observed
            partition, offset = (OWN, 0) if observed is None else (observed.partition, observed.offset)
            entry.delivered = remember[name] = Delivered(
                finding=without_evidence(notice.finding) if notice.is_open else {"id": name},
                first_s=now_s if before is None else before.first_s,
                last_s=now_s,
                is_over=not notice.is_open,
                partition=partition,
                offset=offset,
            )
            entry.refused = None
            if not notice.is_open:
                entry.observed = None
                if observed is not None and observed.resolved_s is not None and (where := place(observed.finding)) is not None:
                    for rule in STANDS_FOR[observed.finding["rule"]]:
                        self._over_s[where, rule] = max(observed.resolved_s, self._over_s.get((where, rule), observed.resolved_s))
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
        return self.accept(ends, now_s)

    def positions(self) -> dict[int, int]:
        """Return by partition the offset below which every finding is processed; it never decreases."""
        for partition, end in self._read_to.items():
            self._positions[partition] = max(self._positions.get(partition, 0), min([end, *self._unsent(partition)]))
        return dict(self._positions)

    def settled(self, now_s: float) -> list[str]:
        """Drop the findings whose resolution was sent a while ago and is below the position; return their ids."""
        done = [
            name
            for name, entry in self._entries.items()
            if entry.delivered is not None
            and entry.delivered.is_over
            and name not in self._open_questions
            and not 0 <= now_s - entry.delivered.last_s < _REMEMBER_S
            and entry.delivered.offset < self._positions.get(entry.delivered.partition, entry.delivered.offset + 1)
        ]
        for name in done:
            del self._entries[name]
        return done

    def _judge(self, entry: _Entry, now_s: float) -> DueNotification | None:
        newest, sent = entry.observed, entry.delivered
        due = self._new(newest, entry.first_s, now_s) if sent is None else self._known(newest, sent, now_s)
        return None if due is None or due.notice.key == entry.refused else due

    def _new(self, newest: ObservedFinding | None, first_s: float, now_s: float) -> DueNotification | None:
        if newest is None or not self._policy.passes(newest) or self._is_sent_for(newest):
            return None
        wait_s = self._policy.patience.of(newest.severity)
        if not newest.is_over:
            return DueNotification(
                Notification(Event.OPEN, newest.finding),
                max(first_s + wait_s, self._policy.held_until(newest, newest.opened_s, now_s)),
            )
        if not self._is_news(newest) or newest.lasted_s < wait_s or self._ended_in_maintenance(newest):
            return None
        return DueNotification(Notification(Event.OPEN if self._policy.keep_s else Event.OVER, newest.finding), newest.written_s)

    def _known(self, newest: ObservedFinding | None, sent: Delivered, now_s: float) -> DueNotification | None:
        if sent.is_over:
            return None
        keep_until_s = sent.first_s + self._policy.keep_s
        if newest is None:
            gone = Notification(Event.RESOLVED, sent.finding, sent.finding, "it is no longer in the findings topic")
            return DueNotification(gone, keep_until_s)
        if newest.is_over:
            if self._stands_for_others(newest):
                return None
            return DueNotification(Notification(Event.RESOLVED, newest.finding, sent.finding), max(newest.written_s, keep_until_s))
        if not self._policy.passes(newest):
            reason = "it no longer matches this receiver's filters (severity, groups, rules)"
            return DueNotification(Notification(Event.RESOLVED, newest.finding, sent.finding, reason), newest.written_s)
        if newest.severity is not sent.severity:
            due_s = max(newest.written_s, self._policy.held_until(newest, newest.updated_s, now_s))
            return DueNotification(Notification(Event.SEVERITY, newest.finding, sent.finding), due_s)
        return None

    def _is_sent_for(self, newest: ObservedFinding) -> bool:
        """Return True if a message about another partition or group, which was not over when this finding opened, stands for it."""
        where = place(newest.finding)
        if where is None:
            return False
        if newest.opened_s <= self._over_s.get((where, newest.finding["rule"]), float("-inf")):
            return True
        sent = (entry.delivered for entry in self._entries.values() if entry.delivered is not None)
        return any(one.finding["id"] != newest.id and not one.is_over and stands_for(one.finding, newest.finding) for one in sent)

    def _stands_for_others(self, newest: ObservedFinding) -> bool:
        """Return True if findings are open for which the message about this one stands."""
        others = (self._entries[name].observed for name in self._seen_by_many & self._entries.keys() - {newest.id})
        return any(other is not None and not other.is_over and stands_for(newest.finding, other.finding) for other in others)

    @staticmethod
    def _each_event_once(found: list[DueNotification]) -> list[DueNotification]:
        """Return the notifications without those for which an earlier one, that is about to be sent, stands."""
        kept: list[DueNotification] = []
        new: list[dict[str, Any]] = []
        for due in found:
            is_new = due.notice.event in {Event.OPEN, Event.OVER}
            if not (is_new and any(stands_for(one, due.notice.finding) for one in new)):
                kept.append(due)
                new += [due.notice.finding] if is_new and place(due.notice.finding) is not None else []
        return kept

    def _is_news(self, newest: ObservedFinding) -> bool:
        return newest.partition == OWN or newest.offset >= self._positions.get(newest.partition, 0)

    def _ended_in_maintenance(self, newest: ObservedFinding) -> bool:
        ended_s = newest.resolved_s if newest.resolved_s is not None else newest.updated_s
        return self._policy.held_until(newest, newest.opened_s, ended_s) > ended_s

    def _forget_if_over(self, name: str) -> None:
        entry = self._entries.get(name)
        if entry is not None and entry.delivered is None and (entry.observed is None or entry.observed.is_over):
            del self._entries[name]

    def _unsent(self, partition: int) -> list[int]:
        """Return the offsets of resolved findings that are not sent yet."""
        waiting = (self._entries[name] for name in self._open_questions if name in self._entries)
        return [
            entry.observed.offset
            for entry in waiting
            if entry.observed is not None
            and entry.observed.is_over
            and entry.observed.partition == partition
            and entry.delivered is None
        ]
