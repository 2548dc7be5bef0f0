"""The encoder refuses what a version cannot say."""

from __future__ import annotations

import dataclasses
import pickle
import re

import pytest

from coordinator_model import wire
from coordinator_model.wire.encoder import varint


def request(body: wire.Message, version: int, **header) -> bytes:
    return wire.encode_request(body, api_version=version, correlation_id=1, **header)


@pytest.mark.parametrize(
    ("body", "version", "sentence"),
    [
        (wire.HeartbeatRequest(group_instance_id="i"), 2, "HeartbeatRequest v2: group_instance_id is not in this version"),
        (wire.HeartbeatRequest(), 5, "HeartbeatRequest has no version 5, only 0 to 4"),
        (wire.HeartbeatResponse(), 4, "HeartbeatResponse is not a request message"),
        (wire.HeartbeatRequest(group_id=None), 4, "group_id is null where this version does not allow it"),
        (wire.HeartbeatRequest(group_id=b"g"), 4, "group_id is bytes, not str"),
        (wire.HeartbeatRequest(group_id="\ud800"), 4, "group_id holds half of a surrogate pair"),
        (wire.HeartbeatRequest(group_id="x" * 32768), 4, "group_id takes 32768 bytes"),
        (wire.HeartbeatRequest(generation_id=2**31), 4, "generation_id is 2147483648, which is no int32"),
        (wire.HeartbeatRequest(generation_id="1"), 4, "generation_id is '1', which is no int32"),
        (wire.JoinGroupRequest(protocols="range"), 5, "protocols is str, not an array"),
        (wire.JoinGroupRequest(protocols=5), 5, "protocols is int, not an array"),
        (wire.JoinGroupRequest(protocols=("range",)), 5, "protocols[0] is str, not JoinGroupRequestProtocol"),
        (
            wire.OffsetCommitRequest(topics=(wire.OffsetCommitRequestTopic(topic_id="x"),)),
            10,
            "topics[0].topic_id is 'x', not a UUID",
        ),
        (wire.OffsetCommitRequest(topics=(wire.OffsetCommitRequestTopic(topic_id=5),)), 10, "topic_id is 5, not a UUID"),
        (wire.HeartbeatRequest(unknown_tags=((5, b""), (5, b""))), 4, "unknown_tags holds tag 5"),
        ("HeartbeatRequest", 4, "str is not a request message"),
    ],
)
def test_what_a_version_cannot_say(body, version, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        request(body, version)


def test_a_known_tag_is_not_unknown():
    body = wire.ApiVersionsResponse(unknown_tags=((3, b"\1"),))
    with pytest.raises(ValueError, match="holds tag 3"):
        wire.encode_response(body, api_version=3, correlation_id=1)


def test_headers_without_tags():
    with pytest.raises(ValueError, match="the header of this version has no tagged fields"):
        request(wire.HeartbeatRequest(), 3, header_tags=((1, b""),))
    with pytest.raises(ValueError, match="the header of this version has no tagged fields"):
        wire.encode_response(wire.ApiVersionsResponse(), api_version=3, correlation_id=1, header_tags=((1, b""),))


def test_what_may_be_ignored_is_dropped():
    body = wire.JoinGroupRequest(group_id="g", rebalance_timeout_ms=5, reason="why")
    read = wire.decode(request(body, 0), request=True, api_key=11, api_version=0).body
    assert read == wire.JoinGroupRequest(group_id="g")


def test_arrays_may_be_lists():
    body = wire.FindCoordinatorRequest(coordinator_keys=["a", "b"])
    assert wire.decode(request(body, 4), request=True, api_key=10, api_version=4).body.coordinator_keys == ("a", "b")


def test_null_arrays_and_structs():
    body = wire.OffsetFetchRequest(group_id="g", topics=None)
    assert wire.decode(request(body, 3), request=True, api_key=9, api_version=3).body == body
    heartbeat = wire.ConsumerGroupHeartbeatRequest(group_id="g", topic_partitions=())
    assert wire.decode(request(heartbeat, 0), request=True, api_key=68, api_version=0).body == heartbeat
    with pytest.raises(ValueError, match="topics is null"):
        request(body, 1)


def test_varints():
    assert [varint(value).hex() for value in (0, 127, 128, 300, 2**32 - 1)] == ["00", "7f", "8001", "ac02", "ffffffff0f"]


class TestFrame:
    frame = wire.decode(
        request(wire.HeartbeatRequest(group_id="g"), 4, client_id="c"),
        request=True,
        api_key=wire.HeartbeatRequest.API_KEY,
        api_version=4,
    )

    def test_is_header_and_body(self):
        header, body = self.frame
        assert header == wire.Header(12, 4, 1, "c")
        assert body is self.frame.body is self.frame[1] is self.frame[-1]
        assert len(self.frame) == 2

    def test_compares_by_content(self):
        again = wire.decode(request(wire.HeartbeatRequest(group_id="g"), 4, client_id="c"), request=True, api_key=12, api_version=4)
        assert again == self.frame
        assert again != (self.frame.header, self.frame.body)
        other = wire.decode(request(wire.HeartbeatRequest(group_id="g"), 4), request=True, api_key=12, api_version=4)
        assert other != self.frame

    def test_reads_well(self):
        assert repr(self.frame).startswith("Frame(header=Header(api_key=12, api_version=4, correlation_id=1, client_id='c'")

    def test_bodies_can_be_changed_and_carried(self):
        changed = dataclasses.replace(self.frame.body, generation_id=9)
        assert (changed.group_id, changed.generation_id) == ("g", 9)
        assert pickle.loads(pickle.dumps(self.frame)) == self.frame

    def test_the_error_can_be_carried_too(self):
        error = wire.DecodeError("HeartbeatRequest", 4, "group_id", 12, "is not UTF-8")
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        assert isinstance(error, ValueError)


@pytest.mark.parametrize("correlation_id", [2**31, -(2**31) - 1])
def test_a_correlation_id_beyond_int32_is_an_error_of_its_value(correlation_id):
    sentence = f"correlation id {correlation_id} is not within int32"
    with pytest.raises(ValueError, match=sentence):
        wire.encode_request(wire.HeartbeatRequest(group_id="g"), api_version=4, correlation_id=correlation_id)
    with pytest.raises(ValueError, match=sentence):
        wire.encode_response(wire.HeartbeatResponse(), api_version=4, correlation_id=correlation_id)
