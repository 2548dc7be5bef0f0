"""Brokers with everything before them: clients → network → tap → network → a proxy that lies on demand → broker.

What a network cuts before the tap, the tap has seen and the client may not have; what is cut behind it, the broker may not have.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import kafka
from confluent_kafka import Producer
from kafka.errors import KafkaError

from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.faulty_proxy import HostileProxy, Lie, Tamper
from tests.real.brokers import Cluster
from tests.real.harness import running_tap
from tests.real.lab.mirror import Mirror
from tests.real.lab.network import Link, Network

SECOND = "SECOND"  #: name of the second listener for clients
OFFSETS_TOPIC = "__consumer_offsets"
INITIAL_DELAY_MS = 500

logging.getLogger("kafka").setLevel(logging.CRITICAL)


class Site:
    """One or three brokers, mirrored; a context manager.

    :param jars: of the release to run.
    :param tampers: what the proxies before the brokers lie about.
    :param properties: broker properties beside those of the demo's broker.
    :param kind: how the brokers find each other.

    Each broker has a second listener for clients, as while they move to another protocol: members of one group use both.
    """

    def __init__(
        self,
        size: int,
        jars: Sequence[Any],
        mirror: Mirror,
        tampers: Sequence[Tamper] = (),
        *,
        properties: Mapping[str, str | int] | None = None,
        kind: type[Cluster] = Cluster,
    ) -> None:
        self._stack = contextlib.ExitStack()
        self.mirror = mirror
        self._tampers = tampers
        self.fronts = [f"{HOST}:{free_port()}" for _ in range(size)]  #: the brokers as the clients know them
        self.second_fronts = [f"{HOST}:{free_port()}" for _ in range(size)]
        self._cluster = kind(
            size,
            advertised=[
                {"PLAINTEXT": front, SECOND: second} for front, second in zip(self.fronts, self.second_fronts, strict=True)
            ],
            listeners={SECOND: "PLAINTEXT"},
            properties=properties,
            initial_rebalance_delay_ms=INITIAL_DELAY_MS,
            heap_mib=384,
            jars=jars,
        )
        self._proxies: list[HostileProxy] = []
        self.taps: list[str] = []  #: where the tap listens

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._cluster)
            before, behind, listeners = [], [], []
            for front, second, broker in zip(self.fronts, self.second_fronts, self.brokers, strict=True):
                lying = f"{HOST}:{free_port()}"
                self._proxies.append(
                    stack.enter_context(HostileProxy(listen=lying, broker=broker.address(), tampers=self._tampers))
                )
                for known_as, upstream in ((front, lying), (second, broker.address(SECOND))):
                    tap, back = (f"{HOST}:{free_port()}" for _ in range(2))
                    behind.append(Link(back, upstream))
                    self.taps.append(tap)
                    listeners.append(f"{tap}={back}")
                    before.append(Link(known_as, tap))
            self.network_behind = stack.enter_context(Network(behind))
            stack.enter_context(running_tap(listeners, self.mirror, cluster="lab"))
            self.network = stack.enter_context(Network(before))
            self._producer = Producer({"bootstrap.servers": self.internal}, logger=logging.getLogger("streaming.demo.broker.probe"))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._producer.purge()
        self._stack.close()

    @property
    def brokers(self) -> list[Broker]:
        return self._cluster.brokers

    @property
    def internal(self) -> str:
        """Bootstrap servers that nothing stands before."""
        return self._cluster.internal

    @property
    def bootstrap(self) -> str:
        """Bootstrap servers as the clients know them."""
        return ",".join(self.fronts)

    @property
    def bootstraps(self) -> tuple[str, str]:
        """Bootstrap servers as the clients know them, by either listener."""
        return self.bootstrap, ",".join(self.second_fronts)

    @property
    def lies(self) -> list[Lie]:
        """What was lied so far, oldest first."""
        return sorted((lie for proxy in self._proxies for lie in proxy.lies), key=lambda lie: lie.at_us)

    def admin(self, *, mirrored: bool = False) -> contextlib.closing[Any]:
        """An admin client, to be used as a context manager; its requests are seen by the monitor or not."""
        servers = self.bootstrap if mirrored else self.internal
        return contextlib.closing(kafka.KafkaAdminClient(bootstrap_servers=servers.split(","), client_id="lab-admin"))

    def create_topic(self, name: str, partitions: int) -> None:
        self.brokers[0].create_topic(name, partitions, replicas=len(self.brokers))

    def produce(self, topics: Sequence[str]) -> None:
        """A record for each topic, so that there is something to fetch and commit."""
        self._producer.poll(0)
        for topic in topics:
            with contextlib.suppress(BufferError):
                self._producer.produce(topic, b"lab")

    def coordinator_of(self, group: str) -> int:
        """Index of the broker that coordinates a group."""
        partition = abs(java_hash(group)) % 4
        with self.admin() as admin:
            [topic] = admin.describe_topics([OFFSETS_TOPIC])
            [found] = [found for found in topic["partitions"] if found["partition_index"] == partition]
            leader: int = found["leader_id"]
            return leader - 1

    def move_coordinators(self, first: int) -> None:
        """Let the partitions of the offsets topic be led by another broker each, beginning with this one.

        :raises KafkaError: when the brokers refuse.
        """
        nodes = [broker.node_id for broker in self.brokers]
        places = {
            kafka.TopicPartition(OFFSETS_TOPIC, partition): [
                nodes[(first + partition + shift) % len(nodes)] for shift in range(len(nodes))
            ]
            for partition in range(4)
        }
        with self.admin() as admin:
            admin.alter_partition_reassignments(places)
            deadline = time.monotonic() + 20
            while admin.list_partition_reassignments() and time.monotonic() < deadline:
                time.sleep(0.2)
        self.prefer_leaders()

    def prefer_leaders(self) -> None:
        """Let the preferred brokers lead the offsets topic; else the controller sees to it within five minutes, at any moment."""
        with contextlib.suppress(KafkaError), self.admin() as admin:  # some lead already
            admin.elect_leaders(0, {OFFSETS_TOPIC: list(range(4))}, raise_errors=False)


def java_hash(text: str) -> int:
    """``String.hashCode``, by which Kafka gives a group its partition of the offsets topic."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value
