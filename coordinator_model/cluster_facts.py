"""What is known of clusters beside their groups: the releases of their brokers, which addresses are one, and their topics.

None of them is needed: without them findings have less detail, and name a topic by its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import field

from coordinator_model.groups.records import Exchange, host_of
from coordinator_model.releases import Release, first_release, new_in
from coordinator_model.stored import Stored
from coordinator_model.wire import DecodeError, decode
from coordinator_model.wire.constants import API_VERSIONS
from coordinator_model.wire.record import NO_END, NO_RIGHT, MirrorRecord, Unreached

OLDEST: Final[Release] = (4, 0)
"""The first release with groups whose members have epochs."""

_FIRST: Final[Release] = (0, 9)
_LAST_BEFORE: Final[Release] = (3, 9)

TOPICS_KEPT: Final = 10_000

_SIGNS: Final[tuple[tuple[Release, dict[int, int]], ...]] = tuple(
    (release, new_in(release)) for release in ((4, 0), (4, 1), (4, 2), (4, 3), (4, 4))
)
"""Release → the highest versions by API that the one before does not advertise (message schemas of kafka-clients 4.0.2 to 4.4.0)."""


def release_shown(highest: Mapping[int, int]) -> Release | None:
    """Return the oldest release that a broker with these highest versions can be, None if it may be no broker of Apache Kafka 4.

    A proxy lowers versions and never raises them. A broker of another make has some of a release: the signs of all before must be there.
    """
    shown = None
    for release, signs in _SIGNS:
        if any(highest.get(api_key, -1) < version for api_key, version in signs.items()):
            break
        shown = release
    return shown


def older_release_shown(highest: Mapping[int, int]) -> Release:
    """Return the oldest release before 4.0 that a broker with these highest versions can be."""
    shown = max((first_release(api_key, version) for api_key, version in highest.items()), default=_FIRST)
    return min(shown, _LAST_BEFORE)


@lru_cache(maxsize=256)
def _release_in(body: bytes, api_version: int) -> Release | None:
    try:
        answer: Any = decode(bytes(4) + body, request=False, api_key=API_VERSIONS, api_version=api_version).body
    except DecodeError:
        return None
    highest = {known.api_key: known.max_version for known in answer.api_keys}
    return None if answer.error_code else release_shown(highest) or older_release_shown(highest)


class PartitionCount(NamedTuple):
    """How many partitions a topic has."""

    partitions: int  #: 0 if there is no such topic any more
    since_us: int  #: since when it is known to have as many
    made_us: int = 0  #: when it was first seen again after it was seen not to exist; 0 if it never was


class FailedConnections(NamedTuple):
    """Connections of one host to one address that failed in a row."""

    refused: int
    unanswered: int
    first_us: int
    last_us: int


SAME_OUTAGE_US: Final = 60_000_000

ADDRESSES_KEPT: Final = 1_000
CLIENTS_KEPT: Final = 1_000
MISSING_KEPT: Final = 8  #: topics that a client asked for

_YOUNG: Final = 3
"""A connection on which fewer exchanges came before is new: ApiVersions, perhaps an attempt to join."""


class ClusterNodes(Stored):
    """The node ids of brokers' addresses, as far as they are known.

    A coordinator is a node. FindCoordinator names the node's id with the address for those who ask on that listener, so that two addresses
    with one id are one broker. Behind a tap or another address translation the named address is not the one that a capture has: then the
    client that got the node in a response shows it, by the connection that it opens next and on which it is accepted.
    """

    _nodes: dict[tuple[str, str], int] = {}  #: (cluster, address) → node id
    _named_to: dict[tuple[str, str | None, str], tuple[int, int]] = {}  #: client → node id, time

    def learn(self, cluster: str, address: str, node_id: int) -> None:
        """Take over whose address this is. The newest counts: an address may pass to another broker."""
        self._nodes.pop((cluster, address), None)
        self._nodes[cluster, address] = node_id
        _limit(self._nodes, ADDRESSES_KEPT)

    def coordinator_named(self, record: MirrorRecord, body: Any) -> None:
        """Take over what a FindCoordinator response contains."""
        for answer in body.coordinators or (body,):
            if answer.error_code == 0 and answer.node_id >= 0:
                self.learn(record.cluster, f"{answer.host}:{answer.port}", answer.node_id)
                client = (record.cluster, record.client_id, host_of(record.client_address))
                self._named_to.pop(client, None)
                self._named_to[client] = answer.node_id, record.at_us
                _limit(self._named_to, CLIENTS_KEPT)

    def coordinator_accepted(self, cluster: str, exchange: Exchange) -> None:
        """Take over that a broker acted as coordinator for a client: if its connection is new, it is the one named to the client."""
        broker, actor = exchange.broker, exchange.actor
        if exchange.key[1] > _YOUNG or (cluster, broker) in self._nodes:
            return
        named = self._named_to.get((cluster, actor.client_id, host_of(actor.address)))
        if named is not None and named[1] <= exchange.inv_us:
            self.learn(cluster, broker, named[0])

    def node_id(self, cluster: str, broker: str) -> int | None:
        """Return the node id of a broker's address, None if it is not known. A capturer may name brokers by their ids."""
        return int(broker) if broker.isdecimal() else self._nodes.get((cluster, broker))

    def are_one(self, cluster: str, one: str, other: str) -> bool:
        """Return True if both are known to be addresses of one broker."""
        return one == other or (self.node_id(cluster, one) == self.node_id(cluster, other) is not None)

    def are_two(self, cluster: str, one: str, other: str) -> bool:
        """Return True if both are known to be addresses of different brokers."""
        first, second = self.node_id(cluster, one), self.node_id(cluster, other)
        return first is not None and second is not None and first != second


class ClusterFacts(Stored):
    """Facts about clusters that the groups of a partition share."""

    nodes: ClusterNodes = field(default_factory=ClusterNodes)
    _releases: dict[tuple[str, str], Release] = {}
    _topic_names: dict[tuple[str, str], str] = {}
    _partitions: dict[tuple[str, str], PartitionCount] = {}  #: by cluster and name of topic
    _missing: dict[tuple[str, str | None, str], tuple[str, ...]] = {}  #: by cluster and client
    _failed: dict[tuple[str, str, str], FailedConnections] = {}  #: by cluster, address of a broker and host of the client
    _ends_captured: dict[tuple[str, str], bool] = {}  #: (cluster, broker) → whether the end of a connection is captured
    step_us: int = 0  #: how coarse the times of the partition's records are; the coarsest counts
    _first: dict[tuple[str, str], str] = {}  #: (cluster, address) → that of the broker's first listener, if ends are not captured
    _answered_us: dict[tuple[str, str], int] = {}  #: (cluster, such a first listener) → last answer of its broker
    _denied: dict[tuple[str, str | None, str], tuple[str, ...]] = {}  #: by cluster and client, as what is missing

    def connections_failed(self, record: MirrorRecord, failed: Unreached) -> None:
        """Take over that connections to a broker's address failed since the last such record of that host."""
        where = record.cluster, record.broker, host_of(record.client_address)
        known = self._failed.pop(where, None)
        if known is None or record.at_us - known.last_us > SAME_OUTAGE_US:
            known = FailedConnections(0, 0, failed.from_us, 0)
        refused, unanswered = known.refused + failed.refused, known.unanswered + failed.unanswered
        self._failed[where] = FailedConnections(refused, unanswered, known.first_us, record.at_us)
        _limit(self._failed, ADDRESSES_KEPT)

    def failed_connections(self, cluster: str, address: str, client_address: str) -> FailedConnections | None:
        """Return the connections of a host to an address that failed, None if none is known."""
        return self._failed.get((cluster, address, host_of(client_address)))

    def saw_versions(self, cluster: str, broker: str, frame: bytes, api_version: int) -> None:
        """Take over what an ApiVersions response shows. The newest counts: the broker may have been replaced by an older one."""
        release = _release_in(frame[4:], api_version)
        if release is None:
            self._releases.pop((cluster, broker), None)
        else:
            self._releases[cluster, broker] = release

    def release(self, cluster: str, broker: str) -> Release:
        """Return the oldest release that a broker of groups with epochs can be."""
        return max(OLDEST, self.any_release(cluster, broker))

    def any_release(self, cluster: str, broker: str) -> Release:
        """Return the oldest release that a broker can be."""
        return self._releases.get((cluster, broker), _FIRST)

    def connection_opened(self, record: MirrorRecord) -> None:
        """Take over whether the end of the connection will be captured, too. A request log shows none."""
        where = record.cluster, record.broker
        self._ends_captured[where] = not record.frame.startswith(NO_END)
        if not self._ends_captured[where]:
            first = self._first[where] = record.frame[len(NO_END) + 1 :].decode("utf-8", "replace") or record.broker
            self._answered_us.setdefault((record.cluster, first), 0)

    def captures_ends(self, cluster: str, broker: str) -> bool:
        """Return True if a connection to the broker is known to be open while its end was not captured."""
        return self._ends_captured.get((cluster, broker), False)

    def answered(self, cluster: str, broker: str, at_us: int) -> None:
        """Take over that a broker answered somebody: where no end of a connection is captured, nothing else shows that it is there."""
        if self._first and (first := self._first.get((cluster, broker))) is not None:
            self._answered_us[cluster, first] = at_us

    def answered_us(self, cluster: str, addresses: Iterable[str]) -> int | None:
        """Return when a broker last answered anybody, at any of its addresses; None if ends of its connections are captured."""
        if not self._first:
            return None
        firsts = (self._first.get((cluster, one)) for one in addresses)
        return max((self._answered_us[cluster, first] for first in firsts if first is not None), default=None)

    def learn_topics(self, cluster: str, names: Mapping[str, str]) -> None:
        """Take over names of topics; beyond a number of them the oldest are dropped."""
        for topic_id, name in names.items():
            self._topic_names[cluster, topic_id] = name
        _limit(self._topic_names, TOPICS_KEPT)

    def learn_partitions(self, cluster: str, counts: Mapping[str, int], at_us: int) -> None:
        """Take over how many partitions topics have; beyond a number of topics the oldest are dropped."""
        for topic, count in counts.items():
            if count == NO_RIGHT:
                continue
            known = self._partitions.pop((cluster, topic), PartitionCount(count, at_us))
            since_us = known.since_us if known.partitions == count else at_us
            made_us = at_us if count and not known.partitions else known.made_us
            self._partitions[cluster, topic] = PartitionCount(count, since_us, made_us)
        _limit(self._partitions, TOPICS_KEPT)

    def partition_count(self, cluster: str, topic: str) -> PartitionCount | None:
        """Return how many partitions a topic has, None if that is not known."""
        return self._partitions.get((cluster, topic))

    def is_deleted(self, cluster: str, topic: str) -> bool:
        """Return True if a topic is known not to exist."""
        known = self.partition_count(cluster, topic)
        return known is not None and not known.partitions

    def made_anew_us(self, cluster: str, topic: str, after_us: int) -> int | None:
        """Return when a topic was seen again that did not exist in between; None if nothing shows that since a time."""
        known = self.partition_count(cluster, topic)
        return known.made_us if known is not None and known.made_us > after_us else None

    def asked_in_vain(self, record: MirrorRecord, counts: Mapping[str, int]) -> None:
        """Take over which topics a client asked for that do not exist, or of which it has no right to know."""
        if record.client_address:
            client = record.cluster, record.client_id, host_of(record.client_address)
            for kept, why in ((self._missing, 0), (self._denied, NO_RIGHT)):
                if found := [topic for topic, count in counts.items() if count == why]:
                    known = kept.pop(client, ())
                    kept[client] = tuple(dict.fromkeys((*known, *found)))[-MISSING_KEPT:]
                    _limit(kept, CLIENTS_KEPT)
            if client in self._denied:
                self._denied[client] = tuple(topic for topic in self._denied[client] if counts.get(topic, NO_RIGHT) == NO_RIGHT)

    def missing_topics(self, cluster: str, client: tuple[str | None, str]) -> list[str]:
        """Return the topics that a client, by id and host, asked for and that do not exist."""
        counts = {topic: self.partition_count(cluster, topic) for topic in self._missing.get((cluster, *client), ())}
        return [topic for topic, count in counts.items() if count is not None and not count.partitions]

    @property
    def denies(self) -> bool:
        """True if any client asked for a topic that it has no right to know."""
        return bool(self._denied)

    def denied_topics(self, cluster: str, client: tuple[str | None, str]) -> tuple[str, ...]:
        """Return the topics that a client, by id and host, asked for and has no right to know."""
        return self._denied.get((cluster, *client), ())

    def topic_name(self, cluster: str, topic_id: str) -> str | None:
        """Return the name of a topic, None if it is not known."""
        return self._topic_names.get((cluster, topic_id))

    def topic_names(self, cluster: str) -> list[str]:
        """Return the names of the topics that are known to exist."""
        return [name for (where, name), count in self._partitions.items() if where == cluster and count.partitions]

    def has_topic(self, cluster: str, name: str) -> bool:
        """Return True if a topic of this name was seen in the cluster."""
        return any(known == name for (where, _), known in self._topic_names.items() if where == cluster)


def _limit(kept: dict[Any, Any], most: int) -> None:
    """Drop the oldest entries beyond a number."""
    while len(kept) > most:
        del kept[next(iter(kept))]
