"""Whether a broker's address is one of the group's coordinator, which may have several: a coordinator is a node, not an address.

Node ids decide where they are known. Where they are not, frames do: an address that goes on acting on a connection from before another one
acted, without a refusal in between, has not been replaced by that one. Both are then taken for addresses of one coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol, Self
from zlib import crc32

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.groups.records import TOGETHER_US, Disconnections, Exchange

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


class CoordinatorAddresses:
    """Addresses beside ``group.broker`` at which the coordinator of one group acts, as far as frames show it, and those before."""

    __slots__ = ("before", "connections", "others")

    def __init__(self, others: Iterable[str] = (), before: Iterable[str] = (), connections: Iterable[int] = ()) -> None:
        self.others = tuple(others)
        self.before = tuple(before)  #: that acted until another one did, and have not denied being the coordinator
        self.connections = tuple(connections)  #: checksums of the names of the members' connections then

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
            [*connections, *known.connections][:CONNECTIONS_KEPT],
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

    def values(self) -> list[Any]:
        """Return plain values for a snapshot."""
        return [list(self.others), list(self.before), list(self.connections)]


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
