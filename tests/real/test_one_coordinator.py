"""What classic members do before a real broker that once was called a fault of theirs, or of somebody else.

They use two listeners, give a JoinGroup up, freeze beyond their sessions, or get their answers late.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import pytest

from coordinator_model.finding import Blame, Finding, Severity
from coordinator_model.settings import Settings
from coordinator_model.wire import ConsumerProtocolSubscription as Subscription
from coordinator_model.wire import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    decode,
    encode_subscription,
)
from coordinator_model.wire.record import Kind, MirrorRecord
from coordinator_model.wire.recording import read_recording
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.processes import Child, Processes
from streaming.demo.raw_client import Connection, RawMember, find_coordinator, share
from tests.real.harness import kafka_python_consumer, running_tap, wait_for
from tests.real.lab.client import Client
from tests.real.lab.client import Kind as ClientKind
from tests.real.lab.monitor import Monitor
from tests.real.lab.network import Link, Network
from tests.real.watched import OTHER_TOPIC, TOPIC, member_ids, needs_library, rules

pytestmark = [pytest.mark.real, pytest.mark.long]

GROUP = "one-coordinator"
PARTITIONS = 4
HELD_S = 5.0  #: longer than the rebalance timeout of those who do not wait for the answer


class TwoListeners(NamedTuple):
    """A broker with two listeners behind one tap."""

    monitor: Monitor
    one: str  #: the tap's ``host:port`` before a listener
    other: str
    joins: HeldJoins  #: of clients on the other one


class HeldJoins:
    """A sink that hands on to a monitor, and can make the network hold the answers back that a client gets after its next JoinGroup."""

    def __init__(self, monitor: Monitor, network: Network) -> None:
        self._monitor = monitor
        self._network = network
        self._held_for = ""

    def hold(self, client_id: str) -> None:
        self._held_for = client_id

    def release(self) -> None:
        self._held_for = ""
        self._network.delay_answers(0)

    def write(self, record: MirrorRecord) -> None:
        """Take a record from the tap."""
        if record.api_key == JoinGroupRequest.API_KEY and record.kind is Kind.REQUEST and record.client_id == self._held_for:
            self._network.delay_answers(HELD_S)
        self._monitor.write(record)


@contextmanager
def watched(folder: Path) -> Iterator[TwoListeners]:
    fronts = [f"{HOST}:{free_port()}" for _ in range(2)]
    behind = f"{HOST}:{free_port()}"
    with (
        Broker(advertised={"PLAINTEXT": fronts[0], "OTHER": fronts[1]}, listeners={"OTHER": "PLAINTEXT"}) as broker,
        Network([Link(behind, broker.address("OTHER"))]) as network,
        Monitor(folder / "records", Settings()) as monitor,
        running_tap(
            [f"{fronts[0]}={broker.address()}", f"{fronts[1]}={behind}"],
            joins := HeldJoins(monitor, network),
            cluster="seen",
        ),
    ):
        for topic in (TOPIC, OTHER_TOPIC):
            broker.create_topic(topic, PARTITIONS)
        yield TwoListeners(monitor, fronts[0], fronts[1], joins)


def start(processes: Processes, kind: ClientKind, front: str, name: str, **options: Any) -> Child:
    """A member of a client library, in a process of its own."""
    needs_library(kind)
    fields = {"topics": (TOPIC,), "other_topics": (TOPIC, OTHER_TOPIC), "commits": "sync", **options}
    return processes.start(name, Client(kind=kind, bootstrap=front, group=GROUP, client_id=name, **fields).command())


def stable_above(monitor: Monitor, members: int, generation: int) -> int:
    """Wait until this many members share a newer generation at rest; give that."""

    def reached() -> int | None:
        known = monitor.described().get(GROUP, {})
        at_rest = known.get("state") == "Stable" and len(known["members"]) == members
        return known["generation"] if at_rest and known["generation"] > generation else None

    newer: int = wait_for(reached, f"{members} members share a generation above {generation}", 90)
    return newer


def begun_above(monitor: Monitor, generation: int) -> int:
    """Wait until a newer generation has begun; give that."""

    def reached() -> int | None:
        known: int | None = monitor.described()[GROUP]["generation"]
        return known if known is not None and known > generation else None

    newer: int = wait_for(reached, f"a generation above {generation} begins", 60)
    return newer


def findings(monitor: Monitor) -> dict[str, Finding]:
    """Rule → the newest state of one finding of it."""
    return {said.finding.rule: said.finding for all_said in monitor.findings().values() for said in all_said}


def consume(front: str, name: str, stop: Event) -> None:
    """A member by kafka-python that commits every second."""
    consumer = kafka_python_consumer(
        TOPIC,
        bootstrap_servers=front,
        group_id=GROUP,
        client_id=name,
        session_timeout_ms=10_000,
        heartbeat_interval_ms=1_000,
        auto_commit_interval_ms=1_000,
        auto_offset_reset="earliest",
    )
    while not stop.is_set():
        consumer.poll(timeout_ms=200)
    consumer.close()


@pytest.mark.timeout(240)
def test_members_of_kafka_python_on_two_listeners_of_one_broker_are_no_split_brain(tmp_path):
    stop = Event()
    with watched(tmp_path) as (monitor, one, other, _):
        members = [Thread(target=consume, args=(front, f"member-{number}", stop)) for number, front in enumerate((one, other, one))]
        for member in members:
            member.start()
            time.sleep(2)
        time.sleep(25)
        stop.set()
        for member in members:
            member.join(30)
        time.sleep(2)
        found = findings(monitor)
    assert [rule for rule, finding in found.items() if finding.severity.rank >= Severity.ERROR.rank or rule.startswith("C-")] == []


@pytest.mark.timeout(240)
def test_a_raw_client_that_gives_its_JoinGroup_up_is_a_ghost_and_no_crash_loop(tmp_path):
    """JoinGroup v3, whose client hangs up and asks again under no id, while another member is slow to rejoin.

    It hangs up after another time each: after the same time it would be its request timeout, and the ghosts fold under that (T-10).
    """
    offer = (JoinGroupRequestProtocol(name="range", metadata=encode_subscription(Subscription(topics=(TOPIC,)))),)
    request = JoinGroupRequest(
        group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=60_000, protocol_type="consumer", protocols=offer
    )
    with watched(tmp_path) as (monitor, front, _, _):
        coordinator = find_coordinator(front, GROUP, client_id="slow")
        with Connection(coordinator, client_id="slow") as connection:
            slow = RawMember(
                connection=connection, group=GROUP, topic=TOPIC, session_timeout_ms=10_000, rebalance_timeout_ms=60_000
            )
            slow.enter()
            for heartbeats in (3, 4, 6):
                with Connection(coordinator, client_id="impatient") as gives_up:
                    gives_up.send(request, api_version=3)
                    for _ in range(heartbeats):
                        time.sleep(0.5)
                        slow.heartbeat()
            last = Connection(coordinator, client_id="impatient")
            last.send(request, api_version=3)
            time.sleep(0.5)
            slow.enter()
            finding = wait_for(lambda: findings(monitor).get("R-05"), "R-05 is found", 20)
            last.close()
        said = rules(monitor)
    assert (finding.severity, finding.blame, finding.client_id) == (Severity.WARNING, Blame.CLIENT, "impatient")
    assert finding.action.startswith("Raise that client's request timeout above its rebalance timeout, 60.0 s")
    assert not said & {"M-13", "M-09"}


@pytest.mark.timeout(300)
def test_a_sarama_client_that_gives_its_JoinGroup_up_is_told_to_wait_longer_and_is_no_crash_loop(tmp_path):
    """It speaks as before Kafka 2.2, so each JoinGroup that it gives up is one of a new member."""
    needs_library("sarama")
    with watched(tmp_path) as (monitor, front, _, _), Processes(tmp_path, lambda _: None) as processes:
        with Connection(find_coordinator(front, GROUP, client_id="slow"), client_id="slow") as connection:
            slow = RawMember(
                connection=connection, group=GROUP, topic=TOPIC, session_timeout_ms=10_000, rebalance_timeout_ms=60_000
            )
            slow.enter()
            slow.sync(share(TOPIC, PARTITIONS, [slow.member_id]))
            start(processes, "sarama", front, "impatient", release="2.0.0", request_timeout_ms=5_000, rebalance_timeout_ms=60_000)

            def given_up() -> bool:
                slow.heartbeat()
                time.sleep(0.2)
                return "T-10" in findings(monitor)

            wait_for(given_up, "T-10 is found", 55)
            slow.enter()
        finding = findings(monitor)["T-10"]
        said = rules(monitor)
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CONFIG)
    assert "impatient" in finding.summary
    assert "request timeout" in finding.action
    assert not said & {"M-13", "M-09"}


@pytest.mark.lab
@pytest.mark.timeout(400)
def test_a_librdkafka_member_whose_ids_the_coordinator_removes_leaves_none_behind(tmp_path):
    """It freezes beyond its session, and comes back under another id, more often than a client may leave ids behind (M-09)."""
    with watched(tmp_path) as (monitor, front, _, _), Processes(tmp_path, lambda _: None) as processes:
        times = {"session_timeout_ms": 2_000, "heartbeat_interval_ms": 400, "rebalance_timeout_ms": 10_000}
        start(processes, "confluent-kafka", front, "stays", **times)
        freezes = start(processes, "confluent-kafka", front, "freezes", **times)
        ids: list[str] = []

        def back() -> set[str]:
            return member_ids(monitor, GROUP, "freezes").difference(ids)

        def removed() -> bool:
            return member_ids(monitor, GROUP, "freezes").isdisjoint(ids)

        for _ in range(20):
            ids += wait_for(back, f"it has had {len(ids)} ids, and has another", 60)
            freezes.signal(signal.SIGSTOP)
            wait_for(removed, "the coordinator removes it", 60)
            time.sleep(1.5)  # so that it often knows by itself that its session is over
            freezes.signal(signal.SIGCONT)
        wait_for(back, "it is back once more", 60)
        said = rules(monitor)
    assert len(set(ids)) == len(ids) == 20
    assert not said & {"M-13", "M-09"}


@pytest.mark.lab
@pytest.mark.timeout(300)
def test_two_librdkafka_members_that_change_their_topics_in_turn_are_told_as_two(tmp_path):
    with watched(tmp_path) as (monitor, front, _, _), Processes(tmp_path, lambda _: None) as processes:
        members = [start(processes, "confluent-kafka", front, f"member-{number}", rebalance_timeout_ms=60_000) for number in (1, 2)]
        generation = stable_above(monitor, 2, 0)
        for turn in range(14):
            members[turn % 2].signal(signal.SIGHUP)
            generation = stable_above(monitor, 2, generation)
        said = findings(monitor)
    assert said["R-06"].severity is Severity.WARNING
    assert "each of its 2 members explains" in said["R-06"].summary
    assert "G-10" not in said


@pytest.mark.lab
@pytest.mark.timeout(400)
def test_a_sarama_member_that_gets_its_generation_after_the_next_one_began_is_not_accused_of_another(tmp_path):
    """The answer to its JoinGroup takes longer than the rebalance timeout, and the other member begins the next generation at once."""
    with watched(tmp_path) as (monitor, front, other, joins), Processes(tmp_path, lambda _: None) as processes:
        times = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 300, "rebalance_timeout_ms": 2_000}
        hurries = start(processes, "sarama", front, "hurries", **times)
        stable_above(monitor, 1, 0)
        start(processes, "sarama", other, "late", **times)
        generation = stable_above(monitor, 2, 0)
        for _ in range(3):
            for _ in range(2):  # it is judged only who has had two generations
                hurries.signal(signal.SIGHUP)
                generation = stable_above(monitor, 2, generation)
            joins.hold("late")
            for _ in range(2):
                hurries.signal(signal.SIGHUP)
                generation = begun_above(monitor, generation)
            time.sleep(HELD_S)
            joins.release()
            generation = stable_above(monitor, 2, generation)
        said = rules(monitor)
    assert overtaken(tmp_path / "records", "late") > 0
    assert "G-10" not in said


def overtaken(recording: Path, client_id: str) -> int:
    """How many generations a client was given after a newer one had been given to another."""
    newest, times = 0, 0
    with recording.open("rb") as stream:
        for record in read_recording(stream):
            if record.kind is not Kind.RESPONSE or record.api_key != JoinGroupRequest.API_KEY:
                continue
            answer = decode(record.frame, request=False, api_key=record.api_key, api_version=record.api_version).body
            times += record.client_id == client_id and 0 < answer.generation_id < newest
            newest = max(newest, answer.generation_id)
    return times
