"""How far groups are behind, as a real broker tells it."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from harness import wait_for

from streaming.config.settings import Kafka, MonitorConfig
from streaming.metrics.lag import LagWatch, lags_of
from tests.streaming.metrics.transcripts import Watched, samples, select, value

pytestmark = pytest.mark.real


@pytest.fixture
def topic(broker):
    """Three partitions with 100, 50 and 0 records."""
    name = f"lag-{uuid.uuid4().hex}"
    broker.create_topic(name, 3)
    producer = Producer({"bootstrap.servers": broker.internal})
    for partition, count in ((0, 100), (1, 50)):
        for _ in range(count):
            producer.produce(name, b"record", partition=partition)
    assert producer.flush(60) == 0
    return name


def commit(broker, group, *positions: TopicPartition):
    consumer = Consumer({"bootstrap.servers": broker.internal, "group.id": group})
    consumer.commit(offsets=list(positions), asynchronous=False)
    consumer.close()


def test_lag_is_what_lies_behind_the_committed_offset_of_each_partition(broker, topic):
    group, other = f"{topic}-a", f"{topic}-b"
    commit(broker, group, TopicPartition(topic, 0, 30), TopicPartition(topic, 1, 50), TopicPartition(topic, 2, 0))
    commit(broker, other, TopicPartition(topic, 0, 100))
    admin = AdminClient({"bootstrap.servers": broker.internal})
    assert lags_of(admin, [group, other], timeout_s=30) == {
        group: {(topic, 0): 70, (topic, 1): 0, (topic, 2): 0},
        other: {(topic, 0): 0},
    }


def test_a_partition_that_is_no_more_has_no_lag_and_others_have(broker, topic):
    group, gone = f"{topic}-a", f"{topic}-gone"
    broker.create_topic(gone, 1)
    commit(broker, group, TopicPartition(topic, 0, 30), TopicPartition(gone, 0, 0))
    admin = AdminClient({"bootstrap.servers": broker.internal})
    admin.delete_topics([gone])[gone].result(60)
    wait_for(lambda: lags_of(admin, [group], timeout_s=30) == {group: {(topic, 0): 70}}, "the other partition is told alone")


def test_a_broker_that_does_not_answer_tells_of_no_group():
    admin = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    assert lags_of(admin, ["g"], timeout_s=1) == {}


def test_the_metrics_have_the_lag_of_the_groups_that_they_show(broker, topic):
    """A golden transcript says which groups there are; its group gets offsets on the broker."""
    watched = Watched("lawful-eager-4.3.1").read().told()
    (group,) = watched.board.look().groups.values()
    commit(broker, group.name, TopicPartition(topic, 0, 30), TopicPartition(topic, 1, 10))
    kafka = Kafka(bootstrap_servers="127.0.0.1:1")
    config = MonitorConfig(kafka=kafka, lag={"enabled": True, "bootstrap_servers": broker.internal, "every_s": 1})
    where = {"cluster": group.cluster, "group": group.name}
    with LagWatch(config, watched.board, tell=pytest.fail):
        wait_for(lambda: watched.board.look().lags, "lag is known")
    found = samples(watched.board)
    assert value(found, "rebalance_group_lag_records", **where) == 110
    assert sorted(select(found, "rebalance_group_partition_lag_records").values()) == [40, 70]
    assert value(found, "rebalance_group_lag_partitions_left_out", **where) == 0
    assert value(found, "rebalance_monitor_lag_unknown_groups") == 0
