"""The history of one group, read from its published events: its rebalances, who went, and who came back.

Sums are computed from the events ``rebalance_finished``, which are never folded; the others only add what happened meanwhile. An event that
is there twice counts once, and the order in which events come does not matter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, TypeVar

from coordinator_model.advice.advice import Saving
from coordinator_model.events import (
    ConnectionClosed,
    GroupEvent,
    MemberEvent,
    MemberFenced,
    MemberLeft,
    NamedMember,
    RebalanceFinished,
    SessionOver,
    TookPart,
)
from coordinator_model.groups.records import host_of

LONGEST_RESTART_S: Final = 1_800.0
"""The broker's default of ``group.max.session.timeout.ms``: no setting holds a member's place for longer."""

LEFT: Final = "left"
SILENT: Final = "silent"

_LEFT_CAUSES: Final = frozenset({"member left", "left"})
_SILENT_CAUSES: Final = frozenset({"session expired", "went silent", "silent"})
_JOINED_CAUSES: Final = frozenset({"new member", "joined", "static member returned"})
_FOLLOW_UP: Final = "rejoined with the same topics"


class Who(NamedTuple):
    """A member, as far as an event names it."""

    member_id: str
    instance_id: str | None
    client_id: str | None
    host: str

    @classmethod
    def of(cls, one: MemberEvent | RebalanceFinished | NamedMember) -> Who:
        return cls(one.member_id or "", one.instance_id, one.client_id, host_of(one.client_address or ""))


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A rebalance that is over."""

    began_us: int
    lost: Saving
    event: RebalanceFinished

    @property
    def ended_us(self) -> int:
        return self.event.at_us

    @property
    def took_s(self) -> float:
        return (self.ended_us - self.began_us) / 1e6

    @property
    def partitions(self) -> int | None:
        """How many the group had; None if that is not known."""
        moved, stayed = self.event.partitions_moved, self.event.partitions_stayed
        return None if moved is None or stayed is None else moved + stayed

    @property
    def members(self) -> tuple[TookPart, ...]:
        return self.event.members

    @property
    def new(self) -> list[TookPart]:
        return [one for one in self.members if one.new]

    def idle_s(self, member: TookPart) -> float:
        """Return for how long a member consumed nothing, in a group with join phases."""
        return max(0, (member.served_us or self.ended_us) - member.stopped_us) / 1e6 if member.stopped_us else 0.0


@dataclass(slots=True)
class Departure:
    """A member that ceased to be one."""

    who: Who
    how: str  #: :data:`LEFT` or :data:`SILENT`
    since_us: int  #: it consumes nothing from then on
    noticed_us: int  #: the group went on without it
    rebalance: int  #: which one followed from it
    reason: str = ""  #: that it gave itself
    back_us: int | None = None  #: its client joined again, as another process or the same
    alive_us: int | None = None  #: the same process went on: it had only paused

    @property
    def away_s(self) -> float | None:
        """For how long the client was away; None if it did not come back."""
        return None if self.back_us is None else (self.back_us - self.since_us) / 1e6

    @property
    def paused_s(self) -> float | None:
        """For how long the process stood still; None if it did not go on, as far as events show."""
        return None if self.alive_us is None else (self.alive_us - self.since_us) / 1e6


@dataclass(frozen=True)
class History:
    """What is known of a group over a time."""

    cluster: str
    group: str
    group_type: str
    rebalances: tuple[Rebalance, ...]  #: in order
    departures: tuple[Departure, ...]  #: in order of :attr:`Departure.since_us`
    changes: tuple[
        tuple[int | None, ...], ...
    ]  #: for each rebalance: departures that it follows from, or whose client came back in it;
    #: None for a member that came and had not been there

    @cached_property
    def newest(self) -> list[TookPart]:
        """The members of the last rebalance that had any."""
        return next((list(one.members) for one in reversed(self.rebalances) if one.members), [])

    @cached_property
    def session_ms(self) -> int | None:
        """What most members ask for, None if that is not known, as in groups with epochs."""
        return _most(one.session_timeout_ms for one in self.newest)

    @cached_property
    def rebalance_ms(self) -> int | None:
        return _most(one.rebalance_timeout_ms for one in self.newest)

    @cached_property
    def software(self) -> str:
        return _most(one.client_software for one in self.newest) or ""

    @cached_property
    def partitions_each(self) -> float:
        """How many partitions a member has on average, 0 if that is not known."""
        known = [(one.partitions, len(one.members)) for one in self.rebalances if one.partitions and one.members]
        return sum(count / members for count, members in known) / len(known) if known else 0.0

    def lost(self, rebalances: Iterable[int]) -> Saving:
        """Return what some of the rebalances cost."""
        return total(self.rebalances[index].lost for index in rebalances)

    def without(self, departures: set[int]) -> list[int]:
        """Return the rebalances that would not have been had these members not ceased to be members, in order.

        That is so of each rebalance all of whose members that came or went are among them, and of the second half of a cooperative one.
        """
        found: list[int] = []
        for index, rebalance in enumerate(self.rebalances):
            changes = self.changes[index]
            explained = (
                rebalance.event.cause in _LEFT_CAUSES | _SILENT_CAUSES | _JOINED_CAUSES
                and changes
                and departures.issuperset(changes)
            )
            if explained or (rebalance.event.cause == _FOLLOW_UP and not changes and found[-1:] == [index - 1]):
                found.append(index)
        return found

    def kept(self, departures: set[int], rebalances: Sequence[int]) -> list[Departure]:
        """Return the departures from which these rebalances follow, as they began or as their clients came back."""
        followed = departures.intersection(number for index in rebalances for number in self.changes[index])
        return [self.departures[number] for number in sorted(followed)]


def total(savings: Iterable[Saving]) -> Saving:
    added = Saving()
    for one in savings:
        added = added.plus(one)
    return added


def histories(events: Iterable[GroupEvent]) -> list[History]:
    """Return the history of each group that has a rebalance that is over, in order of cluster and name."""
    groups: dict[tuple[str, str], dict[str, GroupEvent]] = {}
    for event in events:
        groups.setdefault((event.cluster, event.group), {})[event.id] = event
    found = []
    for (cluster, group), known in sorted(groups.items()):
        ordered = sorted(known.values(), key=lambda one: (one.at_us, one.id))
        rebalances = [
            _rebalance(one, one.cost_us) for one in ordered if isinstance(one, RebalanceFinished) and one.cost_us is not None
        ]
        rebalances.sort(key=lambda one: (one.began_us, one.ended_us, one.event.id))
        if rebalances:
            departures, changes = _comings_and_goings(rebalances, ordered)
            found.append(History(cluster, group, rebalances[-1].event.group_type, tuple(rebalances), departures, changes))
    return found


def _rebalance(event: RebalanceFinished, cost_us: int) -> Rebalance:
    """Return a rebalance whose cost is known, which it is not of a broker's log."""
    unheld_us = sum(one.us for one in event.unheld or ())
    return Rebalance(event.began_us or event.at_us, Saving(max(0, cost_us) / 1e6, max(0, unheld_us) / 1e6), event)


# --- who went, and who came back ---------------------------------------------------------------------------------------------


def _comings_and_goings(
    rebalances: Sequence[Rebalance], events: Sequence[GroupEvent]
) -> tuple[tuple[Departure, ...], tuple[tuple[int | None, ...], ...]]:
    departures = sorted(_departures(rebalances, events), key=lambda one: (one.since_us, one.who.member_id))
    changes: list[list[int | None]] = [[] for _ in rebalances]
    for number, departure in enumerate(departures):
        changes[departure.rebalance].append(number)
    away: dict[tuple[str, ...], list[int]] = {}
    for number, departure in enumerate(departures):
        for name in _names(departure.who):
            away.setdefault(name, []).append(number)
    for joined_us, index, who in _arrivals(rebalances):
        back = _came_back(departures, away, who, joined_us)
        if back is not None:
            departures[back].back_us = joined_us
        changes[index].append(back)
    _note_survivors(departures, events)
    return tuple(departures), tuple(tuple(each) for each in changes)


def _departures(rebalances: Sequence[Rebalance], events: Sequence[GroupEvent]) -> list[Departure]:
    """Each member id ceases to be a member once; rebalances name most of them, and other events those that went meanwhile."""
    found: dict[str, Departure] = {}
    reasons = {event.member_id: event.reason or "" for event in events if isinstance(event, MemberLeft)}
    ends = [one.ended_us for one in rebalances]

    def add(who: Who, how: str, since_us: int, noticed_us: int, rebalance: int) -> None:
        if who.member_id and rebalance < len(rebalances):
            found.setdefault(who.member_id, Departure(who, how, since_us, noticed_us, rebalance, reasons.get(who.member_id, "")))

    for index, rebalance in enumerate(rebalances):
        for one in rebalance.event.never_came_back:
            since_us = one.stopped_us or rebalance.began_us
            add(Who.of(one), SILENT, min(since_us, rebalance.ended_us), rebalance.ended_us, index)
    for event in events:
        following = bisect_right(ends, event.at_us)
        if isinstance(event, MemberLeft):
            add(Who.of(event), LEFT, event.at_us, event.at_us, following)
        elif isinstance(event, SessionOver):
            add(Who.of(event), SILENT, event.silent_since_us or event.at_us, event.at_us, following)
    for index, rebalance in enumerate(rebalances):
        if rebalance.event.cause in _LEFT_CAUSES | _SILENT_CAUSES:
            how = LEFT if rebalance.event.cause in _LEFT_CAUSES else SILENT
            add(Who.of(rebalance.event), how, rebalance.began_us, rebalance.began_us, index)
    return list(found.values())


def _arrivals(rebalances: Sequence[Rebalance]) -> list[tuple[int, int, Who]]:
    """Time of its JoinGroup or first heartbeat, rebalance and name of each new member, in order of time."""
    found: dict[str, tuple[int, int, Who]] = {}
    for index, rebalance in enumerate(rebalances):
        for one in rebalance.new:
            who = Who.of(one)
            found.setdefault(who.member_id, (one.joined_us or rebalance.began_us, index, who))
    return sorted(found.values())


def _names(who: Who) -> list[tuple[str, ...]]:
    """By what a process is known again after a restart: its client id and host, or the first alone where its host changes."""
    return [(who.client_id, who.host), (who.client_id,)] if who.client_id else []


def _came_back(departures: Sequence[Departure], away: dict[tuple[str, ...], list[int]], who: Who, joined_us: int) -> int | None:
    """Return whose place a new member takes: the one of its name that has been away for longest."""
    for name in _names(who):
        waiting = away.get(name, [])
        for number in list(waiting):
            departure = departures[number]
            if departure.since_us > joined_us:
                break
            if departure.back_us is not None or joined_us - departure.since_us > LONGEST_RESTART_S * 1e6:
                waiting.remove(number)
            elif departure.who.member_id != who.member_id:
                return number
    return None


def _note_survivors(departures: Sequence[Departure], events: Sequence[GroupEvent]) -> None:
    """Note which processes had only paused: they go on under their member id, or join again while their connection stayed open."""
    by_id = {one.who.member_id: one for one in departures if one.how == SILENT}
    closed: set[str] = set()
    for event in events:
        departure = by_id.get(event.member_id or "") if isinstance(event, MemberEvent) else None
        if departure is None:
            continue
        if isinstance(event, ConnectionClosed) and (departure.back_us is None or event.at_us <= departure.back_us):
            closed.add(departure.who.member_id)
        elif isinstance(event, MemberFenced) and departure.alive_us is None:
            departure.alive_us = max(departure.since_us, event.at_us)
    for departure in by_id.values():
        if departure.alive_us is None and departure.who.member_id not in closed:
            departure.alive_us = departure.back_us


_Value = TypeVar("_Value", int, str)


def _most(values: Iterable[_Value | None]) -> _Value | None:
    """Return the commonest of some values that are known, the smallest of several."""
    counted = Counter(value for value in values if value)
    return min(counted, key=lambda one: (-counted[one], one), default=None)
