"""Whose process ended without a LeaveGroup, and has come back as another member: crash loops are made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator_model.groups.classic.trackers.sessions import has_come_again, hung_up_since
from coordinator_model.groups.records import Exchange, Member, Removed
from coordinator_model.groups.successors import Dead, came_back
from coordinator_model.groups.tracker import Event
from coordinator_model.wire.constants import JOIN_GROUP

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup


def check(group: ClassicGroup, exchange: Exchange, member_id: str) -> tuple[Event, ...]:
    """Note that a JoinGroup without a member id was given this one; return an event if its client had died before."""
    if exchange.instance_id is None:
        # A member that was refused lawfully joins again.
        died = [
            one
            for one in group.members.values()
            if one.instance_id is None and one.removed != Removed.REFUSED and _died(group, one)
        ]
        unused = [(id_, issued.actor) for id_, issued in group.issued.items() if id_ not in group.members]
        ended = [Dead(id_, actor) for id_, actor in unused if actor.connection not in group.connections]
    else:
        died = [one for one in group.members.values() if one.instance_id == exchange.instance_id and _died(group, one)]
        ended = []
    dead = [*(Dead(one.id, one.actor) for one in died), *ended]
    return came_back(group, group.sessions, exchange, member_id, dead)


def _died(group: ClassicGroup, member: Member) -> bool:
    """Return True if a member's process ended, as far as its frames and connection show.

    After a session without a coordinator, librdkafka gives up its member id and joins with an empty one.
    """
    return (
        hung_up_since(group, member) is not None
        and not group.coordinator_changes.lost_with(group, member)
        and not is_alive(group, member)
    )


def goes_on_as_another(group: ClassicGroup, member: Member) -> bool:
    """Return True if the client hung up and came again under another id, and its process is known to be alive.

    Where it hung up while its JoinGroup was held, R-05 reports it.
    """
    abandoned = member.abandoned_request
    ended_us = abandoned.at_us if abandoned is not None and abandoned.api_key == JOIN_GROUP else hung_up_since(group, member)
    return ended_us is not None and has_come_again(group, member.id, member.actor.named, ended_us) and is_alive(group, member)


def looks_for_coordinator(group: ClassicGroup, member: Member) -> bool:
    """Return True if a client whose connection ended asks for the coordinator since, and has not asked to join."""
    client, ended_us = member.actor.named, member.disconnected_us
    if not any(known[:2] == client and known[2] > ended_us for known in group.sessions.searches):
        return False
    joins = any(one.actor.named == client and one.inv_us > ended_us for one in group.waiting_joins())
    return not joins and not has_come_again(group, member.id, client, ended_us)


def gave_up_its_id(group: ClassicGroup, member: Member) -> bool:
    """Return True if its client has since asked on its connection to join under no id, as librdkafka does after a session without an
    answer. The coordinator may have answered neither, and the connection may have ended.
    """
    connection, since_us = member.actor.connection, member.last_frame_us
    waits = any(one.key[0] == connection and not one.member_id and one.inv_us > since_us for one in group.waiting_joins())
    return waits or any(one.unnamed == connection != "" and one.asked_us > since_us for one in group.recurring.given_up)


def is_alive(group: ClassicGroup, member: Member) -> bool:
    """Return True if the process of a member whose connection ended is known to be alive.

    It gave up a JoinGroup that the coordinator held, and did not begin with a FindCoordinator on a new connection, as a process does that
    starts; or it asks on a connection that it had before; or such a connection is open that no other member uses; or it had given its id up
    on the connection that ended.
    """
    if gave_up_its_id(group, member):
        return True
    ended_us = member.disconnected_us
    client = member.actor.named
    searched = next((known for known in group.sessions.searches if known[:2] == client and known[2] > ended_us), None)
    if searched is not None:
        return 0 < searched[3] <= ended_us
    abandoned = member.abandoned_request
    if abandoned is not None and abandoned.api_key == JOIN_GROUP:
        return True
    used = {one.actor.connection for one in group.members.values()}
    return any(
        0 < line.last_response_us <= ended_us and line.actor.named == client
        for connection, line in group.connections.items()
        if connection not in used
    )
