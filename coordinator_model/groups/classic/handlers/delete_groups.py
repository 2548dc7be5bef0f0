"""DeleteGroups: drop what ends with a deleted group, and note if a member was in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator_model.groups.classic.state import Observation
from coordinator_model.groups.events import DeletedAlive
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import NONE

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup


def on_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG001
    if NONE not in exchange.error_codes:
        return NOTHING
    events = _deleted_alive(group, exchange)
    group.deleted_us = exchange.res_us  # the generations stay, because the deletion explains the next one
    group.members.clear()
    group.instances.clear()
    group.issued.clear()
    group.observe(Observation.DELETED, exchange.res_us)
    return events


def _deleted_alive(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    """Return an event if a member of a generation that began before was certainly one as the group was deleted."""
    newest = group.newest_generation
    if newest is None or newest.proven_us >= exchange.inv_us - group.clock_skew_us:
        return NOTHING
    for member in group.present_members():
        if member.proven_us is not None and group.sessions.surely_stays(group, exchange, member):
            return (DeletedAlive(exchange, member, member.proven_us, member.joined_frame),)
    return NOTHING
