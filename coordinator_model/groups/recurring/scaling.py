"""The number of members of a group that goes up and down: clients that nobody knew join, and leave again while the others stay.

A deployment, too, replaces members one by one, with a spare one at times. There the old ones leave and the new ones stay. Here those who
came last leave first, as an autoscaler takes away what it has just added.

*A client that comes back is none that is added.* It is known again by its client id and host, so a member in a restart loop, or one that
leaves for its poll interval and returns, makes no cycle. Nor do clients that have the client id and host of another member.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from coordinator_model.events import GroupEvent, LostMember, MemberJoined, MemberLeft, RebalanceFinished, SightLost
from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import client_named
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.recurring.frames import client_of, frame_of
from coordinator_model.stored import Stored

CYCLES_KEPT: Final = 12
SPAN_US: Final = 3_600_000_000  #: cycles that began longer ago are dropped
NAMES_KEPT: Final = 64
NAMES_OF_CYCLE: Final = 8
_BY_OTHERS: Final = "member removed by somebody else"  #: cause of a rebalance, as events have it
NEWCOMERS_KEPT: Final = 64  #: of the newest cycle; of the others fewer names


class Cycle(NamedTuple):
    """One time that clients came and, once it fell, left again."""

    rose_us: int
    low: int  #: members before
    high: int  #: members with all that came
    came: tuple[str | None, ...]  #: member ids, of the newest cycle only
    names: tuple[str, ...]  #: client id and host
    fell_us: int = 0  #: when the first of them left; 0 while they all are members
    after: int = 0  #: members after that
    lost_us: int = 0  #: for how long members consumed nothing in its rebalances, added up
    unheld_us: int = 0  #: for how long nobody held partitions, added up
    frames: tuple[Evidence, ...] = ()  #: a join, and a leave if its frame is known


class Scaling(Stored):
    """Cycles of one group, as the records of its rebalances show them."""

    size: int = 0  #: members after the last rebalance; 0 if that is not known
    cycles: tuple[Cycle, ...] = ()  #: in a row, oldest first; the last one may not have fallen yet
    names: tuple[str, ...] = ()  #: clients that went, newest last
    left: tuple[str | None, ...] = ()  #: member ids that left since the last rebalance
    joined: Evidence | None = None  #: first join since the last rebalance
    left_frame: Evidence | None = None  #: of the first of them
    left_us: int = 0

    # ------------------------------------------------------------------------------------------------ events

    def on_event(self, event: GroupEvent, shown_by: Exchange | None) -> None:
        """Note what happened in the group."""
        if isinstance(event, RebalanceFinished):
            self._finished(event)
        elif isinstance(event, MemberJoined) and event.new:
            self.joined = self.joined or frame_of(event, shown_by, "asks to join")
        elif isinstance(event, MemberLeft):
            if not self.left:
                self.left_frame, self.left_us = frame_of(event, shown_by, "left"), event.at_us
            self.left = (*self.left, event.member_id or "")[-NEWCOMERS_KEPT:]
            self._know(client_of(event))
        elif isinstance(event, SightLost):
            self._begin_anew(0)

    def _finished(self, event: RebalanceFinished) -> None:
        members = event.members
        if event.to_generation is None and members:
            return  # another join phase follows
        before, self.size = self.size, len(members)
        left, self.left = self.left, ()
        joined, self.joined = self.joined, None
        fresh = [one for one in members if one.new]
        unknown = self._are_unknown(fresh, members)
        for one in event.never_came_back:
            self._know(client_of(one))
        self._count_cost(event)
        if not before or not self.size or event.never_came_back or event.cause == _BY_OTHERS:
            self._begin_anew(self.size)
        elif fresh and unknown and not left and (self.size > before or (self.size == before and self._rises)):
            self._rise(event.at_us if joined is None else joined.at_us, before, fresh, joined)
        elif self.size < before and not fresh:
            self._fall(left, before)
        elif fresh or left:
            self._begin_anew(self.size)  # members were replaced

    def _are_unknown(self, fresh: Sequence[LostMember], members: Sequence[LostMember]) -> bool:
        """Return True if no client among new members was there before, or cannot be told from another member."""
        names = [client_of(one) for one in members]
        return all(one.client_id and names.count(client_of(one)) == 1 and client_of(one) not in self.names for one in fresh)

    def _rise(self, at_us: int, before: int, fresh: Sequence[LostMember], frame: Evidence | None) -> None:
        if self._rises:
            *earlier, rising = self.cycles
        else:
            earlier, rising = list(self.cycles), Cycle(at_us, before, before, (), (), frames=() if frame is None else (frame,))
        cycles = [cycle._replace(came=()) for cycle in earlier if at_us - cycle.rose_us <= SPAN_US]
        came = (*rising.came, *(one.member_id or "" for one in fresh))[-NEWCOMERS_KEPT:]
        names = (*rising.names, *(client_of(one) for one in fresh))[-NAMES_OF_CYCLE:]
        self.cycles = (*cycles, rising._replace(high=self.size, came=came, names=names))[-CYCLES_KEPT:]

    def _fall(self, left: Sequence[str | None], before: int) -> None:
        last = self.cycles[-1] if self.cycles else None
        newcomers = 0 if last is None else sum(id_ in last.came for id_ in left)
        if last is None or len(left) < before - self.size or 2 * newcomers <= len(left):
            self._begin_anew(self.size)
            return
        if not last.fell_us:
            frames = last.frames if self.left_frame is None else (*last.frames, self.left_frame)
            last = last._replace(fell_us=self.left_us, frames=frames)
        self.cycles = (*self.cycles[:-1], last._replace(after=self.size))

    @property
    def _rises(self) -> bool:
        """True while clients come, and those of this cycle did not begin to leave."""
        return bool(self.cycles) and not self.cycles[-1].fell_us

    def _count_cost(self, event: RebalanceFinished) -> None:
        """Count a rebalance to the cycle before it: that in which the first clients came is not counted, which may be the group's start."""
        if self.cycles:
            last = self.cycles[-1]
            unheld_us = sum(one.us for one in event.unheld or ())
            last = last._replace(lost_us=last.lost_us + (event.cost_us or 0), unheld_us=last.unheld_us + unheld_us)
            self.cycles = (*self.cycles[:-1], last)

    def _begin_anew(self, size: int) -> None:
        self.size, self.cycles, self.left, self.joined, self.left_frame = size, (), (), None, None
        self.left_us = 0

    def _know(self, name: str) -> None:
        self.names = (*(known for known in self.names if known != name), name)[-NAMES_KEPT:]

    # ------------------------------------------------------------------------------------------------ queries

    @property
    def over(self) -> tuple[Cycle, ...]:
        """Return the cycles that rose and fell, oldest first."""
        return tuple(cycle for cycle in self.cycles if cycle.fell_us)

    def came_and_went(self, client_id: str | None, address: str) -> bool:
        """Return True if a client came and left again in one of the cycles."""
        return any(client_named(client_id, address) in cycle.names for cycle in self.over)
