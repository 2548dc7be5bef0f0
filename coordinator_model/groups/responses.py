"""What every response shows: its error codes, read once for the handler, the trackers and the rules, and the version its member uses.

A response may hold many codes: one per partition of a commit, per member that leaves, per group that is deleted or looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any

from coordinator_model.groups.records import AnyMember, Exchange, LeaveFacts
from coordinator_model.wire import API_NAMES, CONSUMER
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    EPOCH_DESCRIPTIONS,
    FIND_COORDINATOR,
    HEARTBEAT,
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


def note_version(members: Mapping[str, AnyMember], exchange: Exchange, body: Any) -> bool:
    """Note the version of a request that was answered; return True if that is news.

    A request that names no member, such as OffsetFetch, is that of the member on its connection. Heartbeats are too frequent, and show
    nothing that the JoinGroup of their member does not.
    """
    if exchange.api_key == HEARTBEAT:
        return False
    id_ = exchange.member_id or getattr(body, "member_id", "")
    connection = exchange.key[0]
    speaker = members.get(id_) if id_ else next((one for one in members.values() if one.actor.connection == connection), None)
    if speaker is None or speaker.versions.get(exchange.api_key) == exchange.api_version:
        return False
    speaker.versions[exchange.api_key] = exchange.api_version
    return True


def named_versions(versions: Mapping[int, int]) -> dict[str, int]:
    """Return API → version, as published."""
    return {API_NAMES[api_key]: version for api_key, version in sorted(versions.items())}


def assigns_partitions(body: Any) -> bool:
    """Return True if a SyncGroup success gives the member anything: of a consumer's assignment, by its number of topics."""
    assignment: bytes = body.assignment
    if body.protocol_type not in {None, CONSUMER}:
        return bool(assignment)
    return int.from_bytes(assignment[2:6], "big", signed=True) > 0
