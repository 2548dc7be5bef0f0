"""Groups that do not consume, by real clients of two libraries before a real broker: what keeps each client from it is found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator_model.finding import Finding, Severity
from tests.real.harness import wait_for
from tests.real.lab.monitor import Monitor
from tests.real.watched import TOPIC, watched

pytestmark = [pytest.mark.real, pytest.mark.long]

NO_TOPIC = "ordres"


@contextmanager
def polled(*polls: Callable[[], Any]) -> Iterator[None]:
    """Call each of these again and again on a thread of its own."""
    done = threading.Event()

    def run(poll: Callable[[], Any]) -> None:
        while not done.is_set():
            poll()

    threads = [threading.Thread(target=run, args=(poll,)) for poll in polls]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def librdkafka(front: str, group: str, *topics: str, **settings: Any) -> Consumer:
    config = {"bootstrap.servers": front, "group.id": group, "client.id": f"{group}-1", "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, **settings})
    consumer.subscribe(list(topics))
    return consumer


def told(monitor: Monitor, rule: str, group: str) -> Finding | None:
    newest = (states[-1].finding for states in monitor.findings().values())
    return next((one for one in newest if (one.rule, one.group) == (rule, group)), None)


@pytest.mark.timeout(400)
def test_a_name_and_a_pattern_that_match_no_topic_are_found_with_two_libraries(tmp_path: Path) -> None:
    with watched(tmp_path) as (_, monitor, front):
        classic = librdkafka(front, "librdkafka-classic", NO_TOPIC)
        consumer = librdkafka(front, "librdkafka-consumer", f"^{TOPIC[:-1]}", **{"group.protocol": "consumer"})
        python = kafka.KafkaConsumer(NO_TOPIC, bootstrap_servers=front, group_id="python", client_id="python-1")
        with polled(lambda: classic.poll(0.5), lambda: consumer.poll(0.5), lambda: python.poll(500)):
            of_python = wait_for(lambda: told(monitor, "A-15", "python"), "kafka-python's member holds nothing", 120)
            of_pattern = wait_for(lambda: told(monitor, "A-15", "librdkafka-consumer"), "the pattern matches nothing", 120)
            of_classic = wait_for(lambda: told(monitor, "M-16", "librdkafka-classic"), "librdkafka never asks to join", 120)
        for one in (classic, consumer, python):
            one.close()
    assert f"it subscribes to {NO_TOPIC}, and there is no such topic" in of_python.summary
    assert "as a whole" in of_pattern.summary
    assert f"It asks for {NO_TOPIC}, which the brokers do not have" in of_classic.summary
    assert {one.severity for one in (of_python, of_pattern, of_classic)} == {Severity.WARNING}


@pytest.mark.timeout(400)
def test_an_open_transaction_that_hides_where_the_group_stands_is_found_with_its_producer(tmp_path: Path) -> None:
    with watched(tmp_path) as (_, monitor, front):
        first = librdkafka(front, "enricher", TOPIC, **{"enable.auto.commit": False, "session.timeout.ms": 6_000})
        wait_for(lambda: first.poll(0.2) or first.assignment(), "the first has partitions", 60)
        producer = Producer({"bootstrap.servers": front, "transactional.id": "enricher-tx", "client.id": "enricher-producer"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, 0)], first.consumer_group_metadata(), 60)
        first.close()
        second = librdkafka(front, "enricher", TOPIC, **{"client.id": "enricher-2"})
        with polled(lambda: second.poll(0.5)):
            finding = wait_for(lambda: told(monitor, "O-12", "enricher"), "the start position is refused", 120)
        producer.abort_transaction(60)
        second.close()
    assert finding.client_id == "enricher-2"
    assert "UNSTABLE_OFFSET_COMMIT" in finding.summary
    assert "producer enricher-tx of client enricher-producer" in finding.summary
