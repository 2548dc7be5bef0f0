"""Why a member sends nothing although it lives: it is throttled, it leaves, or it looks for its coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.events import Throttled
from coordinator_model.groups.evidence import client_text
from coordinator_model.groups.records import Exchange, LeaveFacts
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import COORDINATOR_MOVES, FIND_COORDINATOR, JOIN_GROUP, LEAVE_GROUP

USUAL_INTERVAL_MS: Final = 5_000
"""The heartbeat interval that coordinators tell by default."""

_CLIENTS_KEPT: Final = 32


def on_request(group: EpochGroupData, exchange: Exchange) -> None:
    """Note that a client looks for its coordinator or has found it, or that a LeaveGroup names members."""
    if exchange.api_key == FIND_COORDINATOR:
        group.coordinator_changes.searched(group, exchange)
        client = client_text(exchange.actor)
        group.searches.pop(client, None)
        group.searches[client] = exchange.inv_us
        while len(group.searches) > _CLIENTS_KEPT:
            del group.searches[next(iter(group.searches))]
    elif exchange.api_key == LEAVE_GROUP and isinstance(exchange.facts, LeaveFacts):
        for member_id, instance_id in exchange.facts.members:
            member = group.members.get(member_id or group.instances.get(instance_id or "", ""))
            if member is not None:
                member.leaving = True
    elif exchange.api_key == JOIN_GROUP:
        found_coordinator(group, exchange)


def found_coordinator(group: EpochGroupData, exchange: Exchange) -> None:
    """Note that a client joins: who looked for the coordinator was a process that has just started."""
    group.searches.pop(client_text(exchange.actor), None)


def on_response(group: EpochGroupData, exchange: Exchange, throttle_ms: int) -> tuple[Event, ...]:
    """Process an answer that throttles its client, or that shows it that its coordinator has gone: both concern the connection.

    :param throttle_ms: the throttle time in the answer, for which the client sends nothing on the connection.
    """
    if exchange.error_codes & COORDINATOR_MOVES:
        for member in _on_connection(group, exchange):
            member.heartbeat_us = 0  # it sends the next one when it has found another
    if not throttle_ms:
        return NOTHING
    for member in _on_connection(group, exchange):
        member.throttled_until_us = max(member.throttled_until_us, exchange.res_us + throttle_ms * 1_000)
    sender = group.members.get(exchange.member_id)
    interval_ms = (0 if sender is None else sender.interval_ms) or USUAL_INTERVAL_MS
    return (Throttled(exchange, throttle_ms, interval_ms * 1_000),) if throttle_ms > interval_ms else NOTHING


def _on_connection(group: EpochGroupData, exchange: Exchange) -> Iterator[EpochMember]:
    return (member for member in group.members.values() if member.actor.connection == exchange.actor.connection)


def looks_for_coordinator(group: EpochGroupData, member: EpochMember, since_us: int) -> bool:
    """Return True if a client like that of the member has asked for its coordinator after this time, and has not found it."""
    return group.searches.get(client_text(member.actor), 0) > since_us
