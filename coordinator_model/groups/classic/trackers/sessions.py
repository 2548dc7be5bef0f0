"""Tracker of sessions, and of how quickly the coordinator responds.

Successful heartbeats arrive here only if a number is unusual. What all of them change is kept in ``ClassicGroup``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.events import SLOW_US, Slow, Throttled
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.records import ClientInfo, Exchange, Generation, JoinFacts, LeaveFacts, Member, Removed
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import (
    FIND_COORDINATOR,
    HEARTBEAT,
    INVALID_SESSION_TIMEOUT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

API_KEYS: Final = frozenset({FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP})

SLOW_WINDOW_US: Final = 60_000_000
SLOW_TIMES: Final = 3
USUAL_INTERVAL_US: Final = 3_000_000  #: default heartbeat.interval.ms, for a member whose own is not known
LEFT_KEPT: Final = 8
PAUSES_WINDOW_US: Final = 900_000_000
PAUSES_KEPT: Final = 4  #: per member
PAUSING_KEPT: Final = 16  #: members
IDS_KEPT: Final = 64
LONG_JOIN_US: Final = 1_000_000
THIN_SHARE: Final = 0.8  #: of the session timeout: after a longer pause one lost heartbeat ends the session


class Left(NamedTuple):
    """A member left without a reason, longer after its last join than two polls may be apart."""

    actor: ClientInfo
    member_id: str
    instance_id: str | None
    generation: int | None
    held_us: int  #: since its last join
    frame: Evidence
    waiting: int = 0  #: number of JoinGroups that the coordinator held then
    waiting_since_us: int = 0
    at_us: int = 0
    topics: bytes = b""  #: digest of those that it subscribed to; empty if that was not seen


class ThinMargin(NamedTuple):
    """More than four fifths of a member's session timeout passed before a Heartbeat without any other request of it."""

    exchange: Exchange
    member: Member
    gaps_us: tuple[int, ...]  #: the latest such pauses of this member within :data:`PAUSES_WINDOW_US`, including this one


class Survived(NamedTuple):
    """A member was accepted although its session had certainly expired."""

    exchange: Exchange
    member: Member


class Evicted(NamedTuple):
    """A member in sync got UNKNOWN_MEMBER_ID in a stable group, within its session timeout."""

    exchange: Exchange
    member: Member
    silence_us: int


class PollTimeout(NamedTuple):
    """A LeaveGroup with the reason that the application polled too rarely."""

    exchange: Exchange
    member: Member | None
    member_id: str
    reason: str


class CameBack(NamedTuple):
    """A client that left without a reason sends a JoinGroup on the same connection."""

    exchange: Exchange
    left: Left


class SessionRefused(NamedTuple):
    """A JoinGroup was refused for its session timeout."""

    exchange: Exchange


class Sessions(Stored):
    """Unusual facts about the sessions of one group."""

    left: dict[str, Left] = {}  #: connection → the member that left on it and has not closed it yet
    slow_since_us: int = 0
    slow_times: int = 0  #: slow responses since then
    pauses: dict[str, tuple[tuple[int, int], ...]] = {}
    #: member id → (end, microseconds) of its latest pauses that nearly ended its session
    returns: dict[str, tuple[int, ...]] = {}  #: member id → times at which its client came back after a crash
    succeeded: tuple[str, ...] = ()  #: ids whose process ended without a LeaveGroup, and whose client has come back since
    searches: tuple[tuple[str | None, str, int, int], ...] = ()
    #: client id, host and time of each client's last FindCoordinator, and when its connection had its last answer before; 0 if none

    long_joins: dict[str, int] = {}  #: member id → for how long the JoinGroup waited that succeeded last, if for more than a second

    def on_request(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG002
        if exchange.api_key == FIND_COORDINATOR:
            client = exchange.actor.named
            others = [known for known in self.searches if known[:2] != client]
            before_us = group.connections[exchange.key[0]].last_response_us
            self.searches = (*others[1 - IDS_KEPT :], (*client, exchange.inv_us, before_us))
            if not before_us:
                group.recurring.on_start(exchange)
            return NOTHING
        if exchange.api_key == LEAVE_GROUP:
            return self._leave_asked(group, exchange)
        if exchange.api_key == JOIN_GROUP:
            left = self.left.get(exchange.actor.connection)
            if left is not None:
                self.on_disconnect(exchange.actor.connection)
                if not exchange.member_id and not _resubscribes(left, exchange):
                    return (CameBack(exchange, left),)
        return NOTHING

    def on_response(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        """Process a response; return its events. Successful heartbeats arrive only if slow, throttled or late."""
        api_key, error = exchange.api_key, exchange.error
        events: tuple[Event, ...] = NOTHING
        if api_key == FIND_COORDINATOR:
            return NOTHING
        member = group.members.get(exchange.member_id)
        if body.throttle_time_ms:
            interval_us = (member.heartbeat_interval_us if member is not None else 0) or USUAL_INTERVAL_US
            if body.throttle_time_ms * 1_000 > interval_us:
                events += (Throttled(exchange, body.throttle_time_ms, interval_us),)
        elif api_key in {HEARTBEAT, LEAVE_GROUP} and not exchange.queued_behind and exchange.res_us - exchange.inv_us > SLOW_US:
            events += (self._slow(exchange),)
        if api_key == JOIN_GROUP and not error:
            self._joined(body.member_id, exchange.res_us - exchange.inv_us)
        if api_key == JOIN_GROUP and error == INVALID_SESSION_TIMEOUT:
            events += (SessionRefused(exchange),)
        if exchange.silence_us and exchange.gap_free and member is not None and group.phases_proven_by(exchange):
            events += (Survived(exchange, member),)
        return events

    def _joined(self, member_id: str, waited_us: int) -> None:
        if member_id in self.long_joins or waited_us > LONG_JOIN_US:
            others = [(id_, us) for id_, us in self.long_joins.items() if id_ != member_id]
            self.long_joins = dict([*others, (member_id, waited_us)][-IDS_KEPT:])

    def on_disconnect(self, connection: str) -> None:
        """Drop what is kept of a connection that ended."""
        if connection in self.left:
            self.left = {other: left for other, left in self.left.items() if other != connection}

    def on_gap(self, group: GroupData) -> None:
        """Drop what may have changed unseen: clients may have come back, and pauses may be lost frames."""
        self.left, self.pauses = {}, {}
        dead = (member.id for member in group.members.values() if hung_up_since(group, member) is not None)
        self.succeeded = tuple(dict.fromkeys((*self.succeeded, *dead)))[-IDS_KEPT:]

    def thin_margin(self, group: GroupData, exchange: Exchange, member: Member) -> tuple[Event, ...]:
        """Return an event if a late Heartbeat nearly ended the session. Call this before the Heartbeat is noted."""
        assert member.session_timeout_ms is not None
        if not member.present or group.parked(member):
            return NOTHING
        newest = group.newest_generation
        synced_us = newest.sync_done_us or 0 if newest is not None else 0
        if member.disconnected_us >= member.last_frame_us:
            return NOTHING  # its connection ended, so it could not send a Heartbeat
        gap_us = exchange.inv_us - max(member.last_frame_us, member.joined_us, synced_us, group.covered_since_us)
        if gap_us <= member.session_timeout_ms * 1_000 * THIN_SHARE:
            return NOTHING
        return (self._paused(exchange, member, gap_us),)

    def _paused(self, exchange: Exchange, member: Member, gap_us: int) -> ThinMargin:
        """Note a pause that nearly ended a member's session; return the event."""
        since_us = exchange.inv_us - PAUSES_WINDOW_US
        known = [pause for pause in self.pauses.get(member.id, ()) if pause[0] > since_us]
        latest = (*known, (exchange.inv_us, gap_us))[-PAUSES_KEPT:]
        others = [(id_, pauses) for id_, pauses in self.pauses.items() if id_ != member.id]
        self.pauses = dict([*others, (member.id, latest)][-PAUSING_KEPT:])
        return ThinMargin(exchange, member, tuple(gap for _, gap in latest))

    def evicted_early(self, group: GroupData, exchange: Exchange, member: Member) -> tuple[Event, ...]:
        """Return an event if nothing lawful explains UNKNOWN_MEMBER_ID for ``member``. Call this before the group processes the refusal."""
        newest = group.newest_generation
        if newest is None or newest.generation != exchange.generation or not self.surely_stays(group, exchange, member):
            return NOTHING
        return (Evicted(exchange, member, exchange.res_us - _restarted_us(newest, member)),)

    def surely_stays(self, group: GroupData, exchange: Exchange, member: Member) -> bool:
        """Return True if nothing lawful can have removed ``member`` before the answer of the exchange."""
        newest = group.newest_generation
        if newest is None or newest.roster is None or member.id not in newest.roster:
            return False
        in_sync = member.in_sync == newest.generation and newest.sync_done_us and not newest.unsettled_us
        if not in_sync or not member.present or member.leaving or member.session_timeout_ms is None or member.proven_us is None:
            return False
        if self._answered_slowly(exchange.res_us - member.session_timeout_ms * 1_000):
            return False  # the session was restarted at any time between a request and its late answer
        silence_us = exchange.res_us - _restarted_us(newest, member) + _waited_us(group, newest, member)
        if silence_us >= member.session_timeout_ms * 1_000 - group.settings.slack_us(member.session_timeout_ms):
            return False
        instance = group.instances.get(member.instance_id) if member.instance_id is not None else None
        if instance is not None and instance.replacements and not instance.settled_us:
            return False  # brokers before 2.6.1 lose a replacement when they load the group again, until a SyncGroup writes it
        if any(effect.since_us >= newest.proven_us or effect.lost_us for effect in group.possible(exchange, newest.proven_us)):
            return False  # a join phase may have come and gone
        roster = [group.members.get(id_) for id_ in newest.roster]
        if not all(other is not None and other.last_frame for other in roster):
            return False  # frames of some members are not captured, so their requests may explain it
        joined_on = {other.joined_frame.connection for other in roster if other is not None and other.joined_frame is not None}
        return any(connection in group.connections for connection in joined_on)  # else the broker may have been restarted

    def _leave_asked(self, group: GroupData, exchange: Exchange) -> tuple[Event, ...]:
        assert isinstance(exchange.facts, LeaveFacts)
        events: tuple[Event, ...] = NOTHING
        reasons = exchange.facts.reasons or ("",)
        for (id_, instance_id), reason in zip(exchange.facts.members, reasons, strict=False):
            member = group.members.get(id_)
            if member is not None and group.may_have_expired(member, exchange.inv_us):
                continue  # its session ended first: the whole process stood still, not its poll loop alone
            if names_poll_timeout(reason):
                events += (PollTimeout(exchange, member, id_ or instance_id or "", reason),)
            elif not reason and member is not None and member.present and member.leaving and member.rebalance_timeout_ms:
                held_us = exchange.inv_us - member.joined_us
                if held_us >= member.rebalance_timeout_ms * 1_000:
                    frame = request_evidence(exchange)
                    joined, waiting = member.joined, held_joins(group)
                    left = Left(
                        exchange.actor, id_, member.instance_id, joined, held_us, frame, *waiting, exchange.inv_us, member.topics
                    )
                    self.left = dict([*self.left.items(), (exchange.actor.connection, left)][-LEFT_KEPT:])
        return events

    def _answered_slowly(self, since_us: int) -> bool:
        """Return True if the answer to a Heartbeat or LeaveGroup may have come late since then."""
        return bool(self.slow_since_us) and self.slow_since_us + SLOW_WINDOW_US >= since_us

    def _slow(self, exchange: Exchange) -> Slow:
        if exchange.res_us - self.slow_since_us > SLOW_WINDOW_US:
            self.slow_since_us, self.slow_times = exchange.res_us, 0
        self.slow_times += 1
        return Slow(exchange, exchange.res_us - exchange.inv_us, self.slow_times)


def _resubscribes(left: Left, exchange: Exchange) -> bool:
    """Return True if the client comes back for other topics: some leave to change their subscription."""
    assert isinstance(exchange.facts, JoinFacts)
    topics = exchange.facts.topics
    return bool(topics and left.topics) and topics != left.topics


def hung_up_since(group: GroupData, member: Member) -> int | None:
    """Return when the member's last connection ended without a LeaveGroup before, None if it did not."""
    if not member.disconnected_us or member.disconnected_us < member.last_frame_us or member.actor.connection in group.connections:
        return None
    return None if member.leaving or member.removed == Removed.LEFT else member.disconnected_us


def has_come_again(group: GroupData, member_id: str, client: tuple[str | None, str], since_us: int) -> bool:
    """Return True if a client, by id and host, has joined since then under another member id."""
    return any(
        other.id != member_id and other.joined_us > since_us and other.actor.named == client for other in group.members.values()
    )


def held_joins(group: GroupData) -> tuple[int, int]:
    """Return the number of JoinGroups that the coordinator holds, and since when it holds the oldest; (0, 0) if it holds none."""
    since_us = [one.effective_us for one in group.waiting_joins() if one.effective_us >= 0 and not one.queued_behind]
    return len(since_us), min(since_us, default=0)


def _restarted_us(newest: Generation, member: Member) -> int:
    """Return when the coordinator last restarted a member's session, as far as that is certain.

    The end of a join phase restarts it, and so does a Heartbeat. A JoinGroup that is answered at once does not, and a SyncGroup that finds
    the group stable does only before Kafka 4.0: a member that was accepted by these last may have been silent since the join phase.
    """
    assert member.proven_us is not None
    return member.proven_us if member.proven_us > max(member.synced_us, member.joined_us) else newest.proven_us


def _waited_us(group: GroupData, newest: Generation, member: Member) -> int:
    """Return for how long a member's session may have run already when its JoinGroup was answered.

    A static member that takes its place over in a generation is answered when that is replicated. Whether it did is not known of a
    generation that may be older than the join.
    """
    may_be_older = len(group.generations) == 1 and (newest.generation, group.incarnation) != (1, 1)
    accepted_since = (member.proven_us or 0) > max(member.synced_us, member.joined_us)
    return (group.join_took_us or 0) if may_be_older and member.instance_id is not None and not accepted_since else 0


def names_poll_timeout(reason: str) -> bool:
    """Return True if a client that left gives a poll timeout as its reason."""
    words = reason.lower()
    return "poll" in words and ("timeout" in words or "interval" in words)
