"""What the beginning of a frame says, held against whole messages."""

from __future__ import annotations

from random import Random

import pytest

from coordinator_model import wire
from coordinator_model.wire.layouts import RESPONSES
from coordinator_model.wire.leading import leading_error_code, names_correlation, names_request
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
