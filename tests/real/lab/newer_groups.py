"""What brokers say of share and Streams groups: librdkafka and kafka-python have no request for these, so this project's encoder asks."""

from __future__ import annotations

from typing import Any

from coordinator_model.wire import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from coordinator_model.wire.constants import NONE
from streaming.demo.raw_client import Connection, RawClientError, find_coordinator

_VERSIONS = {ShareGroupDescribeRequest.API_KEY: 1, StreamsGroupDescribeRequest.API_KEY: 0}
_NOT_YET = {14, 15, 16, 69}  #: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, GROUP_ID_NOT_FOUND
_REQUESTS: dict[str, Any] = {
    "share": (ShareGroupDescribeRequest, ShareGroupDescribeResponse),
    "streams": (StreamsGroupDescribeRequest, StreamsGroupDescribeResponse),
}


def answer_about(bootstrap: str, group: str, kind: str) -> Any | None:
    """Return what its coordinator says of a group of this kind; None before it has one.

    :raises streaming.demo.raw_client.RawClientError: when the brokers do not answer, or refuse.
    """
    request, response = _REQUESTS[kind]
    address = find_coordinator(bootstrap, group, client_id="describer")
    with Connection(address, client_id="describer", versions=_VERSIONS) as connection:
        [answer] = connection.ask(request(group_ids=(group,)), response).groups
    if answer.error_code in _NOT_YET:
        return None
    if answer.error_code != NONE:
        raise RawClientError(f"{address} does not describe {kind} group {group}: error {answer.error_code}, {answer.error_message}")
    return answer
