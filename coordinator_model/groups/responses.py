"""The error codes of a response, read once for the handler, the trackers and the rules.

A response may hold many codes: one per partition of a commit, per member that leaves, per group that is deleted or looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from coordinator_model.groups.records import Exchange, LeaveFacts
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    EPOCH_DESCRIPTIONS,
    FIND_COORDINATOR,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    TXN_OFFSET_COMMIT,
)


def error_codes(api_key: int, body: Any, group: str) -> frozenset[int]:
    """Return every code that a response holds for the group; 0 is among them if anything succeeded."""
    if api_key in {OFFSET_COMMIT, TXN_OFFSET_COMMIT}:
        return frozenset(partition.error_code for topic in body.topics for partition in topic.partitions)
    if api_key == OFFSET_FETCH:
        answer = next((one for one in body.groups if one.group_id == group), body)
        return frozenset((answer.error_code, *(entry.error_code for topic in answer.topics for entry in topic.partitions)))
    if api_key == LEAVE_GROUP and body.members and not body.error_code:
        return frozenset(entry.error_code for entry in body.members)
    if api_key == FIND_COORDINATOR and body.coordinators:
        return frozenset(answer.error_code for answer in body.coordinators if answer.key == group)
    if api_key == DESCRIBE_GROUPS or api_key in EPOCH_DESCRIPTIONS:
        return frozenset(described.error_code for described in body.groups if described.group_id == group)
    if api_key == DELETE_GROUPS:
        return frozenset(result.error_code for result in body.results if result.group_id == group)
    return frozenset((body.error_code,))


def leave_outcomes(exchange: Exchange, body: Any) -> Iterator[tuple[str, str | None, int]]:
    """Yield member id, instance id and error of each member that a LeaveGroup names. Before v3 the error is the response's."""
    assert isinstance(exchange.facts, LeaveFacts)
    errors = (entry.error_code for entry in body.members) if body.members and not body.error_code else repeat(body.error_code)
    for (member_id, instance_id), error in zip(exchange.facts.members, errors, strict=False):
        yield member_id, instance_id, error
