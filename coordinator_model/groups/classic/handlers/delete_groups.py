"""DeleteGroups: drop what ends with a deleted group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator_model.groups.classic.state import Observation
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import NONE

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup


def on_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG001
    if NONE in exchange.error_codes:
        group.deleted_us = exchange.res_us  # the generations stay, because the deletion explains the next one
        group.members.clear()
        group.instances.clear()
        group.issued.clear()
        group.observe(Observation.DELETED, exchange.res_us)
    return NOTHING
