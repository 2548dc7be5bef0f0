"""Whether a process that joins under a new id is the successor of one that died, and how often its client came back so.

Many processes may share a client id and a host, and all may be killed at once. A return is therefore added to earlier ones only if the
member that died was the one that had returned: each id inherits the returns of the one that it replaces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, Protocol

from coordinator_model.groups.group import Group
from coordinator_model.groups.records import ClientInfo, Exchange, host_of

_TIMES_KEPT: Final = 32
_IDS_KEPT: Final = 64


def _is_same(group: Group[Any], dead: ClientInfo, actor: ClientInfo) -> bool:  # noqa: ARG001
    return dead.client_id is not None and dead.named == actor.named


def _is_namesake(group: Group[Any], dead: ClientInfo, actor: ClientInfo) -> bool:
    if dead.client_id is None or dead.client_id != actor.client_id:
        return False
    return not any(one.client_id == actor.client_id for one in _connected(group, actor))


def _is_neighbour(group: Group[Any], dead: ClientInfo, actor: ClientInfo) -> bool:
    host = host_of(actor.address)
    return (
        bool(host) and host_of(dead.address) == host and not any(host_of(one.address) == host for one in _connected(group, actor))
    )


def _connected(group: Group[Any], but: ClientInfo) -> list[ClientInfo]:
    """Return the clients of members on other open connections."""
    actors = (member.actor for member in group.members.values())
    return [actor for actor in actors if actor.connection in group.connections and actor.connection != but.connection]


_SAME_CLIENT: Final = (("client id and host", _is_same), ("client id", _is_namesake), ("host", _is_neighbour))
"""What identifies a client, and whether it does, the surest first."""

_SAME_INSTANCE: Final = (("instance id", lambda *_: True),)


class Dead(NamedTuple):
    """A member id whose process ended without leaving."""

    id: str
    actor: ClientInfo


class CameBackDead(NamedTuple):
    """A client whose process ended without leaving got another member id."""

    exchange: Exchange
    member_id: str
    dead: Dead
    known_by: str  #: what shows that it is the same client: "instance id", "client id and host", "client id" or "host"
    returns_us: tuple[int, ...]  #: times of this return and of earlier ones within the configured time


class Returns(Protocol):
    """What is kept of clients that came back after they died."""

    returns: dict[str, tuple[int, ...]]  #: member id → times at which its client had come back
    succeeded: tuple[str, ...]  #: ids of the dead whose client has come back


def came_back(
    group: Group[Any], known: Returns, exchange: Exchange, member_id: str, dead: Iterable[Dead]
) -> tuple[CameBackDead, ...]:
    """Return an event if the client that was given a new member id had died before.

    :param dead: those that have the group.instance.id that the client names, or that have none if it names none.
    """
    found = _successor_of(group, known, exchange, [one for one in dead if one.id != member_id and one.id not in known.succeeded])
    if found is None:
        return ()
    died, known_by = found
    since_us = exchange.res_us - group.settings.crash_loop_ms * 1_000
    times = (*(at_us for at_us in known.returns.get(died.id, ()) if at_us > since_us), exchange.res_us)[-_TIMES_KEPT:]
    others = [(id_, kept) for id_, kept in known.returns.items() if id_ not in {died.id, member_id}]
    known.returns = dict([*others, (member_id, times)][-_IDS_KEPT:])
    known.succeeded = (*known.succeeded, died.id)[-_IDS_KEPT:]
    return (CameBackDead(exchange, member_id, died, known_by, times),)


def _successor_of(group: Group[Any], known: Returns, exchange: Exchange, dead: list[Dead]) -> tuple[Dead, str] | None:
    """Return who the client was before, of several the one with most returns, and what shows it."""
    for known_by, is_same in _SAME_CLIENT if exchange.instance_id is None else _SAME_INSTANCE:
        same = [one for one in dead if is_same(group, one.actor, exchange.actor)]
        if same:
            return max(same, key=lambda one: (len(known.returns.get(one.id, ())), one.id)), known_by
    return None
