"""How far groups are behind, as a real broker tells it."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from harness import raw_topic, wait_for

from streaming.config.settings import Kafka, MonitorConfig
from streaming.metrics.lag import LagWatch, lags_of
from tests.streaming.metrics.transcripts import Watched, samples, select, value

pytestmark = pytest.mark.real

COORDINATOR_STARTS = {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE}
"""What the first commit to a new broker may be told."""


@pytest.fixture
def topic(broker):
    """Three partitions with 100, 50 and 0 records."""
    name = f"lag-{uuid.uuid4().hex}"
    broker.create_topic(name, 3)
    for partition, count in ((0, 100), (1, 50)):
        produce(broker, name, partition=partition, count=count)
    return name


def produce(broker, topic, *, partition, count):
    producer = Producer({"bootstrap.servers": broker.internal})
    for _ in range(count):
        producer.produce(topic, b"record", partition=partition)
    assert producer.flush(60) == 0


def forget(broker, group):
    """Delete the offsets that another test committed for a group."""
    admin = AdminClient({"bootstrap.servers": broker.internal})
    with suppress(KafkaException):
        admin.delete_consumer_groups([group])[group].result(60)


def commit(broker, group, *positions: TopicPartition):
    consumer = Consumer({"bootstrap.servers": broker.internal, "group.id": group})

    def committed() -> bool:
        try:
            consumer.commit(offsets=list(positions), asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in COORDINATOR_STARTS:
                raise
            return False
        return True

    wait_for(committed, "the coordinator takes the commit")
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


def lag_config(broker, *, kafka=None):
    """A monitor whose topic of lag is its own.

    :param kafka: where its results go; the watched broker by default.
    """
    name = f"{uuid.uuid4().hex}-lag"
    broker.create_topic(name, 1, config={"cleanup.policy": "compact"})
    return MonitorConfig(
        kafka=Kafka(bootstrap_servers=kafka or broker.internal, reach_timeout_s=5),
        topics={"lag": name},
        lag={"enabled": True, "bootstrap_servers": broker.internal, "every_s": 1},
    )


def published(broker, config):
    """The newest record of each group in the topic of lag."""
    return {
        message.key().decode(): None if message.value() is None else json.loads(message.value())
        for message in raw_topic(broker.internal, config.topics.lag)
    }


def test_the_metrics_have_the_lag_of_the_groups_that_they_show(broker, topic):
    """A golden transcript says which groups there are; its group gets offsets on the broker."""
    watched = Watched("lawful-eager-4.3.1").read().told()
    (group,) = watched.metrics_state.look().groups.values()
    forget(broker, group.name)
    commit(broker, group.name, TopicPartition(topic, 0, 30), TopicPartition(topic, 1, 10))
    config = lag_config(broker)
    where = {"cluster": group.cluster, "group": group.name}
    with LagWatch(config, watched.metrics_state, tell=pytest.fail):
        wait_for(lambda: watched.metrics_state.look().lags, "lag is known")
    found = samples(watched.metrics_state)
    assert value(found, "rebalance_group_lag_records", **where) == 110
    assert sorted(select(found, "rebalance_group_partition_lag_records").values()) == [40, 70]
    assert value(found, "rebalance_group_lag_partitions_left_out", **where) == 0
    assert value(found, "rebalance_monitor_lag_unknown_groups") == 0


def test_what_a_rebalance_did_to_lag_is_published_and_a_restart_goes_on(broker, topic):
    """A golden transcript says how its group rebalances; its lag on the broker grows meanwhile, and goes."""
    watched = Watched("lawful-eager-4.3.1")
    stable, rebalancing, stable_again = watched.records[:38], watched.records[38:53], watched.records[53:71]
    watched.read(stable).told()
    (group,) = watched.metrics_state.look().groups.values()
    forget(broker, group.name)
    commit(broker, group.name, TopicPartition(topic, 0, 100), TopicPartition(topic, 1, 40))
    config = lag_config(broker)

    def newest():
        return published(broker, config).get(f"{group.cluster}/{group.name}", {"rebalances": None})

    def seen(**expected):
        return wait_for(lambda: any(expected.items() <= one.items() for one in newest()["rebalances"]), f"{expected} is published")

    with LagWatch(config, watched.metrics_state, tell=pytest.fail):
        wait_for(lambda: newest()["rebalances"] == [], "lag is published")
        told = newest()
        assert told == told | {
            "cluster": group.cluster,
            "group": group.name,
            "lag": 10,
            "partitions": {topic: {"0": 0, "1": 10}},
            "left_out": 0,
        }
        watched.read(rebalancing).told()
        seen(generation=None, before=10, highest=10, gone_at=None)
        produce(broker, topic, partition=2, count=30)
        commit(broker, group.name, TopicPartition(topic, 2, 0))
        seen(generation=None, before=10, highest=40, gone_at=None)
        watched.read(stable_again).told()
        seen(generation=2, before=10, highest=40, gone_at=None)
        commit(broker, group.name, TopicPartition(topic, 2, 30))
        wait_for(lambda: newest()["rebalances"][0]["gone_at"], "the lag is gone")
    before = newest()
    assert (before["lag"], len(before["rebalances"])) == (10, 1)
    with LagWatch(config, watched.metrics_state, tell=pytest.fail):
        wait_for(lambda: newest()["at"] > before["at"], "the next watch publishes")
    assert newest()["rebalances"] == before["rebalances"]


def test_where_nothing_can_be_published_the_metrics_have_the_lag(broker, topic):
    watched = Watched("lawful-eager-4.3.1").read().told()
    (group,) = watched.metrics_state.look().groups.values()
    forget(broker, group.name)
    commit(broker, group.name, TopicPartition(topic, 0, 30))
    told = []
    config = lag_config(broker, kafka="127.0.0.1:1")
    with LagWatch(config, watched.metrics_state, tell=told.append):
        wait_for(lambda: watched.metrics_state.look().lags, "lag is known")
    assert watched.metrics_state.look().lags == {(group.cluster, group.name): {(topic, 0): 70}}
    (sentence,) = told
    assert sentence.startswith("What earlier rebalances did to the lag of groups is not known: cannot read the topic ")
