"""The messages of Kafka's group protocol, one class each for all versions.

Written by ``deploy/make_layouts.py`` from what is on the wire (``layout_table.py``) and what it means (``deploy/layout_notes.py``): do not
edit. A field that a version lacks holds its default.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from coordinator_model.wire.message import ZERO_UUID, Request, Response, Struct, UnknownTags

__all__ = [
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "ApiVersionsResponseApiVersion",
    "ApiVersionsResponseFinalizedFeatureKey",
    "ApiVersionsResponseSupportedFeatureKey",
    "ConnectAssignment",
    "ConnectAssignmentConnector",
    "ConnectWorkerState",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupDescribeResponseAssignment",
    "ConsumerGroupDescribeResponseDescribedGroup",
    "ConsumerGroupDescribeResponseMember",
    "ConsumerGroupDescribeResponseTopicPartitions",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatRequestTopicPartitions",
    "ConsumerGroupHeartbeatResponse",
    "ConsumerGroupHeartbeatResponseAssignment",
    "ConsumerGroupHeartbeatResponseTopicPartitions",
    "ConsumerProtocolAssignment",
    "ConsumerProtocolAssignmentTopicPartition",
    "ConsumerProtocolSubscription",
    "ConsumerProtocolSubscriptionTopicPartition",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeleteGroupsResponseDeletableGroupResult",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribeGroupsResponseDescribedGroup",
    "DescribeGroupsResponseDescribedGroupMember",
    "EndTxnRequest",
    "EndTxnResponse",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "FindCoordinatorResponseCoordinator",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "JoinGroupRequest",
    "JoinGroupRequestProtocol",
    "JoinGroupResponse",
    "JoinGroupResponseMember",
    "LeaveGroupRequest",
    "LeaveGroupRequestMemberIdentity",
    "LeaveGroupResponse",
    "LeaveGroupResponseMemberResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListGroupsResponseListedGroup",
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
    "OffsetDeleteRequest",
    "OffsetDeleteRequestPartition",
    "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse",
    "OffsetDeleteResponsePartition",
    "OffsetDeleteResponseTopic",
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchRequestTopic",
    "OffsetFetchRequestTopics",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartition",
    "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic",
    "OffsetFetchResponseTopics",
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
    "ShareGroupDescribeResponseAssignment",
    "ShareGroupDescribeResponseDescribedGroup",
    "ShareGroupDescribeResponseMember",
    "ShareGroupDescribeResponseTopicPartitions",
    "ShareGroupHeartbeatRequest",
    "ShareGroupHeartbeatResponse",
    "ShareGroupHeartbeatResponseAssignment",
    "ShareGroupHeartbeatResponseTopicPartitions",
    "StreamsAssignmentInfo",
    "StreamsGroupDescribeRequest",
    "StreamsGroupDescribeResponse",
    "StreamsGroupDescribeResponseAssignment",
    "StreamsGroupDescribeResponseDescribedGroup",
    "StreamsGroupDescribeResponseEndpoint",
    "StreamsGroupDescribeResponseKeyValue",
    "StreamsGroupDescribeResponseMember",
    "StreamsGroupDescribeResponseSubtopology",
    "StreamsGroupDescribeResponseTaskIds",
    "StreamsGroupDescribeResponseTaskOffset",
    "StreamsGroupDescribeResponseTopicInfo",
    "StreamsGroupDescribeResponseTopology",
    "StreamsGroupDescribeResponseTopologyDescription",
    "StreamsGroupDescribeResponseTopologyDescriptionGlobalStore",
    "StreamsGroupDescribeResponseTopologyDescriptionNode",
    "StreamsGroupDescribeResponseTopologyDescriptionSubtopology",
    "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatRequestCopartitionGroup",
    "StreamsGroupHeartbeatRequestEndpoint",
    "StreamsGroupHeartbeatRequestKeyValue",
    "StreamsGroupHeartbeatRequestSubtopology",
    "StreamsGroupHeartbeatRequestTaskIds",
    "StreamsGroupHeartbeatRequestTaskOffset",
    "StreamsGroupHeartbeatRequestTopicInfo",
    "StreamsGroupHeartbeatRequestTopology",
    "StreamsGroupHeartbeatResponse",
    "StreamsGroupHeartbeatResponseEndpoint",
    "StreamsGroupHeartbeatResponseEndpointToPartitions",
    "StreamsGroupHeartbeatResponseStatus",
    "StreamsGroupHeartbeatResponseTaskIds",
    "StreamsGroupHeartbeatResponseTopicPartition",
    "StreamsSubscriptionInfo",
    "StreamsSubscriptionInfoClientTag",
    "StreamsSubscriptionInfoPartitionToOffsetSum",
    "StreamsSubscriptionInfoTaskId",
    "StreamsSubscriptionInfoTaskOffsetSum",
    "SyncGroupRequest",
    "SyncGroupRequestAssignment",
    "SyncGroupResponse",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitRequestPartition",
    "TxnOffsetCommitRequestTopic",
    "TxnOffsetCommitResponse",
    "TxnOffsetCommitResponsePartition",
    "TxnOffsetCommitResponseTopic",
]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetCommitRequestPartition(Struct):
    """Part of :class:`OffsetCommitRequest`."""

    partition_index: int = 0
    """Number of the partition. v0+."""
    committed_offset: int = 0
    """Offset of the next record to consume; in responses -1 for none. v0+."""
    committed_leader_epoch: int = -1
    """Leader epoch of the last record consumed; -1 where unknown. v6+, KIP-320."""
    commit_timestamp: int = -1
    """When the offset was committed, ms since the epoch; -1 for now. v1."""
    committed_metadata: str | None = ""
    """Free text kept with the offset. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetCommitRequestTopic(Struct):
    """Part of :class:`OffsetCommitRequest`."""

    name: str = ""
    """Name of the topic. v0-9."""
    topic_id: str = ZERO_UUID
    """Id of the topic. v10+, KIP-848."""
    partitions: tuple[OffsetCommitRequestPartition, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetCommitRequest(Request):
    """Commits offsets for a group. The request.

    v0: for offsets kept in ZooKeeper; dropped in Kafka 4.0;
    v1: generation and member id; dropped in Kafka 4.0;
    v2: retention time for the whole request (0.9);
    v3: throttle time (KIP-124, 0.11);
    v4: throttled after the reply (KIP-219, 2.0);
    v5: no retention time (KIP-211, 2.1);
    v6: leader epochs (KIP-320, 2.1);
    v7: group instance id (KIP-345, 2.3);
    v8: flexible (KIP-482, 2.4);
    v9: for members of the consumer protocol (KIP-848, 3.6);
    v10: topic ids (KIP-848, 4.2).
    """

    API_KEY: ClassVar[int] = 8

    group_id: str = ""
    """The group. v0+."""
    generation_id_or_member_epoch: int = -1
    """Generation of a classic member, epoch of one of the consumer protocol; -1 for neither. v1+."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v1+."""
    group_instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one. v7+, KIP-345."""
    retention_time_ms: int = -1
    """Time in ms to keep the offsets; -1 for the broker's own. v2-4."""
    topics: tuple[OffsetCommitRequestTopic, ...] = ()
    """An entry per topic. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetCommitResponsePartition(Struct):
    """Part of :class:`OffsetCommitResponse`."""

    partition_index: int = 0
    """Number of the partition. v0+."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetCommitResponseTopic(Struct):
    """Part of :class:`OffsetCommitResponse`."""

    name: str = ""
    """Name of the topic. v0-9."""
    topic_id: str = ZERO_UUID
    """Id of the topic. v10+, KIP-848."""
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetCommitResponse(Response):
    """Commits offsets for a group. The response.

    v0: for offsets kept in ZooKeeper; dropped in Kafka 4.0;
    v1: generation and member id; dropped in Kafka 4.0;
    v2: retention time for the whole request (0.9);
    v3: throttle time (KIP-124, 0.11);
    v4: throttled after the reply (KIP-219, 2.0);
    v5: no retention time (KIP-211, 2.1);
    v6: leader epochs (KIP-320, 2.1);
    v7: group instance id (KIP-345, 2.3);
    v8: flexible (KIP-482, 2.4);
    v9: for members of the consumer protocol (KIP-848, 3.6);
    v10: topic ids (KIP-848, 4.2).
    """

    API_KEY: ClassVar[int] = 8

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v3+, KIP-124."""
    topics: tuple[OffsetCommitResponseTopic, ...] = ()
    """An entry per topic. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetFetchRequestTopic(Struct):
    """Part of :class:`OffsetFetchRequest`."""

    name: str = ""
    """Name of the topic. v0-7."""
    partition_indexes: tuple[int, ...] = ()
    """Numbers of the partitions. v0-7."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetFetchRequestTopics(Struct):
    """Part of :class:`OffsetFetchRequest`."""

    name: str = ""
    """Name of the topic. v8-9, KIP-709."""
    topic_id: str = ZERO_UUID
    """Id of the topic. v10+, KIP-848."""
    partition_indexes: tuple[int, ...] = ()
    """Numbers of the partitions. v8+, KIP-709."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetFetchRequestGroup(Struct):
    """Part of :class:`OffsetFetchRequest`."""

    group_id: str = ""
    """The group. v8+, KIP-709."""
    member_id: str | None = None
    """The member; empty from one that has no id yet. v9+, KIP-848."""
    member_epoch: int = -1
    """Epoch of the member: 0 joins, -1 leaves, -2 leaves for a while as a static member. v9+, KIP-848."""
    topics: tuple[OffsetFetchRequestTopics, ...] | None = ()
    """Topics asked for; null for all. v8+, KIP-709."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetFetchRequest(Request):
    """Asks for a group's committed offsets. The request.

    v0: from ZooKeeper; dropped in Kafka 4.0;
    v1: from Kafka (0.8.2);
    v2: all topics at once, an error for the whole (KIP-88, 0.10.2);
    v3: throttle time (KIP-124, 0.11);
    v4: throttled after the reply (KIP-219, 2.0);
    v5: leader epochs (KIP-320, 2.1);
    v6: flexible (KIP-482, 2.4);
    v7: may wait for open transactions (KIP-447, 2.5);
    v8: many groups (KIP-709, 3.0);
    v9: member id and epoch (KIP-848, 3.7);
    v10: topic ids (KIP-848, 4.2).
    """

    API_KEY: ClassVar[int] = 9

    group_id: str = ""
    """The group. v0-7."""
    topics: tuple[OffsetFetchRequestTopic, ...] | None = ()
    """Topics asked for; null for all. v0-7."""
    groups: tuple[OffsetFetchRequestGroup, ...] = ()
    """An entry per group. v8+, KIP-709."""
    require_stable: bool = False
    """Whether to wait for open transactions that commit offsets. v7+, KIP-447."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetFetchResponsePartition(Struct):
    """Part of :class:`OffsetFetchResponse`."""

    partition_index: int = 0
    """Number of the partition. v0-7."""
    committed_offset: int = 0
    """Offset of the next record to consume; in responses -1 for none. v0-7."""
    committed_leader_epoch: int = -1
    """Leader epoch of the last record consumed; -1 where unknown. v5-7, KIP-320."""
    metadata: str | None = ""
    """Free text kept with the offset. v0-7."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0-7."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetFetchResponseTopic(Struct):
    """Part of :class:`OffsetFetchResponse`."""

    name: str = ""
    """Name of the topic. v0-7."""
    partitions: tuple[OffsetFetchResponsePartition, ...] = ()
    """Partitions. v0-7."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetFetchResponsePartitions(Struct):
    """Part of :class:`OffsetFetchResponse`."""

    partition_index: int = 0
    """Number of the partition. v8+, KIP-709."""
    committed_offset: int = 0
    """Offset of the next record to consume; in responses -1 for none. v8+, KIP-709."""
    committed_leader_epoch: int = -1
    """Leader epoch of the last record consumed; -1 where unknown. v8+, KIP-709."""
    metadata: str | None = ""
    """Free text kept with the offset. v8+, KIP-709."""
    error_code: int = 0
    """Kafka error code, 0 for success. v8+, KIP-709."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetFetchResponseTopics(Struct):
    """Part of :class:`OffsetFetchResponse`."""

    name: str = ""
    """Name of the topic. v8-9, KIP-709."""
    topic_id: str = ZERO_UUID
    """Id of the topic. v10+, KIP-848."""
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()
    """Partitions. v8+, KIP-709."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetFetchResponseGroup(Struct):
    """Part of :class:`OffsetFetchResponse`."""

    group_id: str = ""
    """The group. v8+, KIP-709."""
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    """An entry per topic. v8+, KIP-709."""
    error_code: int = 0
    """Kafka error code, 0 for success. v8+, KIP-709."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetFetchResponse(Response):
    """Asks for a group's committed offsets. The response.

    v0: from ZooKeeper; dropped in Kafka 4.0;
    v1: from Kafka (0.8.2);
    v2: all topics at once, an error for the whole (KIP-88, 0.10.2);
    v3: throttle time (KIP-124, 0.11);
    v4: throttled after the reply (KIP-219, 2.0);
    v5: leader epochs (KIP-320, 2.1);
    v6: flexible (KIP-482, 2.4);
    v7: may wait for open transactions (KIP-447, 2.5);
    v8: many groups (KIP-709, 3.0);
    v9: member id and epoch (KIP-848, 3.7);
    v10: topic ids (KIP-848, 4.2).
    """

    API_KEY: ClassVar[int] = 9

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v3+, KIP-124."""
    topics: tuple[OffsetFetchResponseTopic, ...] = ()
    """An entry per topic. v0-7."""
    error_code: int = 0
    """Kafka error code, 0 for success. v2-7, KIP-88."""
    groups: tuple[OffsetFetchResponseGroup, ...] = ()
    """An entry per group. v8+, KIP-709."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class FindCoordinatorRequest(Request):
    """Asks which broker coordinates a group or a transaction. The request.

    v1: key types (KIP-98, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: flexible (KIP-482, 2.4);
    v4: many keys (KIP-699, 3.0);
    v5: error 120 (KIP-890, 3.8);
    v6: share groups (KIP-932, 3.9).
    """

    API_KEY: ClassVar[int] = 10

    key: str = ""
    """Group id or transactional id whose coordinator is asked for. v0-3."""
    key_type: int = 0
    """What the keys are: 0 groups, 1 transactions, 2 share partitions. v1+, KIP-98."""
    coordinator_keys: tuple[str, ...] = ()
    """Group ids or transactional ids whose coordinators are asked for. v4+, KIP-699."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class FindCoordinatorResponseCoordinator(Struct):
    """Part of :class:`FindCoordinatorResponse`."""

    key: str = ""
    """The key asked for. v4+, KIP-699."""
    node_id: int = 0
    """Id of the broker; -1 for none. v4+, KIP-699."""
    host: str = ""
    """Host name. v4+, KIP-699."""
    port: int = 0
    """Port. v4+, KIP-699."""
    error_code: int = 0
    """Kafka error code, 0 for success. v4+, KIP-699."""
    error_message: str | None = ""
    """Text that goes with the error, null for none. v4+, KIP-699."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class FindCoordinatorResponse(Response):
    """Asks which broker coordinates a group or a transaction. The response.

    v1: key types (KIP-98, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: flexible (KIP-482, 2.4);
    v4: many keys (KIP-699, 3.0);
    v5: error 120 (KIP-890, 3.8);
    v6: share groups (KIP-932, 3.9).
    """

    API_KEY: ClassVar[int] = 10

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v1+, KIP-98."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0-3."""
    error_message: str | None = ""
    """Text that goes with the error, null for none. v1-3, KIP-98."""
    node_id: int = 0
    """Id of the broker; -1 for none. v0-3."""
    host: str = ""
    """Host name. v0-3."""
    port: int = 0
    """Port. v0-3."""
    coordinators: tuple[FindCoordinatorResponseCoordinator, ...] = ()
    """One result per key. v4+, KIP-699."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class JoinGroupRequestProtocol(Struct):
    """Part of :class:`JoinGroupRequest`."""

    name: str = ""
    """Name of the protocol: for consumers that of an assignor. v0+."""
    metadata: bytes = b""
    """The member's metadata, in the form of the protocol type. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class JoinGroupRequest(Request):
    """Joins a classic group: parked by the coordinator until the rebalance's join phase is over. The request.

    v1: rebalance timeout (KIP-62, 0.10.1);
    v2: throttle time (KIP-124, 0.11);
    v3: throttled after the reply (KIP-219, 2.0);
    v4: joins in two steps, error 79 (KIP-394, 2.2);
    v5: group instance id (KIP-345, 2.3);
    v6: flexible (KIP-482, 2.4);
    v7: protocol type in the response (KIP-559, 2.5);
    v8: reason (KIP-800, 3.2);
    v9: skipped assignment (KIP-814, 3.2).
    """

    API_KEY: ClassVar[int] = 11

    group_id: str = ""
    """The group. v0+."""
    session_timeout_ms: int = 0
    """Time in ms without a heartbeat after which the member is dropped. v0+."""
    rebalance_timeout_ms: int = -1
    """Time in ms that the member may take to join again or to revoke; -1 for the session timeout or unchanged. v1+, KIP-62."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    group_instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one. v5+, KIP-345."""
    protocol_type: str = ""
    """Kind of group: consumer, connect or another word of the clients' own. v0+."""
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()
    """What the member can do, most wanted first. v0+."""
    reason: str | None = None
    """Why the client joins or leaves, in its own words. v8+, KIP-800."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class JoinGroupResponseMember(Struct):
    """Part of :class:`JoinGroupResponse`."""

    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    group_instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one. v5+, KIP-345."""
    metadata: bytes = b""
    """The member's metadata, in the form of the protocol type. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class JoinGroupResponse(Response):
    """Joins a classic group: parked by the coordinator until the rebalance's join phase is over. The response.

    v1: rebalance timeout (KIP-62, 0.10.1);
    v2: throttle time (KIP-124, 0.11);
    v3: throttled after the reply (KIP-219, 2.0);
    v4: joins in two steps, error 79 (KIP-394, 2.2);
    v5: group instance id (KIP-345, 2.3);
    v6: flexible (KIP-482, 2.4);
    v7: protocol type in the response (KIP-559, 2.5);
    v8: reason (KIP-800, 3.2);
    v9: skipped assignment (KIP-814, 3.2).
    """

    API_KEY: ClassVar[int] = 11

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v2+, KIP-124."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    generation_id: int = -1
    """Generation of the group; -1 for none. v0+."""
    protocol_type: str | None = None
    """Kind of group: consumer, connect or another word of the clients' own. v7+, KIP-559."""
    protocol_name: str | None = ""
    """Protocol that the members agreed on; null or empty on errors. v0+."""
    leader: str = ""
    """Member id of the group's leader; empty on errors. v0+."""
    skip_assignment: bool = False
    """Whether the leader is to keep the group's present assignment (KIP-814). v9+."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    members: tuple[JoinGroupResponseMember, ...] = ()
    """All members with their metadata: for the leader, empty for everyone else. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class HeartbeatRequest(Request):
    """Keeps a member of a classic group alive; the response announces a rebalance. The request.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: group instance id (KIP-345, 2.3);
    v4: flexible (KIP-482, 2.4).
    """

    API_KEY: ClassVar[int] = 12

    group_id: str = ""
    """The group. v0+."""
    generation_id: int = 0
    """Generation of the group; -1 for none. v0+."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    group_instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one. v3+, KIP-345."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class HeartbeatResponse(Response):
    """Keeps a member of a classic group alive; the response announces a rebalance. The response.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: group instance id (KIP-345, 2.3);
    v4: flexible (KIP-482, 2.4).
    """

    API_KEY: ClassVar[int] = 12

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v1+, KIP-124."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class LeaveGroupRequestMemberIdentity(Struct):
    """Part of :class:`LeaveGroupRequest`."""

    member_id: str = ""
    """The member; empty from one that has no id yet. v3+, KIP-345."""
    group_instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one. v3+, KIP-345."""
    reason: str | None = None
    """Why the client joins or leaves, in its own words. v5+, KIP-800."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class LeaveGroupRequest(Request):
    """Leaves a classic group. The request.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: many members, by instance id too (KIP-345, 2.4);
    v4: flexible (KIP-482, 2.4);
    v5: reason (KIP-800, 3.2).
    """

    API_KEY: ClassVar[int] = 13

    group_id: str = ""
    """The group. v0+."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v0-2."""
    members: tuple[LeaveGroupRequestMemberIdentity, ...] = ()
    """An entry per member. v3+, KIP-345."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class LeaveGroupResponseMemberResponse(Struct):
    """Part of :class:`LeaveGroupResponse`."""

    member_id: str = ""
    """The member; empty from one that has no id yet. v3+, KIP-345."""
    group_instance_id: str | None = ""
    """Identity of a static member, group.instance.id; null for a dynamic one. v3+, KIP-345."""
    error_code: int = 0
    """Kafka error code, 0 for success. v3+, KIP-345."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class LeaveGroupResponse(Response):
    """Leaves a classic group. The response.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: many members, by instance id too (KIP-345, 2.4);
    v4: flexible (KIP-482, 2.4);
    v5: reason (KIP-800, 3.2).
    """

    API_KEY: ClassVar[int] = 13

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v1+, KIP-124."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    members: tuple[LeaveGroupResponseMemberResponse, ...] = ()
    """An entry per member. v3+, KIP-345."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class SyncGroupRequestAssignment(Struct):
    """Part of :class:`SyncGroupRequest`."""

    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    assignment: bytes = b""
    """The member's assignment, in the form of the group's protocol type. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class SyncGroupRequest(Request):
    """Hands the leader's assignments to the coordinator, and each member its own. The request.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: group instance id (KIP-345, 2.3);
    v4: flexible (KIP-482, 2.4);
    v5: protocol type and name (KIP-559, 2.5).
    """

    API_KEY: ClassVar[int] = 14

    group_id: str = ""
    """The group. v0+."""
    generation_id: int = 0
    """Generation of the group; -1 for none. v0+."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    group_instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one. v3+, KIP-345."""
    protocol_type: str | None = None
    """Kind of group: consumer, connect or another word of the clients' own. v5+, KIP-559."""
    protocol_name: str | None = None
    """Protocol that the members agreed on; null or empty on errors. v5+, KIP-559."""
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()
    """What each member is to do: filled by the leader, empty from everyone else. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class SyncGroupResponse(Response):
    """Hands the leader's assignments to the coordinator, and each member its own. The response.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: group instance id (KIP-345, 2.3);
    v4: flexible (KIP-482, 2.4);
    v5: protocol type and name (KIP-559, 2.5).
    """

    API_KEY: ClassVar[int] = 14

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v1+, KIP-124."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    protocol_type: str | None = None
    """Kind of group: consumer, connect or another word of the clients' own. v5+, KIP-559."""
    protocol_name: str | None = None
    """Protocol that the members agreed on; null or empty on errors. v5+, KIP-559."""
    assignment: bytes = b""
    """The member's assignment as its leader gave it; no bytes where the leader left the member out. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class DescribeGroupsRequest(Request):
    """Asks for the state and members of classic groups. The request.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: authorized operations (KIP-430, 2.3);
    v4: group instance ids (KIP-345, 2.4);
    v5: flexible (KIP-482, 2.4);
    v6: error 69 instead of state Dead (KIP-1043, 4.0).
    """

    API_KEY: ClassVar[int] = 15

    groups: tuple[str, ...] = ()
    """The groups asked for. v0+."""
    include_authorized_operations: bool = False
    """Whether to return what the client may do to the groups. v3+, KIP-430."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class DescribeGroupsResponseDescribedGroupMember(Struct):
    """Part of :class:`DescribeGroupsResponse`."""

    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    group_instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one. v4+, KIP-345."""
    client_id: str = ""
    """The member's client.id. v0+."""
    client_host: str = ""
    """Address of the member's last request. v0+."""
    member_metadata: bytes = b""
    """The member's metadata in JoinGroup; only in state Stable. v0+."""
    member_assignment: bytes = b""
    """The member's assignment, in the form of the protocol type; filled in state Stable alone. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class DescribeGroupsResponseDescribedGroup(Struct):
    """Part of :class:`DescribeGroupsResponse`."""

    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    error_message: str | None = None
    """Text that goes with the error, null for none. v6+, KIP-1043."""
    group_id: str = ""
    """The group. v0+."""
    group_state: str = ""
    """State of the group, by name. v0+."""
    protocol_type: str = ""
    """Kind of group: consumer, connect or another word of the clients' own. v0+."""
    protocol_data: str = ""
    """Protocol that the members agreed on; filled in state Stable alone. v0+."""
    members: tuple[DescribeGroupsResponseDescribedGroupMember, ...] = ()
    """An entry per member. v0+."""
    authorized_operations: int = -2147483648
    """Bit field of what the client may do to the group; -2147483648 where that was not asked. v3+, KIP-430."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class DescribeGroupsResponse(Response):
    """Asks for the state and members of classic groups. The response.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: authorized operations (KIP-430, 2.3);
    v4: group instance ids (KIP-345, 2.4);
    v5: flexible (KIP-482, 2.4);
    v6: error 69 instead of state Dead (KIP-1043, 4.0).
    """

    API_KEY: ClassVar[int] = 15

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v1+, KIP-124."""
    groups: tuple[DescribeGroupsResponseDescribedGroup, ...] = ()
    """An entry per group. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ListGroupsRequest(Request):
    """Asks a broker for the groups that it coordinates. The request.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: flexible (KIP-482, 2.4);
    v4: by state (KIP-518, 2.6);
    v5: by type (KIP-848, 3.8).
    """

    API_KEY: ClassVar[int] = 16

    states_filter: tuple[str, ...] = ()
    """States to list; none for all. v4+, KIP-518."""
    types_filter: tuple[str, ...] = ()
    """Types to list; none for all. v5+, KIP-848."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ListGroupsResponseListedGroup(Struct):
    """Part of :class:`ListGroupsResponse`."""

    group_id: str = ""
    """The group. v0+."""
    protocol_type: str = ""
    """Kind of group: consumer, connect or another word of the clients' own. v0+."""
    group_state: str = ""
    """State of the group, by name. v4+, KIP-518."""
    group_type: str = ""
    """Type of the group, by name. v5+, KIP-848."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ListGroupsResponse(Response):
    """Asks a broker for the groups that it coordinates. The response.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: flexible (KIP-482, 2.4);
    v4: by state (KIP-518, 2.6);
    v5: by type (KIP-848, 3.8).
    """

    API_KEY: ClassVar[int] = 16

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v1+, KIP-124."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    groups: tuple[ListGroupsResponseListedGroup, ...] = ()
    """An entry per group. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ApiVersionsRequest(Request):
    """Asks for a broker's APIs and versions, and names the client's software. The request.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: flexible, client software (KIP-511, 2.4);
    v4: features whose lowest version is 0 (3.9);
    v5: names the cluster and node that the client expects (KIP-1242, 4.4).
    """

    API_KEY: ClassVar[int] = 18

    client_software_name: str = ""
    """Name of the client library. v3+, KIP-511."""
    client_software_version: str = ""
    """Its version. v3+, KIP-511."""
    cluster_id: str | None = None
    """Cluster that the client believes it talks to; null for any. v5+, KIP-1242."""
    node_id: int = -1
    """Id of the broker; -1 for none. v5+, KIP-1242."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ApiVersionsResponseApiVersion(Struct):
    """Part of :class:`ApiVersionsResponse`."""

    api_key: int = 0
    """Number of the API. v0+."""
    min_version: int = 0
    """Lowest version. v0+."""
    max_version: int = 0
    """Highest version. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ApiVersionsResponseSupportedFeatureKey(Struct):
    """Part of :class:`ApiVersionsResponse`."""

    name: str = ""
    """Name of the feature. v3+, KIP-511."""
    min_version: int = 0
    """Lowest version. v3+, KIP-511."""
    max_version: int = 0
    """Highest version. v3+, KIP-511."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ApiVersionsResponseFinalizedFeatureKey(Struct):
    """Part of :class:`ApiVersionsResponse`."""

    name: str = ""
    """Name of the feature. v3+, KIP-511."""
    max_version_level: int = 0
    """Highest level in force. v3+, KIP-511."""
    min_version_level: int = 0
    """Lowest level in force. v3+, KIP-511."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ApiVersionsResponse(Response):
    """Asks for a broker's APIs and versions, and names the client's software. The response.

    v1: throttle time (KIP-124, 0.11);
    v2: throttled after the reply (KIP-219, 2.0);
    v3: flexible, client software (KIP-511, 2.4);
    v4: features whose lowest version is 0 (3.9);
    v5: names the cluster and node that the client expects (KIP-1242, 4.4).
    """

    API_KEY: ClassVar[int] = 18

    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    api_keys: tuple[ApiVersionsResponseApiVersion, ...] = ()
    """APIs and the versions of each that the broker supports. v0+."""
    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v1+, KIP-124."""
    supported_features: tuple[ApiVersionsResponseSupportedFeatureKey, ...] = ()
    """Features and the versions of each that the broker supports. v3+, KIP-584."""
    finalized_features_epoch: int = -1
    """Epoch of these levels; -1 where unknown. v3+, KIP-584."""
    finalized_features: tuple[ApiVersionsResponseFinalizedFeatureKey, ...] = ()
    """Feature levels in force in the cluster. v3+, KIP-584."""
    zk_migration_ready: bool = False
    """Whether the controller is ready to move away from ZooKeeper. v3+, KIP-866."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class AddOffsetsToTxnRequest(Request):
    """Adds a group's offsets to a transaction; goes to the transaction coordinator. The request.

    v1: throttled after the reply (KIP-219, 2.0);
    v2: error 90 (KIP-588, 2.7);
    v3: flexible (KIP-482, 2.8);
    v4: error 120 (KIP-890, 3.8).
    """

    API_KEY: ClassVar[int] = 25

    transactional_id: str = ""
    """The transaction's producer. v0+."""
    producer_id: int = 0
    """Id of the producer; -1 for none. v0+."""
    producer_epoch: int = 0
    """Epoch of the producer; -1 for none. v0+."""
    group_id: str = ""
    """The group. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class AddOffsetsToTxnResponse(Response):
    """Adds a group's offsets to a transaction; goes to the transaction coordinator. The response.

    v1: throttled after the reply (KIP-219, 2.0);
    v2: error 90 (KIP-588, 2.7);
    v3: flexible (KIP-482, 2.8);
    v4: error 120 (KIP-890, 3.8).
    """

    API_KEY: ClassVar[int] = 25

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class EndTxnRequest(Request):
    """Commits or aborts a transaction; goes to the transaction coordinator. The request.

    v1: throttled after the reply (KIP-219, 2.0);
    v2: error 90 (KIP-588, 2.7);
    v3: flexible (KIP-482, 2.8);
    v4: error 120 (KIP-890, 3.8);
    v5: each transaction gets an epoch of its own (KIP-890, 4.0).
    """

    API_KEY: ClassVar[int] = 26

    transactional_id: str = ""
    """The transaction's producer. v0+."""
    producer_id: int = 0
    """Id of the producer; -1 for none. v0+."""
    producer_epoch: int = 0
    """Epoch of the producer; -1 for none. v0+."""
    committed: bool = False
    """True to commit, false to abort. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class EndTxnResponse(Response):
    """Commits or aborts a transaction; goes to the transaction coordinator. The response.

    v1: throttled after the reply (KIP-219, 2.0);
    v2: error 90 (KIP-588, 2.7);
    v3: flexible (KIP-482, 2.8);
    v4: error 120 (KIP-890, 3.8);
    v5: each transaction gets an epoch of its own (KIP-890, 4.0).
    """

    API_KEY: ClassVar[int] = 26

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    producer_id: int = -1
    """Id of the producer; -1 for none. v5+, KIP-890."""
    producer_epoch: int = -1
    """Epoch of the producer; -1 for none. v5+, KIP-890."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class TxnOffsetCommitRequestPartition(Struct):
    """Part of :class:`TxnOffsetCommitRequest`."""

    partition_index: int = 0
    """Number of the partition. v0+."""
    committed_offset: int = 0
    """Offset of the next record to consume; in responses -1 for none. v0+."""
    committed_leader_epoch: int = -1
    """Leader epoch of the last record consumed; -1 where unknown. v2+, KIP-320."""
    committed_metadata: str | None = ""
    """Free text kept with the offset. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class TxnOffsetCommitRequestTopic(Struct):
    """Part of :class:`TxnOffsetCommitRequest`."""

    name: str = ""
    """Name of the topic. v0-5."""
    topic_id: str = ZERO_UUID
    """Id of the topic. v6+, KIP-1319."""
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class TxnOffsetCommitRequest(Request):
    """Commits offsets for a group within a transaction. The request.

    v1: throttled after the reply (KIP-219, 2.0);
    v2: leader epochs (KIP-320, 2.1);
    v3: flexible; group generation and member (KIP-447, 2.5);
    v4: error 120 (KIP-890, 3.8);
    v5: adds the offsets to the transaction by itself (KIP-890, 4.0);
    v6: topic ids (KIP-1319, 4.4).
    """

    API_KEY: ClassVar[int] = 28

    transactional_id: str = ""
    """The transaction's producer. v0+."""
    group_id: str = ""
    """The group. v0+."""
    producer_id: int = 0
    """Id of the producer; -1 for none. v0+."""
    producer_epoch: int = 0
    """Epoch of the producer; -1 for none. v0+."""
    generation_id_or_member_epoch: int = -1
    """Generation of a classic member, epoch of one of the consumer protocol; -1 for neither. v3+, KIP-447."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v3+, KIP-447."""
    group_instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one. v3+, KIP-447."""
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = ()
    """An entry per topic. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class TxnOffsetCommitResponsePartition(Struct):
    """Part of :class:`TxnOffsetCommitResponse`."""

    partition_index: int = 0
    """Number of the partition. v0+."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class TxnOffsetCommitResponseTopic(Struct):
    """Part of :class:`TxnOffsetCommitResponse`."""

    name: str = ""
    """Name of the topic. v0-5."""
    topic_id: str = ZERO_UUID
    """Id of the topic. v6+, KIP-1319."""
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class TxnOffsetCommitResponse(Response):
    """Commits offsets for a group within a transaction. The response.

    v1: throttled after the reply (KIP-219, 2.0);
    v2: leader epochs (KIP-320, 2.1);
    v3: flexible; group generation and member (KIP-447, 2.5);
    v4: error 120 (KIP-890, 3.8);
    v5: adds the offsets to the transaction by itself (KIP-890, 4.0);
    v6: topic ids (KIP-1319, 4.4).
    """

    API_KEY: ClassVar[int] = 28

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()
    """An entry per topic. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class DeleteGroupsRequest(Request):
    """Deletes empty groups. The request.

    v1: throttled after the reply (KIP-219, 2.0);
    v2: flexible (KIP-482, 2.4);
    v3: a text per group (4.4).
    """

    API_KEY: ClassVar[int] = 42

    groups_names: tuple[str, ...] = ()
    """The groups to delete. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class DeleteGroupsResponseDeletableGroupResult(Struct):
    """Part of :class:`DeleteGroupsResponse`."""

    group_id: str = ""
    """The group. v0+."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    error_message: str | None = None
    """Text that goes with the error, null for none. v3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class DeleteGroupsResponse(Response):
    """Deletes empty groups. The response.

    v1: throttled after the reply (KIP-219, 2.0);
    v2: flexible (KIP-482, 2.4);
    v3: a text per group (4.4).
    """

    API_KEY: ClassVar[int] = 42

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    results: tuple[DeleteGroupsResponseDeletableGroupResult, ...] = ()
    """A result per group. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetDeleteRequestPartition(Struct):
    """Part of :class:`OffsetDeleteRequest`."""

    partition_index: int = 0
    """Number of the partition. v0+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetDeleteRequestTopic(Struct):
    """Part of :class:`OffsetDeleteRequest`."""

    name: str = ""
    """Name of the topic. v0+."""
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()
    """Partitions. v0+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetDeleteRequest(Request):
    """Deletes committed offsets of a group. The request."""

    API_KEY: ClassVar[int] = 47

    group_id: str = ""
    """The group. v0+."""
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()
    """An entry per topic. v0+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetDeleteResponsePartition(Struct):
    """Part of :class:`OffsetDeleteResponse`."""

    partition_index: int = 0
    """Number of the partition. v0+."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetDeleteResponseTopic(Struct):
    """Part of :class:`OffsetDeleteResponse`."""

    name: str = ""
    """Name of the topic. v0+."""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()
    """Partitions. v0+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class OffsetDeleteResponse(Response):
    """Deletes committed offsets of a group. The response."""

    API_KEY: ClassVar[int] = 47

    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
    """An entry per topic. v0+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupHeartbeatRequestTopicPartitions(Struct):
    """Part of :class:`ConsumerGroupHeartbeatRequest`."""

    topic_id: str = ZERO_UUID
    """Id of the topic. v0+."""
    partitions: tuple[int, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupHeartbeatRequest(Request):
    """Joins, stays in and leaves a group of the consumer protocol (KIP-848), and reconciles its assignment. The request.

    v1: subscription by pattern; the client makes its member id (KIP-848, KIP-1082, 4.0).
    """

    API_KEY: ClassVar[int] = 68

    group_id: str = ""
    """The group. v0+."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    member_epoch: int = 0
    """Epoch of the member: 0 joins, -1 leaves, -2 leaves for a while as a static member. v0+."""
    instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one, in heartbeats null means unchanged. v0+."""
    rack_id: str | None = None
    """Rack of the member; null for none, in heartbeats null means unchanged. v0+."""
    rebalance_timeout_ms: int = -1
    """Time in ms that the member may take to join again or to revoke; -1 for the session timeout or unchanged. v0+."""
    subscribed_topic_names: tuple[str, ...] | None = None
    """Topics subscribed to; in heartbeats null means unchanged. v0+."""
    subscribed_topic_regex: str | None = None
    """Pattern subscribed to, in RE2; null for none or unchanged. v1+, KIP-848."""
    server_assignor: str | None = None
    """Assignor that the broker is to use; null for its own choice or unchanged. v0+."""
    topic_partitions: tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...] | None = None
    """Partitions by topic; in heartbeat requests those that the member owns, null means unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupHeartbeatResponseTopicPartitions(Struct):
    """Part of :class:`ConsumerGroupHeartbeatResponse`."""

    topic_id: str = ZERO_UUID
    """Id of the topic. v0+."""
    partitions: tuple[int, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupHeartbeatResponseAssignment(Struct):
    """Part of :class:`ConsumerGroupHeartbeatResponse`."""

    topic_partitions: tuple[ConsumerGroupHeartbeatResponseTopicPartitions, ...] = ()
    """Partitions by topic; in heartbeat requests those that the member owns, null means unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupHeartbeatResponse(Response):
    """Joins, stays in and leaves a group of the consumer protocol (KIP-848), and reconciles its assignment. The response.

    v1: subscription by pattern; the client makes its member id (KIP-848, KIP-1082, 4.0).
    """

    API_KEY: ClassVar[int] = 68

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    error_message: str | None = None
    """Text that goes with the error, null for none. v0+."""
    member_id: str | None = None
    """The member; empty from one that has no id yet. v0+."""
    member_epoch: int = 0
    """Epoch of the member: 0 joins, -1 leaves, -2 leaves for a while as a static member. v0+."""
    heartbeat_interval_ms: int = 0
    """Time in ms until the next heartbeat is due. v0+."""
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = None
    """What the member is assigned; in heartbeats null means unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupDescribeRequest(Request):
    """Asks for the state, members and target assignment of groups of the consumer protocol (KIP-848). The request.

    v1: member types (KIP-1099, 4.0).
    """

    API_KEY: ClassVar[int] = 69

    group_ids: tuple[str, ...] = ()
    """The groups asked for. v0+."""
    include_authorized_operations: bool = False
    """Whether to return what the client may do to the groups. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupDescribeResponseTopicPartitions(Struct):
    """Part of :class:`ConsumerGroupDescribeResponse`."""

    topic_id: str = ZERO_UUID
    """Id of the topic. v0+."""
    topic_name: str = ""
    """Name of the topic. v0+."""
    partitions: tuple[int, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupDescribeResponseAssignment(Struct):
    """Part of :class:`ConsumerGroupDescribeResponse`."""

    topic_partitions: tuple[ConsumerGroupDescribeResponseTopicPartitions, ...] = ()
    """Partitions by topic; in heartbeat requests those that the member owns, null means unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupDescribeResponseMember(Struct):
    """Part of :class:`ConsumerGroupDescribeResponse`."""

    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one, in heartbeats null means unchanged. v0+."""
    rack_id: str | None = None
    """Rack of the member; null for none, in heartbeats null means unchanged. v0+."""
    member_epoch: int = 0
    """Epoch of the member: 0 joins, -1 leaves, -2 leaves for a while as a static member. v0+."""
    client_id: str = ""
    """The member's client.id. v0+."""
    client_host: str = ""
    """Address of the member's last request. v0+."""
    subscribed_topic_names: tuple[str, ...] = ()
    """Topics subscribed to; in heartbeats null means unchanged. v0+."""
    subscribed_topic_regex: str | None = None
    """Pattern subscribed to, in RE2; null for none or unchanged. v0+."""
    assignment: ConsumerGroupDescribeResponseAssignment = field(default_factory=ConsumerGroupDescribeResponseAssignment)
    """What the member is assigned; in heartbeats null means unchanged. v0+."""
    target_assignment: ConsumerGroupDescribeResponseAssignment = field(default_factory=ConsumerGroupDescribeResponseAssignment)
    """What the member is to be assigned in the end. v0+."""
    member_type: int = -1
    """0 classic, 1 consumer protocol, -1 unknown. v1+, KIP-1099."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupDescribeResponseDescribedGroup(Struct):
    """Part of :class:`ConsumerGroupDescribeResponse`."""

    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    error_message: str | None = None
    """Text that goes with the error, null for none. v0+."""
    group_id: str = ""
    """The group. v0+."""
    group_state: str = ""
    """State of the group, by name. v0+."""
    group_epoch: int = 0
    """Epoch of the group: rises with members and subscriptions. v0+."""
    assignment_epoch: int = 0
    """Group epoch that the target assignment belongs to. v0+."""
    assignor_name: str = ""
    """Assignor that the coordinator uses. v0+."""
    members: tuple[ConsumerGroupDescribeResponseMember, ...] = ()
    """An entry per member. v0+."""
    authorized_operations: int = -2147483648
    """Bit field of what the client may do to the group; -2147483648 where that was not asked. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerGroupDescribeResponse(Response):
    """Asks for the state, members and target assignment of groups of the consumer protocol (KIP-848). The response.

    v1: member types (KIP-1099, 4.0).
    """

    API_KEY: ClassVar[int] = 69

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    groups: tuple[ConsumerGroupDescribeResponseDescribedGroup, ...] = ()
    """An entry per group. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareGroupHeartbeatRequest(Request):
    """Joins, stays in and leaves a share group (KIP-932). The request.

    v0: early access, dropped in Kafka 4.1;
    v1: (KIP-932, 4.1).
    """

    API_KEY: ClassVar[int] = 76

    group_id: str = ""
    """The group. v0+."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    member_epoch: int = 0
    """Epoch of the member: 0 joins, -1 leaves, -2 leaves for a while as a static member. v0+."""
    rack_id: str | None = None
    """Rack of the member; null for none, in heartbeats null means unchanged. v0+."""
    subscribed_topic_names: tuple[str, ...] | None = None
    """Topics subscribed to; in heartbeats null means unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareGroupHeartbeatResponseTopicPartitions(Struct):
    """Part of :class:`ShareGroupHeartbeatResponse`."""

    topic_id: str = ZERO_UUID
    """Id of the topic. v0+."""
    partitions: tuple[int, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareGroupHeartbeatResponseAssignment(Struct):
    """Part of :class:`ShareGroupHeartbeatResponse`."""

    topic_partitions: tuple[ShareGroupHeartbeatResponseTopicPartitions, ...] = ()
    """Partitions by topic; in heartbeat requests those that the member owns, null means unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareGroupHeartbeatResponse(Response):
    """Joins, stays in and leaves a share group (KIP-932). The response.

    v0: early access, dropped in Kafka 4.1;
    v1: (KIP-932, 4.1).
    """

    API_KEY: ClassVar[int] = 76

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    error_message: str | None = None
    """Text that goes with the error, null for none. v0+."""
    member_id: str | None = None
    """The member; empty from one that has no id yet. v0+."""
    member_epoch: int = 0
    """Epoch of the member: 0 joins, -1 leaves, -2 leaves for a while as a static member. v0+."""
    heartbeat_interval_ms: int = 0
    """Time in ms until the next heartbeat is due. v0+."""
    assignment: ShareGroupHeartbeatResponseAssignment | None = None
    """What the member is assigned; in heartbeats null means unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareGroupDescribeRequest(Request):
    """Asks for the state and members of share groups (KIP-932). The request.

    v0: early access, dropped in Kafka 4.1;
    v1: (KIP-932, 4.1).
    """

    API_KEY: ClassVar[int] = 77

    group_ids: tuple[str, ...] = ()
    """The groups asked for. v0+."""
    include_authorized_operations: bool = False
    """Whether to return what the client may do to the groups. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareGroupDescribeResponseTopicPartitions(Struct):
    """Part of :class:`ShareGroupDescribeResponse`."""

    topic_id: str = ZERO_UUID
    """Id of the topic. v0+."""
    topic_name: str = ""
    """Name of the topic. v0+."""
    partitions: tuple[int, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareGroupDescribeResponseAssignment(Struct):
    """Part of :class:`ShareGroupDescribeResponse`."""

    topic_partitions: tuple[ShareGroupDescribeResponseTopicPartitions, ...] = ()
    """Partitions by topic; in heartbeat requests those that the member owns, null means unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareGroupDescribeResponseMember(Struct):
    """Part of :class:`ShareGroupDescribeResponse`."""

    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    rack_id: str | None = None
    """Rack of the member; null for none, in heartbeats null means unchanged. v0+."""
    member_epoch: int = 0
    """Epoch of the member: 0 joins, -1 leaves, -2 leaves for a while as a static member. v0+."""
    client_id: str = ""
    """The member's client.id. v0+."""
    client_host: str = ""
    """Address of the member's last request. v0+."""
    subscribed_topic_names: tuple[str, ...] = ()
    """Topics subscribed to; in heartbeats null means unchanged. v0+."""
    assignment: ShareGroupDescribeResponseAssignment = field(default_factory=ShareGroupDescribeResponseAssignment)
    """What the member is assigned; in heartbeats null means unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareGroupDescribeResponseDescribedGroup(Struct):
    """Part of :class:`ShareGroupDescribeResponse`."""

    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    error_message: str | None = None
    """Text that goes with the error, null for none. v0+."""
    group_id: str = ""
    """The group. v0+."""
    group_state: str = ""
    """State of the group, by name. v0+."""
    group_epoch: int = 0
    """Epoch of the group: rises with members and subscriptions. v0+."""
    assignment_epoch: int = 0
    """Group epoch that the target assignment belongs to. v0+."""
    assignor_name: str = ""
    """Assignor that the coordinator uses. v0+."""
    members: tuple[ShareGroupDescribeResponseMember, ...] = ()
    """An entry per member. v0+."""
    authorized_operations: int = -2147483648
    """Bit field of what the client may do to the group; -2147483648 where that was not asked. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ShareGroupDescribeResponse(Response):
    """Asks for the state and members of share groups (KIP-932). The response.

    v0: early access, dropped in Kafka 4.1;
    v1: (KIP-932, 4.1).
    """

    API_KEY: ClassVar[int] = 77

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    groups: tuple[ShareGroupDescribeResponseDescribedGroup, ...] = ()
    """An entry per group. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequestKeyValue(Struct):
    """Part of :class:`StreamsGroupHeartbeatRequest`."""

    key: str = ""
    """Key of the pair. v0+."""
    value: str = ""
    """Value of the pair. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequestTopicInfo(Struct):
    """Part of :class:`StreamsGroupHeartbeatRequest`."""

    name: str = ""
    """Name of the topic. v0+."""
    partitions: int = 0
    """Numbers of the partitions, or how many there are; 0 where the source decides. v0+."""
    replication_factor: int = 0
    """Replication factor; 0 for the broker's own. v0+."""
    topic_configs: tuple[StreamsGroupHeartbeatRequestKeyValue, ...] = ()
    """Topic configs. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequestCopartitionGroup(Struct):
    """Part of :class:`StreamsGroupHeartbeatRequest`."""

    source_topics: tuple[int, ...] = ()
    """Topics read. v0+."""
    source_topic_regex: tuple[int, ...] = ()
    """Patterns of topics read. v0+."""
    repartition_source_topics: tuple[int, ...] = ()
    """Internal topics that the subtopology reads from. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequestSubtopology(Struct):
    """Part of :class:`StreamsGroupHeartbeatRequest`."""

    subtopology_id: str = ""
    """Id of the subtopology. v0+."""
    source_topics: tuple[str, ...] = ()
    """Topics read. v0+."""
    source_topic_regex: tuple[str, ...] = ()
    """Patterns of topics read. v0+."""
    state_changelog_topics: tuple[StreamsGroupHeartbeatRequestTopicInfo, ...] = ()
    """Changelog topics of the subtopology's stores. v0+."""
    repartition_sink_topics: tuple[str, ...] = ()
    """Internal topics that the subtopology writes to. v0+."""
    repartition_source_topics: tuple[StreamsGroupHeartbeatRequestTopicInfo, ...] = ()
    """Internal topics that the subtopology reads from. v0+."""
    copartition_groups: tuple[StreamsGroupHeartbeatRequestCopartitionGroup, ...] = ()
    """Topics that must have the same number of partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequestTopology(Struct):
    """Part of :class:`StreamsGroupHeartbeatRequest`."""

    epoch: int = 0
    """Epoch of the topology. v0+."""
    subtopologies: tuple[StreamsGroupHeartbeatRequestSubtopology, ...] = ()
    """Parts of the topology. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequestTaskIds(Struct):
    """Part of :class:`StreamsGroupHeartbeatRequest`."""

    subtopology_id: str = ""
    """Id of the subtopology. v0+."""
    partitions: tuple[int, ...] = ()
    """Numbers of the partitions, or how many there are; 0 where the source decides. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequestEndpoint(Struct):
    """Part of :class:`StreamsGroupHeartbeatRequest`."""

    host: str = ""
    """Host name. v0+."""
    port: int = 0
    """Port. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequestTaskOffset(Struct):
    """Part of :class:`StreamsGroupHeartbeatRequest`."""

    subtopology_id: str = ""
    """Id of the subtopology. v0+."""
    partition: int = 0
    """Number of the partition. v0+."""
    offset: int = 0
    """Offset of the task's changelogs, summed up. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequest(Request):
    """Joins, stays in and leaves a Streams group (KIP-1071). The request.

    v1: topology descriptions, a wider recovery lag (KIP-1331, 4.4).
    """

    API_KEY: ClassVar[int] = 88

    group_id: str = ""
    """The group. v0+."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    member_epoch: int = 0
    """Epoch of the member: 0 joins, -1 leaves, -2 leaves for a while as a static member. v0+."""
    endpoint_information_epoch: int = 0
    """Epoch of what is known of the members' endpoints. v0+."""
    instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one, in heartbeats null means unchanged. v0+."""
    rack_id: str | None = None
    """Rack of the member; null for none, in heartbeats null means unchanged. v0+."""
    rebalance_timeout_ms: int = -1
    """Time in ms that the member may take to join again or to revoke; -1 for the session timeout or unchanged. v0+."""
    topology: StreamsGroupHeartbeatRequestTopology | None = None
    """The topology that the member runs; null for unchanged or none yet. v0+."""
    active_tasks: tuple[StreamsGroupHeartbeatRequestTaskIds, ...] | None = None
    """Active tasks; in heartbeats null means unchanged. v0+."""
    standby_tasks: tuple[StreamsGroupHeartbeatRequestTaskIds, ...] | None = None
    """Standby tasks; in heartbeats null means unchanged. v0+."""
    warmup_tasks: tuple[StreamsGroupHeartbeatRequestTaskIds, ...] | None = None
    """Tasks whose state is being restored; in heartbeats null means unchanged. v0+."""
    process_id: str | None = None
    """Id of the process that the member's threads share. v0+."""
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = None
    """Endpoint that serves queries; null for none. v0+."""
    client_tags: tuple[StreamsGroupHeartbeatRequestKeyValue, ...] | None = None
    """Free tags of the process, for rack-aware standby tasks. v0+."""
    task_offsets: tuple[StreamsGroupHeartbeatRequestTaskOffset, ...] | None = None
    """How far each task's state has come. v0+."""
    task_end_offsets: tuple[StreamsGroupHeartbeatRequestTaskOffset, ...] | None = None
    """Ends of the tasks' changelogs. v0+."""
    shutdown_application: bool = False
    """Whether all members are to stop. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatResponseStatus(Struct):
    """Part of :class:`StreamsGroupHeartbeatResponse`."""

    status_code: int = 0
    """0 stale topology, 1 missing source topics, 2 wrongly partitioned topics, 3 missing internal topics, 4 shutdown, 5 assignment
    delayed, 6 missing client tags. v0+."""
    status_detail: str = ""
    """The same in words. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatResponseTaskIds(Struct):
    """Part of :class:`StreamsGroupHeartbeatResponse`."""

    subtopology_id: str = ""
    """Id of the subtopology. v0+."""
    partitions: tuple[int, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatResponseEndpoint(Struct):
    """Part of :class:`StreamsGroupHeartbeatResponse`."""

    host: str = ""
    """Host name. v0+."""
    port: int = 0
    """Port. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatResponseTopicPartition(Struct):
    """Part of :class:`StreamsGroupHeartbeatResponse`."""

    topic: str = ""
    """Name of the topic. v0+."""
    partitions: tuple[int, ...] = ()
    """Partitions. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatResponseEndpointToPartitions(Struct):
    """Part of :class:`StreamsGroupHeartbeatResponse`."""

    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = field(default_factory=StreamsGroupHeartbeatResponseEndpoint)
    """Endpoint that serves queries; null for none. v0+."""
    active_partitions: tuple[StreamsGroupHeartbeatResponseTopicPartition, ...] = ()
    """Partitions whose active task runs there. v0+."""
    standby_partitions: tuple[StreamsGroupHeartbeatResponseTopicPartition, ...] = ()
    """Partitions whose standby task runs there. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupHeartbeatResponse(Response):
    """Joins, stays in and leaves a Streams group (KIP-1071). The response.

    v1: topology descriptions, a wider recovery lag (KIP-1331, 4.4).
    """

    API_KEY: ClassVar[int] = 88

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    error_message: str | None = None
    """Text that goes with the error, null for none. v0+."""
    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    member_epoch: int = 0
    """Epoch of the member: 0 joins, -1 leaves, -2 leaves for a while as a static member. v0+."""
    heartbeat_interval_ms: int = 0
    """Time in ms until the next heartbeat is due. v0+."""
    acceptable_recovery_lag_legacy: int = 0
    """The same as an int32. v0."""
    task_offset_interval_ms: int = 0
    """Time in ms between two reports of task offsets. v0+."""
    acceptable_recovery_lag: int = -1
    """Offsets that a task may be behind and still count as caught up; -1 where the broker does not say. v1+, KIP-1331."""
    status: tuple[StreamsGroupHeartbeatResponseStatus, ...] | None = ()
    """Problems that keep the group from running; null for unchanged. v0+."""
    active_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = None
    """Active tasks; in heartbeats null means unchanged. v0+."""
    standby_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = None
    """Standby tasks; in heartbeats null means unchanged. v0+."""
    warmup_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = None
    """Tasks whose state is being restored; in heartbeats null means unchanged. v0+."""
    topology_description_required: bool = False
    """Whether the broker wants the topology described. v1+, KIP-1331."""
    endpoint_information_epoch: int = 0
    """Epoch of what is known of the members' endpoints. v0+."""
    partitions_by_user_endpoint: tuple[StreamsGroupHeartbeatResponseEndpointToPartitions, ...] | None = None
    """Partitions by the endpoint that serves queries for them; null for unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeRequest(Request):
    """Asks for the state, members and topology of Streams groups (KIP-1071). The request.

    v1: topology description (KIP-1331, 4.4), assignor (KIP-1357).
    """

    API_KEY: ClassVar[int] = 89

    group_ids: tuple[str, ...] = ()
    """The groups asked for. v0+."""
    include_authorized_operations: bool = False
    """Whether to return what the client may do to the groups. v0+."""
    include_topology_description: bool = False
    """Whether to describe the topology. v1+, KIP-1357."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseKeyValue(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    key: str = ""
    """Key of the pair. v0+."""
    value: str = ""
    """Value of the pair. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseTopicInfo(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    name: str = ""
    """Name of the node or topic. v0+."""
    partitions: int = 0
    """Numbers of the partitions, or how many there are. v0+."""
    replication_factor: int = 0
    """Replication factor; 0 for the broker's own. v0+."""
    topic_configs: tuple[StreamsGroupDescribeResponseKeyValue, ...] = ()
    """Topic configs. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseSubtopology(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    subtopology_id: str = ""
    """Id of the subtopology. v0+."""
    source_topics: tuple[str, ...] = ()
    """Topics read. v0+."""
    repartition_sink_topics: tuple[str, ...] = ()
    """Internal topics that the subtopology writes to. v0+."""
    state_changelog_topics: tuple[StreamsGroupDescribeResponseTopicInfo, ...] = ()
    """Changelog topics of the subtopology's stores. v0+."""
    repartition_source_topics: tuple[StreamsGroupDescribeResponseTopicInfo, ...] = ()
    """Internal topics that the subtopology reads from. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseTopology(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    epoch: int = 0
    """Epoch of the topology. v0+."""
    subtopologies: tuple[StreamsGroupDescribeResponseSubtopology, ...] | None = None
    """Parts of the topology. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseEndpoint(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    host: str = ""
    """Host name. v0+."""
    port: int = 0
    """Port. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseTaskOffset(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    subtopology_id: str = ""
    """Id of the subtopology. v0+."""
    partition: int = 0
    """Number of the partition. v0+."""
    offset: int = 0
    """Offset of the task's changelogs, summed up. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseTaskIds(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    subtopology_id: str = ""
    """Id of the subtopology. v0+."""
    partitions: tuple[int, ...] = ()
    """Numbers of the partitions, or how many there are. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseAssignment(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    active_tasks: tuple[StreamsGroupDescribeResponseTaskIds, ...] = ()
    """Active tasks; in heartbeats null means unchanged. v0+."""
    standby_tasks: tuple[StreamsGroupDescribeResponseTaskIds, ...] = ()
    """Standby tasks; in heartbeats null means unchanged. v0+."""
    warmup_tasks: tuple[StreamsGroupDescribeResponseTaskIds, ...] = ()
    """Tasks whose state is being restored; in heartbeats null means unchanged. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseMember(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    member_id: str = ""
    """The member; empty from one that has no id yet. v0+."""
    member_epoch: int = 0
    """Epoch of the member: 0 joins, -1 leaves, -2 leaves for a while as a static member. v0+."""
    instance_id: str | None = None
    """Identity of a static member, group.instance.id; null for a dynamic one, in heartbeats null means unchanged. v0+."""
    rack_id: str | None = None
    """Rack of the member; null for none, in heartbeats null means unchanged. v0+."""
    client_id: str = ""
    """The member's client.id. v0+."""
    client_host: str = ""
    """Address of the member's last request. v0+."""
    topology_epoch: int = 0
    """Epoch of the topology that the member runs. v0+."""
    process_id: str = ""
    """Id of the process that the member's threads share. v0+."""
    user_endpoint: StreamsGroupDescribeResponseEndpoint | None = None
    """Endpoint that serves queries; null for none. v0+."""
    client_tags: tuple[StreamsGroupDescribeResponseKeyValue, ...] = ()
    """Free tags of the process, for rack-aware standby tasks. v0+."""
    task_offsets: tuple[StreamsGroupDescribeResponseTaskOffset, ...] = ()
    """How far each task's state has come. v0+."""
    task_end_offsets: tuple[StreamsGroupDescribeResponseTaskOffset, ...] = ()
    """Ends of the tasks' changelogs. v0+."""
    assignment: StreamsGroupDescribeResponseAssignment = field(default_factory=StreamsGroupDescribeResponseAssignment)
    """What the member is assigned; in heartbeats null means unchanged. v0+."""
    target_assignment: StreamsGroupDescribeResponseAssignment = field(default_factory=StreamsGroupDescribeResponseAssignment)
    """What the member is to be assigned in the end. v0+."""
    is_classic: bool = False
    """Whether the member uses the classic protocol. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseTopologyDescriptionNode(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    name: str = ""
    """Name of the node or topic. v1+, KIP-1357."""
    node_type: int = 0
    """Kind of the node: source, processor or sink. v1+, KIP-1357."""
    source_topics: tuple[str, ...] = ()
    """Topics read. v1+, KIP-1357."""
    sink_topic: str | None = None
    """Topic that the node writes to; null for another kind of node. v1+, KIP-1357."""
    stores: tuple[str, ...] = ()
    """State stores of the node. v1+, KIP-1357."""
    successors: tuple[str, ...] = ()
    """Nodes that follow. v1+, KIP-1357."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseTopologyDescriptionSubtopology(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    subtopology_id: str = ""
    """Id of the subtopology. v1+, KIP-1357."""
    nodes: tuple[StreamsGroupDescribeResponseTopologyDescriptionNode, ...] = ()
    """Nodes of the subtopology. v1+, KIP-1357."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseTopologyDescriptionGlobalStore(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    source: StreamsGroupDescribeResponseTopologyDescriptionNode = field(
        default_factory=StreamsGroupDescribeResponseTopologyDescriptionNode
    )
    """Node that reads the topic. v1+, KIP-1357."""
    processor: StreamsGroupDescribeResponseTopologyDescriptionNode = field(
        default_factory=StreamsGroupDescribeResponseTopologyDescriptionNode
    )
    """Node that fills the store. v1+, KIP-1357."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseTopologyDescription(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    subtopologies: tuple[StreamsGroupDescribeResponseTopologyDescriptionSubtopology, ...] = ()
    """Parts of the topology. v1+, KIP-1357."""
    global_stores: tuple[StreamsGroupDescribeResponseTopologyDescriptionGlobalStore, ...] = ()
    """Stores that every member holds whole. v1+, KIP-1357."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponseDescribedGroup(Struct):
    """Part of :class:`StreamsGroupDescribeResponse`."""

    error_code: int = 0
    """Kafka error code, 0 for success. v0+."""
    error_message: str | None = None
    """Text that goes with the error, null for none. v0+."""
    group_id: str = ""
    """The group. v0+."""
    group_state: str = ""
    """State of the group, by name. v0+."""
    group_epoch: int = 0
    """Epoch of the group: rises with members and subscriptions. v0+."""
    assignment_epoch: int = 0
    """Group epoch that the target assignment belongs to. v0+."""
    topology: StreamsGroupDescribeResponseTopology | None = None
    """The topology that the member runs; null for unchanged or none yet. v0+."""
    members: tuple[StreamsGroupDescribeResponseMember, ...] = ()
    """An entry per member. v0+."""
    authorized_operations: int = -2147483648
    """Bit field of what the client may do to the group; -2147483648 where that was not asked. v0+."""
    topology_description: StreamsGroupDescribeResponseTopologyDescription | None = None
    """The topology in full; null unless its status is 3. v1+, KIP-1357."""
    topology_description_status: int = 0
    """0 not asked for, 1 none stored, 2 error, 3 there. v1+, KIP-1357."""
    assignor_name: str | None = None
    """Assignor that the coordinator uses. v1+, KIP-1357."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsGroupDescribeResponse(Response):
    """Asks for the state, members and topology of Streams groups (KIP-1071). The response.

    v1: topology description (KIP-1331, 4.4), assignor (KIP-1357).
    """

    API_KEY: ClassVar[int] = 89

    throttle_time_ms: int = 0
    """Time in ms for which the broker holds the client back for its quota. v0+."""
    groups: tuple[StreamsGroupDescribeResponseDescribedGroup, ...] = ()
    """An entry per group. v0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConnectAssignmentConnector(Struct):
    """Part of :class:`ConnectAssignment`."""

    connector: str = ""
    """Name of the connector. v0+."""
    tasks: tuple[int, ...] = ()
    """Numbers of the tasks; -1 is the connector itself. v0+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConnectAssignment(Struct):
    """What the leader assigns a Connect worker in SyncGroup.

    v1: cooperative (KIP-415);
    v2: session keys (KIP-507).
    """

    error: int = 0
    """Connect's own error: 0 none, 1 the configs do not match. v0+."""
    leader: str = ""
    """Member id of the group's leader; empty on errors. v0+."""
    leader_url: str = ""
    """Address of the leader's REST interface. v0+."""
    config_offset: int = 0
    """Offset in the config topic that the worker has read up to. v0+."""
    assignment: tuple[ConnectAssignmentConnector, ...] | None = ()
    """Connectors and tasks that the worker is to run. v0+."""
    revoked: tuple[ConnectAssignmentConnector, ...] | None = None
    """Connectors and tasks that the worker is to give up. v1+, KIP-415."""
    delay: int = 0
    """Delay in ms until the leader rebalances what is lost now. v1+, KIP-415."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConnectWorkerState(Struct):
    """A Connect worker's metadata in JoinGroup.

    v1: cooperative (KIP-415);
    v2: session keys (KIP-507).
    """

    url: str = ""
    """Address of the worker's REST interface. v0+."""
    config_offset: int = 0
    """Offset in the config topic that the worker has read up to. v0+."""
    allocation: bytes | None = None
    """The worker's present assignment, as bytes of a ConnectAssignment; null for none. v1+, KIP-415."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerProtocolAssignmentTopicPartition(Struct):
    """Part of :class:`ConsumerProtocolAssignment`."""

    topic: str = ""
    """Name of the topic. v0+."""
    partitions: tuple[int, ...] = ()
    """Partitions. v0+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerProtocolAssignment(Struct):
    """What the leader assigns a consumer in SyncGroup."""

    assigned_partitions: tuple[ConsumerProtocolAssignmentTopicPartition, ...] = ()
    """Partitions by topic. v0+."""
    user_data: bytes | None = None
    """Bytes of the assignor's own; null for none. v0+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerProtocolSubscriptionTopicPartition(Struct):
    """Part of :class:`ConsumerProtocolSubscription`."""

    topic: str = ""
    """Name of the topic. v1+, KIP-429."""
    partitions: tuple[int, ...] = ()
    """Partitions. v1+, KIP-429."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ConsumerProtocolSubscription(Struct):
    """A consumer's metadata in JoinGroup, for the leader's assignor.

    v1: owned partitions (KIP-429);
    v2: their generation (KIP-792);
    v3: rack (KIP-881).
    """

    topics: tuple[str, ...] = ()
    """Topics subscribed to. v0+."""
    user_data: bytes | None = None
    """Bytes of the assignor's own; null for none. v0+."""
    owned_partitions: tuple[ConsumerProtocolSubscriptionTopicPartition, ...] = ()
    """Partitions that the member holds as it joins. v1+, KIP-429."""
    generation_id: int = -1
    """Generation in which the owned partitions were assigned; -1 for none. v2+, KIP-792."""
    rack_id: str | None = None
    """Rack of the member; null for none, in heartbeats null means unchanged. v3+, KIP-881."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsAssignmentInfo(Struct):
    """The beginning of what the Kafka Streams leader adds to an assignment as user data."""

    version: int = 0
    """Version of these bytes. v1+."""
    commonly_supported_version: int = -1
    """Highest version that every member of the group supports; -1 if this version lacks the field. v3+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsSubscriptionInfoTaskId(Struct):
    """Part of :class:`StreamsSubscriptionInfo`."""

    topic_group_id: int = 0
    """Id of the subtopology. v1-6."""
    partition: int = 0
    """Number of the partition. v1-6."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsSubscriptionInfoPartitionToOffsetSum(Struct):
    """Part of :class:`StreamsSubscriptionInfo`."""

    partition: int = 0
    """Number of the partition. v7-9."""
    offset_sum: int = 0
    """Changelog offsets of the task, summed up; -2 for an active task. v7-9."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsSubscriptionInfoTaskOffsetSum(Struct):
    """Part of :class:`StreamsSubscriptionInfo`."""

    topic_group_id: int = 0
    """Id of the subtopology. v7+."""
    partition: int = 0
    """Number of the partition. v10+."""
    offset_sum: int = 0
    """Changelog offsets of the task, summed up; -2 for an active task. v10+."""
    named_topology: str | None = ""
    """Name of the topology, null for the only one. v10+."""
    partition_to_offset_sum: tuple[StreamsSubscriptionInfoPartitionToOffsetSum, ...] = ()
    """Offset sums by partition. v7-9."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsSubscriptionInfoClientTag(Struct):
    """Part of :class:`StreamsSubscriptionInfo`."""

    key: bytes = b""
    """Key of the pair. v11+."""
    value: bytes = b""
    """Value of the pair. v11+."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class StreamsSubscriptionInfo(Struct):
    """What a Kafka Streams member adds to its subscription as user data."""

    version: int = 0
    """Version of these bytes. v1+."""
    latest_supported_version: int = -1
    """Highest version that the member supports; -1 if this version lacks the field. v3+."""
    process_id: str = ZERO_UUID
    """Id of the process that the member's threads share. v1+."""
    prev_tasks: tuple[StreamsSubscriptionInfoTaskId, ...] = ()
    """Tasks that the member ran before. v1-6."""
    standby_tasks: tuple[StreamsSubscriptionInfoTaskId, ...] = ()
    """Standby tasks; in heartbeats null means unchanged. v1-6."""
    user_end_point: bytes = b""
    """host:port that serves queries, UTF-8. v2+."""
    task_offset_sums: tuple[StreamsSubscriptionInfoTaskOffsetSum, ...] = ()
    """How far each task's state has come. v7+."""
    unique_field: int = 0
    """A byte that makes a member's metadata differ from before, so that the coordinator rebalances. v8+."""
    error_code: int = 0
    """Streams' own error: 0 none, 5 shut the application down. v9+."""
    client_tags: tuple[StreamsSubscriptionInfoClientTag, ...] = ()
    """Free tags of the process, for rack-aware standby tasks. v11+."""
