"""What is resolved leaves the findings topic after a while, and what is open never does."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from harness import WAIT_S, wait_for

from coordinator_model.finding import Status
from coordinator_model.rules import CATALOGUE
from streaming.config.settings import Kafka
from streaming.kafka.watermarks import bounds_of
from streaming.sinks.findings import FindingsReader, FindingsWriter
from streaming.sinks.retention import AT_ONCE, EVERY_S, History

pytestmark = pytest.mark.real

DAY_S = 86_400
STANDING = replace(
    CATALOGUE["V-03"].finding(
        subject="mirror/0",
        cluster="prod",
        group="",
        opened_at_us=1_700_000_000_000_000,
        at_us=1_700_000_000_000_000,
        summary="The mirror is silent.",
        observed="nothing",
    ),
    id="standing",
)
OVER = replace(STANDING, id="over", status=Status.RESOLVED, resolved_at_us=1_700_000_001_000_000)


@pytest.fixture
def topic(broker, request):
    name = request.node.name.replace("_", "-")
    broker.create_topic(name, 1, config={"cleanup.policy": "compact"})
    return name


@pytest.fixture
def kafka(broker):
    return Kafka(bootstrap_servers=broker.internal)


def keys_withdrawn(broker, topic):
    consumer = Consumer({"bootstrap.servers": broker.internal, "group.id": "look", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        _, end = bounds_of(consumer, TopicPartition(topic, 0), WAIT_S)
        messages = []
        wait_for(lambda: messages.extend(consumer.consume(1000, 0.5)) or len(messages) >= end, "the topic is read")
        return [message.key().decode() for message in messages if message.value() is None]
    finally:
        consumer.close()


def test_a_finding_that_was_resolved_long_ago_is_withdrawn_and_an_open_one_is_not(broker, kafka, topic):
    writer = FindingsWriter(kafka, topic)
    writer.publish([STANDING, replace(OVER, status=Status.OPEN, resolved_at_us=None), OVER])
    assert writer.flush(WAIT_S)
    now_s = time.time()
    with FindingsReader(kafka, topic) as reader:
        reader.catch_up()
        assert (set(reader.open), set(reader.resolved)) == ({"standing"}, {"over"})
        history = History(reader, writer, 30, clock=lambda: now_s)
        now_s += 29 * DAY_S
        assert history.tidy() == 0
        now_s += 2 * DAY_S
        assert history.tidy() == 1
        assert writer.flush(WAIT_S)
        assert keys_withdrawn(broker, topic) == ["over"]
        assert reader.poll(1.0) == []  # its end was told before
        assert set(reader.open) == {"standing"}
    with FindingsReader(kafka, topic) as later:
        later.catch_up()
        assert (set(later.open), set(later.resolved), later.unreadable) == ({"standing"}, set(), 0)


def test_of_years_of_findings_only_so_many_are_withdrawn_at_once(broker, kafka, topic):
    writer = FindingsWriter(kafka, topic)
    count = AT_ONCE + 5
    writer.publish(replace(OVER, id=f"over-{number}") for number in range(count))
    assert writer.flush(WAIT_S)
    now_s = time.time() + 31 * DAY_S
    with FindingsReader(kafka, topic) as reader:
        reader.catch_up()
        history = History(reader, writer, 30, clock=lambda: now_s)
        assert [history.tidy() for _ in range(3)] == [AT_ONCE, 5, 0]
        assert reader.resolved == {}
        assert writer.flush(WAIT_S)
    assert sorted(keys_withdrawn(broker, topic)) == sorted(f"over-{number}" for number in range(count))


def test_it_is_looked_at_once_an_hour(broker, kafka, topic):
    writer = FindingsWriter(kafka, topic)
    now_s = time.time() + 31 * DAY_S
    with FindingsReader(kafka, topic) as reader:
        reader.catch_up()
        history = History(reader, writer, 30, clock=lambda: now_s)
        assert history.tidy() == 0
        reader.resolved["over"] = 0.0
        assert history.tidy() == 0
        now_s += EVERY_S
        assert history.tidy() == 1


def test_an_open_finding_that_somebody_deletes_is_over(broker, kafka, topic):
    writer = FindingsWriter(kafka, topic)
    writer.publish([STANDING])
    assert writer.flush(WAIT_S)
    with FindingsReader(kafka, topic) as reader:
        reader.catch_up()
        writer.withdraw(["standing"])
        assert writer.flush(WAIT_S)
        (news,) = wait_for(lambda: reader.poll(0.1), "the deletion is read")
        assert (news.finding["id"], news.opened) == ("standing", False)
        assert reader.open == {}
