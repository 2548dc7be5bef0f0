"""Independent decoders agree with ours on frames made by Kafka, wherever they support the message and version.

Each known disagreement stands here with its reason. The frames are freed beforehand of what would keep a peer from reading them at all:
kio refuses unknown tags and unknown error codes, and times outside what ``timedelta`` holds.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from coordinator_model.wire.layouts import LAYOUTS
from tests.samples import sampled

KNOWN = {
    "kio": {
        r"StreamsGroupHeartbeatResponse v0: \.acceptable_recovery_lag": "the int32 of v0, which Kafka 4.4 renamed when v1 got an int64",
    },
    "kafka-python": {
        r"DescribeGroupsResponse v\d: \.groups\.authorized_operations": "gives the bit field as a set, or None for the lowest int32",
        r"ApiVersionsResponse v[34]: ": "reads every answer that has an error code as version 0; only error 35 is laid out so",
    },
}
PAIRS = {"kio": 200, "kafka-python": 184}


@pytest.mark.parametrize("peer", sampled(KNOWN, ["kio"]))
def test_peers_agree(peer):
    command = [sys.executable, "-m", "tests.coordinator_model.wire.peers", peer]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=250)
    told = json.loads(done.stdout)
    unknown = [line for line in told["differences"] if not any(re.match(pattern, line) for pattern in KNOWN[peer])]
    assert unknown == []
    assert told["pairs"] >= PAIRS[peer]
    for pattern, reason in KNOWN[peer].items():
        assert any(re.match(pattern, line) for line in told["differences"]), f"no longer so: {reason}"
    assert told["pairs"] <= sum(layout.versions.last - layout.versions.first + 1 for layout in LAYOUTS.values())
