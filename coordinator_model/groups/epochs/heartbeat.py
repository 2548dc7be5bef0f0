"""Heartbeats of members with epochs: they join, go on, acknowledge what they give up, and leave.

One request and its response are judged first, by what was known before. Only then does the response change what is known.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.groups.arrivals import TOPOLOGY_REFUSED
from coordinator_model.groups.committed_offsets import keep_newest
from coordinator_model.groups.epochs import heartbeat_fields, identity, reconciliation, sessions
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import (
    AssignorFailed,
    ClaimedMore,
    EpochFenceIgnored,
    EpochShrank,
    ImpossibleEpoch,
    InstanceChanged,
    InstanceHeld,
    JoinedAgain,
    MalformedHeartbeat,
    NoAssignment,
    PausedLong,
    StaticLeaveRefused,
    StreamsJoinRefused,
    UnsubscribedAssigned,
    WrongGroupType,
)
from coordinator_model.groups.epochs.kinds import UNCHANGED
from coordinator_model.groups.epochs.positions import is_keep_alive, unlawful
from coordinator_model.groups.epochs.records import AWAY_EPOCH, JOIN_EPOCH, LEAVE_EPOCH, EpochMember, InstanceClaim
from coordinator_model.groups.events import SLOW_US, Answered
from coordinator_model.groups.evidence import epoch_response_evidence
from coordinator_model.groups.group import Group
from coordinator_model.groups.group_coordinator import is_coordinator
from coordinator_model.groups.records import Exchange, HeartbeatFacts, Partitions, Refusals, Removed
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire import ERROR_CODES, may_be_an_error
from coordinator_model.wire.constants import (
    COORDINATOR_MOVES,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    INVALID_REQUEST,
    STREAMS_GROUP_HEARTBEAT,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_VERSION,
)

SLOW_TIMES: Final = 3  #: a heartbeat is slow after this many of the coordinator's intervals
JOIN_WINDOW_US: Final = 60_000_000
_FENCES: Final = frozenset({UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH})
_TOPICS_TAKEN_AT_ONCE_SINCE: Final = (4, 2)
_WRONG_TYPE_KEPT: Final = 16


def is_unchanged_request(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> bool:  # noqa: ARG001
    """Return True if a request contains nothing new: only the times of its member change then."""
    return (
        exchange.facts == UNCHANGED
        and exchange.generation > JOIN_EPOCH
        and exchange.actor == member.actor
        and exchange.instance_id in {None, member.instance_id}
        and not member.leaving
    )


def on_unchanged_request(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> tuple[Event, ...]:
    """Process a request that contains nothing new. It and :func:`on_unchanged_response` alone leave the slow part of a group as it is."""
    events = _paused(group, exchange, member)
    member.heartbeat_us = member.last_frame_us = exchange.inv_us
    member.last_api = exchange.api_key
    return events


def on_request(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> tuple[Event, ...]:
    events = NOTHING if exchange.facts == UNCHANGED else _check_facts(group, exchange, member)
    if exchange.generation == JOIN_EPOCH:
        sessions.found_coordinator(group, exchange)
    if member is None:
        return events
    if _names_another_instance(exchange, member):
        events += (InstanceChanged(exchange, member),)
    if exchange.generation > JOIN_EPOCH:
        events += _paused(group, exchange, member)
    member.leaving = exchange.generation < JOIN_EPOCH
    member.heartbeat_us = exchange.inv_us
    return events


def _names_another_instance(exchange: Exchange, member: EpochMember) -> bool:
    """Return True if a member names another instance id than its own. None is "unchanged"."""
    return member.present and member.ever is not None and exchange.instance_id not in {None, member.instance_id}


def _check_facts(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> tuple[Event, ...]:
    """Return what is wrong with the content of a request."""
    facts, asked = exchange.facts, exchange.generation
    assert isinstance(facts, HeartbeatFacts)
    if facts.malformed and asked == JOIN_EPOCH:
        return (MalformedHeartbeat(exchange),)
    if asked <= JOIN_EPOCH or not facts.owned or member is None or member.ever is None:
        return NOTHING
    foreign = facts.owned.difference(member.ever)
    if not foreign or _others_open(group, exchange):  # what another answer grants may be known to the member already
        return NOTHING
    return (ClaimedMore(exchange, member, foreign),)


def _paused(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> tuple[Event, ...]:
    """Return an event if the member let too much time pass since its last heartbeat."""
    if not member.heartbeat_us or member.paused_us < member.heartbeat_us:
        return NOTHING  # the coordinator never answered the last one, and may have gone
    since_us = max(member.paused_us, member.throttled_until_us)
    pause_us = exchange.inv_us - since_us
    if not 0 < SLOW_TIMES * member.interval_ms * 1_000 < pause_us or group.covered_since_us > since_us:
        return NOTHING
    if sessions.looks_for_coordinator(group, member, member.paused_us):
        return NOTHING
    return (PausedLong(exchange, member, pause_us),)


def _others_open(group: EpochGroupData, exchange: Exchange) -> bool:
    """Return True if another heartbeat of the same member waits for its response."""
    return any(
        other.member_id == exchange.member_id and other.api_key == exchange.api_key and other.key != exchange.key
        for other in group.open.values()
    )


def _may_be_moved(group: EpochGroupData, exchange: Exchange) -> bool:
    """Return True if another request of the same member may have been processed before this one or after it.

    A join begins anew: what the member asked before, and was lost, changes nothing of it.
    """
    if exchange.generation == JOIN_EPOCH:
        return _others_open(group, exchange)
    return any(effect.may_move(exchange.member_id) for effect in group.possible(exchange, exchange.inv_us))


def _stands_out(exchange: Exchange, body: Any) -> bool:
    """Return True if an answer shows something of its coordinator apart from its content: that it throttles or is slow."""
    return body.throttle_time_ms > 0 or exchange.res_us - exchange.inv_us > SLOW_US


def is_unchanged_response(group: EpochGroupData, exchange: Exchange, member: EpochMember, body: Any) -> bool:
    """Return True if the exchange contains and shows nothing new, and nothing was open that it could settle.

    Only the times of its member change then: see :func:`on_unchanged_response`.
    """
    return (
        exchange.api_key == group.traits.api_key
        and not body.error_code
        and body.member_epoch == member.epoch
        and is_keep_alive(exchange, member)
        and not (member.pending or member.statuses or member.refusals)
        and not (group.doubles or group.status_streaks or group.assignor_failures or group.coordinator_changes.watches_answers)
        and exchange.actor == member.actor
        and (body.heartbeat_interval_ms == member.interval_ms or not body.heartbeat_interval_ms)
        and _waits(group, member) == bool(member.empty_since_us)
        and exchange.gap_free
        and member.paused_us < exchange.inv_us
        and is_coordinator(group, exchange.broker)
        and group.settled
        and not group.effects.unanswered
        and group.epoch is not None
        and body.member_epoch <= group.epoch
        and body.member_id in {None, exchange.member_id}
        and group.traits.is_unchanged(body)
        and group.rebalances.awaits_nothing(member)
        and not (group.open and _may_matter(group, exchange))
        and not (group.arrivals.clients and group.arrivals.of(exchange))
        and not sessions.outlasts(group, exchange, member)
        and not _stands_out(exchange, body)
    )


def _may_matter(group: EpochGroupData, exchange: Exchange) -> bool:
    """Return True if an open request is another heartbeat of the same member, or one whose response was not captured."""
    connection, number = exchange.key
    return _others_open(group, exchange) or any(key[0] == connection and key[1] < number for key in group.open)


def _waits(group: EpochGroupData, member: EpochMember) -> bool:
    """Return True if a member has the newest epoch, and no partition."""
    return member.epoch == group.epoch and member.granted is not None and not member.granted


def on_unchanged_response(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> None:  # noqa: ARG001
    """Process a success that shows nothing new."""
    member.epoch_us = member.accepted_us = member.proven_us = member.paused_us = exchange.res_us
    member.accepted_asked_us = exchange.inv_us
    member.last_frame_us = max(member.last_frame_us, exchange.inv_us)
    member.last_api = exchange.api_key if member.last_api < 0 else member.last_api


def _note_success(group: EpochGroupData, exchange: Exchange, member: EpochMember, body: Any) -> None:
    """Process a success, once all else that it changes is processed."""
    group.assignor_failures = 0
    member.actor = exchange.actor
    member.interval_ms = body.heartbeat_interval_ms or member.interval_ms
    member.refusals = None
    waits = _waits(group, member)
    if waits != bool(member.empty_since_us):
        member.empty_since_us = exchange.res_us if waits else 0
    on_unchanged_response(group, exchange, member)


def on_response(group: EpochGroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    error = exchange.error = body.error_code
    member = group.members.get(exchange.member_id) if exchange.member_id else None
    overlapped = member is not None and (member.paused_us >= exchange.inv_us or _may_be_moved(group, exchange))
    if error in COORDINATOR_MOVES:
        return group.coordinator_moves(exchange)
    events: tuple[Event, ...] = NOTHING
    if error in ERROR_CODES or not may_be_an_error(error):  # no table has the meaning of a newer release's code yet
        events = unlawful(group, exchange, member, overlapped=overlapped)
    if member is not None:
        member.paused_us = exchange.res_us
    if error:
        return events + _refused(group, exchange, body, member, overlapped=overlapped)
    group.assignor_failures = 0
    events += heartbeat_fields.note_shutdown(group, exchange, member)
    events += _check_epoch(exchange, body.member_epoch)
    if exchange.generation < JOIN_EPOCH:
        _left(group, exchange, member)
        return events
    return events + _accepted(group, exchange, body, overlapped=overlapped)


# ---------------------------------------------------------------------------------------------------- successes


def _check_epoch(exchange: Exchange, epoch: int) -> tuple[Event, ...]:
    """Return an event if a join or a leave was answered with an epoch that it cannot have.

    A preview broker, which has version 0 alone, leaves a new group at epoch 0 until some member names a topic.
    """
    asked, facts = exchange.generation, exchange.facts
    assert isinstance(facts, HeartbeatFacts)
    if asked == JOIN_EPOCH:
        least = JOIN_EPOCH if exchange.api_version < 1 and not facts.topics else JOIN_EPOCH + 1
        return (ImpossibleEpoch(exchange, epoch),) if epoch < least else NOTHING
    return (ImpossibleEpoch(exchange, epoch),) if asked < JOIN_EPOCH and epoch != asked else NOTHING


def _accepted(group: EpochGroupData, exchange: Exchange, body: Any, *, overlapped: bool) -> tuple[Event, ...]:
    facts, asked, epoch = exchange.facts, exchange.generation, body.member_epoch
    assert isinstance(facts, HeartbeatFacts)
    group.accepted(exchange)
    events: list[Event] = []
    if exchange.member_id and body.member_id is not None and body.member_id != exchange.member_id:
        events.append(Answered(exchange, body.member_id))
    if asked == JOIN_EPOCH and not overlapped and sessions.begins_anew(group, exchange, epoch):
        events += sessions.begin_anew(group, exchange.res_us)
    known = group.members.get(exchange.member_id or body.member_id)
    begins = epoch <= 2 and group.epoch is None and group.is_empty and not group.conversions
    if asked == JOIN_EPOCH and begins and exchange.gap_free:
        group.born_us = exchange.res_us
    member = group.member_of(exchange, exchange.member_id or body.member_id or "")
    kept = heartbeat_fields.kept_of(group, exchange, known if asked == JOIN_EPOCH else member)
    if facts.rebalance_timeout_ms > 0 and facts.rebalance_timeout_ms != member.rebalance_timeout_ms:
        member.rebalance_timeout_ms = facts.rebalance_timeout_ms
    assignment = group.traits.read_assignment(body)
    if asked == JOIN_EPOCH:
        events += _joined(group, exchange, member, epoch, assignment, overlapped=overlapped, new=known is None)
    else:
        events += _stayed(group, exchange, member, epoch, assignment, overlapped=overlapped)
    if assignment is not None and group.traits.exclusive and not overlapped and exchange.gap_free:
        reconciliation.note_double_grants(group, exchange, member, assignment)
    events += heartbeat_fields.note_subscription(group, exchange, member, kept, overlapped=overlapped)
    events += _check_assignment(group, exchange, member, epoch, assignment)
    events += heartbeat_fields.note_statuses(group, exchange, member, body)
    rose = reconciliation.deliver(group, exchange, member, epoch, overlapped=overlapped or not exchange.gap_free)
    _note_success(group, exchange, member, body)
    if member.pending and exchange.inv_us > (reconciliation.removal_overdue_us(group, member) or exchange.inv_us):
        group.changed = True  # a timer rule may be due
    return (*events, *rose)


def _joined(
    group: EpochGroupData,
    exchange: Exchange,
    member: EpochMember,
    epoch: int,
    assignment: Partitions | None,
    *,
    overlapped: bool,
    new: bool,
) -> list[Event]:
    events: list[Event] = []
    back = sessions.comes_back(group, exchange, member) if new else NOTHING
    again = member.present and not overlapped and member.refusals is None
    if exchange.instance_id is not None:
        events += identity.take(group, exchange, member, exchange.instance_id)
    replaces = bool(events) and epoch == group.epoch  # the same subscription under a new id raises no epoch
    events += (*back, *identity.returned(exchange, member))
    if new:
        events += identity.new_id(group, exchange)
    expired = again is False and member.is_kept_out and epoch != group.epoch  # it was refused until its session ended
    if (new or expired or not member.keeps_place) and not replaces:
        group.may_have_raised("joined", member.id)
    if again:
        window_us = exchange.res_us - JOIN_WINDOW_US
        member.joins = (*(at_us for at_us in member.joins if at_us > window_us), exchange.res_us)
        events.append(JoinedAgain(exchange, member))
    else:
        member.joins = (exchange.res_us,)
    member.removed, member.gone, member.classic = None, False, False
    member.commit_refusals = None
    member.joined_epoch = epoch if new else None
    member.previous = None
    reconciliation.joins(exchange, member, None if overlapped or not exchange.gap_free else assignment)
    if new and len(topics := {topic for topic, _ in assignment or ()}) == 1:
        facts = exchange.facts
        if isinstance(facts, HeartbeatFacts) and not facts.pattern and facts.topics is not None and len(facts.topics) == 1:
            group.name_topic(topics.pop(), facts.topics[0])  # the only topic that it can have been assigned
    group.changed = True
    return events


def _stayed(
    group: EpochGroupData,
    exchange: Exchange,
    member: EpochMember,
    epoch: int,
    assignment: Partitions | None,
    *,
    overlapped: bool,
) -> list[Event]:
    events: list[Event] = []
    sessions.note_pause(group, exchange, member)
    asked = exchange.generation
    if epoch < asked:
        events.append(EpochShrank(exchange, member, epoch, asked))
    elif (
        not overlapped
        and not group.may_be_reloaded(member)
        and member.epoch is not None
        and epoch < member.epoch
        and member.epoch_us < exchange.inv_us
    ):
        events.append(EpochShrank(exchange, member, epoch, member.epoch))
    if not overlapped:
        events += reconciliation.prove_double_grants(group, exchange, member)
    if member.removed is not None and not member.leaving:
        member.removed = None
        member.gone = False
        group.changed = True
    if exchange.instance_id is not None and member.instance_id is None:
        member.instance_id = exchange.instance_id
        group.instances.setdefault(exchange.instance_id, member.id)
    if assignment is not None or member.pending:
        held = (member.granted, member.pending)
        reconciliation.stays(group, exchange, member, epoch, assignment, overlapped=overlapped or not exchange.gap_free)
        group.changed = group.changed or held != (member.granted, member.pending)
    return events


def _check_assignment(
    group: EpochGroupData, exchange: Exchange, member: EpochMember, epoch: int, assignment: Partitions | None
) -> tuple[Event, ...]:
    facts = exchange.facts
    assert isinstance(facts, HeartbeatFacts)
    if assignment is None:
        full = exchange.generation == JOIN_EPOCH or facts.is_full
        # The only version of brokers before 4.0, which answer otherwise, is 0.
        if full and group.traits.answers_full_requests and exchange.api_version >= 1:
            return (NoAssignment(exchange, epoch),)
        return NOTHING
    if not group.traits.answers_full_requests or member.pattern != "" or member.topics is None:
        return NOTHING
    if group.release_of(exchange.broker) < _TOPICS_TAKEN_AT_ONCE_SINCE:
        return NOTHING
    assigned = {topic for topic, _ in assignment}
    names = {group.facts.topic_name(group.cluster, topic) for topic in assigned} - {
        None
    }  # those that only a guess names do not count
    foreign = tuple(sorted(name for name in names if name is not None and name not in member.topics))
    if foreign or len(assigned) > len(set(member.topics)):
        return (UnsubscribedAssigned(exchange, member, len(assigned), foreign),)
    return NOTHING


# ---------------------------------------------------------------------------------------------------- leaves and refusals


def _left(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> None:
    group.accepted(exchange)
    frame = epoch_response_evidence(exchange)
    if member is None and exchange.generation == AWAY_EPOCH and exchange.member_id and exchange.instance_id is not None:
        member = group.member_of(exchange)  # its instance id is free from here on, and its session ends within one
        member.proven_us = member.accepted_us = exchange.res_us
        group.instances.setdefault(exchange.instance_id, member.id)
    if member is None:
        return
    if exchange.generation == LEAVE_EPOCH:
        group.remove(member, Removed.LEFT, exchange.res_us, frame)
        group.effects.note_overlap(exchange, group.open.values())
        if member.instance_id is not None and group.instances.get(member.instance_id) == member.id:
            del group.instances[member.instance_id]
        member.gone = exchange.gap_free and not _others_open(group, exchange)
    elif exchange.generation == AWAY_EPOCH:
        identity.goes_away(group, exchange, member, frame)


def _refused(
    group: EpochGroupData, exchange: Exchange, body: Any, member: EpochMember | None, *, overlapped: bool
) -> tuple[Event, ...]:
    error, asked = exchange.error, exchange.generation
    if asked == JOIN_EPOCH:
        group.changed = True
    if error == UNKNOWN_SERVER_ERROR:
        group.assignor_failures += 1
        return (AssignorFailed(exchange, body.error_message or "", group.assignor_failures),)
    if error == UNRELEASED_INSTANCE_ID and exchange.instance_id is not None:
        return (_instance_held(group, exchange), *identity.refused(group, exchange, member))
    if error in {GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION}:
        times = 1
        if member is not None:
            times = _count_refusal(member, exchange).count
        return (WrongGroupType(exchange, body.error_message or "", times),)
    if error in TOPOLOGY_REFUSED and asked == JOIN_EPOCH and exchange.api_key == STREAMS_GROUP_HEARTBEAT:
        facts = exchange.facts
        malformed = isinstance(facts, HeartbeatFacts) and facts.malformed
        return NOTHING if malformed else (StreamsJoinRefused(exchange, body.error_message or ""),)
    if member is None:
        return NOTHING
    if error == INVALID_REQUEST and asked == AWAY_EPOCH and exchange.instance_id is None and member.instance_id is not None:
        return (StaticLeaveRefused(exchange, member),)
    if error not in _FENCES and error != FENCED_INSTANCE_ID:
        return NOTHING
    refusals = _count_refusal(member, exchange)
    lost = identity.refused(group, exchange, member) if error == FENCED_INSTANCE_ID else NOTHING
    if error == UNKNOWN_MEMBER_ID and exchange.instance_id in {None, member.instance_id} and asked != JOIN_EPOCH:
        certain = exchange.gap_free and not overlapped
        if member.removed is None:
            sessions.note_end(group, exchange, member)
            due_us = reconciliation.removal_due_us(group, member)
            counted = due_us is not None and group.epoch_us >= due_us
            group.remove(member, Removed.FENCED, exchange.res_us, epoch_response_evidence(exchange))
            if counted:
                group.recent.pop()  # the epoch has risen for it already
        member.gone = certain
        member.removed_us = max(member.removed_us, exchange.res_us)
    if asked > JOIN_EPOCH and refusals.count > 1:
        return (*lost, EpochFenceIgnored(exchange, member, refusals))
    return lost


def _count_refusal(member: EpochMember, exchange: Exchange) -> Refusals:
    """Count a refusal that the client sent after it knew of the one before."""
    refusals = member.refusals
    if refusals is None or (refusals.error, refusals.generation) != (exchange.error, exchange.generation):
        refusals = member.refusals = Refusals(exchange.error, exchange.generation, 0, exchange.res_us, exchange.res_us)
    if not refusals.count or exchange.inv_us >= refusals.last_us:
        refusals.add(exchange.res_us, epoch_response_evidence(exchange))
    return refusals


def _instance_held(group: EpochGroupData, exchange: Exchange) -> InstanceHeld:
    assert exchange.instance_id is not None
    if not is_coordinator(group, exchange.broker):  # it has just taken over
        group.claims.pop(exchange.instance_id, None)
    claim = group.claims.get(exchange.instance_id)
    if claim is None or exchange.res_us - claim.last_us > group.shortest_session_ms() * 1_000:
        claim = group.claims[exchange.instance_id] = InstanceClaim(exchange.res_us)
    claim.times += 1
    claim.last_us = exchange.res_us
    claim.frames = (*claim.frames[:2], epoch_response_evidence(exchange))
    holder = group.members.get(group.instances.get(exchange.instance_id, ""))
    return InstanceHeld(exchange, claim.first_us, claim.times, holder, claim.frames)


def refused_by_type(group: Group[Any], exchange: Exchange, body: Any) -> tuple[Event, ...]:
    """Return an event if a heartbeat was refused because the group is of another type, or cannot be converted."""
    if exchange.error not in {GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION}:
        return NOTHING
    times = group.wrong_type.get(exchange.member_id, 0) + 1
    keep_newest(group.wrong_type, exchange.member_id, times, _WRONG_TYPE_KEPT)
    return (WrongGroupType(exchange, body.error_message or "", times),)
