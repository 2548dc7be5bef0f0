"""A member of a consumer group that reaches the broker past the tap, before a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from coordinator_model.finding import Blame
from coordinator_model.settings import Settings
from coordinator_model.wire import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.raw_client import VERSIONS, Connection, find_coordinator
from tests.real.harness import running_tap, wait_for
from tests.real.lab.monitor import Monitor
from tests.real.watched import TOPIC, found, rules

pytestmark = [pytest.mark.real, pytest.mark.long]

GROUP = "past-the-tap"
SESSION_MS = 10_000


@contextmanager
def consuming(bootstrap: str, name: str) -> Iterator[Consumer]:
    settings = {"bootstrap.servers": bootstrap, "client.id": name, "group.id": GROUP, "group.protocol": "consumer"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def described(front: str) -> list[str]:
    """Client ids of the members that the coordinator lists to an admin client that passes the tap."""
    api_key = ConsumerGroupDescribeRequest.API_KEY
    address = find_coordinator(front, GROUP, client_id="admin")
    with Connection(address, client_id="admin", versions={**VERSIONS, api_key: 1}) as connection:
        connection.introduce()
        answer = connection.ask(ConsumerGroupDescribeRequest(group_ids=(GROUP,)), ConsumerGroupDescribeResponse)
    return sorted(member.client_id for group in answer.groups for member in group.members)


@pytest.mark.timeout(240)
def test_a_member_with_an_epoch_that_does_not_pass_the_tap_is_named_once_an_admin_client_asks(tmp_path: Path) -> None:
    front = f"{HOST}:{free_port()}"
    settings = Settings(group_consumer_session_timeout_ms=SESSION_MS)
    properties = {"group.consumer.session.timeout.ms": SESSION_MS, "group.consumer.min.session.timeout.ms": SESSION_MS}
    with (
        Broker(advertised={"PLAINTEXT": front}, listeners={"PAST": "PLAINTEXT"}, properties=properties) as broker,
        Monitor(tmp_path / "records", settings) as monitor,
        running_tap([f"{front}={broker.address()}"], monitor, cluster="seen"),
    ):
        broker.create_topic(TOPIC, 4)
        with consuming(front, "passes") as passes, consuming(broker.address("PAST"), "sneaks") as sneaks:

            def listed(expected: list[str]) -> bool:
                for consumer in (passes, sneaks):
                    consumer.poll(0.2)
                return described(front) == expected

            wait_for(lambda: listed(["passes", "sneaks"]), "both are members")
            assert "V-10" not in rules(monitor)  # the group has not been followed for as long as a session lasts
            followed_us = monitor.now_us
            wait_for(lambda: monitor.now_us > followed_us + 2_000 * SESSION_MS, "a session is over")
            assert listed(["passes", "sneaks"])
            finding = wait_for(lambda: found(monitor, "V-10"), "V-10 is found")
    assert (finding.blame, finding.group) == (Blame.CAPTURE, GROUP)
    assert finding.summary.startswith(f"1 of 2 members of group {GROUP} do not pass the tap")
    assert "(client sneaks at 127.0.0.1)" in finding.summary
