"""What classic members do before a real broker that once was called a fault: they use two listeners, or give a JoinGroup up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from kafka import KafkaConsumer

from coordinator_model.finding import Blame, Finding, Severity
from coordinator_model.settings import Settings
from coordinator_model.wire import ConsumerProtocolSubscription as Subscription
from coordinator_model.wire import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    encode_subscription,
)
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.raw_client import Connection, RawMember, find_coordinator
from tests.real.harness import running_tap, wait_for
from tests.real.lab.monitor import Monitor

pytestmark = [pytest.mark.real, pytest.mark.long]

GROUP, TOPIC = "one-coordinator", "orders"


@contextmanager
def watched(folder: Path) -> Iterator[tuple[Monitor, str, str]]:
    """A broker with two listeners behind one tap, the monitor, and the tap's two addresses."""
    fronts = [f"{HOST}:{free_port()}" for _ in range(2)]
    with (
        Broker(advertised={"PLAINTEXT": fronts[0], "OTHER": fronts[1]}, listeners={"OTHER": "PLAINTEXT"}) as broker,
        Monitor(folder / "records", Settings()) as monitor,
        running_tap([f"{fronts[0]}={broker.address()}", f"{fronts[1]}={broker.address('OTHER')}"], monitor, cluster="seen"),
    ):
        broker.create_topic(TOPIC, 4)
        yield monitor, *fronts


def findings(monitor: Monitor) -> dict[str, Finding]:
    """Rule → the newest state of one finding of it."""
    return {said.finding.rule: said.finding for all_said in monitor.findings().values() for said in all_said}


def consume(front: str, name: str, stop: Event) -> None:
    """A member by kafka-python that commits every second."""
    consumer = KafkaConsumer(
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
    with watched(tmp_path) as (monitor, one, other):
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
    with watched(tmp_path) as (monitor, front, _):
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
        rules = set(findings(monitor))
    assert (finding.severity, finding.blame, finding.client_id) == (Severity.WARNING, Blame.CLIENT, "impatient")
    assert finding.action.startswith("Raise that client's request timeout above its rebalance timeout, 60.0 s")
    assert not rules & {"M-13", "M-09"}
