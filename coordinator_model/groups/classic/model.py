"""A classic group as the rest of the model sees it: each frame goes to the handler of its API, then to the trackers.

Nine frames in ten are heartbeats: no tracker gets a plain Heartbeat success. An unchanged one, on the fast path, is all that
leaves the slow part of a group as it is; see ``heartbeat``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

from coordinator_model.group_view import GroupView
from coordinator_model.groups.classic import rebalance
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.departures import holders_of
from coordinator_model.groups.classic.group import TRACKERS, ClassicGroup
from coordinator_model.groups.classic.handlers import (
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    sync_group,
)
from coordinator_model.groups.classic.positions import Verdict
from coordinator_model.groups.classic.view import view
from coordinator_model.groups.events import SLOW_US, Failed, FenceIgnored, Mismatched
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.group_coordinator import is_coordinator
from coordinator_model.groups.records import CommitFacts, Exchange, Member, Removed
from coordinator_model.groups.requests import ASKED_OF_COORDINATOR, MODELLED_API_KEYS
from coordinator_model.groups.responses import assigns_partitions, error_codes, note_version
from coordinator_model.groups.tracker import NOTHING, Event, Tracker
from coordinator_model.wire import CONNECT
from coordinator_model.wire.constants import (
    COORDINATOR_MOVES,
    COORDINATOR_NOT_AVAILABLE,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    EPOCH_DESCRIPTIONS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    NONE,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from coordinator_model.wire.record import MirrorRecord


def _on_request(group: ClassicGroup, exchange: Exchange, member: Member | None, body: Any) -> tuple[Event, ...]:
    """Process a request of one of the :data:`MODELLED_API_KEYS`; return its events."""
    api_key = exchange.api_key
    handler = _ON_REQUEST.get(api_key)
    events = NOTHING if handler is None else handler(group, exchange)
    member = group.members.get(exchange.member_id) if exchange.member_id else None  # a JoinGroup may have made it known
    if member is not None:
        if member.removed == Removed.SILENT:
            # A new or restarted coordinator restarts all sessions, and a clock that jumped proves no silence.
            watched = max(group.unconnected_us, group.covered_since_us) <= member.last_frame_us
            stayed = is_coordinator(group, exchange.broker) and watched
            if member.proven_us is not None and stayed:
                exchange.silence_us = exchange.inv_us - member.last_frame_us
            group.restore_member(member)
        member.last_frame_us = exchange.inv_us
        member.last_api = api_key
        if exchange.generation != member.joined or exchange.instance_id != member.instance_id:
            events = (*events, *group.member_identity.check_identity(exchange, member))
        if member.fenced_us is not None and exchange.inv_us >= member.fenced_us and api_key != LEAVE_GROUP:
            member.frames_after_fence += 1
            member.fence_frames = [*member.fence_frames[:2], request_evidence(exchange)]
            events = (*events, FenceIgnored(exchange, member))
    if api_key != HEARTBEAT:
        if api_key == JOIN_GROUP:
            group.recurring.subscriptions.on_join(exchange, body)
            if body.protocol_type == CONNECT:
                group.recurring.config_offsets.on_join(exchange, body)
        for tracker in _TRACKERS_OF[api_key](group):
            events += tracker.on_request(group, exchange, body)
        if api_key in rebalance.API_KEYS:
            group.rebalances.on_request(group, exchange, group.rebalance_history)
    return events


def _on_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    """Process a response; return its events."""
    if exchange.api_key == JOIN_GROUP and join_group.contradicts_itself(body):
        return (group.member_identity.contradicted(exchange, body),)  # nothing else follows from such a response
    if exchange.api_key != HEARTBEAT or body.error_code:
        exchange.error_codes = error_codes(exchange.api_key, body, group.name)
    sender = group.members.get(exchange.member_id)
    joined_before = None if sender is None else sender.joined
    events = _ON_RESPONSE[exchange.api_key](group, exchange, body)
    if exchange.api_key == JOIN_GROUP:
        same_generation = joined_before == body.generation_id
        group.recurring.hot_joins.on_answer(exchange, same_generation=same_generation)
        group.recurring.subscriptions.on_answer(exchange, same_generation=same_generation)
    elif exchange.api_key == OFFSET_COMMIT:
        group.recurring.subscriptions.on_committed(exchange)
    elif exchange.api_key == SYNC_GROUP and not exchange.error:
        group.recurring.subscriptions.on_assigned(exchange)
        if group.protocol_type == CONNECT:
            group.recurring.config_offsets.on_assignment(exchange, body)
    if exchange.api_key != HEARTBEAT or exchange.error:
        errors = exchange.error_codes - {NONE}
        if errors and exchange.api_key in ASKED_OF_COORDINATOR:
            events += (Failed(exchange, errors),)
        for tracker in _TRACKERS_OF[exchange.api_key](group):
            events += tracker.on_response(group, exchange, body)
        if isinstance(exchange.facts, CommitFacts) and any(isinstance(event, Verdict) for event in events):
            group.committed_offsets.distrust(group, exchange.facts)
        if exchange.error or exchange.api_key in rebalance.API_KEYS:
            group.rebalances.on_response(group, exchange, body, group.rebalance_history)
    elif exchange.silence_us or body.throttle_time_ms or exchange.res_us - exchange.inv_us > SLOW_US:
        events += group.sessions.on_response(group, exchange, body)
        if body.throttle_time_ms:
            group.coordinator_changes.throttled(exchange, body.throttle_time_ms)
    if group.member_identity.alert:
        events += group.member_identity.recheck(group, exchange, body)
    if note_version(group.members, exchange, body):
        group.changed = True
    if not (exchange.error_codes or {exchange.error}) & COORDINATOR_MOVES:
        group.effects.at_work(exchange, group.late_us)
    return events


def _coordinator_found(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG001
    """Note that there was no coordinator: one that loads the group now has lost what was not written."""
    if COORDINATOR_NOT_AVAILABLE in exchange.error_codes:
        group.unconnected_us = max(group.unconnected_us, exchange.res_us)
    return NOTHING


def _for_trackers_only(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG001
    """Return no events: the response changes nothing in the group, and trackers process it."""
    return NOTHING


def _trackers_of(api_key: int) -> Callable[[ClassicGroup], tuple[Tracker, ...]]:
    """Return a function from a group to its trackers that get the frames of this API."""
    names = [name for name, api_keys in TRACKERS if api_key in api_keys]
    if not names:
        return lambda _: ()
    read: Callable[[ClassicGroup], Any] = attrgetter(*names)
    return read if len(names) > 1 else lambda group: (read(group),)


_TRACKERS_OF: Final = {key: _trackers_of(key) for key in MODELLED_API_KEYS}
_ON_REQUEST: Final[dict[int, Callable[[ClassicGroup, Exchange], tuple[Event, ...]]]] = {
    JOIN_GROUP: join_group.on_request,
    SYNC_GROUP: sync_group.on_request,
    HEARTBEAT: heartbeat.on_request,
    LEAVE_GROUP: leave_group.on_request,
}
_ON_RESPONSE: Final[dict[int, Callable[[ClassicGroup, Exchange, Any], tuple[Event, ...]]]] = {
    JOIN_GROUP: join_group.on_response,
    SYNC_GROUP: sync_group.on_response,
    HEARTBEAT: heartbeat.on_response,
    LEAVE_GROUP: leave_group.on_response,
    OFFSET_COMMIT: offset_commit.on_response,
    TXN_OFFSET_COMMIT: offset_commit.on_transactional_response,
    FIND_COORDINATOR: _coordinator_found,
    OFFSET_FETCH: _for_trackers_only,
    OFFSET_DELETE: _for_trackers_only,
    DESCRIBE_GROUPS: describe_groups.on_response,
    DELETE_GROUPS: delete_groups.on_response,
    **dict.fromkeys(EPOCH_DESCRIPTIONS, _for_trackers_only),
}


class ClassicGroupModel(ClassicGroup, GroupModel[Member], tag=CLASSIC):
    """A classic group, with what :class:`~coordinator_model.groups.group.GroupModel` asks of it."""

    on_request = _on_request
    on_response = _on_response
    is_unchanged_request = heartbeat.is_unchanged_request
    on_unchanged_request = heartbeat.on_unchanged_request
    is_unchanged_response = heartbeat.is_unchanged_response
    on_unchanged_response = heartbeat.on_unchanged_response
    end_session = ClassicGroup.fell_silent

    def session_expired(self, member_id: str, at_us: int) -> tuple[Event, ...]:
        member = self.members.get(member_id)
        if member is None or not member.present or member.session_since_us >= at_us:
            return NOTHING
        return tuple(event._replace(is_logged=True) for event in self.fell_silent(member, at_us))

    def holds_partitions(self, exchange: Exchange, body: Any) -> bool | None:
        return assigns_partitions(body) if exchange.api_key == SYNC_GROUP else None

    def on_unpaired(self, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Event, ...]:
        given_up = self.given_up.pop((record.connection, record.exchange), None)
        if given_up is None or correlation_id != given_up.correlation_id:
            return super().on_unpaired(record, body, correlation_id)
        self.slow_changed = True
        given_up.res_us, given_up.response_offset = record.at_us, record.offset
        return join_group.on_late_response(self, given_up, body)

    def on_mismatch(self, exchange: Exchange, correlation_id: int) -> tuple[Event, ...]:
        super().on_mismatch(exchange, correlation_id)
        return (Mismatched(exchange, correlation_id),)

    def awaiting(self) -> set[str]:
        """Return the ids of members of which a Heartbeat or a commit waits for its response. Until then clients may send nothing else."""
        return {waiting.member_id for waiting in self.open.values() if waiting.api_key in {HEARTBEAT, OFFSET_COMMIT}}

    @property
    def broker_release(self) -> tuple[int, int]:
        return max(self.member_identity.broker_version.release, self.facts.any_release(self.cluster, self.broker))

    def session_end_us(self, member: Member) -> int | None:
        line = self.connections.get(member.actor.connection)
        answered_us = 0 if line is None else line.last_response_us  # until then a client that asks one thing at a time is silent
        since_us = max(member.session_since_us, answered_us)
        # The others may complete a generation without it before the slack has passed, and that drop does not explain its silence.
        waited_for = member.present or (member.removed == Removed.DROPPED and member.last_frame_us < member.removed_us)
        if not waited_for or member.session_timeout_ms is None or self.parked(member):
            return None
        newest = self.newest_generation
        completed_us = newest.proven_us if newest is not None else 0
        if newest is not None and newest.roster is not None and member.id in newest.roster:
            since_us = max(
                since_us, completed_us
            )  # the end of the join phase restarts every session, including those of absent members
        abandoned_request = member.abandoned_request
        if abandoned_request is not None:
            # Parked on a connection that ended, or answered after its timer had fired without effect: the next step restarts the session.
            resumed_us = completed_us
            if abandoned_request.api_key != JOIN_GROUP:
                resumed_us = max(resumed_us, member.proven_us or 0, (newest.sync_done_us or 0) if newest is not None else 0)
            if resumed_us <= abandoned_request.at_us:
                return None
            since_us = max(since_us, resumed_us)
        watched_us = self.coordinator_changes.watches_since_us(self, member)
        comebacks_us = [one.until_us for one in self.comebacks(member)]
        if watched_us is None or 0 in comebacks_us:
            return None
        since_us = max(since_us, watched_us, self.covered_since_us, *comebacks_us)
        settings = self.settings
        return since_us + member.session_timeout_ms * 1_000 + settings.slack_us(member.session_timeout_ms) + self.clock_skew_us

    def certainly_lasts(self, member: Member, at_us: int) -> bool:
        timeout_ms = member.session_timeout_ms
        return timeout_ms is None or member.session_since_us + timeout_ms * 1_000 + self.settings.slack_us(timeout_ms) >= at_us

    def held_by(self, member: Member) -> Mapping[str, Iterable[int]] | None:
        known = self.rebalances
        return known.held.get(member.instance_id or member.id, {}) if known.held_known else None

    def holders_of(self, partitions: Container[tuple[str, int]]) -> list[str] | None:
        known = self.rebalances
        return holders_of(known.held, known.gone_us, partitions) if known.held_known else None

    def view(self, open_findings: int, partition: int, now_us: int) -> GroupView:
        return view(self, open_findings, partition, now_us)
