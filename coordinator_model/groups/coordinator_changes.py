"""Tracker of the coordinator of a group of any type: which brokers acted as coordinator, which refused to, and when it was lost.

*One failover shows many times*: in refusals, and in FindCoordinator responses of brokers that do or do not know it yet. Signs within ten
seconds of each other count as the same move. *Two brokers that act alternately are no split brain*: each may have been the coordinator
when it responded. Only an alternation that no move explains is one, and a move shows on the connections that outlive it. *A generation is
persisted with the leader's assignment*, not when it is issued: only a persisted one must survive a failover.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import response_evidence
from coordinator_model.groups.group import Group
from coordinator_model.groups.group_coordinator import (
    CoordinatorLoss,
    CoordinatorTerm,
    ErrorStreak,
    FindCoordinatorAnswer,
    Persisted,
    Signs,
    are_one,
    signs_of,
)
from coordinator_model.groups.records import Exchange, Generation, Member
from coordinator_model.groups.requests import ASKED_OF_COORDINATOR
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import (
    COMMITS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_MOVES,
    COORDINATOR_NOT_AVAILABLE,
    FIND_COORDINATOR,
    GROUP_MAX_SIZE_REACHED,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
    UNKNOWN_SERVER_ERROR,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

API_KEYS: Final = ASKED_OF_COORDINATOR
TURNS: Final = 3  #: minimum number of alternations between two brokers
_ACTS: Final = COMMITS | {JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP}  # a success of these changes the group

SAME_MOVE_US: Final = 10_000_000
FLAPS_US: Final = 60_000_000  #: a move that lasts this long, with this many changes, is flapping
FLAPS: Final = 4
HOUR_US: Final = 3_600_000_000
MOVES_KEPT: Final = 3
MINUTE_US: Final = 60_000_000
SAME_STREAK_US: Final = 30_000_000  #: clients that must wait retry within seconds
CONNECTIONS_KEPT: Final = 4
TENURES_KEPT: Final = 3
ROSTER_KEPT: Final = 64


# ---------------------------------------------------------------------------------------------------- events


class Moved(NamedTuple):
    """The coordinator moved, or FindCoordinator names another one."""

    exchange: Exchange
    moves: tuple[int, ...]  #: their times, within the last hour
    flaps: int  #: changes within the latest move, if it lasts too long; else 0


class TookTurns(NamedTuple):
    """Two brokers, or two addresses of one, act as coordinator alternately, and no move explains it."""

    exchange: Exchange
    rival: str
    overlap_us: int
    frames: tuple[Evidence, ...]
    signs: Signs


class KeepsLoading(NamedTuple):
    """A request was answered COORDINATOR_LOAD_IN_PROGRESS."""

    exchange: Exchange
    streak: ErrorStreak


class SyncWhileLoading(NamedTuple):
    """A SyncGroup was answered COORDINATOR_LOAD_IN_PROGRESS."""

    exchange: Exchange
    times: int


class NotAvailable(NamedTuple):
    """A request was answered COORDINATOR_NOT_AVAILABLE."""

    exchange: Exchange
    streak: ErrorStreak


class InternalError(NamedTuple):
    """A request was answered UNKNOWN_SERVER_ERROR."""

    exchange: Exchange


class GenerationFailed(NamedTuple):
    """The first SyncGroup of a generation was answered UNKNOWN_SERVER_ERROR, and those of all other members will be, too."""

    exchange: Exchange
    generation: Generation | None  #: None if its beginning was not captured


class Lost(NamedTuple):
    """After a failover, the group is at a lower generation than one that was persisted."""

    exchange: Exchange
    generation: int
    persisted: Persisted


class GroupFull(NamedTuple):
    """A JoinGroup was answered GROUP_MAX_SIZE_REACHED."""

    exchange: Exchange
    times: int


class PointedWrong(NamedTuple):
    """The broker that FindCoordinator names answered NOT_COORDINATOR."""

    exchange: Exchange
    pointed: FindCoordinatorAnswer


# ---------------------------------------------------------------------------------------------------- tracker


class CoordinatorChanges(CoordinatorLoss):
    """Coordinator facts of one group."""

    incarnation: int = 1
    moved: bool = False  #: a new incarnation has begun, and no response was processed since
    moves: tuple[int, ...] = ()
    changed_us: int = 0  #: the latest sign of a move
    changes: int = 0  #: signs of the latest move
    pointed: FindCoordinatorAnswer | None = None
    acting: str = ""  #: the broker that acted last
    turns: int = 0  #: how often the acting broker changed, since ``tenures`` began
    tenures: dict[str, CoordinatorTerm] = {}
    streaks: dict[str, ErrorStreak] = {}
    full_us: tuple[int, ...] = ()
    persisted: Persisted | None = None
    rejoin_asked_us: int = 0  #: when any Heartbeat was last answered REBALANCE_IN_PROGRESS

    @property
    def watches_answers(self) -> bool:
        """True while any success may show that there is a coordinator again."""
        return (self.lost is not None and not self.lost.accepted) or self.pointed is not None

    def on_request(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG002
        if exchange.api_key == FIND_COORDINATOR:
            self.searched(group, exchange)
        if exchange.api_key in COMMITS and next(group.present_members(), None) is None:
            group.changed = True  # nothing else schedules the timers of a group without members
        return NOTHING

    def on_response(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        errors, moved = exchange.error_codes, self.moved
        for error in errors - {0}:
            group.count_error(exchange.api_key, error)
        events = self.follow(group, exchange, body, errors)
        if REBALANCE_IN_PROGRESS in errors and exchange.api_key == HEARTBEAT:
            self.rejoin_asked_us = max(self.rejoin_asked_us, exchange.res_us)  # answers to several members may be out of order
        if UNKNOWN_SERVER_ERROR in errors:
            events.extend(_internal_error(group, exchange))
        if GROUP_MAX_SIZE_REACHED in errors:
            events.append(self._full(exchange))
        if exchange.api_key in _ACTS and 0 in errors:
            generation = body.generation_id if exchange.api_key == JOIN_GROUP else exchange.generation
            events.extend(self.acted(group, exchange, generation))
            events.extend(self._survived(group, exchange, body, moved=moved))
        return tuple(events)

    def throttled(self, exchange: Exchange, throttle_ms: int) -> None:
        """Note that a broker throttles a client, which sends nothing meanwhile."""
        self.throttled_until_us = max(self.throttled_until_us, exchange.res_us + throttle_ms * 1_000)

    def follow(self, group: Group[Any], exchange: Exchange, body: Any, errors: frozenset[int]) -> list[Event]:
        """Process what any response shows of the coordinator, in a group of any type: that it is there, has moved, or refuses."""
        if exchange.api_key != FIND_COORDINATOR and not errors & COORDINATOR_MOVES:
            self.returned(group, exchange)
            if self.pointed is not None and self.pointed.broker == exchange.broker:
                self.pointed = None
        elif errors & COORDINATOR_MOVES:
            self.denied(exchange)
        if body.throttle_time_ms:
            self.throttled(exchange, body.throttle_time_ms)
        events: list[Event] = []
        moved, self.moved = self.moved, False
        if exchange.api_key == FIND_COORDINATOR:
            moved = self._named(group, exchange, body) or moved
            self.found_again(group, exchange)
        if moved:
            events.append(self._moved(exchange))
        return events + self._refusals(group, exchange, errors)

    def on_gap(self, group: Group[Any]) -> None:
        if group.incarnation != self.incarnation:
            self.incarnation = group.incarnation
            self.moved = True
            return
        self.tenures = {}
        self.turns = 0
        self.streaks = {}
        self.persisted = None
        self.pointed = None

    # ------------------------------------------------------------------------------------------------ moves

    def _named(self, group: Group[Any], exchange: Exchange, body: Any) -> bool:
        """Return True if FindCoordinator names another broker than before."""
        answers = [answer for answer in body.coordinators if answer.key == group.name] or [body]
        answer = answers[0]
        if answer.error_code:
            return False
        before, self.named = self.named, (str(answer.node_id), f"{answer.host}:{answer.port}")
        pointed = self.pointed
        if pointed is not None:
            frames = (*pointed.frames[:3], response_evidence(exchange, 0))
            again = pointed.broker in self.named
            self.pointed = pointed._replace(named_again=True, frames=frames) if again else None
        return bool(before) and before[0] != self.named[0]  # a node may have several addresses

    def _moved(self, exchange: Exchange) -> Moved:
        at_us = exchange.res_us
        if not self.moves or at_us - self.changed_us > SAME_MOVE_US:
            self.moves = (*self.moves[1 - MOVES_KEPT :], at_us)
            self.changes = 0
        self.changed_us = at_us
        self.changes += 1
        flaps = self.changes if self.changes >= FLAPS and at_us - self.moves[-1] >= FLAPS_US else 0
        return Moved(exchange, tuple(since for since in self.moves if at_us - since <= HOUR_US), flaps)

    # ------------------------------------------------------------------------------------------------ refusals

    def _refusals(self, group: Group[Any], exchange: Exchange, errors: frozenset[int]) -> list[Event]:
        events: list[Event] = []
        finding = exchange.api_key == FIND_COORDINATOR
        if COORDINATOR_LOAD_IN_PROGRESS in errors:
            events.append(KeepsLoading(exchange, self._streak("loading", exchange, COORDINATOR_LOAD_IN_PROGRESS)))
            if exchange.api_key == SYNC_GROUP:
                events.append(
                    SyncWhileLoading(exchange, self._streak("sync while loading", exchange, COORDINATOR_LOAD_IN_PROGRESS).times)
                )
        elif not finding:
            self.streaks.pop("loading", None)
        if COORDINATOR_NOT_AVAILABLE in errors:
            name = "not found" if finding else "not available"
            events.append(NotAvailable(exchange, self._streak(name, exchange, COORDINATOR_NOT_AVAILABLE)))
        elif not errors & COORDINATOR_MOVES:
            self.streaks.pop("not found", None)
            if not finding and 0 in errors:
                self.streaks.pop("not available", None)
        if NOT_COORDINATOR in errors and exchange.broker in self.named:
            events.append(self._point(exchange))
        if errors & COORDINATOR_MOVES:
            self._stepped_down(group, exchange.broker)
        return events

    def _full(self, exchange: Exchange) -> GroupFull:
        since_us = exchange.res_us - MINUTE_US
        self.full_us = (*(at_us for at_us in self.full_us[-2:] if at_us >= since_us), exchange.res_us)
        return GroupFull(exchange, len(self.full_us))

    def _streak(self, name: str, exchange: Exchange, error: int) -> ErrorStreak:
        known = self.streaks.get(name)
        if known is None or exchange.res_us - known.last_us > SAME_STREAK_US:
            streak = ErrorStreak(exchange.res_us, exchange.res_us, 1, response_evidence(exchange, error))
        else:
            streak = known._replace(last_us=exchange.res_us, times=known.times + 1)
        self.streaks[name] = streak
        return streak

    def _point(self, exchange: Exchange) -> PointedWrong:
        frame = response_evidence(exchange, NOT_COORDINATOR)
        known = self.pointed
        if known is None or known.broker != exchange.broker:
            known = FindCoordinatorAnswer(exchange.broker, 0, False, (), since_us=exchange.res_us)
        frames = (*known.frames[:3], frame)
        self.pointed = known._replace(times=known.times + 1, frames=frames, last_us=exchange.res_us)
        return PointedWrong(exchange, self.pointed)

    # ------------------------------------------------------------------------------------------------ terms

    def _stepped_down(self, group: Group[Any], broker: str) -> None:
        """End the term of a broker that denies being the coordinator, now or yet: what it does later is another term."""
        if self.tenures.pop(self._acting_as(group, broker), None) is not None:
            self.turns = 0

    def _acting_as(self, group: Group[Any], broker: str) -> str:
        """Return the address under which a broker's term is kept: one of those that it is known to have."""
        return next((known for known in self.tenures if group.facts.nodes.are_one(group.cluster, known, broker)), broker)

    def acted(self, group: Group[Any], exchange: Exchange, generation: int) -> list[Event]:
        """Process a success by which a broker changed the group.

        :param generation: that it accepted; -1 if that shows nothing.
        """
        broker, connection = self._acting_as(group, exchange.broker), crc32(exchange.key[0].encode())
        known = self.tenures.get(broker)
        turn = self.acting not in ("", broker)
        if turn:
            before = self.tenures.get(self.acting)
            skew_us = group.clock_skew_us
            if before is not None and exchange.effective_us - skew_us <= before.last_us:
                return []  # the two exchanges overlap, so their order is unknown
            if known is not None and connection not in known.connections:
                known = None  # it may have lost the group in between
                self.turns = 0
            self.turns += 1
        self.acting = broker
        if known is not None and 0 <= generation < known.generation:
            self.tenures, known, self.turns = {}, None, 0  # the group began again: what others accepted is of another life
        frame = response_evidence(exchange, 0)
        known = known or CoordinatorTerm(exchange.effective_us, 0, (), frame)
        newest = known.generation if generation < 0 else generation
        connections = _with_newest(known.connections, connection)
        tenure = CoordinatorTerm(known.first_us, exchange.res_us, connections, frame, newest)
        self.tenures.pop(broker, None)
        self.tenures[broker] = tenure
        if len(self.tenures) > TENURES_KEPT:
            del self.tenures[next(iter(self.tenures))]
        return self._overlap(group, exchange, broker, tenure)

    def _overlap(self, group: Group[Any], exchange: Exchange, broker: str, tenure: CoordinatorTerm) -> list[Event]:
        if self.turns < TURNS:
            return []
        for rival, other in self.tenures.items():
            overlap_us = min(tenure.last_us, other.last_us) - max(tenure.first_us, other.first_us)
            if rival == broker or overlap_us <= group.settings.write_timeout_ms * 1_000:
                continue
            two = group.facts.nodes.are_two(group.cluster, rival, exchange.broker)
            signs = Signs.TWO_NODES if two else signs_of(other.generation, tenure.generation)
            return [TookTurns(exchange, rival, overlap_us, (other.frame, tenure.frame), signs)]
        return []

    # ------------------------------------------------------------------------------------------------ persisted generations

    def _survived(self, group: GroupData, exchange: Exchange, body: Any, *, moved: bool) -> list[Event]:
        generation = body.generation_id if exchange.api_key == JOIN_GROUP else exchange.generation
        if generation < 0:
            return []
        lost: list[Event] = []
        known = self.persisted
        if known is not None and generation < known.generation and exchange.effective_us > known.res_us:
            if group.incarnation == known.incarnation:
                return []  # a stale member was accepted; the group did not lose its state
            self.persisted = None
            fell = moved and are_one(group, exchange.broker, known.broker)  # only the generation shows it, and G-04 reports it
            if not fell and _same_life(group, exchange, known):
                lost.append(Lost(exchange, generation, known))
        known = self.persisted
        if exchange.api_key == SYNC_GROUP and (
            known is None or (generation, group.incarnation) > (known.generation, known.incarnation)
        ):
            newest = group.newest_generation
            roster = newest.roster if newest is not None and newest.generation == generation else None
            members = tuple(crc32(id_.encode()) for id_ in list(roster or ())[:ROSTER_KEPT])
            frame = response_evidence(exchange, 0)
            self.persisted = Persisted(generation, exchange.res_us, exchange.broker, group.incarnation, members, frame)
        return lost


def _with_newest(connections: tuple[int, ...], connection: int) -> tuple[int, ...]:
    """Return the latest connections that a broker used, the newest last."""
    others = tuple(other for other in connections if other != connection)
    return (*others[1 - CONNECTIONS_KEPT :], connection)


def _same_life(group: GroupData, exchange: Exchange, persisted: Persisted) -> bool:
    """Return True if the group cannot have been empty, and then deleted or expired, since that generation was persisted."""
    if group.deleted_us is not None and group.deleted_us >= persisted.res_us:
        return False
    if crc32(exchange.member_id.encode()) in persisted.roster:
        return True  # a group that started over would not know this member
    return any(
        member.removed is None
        and member.session_timeout_ms is not None
        and member.last_frame_us + member.session_timeout_ms * 1_000 > exchange.res_us
        and crc32(member.id.encode()) in persisted.roster
        for member in group.members.values()
    )


def proven_heartbeats(group: GroupData) -> Iterator[tuple[Member, int]]:
    """Yield present members whose last Heartbeat proved them members, with the capture time of its request."""
    waiting = {exchange.member_id for exchange in group.open.values() if exchange.api_key == HEARTBEAT}
    for member in group.present_members():
        if member.refusals is None and member.id not in waiting and (member.proven_us or 0) >= member.heartbeat_us > 0:
            yield member, member.heartbeat_us


def _internal_error(group: GroupData, exchange: Exchange) -> tuple[Event, ...]:
    if exchange.api_key != SYNC_GROUP:
        return (InternalError(exchange),)
    newest = group.newest_generation
    if newest is None or newest.generation != exchange.generation:
        return (GenerationFailed(exchange, None),)
    if newest.failed_us:
        return NOTHING
    newest.failed_us = exchange.res_us
    return (GenerationFailed(exchange, newest),)
