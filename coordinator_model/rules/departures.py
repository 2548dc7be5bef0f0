"""Clients that go without a LeaveGroup: most have died, and some are written so.

Kafka Streams sends none when it is closed (``internal.leave.group.on.close``): a restart within the session is not to move its tasks. That
holds for static members. A dynamic one comes back under a new id, and the rebalance that this begins waits for the session of the old one.
A static member leaves neither when it is closed nor when it is polled too rarely.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.finding import Certainty
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.sessions import USUAL_INTERVAL_US
from coordinator_model.groups.events import Replaced
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.records import Member
from coordinator_model.rules.base import Breach, admission, who
from coordinator_model.wire import STREAMS_ASSIGNOR
from coordinator_model.wording import seconds

PATIENCE: Final = 2
"""How many times as many returns as of others make a loop of such a client's: it may have been closed on purpose each time."""

_BEATS: Final = 2
"""Heartbeat intervals without a frame: a client that is not polled in time stops its heartbeats."""

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


def static_pause(group: ClassicGroup, replaced: Replaced) -> Breach | None:
    """Return the breach of a static member that gave up its own id without leaving, as clients do that were not polled in time."""
    exchange, newest = replaced.exchange, group.newest_generation
    old = group.members.get(replaced.old_member_id)
    if old is None or old.actor.connection != exchange.actor.connection or old.refusals is not None or old.fenced_us is not None:
        return None
    if not old.rebalance_timeout_ms or not old.session_timeout_ms or not old.joined_us:
        return None
    if group.coordinator_changes.lost_with(group, old):
        return None  # it lost its coordinator with others, and polls as before
    away_us, least_us = exchange.inv_us - old.last_frame_us, _BEATS * (old.heartbeat_interval_us or USUAL_INTERVAL_US)
    if away_us >= old.session_timeout_ms * 1_000:
        return None  # its session ended first: a process that stood still looks the same (T-04)
    if old.last_frame_us - old.joined_us + least_us < old.rebalance_timeout_ms * 1_000:
        return None  # its heartbeats ended sooner than for want of a poll
    if old.proven_us is None or exchange.inv_us - max(old.last_frame_us, old.proven_us) < least_us:
        return None  # it was at work until then, and gave its id up because no coordinator answered
    led = newest is not None and newest.leader == old.id
    lost = (
        " It led the group and was not told that it still does: nobody notices new partitions until a member rejoins."
        if led
        else ""
    )
    return Breach.of_member(
        old,
        f"Static {who(old)}, instance {replaced.instance.id}, joins group {group.name} again without its id on its own connection, "
        f"{seconds(away_us)} after its last frame: its application most likely polled too rarely, and nobody read its "
        f"partitions meanwhile.{lost}",
        "JoinGroup without an id, later than its rebalance timeout after its last join, on the connection of the id that it replaces",
        (*admission(old), request_evidence(exchange)),
        generation=group.generation,
        certainty=Certainty.HEURISTIC,
        subject=replaced.instance.id,
    )
