"""The suite on what the tap mirrors of real clients: all of it passes, and none of it because there was nothing to look at."""

from __future__ import annotations

import contextlib

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from harness import WAIT_S, kafka_python_consumer, kafka_sink, raw_topic, running_tap, wait_for

from coordinator_model.wire.record import HEADER_NAME
from streaming.demo.broker import HOST, Broker, free_port
from streaming.kafka.mirror_topic import create_topic
from streaming.quality.frame_rows import Describer, to_frame
from streaming.quality.suite import load

pytestmark = pytest.mark.real

PARTITIONS = 3
NOT_IN_LAWFUL_TRAFFIC = {"Q-08"}  # asked of one record of a batch only


def converse(address: str) -> None:
    """Two clients of each kind live in a group: join, rebalance, heartbeat, commit, leave; one asks about groups."""
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for number in range(100):
        producer.produce("data", str(number).encode())
    assert producer.flush(WAIT_S) == 0
    common = {
        "bootstrap.servers": address,
        "group.id": "by-confluent",
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 200,
    }
    first, second = Consumer({**common, "client.id": "first"}), Consumer({**common, "client.id": "second"})
    taken = 0

    def read() -> bool:
        nonlocal taken
        taken += sum(not message.error() for consumer in (first, second) for message in consumer.consume(100, 0.1))
        return taken >= 100

    for consumer in (first, second):
        consumer.subscribe(["data"])
    wait_for(read, "100 records are read")
    with contextlib.suppress(KafkaException):  # nothing to commit, if a rebalance took away what it had read
        first.commit(asynchronous=False)
    other = kafka_python_consumer("data", bootstrap_servers=address, group_id="by-kafka-python", auto_offset_reset="earliest")
    wait_for(lambda: other.poll(timeout_ms=200), "kafka-python reads")
    other.commit()
    admin = AdminClient({"bootstrap.servers": address})
    admin.list_consumer_groups(request_timeout=10).result()
    admin.describe_consumer_groups(["by-confluent"])["by-confluent"].result()
    second.close()
    for _ in range(40):
        first.poll(0.1)
    for consumer in (first, other):
        consumer.close()


def test_what_the_tap_mirrors_of_real_clients_passes(tmp_path):
    from streaming.quality.validation import Validator  # Great Expectations, which every process that collects tests would import

    port = free_port()
    with Broker(advertised={"PLAINTEXT": f"{HOST}:{port}"}) as broker:
        broker.create_topic("data", 2)
        create_topic({"bootstrap.servers": broker.internal}, "mirror", PARTITIONS)
        listener = f"{HOST}:{port}={broker.address('PLAINTEXT')}"
        with kafka_sink(broker.internal, topic="mirror") as sink, running_tap([listener], sink, tick_s=0.2):
            converse(f"{HOST}:{port}")
        messages = raw_topic(broker.internal, "mirror")
    rows = [
        (one.partition(), one.offset(), one.timestamp()[1], one.key(), one.value(), dict(one.headers()).get(HEADER_NAME))
        for one in messages
    ]
    validator = Validator(load(), docs=tmp_path, docs_every_s=3600, docs_history=1)
    outcomes = validator.validate(to_frame(Describer().describe(rows)), "real")
    assert {outcome.expected.rule.id: outcome.records for outcome in outcomes if not outcome.success} == {}
    looked_at = {outcome.expected.rule.id: outcome.checked for outcome in outcomes}
    assert min(checked for rule, checked in looked_at.items() if rule not in NOT_IN_LAWFUL_TRAFFIC) > 20
