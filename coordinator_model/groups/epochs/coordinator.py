"""The coordinator of a group whose members have epochs: the tracker of classic groups follows it, too.

Each heartbeat that succeeds keeps a session alive, so it is an act of a coordinator. Its epoch is the member's own and shows nothing of
another broker's.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.groups.coordinator_losses import NEVER_WAITS
from coordinator_model.groups.coordinator_records import are_one
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.events import SLOW_US, Slow
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import COMMITS, JOIN_GROUP, SYNC_GROUP

_ACTS: Final = NEVER_WAITS | COMMITS | {JOIN_GROUP, SYNC_GROUP}


def stands_out(exchange: Exchange, body: Any) -> bool:
    """Return True if an answer shows something of its coordinator apart from its content: that it throttles or is slow."""
    return body.throttle_time_ms > 0 or exchange.res_us - exchange.inv_us > SLOW_US


def on_response(group: EpochGroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    """Process what a response shows of the coordinator, apart from its content for the member."""
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
