"""Messages as brokers of each release write them into their request logs, held against Kafka's own classes of that release."""

from __future__ import annotations

import base64
from collections import Counter

import pytest

from coordinator_model.wire.encoder import encode_request, encode_response
from coordinator_model.wire.layouts import LAYOUTS
from coordinator_model.wire.record import MIRRORED_API_KEYS
from streaming.mirror.broker_log.from_json import message_of
from tests.oracle.make_frames import LOGGED, load_fixtures

BEFORE_KIP_848 = ("ConsumerGroupHeartbeatRequest", "ConsumerGroupHeartbeatResponse")
"""Up to 3.6 version 0 of these, which no release offers, has other fields."""


def logged(release: str):
    for frame in load_fixtures(LOGGED):
        layout = LAYOUTS.get(frame["name"])
        if frame["release"] != release or layout is None or layout.api_key not in MIRRORED_API_KEYS:
            continue
        if release == "kafka35" and frame["name"] in BEFORE_KIP_848:
            continue
        yield layout, frame


@pytest.mark.parametrize("release", ["kafka28", "kafka35", "legacy", "kafka43", "current"])
def test_what_a_release_logs_gives_the_bytes_that_its_classes_write(release):
    met, unknown = Counter(), Counter()
    for layout, frame in logged(release):
        version, header = frame["version"], frame["header"]
        message = message_of(layout, frame["value"], version, unknown)
        if frame["name"].endswith("Request"):
            found = encode_request(
                message, api_version=version, correlation_id=header["correlationId"], client_id=header.get("clientId")
            )
        else:
            found = encode_response(message, api_version=version, correlation_id=header["correlationId"])
        assert found == base64.b64decode(frame["frame"]), f"{frame['name']} v{version}"
        met[frame["name"]] += 1
    assert unknown == {}
    assert len(met) >= 20
    assert met["OffsetCommitRequest"] >= 8
