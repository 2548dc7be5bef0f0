"""Whether a process that joins under a new id is the successor of one that died, and how often its client came back so.

Many processes may share a client id and a host, and all may be killed at once. A return is therefore added to earlier ones only if the
member that died was the one that had returned: each id inherits the returns of the one that it replaces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, Protocol

from coordinator_model.groups.evidence import process_of
from coordinator_model.groups.group import Group
from coordinator_model.groups.records import ClientInfo, Exchange

_TIMES_KEPT: Final = 32
_IDS_KEPT: Final = 64


class Dead(NamedTuple):
    """A member id whose process ended without leaving, or whose thread of Kafka Streams left."""

    id: str
    actor: ClientInfo
    left_us: int = 0  #: when a thread left; 0 of a process that ended


class CameBackDead(NamedTuple):
    """A client whose process ended without leaving got another member id, or another thread of its process did."""

    exchange: Exchange
    member_id: str
    dead: Dead
    known_by: str  #: what shows that it is the same client: "instance id" or "client id and host"
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
    same = [one for one in dead if one.id != member_id and one.id not in known.succeeded and _is_same(group, one, exchange)]
    if not same:
        return ()
    died = max(same, key=lambda one: (len(known.returns.get(one.id, ())), one.id))
    known_by = "client id and host" if exchange.instance_id is None else "instance id"
    since_us = exchange.res_us - group.settings.crash_loop_ms * 1_000
    times = (*(at_us for at_us in known.returns.get(died.id, ()) if at_us > since_us), exchange.res_us)[-_TIMES_KEPT:]
    others = [(id_, kept) for id_, kept in known.returns.items() if id_ not in {died.id, member_id}]
    known.returns = dict([*others, (member_id, times)][-_IDS_KEPT:])
    known.succeeded = (*known.succeeded, died.id)[-_IDS_KEPT:]
    return (CameBackDead(exchange, member_id, died, known_by, times),)


def _is_same(group: Group[Any], dead: Dead, exchange: Exchange) -> bool:
    """Return True if the client of a dead member is the one that asks.

    A host alone shows nothing: several processes run on one, or stand behind one address translation. Neither does a client id alone.
    While another member of the same name is connected, nobody knows which of them died, or whether a whole process did. Threads of one
    process have names of their own.
    """
    if exchange.instance_id is not None:
        return True
    names, connections = {exchange.actor.named, dead.actor.named}, {exchange.actor.connection, dead.actor.connection}
    if dead.actor.client_id is None or process_of(dead.actor).named != process_of(exchange.actor).named:
        return False
    others = (one.actor for one in group.members.values() if one.present)
    return not any(one.named in names and one.connection in group.connections.keys() - connections for one in others)
