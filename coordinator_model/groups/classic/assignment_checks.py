"""Checks of a leader's assignment against its members' subscriptions, both in the consumers' embedded protocol.

Brokers do not interpret these bytes, so one that does not decode is the clients' problem and no reason to stop. Many clients read only
the fields of the first version: invalid bytes after them do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from coordinator_model.finding import Evidence
from coordinator_model.groups.records import ClientInfo
from coordinator_model.wire import read_consumer_assignment, read_consumer_subscription

Partitions: TypeAlias = dict[str, tuple[int, ...]]
"""Topic → partitions."""

CONSUMER: Final = "consumer"
COOPERATIVE_STICKY: Final = "cooperative-sticky"
EXCLUSIVE_ASSIGNORS: Final = frozenset({"range", "roundrobin", "sticky", COOPERATIVE_STICKY, "stream", "RoundRobinAssigner"})
"""Assignors that are known to assign each partition to one member only."""

KEPT: Final = 10  #: errors of each kind; a finding names a few, not thousands


class Subscription(NamedTuple):
    """A member's subscription."""

    topics: tuple[str, ...]
    owned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    generation: int = -1  #: in which it owned them; -1 where the version has no such field


class AssignmentErrors(NamedTuple):
    """Errors of the newest submitted assignment; at most :data:`KEPT` of each kind."""

    generation: int
    leader: str
    instance_id: str | None
    actor: ClientInfo
    frame: Evidence
    at_us: int
    protocol: str
    strangers: tuple[str, ...] = ()  #: ids with an entry that are no members
    left_out: tuple[
        str, ...
    ] = ()  #: members without an entry, while another gets several partitions of a topic that they subscribe to
    shared: tuple[tuple[str, int, str, str], ...] = ()  #: topic, partition, and two members that both get it
    unsubscribed: tuple[tuple[str, str], ...] = ()  #: member and topic
    jumps: tuple[tuple[str, int, str, str], ...] = ()  #: topic, partition, owner, new owner
    unread: tuple[str, ...] = ()  #: of Streams: topics to which members subscribe, and the leader does not
    nothing_of: str = ""  #: a subscribed topic that has partitions, if no assignment at all was submitted

    @property
    def any(self) -> bool:
        return bool(self.strangers or self.left_out or self.shared or self.unsubscribed or self.jumps or self.nothing_of)


def read_subscription(raw: bytes) -> Subscription | None:
    """Read a subscription as far as possible; return None if not even its topics can be read."""
    subscription = read_consumer_subscription(raw)
    if subscription is None:
        return None
    owned = tuple((entry.topic, entry.partitions) for entry in subscription.owned_partitions)
    return Subscription(subscription.topics, owned, subscription.generation_id)


def read_assignment(raw: bytes) -> Partitions | None:
    """Read an assignment; return None if it cannot be read. No bytes mean no partitions."""
    if not raw:
        return {}
    assignment = read_consumer_assignment(raw)
    if assignment is None:
        return None
    given: dict[str, list[int]] = {}
    for entry in assignment.assigned_partitions:
        given.setdefault(entry.topic, []).extend(entry.partitions)
    return {topic: tuple(partitions) for topic, partitions in given.items()}


def read_plan(assignments: Iterable[Any]) -> dict[str, Partitions | None]:
    """Return member → assigned partitions, None where these cannot be read.

    :param assignments: the entries of a SyncGroup request.
    """
    return {entry.member_id: read_assignment(entry.assignment) for entry in assignments}


class Wanted(NamedTuple):
    """A topic that members subscribe to, in the newest plan that could be compared with their subscriptions."""

    partitions: int  #: the plan holds none from this number on
    members: int  #: that subscribe to it
    first: str  #: id of the first of them if the leader is not among them, else ""


def wanted(
    plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None], leader: str, at_most: int
) -> dict[str, Wanted]:
    """Return the first topics that members subscribe to, in the order of their names."""
    members: dict[str, list[str]] = {}
    for member_id, offer in offers.items():
        for topic in dict.fromkeys(offer.topics if offer is not None else ()):
            members.setdefault(topic, []).append(member_id)
    given: dict[str, int] = {}
    for _, topic, partition in _each(plan):
        given[topic] = max(given.get(topic, 0), partition + 1)
    return {
        topic: Wanted(given.get(topic, 0), len(members[topic]), "" if leader in members[topic] else members[topic][0])
        for topic in sorted(members)[:at_most]
    }


def _each(plan: Mapping[str, Partitions | None]) -> Iterator[tuple[str, str, int]]:
    for member_id, given in plan.items():
        for topic, partitions in (given or {}).items():
            for partition in partitions:
                yield member_id, topic, partition


def shared(plan: Mapping[str, Partitions | None]) -> tuple[tuple[str, int, str, str], ...]:
    """Return the partitions assigned to two members."""
    owners: dict[tuple[str, int], str] = {}
    found: list[tuple[str, int, str, str]] = []
    for member_id, topic, partition in _each(plan):
        owner = owners.setdefault((topic, partition), member_id)
        if owner != member_id and len(found) < KEPT:
            found.append((topic, partition, owner, member_id))
    return tuple(found)


def is_broadcast(plan: Mapping[str, Partitions | None]) -> bool:
    """Return True if each topic is assigned to several members, and all of them get the same partitions of it."""
    by_topic: dict[str, list[frozenset[int]]] = {}
    for given in plan.values():
        for topic, partitions in (given or {}).items():
            by_topic.setdefault(topic, []).append(frozenset(partitions))
    return all(len(sets) > 1 and len(set(sets)) == 1 for sets in by_topic.values())


def strangers(plan: Mapping[str, Partitions | None], members: Iterable[str]) -> tuple[str, ...]:
    known = set(members)
    return tuple(id_ for id_ in plan if id_ not in known)[:KEPT]


def parts_without_common_topic(offers: Mapping[str, Subscription | None]) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Return the topics and the members of each part of a group that has no topic in common with another part."""
    towards: dict[str, str] = {}  # topic → another of its part; the one that stands for the part leads to itself

    def representative(topic: str) -> str:
        while (following := towards.setdefault(topic, topic)) != topic:
            towards[topic] = topic = towards[following]
        return topic

    subscribers = {id_: offer.topics for id_, offer in offers.items() if offer is not None and offer.topics}
    for topics in subscribers.values():
        for topic in topics:
            towards[representative(topic)] = representative(topics[0])
    parts: dict[str, tuple[set[str], list[str]]] = {}
    for id_, topics in subscribers.items():
        part = parts.setdefault(representative(topics[0]), (set(), []))
        part[0].update(topics)
        part[1].append(id_)
    return tuple(sorted((tuple(sorted(topics)), tuple(sorted(members))) for topics, members in parts.values()))


def left_out(plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None]) -> tuple[str, ...]:
    """Return the members without an entry that could have been given partitions.

    Some clients list only members that get partitions, and with fewer partitions than members some get none. A member counts as left
    out if another gets several partitions of one topic that it subscribes to.
    """
    plenty = {topic for given in plan.values() for topic, partitions in (given or {}).items() if len(partitions) > 1}
    return tuple(
        id_ for id_, offer in offers.items() if id_ not in plan and offer is not None and not plenty.isdisjoint(offer.topics)
    )[:KEPT]


def unsubscribed(plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None]) -> tuple[tuple[str, str], ...]:
    """Return the topics assigned to members that do not subscribe to them."""
    found = []
    for member_id, given in plan.items():
        offer = offers.get(member_id)
        if offer is not None:
            found += [(member_id, topic) for topic, partitions in (given or {}).items() if partitions and topic not in offer.topics]
    return tuple(found[:KEPT])


def foreign_topology(
    plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None], leader: str
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return topics assigned to members of a Streams application that read others, and these.

    A leader that knows of a new topic first assigns it to members that do not. Two applications differ both ways: a member also subscribes
    to topics that the leader does not.
    """
    own = offers.get(leader)
    if own is None:
        return (), ()
    others = {
        id_: [topic for topic in offer.topics if topic not in own.topics] for id_, offer in offers.items() if offer is not None
    }
    found = [(member_id, topic) for member_id, topic in unsubscribed(plan, offers) if others.get(member_id)]
    return tuple(found), tuple(sorted({topic for member_id, _ in found for topic in others[member_id]})[:KEPT])


def jumps(
    plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None], generation: int
) -> tuple[tuple[str, int, str, str], ...]:
    """Return the partitions that move directly from a member that owned them in ``generation``, and still subscribes, to another."""
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
        if len(before) == 1 and member_id not in before:  # the assignor ignores a partition that two members claim
            found.append((topic, partition, min(before), member_id))
    return tuple(found[:KEPT])


def rival_claims(
    offers: Mapping[str, Subscription | None], generations: Iterable[int]
) -> tuple[tuple[str, int, int, tuple[str, ...]], ...]:
    """Return the partitions that several members claim to have owned in the same generation, the newest with any claim.

    :param generations: those whose claims can be compared. A generation issued twice, around a failover, may have two owners.
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
    """Return the partitions of subscribed topics that no member gets.

    :param known: topic → its known number of partitions.
    """
    wanted = {topic for offer in offers.values() if offer is not None for topic in offer.topics}
    given = {(topic, partition) for member_id, topic, partition in _each(plan) if member_id in offers}
    missing = (
        (topic, partition)
        for topic in sorted(wanted & known.keys())
        for partition in range(known[topic])
        if (topic, partition) not in given
    )
    return tuple(islice(missing, KEPT))  # a client may write any partition number, so never enumerate all


def shrunk(
    plan: Mapping[str, Partitions | None], offers: Mapping[str, Subscription | None], known: Mapping[str, int]
) -> dict[str, int]:
    """Return topic → n for each subscribed topic of which exactly the first n partitions are assigned, fewer than known.

    :param known: topic → its known number of partitions.
    """
    given: dict[str, set[int]] = {}
    for _, topic, partition in _each(plan):
        given.setdefault(topic, set()).add(partition)
    wanted = {topic for offer in offers.values() if offer is not None for topic in offer.topics}
    named = {topic: given.get(topic, set()) for topic in wanted & known.keys()}
    return {topic: len(ones) for topic, ones in named.items() if len(ones) < known[topic] and max(ones, default=-1) < len(ones)}
