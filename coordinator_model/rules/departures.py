"""Clients that go without a LeaveGroup: most have died, and some are written so.

Kafka Streams sends none when it is closed (``internal.leave.group.on.close``): a restart within the session is not to move its tasks. That
holds for static members. A dynamic one comes back under a new id, and the rebalance that this begins waits for the session of the old one.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.groups.records import Member
from coordinator_model.wire import STREAMS_ASSIGNOR

PATIENCE: Final = 2
"""How many times as many returns as of others make a loop of such a client's: it may have been closed on purpose each time."""

WHEN_CLOSED: Final = (
    "If it was stopped on purpose, nothing: a rebalance that begins before its session ends waits for that, also one of its own restart. "
    "With group.instance.id a restart within the session costs no rebalance. Else find out why that process ended: an uncaught exception, "
    "kill, memory limit."
)
WHEN_CLOSED_AGAIN: Final = (
    "Find out what stops and starts that process: a deployment, an uncaught exception, the memory limit, a liveness probe. Restarts on "
    "purpose need group.instance.id, so that one within the session costs no rebalance."
)


def closes_without_leaving(member: Member | None) -> bool:
    """Return True if its client sends no LeaveGroup when it is closed."""
    return member is not None and STREAMS_ASSIGNOR in member.protocols


def how_it_went(member: Member) -> str:
    """Return how a client went whose connection ended without a LeaveGroup, as text."""
    return "closed without leaving, as Kafka Streams does" if closes_without_leaving(member) else "died without leaving"
