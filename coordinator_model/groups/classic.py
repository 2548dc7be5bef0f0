"""One classic group, rebuilt from the frames of its members.

Requests and answers go in, in capture order; what is known of the group is kept, and what a rule should look at comes out. The group
judges nothing.

The traps, in the order in which they bite:

* An answer captured now may tell of a moment long past (it was parked, queued or slow). Whatever it says belongs to its interval,
  from the effective time of its request to its own capture.
* A member is not a connection. Clients heartbeat on one and join on another, and resume on a third.
* After a failover the coordinator may re-issue a generation, resurrect members and forget others, all lawfully. Facts about
  generation and membership die with the incarnation; what a member told of itself (timeouts, instance id) survives as a hint.
* A heartbeat is answered with success by a coordinator that is still loading, whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2s
from operator import attrgetter
from typing import Any, Final

from coordinator_model.groups import assignments, coordination, identity, offsets, sessions, timeline
from coordinator_model.groups.assignments import Assignments
from coordinator_model.groups.coordination import Coordination
from coordinator_model.groups.facts import (
    NOBODY,
    Actor,
    Exchange,
    ExchangeKey,
    Instance,
    IssuedId,
    JoinAsk,
    LeaveAsk,
    Member,
    Refusals,
    Round,
    SyncAsk,
)
from coordinator_model.groups.happenings import (
    Accepted,
    Answered,
    FellSilent,
    Mismatched,
    Mixed,
    Refused,
    Regressed,
    Replaced,
    Returned,
    ToldToRejoin,
    WentOnFenced,
)
from coordinator_model.groups.identity import Identity
from coordinator_model.groups.offsets import Offsets
from coordinator_model.groups.plain import UNSERVED, note_pace
from coordinator_model.groups.sessions import SLOW_US, Sessions, evicted_early, thin_margin
from coordinator_model.groups.state import TRANSITIONS, Seen, State
from coordinator_model.groups.timeline import Timeline
from coordinator_model.groups.watch import NOTHING, Happening, Watch
from coordinator_model.groups.words import host_of
from coordinator_model.groups.words import request_evidence as request_evidence  # noqa: PLC0414 - rules find them here
from coordinator_model.groups.words import response_evidence as response_evidence  # noqa: PLC0414
from coordinator_model.settings import Settings
from coordinator_model.tally import JOIN, NOT_REJOINED, REFUSED, REMOVED, SESSION_EXPIRED, SYNC, Tally
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.record import MirrorRecord

NONE, LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 0, 14, 15, 16
ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 22, 25, 27
MEMBER_ID_REQUIRED, GROUP_MAX_SIZE_REACHED, FENCED_INSTANCE_ID = 79, 81, 82
COORDINATOR_MOVES: Final = frozenset({LOADING, NOT_AVAILABLE, NOT_COORDINATOR})

OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 8, 10, 11, 12, 13, 14
TXN_OFFSET_COMMIT, DELETE_GROUPS = 28, 42

#: attribute of the group → the APIs whose frames it is shown
WATCHES: Final[tuple[tuple[str, frozenset[int]], ...]] = (
    ("identity", identity.API_KEYS),
    ("assignments", assignments.API_KEYS),
    ("offsets", offsets.API_KEYS),
    ("coordination", coordination.API_KEYS),
    ("timeline", timeline.API_KEYS),
    ("sessions", sessions.API_KEYS),
)

ROUNDS_KEPT: Final = 6
IDLE_ASSIGNMENT_BYTES: Final = 10  #: version, no topics, no user data: a consumer's assignment of nothing is no longer than that
GONE_MEMBERS_KEPT: Final = 32
ISSUED_KEPT: Final = 64
REPLACEMENTS_KEPT: Final = 12
LEADER_TOLD_SINCE: Final = 9  #: JoinGroup v9 tells a leader that was replaced within a generation that it leads (KIP-814)
HEARTBEAT_VALIDATES_SINCE: Final = 3  #: Heartbeat v3 exists since brokers 2.3, which check member and generation before the state

# A commit's per-partition codes that the request layer gives without asking the coordinator.
_NOT_FROM_COORDINATOR: Final = frozenset({3, 29, 30, 12, 28})

_EVICTIONS: Final = {"silent": SESSION_EXPIRED, "dropped": NOT_REJOINED, "refused": REFUSED}


class Line:
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
        "state",
        "state_since_us",
        "sync_took_us",
        "syncs",
        "tally",
        "timeline",
        "unwatched_us",
    )

    def __init__(
        self, name: str, cluster: str, *, settings: Settings, loading: Mapping[tuple[str, str], int], tally: Tally
    ) -> None:
        self.name = name
        self.cluster = cluster
        self.settings = settings
        self.loading = loading  #: (cluster, broker) → last time that it told anybody in this partition that it is loading
        self.tally = tally  #: of the partition
        self.kind = "classic"
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
        self.instances: dict[str, Instance] = {}
        self.issued: dict[str, IssuedId] = {}
        self.open: dict[ExchangeKey, Exchange] = {}
        self.lines: dict[str, Line] = {}
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
        self.identity = Identity()
        self.assignments = Assignments()
        self.offsets = Offsets()
        self.coordination = Coordination()
        self.timeline = Timeline()
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

    def request(self, record: MirrorRecord, body: Any) -> tuple[Happening, ...]:
        """A request of one of the :data:`MODELLED_API_KEYS` was captured."""
        api_key = record.api_key
        line = self.line(record.connection)
        actor = line.actor
        if actor != (record.client_id, record.client_address, record.client_software, record.connection):
            actor = line.actor = Actor(record.client_id, record.client_address, record.client_software, record.connection)
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
        _ASKS[api_key](exchange, body)
        # Behind requests that this group does not see, nothing is known of when it was processed until it is answered.
        exchange.effective_us = record.at_us if record.queued_behind <= line.outstanding else -1
        line.outstanding += 1
        self.open[exchange.key] = exchange
        handler = _ON_REQUEST.get(api_key)
        happenings = NOTHING if handler is None else handler(self, exchange)
        member = self.members.get(exchange.member_id) if exchange.member_id else None
        if member is not None:
            if member.gone == "silent":
                # Another coordinator, or this one restarted, starts all sessions anew.
                stayed = record.broker == self.broker and self.unwatched_us <= member.last_frame_us
                if member.proven_us is not None and stayed:
                    exchange.silence_us = record.at_us - member.last_frame_us
                self._speaks_again(member)
            member.last_frame_us = record.at_us
            member.last_frame = API_NAMES[api_key]
            if exchange.generation != member.joined or exchange.instance_id != member.instance_id:
                happenings = (*happenings, *self.identity.odd_one(self, exchange, member))
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

    def response(self, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Happening, ...]:
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
        happenings = _ON_RESPONSE[exchange.api_key](self, exchange, body)
        if exchange.api_key != HEARTBEAT or exchange.error:
            self.cold_changed = True
            for watch in self.watches(exchange.api_key):
                happenings += watch.replied(self, exchange, body)
        elif exchange.silence_us or body.throttle_time_ms or exchange.res_us - exchange.inv_us > SLOW_US:
            self.cold_changed = True
            happenings += self.sessions.replied(self, exchange, body)
        if self.identity.alert:
            happenings += self.identity.second_look(self, exchange, body)
        return happenings

    def _answers_another(self, exchange: Exchange, record: MirrorRecord, correlation_id: int) -> tuple[Happening, ...]:
        """Whatever this answer says, it does not say it of this request."""
        exchange.res_us, exchange.response_offset = record.at_us, record.offset
        self.lost_sight(record.at_us, "an answer does not belong to its request")
        return (Mismatched(exchange, correlation_id),)

    def line(self, connection: str) -> Line:
        """What is known of a connection, from now on if it was not."""
        line = self.lines.get(connection)
        if line is None:
            line = self.lines[connection] = Line()
            self.cold_changed = True
        return line

    def watches(self, api_key: int) -> tuple[Watch, ...]:
        """The watches that are shown frames of this API."""
        return _WATCHES_OF[api_key](self)

    def abandon(self, record: MirrorRecord) -> None:
        """A frame of this exchange cannot be read: nobody will learn how it ended."""
        if self.open.pop((record.connection, record.exchange), None) is not None:
            self.lines[record.connection].outstanding -= 1

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
        for instance in self.instances.values():
            instance.held_us = instance.settled_us = 0
        for waiting in self.open.values():
            waiting.gap_free = False
        for name, _ in WATCHES:
            getattr(self, name).lost_sight(self)
        self._saw(Seen.LOST_SIGHT, at_us)

    def new_incarnation(self, at_us: int, because: str) -> None:
        """The coordinator moved, or loaded the group anew."""
        self.incarnation += 1
        self.settled = False
        self.lost_sight(at_us, because)

    def fell_silent(self, member: Member, at_us: int) -> tuple[Happening, ...]:
        """Its session has run out by any reckoning."""
        self._gone(member, "silent", at_us)
        return (FellSilent(member, at_us),)

    # ------------------------------------------------------------------------------------------------ bookkeeping

    def _saw(self, seen: Seen, at_us: int) -> None:
        after = TRANSITIONS[self.state][seen]
        if after is not self.state:
            if after is State.PREPARING or self.state_since_us == 0:
                self.join_took_us = self.sync_took_us = None
            self.state = after
            self.state_since_us = at_us
        self.changed = True

    def _gone(self, member: Member, why: str, at_us: int) -> None:
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
                self._saw(Seen.LAST_MEMBER_GONE, at_us)
            elif self._takes_part(member):
                self._saw(Seen.MEMBER_GONE, at_us)
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

    def _member(self, exchange: Exchange) -> Member:
        """The member that the exchange names; one that nobody has heard of counts as unproven."""
        member = self.members.get(exchange.member_id)
        if member is None:
            member = self.members[exchange.member_id] = Member(exchange.member_id)
        member.actor = exchange.actor
        if exchange.instance_id is not None and member.instance_id is None and member.joined is None:
            member.instance_id = exchange.instance_id
        return member

    def _accepted(self, exchange: Exchange) -> None:
        """Note that this broker acted as the group's coordinator."""
        if exchange.broker != self.broker:
            if self.broker and self.settled:
                self.new_incarnation(exchange.res_us, f"the coordinator moved from {self.broker} to {exchange.broker}")
            self.broker = exchange.broker
            self.changed = True
        self.settled = True

    def _coordinator_moves(self, exchange: Exchange) -> tuple[Happening, ...]:
        """Answered 14, 15 or 16: the group is moving, unless somebody merely asked the wrong broker."""
        if self.settled and exchange.broker == self.broker:
            self.new_incarnation(exchange.res_us, f"{exchange.broker} answered {error_name(exchange.error)}")
        return NOTHING

    def _prove(self, member: Member, exchange: Exchange) -> None:
        member.proven_us = exchange.res_us
        if member.fenced_us is not None and member.fenced_us < exchange.effective_us:
            member.fenced_us = None  # its replacement was undone
            member.frames_after_fence = 0
        if member.gone is not None:
            member.gone = None
            self.changed = True

    def _refuse(self, exchange: Exchange, error: int) -> tuple[Happening, ...]:
        """A Heartbeat, SyncGroup or OffsetCommit was refused for its generation, its member id or its instance id."""
        if not exchange.member_id:
            return NOTHING
        member = self._member(exchange)
        if error == FENCED_INSTANCE_ID:
            return self._fence(exchange, member)
        if error == UNKNOWN_MEMBER_ID and exchange.instance_id is not None and exchange.instance_id != member.instance_id:
            return NOTHING  # the instance id is what is not known; of the member id it says nothing
        frame = response_evidence(exchange, error)
        refusals = member.refusals
        if refusals is None or (refusals.error, refusals.generation) != (error, exchange.generation):
            refusals = member.refusals = Refusals(error, exchange.generation, 0, exchange.res_us, exchange.res_us)
        refusals.add(exchange.res_us, frame)
        newer = member.proven_us is None or member.proven_us < exchange.effective_us
        early: tuple[Happening, ...] = NOTHING
        if error == UNKNOWN_MEMBER_ID and member.gone in {None, "dropped"} and newer:
            early = evicted_early(self, exchange, member)
            self._gone(member, "refused", exchange.res_us)
        return (Refused(exchange, member), *early)

    def _fence(self, exchange: Exchange, member: Member) -> tuple[Happening, ...]:
        if member.fenced_us is None:
            member.fenced_us = exchange.res_us
            member.fence_frames = [response_evidence(exchange, FENCED_INSTANCE_ID)]
        if member.gone is None:
            self._gone(member, "replaced", exchange.res_us)
        if exchange.instance_id is not None:
            instance = self.instances.get(exchange.instance_id)
            if instance is not None and instance.member_id != member.id:
                actor = exchange.actor
                note = (exchange.res_us, actor.connection, actor.client_id, actor.address)
                instance.fenced = [*instance.fenced[-REPLACEMENTS_KEPT:], note]
                instance.frames = [*instance.frames[-3:], response_evidence(exchange, FENCED_INSTANCE_ID)]
        return NOTHING

    # ------------------------------------------------------------------------------------------------ JoinGroup

    def _join_asked(self, exchange: Exchange) -> tuple[Happening, ...]:
        ask = exchange.ask
        assert isinstance(ask, JoinAsk)
        self.changed = True
        if exchange.member_id:
            member = self._member(exchange)
            earlier = self.open.get(member.parked_join) if member.parked_join is not None else None
            if earlier is not None:
                earlier.superseded = True
            member.parked_join = exchange.key
            member.refusals = None
            member.rejoin_asked_us = None
            member.rejoin_frames = []
            self._classify_rejoin(exchange, member, ask)
            return NOTHING
        if exchange.instance_id is None:
            return NOTHING  # with v4+ it is answered MEMBER_ID_REQUIRED and changes nothing
        instance = self.instances.get(exchange.instance_id)
        if instance is None:
            self._mark_trigger(exchange)
            return NOTHING
        return (Returned(exchange, instance),) if self._was_fenced(instance, exchange) else NOTHING

    def _was_fenced(self, instance: Instance, exchange: Exchange) -> bool:
        actor = exchange.actor
        return any(
            at_us <= exchange.inv_us
            and (connection == actor.connection or (client_id == actor.client_id and host_of(address) == host_of(actor.address)))
            for at_us, connection, client_id, address in instance.fenced
        )

    def _classify_rejoin(self, exchange: Exchange, member: Member, ask: JoinAsk) -> None:
        newest = self.round
        if (
            exchange.member_id in self.issued  # a new member
            or (newest is not None and newest.leader == member.id and self.state is State.STABLE)
            or (member.present and member.digest and ask.digest != member.digest)  # another subscription
        ):
            self._mark_trigger(exchange)

    def _mark_trigger(self, exchange: Exchange) -> None:
        exchange.starts_phase = True
        self._saw(Seen.JOIN_TRIGGERS, exchange.inv_us)

    def _join_answered(self, exchange: Exchange, body: Any) -> tuple[Happening, ...]:
        error = exchange.error = body.error_code
        if error in COORDINATOR_MOVES:
            return self._coordinator_moves(exchange)
        if error == NONE:
            well_formed = body.generation_id > 0 and body.member_id
            return self._joined(exchange, body) if well_formed else NOTHING
        if error == MEMBER_ID_REQUIRED:
            assert isinstance(exchange.ask, JoinAsk)
            self._accepted(exchange)
            if len(self.issued) >= ISSUED_KEPT:
                del self.issued[min(self.issued, key=lambda id_: self.issued[id_].issued_us)]
            self.issued[body.member_id] = IssuedId(exchange.res_us, exchange.ask.session_timeout_ms, exchange.actor)
            return NOTHING
        if exchange.member_id:
            member = self._member(exchange)
            if error == FENCED_INSTANCE_ID:
                return self._fence(exchange, member)
            if error in {UNKNOWN_MEMBER_ID, GROUP_MAX_SIZE_REACHED} and member.gone in {None, "dropped"}:
                self._gone(member, "refused", exchange.res_us)
            self.issued.pop(exchange.member_id, None)
        return NOTHING

    def _joined(self, exchange: Exchange, body: Any) -> tuple[Happening, ...]:
        if not body.leader:
            # Only a group of the new type names no leader: its members have epochs of their own (KIP-848 migration).
            self.kind = "consumer"
            self.lost_sight(exchange.res_us, "became a group of the consumer type, which is not modelled yet")
            return (Mixed(exchange),)
        self.kind = "classic"
        self._accepted(exchange)
        happenings: list[Happening] = []
        if exchange.member_id and exchange.member_id != body.member_id:
            happenings.append(Answered(exchange, body.member_id))
        generation = body.generation_id
        newest = self.round
        if newest is not None and generation < newest.generation:
            skew = self.settings.clock_skew_ms * 1_000
            if newest.proven_us >= exchange.effective_us - skew:
                # It overlaps the newest round, so it may be an old answer that was captured late; but how old, its request tells.
                passed = self.proof_beyond(generation, exchange.effective_us)
                if passed is not None:
                    happenings.append(Regressed(exchange, generation, passed, self._why_reset(exchange, passed, generation)))
                return tuple(happenings)
            happenings.append(Regressed(exchange, generation, newest, self._why_reset(exchange, newest, generation)))
            self.new_incarnation(exchange.res_us, f"the generation fell from {newest.generation} to {generation}")
            self._accepted(exchange)
            newest = None
        elif newest is not None and (anew := self._why_anew(exchange, body, newest)) is not None:
            happenings.append(Regressed(exchange, generation, newest, anew))
            self.new_incarnation(exchange.res_us, f"it began anew at generation {generation}")
            self._accepted(exchange)
            newest = None
        if newest is None or generation > newest.generation:
            newest = self._new_round(exchange, body)
        self._adopt_joiner(exchange, body, newest, happenings)
        if body.members and body.member_id == body.leader and newest.roster is None:
            self._adopt_roster(exchange, body, newest)
        return tuple(happenings)

    def _why_anew(self, exchange: Exchange, body: Any, newest: Round) -> str | None:
        """A lawful reason for a newcomer to be handed the newest generation's number again: it is that of a group which began anew."""
        if body.generation_id != newest.generation or newest.roster is None or body.member_id in newest.roster:
            return None
        if exchange.instance_id is not None and exchange.instance_id in newest.roster.values():
            return None  # replaces a static member within the generation
        if newest.proven_us >= exchange.effective_us - self.settings.clock_skew_ms * 1_000:
            return None  # parked with the others
        return self._why_reset(exchange, newest, newest.generation - 1)

    def _why_reset(self, exchange: Exchange, before: Round, generation: int) -> str | None:
        """A lawful reason for the generation to have started anew since ``before``, or None if there can be none."""
        if self.deleted_us is not None and self.deleted_us >= before.proven_us:
            return "the group was deleted in between"
        if self.lasting_beyond(generation, exchange.effective_us) is None:
            return "all connections ended before the later generation was written, so the coordinator may have restarted without it"
        if before.roster is None:
            return "not all members of the earlier generation are known"
        if exchange.member_id in before.roster:
            return None  # a group that started anew would not know this member
        for id_ in before.roster:
            member = self.members.get(id_)
            if member is None or member.session_timeout_ms is None:
                return "not all session timeouts are known"
            if member.gone is None and member.last_frame_us + member.session_timeout_ms * 1_000 > exchange.res_us:
                return None
        return "the group may have been empty in between, and expired"

    def _new_round(self, exchange: Exchange, body: Any) -> Round:
        newest = Round(
            body.generation_id,
            exchange.res_us,
            response_evidence(exchange, NONE, body.generation_id),
            body.leader,
            body.protocol_name,
        )
        began_us = self.state_since_us
        if self.state is not State.PREPARING:  # its beginning was not seen: whoever waited longest was there by then
            began_us = min([exchange.inv_us, *(waiting.inv_us for waiting in self.waiting_joins())])
        self.join_took_us = max(0, exchange.res_us - began_us)
        self.joins = (self.joins[0] + 1, self.joins[1] + self.join_took_us)
        self.tally.took(self.cluster, JOIN, self.join_took_us)
        self.rounds.append(newest)
        del self.rounds[:-ROUNDS_KEPT]
        for older in self.rounds[:-2]:
            older.roster = None
        self.generation_seen = newest.generation
        self.protocol_type = body.protocol_type or self.protocol_type
        self._saw(Seen.JOINED, exchange.res_us)
        return newest

    def _adopt_joiner(self, exchange: Exchange, body: Any, newest: Round, happenings: list[Happening]) -> None:
        ask = exchange.ask
        assert isinstance(ask, JoinAsk)
        self.issued.pop(body.member_id, None)
        member = self.members.get(body.member_id)
        if member is None:
            member = self.members[body.member_id] = Member(body.member_id)
        self.protocol_type = self.protocol_type or ask.protocol_type
        member.actor = exchange.actor
        member.session_timeout_ms = ask.session_timeout_ms
        member.rebalance_timeout_ms = ask.rebalance_timeout_ms
        member.digest, member.protocols, member.reason = ask.digest, ask.protocols, ask.reason
        if member.joined != body.generation_id:
            member.joined_before = member.joined
        member.joined = body.generation_id
        member.joined_us = exchange.res_us
        member.least_interval_us = 0
        member.joined_frame = response_evidence(exchange, NONE, body.generation_id)
        member.parked_join = None
        member.refusals = member.rejoin_asked_us = member.fenced_us = None
        member.frames_after_fence = 0
        member.leaving = False
        member.last_frame_us = max(member.last_frame_us, exchange.res_us)
        member.last_frame = member.last_frame or "JoinGroup"
        self._prove(member, exchange)
        if exchange.instance_id is not None:
            member.instance_id = exchange.instance_id
            self._hold_instance(exchange, member, newest, happenings)
        self.changed = True

    def _hold_instance(self, exchange: Exchange, member: Member, newest: Round, happenings: list[Happening]) -> None:
        assert exchange.instance_id is not None
        instance = self.instances.get(exchange.instance_id)
        if instance is None:
            self.instances[exchange.instance_id] = Instance(exchange.instance_id, member.id, held_us=exchange.res_us)
            return
        if instance.member_id == member.id:
            instance.held_us = instance.held_us or exchange.res_us
            return
        if exchange.member_id and instance.held_us:
            happenings.append(Accepted(exchange))  # only an empty member id replaces: this is an old answer, or a wrong one
            return
        old_id, instance.member_id = instance.member_id, member.id
        instance.held_us, instance.settled_us = exchange.res_us, 0
        if exchange.member_id:
            return  # who held it in an earlier incarnation was only a hint
        if newest.leader == old_id and exchange.api_version >= LEADER_TOLD_SINCE:
            newest.leader = member.id
        note = (exchange.res_us, exchange.actor.address, member.id)
        instance.replacements = [*instance.replacements[-REPLACEMENTS_KEPT:], note]
        instance.frames = [*instance.frames[-3:], response_evidence(exchange, NONE, member.joined)]
        old = self.members.get(old_id)
        if old is not None and old.gone is None:
            self._gone(old, "replaced", exchange.res_us)
        if newest.roster is not None and old_id in newest.roster:
            del newest.roster[old_id]
            newest.roster[member.id] = instance.id
        happenings.append(Replaced(exchange, instance, old_id))

    def _adopt_roster(self, exchange: Exchange, body: Any, newest: Round) -> None:
        """The leader's answer names every member: from here on the membership is known."""
        newest.roster = {entry.member_id: entry.group_instance_id for entry in body.members}
        for id_, instance_id in newest.roster.items():
            member = self.members.get(id_)
            if member is None:
                member = self.members[id_] = Member(id_)
                member.last_frame_us = exchange.res_us
            if member.proven_us is None:
                member.proven_us = exchange.res_us
            if member.gone not in {None, "replaced"}:
                member.gone = None
            if instance_id is not None:
                member.instance_id = instance_id
                instance = self.instances.setdefault(instance_id, Instance(instance_id, id_))
                holder = self.members.get(instance.member_id)
                if instance.member_id != id_ and (holder is None or holder.joined != newest.generation):
                    instance.member_id, instance.settled_us = id_, 0
                if instance.member_id == id_:
                    instance.held_us = instance.held_us or exchange.res_us
        for member in list(self.members.values()):
            if member.present and member.id not in newest.roster:
                if member.joined == newest.generation and member.instance_id is not None:
                    newest.roster[member.id] = member.instance_id  # replaced an instance after the round was complete
                else:
                    self._gone(member, "dropped", exchange.res_us)

    # ------------------------------------------------------------------------------------------------ SyncGroup

    def _sync_asked(self, exchange: Exchange) -> tuple[Happening, ...]:
        if not exchange.member_id:
            return NOTHING
        member = self._member(exchange)
        member.parked_sync = exchange.key
        member.synced = exchange.generation
        member.synced_us = exchange.inv_us
        newest = self.round
        leads = newest is not None and newest.generation == exchange.generation and newest.leader == member.id
        if newest is not None and leads and newest.leader_synced_us is None:
            newest.leader_synced_us = exchange.inv_us
            assert isinstance(exchange.ask, SyncAsk)
            newest.idle = exchange.ask.idle
        self.changed = True
        return NOTHING

    def _sync_answered(self, exchange: Exchange, body: Any) -> tuple[Happening, ...]:
        error = exchange.error = body.error_code
        self.changed = True
        if error in COORDINATOR_MOVES:
            return self._coordinator_moves(exchange)
        if error in {ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID}:
            return self._refuse(exchange, error)
        newest = self.round
        current = newest is None or newest.generation == exchange.generation
        if error == REBALANCE_IN_PROGRESS:
            if current and newest is not None:
                self._saw(Seen.TOLD_TO_REJOIN, exchange.res_us)
            return NOTHING
        if error != NONE or not exchange.member_id:
            return NOTHING
        self._accepted(exchange)
        newest = self.round
        member = self._member(exchange)
        member.in_sync = exchange.generation
        held = self.instances.get(exchange.instance_id) if exchange.instance_id is not None else None
        if held is not None and held.member_id == member.id:
            held.settled_us = held.settled_us or exchange.res_us
        if newest is None or newest.generation != exchange.generation or member.id not in (newest.roster or ()):
            suspects: tuple[Happening, ...] = (Accepted(exchange),)
        else:
            suspects = NOTHING
        if newest is None or newest.generation <= exchange.generation:
            self._prove(member, exchange)
            self.generation_seen = max(exchange.generation, self.generation_seen or 0)
            if newest is not None and newest.sync_done_us is None:
                newest.sync_done_us = exchange.res_us
                if self.state is State.COMPLETING:
                    self.sync_took_us = max(0, exchange.res_us - self.state_since_us)
                    self.syncs = (self.syncs[0] + 1, self.syncs[1] + self.sync_took_us)
                    self.tally.took(self.cluster, SYNC, self.sync_took_us)
            self._saw(Seen.SYNCED, exchange.res_us)
        return suspects

    # ------------------------------------------------------------------------------------------------ Heartbeat

    def _heartbeat_asked(self, exchange: Exchange) -> tuple[Happening, ...]:
        member = self.members.get(exchange.member_id)
        if member is None:
            return NOTHING
        late: tuple[Happening, ...] = NOTHING
        pause_us = note_pace(self, member, exchange.inv_us)
        if member.session_timeout_ms is not None and pause_us > member.session_timeout_ms * 500:
            late = thin_margin(self, exchange, member)
        if exchange.key[0] != member.actor.connection:
            late += self.identity.other_voice(self, exchange, member)
        return late

    def _heartbeat_answered(self, exchange: Exchange, body: Any) -> tuple[Happening, ...]:
        error = exchange.error = body.error_code
        newest = self.rounds[-1] if self.rounds else None
        if error == NONE:
            member = self.members.get(exchange.member_id)
            if (
                member is not None
                and newest is not None
                and newest.generation == exchange.generation
                and newest.roster is not None
                and member.id in newest.roster
                and exchange.broker == self.broker
                and member.gone is None
            ):
                # Steady traffic ends here.
                member.proven_us = exchange.res_us
                if member.rejoin_asked_us is not None:
                    member.rejoin_asked_us = None
                    self.changed = self.cold_changed = True
                if self.state in UNSERVED:
                    self._served_after_all(exchange)
                return NOTHING
            return self._heartbeat_accepted(exchange)
        if error in COORDINATOR_MOVES:
            return self._coordinator_moves(exchange)
        if error in {ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID}:
            return self._refuse(exchange, error)
        if error == REBALANCE_IN_PROGRESS and exchange.member_id:
            return self._heartbeat_told_to_rejoin(exchange, newest)
        return NOTHING

    def _served_after_all(self, exchange: Exchange) -> None:
        """A member is served in a state in which nobody is: what led to that state did not happen.

        Sessions that had run out were started anew by a coordinator that loaded the group unseen. The request that seemed to start a join
        phase never reached the coordinator, if a member is served long after it and nobody waits to join.
        """
        late_us = (self.settings.reorder_window_ms + self.settings.clock_skew_ms) * 1_000
        if self.state is State.EMPTY:
            seen = Seen.HEARTBEAT_OK
        elif exchange.inv_us <= self.state_since_us + late_us or any(open_.api_key == JOIN_GROUP for open_ in self.open.values()):
            return
        else:
            seen = Seen.JOINED if self.rounds[-1].sync_done_us is None else Seen.STILL_SERVED
        self.cold_changed = True
        self._saw(seen, exchange.res_us)

    def _heartbeat_accepted(self, exchange: Exchange) -> tuple[Happening, ...]:
        self.cold_changed = True
        if self.loading_near(exchange.broker, exchange.res_us) or not exchange.member_id:
            return NOTHING
        self._accepted(exchange)
        member = self._member(exchange)
        newest = self.round
        if newest is None or newest.generation <= exchange.generation:
            if newest is not None and newest.generation < exchange.generation:
                self.assignments.ahead(self, exchange)
            self.generation_seen = max(exchange.generation, self.generation_seen or 0)
            if newest is None or newest.roster is None or member.id in newest.roster:
                self._prove(member, exchange)
            member.rejoin_asked_us = None
            self._saw(Seen.HEARTBEAT_OK, exchange.res_us)
        return (Accepted(exchange),)

    def _heartbeat_told_to_rejoin(self, exchange: Exchange, newest: Round | None) -> tuple[Happening, ...]:
        member = self._member(exchange)
        happenings: tuple[Happening, ...] = NOTHING
        if newest is None or newest.generation == exchange.generation:
            self._accepted(exchange)
            if newest is None or newest.roster is None or member.id in newest.roster:
                self._prove(member, exchange)
            self._saw(Seen.TOLD_TO_REJOIN, exchange.res_us)
        if exchange.api_version >= HEARTBEAT_VALIDATES_SINCE:
            happenings = (Accepted(exchange),)
        if self.parked(member):
            return happenings
        if member.rejoin_asked_us is None:
            member.rejoin_asked_us = exchange.res_us
            member.rejoin_frames = []
        member.rejoin_asked_last_us = exchange.res_us
        member.rejoin_frames = [*member.rejoin_frames[:1], response_evidence(exchange, REBALANCE_IN_PROGRESS)]
        return (*happenings, ToldToRejoin(exchange, member))

    # ------------------------------------------------------------------------------------------------ the others

    def _leave_asked(self, exchange: Exchange) -> tuple[Happening, ...]:
        assert isinstance(exchange.ask, LeaveAsk)
        for id_, _ in exchange.ask.members:
            member = self.members.get(id_)
            if member is not None and member.actor.client_id == exchange.actor.client_id:
                member.leaving = True
        return NOTHING

    def _leave_answered(self, exchange: Exchange, body: Any) -> tuple[Happening, ...]:
        assert isinstance(exchange.ask, LeaveAsk)
        error = exchange.error = body.error_code
        if error in COORDINATOR_MOVES:
            return self._coordinator_moves(exchange)
        if error != NONE:
            return NOTHING
        outcomes = [entry.error_code for entry in body.members] or [NONE]  # v0-2 fold the only member's error into the top one
        self._accepted(exchange)
        for (id_, instance_id), outcome in zip(exchange.ask.members, outcomes, strict=False):
            holder = self.instances.get(instance_id) if instance_id is not None and not id_ else None
            member = self.members.get(holder.member_id if holder is not None else id_)
            self.issued.pop(id_, None)
            if outcome == NONE and member is not None:
                self._gone(member, "left", exchange.res_us)
                if member.instance_id is not None:
                    self.instances.pop(member.instance_id, None)
        self.changed = True
        return NOTHING

    def _commit_answered(self, exchange: Exchange, body: Any) -> tuple[Happening, ...]:
        codes = {partition.error_code for topic in body.topics for partition in topic.partitions}
        codes -= _NOT_FROM_COORDINATOR
        if codes & COORDINATOR_MOVES:
            exchange.error = min(codes & COORDINATOR_MOVES)
            return self._coordinator_moves(exchange)
        for error in (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID):
            if error in codes:
                exchange.error = error
                return self._refuse(exchange, error) if exchange.generation >= 0 else NOTHING
        if NONE not in codes or not exchange.member_id or exchange.generation < 0:
            return NOTHING
        newest = self.round
        if newest is not None and newest.generation == exchange.generation and exchange.member_id in (newest.roster or ()):
            return NOTHING
        self._accepted(exchange)
        return (Accepted(exchange),)

    def _delete_answered(self, exchange: Exchange, body: Any) -> tuple[Happening, ...]:
        for result in body.results:
            if result.group_id == self.name and result.error_code == NONE:
                self.deleted_us = exchange.res_us  # the rounds stay: the next one is explained by it
                self.members.clear()
                self.instances.clear()
                self.issued.clear()
                self._saw(Seen.DELETED, exchange.res_us)
        return NOTHING

    def _watched_only(self, exchange: Exchange, body: Any) -> tuple[Happening, ...]:  # noqa: ARG002
        return NOTHING


# ---------------------------------------------------------------------------------------------------- reading requests


def _read_member(exchange: Exchange, body: Any) -> None:
    exchange.member_id = body.member_id
    exchange.generation = body.generation_id
    exchange.instance_id = body.group_instance_id


def _read_join(exchange: Exchange, body: Any) -> None:
    exchange.member_id = body.member_id
    exchange.instance_id = body.group_instance_id
    digest = blake2s(digest_size=8)
    for protocol in body.protocols:
        for part in (protocol.name.encode(), protocol.metadata):
            digest.update(len(part).to_bytes(4, "big"))
            digest.update(part)
    rebalance_timeout_ms = body.rebalance_timeout_ms if exchange.api_version >= 1 else body.session_timeout_ms
    exchange.ask = JoinAsk(
        body.session_timeout_ms,
        rebalance_timeout_ms,
        body.protocol_type,
        tuple(protocol.name for protocol in body.protocols),
        digest.digest(),
        body.reason or "",
    )


def _read_sync(exchange: Exchange, body: Any) -> None:
    _read_member(exchange, body)
    idle = tuple(entry.member_id for entry in body.assignments if len(entry.assignment) <= IDLE_ASSIGNMENT_BYTES)
    exchange.ask = SyncAsk(len(body.assignments), idle, body.protocol_type, body.protocol_name)


def _read_leave(exchange: Exchange, body: Any) -> None:
    named = [(entry.member_id, entry.group_instance_id) for entry in body.members]
    if exchange.api_version < 3:  # LeaveGroup v0-2 names one member (KIP-345 made it a list)
        named = [(body.member_id, None)]
    exchange.ask = LeaveAsk(tuple(named), tuple(entry.reason or "" for entry in body.members))


def _read_commit(exchange: Exchange, body: Any) -> None:
    exchange.member_id = body.member_id
    exchange.generation = body.generation_id_or_member_epoch
    exchange.instance_id = body.group_instance_id


def _read_nothing(exchange: Exchange, body: Any) -> None:
    """A request whose answer matters, not what it asks."""


_ASKS: Final = {
    JOIN_GROUP: _read_join,
    SYNC_GROUP: _read_sync,
    HEARTBEAT: _read_member,
    LEAVE_GROUP: _read_leave,
    OFFSET_COMMIT: _read_commit,
    TXN_OFFSET_COMMIT: _read_commit,
    FIND_COORDINATOR: _read_nothing,
    DELETE_GROUPS: _read_nothing,
}
MODELLED_API_KEYS: Final = frozenset(_ASKS)
_WATCHES_OF: Final = {key: attrgetter(*(name for name, api_keys in WATCHES if key in api_keys)) for key in MODELLED_API_KEYS}
_ON_REQUEST: Final = {
    JOIN_GROUP: ClassicGroup._join_asked,  # noqa: SLF001
    SYNC_GROUP: ClassicGroup._sync_asked,  # noqa: SLF001
    HEARTBEAT: ClassicGroup._heartbeat_asked,  # noqa: SLF001
    LEAVE_GROUP: ClassicGroup._leave_asked,  # noqa: SLF001
}
_ON_RESPONSE: Final = {
    JOIN_GROUP: ClassicGroup._join_answered,  # noqa: SLF001
    SYNC_GROUP: ClassicGroup._sync_answered,  # noqa: SLF001
    HEARTBEAT: ClassicGroup._heartbeat_answered,  # noqa: SLF001
    LEAVE_GROUP: ClassicGroup._leave_answered,  # noqa: SLF001
    OFFSET_COMMIT: ClassicGroup._commit_answered,  # noqa: SLF001
    TXN_OFFSET_COMMIT: ClassicGroup._watched_only,  # noqa: SLF001
    FIND_COORDINATOR: ClassicGroup._watched_only,  # noqa: SLF001
    DELETE_GROUPS: ClassicGroup._delete_answered,  # noqa: SLF001
}
