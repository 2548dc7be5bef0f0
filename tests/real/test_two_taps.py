"""Clients pass a tap that rewrites, and behind it one that does not: what both mirror of one run leads to the same findings."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer

from coordinator_model.settings import Settings
from coordinator_model.wire.constants import ILLEGAL_GENERATION, NONE
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.raw_client import Connection, RawMember, find_coordinator, share
from streaming.mirror.rewriting.known_brokers import KnownBrokers
from streaming.mirror.rewriting.stand_in import StandIn
from tests.real.harness import WAIT_S, running_tap, wait_for
from tests.real.lab.monitor import Monitor
from tests.real.watched import TOPIC, rules

pytestmark = [pytest.mark.real, pytest.mark.long]

PORTS = 5


def consume(bootstrap: str, broker: Broker) -> None:
    """A group of two that lives through a restart of its broker, and of which one member stops to poll."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "orders-app", "auto.offset.reset": "earliest"}
    both = [
        Consumer({**settings, "client.id": f"app-{number}", "session.timeout.ms": 6_000, "max.poll.interval.ms": 6_000})
        for number in (1, 2)
    ]
    for consumer in both:
        consumer.subscribe([TOPIC])

    def shared() -> bool:
        for consumer in both:
            consumer.poll(0.1)
        return all(consumer.assignment() for consumer in both)

    def left_to_the_first() -> bool:
        both[0].poll(0.1)
        return len(both[0].assignment()) == 4

    wait_for(shared, "both have partitions")
    broker.restart()
    wait_for(left_to_the_first, "the second one, which no longer polls, has left")
    for consumer in both:
        consumer.close()


def break_the_protocol(bootstrap: str) -> None:
    """A member that goes on in a generation that there never was."""
    with Connection(find_coordinator(bootstrap, "raw", client_id="raw"), client_id="raw") as connection:
        connection.introduce()
        member = RawMember(connection, "raw", TOPIC, session_timeout_ms=10_000, rebalance_timeout_ms=10_000)
        joined = member.enter()
        assert member.sync(share(TOPIC, 4, joined.members)).error_code == NONE
        assert [member.heartbeat(generation=joined.generation + 5) for _ in range(3)] == [ILLEGAL_GENERATION] * 3
        member.leave()


def said(monitor: Monitor) -> list[tuple[str, ...]]:
    """What was found about whom. Ids and times within a finding differ, since each tap names its connections and reads its clock.

    Without C-14: how severe the broker's absence is depends on who asks for it meanwhile, and such a client reaches the first tap alone.
    """
    newest = [states[-1].finding for states in monitor.findings().values()]
    told = [(found.rule, found.severity.value, found.blame.value, found.group, found.client_id or "") for found in newest]
    return sorted(each for each in told if each[0] != "C-14")


@pytest.mark.timeout(4 * WAIT_S)
def test_what_a_tap_that_rewrites_mirrors_leads_to_the_same_findings(tmp_path: Path) -> None:
    front, behind, first = f"{HOST}:{free_port()}", f"{HOST}:{free_port()}", free_port()
    stand_in = StandIn(KnownBrokers(range(first, first + PORTS)))
    with (
        Broker(advertised={"PLAINTEXT": behind}) as broker,
        Monitor(tmp_path / "rewriting", Settings()) as rewriting,
        Monitor(tmp_path / "plain", Settings()) as plain,
        running_tap([f"{behind}={broker.address()}"], plain, cluster="seen"),
        running_tap([f"{front}={behind}"], rewriting, cluster="seen", stand_in=stand_in),
    ):
        broker.create_topic(TOPIC, 4)
        consume(front, broker)
        break_the_protocol(front)
        wait_for(lambda: all("G-07" in rules(monitor) for monitor in (rewriting, plain)), "both find the generation")
    assert said(rewriting) == said(plain)
    assert ("G-07", "error", "client", "raw", "raw") in said(plain)
