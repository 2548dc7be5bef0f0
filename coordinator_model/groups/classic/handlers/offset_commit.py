"""OffsetCommit and TxnOffsetCommit: only a member may commit, at its group's current generation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator_model.groups.records import Exchange
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import COORDINATOR_MOVES, NONE, NOT_ADMITTED

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup


def on_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG001
    codes = exchange.error_codes
    if moved := codes & COORDINATOR_MOVES:
        exchange.error = min(moved)
        return group.coordinator_moves(exchange)
    for error in NOT_ADMITTED:
        if error in codes:
            exchange.error = error
            return group.refuse(exchange, error) if exchange.generation >= 0 else NOTHING
    if NONE not in codes:
        return NOTHING
    member = group.members.get(exchange.member_id)
    if member is not None and member.actor.connection not in group.connections:
        member.actor = exchange.actor  # it went on, on another connection
        group.changed = True
    return _accepted(group, exchange)


def on_transactional_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG001
    """Process an acceptance; a refusal proves nothing.

    From v3 on the coordinator checks the committer against the group (KIP-447). A refusal may be the transaction coordinator's: brokers
    that cannot reach it to verify the transaction answer COORDINATOR_LOAD_IN_PROGRESS (KIP-890).
    """
    return _accepted(group, exchange) if NONE in exchange.error_codes else NOTHING


def _accepted(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    if not exchange.member_id or exchange.generation < 0:
        return NOTHING
    newest = group.newest_generation
    if newest is not None and newest.generation == exchange.generation and exchange.member_id in (newest.roster or ()):
        return NOTHING
    group.accepted(exchange)
    return group.unlawful(exchange)
