"""Two clusters in one capture, with groups of one name: Metadata and DescribeCluster answers show which broker belongs to which."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from kafka.protocol.metadata import MetadataResponse
from typer.testing import CliRunner

from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.cli import app
from streaming.mirror.pcap.capture_reader import CaptureReader
from streaming.mirror.pcap.files import opened, packets
from streaming.mirror.pcap.first_pass import first_pass
from tests.streaming.mirror.captured_consumer import life
from tests.streaming.mirror.talk import METADATA, other_request
from tests.streaming.mirror.wires import SYN, Connection, Segment, pcap, sized

ONE, OTHER = "lkc-one", "lkc-other"
DESCRIBE_CLUSTER = 60
VERSIONS = {METADATA: 12, DESCRIBE_CLUSTER: 1}


def metadata(cluster: str, brokers: list[tuple[str, int]], correlation_id: int, topics: Sequence[str]) -> bytes:
    broker, topic = MetadataResponse.MetadataResponseBroker, MetadataResponse.MetadataResponseTopic
    partition = topic.MetadataResponsePartition(
        partition_index=0, error_code=0, leader_id=1, leader_epoch=3, replica_nodes=[1], isr_nodes=[1], offline_replicas=[]
    )
    body = MetadataResponse(
        throttle_time_ms=0,
        brokers=[broker(node_id=number, host=host, port=port, rack=None) for number, (host, port) in enumerate(brokers)],
        cluster_id=cluster,
        controller_id=1,
        topics=[
            topic(error_code=0, name=name, topic_id=uuid.UUID(int=0xA5), is_internal=False, partitions=[partition])
            for name in topics
        ],
        version=VERSIONS[METADATA],
    )
    return sized(correlation_id.to_bytes(4, "big") + b"\0" + bytes(body.encode()))


def described(cluster: str, brokers: list[tuple[str, int]], correlation_id: int) -> bytes:
    """A DescribeCluster response of version 1: compact texts and arrays, each struct with its tagged fields."""

    def text(words: str) -> bytes:
        return bytes([len(words) + 1]) + words.encode()

    listed = b"".join(
        number.to_bytes(4, "big") + text(host) + port.to_bytes(4, "big") + b"\0\0" for number, (host, port) in enumerate(brokers)
    )
    body = (
        bytes(4 + 2)
        + b"\0"
        + b"\1"
        + text(cluster)
        + (1).to_bytes(4, "big")
        + bytes([len(brokers) + 1])
        + listed
        + bytes(4)
        + b"\0"
    )
    return sized(correlation_id.to_bytes(4, "big") + b"\0" + body)


def asks(
    segments: list[Segment],
    cluster: str,
    brokers: list[tuple[str, int]],
    *,
    broker: tuple[str, int],
    client: tuple[str, int] = ("10.0.0.7", 50_000),
    mss: int = 1460,
    api_key: int = METADATA,
    topics: Sequence[str] = (),
) -> None:
    """A client asks a broker what its cluster is."""
    line = Connection(segments, client=client, broker=broker, mss=mss).open()
    line.client(other_request(api_key, VERSIONS[api_key], 7), mss=1460)
    line.broker(metadata(cluster, brokers, 7, topics) if api_key == METADATA else described(cluster, brokers, 7))
    line.close()


def clusters_of(segments: list[Segment]) -> dict[str, str]:
    return dict(first_pass([packets(opened(io.BytesIO(pcap(sorted(segments)))), pytest.fail)]).clusters)


A, B, C, D = ("10.0.0.1", 9092), ("10.0.0.2", 9092), ("10.0.0.3", 9092), ("10.0.0.4", 9092)


@pytest.mark.parametrize("api_key", [METADATA, DESCRIBE_CLUSTER])
@pytest.mark.parametrize("mss", [1460, 20])
def test_the_broker_that_answers_and_those_that_it_lists_are_of_the_cluster_that_it_names(api_key, mss):
    segments: list[Segment] = []
    asks(segments, ONE, [A, B], broker=A, mss=mss, api_key=api_key)
    asks(segments, OTHER, [D], broker=C, mss=mss, api_key=api_key)
    shown = {A: ONE, B: ONE, C: OTHER, D: OTHER}
    assert clusters_of(segments) == {f"{host}:{port}": cluster for (host, port), cluster in shown.items()}


def test_a_capture_of_one_cluster_keeps_the_name_that_it_is_given():
    segments: list[Segment] = []
    asks(segments, ONE, [A, B], broker=A)
    asks(segments, ONE, [A, B], broker=B, client=("10.0.0.8", 50_000))
    assert clusters_of(segments) == {}


def test_an_address_that_answers_for_two_clusters_is_of_none():
    segments: list[Segment] = []
    asks(segments, ONE, [B], broker=A, client=("10.0.0.7", 50_000))
    asks(segments, OTHER, [C], broker=A, client=("10.0.0.8", 50_000))
    assert clusters_of(segments) == {"10.0.0.2:9092": ONE, "10.0.0.3:9092": OTHER}


def test_a_coordinator_that_advertises_a_name_is_known_by_the_clients_of_its_cluster():
    segments: list[Segment] = []
    for cluster, broker, coordinator, host in ((ONE, A, B, "10.0.0.7"), (OTHER, C, D, "10.0.0.8")):
        asks(segments, cluster, [("kafka-1", 9092), ("kafka-2", 9092)], broker=broker, client=(host, 50_000))
        line = Connection(segments, client=(host, 50_001), broker=coordinator).open()
        line.client(other_request(10, 3, 8))
    assert clusters_of(segments)["10.0.0.2:9092"] == ONE
    assert clusters_of(segments)["10.0.0.4:9092"] == OTHER


@pytest.fixture
def two_clusters() -> bytes:
    """Group orders of two clusters, of one member each, the second one 20 s after the first: equal requests at one time are repeats."""
    segments: list[Segment] = []
    for late_s, (cluster, broker, host) in ((0, (ONE, A, "10.0.0.7")), (20, (OTHER, C, "10.0.0.8"))):
        made: list[Segment] = []
        asks(made, cluster, [broker], broker=broker, client=(host, 50_000))
        life(made, "orders", client=(host, 40_000), broker=broker, violation=cluster == OTHER)
        segments += [one._replace(at_us=one.at_us + late_s * 1_000_000) for one in made]
    return pcap(sorted(segments))


def replayed(*arguments: str, stdin: bytes | None = None) -> Any:
    return CliRunner().invoke(app, ["replay", *arguments], input=stdin, catch_exceptions=False)


def test_groups_of_one_name_in_two_clusters_of_a_file_are_two_groups(two_clusters, tmp_path):
    path = tmp_path / "both.pcap"
    path.write_bytes(two_clusters)
    result = replayed(str(path))
    assert [line for line in result.stdout.splitlines() if line.startswith("orders of ")] == [
        f"orders of {ONE}",
        f"orders of {OTHER}",
    ]
    assert result.stdout.count("Generation 1, 1 member, after 3.0 s") == 2
    assert f"2 clusters are in it, named by their ids: {ONE}, {OTHER}" in result.stderr
    found = [json.loads(line) for line in replayed(str(path), "--format", "json").stdout.splitlines()]
    assert {(one["cluster"], one["group"]) for one in found if one["severity"] == "critical"} == {(OTHER, "orders")}
    assert f"cluster   {OTHER}" in result.stdout


def test_a_pipe_cannot_be_read_twice_and_says_that_two_clusters_are_in_it(two_clusters):
    result = replayed("-", stdin=two_clusters)
    assert f"brokers of 2 clusters ({ONE}, {OTHER}) are in it and were not distinguished" in result.stderr


def test_what_is_said_of_one_cluster_is_not_kept_from_the_other():
    """Topics of one name, and connections that fail, are those of their cluster."""
    segments: list[Segment] = []
    asks(segments, ONE, [A], broker=A, topics=["orders"])
    asks(segments, OTHER, [C], broker=C, topics=["orders"])
    refused = Connection(segments, client=("10.0.0.7", 50_002), broker=C)
    refused._send(0, SYN)
    refused.reset()
    records: list[MirrorRecord] = []
    reader = CaptureReader(records.append, clusters=clusters_of(segments))
    reader.read(packets(opened(io.BytesIO(pcap(sorted(segments)))), pytest.fail))
    assert {record.cluster for record in records if record.kind is Kind.TOPICS} == {ONE, OTHER}
    assert [record.cluster for record in records if record.kind is Kind.UNREACHED] == [OTHER]
    assert reader.stats.mixed == set()
