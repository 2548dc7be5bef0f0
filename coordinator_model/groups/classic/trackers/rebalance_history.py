"""Tracker of rebalances: who started them, how long the group was not Stable, which members did not take part.

*The start of a join phase is no frame*: it is taken to be the first frame that can have caused it, and without one the cause stays
unknown. *A rebalance from Empty is harmless*, however often it happens. *A client that disconnects while its JoinGroup is parked
remains a member*: the coordinator does not read from a connection that waits, so it neither notices nor lets the session run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.events import (
    LEADER_REJOINED,
    MEMBER_LEFT,
    NOT_SEEN,
    PARTITIONS_ADDED,
    REMOVED,
    SAME_TOPICS,
    TOPIC_DELETED,
    TOPIC_MADE_ANEW,
    State,
)
from coordinator_model.groups.classic.trackers.rebalance_causes import (
    cause_seen_late,
    expired_member,
    find_starter,
    had_members,
    is_still_connected,
    leaver,
    would_start,
)
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.protocol.classic import TWO_STEP_JOIN_SINCE
from coordinator_model.groups.rebalance import LONG_US, MINUTE_US, NO_STARTER, Starter
from coordinator_model.groups.records import AbandonedRequest, Exchange, Generation, JoinFacts, LeaveFacts, Member
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import (
    COORDINATOR_MOVES,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    NONE,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

API_KEYS: Final = frozenset({FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP})

TRIES_SPAN_US: Final = 10_000_000  #: clients find an available coordinator sooner than this
TOPIC_SETS_KEPT: Final = 6
OTHERS_KEPT: Final = 8
ALSO_KEPT: Final = 4


class Rebalanced(NamedTuple):
    """A group that had members before has a new generation."""

    exchange: Exchange
    newest: Generation


class Settled(NamedTuple):
    """The first assignment of a generation was delivered."""

    exchange: Exchange
    newest: Generation


class JoinedUnsynced(NamedTuple):
    """A member joined another generation without a SyncGroup for the one before."""

    exchange: Exchange
    member: Member
    times: int


class SubscriptionAlternated(NamedTuple):
    """A member subscribed to other topics than in its previous JoinGroup."""

    exchange: Exchange
    member: Member
    changes: int
    distinct: int


class NotRecovered(NamedTuple):
    """A known client still looks for the coordinator, long after it went away, and no client was accepted since."""

    exchange: Exchange
    since_us: int
    patience_us: int


class RebalanceHistory(Stored):
    """Who begins the rebalances of one group, and how long it is not Stable."""

    generation: int | None = None  #: the newest one recorded
    trigger: Starter | None = None  #: of the next generation
    minutes: tuple[tuple[int, int, int], ...] = ()  #: (minute, microseconds outside Stable, rebalances completed)
    busy_since_us: int | None = None  #: outside Stable since then, as far as proven
    counted_us: int = 0  #: time outside Stable is counted up to here
    birth_us: int | None = None  #: effective time of the first JoinGroup of generation 1
    unsynced: dict[str, int] = {}  #: member id → generations that it joined without a SyncGroup in between
    topic_sets: dict[str, tuple[tuple[int, bytes], ...]] = {}  #: member id → (time, digest) of each change
    nameless: dict[str, AbandonedRequest] = {}  #: group instance id → a first JoinGroup whose connection ended
    incarnation: int = 1
    moved_us: int | None = None  #: when the coordinator last went away, until a client is accepted again
    tried_us: tuple[int, int] = (0, 0)  #: first and last time at which known clients looked for it, without a long pause
    counted: int | None = None  #: newest generation counted among the group's rebalances
    finished: Starter = NO_STARTER  #: of that generation, with the cause under which it was counted
    also: tuple[Starter, ...] = ()  #: others that would have begun the next generation
    starter: Starter = NO_STARTER  #: of the newest one recorded
    others: tuple[Starter, ...] = ()  #: that would have begun it

    # ------------------------------------------------------------------------------------------------ frames

    def on_request(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG002
        api_key = exchange.api_key
        if api_key == FIND_COORDINATOR:
            return self._tries_on(group, exchange)
        member = group.members.get(exchange.member_id)
        if member is not None:
            member.abandoned_request = None
        if api_key == JOIN_GROUP:
            return self._join_asked(group, exchange, member)
        if api_key == SYNC_GROUP:
            self.unsynced.pop(exchange.member_id, None)
            self._assigned(group, exchange)
        else:  # LeaveGroup: trackers get no Heartbeat requests
            self._leave_asked(group, exchange)
        return NOTHING

    def on_response(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        api_key, error = exchange.api_key, exchange.error
        if error in COORDINATOR_MOVES:
            return self._tries_on(group, exchange)
        if api_key == JOIN_GROUP and error == NONE and group.newest_generation is not None:
            return self._joined(group, exchange, body, group.newest_generation)
        if api_key == SYNC_GROUP and error == NONE and group.newest_generation is not None:
            return self._synced(exchange, group.newest_generation)
        if error == REBALANCE_IN_PROGRESS:
            self._rejoin_asked(group, exchange)
        elif api_key == LEAVE_GROUP and error == NONE:
            self._left(group, exchange)
        elif error:
            self.also = tuple(one for one in self.also if not _is_of(one, exchange))
            if self.trigger is not None and _is_of(self.trigger, exchange):
                self.trigger = None  # refused: it started nothing
        return NOTHING

    def on_abandoned(self, group: GroupData, exchange: Exchange, at_us: int) -> None:
        """Process the end of the connection on which this request waited for its response."""
        if exchange.api_key not in {JOIN_GROUP, SYNC_GROUP} or exchange.superseded or not exchange.gap_free:
            return
        abandoned_request = self._abandoned(exchange, at_us)
        member = group.members.get(exchange.member_id)
        if member is not None:
            if exchange.key in {member.parked_join, member.parked_sync}:
                _note_abandoned(member, abandoned_request)
        elif exchange.instance_id is not None and not exchange.member_id:
            self.nameless = dict([*self.nameless.items(), (exchange.instance_id, abandoned_request)][-OTHERS_KEPT:])

    @staticmethod
    def on_unseen(group: GroupData, connection: str, at_us: int) -> bool:
        """Note that a SyncGroup of this connection may wait, which is not reported before it is answered.

        :return: False if something else may wait, which could change the group.
        """
        newest = group.newest_generation
        asks = [member for member in group.present_members() if member.actor.connection == connection]
        if newest is None or newest.unsettled_us or newest.sync_done_us is not None or len(asks) != 1:
            return False
        [member] = asks
        received = member.joined_frame if member.joined == newest.generation else None
        if received is None or member.id == newest.leader or member.synced == newest.generation:
            return False
        member.synced = newest.generation  # which is not to be missed
        member.abandoned_request = AbandonedRequest(
            SYNC_GROUP, at_us, member.instance_id, member.session_timeout_ms, member.rebalance_timeout_ms, member.actor, received
        )
        return True

    def on_late_join(self, group: GroupData, exchange: Exchange, member_id: str) -> None:
        """Note which id a JoinGroup got whose client had hung up: one that is left behind, unless the client uses it."""
        member = group.members.get(member_id)
        if member is None:
            member = group.members[member_id] = Member(member_id)
        if not exchange.member_id and not member.last_frame:
            member.actor, member.disconnected_us = exchange.actor, exchange.connection_closed_us or exchange.res_us
            member.last_api, member.last_frame_us = JOIN_GROUP, exchange.inv_us
            _note_abandoned(member, self._abandoned(exchange, member.disconnected_us))

    def on_gap(self, group: GroupData) -> None:
        """Drop what may have changed unseen, such as generations. What was counted stays."""
        self.generation = self.trigger = self.busy_since_us = self.birth_us = None
        self.also = ()
        self.unsynced = {}
        if group.incarnation != self.incarnation:
            self.incarnation = group.incarnation
            self.moved_us = group.last_record_us

    def begin_life(self) -> None:
        """Note that generations count from the first again. Who began the one that is new is known."""
        self.generation = self.counted = self.busy_since_us = self.birth_us = None
        self.unsynced = {}

    # ------------------------------------------------------------------------------------------------ queries

    def given_up_by(self, group: GroupData, member: Member) -> AbandonedRequest | None:
        """Return the JoinGroup that the client of a member gave up before the newest generation was complete, None if it gave up none.

        Before v4 the coordinator takes a client in at once, under an id that begins with the client's. If its answer was not captured, the
        member list shows such an id, and no frame uses it.
        """
        if member.abandoned_request is not None or member.last_frame or member.joined is not None:
            return member.abandoned_request
        since_us = group.generations[-2].proven_us if len(group.generations) > 1 else 0
        for exchange in group.given_up.values():
            began = f"{exchange.actor.client_id}-"
            unnamed = not exchange.member_id and exchange.api_version < TWO_STEP_JOIN_SINCE
            if unnamed and member.id.startswith(began) and (exchange.connection_closed_us or 0) > since_us:
                return self._abandoned(exchange, exchange.connection_closed_us or 0)
        return None

    def rebalanced_within(self, window_us: int, now_us: int) -> int:
        """Return the number of rebalances completed in the last ``window_us``, to the minute."""
        return sum(rebalances for minute, _, rebalances in self.minutes if minute > (now_us - window_us) // MINUTE_US)

    def busy_us(self, now_us: int) -> int:
        """Return for how many microseconds, at least, the group was not Stable in the last 15 minutes."""
        return sum(busy_us for minute, busy_us, _ in self.minutes if minute > (now_us - LONG_US) // MINUTE_US)

    # ------------------------------------------------------------------------------------------------ JoinGroup, LeaveGroup

    def _join_asked(self, group: GroupData, exchange: Exchange, member: Member | None) -> tuple[Event, ...]:
        assert isinstance(exchange.facts, JoinFacts)
        topics = exchange.facts.topics
        if exchange.instance_id is not None and not exchange.member_id:
            self.nameless = {
                id_: abandoned_request for id_, abandoned_request in self.nameless.items() if id_ != exchange.instance_id
            }
        begins = exchange.starts_phase and group.state_since_us == exchange.inv_us
        if group.state in {State.EMPTY, State.DEAD} or (begins and not any(group.present_members())):
            self.trigger, self.also = None, ()  # of the phase that the last members had begun
        if exchange.starts_phase and self.trigger is None:
            self.trigger = find_starter(group, exchange, member)
        elif self.trigger is not None:
            self._add(would_start(group, exchange, member))
        if member is None:
            return NOTHING
        if member.joined is not None and member.synced != member.joined and is_still_connected(group, member):
            self.unsynced[member.id] = self.unsynced.get(member.id, 0) + 1
        else:
            self.unsynced.pop(member.id, None)
        had, member.topics = member.topics, topics
        return self._changed_topics(exchange, member, had) if topics and had and topics != had else NOTHING

    def _changed_topics(self, exchange: Exchange, member: Member, had: bytes) -> tuple[Event, ...]:
        known = [entry for entry in self.topic_sets.get(member.id, ()) if exchange.inv_us - entry[0] <= LONG_US]
        known = [*(known or [(exchange.inv_us, had)]), (exchange.inv_us, member.topics)][-TOPIC_SETS_KEPT:]
        others = {id_: entries for id_, entries in self.topic_sets.items() if id_ != member.id}
        self.topic_sets = dict([*others.items(), (member.id, tuple(known))][-OTHERS_KEPT:])
        return (SubscriptionAlternated(exchange, member, len(known) - 1, len({digest for _, digest in known})),)

    def _leave_asked(self, group: GroupData, exchange: Exchange) -> None:
        assert isinstance(exchange.facts, LeaveFacts)
        for index, (id_, instance_id) in enumerate(exchange.facts.members):
            holder = group.instances.get(instance_id) if instance_id is not None and not id_ else None
            member = group.members.get(holder.member_id if holder is not None else id_)
            if member is None:
                continue
            member.abandoned_request = None
            if not member.present:
                continue
            left = leaver(group, exchange, member, exchange.facts.reasons[index] if exchange.facts.reasons else "")
            if self.trigger is None:
                self.trigger = left
            elif left.cause == MEMBER_LEFT:
                self._add(left)

    def _left(self, group: GroupData, exchange: Exchange) -> None:
        """Process a granted LeaveGroup: it began the join phase that begins now, whatever else was asked before and is not answered."""
        trigger, current = self.trigger, group.rebalances.current
        if trigger is None or trigger.cause not in {MEMBER_LEFT, REMOVED} or (current is not None and current.generation is None):
            return
        granted = next((one for one in self.also if _is_of(one, exchange)), None)
        if granted is not None and not _is_of(trigger, exchange):
            self.trigger, self.also = granted, (trigger, *(one for one in self.also if one is not granted))

    def _add(self, starter: Starter | None) -> None:
        """Note who would have begun a join phase that others have begun."""
        if starter is not None and not any(starter.is_same(known) for known in (self.trigger, *self.also) if known is not None):
            self.also = (*self.also, starter)[:ALSO_KEPT]

    def _rejoin_asked(self, group: GroupData, exchange: Exchange) -> None:
        newest, member = group.newest_generation, group.members.get(exchange.member_id)
        if exchange.api_key == SYNC_GROUP and member is not None and not group.parked(member):
            _note_abandoned(member, self._abandoned(exchange, exchange.res_us))
        if newest is None or newest.generation != exchange.generation or exchange.effective_us <= newest.proven_us:
            return  # of an earlier phase
        if self.trigger is None:
            self.trigger = expired_member(group, newest, exchange.res_us) or NO_STARTER

    def _joined(self, group: GroupData, exchange: Exchange, body: Any, newest: Generation) -> tuple[Event, ...]:
        if body.generation_id != newest.generation:
            return NOTHING  # a response of an earlier generation, captured late
        events: tuple[Event, ...] = NOTHING
        if newest.generation != self.generation:
            events = self._completed(group, exchange, newest)
        elif exchange.effective_us < newest.proven_us:  # it waited for the same completion
            began_us = max(exchange.effective_us, self.counted_us)
            if self.busy_since_us is not None:
                self.busy_since_us = min(self.busy_since_us, began_us)
            if self.birth_us is not None and newest.generation == 1:
                self.birth_us = min(self.birth_us, exchange.effective_us)
        if body.members:
            self._name_abandoned(group, newest)
        times = self.unsynced.get(body.member_id, 0)
        if times:
            events += (JoinedUnsynced(exchange, group.members[body.member_id], times + 1),)
        return events

    def _completed(self, group: GroupData, exchange: Exchange, newest: Generation) -> tuple[Event, ...]:
        self.starter, self.trigger, self.others, self.also = self.trigger or NO_STARTER, None, self.also, ()
        if newest.generation != self.counted or self.starter.cause != NOT_SEEN:
            # Else frames were lost between two responses of one generation. Whose beginning was seen is another of that number.
            cause = cause_seen_late(group, exchange) if self.starter.cause == NOT_SEEN else self.starter.cause
            group.causes[cause] = group.causes.get(cause, 0) + 1
            self.finished = self.starter._replace(cause=cause)
        self.generation = self.counted = newest.generation
        self.moved_us = None
        if newest.generation == 1:
            self.birth_us = exchange.effective_us
        if not had_members(group):
            self.busy_since_us = None
            return NOTHING
        if self.busy_since_us is None:
            self.busy_since_us = max(exchange.effective_us, self.counted_us)
        else:  # the generation before never became stable
            self._count_busy(self.busy_since_us, newest.proven_us)
            self.busy_since_us = self.counted_us
        self._count(newest.proven_us // MINUTE_US, 0, 1)
        return (Rebalanced(exchange, newest),)

    def _assigned(self, group: GroupData, exchange: Exchange) -> None:
        """Process a SyncGroup request: an assignment with partitions that no plan had before shows why its leader rejoined.

        So does one without a topic that was assigned before and, as Metadata answers show, does not exist any more, or exists again.
        """
        newest, starter = group.newest_generation, self.finished
        if newest is None or newest.generation != self.counted or newest.leader != exchange.member_id:
            return
        gone = group.generations[-2].deleted if len(group.generations) > 1 else ()
        is_back = any(not group.facts.is_deleted(group.cluster, topic) for topic in gone)
        cause = PARTITIONS_ADDED if newest.grown else TOPIC_DELETED if newest.deleted else TOPIC_MADE_ANEW if is_back else ""
        if not cause:
            return
        if starter.member_id != newest.leader or starter.cause not in {LEADER_REJOINED, SAME_TOPICS}:
            return
        group.correct_cause(starter.cause, cause)
        self.starter = self.finished = starter._replace(cause=cause)

    def _name_abandoned(self, group: GroupData, newest: Generation) -> None:
        """Assign abandoned requests without a member id: the roster now shows which ids their static members got."""
        for id_, instance_id in (newest.roster or {}).items():
            abandoned_request = self.nameless.get(instance_id) if instance_id is not None else None
            member = group.members.get(id_)
            if abandoned_request is not None and member is not None and member.joined != newest.generation:
                _note_abandoned(member, abandoned_request)
        self.nameless = {}

    def _synced(self, exchange: Exchange, newest: Generation) -> tuple[Event, ...]:
        first = newest.generation == exchange.generation == self.generation and newest.sync_done_us == exchange.res_us
        if not first:
            return NOTHING
        if self.busy_since_us is not None:
            self._count_busy(self.busy_since_us, exchange.res_us)
        self.busy_since_us = None
        self.counted_us = exchange.res_us
        return (Settled(exchange, newest),)

    # ------------------------------------------------------------------------------------------------ helpers

    def _tries_on(self, group: GroupData, exchange: Exchange) -> tuple[Event, ...]:
        """Process a client's search for the coordinator, or its refusal by a broker that is not; return an event if it takes too long."""
        if self.moved_us is None or group.settled:
            self.moved_us = None
            return NOTHING
        known = [member for member in group.members.values() if member.removed is None and member.session_timeout_ms is not None]
        names = {member.actor.client_id for member in known}
        if not known or (exchange.member_id not in group.members and exchange.actor.client_id not in names):
            return NOTHING
        longest_ms = max(max(member.session_timeout_ms or 0, member.rebalance_timeout_ms or 0) for member in known)
        timeout_ms = group.settings.bounded_ms(longest_ms)
        patience_us = timeout_ms * 1_000 + group.settings.slack_us(timeout_ms)
        now_us = max(exchange.inv_us, exchange.res_us)
        since_us, until_us = self.tried_us
        since_us = since_us if now_us - until_us < TRIES_SPAN_US else now_us
        self.tried_us = (since_us, now_us)
        if now_us - self.moved_us <= patience_us or now_us - since_us < TRIES_SPAN_US or any(group.waiting_joins()):
            return NOTHING  # a client that comes back late, or a waiting JoinGroup, may still be accepted
        return (NotRecovered(exchange, self.moved_us, patience_us),)

    @staticmethod
    def _abandoned(exchange: Exchange, at_us: int) -> AbandonedRequest:
        ask = exchange.facts if isinstance(exchange.facts, JoinFacts) else None
        return AbandonedRequest(
            exchange.api_key,
            at_us,
            exchange.instance_id,
            ask.session_timeout_ms if ask is not None else None,
            ask.rebalance_timeout_ms if ask is not None else None,
            exchange.actor,
            request_evidence(exchange),
        )

    def _count_busy(self, since_us: int, until_us: int) -> None:
        self.counted_us = until_us
        since_us = max(since_us, until_us - LONG_US)
        while since_us < until_us:
            minute = since_us // MINUTE_US
            end_us = min(until_us, (minute + 1) * MINUTE_US)
            self._count(minute, end_us - since_us, 0)
            since_us = end_us

    def _count(self, minute: int, busy_us: int, rebalances: int) -> None:
        known = {entry[0]: entry for entry in self.minutes if entry[0] > minute - LONG_US // MINUTE_US}
        _, busy_before_us, rebalances_before = known.get(minute, (minute, 0, 0))
        known[minute] = (minute, busy_before_us + busy_us, rebalances_before + rebalances)
        self.minutes = tuple(sorted(known.values()))


def _is_of(starter: Starter, exchange: Exchange) -> bool:
    """Return True if this exchange is what makes it one that began a rebalance."""
    return starter.frame is not None and (starter.frame.connection, starter.frame.exchange) == exchange.key


def _note_abandoned(member: Member, abandoned_request: AbandonedRequest) -> None:
    member.abandoned_request = abandoned_request
    if member.session_timeout_ms is None:
        member.session_timeout_ms = abandoned_request.session_timeout_ms
    if member.rebalance_timeout_ms is None:
        member.rebalance_timeout_ms = abandoned_request.rebalance_timeout_ms
