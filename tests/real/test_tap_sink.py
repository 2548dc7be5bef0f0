"""The mirror's producer when its topic or its producer fails: what is lost is counted and told, and it goes on."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient
from harness import kafka_sink, mirrored, wait_for
from kafka.partitioner.default import murmur2

from coordinator_model.wire.record import Kind, MirrorRecord, unpack_loss
from streaming.errors import SetupError
from streaming.kafka.mirror_topic import create_topic
from streaming.mirror.producer import KafkaSink

pytestmark = pytest.mark.real


def _record(number: int, *, kind: Kind = Kind.REQUEST, group: str | None = "g") -> MirrorRecord:
    return MirrorRecord(
        *(
            -1,
            -1,
            group,
            kind,
            1_700_000_000_000_000 + number,
            "c1",
            "b:9092",
            "x-1",
            number,
            12,
            4,
            number,
            "app",
            "10.0.0.7",
            "",
            0,
            0,
        ),
        frame=number.to_bytes(20, "big"),
    )


def test_records_arrive_in_order_with_their_time(broker):
    config = {"bootstrap.servers": broker.internal}
    create_topic(config, "in-order", 3)
    assert not create_topic(config, "in-order", 3), "it was there"
    with kafka_sink(broker.internal, topic="in-order") as sink:
        for number in range(5000):
            sink.write(_record(number))
    records = mirrored(broker.internal, "in-order")
    assert [record.exchange for record in records] == list(range(5000))
    assert records[7]._replace(partition=-1, offset=-1) == _record(7)


def test_the_partition_of_a_group_is_the_one_java_chooses(broker):
    """murmur2 of the key, as Kafka's default partitioner (here kafka-python's): another capturer of the same group agrees."""
    create_topic({"bootstrap.servers": broker.internal}, "murmur", 7)
    groups = {group: (murmur2(group.encode()) & 0x7FFFFFFF) % 7 for group in ("g", "billing", "group-0042", "ä", "")}
    with kafka_sink(broker.internal, topic="murmur") as sink:
        for group in groups:
            sink.write(_record(1, group=group))
    assert {record.group: record.partition for record in mirrored(broker.internal, "murmur")} == groups


def test_what_does_not_fit_while_the_topic_is_deleted_is_told_once_it_is_back(broker):
    config = {
        "bootstrap.servers": broker.internal,
        "topic.metadata.propagation.max.ms": 200,
        "topic.metadata.refresh.interval.ms": 500,
    }
    create_topic(config, "doomed", 2)
    sink = KafkaSink(config, topic="doomed", buffer_records=50)
    sink.write(_record(1))
    wait_for(lambda: sink.written == 1, "the first record arrives")
    admin = AdminClient(config)
    admin.delete_topics(["doomed"])["doomed"].result(30)
    number = 1

    def write_until(condition) -> None:
        def one_more() -> bool:
            nonlocal number
            number += 1
            sink.write(_record(number))
            sink.write(_record(0, kind=Kind.TICK, group=None))
            return condition()

        wait_for(one_more, "the sink notices")

    write_until(lambda: sink.lost >= 10)
    create_topic(config, "doomed", 2)
    write_until(lambda: sink._pending_loss is None and not sink._gaps)
    assert sink.close() == 0
    records = mirrored(broker.internal, "doomed")
    written = [record.exchange for record in records if record.kind is Kind.REQUEST]
    gaps = [record for record in records if record.kind is Kind.GAP]
    assert {gap.partition for gap in gaps} == {0, 1}
    told = {unpack_loss(gap.frame) for gap in gaps}
    assert sum(loss.records for loss in told) == sink.lost
    assert all(loss.bytes == 20 * loss.records for loss in told)
    assert written == sorted(written)
    taken_by_the_old_one = written[0] - 1  # a broker takes records for a moment after it has answered the deletion
    assert number == taken_by_the_old_one + sink.lost + len(written)
    assert all(_record(2).at_us <= loss.from_us <= loss.to_us <= _record(number).at_us for loss in told)


def test_a_producer_with_a_fatal_error_is_replaced(broker):
    create_topic({"bootstrap.servers": broker.internal}, "fatal", 2)
    sink = KafkaSink({"bootstrap.servers": broker.internal}, topic="fatal")
    for number in range(100):
        sink.write(_record(number))
    producer = sink._producer
    first = producer._client
    producer._fatal = True  # as its error callback does
    wait_for(lambda: producer._client not in (None, first), "it is replaced")
    deadline = time.monotonic() + 30
    number = 100
    while (sink.buffered or sink._pending_loss) and time.monotonic() < deadline:
        sink.write(_record(number))
        number += 1
        time.sleep(0.01)
    assert sink.close() == 0
    records = mirrored(broker.internal, "fatal")
    written = [record.exchange for record in records if record.kind is Kind.REQUEST]
    assert len(written) + sink.lost == number
    assert written[-1] == number - 1
    assert {unpack_loss(record.frame).records for record in records if record.kind is Kind.GAP} <= {sink.lost}


def test_a_topic_that_cannot_be_created_is_said(broker):
    with pytest.raises(SetupError, match=r"cannot create topic 'no/such/name' on .*Topic name is invalid"):
        create_topic({"bootstrap.servers": broker.internal}, "no/such/name", 1)
