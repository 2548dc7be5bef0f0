"""Crash loops: a client's process ends without a LeaveGroup, and another one takes its place, repeatedly.

Many processes may share a client id and a host, and all may be killed at once. A return is therefore added to earlier ones only if the
member that died was the one that had returned: each id inherits the returns of the one that it replaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.groups.classic.trackers.sessions import IDS_KEPT, has_come_again, hung_up_since
from coordinator_model.groups.evidence import host_of
from coordinator_model.groups.records import ClientInfo, Exchange, Member
from coordinator_model.groups.sameness import SAMENESS
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import JOIN_GROUP

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup

RETURNS_KEPT: Final = 32


class Dead(NamedTuple):
    """A member id whose process ended without a LeaveGroup."""

    id: str
    actor: ClientInfo


class CameBackDead(NamedTuple):
    """A client whose process ended without a LeaveGroup got another member id."""

    exchange: Exchange
    member_id: str
    dead: Dead
    known_by: str  #: what shows that it is the same client: "instance id", "client id and host", "client id" or "host"
    returns_us: tuple[int, ...]  #: times of this return and of earlier ones within the configured time


def check(group: ClassicGroup, exchange: Exchange, member_id: str) -> tuple[Event, ...]:
    """Note that a JoinGroup without a member id was given this one; return an event if its client had died before.

    The sessions tracker keeps the last id of each client and its returns.
    """
    found = _dead_before(group, exchange, member_id)
    if found is None:
        return NOTHING
    dead, known_by = found
    sessions = group.sessions
    since_us = exchange.res_us - group.settings.crash_loop_ms * 1_000
    times = (*(at_us for at_us in sessions.returns.get(dead.id, ()) if at_us > since_us), exchange.res_us)[-RETURNS_KEPT:]
    others = [(id_, kept) for id_, kept in sessions.returns.items() if id_ not in {dead.id, member_id}]
    sessions.returns = dict([*others, (member_id, times)][-IDS_KEPT:])
    sessions.succeeded = (*sessions.succeeded, dead.id)[-IDS_KEPT:]
    return (CameBackDead(exchange, member_id, dead, known_by, times),)


def _dead_before(group: ClassicGroup, exchange: Exchange, member_id: str) -> tuple[Dead, str] | None:
    """Return the id that this client had before it died, of several the one with most returns, and what identifies the client."""
    if exchange.instance_id is not None:
        holders = [one for one in group.members.values() if one.instance_id == exchange.instance_id]
        ended = [
            Dead(one.id, one.actor)
            for one in holders
            if hung_up_since(group, one) is not None
            and not group.coordinator_changes.lost_with(group, one)
            and not lives_on(group, one)
        ]
        dead = _most_returned(group, ended, member_id)
        return (dead, "instance id") if dead is not None else None
    ended = _ended(group)
    for known_by, is_same in SAMENESS:
        dead = _most_returned(group, [one for one in ended if is_same(group, one.actor, exchange.actor)], member_id)
        if dead is not None:
            return dead, known_by
    return None


def _most_returned(group: ClassicGroup, dead: list[Dead], successor_id: str) -> Dead | None:
    sessions = group.sessions
    eligible = [one for one in dead if one.id != successor_id and one.id not in sessions.succeeded]
    return max(eligible, key=lambda one: (len(sessions.returns.get(one.id, ())), one.id), default=None)


def _ended(group: ClassicGroup) -> list[Dead]:
    """Return the dynamic members and unused ids whose connection ended without a LeaveGroup."""
    members = [one for one in group.members.values() if one.instance_id is None and _died(group, one)]
    unused = [(id_, issued.actor) for id_, issued in group.issued.items() if id_ not in group.members]
    return [
        *(Dead(member.id, member.actor) for member in members),
        *(Dead(id_, actor) for id_, actor in unused if actor.connection not in group.connections),
    ]


def _died(group: ClassicGroup, member: Member) -> bool:
    """Return True if a member's process ended, as far as its frames and connection show.

    A member that was refused lawfully joins again. After a session without a coordinator, librdkafka gives up its member id and joins
    with an empty one.
    """
    return (
        member.removed != "refused"
        and hung_up_since(group, member) is not None
        and not group.coordinator_changes.lost_with(group, member)
        and not lives_on(group, member)
    )


def gave_up_joining(group: ClassicGroup, member: Member) -> bool:
    """Return True if the client hung up while its JoinGroup was held, and came again, and its process is known to live: R-05 reports it."""
    abandoned = member.abandoned_request
    if abandoned is None or abandoned.api_key != JOIN_GROUP:
        return False
    client = member.actor.client_id, host_of(member.actor.address)
    return has_come_again(group, member.id, client, abandoned.at_us) and lives_on(group, member)


def lives_on(group: ClassicGroup, member: Member) -> bool:
    """Return True if the process of a member whose connection ended is known to live.

    It gave up a JoinGroup that the coordinator held, and did not begin with a FindCoordinator on a new connection, as a process does that
    starts; or it asks on a connection that it had before; or such a connection is open that no other member uses.
    """
    ended_us = member.disconnected_us
    client = member.actor.client_id, host_of(member.actor.address)
    searched = next((known for known in group.sessions.searches if known[:2] == client and known[2] > ended_us), None)
    if searched is not None:
        return 0 < searched[3] <= ended_us
    abandoned = member.abandoned_request
    if abandoned is not None and abandoned.api_key == JOIN_GROUP:
        return True
    used = {one.actor.connection for one in group.members.values()}
    return any(
        0 < line.last_response_us <= ended_us and (line.actor.client_id, host_of(line.actor.address)) == client
        for connection, line in group.connections.items()
        if connection not in used
    )
