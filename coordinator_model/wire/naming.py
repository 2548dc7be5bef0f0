"""Which groups a message names: the table by which a frame finds its group's partition.

The trap: most responses name no group at all. Theirs is the one that their request named.
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
    return body.coordinator_keys or (body.key,)  # v4+ asks for many at once (KIP-699)


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
    """Ids of the consumer groups that a decoded body names, in its order; () for a body that names none.

    The coordinators that a FindCoordinator response lists (v4+) carry the keys asked for without saying of which type they are, so
    they count as named by the request alone. ListGroups responses name every group of a broker.
    """
    names = _NAMES.get(type(body))
    return names(body) if names else ()
