"""``rebalance-monitor verify`` against a real broker, the model behind a tap, and the groups topic in which it is published."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from typer.testing import CliRunner

from coordinator_model.settings import Settings
from coordinator_model.wire.constants import NONE
from streaming.cli import app
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.raw_client import Connection, RawMember, find_coordinator, share
from streaming.replay.verify import describe_groups, differences
from tests.real.harness import running_tap, wait_for
from tests.real.lab.epoch_scene import EpochMember, ShareMember, StreamsMember
from tests.real.lab.monitor import Monitor

pytestmark = pytest.mark.real

TOPIC, GROUPS = "t", "rebalance-groups"
SESSION_MS = 8_000
BRISK = {
    "group.consumer.min.session.timeout.ms": SESSION_MS,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 500,
}
"""A member is told of a change with its next heartbeat, and a static one that has left keeps its place for a session."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A broker behind a tap, a group of one member there, and the model that watches."""
    front = f"{HOST}:{free_port()}"
    records = tmp_path_factory.mktemp("verify") / "records"
    with (
        Broker(advertised={"PLAINTEXT": front}, properties=BRISK) as broker,
        Monitor(records, Settings(group_consumer_session_timeout_ms=SESSION_MS)) as monitor,
        running_tap([f"{front}={broker.address()}"], monitor, cluster="verified"),
    ):
        broker.create_topic(TOPIC, 2)
        coordinator = find_coordinator(front, "orders", client_id="worker")
        with Connection(coordinator, client_id="worker") as connection:
            connection.introduce()
            member = RawMember(
                connection=connection, group="orders", topic=TOPIC, session_timeout_ms=60_000, rebalance_timeout_ms=60_000
            )
            joined = member.enter()
            member.sync(share(TOPIC, 2, joined.members))
            wait_for(lambda: monitor.described().get("orders", {}).get("state") == "Stable", "the model follows")
            yield broker, monitor, front


def verify(broker, *options):
    result = CliRunner().invoke(app, ["verify", "--bootstrap-server", broker.internal, "--wait", "0", *options])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def publish(broker, content, key=None):
    producer = Producer({"bootstrap.servers": broker.internal})
    producer.produce(
        GROUPS, None if content is None else json.dumps(content), key=key or f"{content['cluster']}/{content['group']}"
    )
    assert producer.flush(10) == 0


def test_says_in_turn_that_it_cannot_that_all_is_equal_and_what_differs(scene):
    broker, monitor, _ = scene
    status, said = verify(broker)
    assert (status, said.count("\n")) == (2, 1)
    assert f"cannot read the topic {GROUPS}" in said
    assert "it does not exist" in said

    broker.create_topic(GROUPS, 1, config={"cleanup.policy": "compact"})
    status, said = verify(broker)
    assert status == 2
    assert "the monitor knows none yet of 1 group; of orders: not seen yet" in said

    known = monitor.described()["orders"]
    publish(broker, known)
    assert verify(broker) == (0, "1 equal\n")
    assert verify(broker, "--group", "orders", "--cluster", "verified")[0] == 0
    assert verify(broker, "--group", "nobody")[0] == 2

    publish(broker, {**known, "state": "Empty", "members": []})
    status, said = verify(broker)
    assert status == 1
    assert "state: the monitor says Empty, the brokers say Stable" in said
    assert f"member {known['members'][0]['member_id']} (client worker) is a member only to the brokers" in said

    publish(broker, known)
    publish(broker, {**known, "group": "gone"})
    status, said = verify(broker)
    assert status == 1
    assert "gone differs\n  the monitor says Stable, the brokers do not know it\n1 equal, 1 different\n" in said

    publish(broker, {**known, "group": "gone", "learning": "a gap"})
    assert verify(broker)[0] == 0

    publish(broker, {**known, "cluster": "other"})
    status, said = verify(broker)
    assert status == 2
    assert "name one with --cluster" in said


def poll_until(condition, what, *consumers):
    def polled():
        for consumer in consumers:
            consumer.poll(0.05)
        return condition()

    return wait_for(polled, what)


@contextmanager
def member(front, client_id, instance_id=None):
    """A consumer of the newer protocol, which leaves the group at the end: for a while, if it is static."""
    settings = {"bootstrap.servers": front, "group.id": "modern", "group.protocol": "consumer", "client.id": client_id}
    consumer = Consumer(settings if instance_id is None else {**settings, "group.instance.id": instance_id})
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def test_a_consumer_group_is_equal_at_each_point_of_its_life(scene):
    broker, monitor, front = scene

    def equal(state, members):
        described = describe_groups({"bootstrap.servers": broker.internal}, {}).described["modern"]
        known = monitor.described().get("modern")
        return (
            (described.state, described.group_type, {one.client_id for one in described.members}) == (state, "consumer", members)
            and known is not None
            and not known["learning"]
            and not differences(known, described)
        )

    with member(front, "first") as first:
        with member(front, "second", "i") as second:
            poll_until(lambda: len(first.assignment()) == len(second.assignment()) == 1, "both read", first, second)
            poll_until(lambda: equal("Stable", {"first", "second"}), "both are members", first, second)
        poll_until(lambda: equal("Reconciling", {"first", "second"}), "one is away, and keeps its place", first)
        with member(front, "third", "i") as third:
            poll_until(lambda: equal("Stable", {"first", "third"}), "its successor has its place", first, third)
            assert {one["partitions"] for one in monitor.described()["modern"]["members"]} == {1}
        poll_until(lambda: equal("Stable", {"first"}), "its session has ended", first)
    wait_for(lambda: equal("Empty", set()), "all have left")
    publish(broker, monitor.described()["modern"])
    assert verify(broker, "--cluster", "verified", "--group", "modern") == (0, "1 equal\n")


@pytest.mark.parametrize(("kind", "member"), [("share", ShareMember), ("streams", StreamsMember)])
def test_verify_compares_share_and_streams_groups(scene, kind, member: type[EpochMember]):
    broker, monitor, front = scene
    coordinator = find_coordinator(front, kind, client_id=kind)
    with Connection(coordinator, client_id=kind) as connection:
        one = member(connection, kind, topics=(TOPIC,))
        wait_for(lambda: one.join() == NONE, "it joins")
        known = wait_for(
            lambda: one.beat() == NONE and (seen := monitor.described().get(kind)) and seen["state"] == "Stable" and seen,
            "the model follows",
        )
        publish(broker, known)
        compared = ("--cluster", "verified", "--group", kind)
        wait_for(lambda: one.beat() == NONE and verify(broker, *compared) == (0, "1 equal\n"), "the brokers have assigned")

        publish(broker, {**known, "members": []})
        status, said = verify(broker, *compared)
        assert status == 1
        assert f"member {one.member_id} (client {kind}) is a member only to the brokers" in said

        publish(broker, {**known, "group": f"{kind}-gone"})
        status, said = verify(broker, "--cluster", "verified", "--group", f"{kind}-gone")
        assert (status, "the monitor says Stable, the brokers do not know it" in said) == (1, True)
        one.say(-1)


def test_says_that_brokers_cannot_be_reached(monkeypatch):
    monkeypatch.setattr("streaming.commands.verify._REACH_S", 1.0)
    result = CliRunner().invoke(app, ["verify", "--bootstrap-server", f"{HOST}:{free_port()}"])
    assert result.exit_code == 2
    assert "error:" in result.output
    assert "Traceback" not in result.output
