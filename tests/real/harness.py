"""What the tests with a real broker share: a tap in a thread, a sink, the mirror topic read back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import kafka
from confluent_kafka import Consumer, TopicPartition

from coordinator_model.wire.record import HEADER_NAME, MirrorRecord, unpack_record
from streaming.kafka.watermarks import bounds_of
from streaming.mirror.listener import Listener
from streaming.mirror.producer import KafkaSink
from streaming.mirror.tap import Tap

WAIT_S = 240.0  # a bound for what never comes: on a machine that is busy enough, a start of Spark takes two minutes


def wait_for(condition: Callable[[], Any], what: str, timeout_s: float = WAIT_S) -> Any:
    """Poll a condition until it gives something true, and return that.

    The pauses grow: a condition may read a whole topic, which takes the cores from what it waits for.
    """
    deadline, pause_s = time.monotonic() + timeout_s, 0.02
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {timeout_s:.0f} s in vain: {what}"
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, 0.3)
    return found


def kafka_python_consumer(topic: str, **settings: Any) -> kafka.KafkaConsumer:
    """A consumer of kafka-python that knows its topic's partitions before it joins its group.

    Without that, kafka-python 3.0.12 often joins first and assigns nothing, and joins once more when the partitions are known. If a
    poll() runs out of time during that second rebalance, which is under way in its I/O thread, the next poll() sees no need to rejoin,
    so it never takes in the assignment: heartbeats stay off, nothing is read, for ever. It happens without a tap as with one.
    """
    consumer = kafka.KafkaConsumer(topic, **settings)
    consumer.topics()  # waits for the answer
    return consumer


@contextmanager
def running_tap(listeners: list[str], sink: Any, **options: Any) -> Iterator[Tap]:
    """A tap on an event loop of its own, in a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="tap")
    thread.start()

    def call(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(WAIT_S)

    try:
        tap = Tap([Listener.parse(text) for text in listeners], sink, **options)
        call(tap.start())
        try:
            yield tap
        finally:
            call(tap.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def kafka_sink(bootstrap: str, **options: Any) -> Iterator[KafkaSink]:
    """A sink into a topic that exists; at the end all of it must have arrived."""
    sink = KafkaSink({"bootstrap.servers": bootstrap}, **options)
    try:
        yield sink
    finally:
        assert sink.close(WAIT_S) == 0


def raw_topic(bootstrap: str, topic: str) -> list[Any]:
    """Every message of a topic, partition by partition, each in offset order."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    try:
        messages: list[Any] = []
        for partition in sorted(consumer.list_topics(topic, timeout=10).topics[topic].partitions):
            first, end = bounds_of(consumer, TopicPartition(topic, partition), within_s=10)
            if first == end:
                continue
            consumer.assign([TopicPartition(topic, partition, first)])
            while not messages or messages[-1].partition() != partition or messages[-1].offset() < end - 1:
                message = consumer.poll(10)
                assert message is not None, f"partition {partition} of {topic} ends before offset {end}"
                assert not message.error(), message.error()
                messages.append(message)
        return messages
    finally:
        consumer.close()


def mirror_record(message: Any) -> MirrorRecord:
    """A message of the mirror topic, unpacked."""
    return unpack_record(
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=message.value(),
        envelope=dict(message.headers() or []).get(HEADER_NAME),
    )


def mirrored(bootstrap: str, topic: str) -> list[MirrorRecord]:
    """Every record of the mirror topic, partition by partition."""
    return [mirror_record(message) for message in raw_topic(bootstrap, topic)]
