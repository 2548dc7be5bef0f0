"""What clients put into each other's bytes: consumer, Connect, Streams."""

from __future__ import annotations

import struct

import pytest

from coordinator_model import wire
from coordinator_model.wire import (
    ConnectAssignment,
    ConnectAssignmentConnector,
    ConnectWorkerState,
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    DecodeError,
)
from tests.oracle.make_frames import HERE

URL = "http://w1:8083/"


def kept() -> dict[tuple[str, int], bytes]:
    lines = (HERE / "embedded.txt").read_text().splitlines()
    return {(name, int(version)): bytes.fromhex(raw) for name, version, raw in (line.split() for line in lines if line[0] != "#")}


KEPT = kept()


def versions(name: str) -> list[int]:
    return [version for kept_name, version in KEPT if kept_name == name]


def test_what_kafka_wrote_is_kept_for_every_version():
    assert versions("connect_worker") == versions("connect_assignment") == [0, 1, 2]
    assert versions("streams_subscription") == versions("streams_assignment") == list(range(1, 12))


@pytest.mark.parametrize("version", versions("connect_worker"))
def test_connect_worker_state(version):
    raw = KEPT["connect_worker", version]
    state = wire.decode_metadata(wire.CONNECT, raw)
    assert isinstance(state, ConnectWorkerState)
    assert (state.url, state.config_offset) == (URL, 42)
    assert state.allocation == (KEPT["connect_assignment", version] if version else None)
    assert wire.encode_connect_worker_state(state, version) == raw


@pytest.mark.parametrize("version", versions("connect_fresh_worker"))
def test_connect_worker_without_an_assignment(version):
    assert wire.decode_connect_worker_state(KEPT["connect_fresh_worker", version]).allocation is None


@pytest.mark.parametrize("version", versions("connect_assignment"))
def test_connect_assignment(version):
    raw = KEPT["connect_assignment", version]
    assignment = wire.decode_member_assignment(wire.CONNECT, raw)
    sink = ConnectAssignmentConnector(connector="sink", tasks=(-1, 0))
    source = ConnectAssignmentConnector(connector="source", tasks=(3,))
    if version == 0:
        expected = ConnectAssignment(leader="worker-1", leader_url=URL, config_offset=42, assignment=(sink, source))
    else:
        expected = ConnectAssignment(
            error=1, leader="worker-1", leader_url=URL, config_offset=42, assignment=(sink,), revoked=(source,), delay=300_000
        )
    assert assignment == expected
    assert wire.encode_connect_assignment(expected, version) == raw


@pytest.mark.parametrize("version", versions("streams_subscription"))
def test_streams_subscription(version):
    raw = KEPT["streams_subscription", version]
    info = wire.decode_streams_subscription(raw)
    assert info.version == version
    assert info.latest_supported_version == (11 if version >= 3 else -1)
    assert info.process_id == "ABEiM0RVZneImaq7zN3u_w"
    assert info.user_end_point == (b"host:9090" if version >= 2 else b"")
    assert [(tag.key, tag.value) for tag in info.client_tags] == ([(b"zone", b"eu-1")] if version >= 11 else [])
    assert len(info.prev_tasks + info.standby_tasks) == (2 if version < 7 else 0)
    if version >= 10:
        assert [(task.topic_group_id, task.partition, task.offset_sum) for task in info.task_offset_sums] == [
            (0, 1, -2),
            (1, 0, 77),
        ]
    assert wire.encode_streams_subscription(info) == raw
    for cut in range(len(raw)):
        with pytest.raises(DecodeError):
            wire.decode_streams_subscription(raw[:cut])


@pytest.mark.parametrize("version", versions("streams_assignment"))
def test_streams_assignment_tells_its_versions(version):
    info = wire.decode_streams_assignment(KEPT["streams_assignment", version])
    assert (info.version, info.commonly_supported_version) == (version, 11 if version >= 3 else -1)


def test_streams_versions_begin_at_1():
    with pytest.raises(DecodeError, match="is below 1"):
        wire.decode_streams_subscription(struct.pack(">i", 0))


def test_of_a_later_streams_version_the_known_part_is_read():
    later = struct.pack(">i", 99) + KEPT["streams_subscription", 11][4:] + b"more"
    with pytest.raises(DecodeError, match="left over"):
        wire.decode_streams_subscription(KEPT["streams_subscription", 11] + b"more")
    assert wire.decode_streams_assignment(later).commonly_supported_version == 11
    assert wire.decode_streams_subscription(later).client_tags[0].key == b"zone"


def test_consumer_metadata_by_protocol_type():
    subscription = ConsumerProtocolSubscription(topics=("orders",), user_data=b"x", generation_id=4, rack_id="a")
    assert wire.decode_metadata(wire.CONSUMER, wire.encode_subscription(subscription)) == subscription
    orders = ConsumerProtocolAssignmentTopicPartition(topic="orders", partitions=(0, 2))
    assignment = ConsumerProtocolAssignment(assigned_partitions=(orders,))
    assert wire.decode_member_assignment(wire.CONSUMER, wire.encode_assignment(assignment, 0)) == assignment


def test_bytes_of_another_protocol_type_stay_bytes():
    assert wire.decode_metadata("sr", b"{}") == b"{}"
    assert wire.decode_member_assignment("sr", b"{}") == b"{}"


@pytest.mark.parametrize("raw", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\1\0\0\0\0\xff\xff\xff\xfe"])
def test_bad_embedded_bytes(raw):
    for decode in (wire.decode_subscription, wire.decode_assignment, wire.decode_connect_assignment):
        with pytest.raises(DecodeError):
            decode(raw)


def test_of_a_later_consumer_version_the_known_part_is_read():
    raw = wire.encode_subscription(ConsumerProtocolSubscription(topics=("orders",), rack_id="a"), 3)
    later = struct.pack(">h", 9) + raw[2:] + b"whatever"
    assert wire.decode_subscription(later).rack_id == "a"
    assert wire.decode_subscription(memoryview(later)).topics == ("orders",)
    with pytest.raises(DecodeError, match="topics"):
        wire.decode_subscription(later[:7])


def test_a_version_that_cannot_say_a_field_drops_it_where_the_schema_allows():
    subscription = ConsumerProtocolSubscription(topics=("orders",), generation_id=4, rack_id="a")
    assert wire.decode_subscription(wire.encode_subscription(subscription, 0)) == ConsumerProtocolSubscription(topics=("orders",))
