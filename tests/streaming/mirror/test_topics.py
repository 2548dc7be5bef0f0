"""Names of topics from Metadata responses: each pair is written once, and nothing else of them is."""

from __future__ import annotations

import base64
import uuid

import pytest
from kafka.protocol.metadata import MetadataResponse

from coordinator_model.wire.record import Kind, MirrorRecord, unpack_topics
from streaming.mirror.anonymised import Anonymiser
from streaming.mirror.topics import READ_AT_MOST, KnownTopics, topics_in
from tests.streaming.mirror.test_conversation import METADATA, Talk, other_request, sized

ORDERS, PAYMENTS = uuid.UUID(int=0xA5), uuid.UUID(int=0xB6)


def as_kafka_writes(topic_id: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def metadata(topics, *, version=12, partitions=3, correlation_id=7) -> bytes:
    """A response frame as kafka-python encodes it."""
    topic, broker = MetadataResponse.MetadataResponseTopic, MetadataResponse.MetadataResponseBroker
    numbers = {
        "error_code": 0,
        "leader_id": 1,
        "leader_epoch": 3,
        "replica_nodes": [1, 2],
        "isr_nodes": [1],
        "offline_replicas": [],
    }
    listed = [topic.MetadataResponsePartition(partition_index=index, **numbers) for index in range(partitions)]
    body = MetadataResponse(
        throttle_time_ms=0,
        brokers=[broker(node_id=1, host="kafka-1", port=9092, rack=None), broker(node_id=2, host="kafka-2", port=9092, rack="r")],
        cluster_id="c",
        controller_id=1,
        topics=[
            topic(error_code=0, name=name, topic_id=topic_id, is_internal=False, partitions=listed) for topic_id, name in topics
        ],
        version=version,
    )
    return correlation_id.to_bytes(4, "big") + b"\0" + bytes(body.encode())


class Followed(Talk):
    """A connection whose client asks for Metadata."""

    def __init__(self, **options) -> None:
        super().__init__(**{"topics": KnownTopics(), **options})
        self.asked = 0

    def passes_by(self, topics, version=12, **fields) -> None:
        self.asked += 1
        self.client(other_request(METADATA, version, self.asked))
        self.broker(sized(metadata(topics, version=version, correlation_id=self.asked, **fields)))

    def facts(self):
        return [unpack_topics(record.frame) for record in self.records if record.kind is Kind.TOPICS]


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_topics_of_a_response_are_read_by_id(version):
    found = topics_in(metadata([(ORDERS, "orders"), (PAYMENTS, "payments")], version=version), version)
    assert found == {as_kafka_writes(ORDERS): "orders", as_kafka_writes(PAYMENTS): "payments"}


def test_a_topic_without_an_id_has_no_name_to_keep():
    assert topics_in(metadata([(uuid.UUID(int=0), "unknown")]), 12) == {}


def test_versions_without_ids_are_passed_over():
    talk = Followed()
    talk.client(other_request(METADATA, 9, 1))
    talk.broker(sized(metadata([(ORDERS, "orders")], correlation_id=1)))
    assert talk.facts() == []


def test_each_pair_is_written_once_to_every_partition_and_nothing_else_is():
    talk = Followed()
    talk.passes_by([(ORDERS, "orders")])
    talk.passes_by([(ORDERS, "orders")])
    talk.passes_by([(ORDERS, "orders"), (PAYMENTS, "payments")])
    assert talk.facts() == [{as_kafka_writes(ORDERS): "orders"}, {as_kafka_writes(PAYMENTS): "payments"}]
    assert [(one.group, one.kind, one.cluster, one.api_key) for one in talk.records] == [(None, Kind.TOPICS, "c1", -1)] * 2
    assert talk.records[0].at_us == 1_002
    assert b"kafka-1" not in b"".join(record.frame for record in talk.records)


def test_a_topic_that_is_made_again_has_another_id():
    talk = Followed()
    talk.passes_by([(ORDERS, "orders")])
    talk.passes_by([(PAYMENTS, "orders")])
    assert talk.facts()[-1] == {as_kafka_writes(PAYMENTS): "orders"}


def test_connections_of_a_capturer_share_what_they_saw():
    shared = KnownTopics()
    for expected in (1, 0):
        talk = Followed(topics=shared)
        talk.passes_by([(ORDERS, "orders")])
        assert len(talk.facts()) == expected


def test_a_long_response_is_passed_over_and_the_connection_followed_on():
    talk = Followed()
    talk.passes_by([(ORDERS, "orders")], partitions=READ_AT_MOST // 20)
    talk.exchange(9)
    assert talk.facts() == []
    assert [record.kind for record in talk.records][-2:] == [Kind.REQUEST, Kind.RESPONSE]
    assert talk.opaque == []


def test_a_capturer_that_looks_for_no_names_finds_none():
    talk = Followed(topics=None)
    talk.passes_by([(ORDERS, "orders")])
    assert talk.records == []


def test_a_response_that_ends_anywhere_tells_nothing_wrong():
    frame = metadata([(ORDERS, "orders"), (PAYMENTS, "payments")])
    whole = topics_in(frame, 12)
    for end in range(len(frame)):
        assert KnownTopics().read(frame[:end], 12).items() <= whole.items()


def test_an_anonymised_fact_has_the_pseudonym_of_the_topic():
    talk = Followed()
    talk.passes_by([(ORDERS, "orders")])
    anonymous = Anonymiser(b"s")
    record = anonymous.record(talk.records[0])
    assert isinstance(record, MirrorRecord)
    (name,) = unpack_topics(record.frame).values()
    assert name != "orders"
    assert anonymous.names()[name] == "orders"
