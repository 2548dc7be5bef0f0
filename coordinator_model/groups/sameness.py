"""Whether a process that joins under a new id is the successor of one that died: by client id and host, and who else is there.

Many processes may share a client id and a host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from coordinator_model.groups.evidence import host_of
from coordinator_model.groups.records import ClientInfo


class WithActor(Protocol):
    """A member of a group of any type."""

    actor: ClientInfo


class WithConnections(Protocol):
    """A group of any type."""

    connections: Any

    @property
    def members(self) -> Mapping[str, WithActor]:
        """Members by id, those that are gone included."""


def _is_same(group: WithConnections, dead: ClientInfo, actor: ClientInfo) -> bool:  # noqa: ARG001
    return dead.client_id is not None and dead.client_id == actor.client_id and host_of(dead.address) == host_of(actor.address)


def _is_namesake(group: WithConnections, dead: ClientInfo, actor: ClientInfo) -> bool:
    if dead.client_id is None or dead.client_id != actor.client_id:
        return False
    return not any(one.client_id == actor.client_id for one in _connected(group, actor))


def _is_neighbour(group: WithConnections, dead: ClientInfo, actor: ClientInfo) -> bool:
    host = host_of(actor.address)
    return (
        bool(host) and host_of(dead.address) == host and not any(host_of(one.address) == host for one in _connected(group, actor))
    )


def _connected(group: WithConnections, but: ClientInfo) -> list[ClientInfo]:
    """Return the clients of members on other open connections."""
    actors = (member.actor for member in group.members.values())
    return [actor for actor in actors if actor.connection in group.connections and actor.connection != but.connection]


SAMENESS: Final = (("client id and host", _is_same), ("client id", _is_namesake), ("host", _is_neighbour))
"""What identifies a client, and whether it does, the surest first."""
