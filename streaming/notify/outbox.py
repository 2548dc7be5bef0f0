"""What is to be told to one receiver, and when: a small machine without I/O or clock.

It knows, for each finding, its newest state and what the receiver was told; the difference is what is to be told. So a receiver that
is away costs no queue: whatever happened meanwhile, it is told how things stand. Four waits lie between a finding and its telling:

* blinks: a finding must have been open for ``wait_s`` of its severity. One that was over sooner is never told; one that lasted longer
  but could not be told in time is told as over.
* planned maintenance: what opens within a window waits for its end.
* grouping and back-off are the business of whoever sends.

What was told is remembered outside (``streaming.notify.delivery_log``), and given back at a start. The trap: the topic keeps resolved
findings for weeks, and "resolved, never told" is either old news or what happened while nobody was there to tell it. The difference is
the position: the offset below which everything has been dealt with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streaming.notify.maintenance import held_until
from streaming.notify.notification import OWN, Delivered, Event, Notification, without_evidence
from streaming.notify.patterns import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streaming.notify.maintenance import Maintenance
    from streaming.notify.notification import ObservedFinding
    from streaming.notify.settings import Patience, Wants


_REMEMBER_S: Final = 3600.0
"""For so long the job may write again what it wrote before it was killed."""


class Policy(NamedTuple):
    """What holds for a receiver."""

    wants: Wants
    patience: Patience
    windows: Sequence[Maintenance] = ()
    tells_resolved: bool = True
    keep_s: float = 0.0
    """An open finding stays told as open for at least so long. With it, what is over before it was told is told as open first."""

    def passes(self, heard: ObservedFinding) -> bool:
        """Whether the receiver wants to hear of it at all."""
        wants = self.wants
        if heard.severity.rank < wants.minimum_severity.rank or matches(heard.finding["rule"], wants.deny_rules):
            return False
        # What concerns no group is the monitor's own sight: nobody may lose that by choosing groups.
        return not heard.group or (matches(heard.group, wants.allow_groups) and not matches(heard.group, wants.deny_groups))

    def held_until(self, heard: ObservedFinding, at_s: float, now_s: float) -> float:
        """When maintenance lets pass what happened at ``at_s``; the capture's clock may be ahead of ours."""
        return held_until(self.windows, heard.group, min(at_s, now_s), now_s)


class DueNotification(NamedTuple):
    """A notice, and since or from when it is due."""

    notice: Notification
    due_s: float


@dataclass(slots=True)
class _Entry:
    heard: ObservedFinding | None = None  #: the newest state; None: only the ledger knows of it
    first_s: float = 0.0  #: when it was first heard of
    told: Delivered | None = None
    refused: str | None = None  #: key of the notice that the receiver did not take


class Outbox:
    """What one receiver is yet to be told.

    :param told: what it was told earlier, by finding id.
    :param positions: by partition of the findings topic, the offset below which everything is dealt with.
    """

    def __init__(self, policy: Policy, told: Mapping[str, Delivered], positions: Mapping[int, int]) -> None:
        self._policy = policy
        self._positions = dict(positions)
        self._heard_to: dict[int, int] = {}  #: next offset by partition
        self._entries = {name: _Entry(told=known) for name, known in told.items()}
        self._open_questions = set(self._entries)  #: ids of which something may have to be told

    def begin(self, ends: Mapping[int, int]) -> None:
        """Before anything is heard: where the partitions of the topic end.

        What was resolved before the first start is no news. A position behind the end is of a topic that was made anew.
        """
        for partition, end in ends.items():
            self._positions[partition] = min(self._positions.get(partition, end), end)

    def hear(self, heard: ObservedFinding) -> None:
        """Take the newest state of a finding."""
        if heard.partition != OWN:
            self._heard_to[heard.partition] = heard.offset + 1
        entry = self._entries.get(heard.id)
        if entry is None:
            if heard.is_over and not self._is_news(heard):
                return
            entry = self._entries[heard.id] = _Entry()
        if entry.told is not None and entry.told.is_over:
            return  # the job may write again what it wrote before it was killed
        if entry.heard is None:
            entry.first_s = heard.heard_s
        elif (heard.updated_s, heard.is_over) < (entry.heard.updated_s, entry.heard.is_over):
            return
        entry.heard = heard
        self._open_questions.add(heard.id)

    def gone(self, name: str) -> None:
        """A finding is in the topic no more."""
        entry = self._entries.get(name)
        if entry is not None:
            entry.heard = None
            self._open_questions.add(name)

    def due(self, now_s: float) -> list[DueNotification]:
        """What is to be told, ripe or not, the worst first; notices whose time has not come have it in ``due_s``.

        To be asked only when all that is in the topic has been heard: what was told, and is not in it, has vanished.
        """
        found: list[DueNotification] = []
        for name in list(self._open_questions):
            entry = self._entries.get(name)
            due = self._judge(entry, now_s) if entry is not None else None
            if due is not None and due.notice.event is Event.RESOLVED and not self._policy.tells_resolved:
                self.tell([due.notice], now_s)  # the ledger goes on without; a restart comes to the same conclusion
            elif due is not None:
                found.append(due)
            else:
                self._open_questions.discard(name)
                self._forget_if_over(name)
        found.sort(key=lambda due: (-due.notice.severity.rank, due.due_s))
        return found

    def open(self) -> list[dict[str, Any]]:
        """The findings that the receiver believes to be open, as they are now, but with the severity that it was told."""
        return [
            told.finding if heard is None or heard.is_over or heard.severity is not told.severity else heard.finding
            for told, heard in ((entry.told, entry.heard) for entry in self._entries.values())
            if told is not None and not told.is_over
        ]

    def tell(self, notices: Iterable[Notification], now_s: float) -> dict[str, Delivered]:
        """The receiver has taken them; gives what is to be remembered of that."""
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
        """The receiver will not take them: they are not offered again until there is other news of the same finding.

        The end of a finding has no other news to come: it counts as told. Gives what is to be remembered of that.
        """
        ends = []
        for notice in notices:
            if notice.event is Event.RESOLVED:
                ends.append(notice)
            else:
                self._entries[str(notice.finding["id"])].refused = notice.key
        return self.tell(ends, now_s)

    def positions(self) -> dict[int, int]:
        """By partition, the offset below which everything is dealt with; it only grows."""
        for partition, end in self._heard_to.items():
            self._positions[partition] = max(self._positions.get(partition, 0), min([end, *self._untold(partition)]))
        return dict(self._positions)

    def settled(self, now_s: float) -> list[str]:
        """Ids of which nothing need be remembered any more: their end was told, a while ago, and is below the position. Forgets them."""
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
            gone = Notification(Event.RESOLVED, told.finding, told.finding, "it was over when the notifier looked again")
            return DueNotification(gone, keep_until_s)
        if heard.is_over:
            return DueNotification(Notification(Event.RESOLVED, heard.finding, told.finding), max(heard.heard_s, keep_until_s))
        if not self._policy.passes(heard):
            reason = "this receiver is told of it no longer, by its severity or the receiver's settings"
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
        """Offsets of findings that are over and are yet to be told."""
        waiting = (self._entries[name] for name in self._open_questions if name in self._entries)
        return [
            entry.heard.offset
            for entry in waiting
            if entry.heard is not None and entry.heard.is_over and entry.heard.partition == partition and entry.told is None
        ]
