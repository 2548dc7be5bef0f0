"""A leader's plan, held against what its members offered: what the consumers' embedded protocol says, and what does not fit together.

The traps. *Nobody but clients ever reads these bytes*, so a blob that does not decode is their affair and no reason to stop. *Brokers read
the first version's fields only*, and so do many clients: bytes behind them that make no sense harm nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from coordinator_model.finding import Evidence
from coordinator_model.groups.records import ClientInfo
from coordinator_model.wire import DecodeError, decode_assignment, decode_subscription

Partitions: TypeAlias = dict[str, tuple[int, ...]]
"""Topic → partitions."""

CONSUMER: Final = "consumer"
COOPERATIVE_STICKY: Final = "cooperative-sticky"
EXCLUSIVE_ASSIGNORS: Final = frozenset({"range", "roundrobin", "sticky", COOPERATIVE_STICKY, "stream", "RoundRobinAssigner"})
"""Assignors that are known to give a partition to one member only."""

KEPT: Final = 10  #: of each kind of flaw; a finding names a few, not thousands
_ANY_LATER_VERSION: Final = b"\x7f\xff"


class Subscription(NamedTuple):
    """What a member's subscription says."""

    topics: tuple[str, ...]
    owned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    generation: int = -1  #: in which it owned them; -1 where the version cannot tell


class AssignmentErrors(NamedTuple):
    """What is wrong with the newest plan that was submitted; at most :data:`KEPT` of each kind."""

    generation: int
    leader: str
    instance_id: str | None
    actor: ClientInfo
    frame: Evidence
    at_us: int
    protocol: str
    strangers: tuple[str, ...] = ()  #: ids that are given something and are no members
    left_out: tuple[str, ...] = ()  #: members without an entry, while others hold several partitions of a topic they want
    shared: tuple[tuple[str, int, str, str], ...] = ()  #: topic, partition, and two members who both get it
    unsubscribed: tuple[tuple[str, str], ...] = ()  #: member and topic
    jumps: tuple[tuple[str, int, str, str], ...] = ()  #: topic, partition, owner, new owner
    nothing_of: str = ""  #: a topic with partitions that members want, when no assignment at all was submitted

    @property
    def any(self) -> bool:
        return bool(self.strangers or self.left_out or self.shared or self.unsubscribed or self.jumps or self.nothing_of)


def read_subscription(raw: bytes) -> Subscription | None:
    """The subscription, as far as it can be read; None when not even its topics can."""
    try:
        subscription = decode_subscription(raw)
    except DecodeError:
        topics = _topics_of_first_version(raw)
        return None if topics is None else Subscription(topics)
    owned = tuple((entry.topic, entry.partitions) for entry in subscription.owned_partitions)
    return Subscription(subscription.topics, owned, subscription.generation_id)


def read_assignment(raw: bytes) -> Partitions | None:
    """The assignment; None when it cannot be read."""
    try:
        assignment = decode_assignment(raw)
    except DecodeError:
        try:
            assignment = decode_assignment(_ANY_LATER_VERSION + raw[2:])  # all versions begin alike; what follows is not looked at
        except DecodeError:
            return None
    given: Partitions = {}
    for entry in assignment.assigned_partitions:
        given[entry.topic] = given.get(entry.topic, ()) + entry.partitions
    return given


def _topics_of_first_version(raw: bytes) -> tuple[str, ...] | None:
    """Topics and user data, as version 0 has them, whatever comes behind."""
    at, topics = 6, []
    for _ in range(int.from_bytes(raw[2:6], "big", signed=True)):
        size = int.from_bytes(raw[at : at + 2], "big", signed=True)
        end = at + 2 + size
        if size < 0 or end > len(raw):
            return None
        topics.append(raw[at + 2 : end].decode(errors="replace"))
        at = end
    user_data = int.from_bytes(raw[at : at + 4], "big", signed=True)
    if len(raw) < at + 4 + max(user_data, 0):
        return None
    return tuple(topics)


def read_plan(assignments: Iterable[Any]) -> dict[str, Partitions | None]:
    """Member → what it is given, None where that cannot be read. No bytes mean no partitions.

    :param assignments: the entries of a SyncGroup request.
    """
    return {entry.member_id: read_assignment(entry.assignment) if entry.assignment else {} for entry in assignments}


def _each(plan: Mapping[str, Partitions | None]) -> Iterator[tuple[str, str, int]]:
    for member_id, given in plan.items():
        for topic, partitions in (given or {}).items():
            for partition in partitions:
                yield member_id, topic, partition


def shared(plan: Mapping[str, Partitions | None]) -> tuple[tuple[str, int, str, str], ...]:
    """Partitions given to two members."""
    owners: dict[tuple[str, int], str] = {}
    found: list[tuple[str, int, str, str]] = []
    for member_id, topic, partition in _each(plan):
        owner = owners.setdefault((topic, partition), member_id)
        if owner != member_id and len(found) < KEPT:
            found.append((topic, partition, owner, member_id))
    return tuple(found)


def is_broadcast(plan: Mapping[str, Partitions | None]) -> bool:
    """Whether all who are given a topic are given the same partitions of it, and there are several of them."""
    by_topic: dict[str, list[frozenset[int]]] = {}
    for given in plan.values():
        for topic, partitions in (given or {}).items():
            by_topic.setdefault(topic, []).append(frozenset(partitions))
    return all(len(sets) > 1 and len(set(sets)) == 1 for sets in by_topic.values())


def strangers(plan: Mapping[str, Partitions | None], members: Iterable[str]) -> tuple[str, ...]:
    known = set(members)
    return tuple(id_ for id_ in plan if id_ not in known)[:KEPT]


def left_out(plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None]) -> tuple[str, ...]:
    """Members without an entry although there was something to give them.

    Some clients name only those to whom they give something, and with fewer partitions than members some get nothing. A member is left
    out when somebody holds several partitions of one topic that it wants.
    """
    plenty = {topic for given in plan.values() for topic, partitions in (given or {}).items() if len(partitions) > 1}
    return tuple(
        id_ for id_, offer in offers.items() if id_ not in plan and offer is not None and not plenty.isdisjoint(offer.topics)
    )[:KEPT]


def unsubscribed(plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None]) -> tuple[tuple[str, str], ...]:
    """Topics given to members that did not ask for them."""
    found = []
    for member_id, given in plan.items():
        offer = offers.get(member_id)
        if offer is not None:
            found += [(member_id, topic) for topic, partitions in (given or {}).items() if partitions and topic not in offer.topics]
    return tuple(found[:KEPT])


def jumps(
    plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None], generation: int
) -> tuple[tuple[str, int, str, str], ...]:
    """Partitions that go from one who owned them in ``generation`` and still wants them straight to another."""
    owners: dict[tuple[str, int], set[str]] = {}
    for member_id, offer in offers.items():
        if offer is not None and offer.generation == generation:
            for topic, partitions in offer.owned:
                if topic in offer.topics:
                    for partition in partitions:
                        owners.setdefault((topic, partition), set()).add(member_id)
    found = []
    for member_id, topic, partition in _each(plan):
        before = owners.get((topic, partition), set())
        if len(before) == 1 and member_id not in before:  # two who claim the same are both disregarded by the assignor
            found.append((topic, partition, min(before), member_id))
    return tuple(found[:KEPT])


def rival_claims(
    offers: Mapping[str, Subscription | None], generations: Iterable[int]
) -> tuple[tuple[str, int, int, tuple[str, ...]], ...]:
    """Partitions that several members say they owned in the same generation, the newest in which anybody did.

    :param generations: those whose claims can be compared. A generation that was issued twice, around a failover, has two owners.
    """
    claims: dict[tuple[str, int], dict[int, list[str]]] = {}
    for member_id, offer in offers.items():
        if offer is not None and offer.generation >= 0:
            for topic, partitions in offer.owned:
                for partition in partitions:
                    claims.setdefault((topic, partition), {}).setdefault(offer.generation, []).append(member_id)
    comparable = set(generations)
    found = []
    for (topic, partition), by_generation in claims.items():
        newest = max(by_generation)
        if len(by_generation[newest]) > 1 and newest in comparable:
            found.append((topic, partition, newest, tuple(by_generation[newest][:KEPT])))
    return tuple(found[:KEPT])


def unowned(
    plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None], known: Mapping[str, int]
) -> tuple[tuple[str, int], ...]:
    """Partitions of topics that a member wants and that no member is given.

    :param known: topic → how many partitions it is known to have.
    """
    wanted = {topic for offer in offers.values() if offer is not None for topic in offer.topics}
    given = {(topic, partition) for member_id, topic, partition in _each(plan) if member_id in offers}
    missing = (
        (topic, partition)
        for topic in sorted(wanted & known.keys())
        for partition in range(known[topic])
        if (topic, partition) not in given
    )
    return tuple(islice(missing, KEPT))  # partition numbers are whatever a client wrote: never count them all


def shrunk(
    plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None], known: Mapping[str, int]
) -> dict[str, int]:
    """Topics that a member wants, and of which the plan names all partitions up to a number lower than the known one.

    :param known: topic → how many partitions it was known to have.
    """
    given: dict[str, set[int]] = {}
    for _, topic, partition in _each(plan):
        given.setdefault(topic, set()).add(partition)
    wanted = {topic for offer in offers.values() if offer is not None for topic in offer.topics}
    named = {topic: given.get(topic, set()) for topic in wanted & known.keys()}
    return {topic: len(ones) for topic, ones in named.items() if len(ones) < known[topic] and max(ones, default=-1) < len(ones)}
