"""A group of a newer protocol as its brokers see it.

No frame shows when a session of these protocols ends, and the model waits for the longest one. So whether a group is at rest is asked of
the brokers; librdkafka and kafka-python have no request for share and Streams groups.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from coordinator_model.wire import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from coordinator_model.wire.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from streaming.demo.raw_client import Connection, RawClientError

REQUESTS: dict[str, tuple[Any, Any, int]] = {
    "consumer": (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, 0),
    "share": (ShareGroupDescribeRequest, ShareGroupDescribeResponse, 1),
    "streams": (StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, 0),
}
LONGEST_S = 3.0


def described(addresses: Iterable[str], group: str, protocol: str) -> tuple[str, int] | None:
    """State of the group and number of its members; None when no broker has it, or none answers."""
    request, response, version = REQUESTS[protocol]
    for address in addresses:
        with (
            contextlib.suppress(RawClientError),
            Connection(address, client_id="describer", timeout_s=LONGEST_S, versions={request.API_KEY: version}) as connection,
        ):
            [found] = connection.ask(request(group_ids=(group,)), response).groups
            if found.error_code == 0:
                return found.group_state, len(found.members)
    return None
