"""What recurs in a group, as its events show it: members that go up and down in number, that go and come back, joins that are given up.

Each part keeps a bounded number of small records. Rebalances that are over are kept by their recorder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from msgspec import field

from coordinator_model.events import (
    REMOVED,
    GroupEvent,
    LostMember,
    MemberEvent,
    MemberFenced,
    MemberJoined,
    MemberLeft,
    RebalanceFinished,
    SightLost,
)
from coordinator_model.finding import Evidence
from coordinator_model.groups.classic.config_offsets import ConfigOffsets
from coordinator_model.groups.classic.hot_joins import HotJoins
from coordinator_model.groups.classic.subscriptions import Subscriptions
from coordinator_model.groups.evidence import client_named, client_of, client_text, event_evidence, request_evidence
from coordinator_model.groups.records import Exchange, JoinFacts
from coordinator_model.stored import Stored

# ---------------------------------------------------------------------------------------------------- scaling

CYCLES_KEPT: Final = 12
CYCLES_SPAN_US: Final = 3_600_000_000  #: cycles that began longer ago are dropped
NAMES_KEPT: Final = 64
NAMES_OF_CYCLE: Final = 8
NEWCOMERS_KEPT: Final = 64  #: of the newest cycle; of the others fewer names


class Cycle(NamedTuple):
    """One time that clients came and, once it fell, left again."""

    rose_us: int
    low: int  #: members before
    high: int  #: members with all that came
    came: tuple[str, ...]  #: member ids, of the newest cycle only
    names: tuple[str, ...]  #: client id and host
    fell_us: int = 0  #: when the first of them left; 0 while they all are members
    after: int = 0  #: members after that
    lost_us: int = 0  #: for how long members consumed nothing in its rebalances, added up
    unheld_us: int = 0  #: for how long partitions had no holder, added up
    frames: tuple[Evidence, ...] = ()  #: a join, and a leave if its frame is known


class Scaling(Stored):
    """The number of members that goes up and down: unknown clients join, and leave again while the others stay.

    A deployment, too, replaces members one by one, with a spare one at times. There the old ones leave and the new ones stay. Here those
    who came last leave first, as an autoscaler takes away what it has just added.

    *A client that comes back is none that is added.* It is known again by its client id and host, so a member in a restart loop, or one
    that leaves for its poll interval and returns, makes no cycle. Nor do clients that have the client id and host of another member.
    """

    size: int = 0  #: members after the last rebalance; 0 if that is not known
    cycles: tuple[Cycle, ...] = ()  #: in a row, oldest first; the last one may not have fallen yet
    names: tuple[str, ...] = ()  #: clients that went, newest last
    left: tuple[str, ...] = ()  #: member ids that left since the last rebalance
    joined: Evidence | None = None  #: first join since the last rebalance
    left_frame: Evidence | None = None  #: of the first of them
    left_us: int = 0

    def on_left(self, event: MemberLeft, shown_by: Exchange | None) -> None:
        """Note a granted LeaveGroup."""
        if not self.left:
            self.left_frame, self.left_us = event_evidence(event, shown_by, "left"), event.at_us
        self.left = (*self.left, event.member_id or "")[-NEWCOMERS_KEPT:]
        self._know(client_of(event))

    def on_finished(self, event: RebalanceFinished) -> None:
        """Note that a rebalance is over."""
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
        if not before or not self.size or event.never_came_back or event.cause == REMOVED:
            self.begin_anew(self.size)
        elif fresh and unknown and not left and (self.size > before or (self.size == before and self._rises)):
            self._rise(event.at_us if joined is None else joined.at_us, before, fresh, joined)
        elif self.size < before and not fresh:
            self._fall(left, before)
        elif fresh or left:
            self.begin_anew(self.size)  # members were replaced

    def begin_anew(self, size: int) -> None:
        """Drop the cycles: what happened is none, or was not seen."""
        self.size, self.cycles, self.left, self.joined, self.left_frame, self.left_us = size, (), (), None, None, 0

    def _are_unknown(self, fresh: Sequence[LostMember], members: Sequence[LostMember]) -> bool:
        """Return True if no client among new members was there before, or cannot be distinguished from another member."""
        names = [client_of(one) for one in members]
        return all(one.client_id and names.count(client_of(one)) == 1 and client_of(one) not in self.names for one in fresh)

    def _rise(self, at_us: int, before: int, fresh: Sequence[LostMember], frame: Evidence | None) -> None:
        if self._rises:
            *earlier, rising = self.cycles
        else:
            earlier, rising = list(self.cycles), Cycle(at_us, before, before, (), (), frames=() if frame is None else (frame,))
        cycles = [cycle._replace(came=()) for cycle in earlier if at_us - cycle.rose_us <= CYCLES_SPAN_US]
        came = (*rising.came, *(one.member_id or "" for one in fresh))[-NEWCOMERS_KEPT:]
        names = (*rising.names, *(client_of(one) for one in fresh))[-NAMES_OF_CYCLE:]
        self.cycles = (*cycles, rising._replace(high=self.size, came=came, names=names))[-CYCLES_KEPT:]

    def _fall(self, left: Sequence[str], before: int) -> None:
        last = self.cycles[-1] if self.cycles else None
        newcomers = 0 if last is None else sum(id_ in last.came for id_ in left)
        if last is None or len(left) < before - self.size or 2 * newcomers <= len(left):
            self.begin_anew(self.size)
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

    def _know(self, name: str) -> None:
        self.names = (*(known for known in self.names if known != name), name)[-NAMES_KEPT:]

    @property
    def over(self) -> tuple[Cycle, ...]:
        """Return the cycles that rose and fell, oldest first."""
        return tuple(cycle for cycle in self.cycles if cycle.fell_us)

    def came_and_went(self, client_id: str | None, address: str) -> bool:
        """Return True if a client came and left again in one of the cycles."""
        return any(client_named(client_id, address) in cycle.names for cycle in self.over)


# ---------------------------------------------------------------------------------------------------- poll intervals

OVERRUNS_KEPT: Final = 6  #: of a client
CLIENTS_KEPT: Final = 16


class Overrun(NamedTuple):
    """One time that a client left and came back."""

    left_us: int
    held_us: int  #: since the last rebalance was over; 0 if none was seen
    gap_us: int  #: until it asked to join again
    reason: str  #: for which it left, in its own words
    frame: Evidence | None


class Overruns(Stored):
    """Members that leave because they polled too rarely, and come back: by how much they exceeded their poll interval each time.

    The client leaves when its poll interval is over, and asks to join at its next poll. Between both lies what the application took
    longer. It stays the same process: a classic member comes back on the same connection, one with an epoch under the same member id.
    """

    rebalanced_us: int = 0  #: when the last rebalance was over
    left: dict[str, Overrun] = {}  #: process → an overrun that is not over
    of: dict[str, tuple[Overrun, ...]] = {}  #: process → those in a row, oldest first
    clients: dict[str, str] = {}  #: process → client id and address

    def on_left(self, event: MemberLeft, shown_by: Exchange | None) -> None:
        """Note a granted LeaveGroup."""
        process = _process_of(event, shown_by)
        held_us = event.at_us - self.rebalanced_us if self.rebalanced_us else 0
        self.left.pop(process, None)
        self.left[process] = Overrun(event.at_us, held_us, 0, event.reason or "", event_evidence(event, shown_by, "left"))
        _keep(self.left, CLIENTS_KEPT)

    def on_joined(self, event: MemberJoined, shown_by: Exchange | None) -> None:
        """Note a join, which may be that of a client that left."""
        process = _process_of(event, shown_by)
        left = self.left.pop(process, None)
        if left is not None:
            before = self.of.pop(process, ())
            self.of[process] = (*before, left._replace(gap_us=event.at_us - left.left_us))[-OVERRUNS_KEPT:]
            self.clients[process] = f"{event.client_id} at {event.client_address}"
            _keep(self.of, CLIENTS_KEPT)
            self.clients = {known: client for known, client in self.clients.items() if known in self.of}


def _process_of(event: MemberEvent, shown_by: Exchange | None) -> str:
    """Return by what the process of a member is known again: its connection, in a group with epochs its member id."""
    return shown_by.key[0] if event.group_type == "classic" and shown_by is not None else event.member_id or ""


def _keep(known: dict[str, Any], number: int) -> None:
    while len(known) > number:
        del known[next(iter(known))]


# ---------------------------------------------------------------------------------------------------- dropped without an answer

DROPPED_KEPT: Final = 16
DROPPED_SPAN_US: Final = 600_000_000  #: those that came back longer ago are dropped


class Dropped(NamedTuple):
    """A member that was dropped without a word."""

    at_us: int
    phase_us: int  #: how long the join phase had lasted
    member_id: str
    client: str  #: client id and host
    alive: bool = False  #: it has been refused since


class CameBack(NamedTuple):
    """Its client, which asked to join as a new member."""

    dropped: Dropped
    back_us: int
    frame: Evidence | None


class UnaskedDrops(Stored):
    """Members of a classic group that a join phase dropped before any answer showed it to them, and that came back.

    A member learns of a join phase from the answer to its next heartbeat. One that is dropped without such an answer, and
    is alive, sent none during the whole phase. What it sends next is refused, and shows that it is alive.
    """

    dropped: tuple[Dropped, ...] = ()
    back: tuple[CameBack, ...] = ()

    def add(self, dropped: Dropped) -> None:
        """Note a member that no answer asked to rejoin."""
        self.dropped = (*self.dropped, dropped)[-DROPPED_KEPT:]

    def on_fenced(self, event: MemberFenced) -> None:
        """Note a refusal: its member is alive."""
        if self.dropped:
            refused = event.member_id
            self.dropped = tuple(one._replace(alive=one.alive or one.member_id == refused) for one in self.dropped)

    def on_joined(self, event: MemberJoined, shown_by: Exchange | None) -> None:
        """Note the join of a new member, which may be the client of one that was dropped."""
        one = next((one for one in self.dropped if one.alive and one.client == client_of(event)), None)
        if one is not None:
            self.dropped = tuple(other for other in self.dropped if other is not one)
            kept = [known for known in self.back if event.at_us - known.back_us <= DROPPED_SPAN_US]
            self.back = (*kept, CameBack(one, event.at_us, event_evidence(event, shown_by, "asks to join")))[-DROPPED_KEPT:]


# ---------------------------------------------------------------------------------------------------- joins that were given up

GIVEN_UP_KEPT: Final = 16
GIVEN_UP_SPAN_US: Final = 900_000_000  #: those whose connection ended longer ago are dropped


class GivenUp(NamedTuple):
    """A JoinGroup of a classic group that waited when its client hung up."""

    asked_us: int
    closed_us: int
    client: str  #: client id and host
    session_ms: int
    rebalance_ms: int
    frame: Evidence
    again: bool = False  #: the client has asked to join since
    unnamed: str = ""  #: the connection, if it named no member id
    member_id: str = ""
    started: bool = False  #: the client has looked for its coordinator as a process does that starts

    @property
    def waited_us(self) -> int:
        return self.closed_us - self.asked_us


# ---------------------------------------------------------------------------------------------------- all of them


class Recurring(Stored):
    """What recurs in one group."""

    scaling: Scaling = field(default_factory=Scaling)
    overruns: Overruns = field(default_factory=Overruns)
    unasked_drops: UnaskedDrops = field(default_factory=UnaskedDrops)
    given_up: tuple[GivenUp, ...] = ()  #: oldest first
    hot_joins: HotJoins = field(default_factory=HotJoins)
    config_offsets: ConfigOffsets = field(default_factory=ConfigOffsets)
    subscriptions: Subscriptions = field(default_factory=Subscriptions)

    def on_event(self, event: GroupEvent, shown_by: Exchange | None) -> None:
        """Note what happened in the group.

        :param shown_by: the exchange whose frame shows it.
        """
        match event:
            case MemberJoined():
                self._joined(event, shown_by)
            case MemberLeft():
                self.scaling.on_left(event, shown_by)
                self.overruns.on_left(event, shown_by)
            case MemberFenced():
                self.unasked_drops.on_fenced(event)
            case RebalanceFinished():
                self.scaling.on_finished(event)
                self.overruns.rebalanced_us = event.at_us
            case SightLost():
                self.scaling.begin_anew(0)
                self.unasked_drops.dropped = self.unasked_drops.back = ()

    def _joined(self, event: MemberJoined, shown_by: Exchange | None) -> None:
        self.overruns.on_joined(event, shown_by)
        if event.new:
            self.scaling.joined = self.scaling.joined or event_evidence(event, shown_by, "asks to join")
            self.unasked_drops.on_joined(event, shown_by)
        if event.client_id:  # a host alone makes no client known
            self.on_join_asked(client_of(event), event.member_id)

    def on_join_asked(self, client: str, member_id: str | None) -> None:
        """Note that a client asks to join, which may have given up a JoinGroup: one that goes on under its id was not started since."""
        self.given_up = tuple(
            one._replace(again=True) if one.client == client and (not one.started or one.member_id == member_id) else one
            for one in self.given_up
        )

    def on_start(self, exchange: Exchange) -> None:
        """Note a client that looks for its coordinator on a new connection, as a process does that starts: it gave up no JoinGroup."""
        client = client_text(exchange.actor)
        self.given_up = tuple(
            one if one.again or one.client != client else one._replace(started=True)
            for one in self.given_up
            if one.again or one.client != client or one.member_id
        )

    def on_join_closed(self, exchange: Exchange, at_us: int) -> None:
        """Note the end of the connection on which a JoinGroup waited."""
        asked = exchange.facts
        if isinstance(asked, JoinFacts):
            client = client_text(exchange.actor)
            timeouts_ms = asked.session_timeout_ms, asked.rebalance_timeout_ms
            unnamed = "" if exchange.member_id else exchange.key[0]
            frame = request_evidence(exchange)
            one = GivenUp(exchange.inv_us, at_us, client, *timeouts_ms, frame, unnamed=unnamed, member_id=exchange.member_id)
            kept = (known for known in self.given_up if at_us - known.closed_us <= GIVEN_UP_SPAN_US)
            self.given_up = (*kept, one)[-GIVEN_UP_KEPT:]

    @property
    def is_any(self) -> bool:
        """True if anything is known that may recur. False for a group that has settled and stays so."""
        return bool(
            self.scaling.cycles
            or self.overruns.of
            or self.unasked_drops.back
            or self.given_up
            or self.hot_joins.by_connection
            or self.config_offsets.is_any
            or self.subscriptions.rejoins
        )
