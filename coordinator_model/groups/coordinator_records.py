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
    since_us: int = 0  #: of the first refusal
    last_us: int = 0


class LostCoordinator(NamedTuple):
    """The end of all connections of the group's members, or of all answers to them."""

    since_us: int
    broker: str
    members: tuple[str, ...]  #: ids of the members then
    session_ms: int  #: the shortest session timeout among them
    searching: tuple[tuple[str | None, str], ...] = ()  #: (client id, host) of clients that sent FindCoordinator since
    frames: tuple[Evidence, ...] = ()  #: the first and the latest of these requests
    returned_us: int = 0  #: when a broker accepted a client again, or the lost one was seen to be there
    node_id: str = ""  #: of the coordinator that FindCoordinator named last before; empty if unknown
    asked_us: int = 0  #: when the request was sent whose answer showed the return: a JoinGroup may have been held since
    silent: bool = False  #: it took requests that are answered soon, and answered none; ``since_us`` is the time of the first
    accepted: bool = False  #: a client was accepted since; else FindCoordinator alone may show the return
    denied_us: int = 0  #: when a broker first answered since that it is not the coordinator, not yet, or that there is none


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
    disconnections: dict[tuple[str, str], tuple[Disconnections, ...]]

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


_DISCONNECTIONS_KEPT: Final = 4  #: of a broker


def note_lost(group: Coordinated, since_us: int, members: int) -> None:
    """Note that the group has lost its coordinator, with its members."""
    key = (group.cluster, group.broker)
    before = group.disconnections.get(key, ())
    known = before[-1] if before else None
    if known is None or (known.answered_us and since_us - known.since_us > TOGETHER_US):
        group.disconnections[key] = (
            *before[1 - _DISCONNECTIONS_KEPT :],
            Disconnections(since_us, 1, group.name, members, since_us),
        )
        return
    is_new = known.newest != group.name
    now = Disconnections(
        min(known.since_us, since_us),
        known.groups + is_new,
        group.name,
        known.members + members * is_new,
        max(known.last_us, since_us),
    )
    group.disconnections[key] = (*before[:-1], now)


def note_answer(disconnections: dict[tuple[str, str], tuple[Disconnections, ...]], cluster: str, broker: str, at_us: int) -> None:
    """Note that a broker answered somebody: it is there, if groups have lost it."""
    before = disconnections.get((cluster, broker))
    if before and not before[-1].answered_us and at_us > before[-1].last_us:
        disconnections[cluster, broker] = (*before[:-1], before[-1]._replace(answered_us=at_us))


def lost_together(group: Coordinated, broker: str, since_us: int) -> Disconnections | None:
    """Return which groups lost this broker about then, at any of its addresses; None if that is not known."""
    found: Disconnections | None = None
    for known in _losses_of(group, broker):
        for one in known:
            if one.since_us - TOGETHER_US <= since_us <= one.last_us + TOGETHER_US:
                found = one if found is None else _together(found, one)
    return found


def _losses_of(group: Coordinated, broker: str) -> Iterator[tuple[Disconnections, ...]]:
    """Yield what is known of each address of a broker that groups have lost, oldest first."""
    for (cluster, address), known in group.disconnections.items():
        if cluster == group.cluster and are_one(group, address, broker):
            yield known


def answers_since_us(group: Coordinated) -> int | None:
    """Return since when the coordinator answers again that groups had lost, 0 if none had; None while it answers nobody."""
    latest = [known[-1] for known in _losses_of(group, group.broker)]
    return None if any(not one.answered_us for one in latest) else max((one.answered_us for one in latest), default=0)


def _together(one: Disconnections, other: Disconnections) -> Disconnections:
    """Return as one what was noted of two addresses of a broker."""
    return Disconnections(
        min(one.since_us, other.since_us),
        one.groups + other.groups,
        max((one, other), key=lambda each: each.last_us).newest,
        one.members + other.members,
        max(one.last_us, other.last_us),
        min(filter(None, (one.answered_us, other.answered_us)), default=0),
    )
