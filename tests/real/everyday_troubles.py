"""What keeps groups from consuming in an ordinary week: each trouble, and how it is caused on a running broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, ResourceType
from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove

from coordinator_model.events import PARTITIONS_ADDED, REMOVED, SUBSCRIPTION_CHANGED, TOPIC_MADE_ANEW, TOPIC_MATCHES
from coordinator_model.groups.records import Removed
from tests.conformance.driver import Driver
from tests.conformance.libraries import Library
from tests.real.everyday_place import ALONE, LOST, RETENTION_S, SESSION_MS, UNSHARED, Place
from tests.real.harness import wait_for

LIBRDKAFKA: Final = frozenset({"confluent-kafka", "confluent-kafka-consumer"})
PYTHON: Final = frozenset({"kafka-python"})
JAVA: Final = frozenset({"kafka-clients", "kafka-clients-consumer"})
SHARE: Final = frozenset({"kafka-clients-share"})
STREAMS: Final = frozenset({"kafka-streams-streams"})
PLAIN: Final = LIBRDKAFKA | PYTHON
POLL_MS: Final = 15_000  #: how long a client may not poll
USUAL_S: Final = 75.0  #: a number of members is usual after a minute


class Cast:
    """A group of its own for one trouble, its topic and its clients."""

    def __init__(self, place: Place, trouble: Trouble, library: Library) -> None:
        self.place, self.library = place, library
        self.group = f"{trouble.name}-{library.name}"
        self.clients: dict[int, Driver] = {}
        self.began_s = 0.0

    def topic(self, partitions: int = 4) -> None:
        self.place.broker.create_topic(self.group, partitions)
        self.place.topics.append(self.group)

    def enter(self, number: int, bootstrap: str | None = None, **changes: object) -> Driver:
        """Start a client of the group."""
        order: dict[str, Any] = {
            "bootstrap": bootstrap or self.place.front,
            "group": self.group,
            "client_id": f"{self.group}-{number}",
            "topics": [self.group],
            "assignor": self.library.assignors[0],
            "commits": "auto",
            "instance_id": None,
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 3_000,
            "rebalance_timeout_ms": POLL_MS,
            "protocol": self.library.protocol,
            **changes,
        }
        self.clients[number] = Driver(self.library.command(), order, self.place.folder / f"{self.group}-{number}.log")
        return self.clients[number]

    def usual(self, count: int = 2) -> None:
        """Let the group have so many members for long enough that they are usual."""
        self.topic()
        for number in range(1, count + 1):
            client = self.enter(number)
            if self.library.tells:
                client.wait_for("assigned", 1, 60)
            else:
                wait_for(lambda joined=number: len(self.place.of(self.group)) >= joined, f"{client.client_id} is a member", 60)
        self.wait(USUAL_S)

    def reads_and_leaves(self, seconds: float) -> None:
        """Let one member commit for so long, and close."""
        self.topic()
        self.enter(1).wait_for("assigned", 1, 60)
        self.wait(seconds)
        self.clients[1].close()

    def happens(self) -> None:
        self.began_s = time.monotonic()

    def wait(self, seconds: float) -> None:
        self.place.over.wait(seconds)

    def end(self) -> None:
        for client in self.clients.values():
            client.kill()


# ---------------------------------------------------------------------------------------------------- the troubles


def forbidden_group(cast: Cast) -> None:
    cast.topic()
    cast.place.administrator.grant("auditor", "read", ResourceType.GROUP, cast.group)
    cast.happens()
    cast.enter(1)


def forbidden_topic(cast: Cast) -> None:
    cast.topic()
    cast.place.administrator.grant("auditor", "read", ResourceType.TOPIC, cast.group)
    cast.happens()
    cast.enter(1)


def unreachable(cast: Cast) -> None:
    cast.topic()
    cast.happens()
    cast.enter(1, cast.place.broker.address(LOST))


def held_instance(cast: Cast) -> None:
    cast.topic()
    cast.enter(1, instance_id="pod-0").wait_for("assigned", 1, 60)
    cast.wait(5)
    cast.happens()
    cast.enter(2, instance_id="pod-0")
    if cast.library.protocol == "classic":  # the first one is fenced, and started again
        cast.wait(8)
        cast.clients[1].kill()
        cast.happens()
        cast.enter(1, instance_id="pod-0")


def misspelt(cast: Cast) -> None:
    cast.happens()
    cast.enter(1, topics=[f"{cast.group}s"])


def no_match(cast: Cast) -> None:
    cast.topic()
    cast.happens()
    cast.enter(1, topics=["^no-such-.*"])


def open_transaction(cast: Cast) -> None:
    cast.topic()
    front = cast.place.front
    asks = Consumer({"bootstrap.servers": front, "group.id": cast.group, "client.id": f"{cast.group}-dead"})
    names = {"transactional.id": f"{cast.group}-tx", "client.id": f"{cast.group}-dead", "transaction.timeout.ms": 300_000}
    producer = Producer({"bootstrap.servers": front, **names})
    producer.init_transactions(60)
    producer.begin_transaction()
    positions = [TopicPartition(cast.group, number, 1) for number in range(4)]
    producer.send_offsets_to_transaction(positions, asks.consumer_group_metadata(), 60)
    asks.close()
    cast.happens()
    cast.enter(1)


def killed(cast: Cast) -> None:
    cast.usual()
    cast.happens()
    cast.clients[2].kill()


def frozen(cast: Cast) -> None:
    cast.usual()
    cast.happens()
    cast.clients[2].suspend()


def unpolled(cast: Cast) -> None:
    cast.usual()
    cast.happens()
    cast.clients[2].tell("block", ms=900_000)


def closed(cast: Cast) -> None:
    cast.usual()
    cast.happens()
    for client in cast.clients.values():
        client.close()


def poison(cast: Cast) -> None:
    cast.topic(1)
    cast.enter(1).wait_for("assigned", 1, 60)
    cast.wait(10)
    cast.happens()
    for _ in range(4):
        cast.clients[1].kill()
        cast.wait(1)
        cast.enter(1, commits="never").wait_for("assigned", 1, 60)
        cast.wait(2)


def set_back(cast: Cast) -> None:
    cast.reads_and_leaves(20)
    cast.wait(5)
    cast.happens()
    positions = ConsumerGroupTopicPartitions(cast.group, [TopicPartition(cast.group, number, 0) for number in range(4)])
    admin = AdminClient({"bootstrap.servers": cast.place.front, "client.id": f"{cast.group}-admin"})
    admin.alter_consumer_group_offsets([positions])[cast.group].result(60)
    cast.enter(1)


def expired(cast: Cast) -> None:
    cast.reads_and_leaves(15)
    cast.wait(RETENTION_S + 15)
    cast.happens()
    cast.enter(1)


def deleted_topic(cast: Cast) -> None:
    cast.usual(1)
    cast.happens()
    cast.place.topics.remove(cast.group)
    cast.place.administrator.admin.delete_topics([cast.group])[cast.group].result(60)


def hanging(cast: Cast) -> None:
    cast.topic()
    cast.enter(1).wait_for("assigned", 1, 60)
    cast.enter(2, rebalance_timeout_ms=900_000).wait_for("assigned", 1, 60)
    cast.wait(USUAL_S)
    cast.happens()
    cast.clients[2].tell("block", ms=800_000)


def grown(cast: Cast) -> None:
    cast.topic(2)
    cast.enter(1).wait_for("assigned", 1, 60)
    cast.wait(5)
    cast.happens()
    cast.place.administrator.admin.create_partitions([NewPartitions(cast.group, 4)])[cast.group].result(60)


def new_match(cast: Cast) -> None:
    cast.topic()
    cast.enter(1, topics=[f"^{cast.group}.*"]).wait_for("assigned", 1, 60)
    cast.wait(5)
    cast.happens()
    cast.place.broker.create_topic(f"{cast.group}-2", 4)


def made_anew(cast: Cast) -> None:
    cast.topic()
    cast.enter(1).wait_for("assigned", 1, 60)
    cast.wait(10)
    cast.happens()
    cast.place.administrator.admin.delete_topics([cast.group])[cast.group].result(60)
    cast.wait(5)
    cast.place.broker.create_topic(cast.group, 4)


def idle_limit(cast: Cast) -> None:
    """One holds the rebalance up for which another one waits, longer than a connection of that may be idle."""
    cast.topic()
    cast.enter(1, rebalance_timeout_ms=60_000).wait_for("assigned", 1, 60)
    cast.wait(5)
    cast.clients[1].tell("block", ms=40_000)
    cast.happens()
    cast.enter(2, rebalance_timeout_ms=60_000, idle_ms=4_000)


def uncommitted(cast: Cast) -> None:
    cast.topic()
    cast.enter(1, commits="never").wait_for("assigned", 1, 60)
    cast.happens()


def unavailable(cast: Cast) -> None:
    cast.happens()
    cast.enter(1, cast.place.beside[ALONE])


def not_offered(cast: Cast) -> None:
    cast.happens()
    cast.enter(1, cast.place.beside[UNSHARED])


def removed(cast: Cast) -> None:
    """It lives, and does not know it before its next heartbeat."""
    cast.topic()
    for number in (1, 2):
        cast.enter(number, instance_id=f"pod-{number}").wait_for("assigned", 1, 60)
    cast.wait(5)
    cast.happens()
    admin = KafkaAdminClient(bootstrap_servers=cast.place.front, client_id=f"{cast.group}-admin")
    admin.remove_group_members(cast.group, [MemberToRemove(group_instance_id="pod-1")])
    admin.close()


def poisoned_thread(cast: Cast) -> None:
    """The application throws at the record, and each thread is replaced that dies of it."""
    cast.topic(1)
    cast.enter(1).wait_for("assigned", 1, 60)
    cast.wait(10)
    cast.happens()
    producer = Producer({"bootstrap.servers": cast.place.broker.internal})
    producer.produce(cast.group, b"poison")
    producer.flush(30)


class Trouble(NamedTuple):
    name: str
    what: str
    rules: frozenset[str]  #: each is of it, or the causes of the rebalance that it brings
    says: str  #: with these words
    make: Callable[[Cast], None]
    lasts_s: float = 90.0  #: for so long it may stay unfound
    by: frozenset[str] = PLAIN | SHARE | STREAMS  #: libraries
    of_group: bool = False  #: no client of it is to be named
    beside: str = ""  #: the broker of which it is, if that is not the first one


TROUBLES: Final = (
    Trouble("forbidden", "no right to its group", frozenset({"M-14"}), "GROUP_AUTHORIZATION_FAILED", forbidden_group),
    Trouble("denied", "no right to its topic", frozenset({"M-14", "M-16", "A-15"}), "{group}", forbidden_topic),
    Trouble(
        "unreachable",
        "named an address at which nobody listens",
        frozenset({"M-15"}),
        "{lost}",
        unreachable,
        by=LIBRDKAFKA | JAVA | SHARE | STREAMS,
    ),
    Trouble(
        "instance",
        "another living process holds its instance id",
        frozenset({"E-06", "M-14", "S-01"}),
        "pod-0",
        held_instance,
        by=PLAIN,
    ),
    Trouble("misspelt", "a topic that does not exist", frozenset({"A-15", "M-16", "R-21"}), "{group}s", misspelt, by=PLAIN | SHARE),
    Trouble("pattern", "a pattern that matches nothing", frozenset({"A-15", "M-16"}), "", no_match, by=PLAIN | JAVA),
    Trouble(
        "transaction",
        "an open transaction of a dead producer",
        frozenset({"O-12"}),
        "{group}-tx",
        open_transaction,
        by=LIBRDKAFKA | JAVA | STREAMS,
    ),
    Trouble(
        "source",
        "its source topic does not exist",
        frozenset({"R-19"}),
        "{group}s",
        misspelt,
        of_group=True,
        by=STREAMS,
    ),
    Trouble("killed", "one of two killed for good", frozenset({"T-13"}), "", killed),
    Trouble("frozen", "one of two frozen", frozenset({"T-13"}), "", frozen),
    Trouble("unpolled", "one of two stops polling for good", frozenset({"T-13", "T-05", "T-12"}), "poll", unpolled),
    Trouble("closed", "both end in good order and nobody comes back", frozenset({"T-13"}), "", closed, lasts_s=120),
    Trouble(
        "poison", "it dies each time with one partition, whose offset stays", frozenset({"M-13"}), "{group}-0", poison, by=PLAIN
    ),
    Trouble(
        "thread",
        "each thread dies of one record, and is replaced",
        frozenset({"M-13"}),
        "{group}-0",
        poisoned_thread,
        lasts_s=200,
        by=STREAMS | {"kafka-streams"},
    ),
    Trouble("reset", "an operator's tool sets offsets back", frozenset({"O-13"}), "", set_back, by=PLAIN | STREAMS),
    Trouble("expired", "offsets expired while the group was empty", frozenset({"O-10"}), "{group}-", expired, by=PLAIN | STREAMS),
    Trouble("deleted", "its topic is deleted", frozenset({"A-15", "O-09", "R-21"}), "{group}", deleted_topic, by=PLAIN | SHARE),
    Trouble(
        "gone",
        "its source topic is deleted",
        frozenset({"R-19", "T-13"}),
        "source topic",
        deleted_topic,
        of_group=True,
        by=STREAMS,
    ),
    Trouble(
        "hanging",
        "one of two hangs in a record and heartbeats",
        frozenset({"O-15"}),
        "{group}-",
        hanging,
        lasts_s=120,
        by=PLAIN,
    ),
    Trouble("grown", "partitions are added", frozenset({PARTITIONS_ADDED}), "", grown, of_group=True, by=PLAIN | STREAMS),
    Trouble(
        "matching",
        "a topic is made that its pattern matches",
        frozenset({SUBSCRIPTION_CHANGED}),
        "",
        new_match,
        by=frozenset({"confluent-kafka", "kafka-python", "kafka-clients"}),
    ),
    Trouble(
        "matched",
        "a topic is made that its pattern matches, as the broker resolves it",
        frozenset({TOPIC_MATCHES}),
        "",
        new_match,
        of_group=True,
        by=frozenset({"confluent-kafka-consumer", "kafka-clients-consumer"}),
    ),
    Trouble(
        "anew",
        "its topic is deleted and made again",
        frozenset({TOPIC_MADE_ANEW, "O-10"}),
        "made anew",
        made_anew,
        of_group=True,
        by=PLAIN,
    ),
    Trouble(
        "idle",
        "connections.max.idle.ms is below the poll interval of a member that waits",
        frozenset({"T-10"}),
        "connections.max.idle.ms",
        idle_limit,
        by=frozenset({"confluent-kafka", "kafka-python", "kafka-clients"}),
    ),
    Trouble(
        "unavailable",
        "a lone broker cannot make __consumer_offsets, which is to have three replicas",
        frozenset({"C-13"}),
        "COORDINATOR_NOT_AVAILABLE",
        unavailable,
        by=PLAIN | JAVA | SHARE | STREAMS,
        beside=ALONE,
    ),
    Trouble(
        "unshared", "share groups are switched off", frozenset({"M-14"}), "share.version", not_offered, by=SHARE, beside=UNSHARED
    ),
    Trouble("removed", "an admin client removes a living member", frozenset({REMOVED, Removed.REMOVED}), "", removed, by=PLAIN),
    Trouble("uncommitted", "it never commits", frozenset({"O-14"}), "", uncommitted, lasts_s=640, of_group=True, by=PLAIN),
)
