"""Which groups a frame names."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.wire import groups_named, messages
from coordinator_model.wire.layouts import LAYOUTS


@pytest.mark.parametrize(
    ("body", "groups"),
    [
        (wire.HeartbeatRequest(group_id="g"), ("g",)),
        (wire.HeartbeatResponse(), ()),
        (wire.FindCoordinatorRequest(key="g"), ("g",)),
        (wire.FindCoordinatorRequest(key="t", key_type=1), ()),
        (wire.FindCoordinatorRequest(coordinator_keys=("a", "b")), ("a", "b")),
        (wire.FindCoordinatorRequest(coordinator_keys=("", "a")), ("a",)),
        (wire.FindCoordinatorRequest(coordinator_keys=("",)), ("",)),
        (wire.FindCoordinatorRequest(coordinator_keys=("a",), key_type=2), ()),
        (wire.FindCoordinatorResponse(coordinators=(wire.FindCoordinatorResponseCoordinator(key="a"),)), ()),
        (wire.OffsetFetchRequest(group_id="g"), ("g",)),
        (wire.OffsetFetchRequest(groups=(wire.OffsetFetchRequestGroup(group_id="a"), wire.OffsetFetchRequestGroup(group_id="b"))), ("a", "b")),
        (wire.OffsetFetchRequest(), ()),
        (wire.OffsetFetchResponse(groups=(wire.OffsetFetchResponseGroup(group_id="a"),)), ("a",)),
        (wire.OffsetFetchResponse(), ()),
        (wire.DescribeGroupsRequest(groups=("a", "b")), ("a", "b")),
        (wire.DescribeGroupsResponse(groups=(wire.DescribeGroupsResponseDescribedGroup(group_id="a"),)), ("a",)),
        (wire.DeleteGroupsRequest(groups_names=("a",)), ("a",)),
        (wire.DeleteGroupsResponse(results=(wire.DeleteGroupsResponseDeletableGroupResult(group_id="a"),)), ("a",)),
        (wire.ConsumerGroupDescribeRequest(group_ids=("a",)), ("a",)),
        (wire.ShareGroupDescribeRequest(group_ids=("a",)), ("a",)),
        (wire.StreamsGroupDescribeRequest(group_ids=("a",)), ("a",)),
        (wire.TxnOffsetCommitRequest(group_id="g", transactional_id="t"), ("g",)),
        (wire.EndTxnRequest(transactional_id="t"), ()),
        (wire.ApiVersionsRequest(), ()),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, wire.Message) else None,
)  # fmt: skip
def test_groups_named(body, groups):
    assert groups_named(body) == groups


def test_every_message_with_a_group_id_is_in_the_table():
    for layout in LAYOUTS.values():
        holders = {struct for struct, fields in layout.structs.items() if any(field.name == "group_id" for field in fields)}
        if layout.api_key is None or not holders:
            continue
        body = getattr(messages, layout.name)()
        if layout.name in holders:
            body.group_id = "g"
            assert groups_named(body) == ("g",), layout.name
        else:
            (array,) = (field for field in layout.structs[layout.name] if field.item_type in holders)
            setattr(body, array.name, (getattr(messages, array.item_type)(group_id="g"),))
            assert groups_named(body) == ("g",), layout.name
