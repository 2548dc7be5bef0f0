"""What the beginning of a frame says, held against whole messages."""

from __future__ import annotations

from random import Random

import pytest

from coordinator_model import wire
from coordinator_model.wire.layouts import REQUESTS, RESPONSES
from coordinator_model.wire.leading import leading_error_code, leading_group, names_correlation, names_request
from tests.coordinator_model.random_frames import body


@pytest.mark.parametrize("api_key", [9, 10, 11, 12, 13, 14, 16, 68])
def test_the_error_code_is_that_of_the_message(api_key: int) -> None:
    random, layout = Random(api_key), RESPONSES[api_key]
    found = 0
    for version in range(layout.versions.first, layout.versions.last + 1):
        message = body(random, layout, version)
        frame = wire.encode_response(message, api_version=version, correlation_id=7)
        error = leading_error_code(frame, api_key, version)
        assert error in {None, getattr(message, "error_code", None)}
        assert leading_error_code(frame[:5], api_key, version) is None
        found += error is not None
    assert found or api_key == 9, "OffsetFetch has its errors behind an array"


@pytest.mark.parametrize(
    ("frame", "api_key", "api_version"), [(bytes(20), 8, 8), (bytes(20), 12, 99), (b"\0\0\0\7\1" + bytes(9), 12, 4)]
)
def test_nothing_is_said_where_it_is_not_to_be_found(frame: bytes, api_key: int, api_version: int) -> None:
    assert leading_error_code(frame, api_key, api_version) is None


def test_whose_frame_it_is() -> None:
    answer = wire.encode_response(wire.HeartbeatResponse(), api_version=4, correlation_id=-7)
    assert names_correlation(answer, -7)
    assert not names_correlation(answer, 7)
    request = wire.encode_request(wire.HeartbeatRequest(group_id="g"), api_version=4, correlation_id=-7)
    assert names_request(request, 12, 4, -7)
    assert not names_request(request, 12, 3, -7)


@pytest.mark.parametrize("api_key", sorted(REQUESTS))
def test_the_group_of_a_cut_request_is_that_of_the_whole_one(api_key: int) -> None:
    random, layout = Random(api_key), REQUESTS[api_key]
    for version in range(layout.versions.first, layout.versions.last + 1):
        message = body(random, layout, version)
        named = [name for name in wire.groups_named(message) if name]
        frame = wire.encode_request(message, api_version=version, correlation_id=7, client_id="app")
        found = [leading_group(frame[:cut], api_key, version) for cut in range(len(frame) + 1)]
        assert set(found) <= {None, *(named if len(named) == 1 else ())}
        assert found == sorted(found, key=lambda name: name is not None), "once the group is read, more bytes change nothing"
        if hasattr(message, "group_id") and named and (api_key != 9 or version < 8):
            assert found[-1] == named[0]


@pytest.mark.parametrize(
    ("message", "version", "group"),
    [
        (wire.JoinGroupRequest(group_id="billing", member_id="m" * 200), 9, "billing"),
        (wire.HeartbeatRequest(group_id="billing", member_id="m" * 200), 0, "billing"),
        (wire.TxnOffsetCommitRequest(transactional_id="tx", group_id="billing", member_id="m" * 200), 3, "billing"),
        (wire.OffsetFetchRequest(groups=(wire.OffsetFetchRequestGroup(group_id="billing", member_id="m" * 200),)), 9, "billing"),
        (wire.FindCoordinatorRequest(coordinator_keys=("billing",)), 4, "billing"),
        (wire.FindCoordinatorRequest(coordinator_keys=("billing",), key_type=1), 4, None),
        (wire.DeleteGroupsRequest(groups_names=("billing", "orders")), 2, None),
    ],
)
def test_the_group_is_read_from_the_first_bytes(message: wire.Message, version: int, group: str | None) -> None:
    frame = wire.encode_request(message, api_version=version, correlation_id=7, client_id="app")
    assert leading_group(frame[:40], message.API_KEY, version) == group
