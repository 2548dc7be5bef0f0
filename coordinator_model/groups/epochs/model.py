"""A group whose members have epochs, as the rest of the model sees it; see ``group``.

Consumer groups (KIP-848), share groups (KIP-932) and Streams groups (KIP-1071) have one model: their heartbeats differ in a few fields,
which ``kinds`` reads, and in few rules. A member that uses the classic protocol may be among those of a consumer group.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, ClassVar, Final

from coordinator_model.group_view import GroupView
from coordinator_model.groups.epochs import classic_members, commits, descriptions, heartbeat, sessions
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.kinds import KIND_BY_API, read_heartbeat
from coordinator_model.groups.epochs.positions import surely_stays
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.epochs.view import view
from coordinator_model.groups.events import SLOW_US, DeletedAlive, Mismatched, Slow
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.group_coordinator import NEVER_WAITS, are_one, is_coordinator
from coordinator_model.groups.records import ByTopic, Exchange, HeartbeatFacts, Removed, by_topic
from coordinator_model.groups.requests import REQUEST_READERS
from coordinator_model.groups.responses import assigns_partitions, error_codes, note_version
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.releases import first_release
from coordinator_model.wire.constants import (
    COMMITS,
    COORDINATOR_MOVES,
    DELETE_GROUPS,
    EPOCH_DESCRIPTIONS,
    EPOCH_HEARTBEATS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from coordinator_model.wire.record import MirrorRecord

_CLASSIC: Final = frozenset({JOIN_GROUP, SYNC_GROUP, HEARTBEAT})
_MOVES: Final = EPOCH_HEARTBEATS | _CLASSIC  #: APIs that may change what the coordinator knows of their member


class EpochGroup(EpochGroupData, GroupModel[EpochMember], tag="epochs"):
    """A consumer, share or Streams group."""

    # ------------------------------------------------------------------------------------------------ frames

    readers: ClassVar = {**REQUEST_READERS, **dict.fromkeys(KIND_BY_API, read_heartbeat)}
    waits_in_turn: ClassVar = False
    is_unchanged_request = heartbeat.is_unchanged_request
    on_unchanged_request = heartbeat.on_unchanged_request
    is_unchanged_response = heartbeat.is_unchanged_response
    on_unchanged_response = heartbeat.on_unchanged_response

    def on_request(self, exchange: Exchange, member: EpochMember | None, body: Any) -> tuple[Event, ...]:
        api_key = exchange.api_key
        events = NOTHING
        self.effects.hole_us = self.effects.hole_us or exchange.inv_us - 1
        if api_key == self.traits.api_key:
            events = heartbeat.on_request(self, exchange, member)
        elif api_key in COMMITS:
            events = commits.on_request(self, exchange, member, body)
        elif api_key == OFFSET_FETCH:
            events = self.committed_offsets.on_request(self, exchange, body)
        else:
            sessions.on_request(self, exchange)
        if member is not None:
            member.last_frame_us = exchange.inv_us
            member.last_api = api_key
            member.actor = exchange.actor
        return events

    def on_response(self, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        if self.open:
            self._lose_older(exchange)
        error = getattr(body, "error_code", 0)
        if error:
            self.count_error(exchange.api_key, error)
        events = self._answered(exchange, body) + _note_coordinator(self, exchange, body)
        if note_version(self.members, exchange, body):
            self.changed = True
        events += sessions.on_response(self, exchange, body.throttle_time_ms)
        if not (exchange.error_codes or {exchange.error}) & COORDINATOR_MOVES:
            self.effects.at_work(exchange, self.late_us)
        self.note_state(exchange.res_us)
        return events

    def _answered(self, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        api_key = exchange.api_key
        if api_key == self.traits.api_key:
            was = self.rebalances.known_of(self, exchange.member_id)
            events = heartbeat.on_response(self, exchange, body)
            self.rebalances.on_response(self, exchange, was, exchange.member_id or body.member_id or "")
            return events + sessions.ended_by_grant(self, exchange)
        exchange.error_codes = error_codes(api_key, body, self.name)
        if api_key in COMMITS:
            self._note_release(exchange)
            judged = commits.on_response(self, exchange, body)
            return judged + commits.stands(self, exchange, body, judged)
        if api_key in {OFFSET_DELETE, OFFSET_FETCH}:
            return self.committed_offsets.on_response(self, exchange, body)
        if api_key in EPOCH_DESCRIPTIONS:
            descriptions.on_response(self, exchange, body)
            return NOTHING
        if api_key in _CLASSIC:
            was = self.rebalances.known_of(self, exchange.member_id)
            events = classic_members.on_response(self, exchange, body)
            id_ = body.member_id if api_key == JOIN_GROUP else exchange.member_id
            self.rebalances.on_response(self, exchange, was, id_)
            return events
        if api_key == LEAVE_GROUP:
            return classic_members.on_left(self, exchange, body)
        if api_key == DELETE_GROUPS and 0 in exchange.error_codes:
            events = self._deleted_alive(exchange)
            self.on_gap(exchange.res_us, "the group was deleted")
            for member in self.members.values():
                member.removed = member.removed or Removed.REMOVED
            self.begin_anew()
            self.deleted_us = exchange.res_us
            return events
        return NOTHING

    def _deleted_alive(self, exchange: Exchange) -> tuple[Event, ...]:
        """Return an event if a member certainly lived as the group was deleted. Call this before the members are dropped."""
        if not exchange.gap_free or not is_coordinator(self, exchange.broker):
            return NOTHING
        since_us = exchange.inv_us - self.clock_skew_us
        for member in self.present_members():
            if member.accepted_us < since_us and surely_stays(self, exchange, member):
                return (DeletedAlive(exchange, member, member.accepted_us, member.epoch_frame),)
        return NOTHING

    def _note_release(self, exchange: Exchange) -> None:
        """Note the oldest release that answers this version of a commit, which may be that of a broker before."""
        since = first_release(exchange.api_key, exchange.api_version)
        if since > self.release and is_coordinator(self, exchange.broker):
            self.release = since

    def _lose_older(self, exchange: Exchange) -> None:
        """Drop older requests of the same connection: responses come in order, so theirs were not captured."""
        connection, number = exchange.key
        for key in [key for key in self.open if key[0] == connection and key[1] < number]:
            self.lost(self.open.pop(key), exchange.res_us)
            self.connections[connection].outstanding -= 1

    def on_mismatch(self, exchange: Exchange, correlation_id: int) -> tuple[Event, ...]:
        super().on_mismatch(exchange, correlation_id)
        return (Mismatched(exchange, correlation_id),)

    def outcome_unknown(self, exchange: Exchange) -> None:
        member = self.members.get(exchange.member_id)
        if member is not None and exchange.api_key in _MOVES:
            facts = exchange.facts
            if isinstance(facts, HeartbeatFacts) and facts.topics is None and facts.pattern is None:
                member.forget_place()
            else:
                member.forget()
            self.doubles = [known for known in self.doubles if known.holder != member.id]
            self.learning_because = f"no frame shows whether a request of member {member.id} took effect"
            self.changed = True

    def holds_partitions(self, exchange: Exchange, body: Any) -> bool | None:
        if exchange.api_key == SYNC_GROUP:
            return assigns_partitions(body)
        member = self.members.get(exchange.member_id or getattr(body, "member_id", None) or "")
        if exchange.api_key != self.traits.api_key or member is None or not member.present or member.granted is None:
            return None
        return bool(member.granted)

    def abandon(self, record: MirrorRecord) -> Exchange | None:
        exchange = super().abandon(record)
        if exchange is not None:
            self.note_state(record.at_us)
        return exchange

    def connection_closed(self, connection: str, at_us: int) -> None:
        self.arrivals.closed(connection)
        for member in self.members.values():
            if member.actor.connection == connection:
                self.rebalances.on_disconnect(self, member, connection, at_us)
        for key in [key for key in self.open if key[0] == connection]:
            self.lost(self.open.pop(key), at_us)
        for member in self.members.values():
            if member.actor.connection == connection:
                member.disconnected_us = at_us
                member.heartbeat_us = 0
        self.connections.pop(connection, None)
        if not any(member.accepted_us and member.actor.connection in self.connections for member in self.members.values()):
            self.coordinator_changes.on_no_connection(self, at_us, self.sessions_ms())
        self.last_record_us = max(self.last_record_us, at_us)
        self.note_state(at_us)

    @property
    def broker_release(self) -> tuple[int, int]:
        return self.release_of(self.broker)

    # ------------------------------------------------------------------------------------------------ time

    def session_end_us(self, member: EpochMember) -> int | None:
        if not self._may_expire(member):
            return None
        watched_us = self.coordinator_changes.watches_since_us(self, member)
        if watched_us is None:
            return None
        since_us = max(member.last_frame_us, member.accepted_us, watched_us, self.covered_since_us)
        # A member that is away is looked for no longer than by default: nothing certain is concluded from its end.
        timeout_ms = self.shortest_session_ms(member) if member.removed == Removed.AWAY else self.longest_session_ms(member)
        return since_us + timeout_ms * 1_000 + self.settings.slack_us(timeout_ms) + self.clock_skew_us

    def certainly_lasts(self, member: EpochMember, at_us: int) -> bool:
        return member.last_frame_us + self.shortest_session_ms(member) * 1_000 >= at_us

    def session_expired(self, member_id: str, at_us: int) -> tuple[Event, ...]:
        member = self.members.get(member_id)
        if member is None or not member.present or member.last_frame_us >= at_us:
            return NOTHING
        return self.end_session(member, at_us)

    def sessions_ms(self) -> dict[str, int]:
        return {member.id: self.shortest_session_ms(member) for member in self.present_members() if not member.leaving}

    def awaiting(self) -> set[str]:
        asked = (self.members.get(waiting.member_id) for waiting in self.open.values())
        return {member.id for member in asked if member is not None and self._may_expire(member)}

    @staticmethod
    def _may_expire(member: EpochMember) -> bool:
        return member.keeps_place and member.proven_us is not None

    def end_session(self, member: EpochMember, at_us: int) -> tuple[Event, ...]:
        events: tuple[Event, ...] = NOTHING
        if member.removed == Removed.AWAY:
            self.remove(member, Removed.NOT_BACK, at_us)
        else:
            events = sessions.end(self, member, at_us, taken=False)
        self.note_state(at_us)
        return events

    # ------------------------------------------------------------------------------------------------ views

    def held_by(self, member: EpochMember) -> ByTopic:
        return by_topic((self.topic_text(topic), number) for topic, number in member.holds)

    def holders_of(self, partitions: Container[tuple[str, int]]) -> list[str] | None:
        if not self.traits.exclusive or any(member.granted is None for member in self.present_members()):
            return None
        return [
            member.id
            for member in self.present_members()
            if any(
                (topic, number) in partitions or (self.topic_text(topic), number) in partitions for topic, number in member.holds
            )
        ]

    def view(self, open_findings: int, partition: int, now_us: int) -> GroupView:
        return view(self, open_findings, partition, now_us)


# ---------------------------------------------------------------------------------------------------- the coordinator

_ACTS: Final = NEVER_WAITS | COMMITS | {JOIN_GROUP, SYNC_GROUP}


def _note_coordinator(group: EpochGroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    """Process what a response shows of the coordinator, apart from its content for the member.

    Each heartbeat that succeeds keeps a session alive, so it is an act of a coordinator. Its epoch is the member's own and shows nothing
    of another broker's.
    """
    errors = exchange.error_codes or frozenset({exchange.error})
    changes = group.coordinator_changes
    streaks, throttled_until_us = set(changes.streaks), changes.throttled_until_us
    events = changes.follow(group, exchange, body, errors)
    group.changed = group.changed or streaks != set(changes.streaks)
    if exchange.api_key in _ACTS and 0 in errors and _takes_over(group, exchange):
        events += changes.acted(group, exchange, -1)
    if throttled_until_us <= exchange.inv_us and not body.throttle_time_ms:
        events += _slow(exchange)
    return tuple(events)


def _takes_over(group: EpochGroupData, exchange: Exchange) -> bool:
    """Return True if another broker acted before, and certainly before this request: only turns are noted, not each heartbeat."""
    acting = group.coordinator_changes.acting
    if not acting:
        return True
    if acting == exchange.broker or are_one(group, acting, exchange.broker) or not exchange.gap_free:
        return False
    return all(member.accepted_us < exchange.inv_us for member in group.members.values() if member.id != exchange.member_id)


def _slow(exchange: Exchange) -> tuple[Event, ...]:
    """Return an event if an answer was slow that nothing has to be waited for."""
    took_us = exchange.res_us - exchange.inv_us
    if took_us <= SLOW_US or exchange.queued_behind or exchange.api_key not in NEVER_WAITS:
        return NOTHING
    return (Slow(exchange, took_us, 1),)
