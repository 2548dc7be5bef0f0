"""Facts about topics from Metadata responses: each is written once, and nothing else of them is."""

from __future__ import annotations

import base64
import uuid

import pytest
from kafka.protocol.metadata import MetadataResponse

from coordinator_model.wire.record import NO_RIGHT, Kind, MirrorRecord, unpack_topics
from streaming.mirror.anonymised import Anonymiser
from streaming.mirror.answer_fields import AnswerFields
from streaming.mirror.topics import READ_AT_MOST, KnownTopics, Topic, topics_in
from tests.streaming.mirror.talk import METADATA, Talk, other_request
from tests.streaming.mirror.wires import sized

ORDERS, PAYMENTS = uuid.UUID(int=0xA5), uuid.UUID(int=0xB6)
NO_ID = uuid.UUID(int=0)
UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, NOT_AUTHORIZED = 3, 5, 29


def as_kafka_writes(topic_id: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def metadata(topics, *, version=12, partitions=3, correlation_id=7, error_code=0) -> bytes:
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
            topic(error_code=error_code, name=name, topic_id=topic_id, is_internal=False, partitions=listed)
            for topic_id, name in topics
        ],
        version=version,
    )
    return correlation_id.to_bytes(4, "big") + b"\0" * (version >= 9) + bytes(body.encode())


def topics_of(frame: bytes, version: int) -> list[Topic]:
    return topics_in(dict(AnswerFields(frame, METADATA, version)))


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


@pytest.mark.parametrize("version", range(14))
def test_topics_of_a_response_are_read_in_all_versions(version):
    orders, payments = (as_kafka_writes(one) if version >= 10 else "" for one in (ORDERS, PAYMENTS))
    found = topics_of(metadata([(ORDERS, "orders"), (PAYMENTS, "payments")], version=version), version)
    assert found == [Topic("orders", orders, 3), Topic("payments", payments, 3)]


@pytest.mark.parametrize(
    ("error_code", "found"),
    [(UNKNOWN_TOPIC, [Topic("gone", "", 0)]), (LEADER_NOT_AVAILABLE, []), (NOT_AUTHORIZED, [Topic("gone", "", NO_RIGHT)])],
)
def test_an_entry_with_an_error_tells_at_most_that_there_is_no_such_topic_or_no_right_to_it(error_code, found):
    assert topics_of(metadata([(NO_ID, "gone")], partitions=0, error_code=error_code), 12) == found


def test_each_fact_is_written_once_to_every_partition_and_nothing_else_is():
    talk = Followed()
    talk.passes_by([(ORDERS, "orders")])
    talk.passes_by([(ORDERS, "orders")])
    talk.passes_by([(ORDERS, "orders"), (PAYMENTS, "payments")])
    assert talk.facts() == [
        ({as_kafka_writes(ORDERS): "orders"}, {"orders": 3}),
        ({as_kafka_writes(PAYMENTS): "payments"}, {"payments": 3}),
    ]
    assert [(one.group, one.kind, one.cluster, one.api_key) for one in talk.records] == [(None, Kind.TOPICS, "c1", -1)] * 2
    assert talk.records[0].at_us == 1_002
    assert b"kafka-1" not in b"".join(record.frame for record in talk.records)


def test_that_a_client_has_no_right_to_a_topic_is_news_of_that_client_until_it_gets_it():
    known = KnownTopics()
    denied = metadata([(NO_ID, "secret")], partitions=0, error_code=NOT_AUTHORIZED)
    a, b = ("a", "10.0.0.1"), ("b", "10.0.0.2")
    assert known.read(metadata([(ORDERS, "secret")]), 12, b) == {as_kafka_writes(ORDERS): "secret", "secret": 3}
    assert [known.read(denied, 12, client) for client in (a, a)] == [{"secret": NO_RIGHT}, {}]
    assert known.read(metadata([(ORDERS, "secret"), (PAYMENTS, "payments")]), 12, a)["secret"] == 3
    assert known.read(denied, 12, a) == {"secret": NO_RIGHT}


def test_a_topic_that_is_made_again_has_another_id():
    talk = Followed()
    talk.passes_by([(ORDERS, "orders")])
    talk.passes_by([(PAYMENTS, "orders")], partitions=2)
    assert talk.facts()[-1] == ({as_kafka_writes(PAYMENTS): "orders"}, {"orders": 2})


def test_new_partitions_are_news_and_an_older_number_of_the_same_topic_is_not():
    talk = Followed()
    for partitions in (3, 6, 2, 6):
        talk.passes_by([(ORDERS, "orders")], partitions=partitions)
    assert [counts for _, counts in talk.facts()] == [{"orders": 3}, {"orders": 6}]


def test_a_topic_that_was_deleted_has_no_partitions():
    talk = Followed()
    talk.passes_by([(NO_ID, "orders")], partitions=0, error_code=UNKNOWN_TOPIC)  # its client asks in vain
    talk.passes_by([(ORDERS, "orders")])
    talk.passes_by([(NO_ID, "orders")], partitions=0, error_code=UNKNOWN_TOPIC, version=13)
    assert [counts for _, counts in talk.facts()] == [{"orders": 0}, {"orders": 3}, {"orders": 0}]


def test_that_a_topic_does_not_exist_is_news_for_each_client_that_asks():
    known = KnownTopics()
    missing = metadata([(NO_ID, "ordres")], partitions=0, error_code=UNKNOWN_TOPIC)
    clients = (("a", "10.0.0.1"), ("a", "10.0.0.1"), ("b", "10.0.0.1"))
    assert [known.read(missing, 12, client) for client in clients] == [{"ordres": 0}, {}, {"ordres": 0}]


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


def test_a_capturer_that_looks_for_no_topics_finds_none():
    talk = Followed(topics=None)
    talk.passes_by([(ORDERS, "orders")])
    assert talk.records == []


@pytest.mark.parametrize("version", [6, 12])
def test_a_response_that_ends_anywhere_tells_nothing(version):
    frame = metadata([(ORDERS, "orders"), (PAYMENTS, "payments")], version=version)
    left_out = 1 if version == 12 else 0  # the last byte holds no tagged fields
    for end in range(len(frame) - 4 - left_out):
        assert KnownTopics().read(frame[:end], version) == {}


def test_an_anonymised_fact_has_the_pseudonym_of_the_topic():
    talk = Followed()
    talk.passes_by([(ORDERS, "orders")])
    anonymous = Anonymiser(b"s")
    record = anonymous.record(talk.records[0])
    assert isinstance(record, MirrorRecord)
    names, partitions = unpack_topics(record.frame)
    (name,) = names.values()
    assert name != "orders"
    assert partitions == {name: 3}
    assert anonymous.names()[name] == "orders"
