"""Members that cannot act, because their broker keeps them waiting: nobody blames those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.events import SLOW_US
from coordinator_model.groups.records import AnyMember, Exchange
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import JOIN_GROUP, SYNC_GROUP
from coordinator_model.wording import a_or_an, clock

WHEN_HELD_BACK: Final = (
    "Look at the broker: its request queue, its request handlers, its disks. Where it throttles these clients, raise their quota."
)


def unanswered(group: ClassicGroup | EpochGroupData) -> dict[str, Exchange]:
    """Return for each connection its oldest open request of those that are answered at once.

    A broker processes one request of a connection at a time, and most clients send the next one when the last one is answered.
    """
    oldest: dict[str, Exchange] = {}
    for waiting in group.open.values():
        if waiting.api_key not in {JOIN_GROUP, SYNC_GROUP} and waiting.gap_free:
            oldest.setdefault(waiting.actor.connection, waiting)
    return oldest


def free_until_us(waiting: Exchange | None) -> int | None:
    """Return since when a client is kept waiting that has this request open; None if it has none."""
    return None if waiting is None else waiting.inv_us + SLOW_US


def held_back(group: ClassicGroup | EpochGroupData, at_us: int) -> Callable[[AnyMember], str]:
    """Return what says why a member can send no request then, as a relative clause, which is empty if it can.

    A client that is throttled stays silent until the time is over (KIP-219).
    """
    throttled_us, oldest = group.coordinator_changes.throttled_until_us, unanswered(group)

    def why(member: AnyMember) -> str:
        if throttled_us > at_us:
            return f"whose broker throttles clients of this group until {clock(throttled_us)}"
        waiting = oldest.get(member.actor.connection)
        if waiting is None or waiting.inv_us + SLOW_US > at_us:
            return ""
        return f"whose broker has not answered {a_or_an(API_NAMES[waiting.api_key])} since {clock(waiting.inv_us)}"

    return why
