"""What groups of all types have in common, and how frames and the time reach a group of any type.

Requests and their responses, connections, a coordinator, members that come and go: :class:`Group`. Each type of group has a package of its
own beside this module, and a class in it that is a :class:`GroupModel`. The rest of the model keeps and feeds them, and asks for no type.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

from msgspec import field

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.counters import Counters
from coordinator_model.event_log import EventLog
from coordinator_model.group_view import GroupView
from coordinator_model.groups.arrivals import Arrivals
from coordinator_model.groups.committed_offsets import CommittedOffsets
from coordinator_model.groups.effects import PendingEffect, PendingEffects
from coordinator_model.groups.group_coordinator import CoordinatorAddresses, is_coordinator, steps_down
from coordinator_model.groups.records import (
    AnyMember,
    ConnectionState,
    Coverage,
    Disconnections,
    Exchange,
    ExchangeKey,
    LateFrame,
    LeaveFacts,
)
from coordinator_model.groups.recurring import Recurring
from coordinator_model.groups.requests import REQUEST_READERS, client_of, exchange_of
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.groups.usual import Usual
from coordinator_model.settings import Settings
from coordinator_model.stored import Stored
from coordinator_model.tap_watch import tap_of
from coordinator_model.wire import error_name
from coordinator_model.wire.constants import (
    COORDINATOR_NOT_AVAILABLE,
    EPOCH_HEARTBEATS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    NOT_COORDINATOR,
    SYNC_GROUP,
)
from coordinator_model.wire.record import MirrorRecord

M = TypeVar("M", bound=AnyMember)

REMOVED_MEMBERS_KEPT: Final = 32
MID_LIFE: Final = "first seen in mid-life"


class _Attached(Generic[M]):
    """What a group has beside the slow part of its state: what it shares with others, and what every heartbeat changes."""

    __slots__ = ()

    name: str
    cluster: str
    kind: str
    settings: Settings
    loading: Mapping[tuple[str, str], int]  #: (cluster, broker) → time of its last COORDINATOR_LOAD_IN_PROGRESS in this partition
    counters: Counters  #: of the partition
    coverage: Coverage  #: of the partition
    disconnections: dict[tuple[str, str], tuple[Disconnections, ...]]  #: by (cluster, broker), oldest first, of the partition
    group_events: EventLog  #: of all groups of the partition, until they are drained
    facts: ClusterFacts  #: what is known of the cluster beside its groups
    members: dict[str, M]
    open: dict[ExchangeKey, Exchange]
    connections: dict[str, ConnectionState]
    last_record_us: int
    changed: bool  #: something that the group view shows
    idle: bool  #: nothing falls due in it before its next frame
    counted: bool  #: a counter that the group view shows, and no timer rule uses
    slow_changed: bool  #: something other than what every heartbeat changes

    rebalances: Any  #: the recorder of its type
    coordinator_changes: Any  #: its :class:`~coordinator_model.groups.coordinator_changes.CoordinatorChanges`
    joins: tuple[int, int] = (0, 0)  #: number of join phases seen to end, and their total microseconds
    syncs: tuple[int, int] = (0, 0)
    join_took_us: int | None = None
    sync_took_us: int | None = None


class Group(_Attached[M], Stored, Generic[M], dict=True, eq=False):
    """A group of any type. Its fields are the slow part of its state, which changes only when something happens."""

    broker: str = ""
    addresses: CoordinatorAddresses = field(default_factory=CoordinatorAddresses)  #: others of the coordinator
    incarnation: int = 1
    settled: bool = False  #: True once a request was accepted in this incarnation
    learning_because: str = MID_LIFE
    state_since_us: int = 0
    arrivals: Arrivals = field(default_factory=Arrivals)
    committed_offsets: CommittedOffsets = field(default_factory=CommittedOffsets)
    recurring: Recurring = field(default_factory=Recurring)
    causes: dict[str, int] = {}  #: completed rebalances by cause
    errors: dict[int, dict[int, int]] = {}  #: API key → error code → number of responses
    conversions: tuple[int, ...] = ()  #: times of the last conversions between protocols
    late_frames: tuple[LateFrame, ...] = ()
    effects: PendingEffects = field(default_factory=PendingEffects)
    usual: Usual = field(default_factory=Usual)
    wrong_type: dict[str, int] = {}  #: member id → number of its heartbeats that were refused for the type of the group
    shown_since_us: int = 0  #: since when a tap shows its clients again

    def attach(
        self,
        name: str,
        cluster: str,
        *,
        settings: Settings,
        loading: Mapping[tuple[str, str], int],
        counters: Counters,
        coverage: Coverage,
        disconnections: dict[tuple[str, str], tuple[Disconnections, ...]],
        group_events: EventLog,
        facts: ClusterFacts | None = None,
    ) -> Self:
        """Give the group its name and what all groups of a partition share; return it, without members, connections and requests."""
        self.name, self.cluster = name, cluster
        self.settings, self.loading, self.counters, self.coverage = settings, loading, counters, coverage
        self.disconnections, self.group_events, self.facts = disconnections, group_events, facts or ClusterFacts()
        self.members, self.open, self.connections, self.last_record_us = {}, {}, {}, 0
        self.changed, self.counted, self.slow_changed, self.idle = True, False, True, True
        return self

    @property
    def covered_since_us(self) -> int:
        """Since when its clients are seen without interruption: what came before says nothing of the time before that."""
        return max(self.coverage.since_us, self.shown_since_us)

    @property
    def clock_skew_us(self) -> int:
        """How far apart frames of two connections may be captured without that proving their order, in microseconds."""
        return self.settings.clock_skew_us + self.facts.step_us

    @property
    def late_us(self) -> int:
        """By how much a frame may come later than a newer one of another connection, in microseconds."""
        return self.settings.late_us + self.facts.step_us

    @property
    def shows_ends(self) -> bool:
        """True unless ends of connections with the coordinator are not captured: then nothing shows when a client hung up."""
        return self.coordinator_changes.last_answer_us(self) is None

    # ------------------------------------------------------------------------------------------------ requests and connections

    def line(self, connection: str) -> ConnectionState:
        """Return the state of a connection; create it if needed."""
        line = self.connections.get(connection)
        if line is None:
            line = self.connections[connection] = ConnectionState()
        return line

    def abandon(self, record: MirrorRecord) -> Exchange | None:
        """Drop the exchange of a frame that cannot be read, since its outcome stays unknown; return the request, if it was seen."""
        exchange = self.open.pop((record.connection, record.exchange), None)
        if exchange is not None:
            line = self.connections[record.connection]
            line.outstanding -= 1
            line.last_response_us = record.at_us
            self.lost(exchange, record.at_us)
        return exchange

    def count_error(self, api_key: int, error: int) -> None:
        """Count a response that holds an error."""
        known = self.errors.setdefault(api_key, {})
        known[error] = known.get(error, 0) + 1
        self.counters.errors[self.cluster, api_key, error] += 1
        self.counted = True

    def possible(self, exchange: Exchange, since_us: int) -> Iterator[PendingEffect]:
        """Yield what other requests may have done since a time, as far as an answer to this one can depend on it."""
        return self.effects.possible(exchange, self.open.values(), since_us, self.clock_skew_us)

    def lost(self, exchange: Exchange, at_us: int) -> None:
        """Note that no answer to a request will be captured. It did not act any more once another broker was the coordinator."""
        if self.settled and not is_coordinator(self, exchange.broker):
            self.effects.note(exchange, self.effects.moved_us)
        else:
            self.effects.note_lost(exchange, at_us)
        self.outcome_unknown(exchange)

    def outcome_unknown(self, exchange: Exchange) -> None:
        """Note that frames do not show whether a request has taken effect; what may have changed with it is not known any more."""

    # ------------------------------------------------------------------------------------------------ coordinator

    def accepted(self, exchange: Exchange) -> None:
        """Note that this broker acted as the group's coordinator; a new broker begins a new incarnation."""
        self.facts.nodes.coordinator_accepted(self.cluster, exchange)
        if not is_coordinator(self, exchange.broker) and not self.addresses.still_acts(self, exchange):
            addresses = CoordinatorAddresses.replaced(self, exchange)
            if self.broker and self.settled:
                self.new_incarnation(exchange.res_us, f"the coordinator moved from {self.broker} to {exchange.broker}")
            self.broker, self.addresses, self.effects.moved_us = exchange.broker, addresses, exchange.res_us
            self.changed = True
        self.settled = True

    def coordinator_moves(self, exchange: Exchange) -> tuple[Event, ...]:
        """Process error 14, 15 or 16: the group is moving, unless the client asked the wrong broker.

        One answered with 15, perhaps by a coordinator that has accepted nobody yet, or with 16 as the group is unloaded, may have acted:
        also where the next coordinator was seen to act before that answer.
        """
        may_be_left = exchange.inv_us < self.effects.moved_us + self.clock_skew_us or is_coordinator(self, exchange.broker)
        unloads = exchange.error == NOT_COORDINATOR and may_be_left
        if unloads or exchange.error == COORDINATOR_NOT_AVAILABLE:
            self.effects.note(exchange, exchange.res_us)
            self.outcome_unknown(exchange)
        if steps_down(self, exchange.broker):
            self.new_incarnation(exchange.res_us, f"{exchange.broker} answered {error_name(exchange.error)}")
        return NOTHING

    def new_incarnation(self, at_us: int, because: str) -> None:  # noqa: ARG002 - types of groups define what else it means
        """Begin a new incarnation: the coordinator moved, or loaded the group again."""
        self.incarnation += 1
        self.settled = False

    @property
    def broker_release(self) -> tuple[int, int]:
        """The oldest release that the coordinator can be."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------ members

    @property
    def generation(self) -> int | None:
        """The newest generation or epoch."""
        raise NotImplementedError

    @property
    def learning(self) -> bool:
        """True while the membership is not known."""
        raise NotImplementedError

    def last_sent_us(self, member: M) -> int:
        """Return the capture time of the last frame that a member sent, 0 before."""
        return member.last_frame_us

    def correct_cause(self, before: str, after: str) -> None:
        """Count a completed rebalance under the cause that its assignments have shown."""
        self.causes[before] = self.causes.get(before, 1) - 1
        self.causes = {cause: count for cause, count in self.causes.items() if count}
        self.causes[after] = self.causes.get(after, 0) + 1

    def present_members(self) -> Iterator[M]:
        return (member for member in self.members.values() if member.removed is None and member.proven_us is not None)

    def forget_some(self) -> bool:
        """Forget those whose removal is longest ago, if many were removed; return True if any was forgotten."""
        gone = [member for member in self.members.values() if not member.keeps_place]
        gone.sort(key=lambda member: max(member.last_frame_us, member.removed_us))
        forgotten = gone[: max(0, len(gone) - REMOVED_MEMBERS_KEPT)]
        for member in forgotten:
            del self.members[member.id]
        return bool(forgotten)


# ---------------------------------------------------------------------------------------------------- late frames

# Records of one connection come in their order, those of two may not, and an answer is judged when it comes. A finding is therefore held
# for as long as frames may be late. If by then a frame has come that concerns the same member or instance id, and was captured before the
# finding arose, the coordinator may have seen first what the model saw last, and the finding is dropped.

_KEPT: Final = 64
_OF_MEMBERSHIP: Final = EPOCH_HEARTBEATS | {JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP}


class Held(Protocol):
    """A finding that is not published yet."""

    @property
    def opened_us(self) -> int: ...
    @property
    def subject(self) -> str: ...
    @property
    def member_id(self) -> str | None: ...
    @property
    def instance_id(self) -> str | None: ...


def note_late(group: Group[Any], exchange: Exchange, at_us: int, body: Any = None) -> None:
    """Note a request, or a response with its ``body``, if it came after frames that may be newer, and concerns membership.

    Where clocks differ, that may be so of a frame that is the newest by its own clock.
    """
    newest_us = group.last_record_us if at_us < group.last_record_us else at_us - 1
    if at_us - group.clock_skew_us >= newest_us or exchange.api_key not in _OF_MEMBERSHIP:
        return
    names = {exchange.member_id, exchange.instance_id, getattr(body, "member_id", None)}
    if isinstance(exchange.facts, LeaveFacts):
        names.update(*exchange.facts.members)
        names.update(member.id for member in group.members.values() if member.instance_id in names - {None})
    since_us = newest_us - group.late_us
    kept = (known for known in group.late_frames if known[2] >= since_us)
    group.late_frames = (*kept, *((name, at_us, newest_us) for name in sorted(filter(None, names))))[-_KEPT:]


def may_explain(group: Group[Any], held: Held) -> bool:
    """Return True if a late frame concerns the finding, and was captured before it arose, as far as clocks show."""
    concerned = {*held.subject.split(" and "), held.member_id, held.instance_id}  # one about two members names both
    skew_us = group.clock_skew_us
    return any(
        name in concerned and at_us <= held.opened_us + skew_us and held.opened_us <= newest_us
        for name, at_us, newest_us in group.late_frames
    )


# ---------------------------------------------------------------------------------------------------- a group of one type

_SOON_US: Final = 1_000_000
_LATER_US: Final = 5_000_000
STEADY_US: Final = 15_000_000  #: a group in which nothing else falls due is looked at as often, for requests that stay unanswered


class GroupModel(Group[M]):
    """One group of one type."""

    readers: ClassVar[Mapping[int, Callable[[Exchange, Any], None]]] = (
        REQUEST_READERS  #: API key → how to read a request into its exchange
    )
    waits_in_turn: ClassVar = True  #: a request behind others is processed when these are answered

    def request(self, record: MirrorRecord, body: Any) -> tuple[Event, ...]:
        """Process a request; return its events. ``body`` is the decoded message."""
        line = self.line(record.connection)
        client = (record.client_id, record.client_address, record.client_software, record.connection, record.principal)
        if line.actor != client:
            line.actor = client_of(record)
        exchange = exchange_of(record, line.actor)
        if record.queued_behind > line.outstanding and self.waits_in_turn:
            exchange.effective_us = -1  # behind requests of other groups, it is unknown until the response comes
        self.readers[exchange.api_key](exchange, body)
        line.outstanding += 1
        self.open[exchange.key] = exchange
        member = self.members.get(exchange.member_id)
        if member is not None and self.is_unchanged_request(exchange, member):
            return self.on_unchanged_request(exchange, member)
        self.slow_changed = True
        note_late(self, exchange, record.at_us)
        self.arrivals.on_request(self, exchange, body)
        return self.on_request(exchange, member, body)

    def response(self, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Event, ...]:
        """Process a response; return its events. Without its request a response proves nothing.

        :param correlation_id: as the frame itself has it.
        """
        exchange = self.open.pop((record.connection, record.exchange), None)
        if exchange is None:
            return self.on_unpaired(record, body, correlation_id)
        line = self.connections[record.connection]  # made with the request, and removed only together with it
        line.outstanding -= 1
        exchange.res_us, exchange.response_offset = record.at_us, record.offset
        member = self.members.get(exchange.member_id)
        is_own = correlation_id == exchange.correlation_id
        if is_own and member is not None and self.is_unchanged_response(exchange, member, body):
            line.last_response_us = record.at_us
            self.on_unchanged_response(exchange, member)
            return NOTHING
        self.slow_changed = True
        if not is_own:
            return self.on_mismatch(exchange, correlation_id)
        # Not the capture time of the response before it: the coordinator began with this request while that response was in transit.
        exchange.effective_us = exchange.inv_us
        line.last_response_us = record.at_us
        note_late(self, exchange, record.at_us, body)
        events = self.on_response(exchange, body)
        self.arrivals.on_response(self, exchange, body)
        return events

    def on_unpaired(self, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Event, ...]:  # noqa: ARG002
        """Process a response whose request is not open."""
        self.counters.unpaired[record.api_key, record.api_version] += 1
        return NOTHING

    def on_mismatch(self, exchange: Exchange, correlation_id: int) -> tuple[Event, ...]:  # noqa: ARG002
        """Process a response with the correlation id of another request: its content proves nothing about this one."""
        self.on_gap(exchange.res_us, "an answer does not belong to its request")
        return NOTHING

    # The fast path: what contains and shows nothing new. All else marks the slow part of the group.

    def is_unchanged_request(self, exchange: Exchange, member: M) -> bool:
        """Return True if a request contains nothing new: only the times of its member change then."""
        raise NotImplementedError

    def on_unchanged_request(self, exchange: Exchange, member: M) -> tuple[Event, ...]:
        """Process a request that contains nothing new."""
        raise NotImplementedError

    def is_unchanged_response(self, exchange: Exchange, member: M, body: Any) -> bool:
        """Return True if a response shows nothing new, and nothing was open that it could settle."""
        raise NotImplementedError

    def on_unchanged_response(self, exchange: Exchange, member: M) -> None:
        """Process a response that shows nothing new."""
        raise NotImplementedError

    def on_request(self, exchange: Exchange, member: M | None, body: Any) -> tuple[Event, ...]:
        """Process any other request; return its events."""
        raise NotImplementedError

    def on_response(self, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        """Process any other response; return its events."""
        raise NotImplementedError

    def holds_partitions(self, exchange: Exchange, body: Any) -> bool | None:
        """Return whether a member holds partitions once its request succeeded, None if the response does not say."""
        raise NotImplementedError

    def waits_unseen(self, connection: str, at_us: int) -> bool:  # noqa: ARG002
        """Note that a request of this connection may wait unseen; return False if only :meth:`on_gap` does it justice."""
        return False  # coordinators of groups with epochs answer at once, so what is missing may be anything

    def is_shown_by(self, taps: Container[str]) -> bool:
        """Return True if a member was seen last through one of these taps, or a request waits there for its answer."""
        members = (member.actor for member in self.members.values() if member.keeps_place)
        waiting = (exchange.actor for exchange in self.open.values())
        return any(tap_of(client.connection) in taps for client in chain(members, waiting))

    def on_gap(self, at_us: int, because: str) -> None:
        """Go back to learning: frames are missing or the group moved, so what is known may have changed unseen."""
        raise NotImplementedError

    def connection_closed(self, connection: str, at_us: int) -> None:
        """Process the end of a connection: no response is due to the requests open on it."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------ time

    def session_end_us(self, member: M) -> int | None:
        """Return when the session of this member has certainly expired without a further frame, None while it cannot expire."""
        raise NotImplementedError

    def certainly_lasts(self, member: M, at_us: int) -> bool:  # noqa: ARG002
        """Return True if the session of this member cannot end before; cheaper to ask than :meth:`session_end_us`."""
        return False

    def sessions_ms(self) -> dict[str, int]:
        """Return member id → session timeout, at least, of the members that have not asked to leave."""
        raise NotImplementedError

    def awaiting(self) -> set[str]:
        """Return the ids of members of which a request waits for a response that may show that their session goes on."""
        raise NotImplementedError

    def end_session(self, member: M, at_us: int) -> tuple[Event, ...]:
        """End the session of a member; return its events."""
        raise NotImplementedError

    def session_expired(self, member_id: str, at_us: int) -> tuple[Event, ...]:
        """End the session of a member, as the coordinator reports that it did; return the events."""
        raise NotImplementedError

    def end_sessions(self, now_us: int, coming: list[int]) -> Iterator[tuple[int, tuple[Event, ...]]]:
        """End the sessions that have certainly expired at ``now_us``; yield when each ended, and its events.

        :param coming: receives the times at which the others may end.
        """
        self.coordinator_changes.on_time(self, now_us, self.sessions_ms)
        self.committed_offsets.on_time(self, now_us, coming)
        if self.coordinator_changes.is_gone(self):
            coming.append(now_us + _LATER_US)  # its answer to another group does not schedule a check
        awaiting, answered_us = self.awaiting(), self.coordinator_changes.last_answer_us(self)
        for member in sorted(self.members.values(), key=attrgetter("last_frame_us")):  # those that fall silent first
            if member.id in awaiting:
                coming.append(now_us + _SOON_US)  # its response does not schedule a check
                continue
            if self.certainly_lasts(member, min([now_us + STEADY_US, *coming])):
                continue  # the group is looked at before
            end_us = self.session_end_us(member)
            if end_us is not None and end_us <= now_us and answered_us is not None and answered_us < end_us:
                coming.append(now_us + _SOON_US)  # a broker that has died ends no session, and a log does not show that it did
            elif end_us is not None and end_us <= now_us:
                yield end_us, self.end_session(member, end_us)
            elif end_us is not None:
                coming.append(end_us)

    # ------------------------------------------------------------------------------------------------ views

    def held_by(self, member: M) -> Mapping[str, Iterable[int]] | None:
        """Return what a member holds, by name of topic; None if that is not known."""
        raise NotImplementedError

    def holders_of(self, partitions: Container[tuple[str, int]]) -> list[str] | None:
        """Return who holds any of these partitions, by topic and number, now; None if that is not known."""
        raise NotImplementedError

    def view(self, open_findings: int, partition: int, now_us: int) -> GroupView:
        """Return the group as a dashboard shows it."""
        raise NotImplementedError
