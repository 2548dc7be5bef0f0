"""Client libraries through one tap that rewrites, before brokers whose advertised names nobody but the tap resolves.

    python -m tests.real.rewriting kafka-clients confluent-kafka …
    python -m tests.real.rewriting --direct sarama rdkafka …

Three brokers, which the tap speaks TLS to, and to which the clients log in through it by SCRAM. The clients live through a rolling restart, a broker that is killed, leaders that are elected
anew, a broker that moves to other ports, and a fourth broker. After each step every group has to commit further. All the while the
kernel's table of connections is read: a connection of a client to anything but the tap is a failure.

``--direct`` is the control: the same steps without a tap and without a login, at brokers that advertise where they are. A library that stands still there does
so by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from coordinator_model.finding import Finding
from coordinator_model.settings import Settings
from coordinator_model.wire.record import MirrorRecord
from streaming.demo.broker import HOST, Broker, free_port, guard
from streaming.engine.engine import Engine
from tests.bench.tap import wait_for_port
from tests.certificates import Authority
from tests.conformance.driver import Driver
from tests.conformance.libraries import LIBRARIES, Library
from tests.real.brokers import Cluster
from tests.real.harness import mirrored
from tests.real.resolving_tap import SUFFIX

MEMBERS = 2
STEP_S = 60.0
LISTENER = "SCRAM"
USER, PASSWORD = "orders", "correct-horse-battery-staple"
PORTS = 10


class Brokers:
    """Three brokers that advertise names under :data:`SUFFIX`, and a fourth that may join them."""

    def __init__(self, folder: Path, jars: Sequence[Path] | None = None) -> None:
        self.authority = Authority(folder)
        names = [f"broker-{node_id}{SUFFIX}" for node_id in (1, 2, 3, 4)]
        server = self.authority.identity("broker", address=HOST, hosts=names)
        properties: dict[str, str | int] = {
            f"listener.name.scram.ssl.{store}.{what}": value
            for store, file in (("keystore", server.both), ("truststore", self.authority.certificate))
            for what, value in (("type", "PEM"), ("location", str(file)))
        }
        properties |= {
            "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.scram.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
            "min.insync.replicas": 2,
            "default.replication.factor": 3,
        }
        options: dict[str, Any] = {"listeners": {LISTENER: "SASL_SSL"}, "properties": properties, "heap_mib": 300, "jars": jars}
        self.cluster = Cluster(3, offsets_partitions=6, **options)
        self.fourth = Broker(node_id=4, **options)
        self.fourth.join(self.cluster.brokers[0]._cluster_id, self.cluster.brokers)
        for broker, name in zip((*self.cluster.brokers, self.fourth), names, strict=True):
            broker._advertised[LISTENER] = f"{name}:{broker._ports[LISTENER]}"
        bound = ",".join(f"{name}://{self.fourth.address(name)}" for name in self.fourth._protocols)
        self.fourth._properties |= {"process.roles": "broker", "listeners": bound}

    @contextlib.contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """For one task: kafka-python's asks a group's coordinator where it once was, for good.

        Not librdkafka's: that aborts the process when a broker ends during some calls.
        """
        admin = KafkaAdminClient(bootstrap_servers=self.cluster.internal.split(","))
        try:
            yield admin
        finally:
            admin.close()

    def add_user(self) -> dict[str, str]:
        """Make the user that all clients log in as."""
        how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        admin = AdminClient({"bootstrap.servers": self.cluster.internal})
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion(USER, how, PASSWORD.encode())])[USER].result(60)
        return {"user": USER, "password": PASSWORD}

    def move(self, node_id: int) -> None:
        """Restart a broker on other ports, but for the one that nobody but this program and the brokers use."""
        broker = self.cluster.brokers[node_id - 1]
        broker.stop()
        broker._ports |= {LISTENER: free_port(), "PLAINTEXT": free_port()}
        broker._advertised[LISTENER] = f"broker-{node_id}{SUFFIX}:{broker._ports[LISTENER]}"
        broker.start()


class Reached(NamedTuple):
    """How clients reach the brokers."""

    bootstrap: str
    ports: range  #: where they may connect beside the bootstrap address
    login: dict[str, str]  #: user and password; empty where none is asked for


@contextlib.contextmanager
def tap(brokers: Brokers, folder: Path) -> Iterator[Reached]:
    """The tap in a process of its own."""
    address = f"{HOST}:{free_port()}"
    first = free_port()
    command = [
        *(sys.executable, "-m", "tests.real.resolving_tap", "tap", "--rewrite"),
        *("--listen", f"{address}={brokers.cluster.brokers[0]._advertised[LISTENER]}", "--ports", f"{first}-{first + PORTS}"),
        *("--broker-ca", str(brokers.authority.certificate), "--bootstrap-server", brokers.cluster.internal),
        *("--create-topic", "--partitions", "2"),
        *("--brokers-file", str(folder / "tap.brokers"), "--loss-file", str(folder / "loss"), "--status-every", "10"),
    ]
    with (folder / "tap.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log)
    watch = guard(process.pid)
    try:
        wait_for_port(address)  # some libraries give up if nobody listens when they start
        yield Reached(address, range(first, first + PORTS + 1), brokers.add_user())
    finally:
        process.terminate()
        process.wait(60)
        watch.kill()
        watch.wait()


@contextlib.contextmanager
def direct(brokers: Brokers, _: Path) -> Iterator[Reached]:
    """No tap."""
    yield Reached(brokers.cluster.bootstrap, range(1, 65_536), {})


Way = Callable[[Brokers, Path], contextlib.AbstractContextManager[Reached]]


class Watch:
    """Reads the kernel's table of connections of the clients until it is stopped."""

    def __init__(self, drivers: Sequence[Driver], allowed: set[int]) -> None:
        self.elsewhere: set[tuple[str, str, int]] = set()
        self.seen = 0
        self._drivers = drivers
        self._allowed = allowed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.2):
            for driver in self._drivers:
                with contextlib.suppress(psutil.Error):
                    for found in psutil.Process(driver._process.pid).net_connections("inet"):
                        if found.raddr and found.status != psutil.CONN_NONE:
                            self.seen += 1
                            if found.raddr.ip.removeprefix("::ffff:") != HOST or found.raddr.port not in self._allowed:
                                self.elsewhere.add((driver.client_id, found.raddr.ip, found.raddr.port))


class Run:
    """The clients of some libraries, each with a group of its own."""

    def __init__(self, libraries: Sequence[Library], brokers: Brokers, reached: Reached, folder: Path) -> None:
        self._libraries = libraries
        self._brokers = brokers
        self.drivers = [
            Driver(library.command(), _order(library, reached, number), folder / f"{library.name}.log")
            for library in libraries
            for number in range(MEMBERS)
        ]

    def committed(self) -> dict[str, int]:
        """Offsets committed by each group, all partitions together."""
        found = {}
        with contextlib.suppress(KafkaError), self._brokers.admin() as admin:
            for library in self._libraries:
                with contextlib.suppress(KafkaError):
                    offsets = admin.list_group_offsets({library.name: None})[library.name]
                    found[library.name] = sum(max(one.offset, 0) for one in offsets.values())
        return found

    def live(self, what: str) -> list[str]:
        """Wait until every group has committed further; return those that have not."""
        before: dict[str, int] = {}
        began = time.monotonic()
        behind = [library.name for library in self._libraries]
        while behind and time.monotonic() - began < STEP_S:
            now = self.committed()
            before = now | before  # from the first reading that has the group
            behind = [name for name in behind if now.get(name, 0) <= before.get(name, 0)]
            time.sleep(0.5)
        for driver in self.drivers:
            if driver.errors and driver.order["group"] in behind:
                print(f"  {driver.client_id}: {driver.errors[-1]}; {driver.count('assigned')} assignments")
        print(f"{what}: {'all go on' if not behind else 'stand still: ' + ', '.join(behind)}", time.strftime("%X"), flush=True)
        return [f"{what}: {name}" for name in behind]


def _order(library: Library, reached: Reached, number: int) -> dict[str, Any]:
    return {
        "bootstrap": reached.bootstrap,
        **reached.login,
        "group": library.name,
        "client_id": f"{library.name}-{number}",
        "topics": ["orders"],
        "assignor": library.assignors[0],
        "commits": "auto",
        "instance_id": None,
        "session_timeout_ms": 10_000,
        "heartbeat_interval_ms": 1_000,
        "rebalance_timeout_ms": 30_000,
        "protocol": library.protocol,
    }


@contextlib.contextmanager
def produced(reached: Reached, topics: list[str]) -> Iterator[None]:
    """A producer that goes through the tap as well."""
    stop = threading.Event()
    config: dict[str, Any] = {"bootstrap.servers": reached.bootstrap, "enable.idempotence": True}
    if reached.login:
        config |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
        config |= {"sasl.username": USER, "sasl.password": PASSWORD}
    producer = Producer(config | {"topic.metadata.refresh.interval.ms": 2_000})

    def produce() -> None:
        while not stop.wait(0.05):
            for topic in topics:
                producer.produce(topic, b"x" * 100)
            producer.poll(0)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        assert producer.flush(60) == 0, "records could not be produced through the tap"


def live_through(libraries: Sequence[Library], way: Way, folder: Path) -> tuple[list[str], Watch]:
    """All steps; returns what stood still, and what was watched."""
    brokers = Brokers(folder / "certificates")
    for library in libraries:
        library.command()
    with brokers.cluster, contextlib.ExitStack() as stack:
        stack.callback(brokers.fourth.close)
        brokers.cluster.brokers[0].create_topic("orders", 6, replicas=3)
        reached = stack.enter_context(way(brokers, folder))
        topics = ["orders"]
        stack.enter_context(produced(reached, topics))
        run = Run(libraries, brokers, reached, folder)
        for driver in run.drivers:
            stack.callback(driver.kill)
        watch = Watch(run.drivers, {int(reached.bootstrap.rpartition(":")[2]), *reached.ports})
        still = run.live("start")
        for broker in brokers.cluster.brokers:
            broker.restart()
            still += run.live(f"broker {broker.node_id} restarted")
        brokers.cluster.brokers[1].kill()
        still += run.live("broker 2 killed")
        brokers.cluster.brokers[1].start()
        still += run.live("broker 2 is back")
        with contextlib.suppress(KafkaError), brokers.admin() as admin:  # none is needed
            admin.elect_leaders(0)
        still += run.live("leaders elected")
        brokers.move(3)
        still += run.live("broker 3 moved to other ports")
        brokers.fourth.start()
        with brokers.admin() as admin:
            admin.create_topics(
                [NewTopic("fresh", replica_assignments={0: [4], 1: [4]}, topic_configs={"min.insync.replicas": "1"})]
            )
        topics.append("fresh")
        for driver in run.drivers:
            driver.tell("subscribe", topics=["orders", "fresh"])
        still += run.live("a fourth broker")
        time.sleep(10)
        watch.stop()
        for driver in run.drivers:
            driver.close()
        time.sleep(2)
        if way is tap:
            records = mirrored(brokers.cluster.internal, "rebalance-mirror")
            print(f"{len(records)} records in the mirror; found: {found_in(records)}")
        return still, watch


def found_in(records: Sequence[MirrorRecord]) -> list[str]:
    """Severity, rule and group of each finding about what a tap has mirrored."""
    newest: dict[str, Finding] = {}
    engine = Engine(topic="rebalance-mirror", settings=Settings(), found=lambda finding: newest.update({finding.id: finding}))
    for record in records:
        engine.recorded(record)
    engine.finish()
    return sorted(f"{finding.severity.value} {finding.rule} {finding.group}" for finding in newest.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", default=["confluent-kafka", "kafka-python"])
    parser.add_argument("--direct", dest="way", action="store_const", const=direct, default=tap, help="without a tap")
    options = parser.parse_args()
    chosen = [library for library in LIBRARIES if library.name in options.libraries]
    if options.way is tap and (without := [library.name for library in chosen if not library.logs_in]):
        parser.error(f"the drivers of {', '.join(without)} cannot log in")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        still, watch = live_through(chosen, options.way, folder)
        for log in sorted(folder.glob("*.log")):
            print(f"--- {log.name}", log.read_text()[-6000:], sep="\n")
    print(f"{watch.seen} connections looked at, elsewhere: {sorted(watch.elsewhere)}")
    print(f"stood still: {still}")
    return 1 if still or watch.elsewhere else 0


if __name__ == "__main__":
    sys.exit(main())
