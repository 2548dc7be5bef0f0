"""The groups that a message names, which determine the mirror partition of its frame.

Most responses name no group. Theirs is that of their request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from coordinator_model.wire import messages as m

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator_model.wire.message import Message

GROUP_KEY_TYPE: Final = 0
"""``key_type`` of a FindCoordinator request that asks for a group; 1 asks for a transaction, 2 for a share partition (KIP-98, KIP-932)."""


def _group_id(body: Any) -> tuple[str, ...]:
    return (body.group_id,)


def _coordinator_keys(body: m.FindCoordinatorRequest) -> tuple[str, ...]:
    if body.key_type != GROUP_KEY_TYPE:
        return ()
    keys = body.coordinator_keys or (body.key,)  # v4+ asks for many at once (KIP-699)
    return tuple(key for key in keys if key) or keys  # clients send an empty one beside a group's, which is no other group


def _fetched(body: m.OffsetFetchRequest) -> tuple[str, ...]:
    if body.groups:
        return tuple(group.group_id for group in body.groups)  # v8+ (KIP-709)
    return (body.group_id,) if body.group_id else ()


def _groups(body: Any) -> tuple[str, ...]:
    return tuple(group.group_id for group in body.groups)


_NAMES: Final[dict[type[Message], Callable[[Any], tuple[str, ...]]]] = {
    m.OffsetCommitRequest: _group_id,
    m.OffsetFetchRequest: _fetched,
    m.OffsetFetchResponse: _groups,  # v8+
    m.FindCoordinatorRequest: _coordinator_keys,
    m.JoinGroupRequest: _group_id,
    m.HeartbeatRequest: _group_id,
    m.LeaveGroupRequest: _group_id,
    m.SyncGroupRequest: _group_id,
    m.DescribeGroupsRequest: lambda body: body.groups,
    m.DescribeGroupsResponse: _groups,
    m.ListGroupsResponse: _groups,
    m.AddOffsetsToTxnRequest: _group_id,
    m.TxnOffsetCommitRequest: _group_id,
    m.DeleteGroupsRequest: lambda body: body.groups_names,
    m.DeleteGroupsResponse: lambda body: tuple(result.group_id for result in body.results),
    m.OffsetDeleteRequest: _group_id,
    m.ConsumerGroupHeartbeatRequest: _group_id,
    m.ConsumerGroupDescribeRequest: lambda body: body.group_ids,
    m.ConsumerGroupDescribeResponse: _groups,
    m.ShareGroupHeartbeatRequest: _group_id,
    m.ShareGroupDescribeRequest: lambda body: body.group_ids,
    m.ShareGroupDescribeResponse: _groups,
    m.StreamsGroupHeartbeatRequest: _group_id,
    m.StreamsGroupDescribeRequest: lambda body: body.group_ids,
    m.StreamsGroupDescribeResponse: _groups,
}


def groups_named(body: Message) -> tuple[str, ...]:
    """Return the ids of the groups that a decoded body names, in its order; () if it names none.

    A FindCoordinator response (v4+) lists the requested keys without their type, so only its request counts as naming them.
    A ListGroups response names every group of a broker.
    """
    names = _NAMES.get(type(body))
    return names(body) if names else ()
