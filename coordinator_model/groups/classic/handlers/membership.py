"""What members do once they have joined, SyncGroup, Heartbeat, LeaveGroup and commits, and what ends with them when a group is deleted.

The trap: success does not prove that somebody is a member. A coordinator that is still loading answers any heartbeat so; what a success is
worth, each function below asks of the generation, the roster and the broker that gave it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from coordinator_model.counters import SYNC
from coordinator_model.groups.classic.state import Observation, State
from coordinator_model.groups.classic.trackers.sessions import THIN_SHARE
from coordinator_model.groups.events import Accepted, ServedInJoinPhase, ToldToRejoin
from coordinator_model.groups.evidence import response_evidence
from coordinator_model.groups.records import Exchange, Generation, LeaveFacts, Member, StaticMember, SyncFacts
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import (
    COORDINATOR_MOVES,
    HEARTBEAT_VALIDATES_SINCE,
    JOIN_GROUP,
    NONE,
    NOT_ADMITTED,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup

_WITNESSES: Final = 2  # members that wait in a join phase, for it to be proven
_UNSERVED: Final = frozenset({State.EMPTY, State.PREPARING})
"""In these states no heartbeat succeeds."""

# A commit's per-partition codes that the request layer gives without asking the coordinator.
_NOT_FROM_COORDINATOR: Final = frozenset({3, 29, 30, 12, 28})


def sync_asked(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    if not exchange.member_id:
        return NOTHING
    member = group.member_of(exchange)
    member.parked_sync = exchange.key
    member.synced = exchange.generation
    member.synced_us = exchange.inv_us
    newest = group.newest_generation
    leads = newest is not None and newest.generation == exchange.generation and newest.leader == member.id
    if newest is not None and leads and newest.leader_synced_us is None:
        newest.leader_synced_us = exchange.inv_us
        assert isinstance(exchange.facts, SyncFacts)
        newest.idle = exchange.facts.idle
    group.changed = True
    return NOTHING


def sync_answered(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    error = exchange.error = body.error_code
    group.changed = True
    if error in COORDINATOR_MOVES:
        return group.coordinator_moves(exchange)
    if error in NOT_ADMITTED:
        return group.refuse(exchange, error)
    newest = group.newest_generation
    current = newest is None or newest.generation == exchange.generation
    if error == REBALANCE_IN_PROGRESS:
        if current and newest is not None:
            group.observe(Observation.TOLD_TO_REJOIN, exchange.res_us)
        return NOTHING
    if error != NONE or not exchange.member_id:
        return NOTHING
    group.accepted(exchange)
    newest = group.newest_generation
    member = group.member_of(exchange)
    member.in_sync = exchange.generation
    member.idle_since_us = 0
    held = group.instances.get(exchange.instance_id) if exchange.instance_id is not None else None
    if held is not None and held.member_id == member.id and _is_written(group, exchange, held):
        held.settled_us = held.settled_us or exchange.res_us
    if newest is None or newest.generation != exchange.generation or member.id not in (newest.roster or ()):
        suspects: tuple[Event, ...] = (Accepted(exchange),)
    else:
        suspects = NOTHING
    if newest is None or newest.generation <= exchange.generation:
        group.prove(member, exchange)
        group.generation_seen = max(exchange.generation, group.generation_seen or 0)
        if newest is not None and newest.sync_done_us is None:
            newest.sync_done_us = exchange.res_us
            if group.state is State.COMPLETING:
                group.sync_took_us = max(0, exchange.res_us - group.state_since_us)
                group.syncs = (group.syncs[0] + 1, group.syncs[1] + group.sync_took_us)
                group.counters.took(group.cluster, SYNC, group.sync_took_us)
        group.observe(Observation.SYNCED, exchange.res_us)
    return suspects


def _is_written(group: ClassicGroup, exchange: Exchange, held: StaticMember) -> bool:
    """Whether the log knows the holder by the time that it is given its assignment, so that no restart brings back the one before.

    The leader's SyncGroup writes all holders. A replacement after it is written by itself, but not by old brokers.
    """
    newest = group.newest_generation
    with_the_round = (
        newest is not None
        and newest.generation == exchange.generation
        and newest.leader_synced_us is not None
        and 0 < held.held_us <= newest.leader_synced_us
    )
    return with_the_round or group.member_identity.broker_version.writes_replacements


def _note_pace(group: ClassicGroup, member: Member, at_us: int) -> int:
    """Note that the member sent a heartbeat; return the microseconds since the one before, 0 if there was none."""
    before_us, member.heartbeat_us = member.heartbeat_us, at_us
    if not before_us:
        return 0
    pause_us = at_us - before_us
    known, least = member.heartbeat_interval_us, member.least_interval_us
    member.heartbeat_interval_us = pause_us if known == 0 else (3 * known + pause_us) // 4
    if (pause_us < least - least // 8 or not least) and before_us > member.joined_us:
        member.least_interval_us = pause_us
        group.slow_changed = True
    return pause_us


def heartbeat_asked(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    member = group.members.get(exchange.member_id)
    if member is None:
        return NOTHING
    late: tuple[Event, ...] = NOTHING
    pause_us = _note_pace(group, member, exchange.inv_us)
    if member.session_timeout_ms is not None and pause_us > member.session_timeout_ms * 1_000 * THIN_SHARE:
        late = group.sessions.thin_margin(group, exchange, member)
    if exchange.key[0] != member.actor.connection:
        late += group.member_identity.check_connection(group, exchange, member)
    return late


def heartbeat_answered(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    error = exchange.error = body.error_code
    newest = group.generations[-1] if group.generations else None
    if error == NONE:
        member = group.members.get(exchange.member_id)
        if (
            member is not None
            and newest is not None
            and newest.generation == exchange.generation
            and newest.roster is not None
            and member.id in newest.roster
            and exchange.broker == group.broker
            and member.removed is None
        ):
            # Steady traffic ends here.
            member.proven_us = exchange.res_us
            if member.leaving:
                group.stays(member, exchange)
            group.coordinator_changes.returned(group, exchange.res_us)
            if member.rejoin_asked_us is not None:
                member.rejoin_asked_us = None
                group.changed = group.slow_changed = True
            if group.state in _UNSERVED:
                _served_after_all(group, exchange)
            return _served_in_join_phase(group, exchange, member, newest) if newest.told else NOTHING
        return _heartbeat_accepted(group, exchange)
    if error in COORDINATOR_MOVES:
        return group.coordinator_moves(exchange)
    if error in NOT_ADMITTED:
        return group.refuse(exchange, error)
    if error == REBALANCE_IN_PROGRESS and exchange.member_id:
        return _heartbeat_told_to_rejoin(group, exchange, newest)
    return NOTHING


def _served_after_all(group: ClassicGroup, exchange: Exchange) -> None:
    """A member is served in a state in which nobody is: what led to that state did not happen.

    Sessions that had run out were started anew by a coordinator that loaded the group unseen. The request that seemed to start a join
    phase never reached the coordinator, if a member is served long after it and nobody waits to join.
    """
    late_us = (group.settings.reorder_window_ms + group.settings.clock_skew_ms) * 1_000
    if group.state is State.EMPTY:
        seen = Observation.HEARTBEAT_OK
    elif exchange.inv_us <= group.state_since_us + late_us or any(open_.api_key == JOIN_GROUP for open_ in group.open.values()):
        return
    else:
        seen = Observation.JOINED if group.generations[-1].sync_done_us is None else Observation.STILL_SERVED
    group.slow_changed = True
    group.observe(seen, exchange.res_us)


def _served_in_join_phase(group: ClassicGroup, exchange: Exchange, member: Member, ended: Generation) -> tuple[Event, ...]:
    """Whether this success was given at a generation that had provably ended before it was asked for.

    Others were told to rejoin and wait for the phase's end: their connections stand, so the coordinator has not loaded the group again,
    which alone would bring the generation back. That they wait for longer than any frame may be late rules out that they were answered.
    """
    if member.id in ended.told:
        return NOTHING
    late_us = (group.settings.reorder_window_ms + group.settings.clock_skew_ms) * 1_000
    waiting = tuple(
        join
        for join in group.waiting_joins()
        if join.member_id in ended.told
        and join.broker == exchange.broker
        and not join.queued_behind
        and join.inv_us + late_us < exchange.inv_us
    )
    return (ServedInJoinPhase(exchange, member, waiting),) if len(waiting) >= _WITNESSES else NOTHING


def _heartbeat_accepted(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    group.slow_changed = True
    if group.loading_near(exchange.broker, exchange.res_us) or not exchange.member_id:
        return NOTHING
    group.accepted(exchange)
    member = group.member_of(exchange)
    newest = group.newest_generation
    if newest is None or newest.generation <= exchange.generation:
        if newest is not None and newest.generation < exchange.generation:
            group.assignments.ahead(group, exchange)
        group.generation_seen = max(exchange.generation, group.generation_seen or 0)
        if newest is None or newest.roster is None or member.id in newest.roster:
            group.prove(member, exchange)
        member.rejoin_asked_us = None
        group.observe(Observation.HEARTBEAT_OK, exchange.res_us)
    return (Accepted(exchange),)


def _heartbeat_told_to_rejoin(group: ClassicGroup, exchange: Exchange, newest: Generation | None) -> tuple[Event, ...]:
    member = group.member_of(exchange)
    happenings: tuple[Event, ...] = NOTHING
    if newest is None or newest.generation == exchange.generation:
        group.accepted(exchange)
        if newest is None or newest.roster is None or member.id in newest.roster:
            group.prove(member, exchange)
        group.observe(Observation.TOLD_TO_REJOIN, exchange.res_us)
    if newest is not None and newest.generation == exchange.generation and exchange.api_version >= HEARTBEAT_VALIDATES_SINCE:
        newest.told = (*(id_ for id_ in newest.told if id_ != member.id), member.id)
    if exchange.api_version >= HEARTBEAT_VALIDATES_SINCE:
        happenings = (Accepted(exchange),)
    if group.parked(member):
        return happenings
    if member.rejoin_asked_us is None:
        member.rejoin_asked_us = exchange.res_us
        member.rejoin_frames = []
    member.rejoin_asked_last_us = exchange.res_us
    member.rejoin_frames = [*member.rejoin_frames[:1], response_evidence(exchange, REBALANCE_IN_PROGRESS)]
    return (*happenings, ToldToRejoin(exchange, member))


def leave_asked(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    assert isinstance(exchange.facts, LeaveFacts)
    for id_, _ in exchange.facts.members:
        member = group.members.get(id_)
        if member is not None and member.actor.client_id == exchange.actor.client_id:
            member.leaving, member.leave_asked_us = True, exchange.inv_us
    return NOTHING


def leave_answered(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    assert isinstance(exchange.facts, LeaveFacts)
    error = exchange.error = body.error_code
    if error != NONE:
        for id_, _ in exchange.facts.members:
            _not_left(group, id_)
    if error in COORDINATOR_MOVES:
        return group.coordinator_moves(exchange)
    if error != NONE:
        return NOTHING
    outcomes = [entry.error_code for entry in body.members] or [NONE]  # v0-2 fold the only member's error into the top one
    group.accepted(exchange)
    for (id_, instance_id), outcome in zip(exchange.facts.members, outcomes, strict=False):
        holder = group.instances.get(instance_id) if instance_id is not None and not id_ else None
        member = group.members.get(holder.member_id if holder is not None else id_)
        group.issued.pop(id_, None)
        if outcome == NONE and member is not None:
            group.remove(member, "left", exchange.res_us)
            if member.instance_id is not None:
                group.instances.pop(member.instance_id, None)
        elif outcome != NONE:
            _not_left(group, id_)
            own = member is not None and instance_id in {None, member.instance_id}
            served_since = member is not None and (member.proven_us or 0) >= exchange.effective_us
            if outcome == UNKNOWN_MEMBER_ID and member is not None and own and not served_since and member.removed is None:
                group.remove(member, "refused", exchange.res_us)
    group.changed = True
    return NOTHING


def _not_left(group: ClassicGroup, member_id: str) -> None:
    """A LeaveGroup was refused. One that repeats another, which was granted, is refused as well."""
    member = group.members.get(member_id)
    if member is not None and member.removed != "left":
        member.leaving = False


def commit_answered(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    codes = {partition.error_code for topic in body.topics for partition in topic.partitions}
    codes -= _NOT_FROM_COORDINATOR
    if codes & COORDINATOR_MOVES:
        exchange.error = min(codes & COORDINATOR_MOVES)
        return group.coordinator_moves(exchange)
    for error in NOT_ADMITTED:
        if error in codes:
            exchange.error = error
            return group.refuse(exchange, error) if exchange.generation >= 0 else NOTHING
    return _commit_accepted(group, exchange) if NONE in codes else NOTHING


def transactional_commit_answered(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    """Of use is only an acceptance.

    From v3 on the coordinator holds who commits against the group (KIP-447). A refusal may be the transaction coordinator's: brokers that
    cannot reach it to verify the transaction answer COORDINATOR_LOAD_IN_PROGRESS (KIP-890).
    """
    accepted = any(partition.error_code == NONE for topic in body.topics for partition in topic.partitions)
    return _commit_accepted(group, exchange) if accepted else NOTHING


def _commit_accepted(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    if not exchange.member_id or exchange.generation < 0:
        return NOTHING
    newest = group.newest_generation
    if newest is not None and newest.generation == exchange.generation and exchange.member_id in (newest.roster or ()):
        return NOTHING
    group.accepted(exchange)
    return (Accepted(exchange),)


def deleted(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    for result in body.results:
        if result.group_id == group.name and result.error_code == NONE:
            group.deleted_us = exchange.res_us  # the generations stay: the next one is explained by it
            group.members.clear()
            group.instances.clear()
            group.issued.clear()
            group.observe(Observation.DELETED, exchange.res_us)
    return NOTHING


def watched_only(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG001
    """Of use to watches alone."""
    return NOTHING
