"""One classic group, rebuilt from the frames of its members.

Requests and answers go in, in capture order; what is known of the group is kept, and what a rule should look at comes out. The group
judges nothing. What the frames of each API tell it is in ``joins`` (JoinGroup) and ``membership`` (all others); what each request asks
is read in ``asks``; stories beside membership and generation are kept by watches (``watch``).

The traps, in the order in which they bite:

* An answer captured now may tell of a moment long past (it was parked, queued or slow). Whatever it says belongs to its interval,
  from the effective time of its request to its own capture.
* A member is not a connection. Clients heartbeat on one and join on another, and resume on a third.
* After a failover the coordinator may re-issue a generation, resurrect members and forget others, all lawfully. Facts about
  generation and membership die with the incarnation; what a member told of itself (timeouts, instance id) survives as a hint.
* A heartbeat is answered with success by a coordinator that is still loading, whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from coordinator_model.counters import NOT_REJOINED, REFUSED, REMOVED, SESSION_EXPIRED, Counters
from coordinator_model.groups.classic.admissions import Admission
from coordinator_model.groups.classic.handlers import join_group, membership
from coordinator_model.groups.classic.state import SETTLING, TRANSITIONS, UNSETTLING, Observation, State
from coordinator_model.groups.classic.trackers import (
    assignments,
    coordinator_changes,
    member_identity,
    offsets,
    rebalance_history,
    sessions,
)
from coordinator_model.groups.classic.trackers.assignments import Assignments
from coordinator_model.groups.classic.trackers.coordinator_changes import CoordinatorChanges
from coordinator_model.groups.classic.trackers.member_identity import MemberIdentity
from coordinator_model.groups.classic.trackers.offsets import Offsets
from coordinator_model.groups.classic.trackers.rebalance_history import RebalanceHistory
from coordinator_model.groups.classic.trackers.sessions import SLOW_US, Sessions, evicted_early
from coordinator_model.groups.events import (
    FellSilent,
    Mismatched,
    OutOfSight,
    Refused,
    WentOnFenced,
)
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.records import (
    NOBODY,
    REPLACEMENTS_KEPT,
    ClientInfo,
    Exchange,
    ExchangeKey,
    IssuedId,
    JoinAsk,
    Member,
    Refusals,
    Round,
    Sight,
    StaticMember,
)
from coordinator_model.groups.requests import ASKS, MODELLED_API_KEYS
from coordinator_model.groups.tracker import NOTHING, Event, Tracker
from coordinator_model.settings import Settings
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    FENCED_INSTANCE_ID,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
    UNKNOWN_MEMBER_ID,
)
from coordinator_model.wire.record import MirrorRecord

#: attribute of the group → the APIs whose frames it is shown
TRACKERS: Final[tuple[tuple[str, frozenset[int]], ...]] = (
    ("identity", member_identity.API_KEYS),
    ("assignments", assignments.API_KEYS),
    ("offsets", offsets.API_KEYS),
    ("coordination", coordinator_changes.API_KEYS),
    ("timeline", rebalance_history.API_KEYS),
    ("sessions", sessions.API_KEYS),
)

CLASSIC: Final = "classic"  #: the type of group that is modelled
GONE_MEMBERS_KEPT: Final = 32

_EVICTIONS: Final = {"silent": SESSION_EXPIRED, "dropped": NOT_REJOINED, "refused": REFUSED}


class ConnectionState:
    """What one connection looks like from this group: enough to know when a queued request can have been processed."""

    __slots__ = ("actor", "last_response_us", "outstanding")

    def __init__(self, outstanding: int = 0, last_response_us: int = 0) -> None:
        self.outstanding = outstanding
        self.last_response_us = last_response_us
        self.actor = NOBODY  #: who spoke on it last


class ClassicGroup:
    """What is known of one group."""

    __slots__ = (
        "assignments",
        "broker",
        "causes",
        "changed",
        "cluster",
        "cold_changed",
        "coordination",
        "counted",
        "deleted_us",
        "errors",
        "generation_seen",
        "identity",
        "incarnation",
        "instances",
        "issued",
        "join_took_us",
        "joins",
        "kind",
        "last_record_us",
        "learning_because",
        "lines",
        "loading",
        "members",
        "name",
        "offsets",
        "open",
        "protocol_type",
        "rounds",
        "sessions",
        "settings",
        "settled",
        "sight",
        "state",
        "state_since_us",
        "sync_took_us",
        "syncs",
        "tally",
        "timeline",
        "unwatched_us",
    )

    def __init__(
        self,
        name: str,
        cluster: str,
        *,
        settings: Settings,
        loading: Mapping[tuple[str, str], int],
        tally: Counters,
        sight: Sight,
    ) -> None:
        self.name = name
        self.cluster = cluster
        self.settings = settings
        self.loading = loading  #: (cluster, broker) → last time that it told anybody in this partition that it is loading
        self.tally = tally  #: of the partition
        self.sight = sight  #: likewise
        self.kind = CLASSIC
        self.broker = ""
        self.incarnation = 1
        self.settled = False  #: something was accepted in this incarnation
        self.learning_because = "first seen in mid-life"
        self.generation_seen: int | None = None  #: newest generation in any success; for show
        self.state = State.UNKNOWN
        self.state_since_us = 0
        self.protocol_type = ""
        self.rounds: list[Round] = []
        self.members: dict[str, Member] = {}
        self.instances: dict[str, StaticMember] = {}
        self.issued: dict[str, IssuedId] = {}
        self.open: dict[ExchangeKey, Exchange] = {}
        self.lines: dict[str, ConnectionState] = {}
        self.causes: dict[str, int] = {}  #: completed rebalances by what began them
        self.errors: dict[int, dict[int, int]] = {}  #: API key → error code → answers
        self.join_took_us: int | None = None
        self.sync_took_us: int | None = None
        self.joins = (0, 0)  #: join phases that were seen to end, and the microseconds that they took together
        self.syncs = (0, 0)
        self.deleted_us: int | None = None
        self.last_record_us = 0
        self.changed = True  #: something that an overview shows
        self.counted = False  #: likewise, but nothing that a timer rule looks at
        self.cold_changed = True  #: something other than what every heartbeat changes
        self.unwatched_us = 0  #: last time that no member was connected: a coordinator that restarts then does so unseen
        self.identity = MemberIdentity()
        self.assignments = Assignments()
        self.offsets = Offsets()
        self.coordination = CoordinatorChanges()
        self.timeline = RebalanceHistory()
        self.sessions = Sessions()

    # ------------------------------------------------------------------------------------------------ what is known

    @property
    def round(self) -> Round | None:
        """The newest generation proven in this incarnation."""
        return self.rounds[-1] if self.rounds else None

    @property
    def generation(self) -> int | None:
        newest = self.round
        return self.generation_seen if newest is None else newest.generation

    @property
    def learning(self) -> bool:
        """No full roster has been seen in this incarnation: whoever needs the membership must wait."""
        newest = self.round
        return newest is None or newest.roster is None

    def present_members(self) -> Iterator[Member]:
        return (member for member in self.members.values() if member.present)

    def rebalance_timeout_ms(self) -> tuple[int, bool]:
        """The largest rebalance timeout among the members, and whether every member's is known."""
        roster = self.round.roster if self.round is not None else None
        known = [member.rebalance_timeout_ms for member in self.present_members() if member.rebalance_timeout_ms is not None]
        asked = [waiting.ask.rebalance_timeout_ms for waiting in self.waiting_joins() if isinstance(waiting.ask, JoinAsk)]
        complete = roster is not None and all(
            id_ in self.members and self.members[id_].rebalance_timeout_ms is not None for id_ in roster
        )
        return max([*known, *asked], default=0), complete

    def waiting_joins(self) -> Iterator[Exchange]:
        """JoinGroup requests that are owed an answer, oldest first."""
        return (
            waiting
            for waiting in self.open.values()
            if waiting.api_key == JOIN_GROUP and not waiting.superseded and waiting.gap_free
        )

    def waiting_syncs(self) -> Iterator[Exchange]:
        return (waiting for waiting in self.open.values() if waiting.api_key == SYNC_GROUP and waiting.gap_free)

    def parked(self, member: Member) -> bool:
        """Whether a JoinGroup or SyncGroup of this member waits for its answer."""
        return member.parked_join in self.open or member.parked_sync in self.open

    def loading_near(self, broker: str, at_us: int) -> bool:
        """Whether that broker said it was loading about then, so that a heartbeat's success means nothing."""
        last = self.loading.get((self.cluster, broker))
        return last is not None and abs(at_us - last) <= self.settings.load_window_ms * 1_000

    def proof_beyond(self, generation: int, before_us: int) -> Round | None:
        """The oldest round above ``generation`` that was proven before ``before_us``; None if there is none."""
        skew = self.settings.clock_skew_ms * 1_000
        for candidate in self.rounds:
            if candidate.generation > generation and candidate.proven_us < before_us - skew:
                return candidate
        return None

    def lasts(self, known: Round, before_us: int) -> bool:
        """Whether this round was proven before ``before_us``, and no coordinator that loads the group anew, unseen, can have lost it.

        It would start from what was last written. A restart that nobody sees ends all connections.
        """
        proven_us = before_us - self.settings.clock_skew_ms * 1_000
        if known.sync_done_us is not None and known.sync_done_us < proven_us:
            return True
        return known.proven_us < proven_us and self.unwatched_us < known.proven_us

    def lasting_beyond(self, generation: int, before_us: int) -> Round | None:
        """The oldest round above ``generation`` that :meth:`lasts`; None if there is none."""
        for candidate in self.rounds:
            if candidate.generation > generation and self.lasts(candidate, before_us):
                return candidate
        return None

    # ------------------------------------------------------------------------------------------------ frames in

    def request(self, record: MirrorRecord, body: Any) -> tuple[Event, ...]:
        """A request of one of the :data:`MODELLED_API_KEYS` was captured."""
        api_key = record.api_key
        line = self.line(record.connection)
        actor = line.actor
        if actor != (record.client_id, record.client_address, record.client_software, record.connection):
            actor = line.actor = ClientInfo(record.client_id, record.client_address, record.client_software, record.connection)
        exchange = Exchange(
            (record.connection, record.exchange),
            api_key,
            record.api_version,
            "",
            -1,
            None,
            None,
            actor,
            record.broker,
            record.partition,
            record.offset,
            record.at_us,
            record.queued_behind,
        )
        exchange.correlation_id = record.correlation_id
        ASKS[api_key](exchange, body)
        # Behind requests that this group does not see, nothing is known of when it was processed until it is answered.
        exchange.effective_us = record.at_us if record.queued_behind <= line.outstanding else -1
        line.outstanding += 1
        self.open[exchange.key] = exchange
        handler = _ON_REQUEST.get(api_key)
        happenings = NOTHING if handler is None else handler(self, exchange)
        member = self.members.get(exchange.member_id) if exchange.member_id else None
        if member is not None:
            if member.gone == "silent":
                # Another coordinator, or this one restarted, starts all sessions again. And a clock that jumped proves no silence.
                watched = max(self.unwatched_us, self.sight.since_us) <= member.last_frame_us
                stayed = record.broker == self.broker and watched
                if member.proven_us is not None and stayed:
                    exchange.silence_us = record.at_us - member.last_frame_us
                self._speaks_again(member)
            member.last_frame_us = record.at_us
            member.last_frame = API_NAMES[api_key]
            if exchange.generation != member.joined or exchange.instance_id != member.instance_id:
                happenings = (*happenings, *self.identity.check_identity(self, exchange, member))
            if member.fenced_us is not None and record.at_us >= member.fenced_us and api_key != LEAVE_GROUP:
                member.frames_after_fence += 1
                member.fence_frames = [*member.fence_frames[:2], request_evidence(exchange)]
                happenings = (*happenings, WentOnFenced(exchange, member))
                self.cold_changed = True
        if api_key != HEARTBEAT:
            self.cold_changed = True
            for watch in self.watches(api_key):
                happenings += watch.asked(self, exchange, body)
        return happenings

    def response(self, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Event, ...]:
        """An answer was captured. One without its request tells nothing: nobody knows what it answers.

        :param correlation_id: as the frame itself has it.
        """
        exchange = self.open.pop((record.connection, record.exchange), None)
        if exchange is None:
            self.tally.unpaired[record.api_key, record.api_version] += 1
            return NOTHING
        line = self.lines[record.connection]  # made with the request, and gone only together with it
        line.outstanding -= 1
        if correlation_id != exchange.correlation_id:
            return self._answers_another(exchange, record, correlation_id)
        # Not when the answer ahead of it was captured: the coordinator turned to this one earlier than that, by that answer's way here.
        exchange.effective_us = exchange.inv_us
        line.last_response_us = record.at_us
        exchange.res_us = record.at_us
        exchange.response_offset = record.offset
        if exchange.api_key == JOIN_GROUP and join_group.contradicts_itself(body):
            self.cold_changed = True
            return (self.identity.contradicted(exchange, body),)  # nothing else follows from such an answer
        happenings = _ON_RESPONSE[exchange.api_key](self, exchange, body)
        if exchange.api_key != HEARTBEAT or exchange.error:
            self.cold_changed = True
            for watch in self.watches(exchange.api_key):
                happenings += watch.replied(self, exchange, body)
        elif exchange.silence_us or body.throttle_time_ms or exchange.res_us - exchange.inv_us > SLOW_US:
            self.cold_changed = True
            happenings += self.sessions.replied(self, exchange, body)
        if self.identity.alert:
            happenings += self.identity.recheck(self, exchange, body)
        return happenings

    def _answers_another(self, exchange: Exchange, record: MirrorRecord, correlation_id: int) -> tuple[Event, ...]:
        """Whatever this answer says, it does not say it of this request."""
        exchange.res_us, exchange.response_offset = record.at_us, record.offset
        self.lost_sight(record.at_us, "an answer does not belong to its request")
        return (Mismatched(exchange, correlation_id),)

    def line(self, connection: str) -> ConnectionState:
        """What is known of a connection, from now on if it was not."""
        line = self.lines.get(connection)
        if line is None:
            line = self.lines[connection] = ConnectionState()
            self.cold_changed = True
        return line

    def watches(self, api_key: int) -> tuple[Tracker, ...]:
        """The watches that are shown frames of this API."""
        return _WATCHES_OF[api_key](self)

    def abandon(self, record: MirrorRecord) -> Exchange | None:
        """A frame of this exchange cannot be read, and nobody will learn how it ended: gives the request, if that was seen."""
        exchange = self.open.pop((record.connection, record.exchange), None)
        if exchange is not None:
            self.lines[record.connection].outstanding -= 1
        return exchange

    def connection_closed(self, connection: str, at_us: int) -> None:
        """A connection ended: what was open on it will not be answered, and nobody owes an answer."""
        for key in [key for key in self.open if key[0] == connection]:
            self.timeline.orphaned(self, self.open.pop(key), at_us)
        for member in self.members.values():
            if member.actor.connection == connection:
                member.hung_up_us = at_us
        self.sessions.hung_up(connection)
        line = self.lines.pop(connection, None)
        if not any(member.proven_us is not None and member.actor.connection in self.lines for member in self.members.values()):
            self.unwatched_us = at_us
            self.identity.unwatched()
            self.coordination.unwatched(self, at_us)
        if line is not None and line.outstanding:
            self.changed = True
        self.last_record_us = at_us

    def lost_sight(self, at_us: int, because: str) -> None:
        """Frames are missing, or the group moved: what was known of generation and membership may have changed unseen."""
        self.learning_because = because
        self.rounds.clear()
        self.issued.clear()
        self.generation_seen = None
        for member in self.members.values():
            member.proven_us = None
            member.refusals = None
            member.rejoin_asked_us = None
            member.fenced_us = None
            member.joined = member.synced = member.in_sync = None
            member.joined_before = None
            member.idle_since_us = 0
        for instance in self.instances.values():
            instance.held_us = instance.settled_us = 0
        for waiting in self.open.values():
            waiting.gap_free = False
        for name, _ in TRACKERS:
            getattr(self, name).lost_sight(self)
        self.observe(Observation.LOST_SIGHT, at_us)

    def becomes(self, kind: str, admitted: Admission) -> tuple[Event, ...]:
        """An answer shows that the group is of a type that is not modelled."""
        # Until one of its JoinGroups succeeds, a group counts as a classic one without any proof.
        modelled = self.kind == CLASSIC and bool(self.protocol_type)
        self.kind = kind
        self.lost_sight(admitted.at_us, f"is of the {kind} type, which is not modelled yet")
        return (OutOfSight(admitted),) if modelled else NOTHING

    def new_incarnation(self, at_us: int, because: str) -> None:
        """The coordinator moved, or loaded the group anew."""
        self.incarnation += 1
        self.settled = False
        self.lost_sight(at_us, because)

    def fell_silent(self, member: Member, at_us: int) -> tuple[Event, ...]:
        """Its session has run out by any reckoning."""
        self.gone(member, "silent", at_us)
        return (FellSilent(member, at_us),)

    # ------------------------------------------------------------------------------------------------ bookkeeping

    def observe(self, seen: Observation, at_us: int) -> None:
        """Something happened that the state may follow from."""
        if self.rounds and seen in UNSETTLING:
            self.rounds[-1].unsettled_us = self.rounds[-1].unsettled_us or at_us
        elif self.rounds and seen in SETTLING:
            self.rounds[-1].unsettled_us = 0
        # A group of another type has other states.
        after = TRANSITIONS[self.state][seen] if self.kind == CLASSIC else State.UNKNOWN
        if after is not self.state:
            if after is State.PREPARING or self.state_since_us == 0:
                self.join_took_us = self.sync_took_us = None
            self.state = after
            self.state_since_us = at_us
        self.changed = True

    def gone(self, member: Member, why: str, at_us: int) -> None:
        """A member is one no longer: it "left", fell "silent", or was "refused", "dropped" by a generation, or "replaced"."""
        was_present = member.present
        member.gone = why
        member.gone_us = at_us
        self.changed = True
        cause = REMOVED if why == "left" and not member.leaving else _EVICTIONS.get(why)
        if was_present and cause is not None:
            self.tally.evictions[self.cluster, cause] += 1
        if was_present and why in {"left", "silent", "refused"}:
            others = any(True for _ in self.present_members())
            if not others:
                self.observe(Observation.LAST_MEMBER_GONE, at_us)
            elif self._takes_part(member):
                self.observe(Observation.MEMBER_GONE, at_us)
        self._forget_some()

    def _takes_part(self, member: Member) -> bool:
        """Whether a member may be in the newest generation: one that did not join it went while it came about, and starts nothing."""
        newest = self.round
        if newest is None or member.joined == newest.generation:
            return True
        if newest.roster is not None:
            return member.id in newest.roster
        return member.instance_id is not None or member.parked_join in self.open

    def _speaks_again(self, member: Member) -> None:
        member.gone = None
        self.changed = True

    def _forget_some(self) -> None:
        gone = [member for member in self.members.values() if member.gone is not None]
        if len(gone) > GONE_MEMBERS_KEPT:
            gone.sort(key=lambda member: max(member.last_frame_us, member.gone_us))
            for member in gone[: len(gone) - GONE_MEMBERS_KEPT]:
                del self.members[member.id]

    def member_of(self, exchange: Exchange) -> Member:
        """The member that the exchange names; one that nobody has heard of counts as unproven."""
        member = self.members.get(exchange.member_id)
        if member is None:
            member = self.members[exchange.member_id] = Member(exchange.member_id)
        member.actor = exchange.actor
        if exchange.instance_id is not None and member.instance_id is None and member.joined is None:
            member.instance_id = exchange.instance_id
        return member

    def accepted(self, exchange: Exchange) -> None:
        """Note that this broker acted as the group's coordinator."""
        self.coordination.returned(self, exchange.res_us)
        if exchange.broker != self.broker:
            if self.broker and self.settled:
                self.new_incarnation(exchange.res_us, f"the coordinator moved from {self.broker} to {exchange.broker}")
            self.broker = exchange.broker
            self.changed = True
        self.settled = True

    def coordinator_moves(self, exchange: Exchange) -> tuple[Event, ...]:
        """Answered 14, 15 or 16: the group is moving, unless somebody merely asked the wrong broker."""
        if self.settled and exchange.broker == self.broker:
            self.new_incarnation(exchange.res_us, f"{exchange.broker} answered {error_name(exchange.error)}")
        return NOTHING

    def prove(self, member: Member, exchange: Exchange) -> None:
        """The coordinator has treated somebody as a member."""
        member.proven_us = exchange.res_us
        if member.leaving:
            self.stays(member, exchange)
        if member.fenced_us is not None and member.fenced_us < exchange.effective_us:
            member.fenced_us = None  # its replacement was undone
            member.frames_after_fence = 0
        if member.gone is not None:
            member.gone = None
            self.changed = True

    def stays(self, member: Member, exchange: Exchange) -> None:
        """A member that asked to leave was served: its LeaveGroup never came to the coordinator, if this was asked after it."""
        asked_after = exchange.inv_us > member.leave_asked_us + self.settings.clock_skew_ms * 1_000
        if asked_after and not any(open_.api_key == LEAVE_GROUP for open_ in self.open.values()):
            member.leaving = False
            self.cold_changed = True

    def refuse(self, exchange: Exchange, error: int) -> tuple[Event, ...]:
        """A Heartbeat, SyncGroup or OffsetCommit was refused for its generation, its member id or its instance id."""
        if not exchange.member_id:
            return NOTHING
        member = self.member_of(exchange)
        if error == FENCED_INSTANCE_ID:
            return self.fence(exchange, member)
        if error == UNKNOWN_MEMBER_ID and exchange.instance_id is not None and exchange.instance_id != member.instance_id:
            return NOTHING  # the instance id is what is not known; of the member id it says nothing
        frame = response_evidence(exchange, error)
        refusals = member.refusals
        if refusals is None or (refusals.error, refusals.generation) != (error, exchange.generation):
            refusals = member.refusals = Refusals(error, exchange.generation, 0, exchange.res_us, exchange.res_us)
        refusals.add(exchange.res_us, frame)
        newer = member.proven_us is None or member.proven_us < exchange.effective_us
        early: tuple[Event, ...] = NOTHING
        if error == UNKNOWN_MEMBER_ID and member.gone in {None, "dropped"} and newer:
            early = evicted_early(self, exchange, member)
            self.gone(member, "refused", exchange.res_us)
        return (Refused(exchange, member), *early)

    def fence(self, exchange: Exchange, member: Member) -> tuple[Event, ...]:
        """A member was told FENCED_INSTANCE_ID: another process holds its instance."""
        if member.fenced_us is None:
            member.fenced_us = exchange.res_us
            member.fence_frames = [response_evidence(exchange, FENCED_INSTANCE_ID)]
        if member.gone is None:
            self.gone(member, "replaced", exchange.res_us)
        if exchange.instance_id is not None:
            instance = self.instances.get(exchange.instance_id)
            if instance is not None and instance.member_id != member.id:
                actor = exchange.actor
                note = (exchange.res_us, actor.connection, actor.client_id, actor.address)
                instance.fenced = [*instance.fenced[-REPLACEMENTS_KEPT:], note]
                instance.frames = [*instance.frames[-3:], response_evidence(exchange, FENCED_INSTANCE_ID)]
        return NOTHING


_WATCHES_OF: Final = {key: attrgetter(*(name for name, api_keys in TRACKERS if key in api_keys)) for key in MODELLED_API_KEYS}
_ON_REQUEST: Final[dict[int, Callable[[ClassicGroup, Exchange], tuple[Event, ...]]]] = {
    JOIN_GROUP: join_group.asked,
    SYNC_GROUP: membership.sync_asked,
    HEARTBEAT: membership.heartbeat_asked,
    LEAVE_GROUP: membership.leave_asked,
}
_ON_RESPONSE: Final[dict[int, Callable[[ClassicGroup, Exchange, Any], tuple[Event, ...]]]] = {
    JOIN_GROUP: join_group.answered,
    SYNC_GROUP: membership.sync_answered,
    HEARTBEAT: membership.heartbeat_answered,
    LEAVE_GROUP: membership.leave_answered,
    OFFSET_COMMIT: membership.commit_answered,
    TXN_OFFSET_COMMIT: membership.transactional_commit_answered,
    FIND_COORDINATOR: membership.watched_only,
    DELETE_GROUPS: membership.deleted,
}
