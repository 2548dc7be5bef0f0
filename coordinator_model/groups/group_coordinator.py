"""What is known of a group's coordinator: the addresses at which it acts, its terms and refusals, and its loss.

A coordinator is a node, not an address, and may have several. Node ids decide where they are known. Where they are not, frames do: an
address that goes on acting on a connection from before another one acted, without a refusal in between, has not been replaced by that one.
Both are then taken for addresses of one coordinator.

It is lost when all connections ended, or all answers, and no single client explains it. A connection that ends shows neither who ended it
nor why. Several that end at once, of clients that know nothing of each other, are the broker's, or those of all its clients; only who goes
on afterwards shows which. *A coordinator that is gone ends no session*: it restarts them all when it is back, with the members that it
loads. So nothing falls due for a member in the meantime, and nobody is to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, Self
from zlib import crc32

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.records import TOGETHER_US, AnyMember, Disconnections, Exchange, ExchangeKey
from coordinator_model.settings import Settings
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import (
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    HEARTBEAT,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
)


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
    """What this module asks of a group of any type."""

    cluster: str
    broker: str  #: the coordinator, by the address that acted first
    settled: bool
    name: str
    facts: ClusterFacts
    addresses: CoordinatorAddresses
    disconnections: dict[tuple[str, str], tuple[Disconnections, ...]]
    open: dict[ExchangeKey, Exchange]
    settings: Settings
    changed: bool

    @property
    def members(self) -> Mapping[str, AnyMember]: ...
    @property
    def covered_since_us(self) -> int: ...
    def present_members(self) -> Iterator[Any]: ...


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


# ---------------------------------------------------------------------------------------------------- its loss

NEVER_WAITS: Final = frozenset({HEARTBEAT, LEAVE_GROUP, CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT})
"""Requests of members that wait for nobody, at most for a write."""

_ANSWERED_SOON: Final = NEVER_WAITS | {OFFSET_COMMIT}
"""A commit may be slow, as its write is replicated, and is answered at the latest when that has taken too long."""

_SOUGHT_KEPT: Final = 64


class CoordinatorLoss(Stored):
    """Whether one group has its coordinator, as far as frames show it."""

    named: tuple[str, ...] = ()  #: node id and address of the last FindCoordinator response
    throttled_until_us: int = 0
    lost: LostCoordinator | None = None  #: the latest
    sought: dict[tuple[str | None, str], tuple[int, Evidence]] = {}
    #: client id and host of members' clients → their last FindCoordinator, where the ends of connections are not captured

    def on_no_connection(self, group: Coordinated, at_us: int, sessions_ms: Mapping[str, int]) -> None:
        """Process the end of the last connection of a member.

        :param sessions_ms: member id → session timeout, of those that have not asked to leave.
        """
        lost = self.lost
        if self.is_away or not sessions_ms:
            return
        if lost is not None and at_us <= lost.returned_us + TOGETHER_US and sessions_ms.keys() <= set(lost.members):
            self.lost = lost._replace(returned_us=0, asked_us=0, accepted=False)  # its clients had given up before it answered
        elif lost is None or any((group.members[id_].proven_us or 0) > lost.since_us for id_ in sessions_ms):
            self._lose(group, at_us, sessions_ms)

    def on_time(self, group: Coordinated, now_us: int, sessions_ms: Callable[[], Mapping[str, int]]) -> None:
        """Note that the coordinator has answered nobody in the group since it took a request that is answered soon, some seconds ago."""
        if self.is_away:
            return
        if self.sought and (of_members := sessions_ms()):
            self._on_no_answer(group, now_us, of_members)
        unanswered = (
            one
            for one in group.open.values()
            if one.api_key in _ANSWERED_SOON and one.gap_free and not one.queued_behind and is_coordinator(group, one.broker)
        )
        first = min(unanswered, key=lambda one: one.inv_us, default=None)
        if first is None:
            return
        write_ms = group.settings.write_timeout_ms
        patience_us = write_ms * 1_000 + group.settings.slack_us(write_ms)
        if now_us < max(first.inv_us, self.throttled_until_us, group.covered_since_us) + patience_us:
            return
        if all((member.proven_us or 0) < first.inv_us for member in group.members.values()) and (of_members := sessions_ms()):
            self._lose(group, first.inv_us, of_members, silent=first)

    def _on_no_answer(self, group: Coordinated, now_us: int, sessions_ms: Mapping[str, int]) -> None:
        """Note that the coordinator has answered nobody at all for half a session, while its clients ask for it and ask it nothing."""
        since_us = self.last_answer_us(group)
        if not since_us or group.facts.step_us:
            return  # in times that are coarse an answer and a question may stand in the wrong order
        if now_us < max(since_us, group.covered_since_us) + min(sessions_ms.values()) * 500:
            return
        asked = any(one.inv_us > since_us and one.api_key != FIND_COORDINATOR for one in group.open.values())
        sought = {client: frame for client, (at_us, frame) in self.sought.items() if at_us > since_us}
        if sought and not asked:
            self._lose(group, since_us, sessions_ms)
            self.lost = self.lost and self.lost._replace(searching=tuple(sought), frames=tuple(sought.values())[:2])

    def last_answer_us(self, group: Coordinated) -> int | None:
        """Return when the coordinator last answered anybody; None if ends of its connections are captured, which show more."""
        return group.facts.answered_us(group.cluster, (group.broker, *group.addresses.others))

    def _lose(self, group: Coordinated, since_us: int, sessions_ms: Mapping[str, int], *, silent: Exchange | None = None) -> None:
        self.lost = LostCoordinator(
            since_us,
            group.broker,
            tuple(sessions_ms),
            min(sessions_ms.values()),
            frames=() if silent is None else (request_evidence(silent),),
            node_id=self.named[0] if self.named else "",
            silent=silent is not None,
        )
        note_lost(group, since_us, len(sessions_ms))
        group.changed = True

    @property
    def is_away(self) -> bool:
        """True from the end of all connections until a broker accepts a client."""
        return self.lost is not None and not self.lost.returned_us

    def returned(self, group: Coordinated, exchange: Exchange) -> None:
        """Note that a broker accepted a client, or that the lost one names itself as coordinator."""
        lost = self.lost
        if lost is not None and not lost.accepted:
            returned_us, asked_us = (lost.returned_us, lost.asked_us) if lost.returned_us else (exchange.res_us, exchange.inv_us)
            accepted = exchange.api_key != FIND_COORDINATOR
            self.lost = lost._replace(returned_us=returned_us, asked_us=asked_us, accepted=accepted)
            group.changed = True

    def denied(self, exchange: Exchange) -> None:
        """Note that there is no coordinator yet, although FindCoordinator may have named one: a broker that starts does so."""
        lost = self.lost
        if lost is not None and not lost.accepted and exchange.inv_us > lost.since_us:
            self.lost = lost._replace(denied_us=lost.denied_us or exchange.res_us, returned_us=0, asked_us=0)

    def lost_with_others(self, group: Coordinated) -> bool:
        """Return True if several clients lost their connections to the coordinator at once, so that none need have crashed.

        They are members of this group, or of others with the same coordinator, which answered nobody just afterwards.
        """
        lost = self.lost
        if lost is None:
            return False
        together = lost_together(group, lost.broker, lost.since_us)
        if together is not None and 0 < together.answered_us <= together.last_us + TOGETHER_US and not lost.denied_us:
            return False
        others = together is not None and (together.groups > 1 or together.newest != group.name)
        answered_us = self.answered_us(group)
        serves_others = answered_us and not 0 < lost.returned_us <= answered_us
        return others or (len(lost.members) > 1 and not serves_others)

    def is_lost(self, group: Coordinated) -> bool:
        """Return True from the loss of the coordinator until it accepts a client of the group, if not one client alone lost it."""
        lost = self.lost
        return lost is not None and not lost.returned_us and bool(lost.searching or self.lost_with_others(group))

    def is_gone(self, group: Coordinated) -> bool:
        """Return True until the lost coordinator answers anybody, if clients ask for one or several groups lost it: no session ends.

        The members of one group alone may have been stopped together.
        """
        if self.lost is None or not self.is_lost(group):
            return False
        together = lost_together(group, self.lost.broker, self.lost.since_us)
        several = together is not None and together.groups > 1
        return bool(self.lost.searching) or ((self.lost.silent or several) and not self.answered_us(group))

    def answered_us(self, group: Coordinated) -> int:
        """Return when the lost coordinator first answered anybody since, 0 if no such answer was captured."""
        together = None if self.lost is None else lost_together(group, self.lost.broker, self.lost.since_us)
        return 0 if together is None else together.answered_us

    def watches_since_us(self, group: Coordinated, member: AnyMember) -> int | None:
        """Return since when a coordinator certainly counts the session of a member, None while there may be none.

        It restarts all sessions when it comes back.
        """
        lost = self.lost
        if lost is None or member.id not in lost.members:
            return 0
        if self.is_gone(group):
            return None
        return lost.returned_us or self.answered_us(group)

    def loaded_at(self, at_us: int) -> tuple[str, ...]:
        """Return the ids of the members that a coordinator which has just come back waits for, as it has loaded them."""
        lost = self.lost
        if lost is None or not lost.denied_us or not lost.returned_us <= at_us <= lost.returned_us + lost.session_ms * 1_000:
            return ()
        return lost.members

    def lost_with(self, group: Coordinated, member: AnyMember) -> bool:
        """Return True if the member is one of the clients of :meth:`lost_with_others`."""
        return self.lost is not None and member.id in self.lost.members and self.lost_with_others(group)

    def searched(self, group: Coordinated, exchange: Exchange) -> None:
        """Process a FindCoordinator of a client of the group, after all members lost their connections.

        A live client sends it within a second or two. If none does for half a session timeout, the processes had ended, and a later
        FindCoordinator is from a restarted one.
        """
        lost, client = self.lost, exchange.actor.named
        if self.last_answer_us(group) is not None and any(member.actor.named == client for member in group.members.values()):
            self.sought.pop(client, None)
            self.sought[client] = exchange.inv_us, request_evidence(exchange)
            if len(self.sought) > _SOUGHT_KEPT:
                del self.sought[next(iter(self.sought))]
            group.changed = True
        if lost is None or lost.returned_us or (not lost.searching and exchange.inv_us > lost.since_us + lost.session_ms * 500):
            return
        members = (group.members[id_].actor for id_ in lost.members if id_ in group.members)
        known = {actor.named for actor in members}
        if client in known:
            frame = request_evidence(exchange)
            searching = lost.searching if client in lost.searching else (*lost.searching, client)
            self.lost = lost._replace(searching=searching, frames=(*lost.frames[:1], frame))
            group.changed = True

    def found_again(self, group: Coordinated, exchange: Exchange) -> None:
        """Process a FindCoordinator response of the broker that seems lost: if it names itself, it is there.

        Some clients connect anew for each generation (kafka-go), and their JoinGroups may wait for a member that was killed.
        """
        lost = self.lost
        if lost is None or exchange.inv_us <= lost.since_us or not exchange.error_codes <= {0}:
            return
        if not are_one(group, exchange.broker, lost.broker):
            return
        if exchange.broker in self.named or self.named[:1] == (lost.node_id,):
            self.returned(group, exchange)
