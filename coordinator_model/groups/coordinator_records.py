"""What is known of a group's coordinator: its terms, refusals and loss, and the addresses at which it acts.

A coordinator is a node, not an address, and may have several. Node ids decide where they are known. Where they are not, frames do: an
address that goes on acting on a connection from before another one acted, without a refusal in between, has not been replaced by that one.
Both are then taken for addresses of one coordinator.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, Self
from zlib import crc32

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.finding import Evidence
from coordinator_model.groups.records import TOGETHER_US, Disconnections, Exchange
from coordinator_model.stored import Stored


class ErrorStreak(NamedTuple):
    """A time in which the same refusal recurred."""

    since_us: int
    last_us: int
    times: int
    frame: Evidence  #: the first

    @property
    def lasted_us(self) -> int:
        return self.last_us - self.since_us


class CoordinatorTerm(NamedTuple):
    """A time in which a broker acted as coordinator, and did not deny being it."""

    first_us: int  #: effective time of its first request
    last_us: int  #: response time of its latest request
    connections: tuple[int, ...]  #: checksums of the names of those that it used
    frame: Evidence  #: the latest
    generation: int = -1  #: of the latest request that names one


class Persisted(NamedTuple):
    """The newest generation whose assignment was delivered, so that it is in the log."""

    generation: int
    res_us: int
    broker: str
    incarnation: int
    roster: tuple[int, ...]  #: checksums of member ids
    frame: Evidence


class FindCoordinatorAnswer(NamedTuple):
    """Refusals by the broker that FindCoordinator names."""

    broker: str
    times: int
    named_again: bool  #: FindCoordinator named it after it had refused
    frames: tuple[Evidence, ...]


class LostCoordinator(NamedTuple):
    """The end of all connections of the group's members."""

    since_us: int
    broker: str
    members: tuple[str, ...]  #: ids of the members then
    session_ms: int  #: the shortest session timeout among them
    searching: tuple[tuple[str | None, str], ...] = ()  #: (client id, host) of clients that sent FindCoordinator since
    frames: tuple[Evidence, ...] = ()  #: the first and the latest of these requests
    returned_us: int = 0  #: when a broker accepted a client again, or the lost one was seen to be there
    node_id: str = ""  #: of the coordinator that FindCoordinator named last before; empty if unknown
    asked_us: int = 0  #: when the request was sent whose answer showed the return: a JoinGroup may have been held since


class Signs(Enum):
    """What shows whether two addresses that act alternately are two brokers, as far as it is known."""

    TWO_NODES = "their node ids differ"
    APART = "one accepted a generation older than the other's"
    NONE = "nothing"
    ALIKE = "neither accepted a generation older than the other's"


def signs_of(rival: int, generation: int) -> Signs:
    """Return what the generations show that the rival accepted last, and this broker after that."""
    if rival < 0 or generation < 0:
        return Signs.NONE
    return Signs.APART if generation < rival else Signs.ALIKE


# ---------------------------------------------------------------------------------------------------- addresses

CONNECTIONS_KEPT: Final = 64
ADDRESSES_KEPT: Final = 8


class Coordinated(Protocol):
    """A group of any type."""

    cluster: str
    broker: str  #: the coordinator, by the address that acted first
    settled: bool
    name: str
    facts: ClusterFacts
    addresses: CoordinatorAddresses
    disconnections: dict[tuple[str, str], Disconnections]

    def present_members(self) -> Iterator[Any]:
        """Yield the members."""


class CoordinatorAddresses(Stored):
    """Addresses beside ``group.broker`` at which the coordinator of one group acts, as far as frames show it, and those before."""

    others: tuple[str, ...] = ()
    before: tuple[str, ...] = ()  #: that acted until another one did, and have not denied being the coordinator
    connections: tuple[int, ...] = ()  #: checksums of the names of the members' connections then

    @classmethod
    def replaced(cls, group: Coordinated, exchange: Exchange) -> Self:
        """Return the addresses after another address has acted, in this exchange."""
        if not group.settled:
            return cls()  # the coordinator before had denied it
        names = {member.actor.connection for member in group.present_members()} - {exchange.key[0], ""}
        connections = [crc32(name.encode()) for name in sorted(names)]
        known = group.addresses
        return cls(
            (),
            (group.broker, *known.others, *known.before)[:ADDRESSES_KEPT],
            (*connections, *known.connections)[:CONNECTIONS_KEPT],
        )

    def still_acts(self, group: Coordinated, exchange: Exchange) -> bool:
        """Return True if an address that acted before goes on, so that both are the coordinator's; take note of it."""
        if exchange.broker not in self.before or crc32(exchange.key[0].encode()) not in self.connections:
            return False
        if group.facts.nodes.are_two(group.cluster, exchange.broker, group.broker):
            return False
        self.others = (*self.others, *self.before)[-ADDRESSES_KEPT:]
        self.before, self.connections = (), ()
        return True


def are_one(group: Coordinated, one: str, other: str) -> bool:
    """Return True if both are addresses of one broker, as far as it is known."""
    nodes, both = group.facts.nodes, {one, other}
    if nodes.are_one(group.cluster, one, other):
        return True
    return both <= {group.broker, *group.addresses.others} and not nodes.are_two(group.cluster, one, other)


def is_coordinator(group: Coordinated, broker: str) -> bool:
    """Return True if this is an address of the group's coordinator."""
    return broker == group.broker or are_one(group, broker, group.broker)


def steps_down(group: Coordinated, broker: str) -> bool:
    """Return True if the broker that denies being the coordinator, now or yet, was it."""
    if broker in group.addresses.before:
        group.addresses = CoordinatorAddresses(group.addresses.others)
    return group.settled and is_coordinator(group, broker)


def note_lost(group: Coordinated, at_us: int) -> None:
    """Note that the group has lost all its connections to its coordinator."""
    key = (group.cluster, group.broker)
    known = group.disconnections.get(key)
    if known is None or at_us - known.since_us > TOGETHER_US:
        known = Disconnections(at_us, 0, "")
    group.disconnections[key] = Disconnections(known.since_us, known.groups + (known.newest != group.name), group.name)


def others_lost(group: Coordinated, broker: str, since_us: int) -> bool:
    """Return True if other groups lost all their connections to this broker about then, at any of its addresses."""
    return any(
        cluster == group.cluster
        and abs(since_us - known.since_us) <= TOGETHER_US
        and (known.groups > 1 or known.newest != group.name)
        and are_one(group, address, broker)
        for (cluster, address), known in group.disconnections.items()
    )
