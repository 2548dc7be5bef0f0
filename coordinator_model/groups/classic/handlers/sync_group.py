"""SyncGroup: the leader submits the assignment, and each member gets its part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator_model.counters import SYNC
from coordinator_model.events import State
from coordinator_model.groups.classic.state import Observation
from coordinator_model.groups.records import Exchange, StaticMember, SyncFacts
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import COORDINATOR_MOVES, NONE, NOT_ADMITTED, REBALANCE_IN_PROGRESS

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup


def on_request(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    if not exchange.member_id:
        return NOTHING
    member = group.member_of(exchange)
    member.parked_sync = exchange.key
    member.synced = exchange.generation
    newest = group.newest_generation
    leads = newest is not None and newest.generation == exchange.generation and newest.leader == member.id
    if newest is not None and leads and newest.leader_synced_us is None:
        newest.leader_synced_us = exchange.inv_us
        assert isinstance(exchange.facts, SyncFacts)
        newest.idle, newest.assignment_bytes = exchange.facts.idle, exchange.facts.assignment_bytes
    group.changed = True
    return NOTHING


def on_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
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
    member.synced_us = exchange.res_us
    member.idle_since_us = 0
    held = group.instances.get(exchange.instance_id) if exchange.instance_id is not None else None
    if held is not None and held.member_id == member.id and held.held_us and _is_written(group, exchange, held):
        held.settled_us = held.settled_us or exchange.res_us
    ordinary = (
        newest is not None
        and newest.generation == exchange.generation
        and member.id in (newest.roster or ())
        and not newest.rejoin_asked
    )
    unlawful = NOTHING if ordinary else group.unlawful(exchange)
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
    return unlawful


def _is_written(group: ClassicGroup, exchange: Exchange, held: StaticMember) -> bool:
    """Return True if the log contains the holder when it gets its assignment, so that no restart restores the one before.

    The leader's SyncGroup writes all holders to the log. A later replacement is written separately, but not by old brokers.
    """
    newest = group.newest_generation
    with_the_generation = (
        newest is not None
        and newest.generation == exchange.generation
        and newest.leader_synced_us is not None
        and 0 < held.held_us <= newest.leader_synced_us
    )
    return with_the_generation or group.member_identity.broker_version.writes_replacements
