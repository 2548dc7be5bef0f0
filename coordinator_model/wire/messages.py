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


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequestPartition(Struct):
    """Part of OffsetCommitRequest."""

    partition_index: int = 0
    """Versions 0+."""
    committed_offset: int = 0
    """Versions 0+."""
    committed_leader_epoch: int = -1
    """Versions 6+."""
    commit_timestamp: int = -1
    """Versions 1."""
    committed_metadata: str | None = ""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequestTopic(Struct):
    """Part of OffsetCommitRequest."""

    name: str = ""
    """Versions 0-9."""
    topic_id: str = ZERO_UUID
    """Versions 10+."""
    partitions: tuple[OffsetCommitRequestPartition, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequest(Request):
    """OffsetCommitRequest."""

    API_KEY: ClassVar[int] = 8

    group_id: str = ""
    """Versions 0+."""
    generation_id_or_member_epoch: int = -1
    """Versions 1+."""
    member_id: str = ""
    """Versions 1+."""
    group_instance_id: str | None = None
    """Versions 7+."""
    retention_time_ms: int = -1
    """Versions 2-4."""
    topics: tuple[OffsetCommitRequestTopic, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponsePartition(Struct):
    """Part of OffsetCommitResponse."""

    partition_index: int = 0
    """Versions 0+."""
    error_code: int = 0
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponseTopic(Struct):
    """Part of OffsetCommitResponse."""

    name: str = ""
    """Versions 0-9."""
    topic_id: str = ZERO_UUID
    """Versions 10+."""
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponse(Response):
    """OffsetCommitResponse."""

    API_KEY: ClassVar[int] = 8

    throttle_time_ms: int = 0
    """Versions 3+."""
    topics: tuple[OffsetCommitResponseTopic, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestTopic(Struct):
    """Part of OffsetFetchRequest."""

    name: str = ""
    """Versions 0-7."""
    partition_indexes: tuple[int, ...] = ()
    """Versions 0-7."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestTopics(Struct):
    """Part of OffsetFetchRequest."""

    name: str = ""
    """Versions 8-9."""
    topic_id: str = ZERO_UUID
    """Versions 10+."""
    partition_indexes: tuple[int, ...] = ()
    """Versions 8+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestGroup(Struct):
    """Part of OffsetFetchRequest."""

    group_id: str = ""
    """Versions 8+."""
    member_id: str | None = None
    """Versions 9+."""
    member_epoch: int = -1
    """Versions 9+."""
    topics: tuple[OffsetFetchRequestTopics, ...] | None = ()
    """Versions 8+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequest(Request):
    """OffsetFetchRequest."""

    API_KEY: ClassVar[int] = 9

    group_id: str = ""
    """Versions 0-7."""
    topics: tuple[OffsetFetchRequestTopic, ...] | None = ()
    """Versions 0-7."""
    groups: tuple[OffsetFetchRequestGroup, ...] = ()
    """Versions 8+."""
    require_stable: bool = False
    """Versions 7+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponsePartition(Struct):
    """Part of OffsetFetchResponse."""

    partition_index: int = 0
    """Versions 0-7."""
    committed_offset: int = 0
    """Versions 0-7."""
    committed_leader_epoch: int = -1
    """Versions 5-7."""
    metadata: str | None = ""
    """Versions 0-7."""
    error_code: int = 0
    """Versions 0-7."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseTopic(Struct):
    """Part of OffsetFetchResponse."""

    name: str = ""
    """Versions 0-7."""
    partitions: tuple[OffsetFetchResponsePartition, ...] = ()
    """Versions 0-7."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponsePartitions(Struct):
    """Part of OffsetFetchResponse."""

    partition_index: int = 0
    """Versions 8+."""
    committed_offset: int = 0
    """Versions 8+."""
    committed_leader_epoch: int = -1
    """Versions 8+."""
    metadata: str | None = ""
    """Versions 8+."""
    error_code: int = 0
    """Versions 8+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseTopics(Struct):
    """Part of OffsetFetchResponse."""

    name: str = ""
    """Versions 8-9."""
    topic_id: str = ZERO_UUID
    """Versions 10+."""
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()
    """Versions 8+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseGroup(Struct):
    """Part of OffsetFetchResponse."""

    group_id: str = ""
    """Versions 8+."""
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    """Versions 8+."""
    error_code: int = 0
    """Versions 8+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponse(Response):
    """OffsetFetchResponse."""

    API_KEY: ClassVar[int] = 9

    throttle_time_ms: int = 0
    """Versions 3+."""
    topics: tuple[OffsetFetchResponseTopic, ...] = ()
    """Versions 0-7."""
    error_code: int = 0
    """Versions 2-7."""
    groups: tuple[OffsetFetchResponseGroup, ...] = ()
    """Versions 8+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class FindCoordinatorRequest(Request):
    """FindCoordinatorRequest."""

    API_KEY: ClassVar[int] = 10

    key: str = ""
    """Versions 0-3."""
    key_type: int = 0
    """Versions 1+."""
    coordinator_keys: tuple[str, ...] = ()
    """Versions 4+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class FindCoordinatorResponseCoordinator(Struct):
    """Part of FindCoordinatorResponse."""

    key: str = ""
    """Versions 4+."""
    node_id: int = 0
    """Versions 4+."""
    host: str = ""
    """Versions 4+."""
    port: int = 0
    """Versions 4+."""
    error_code: int = 0
    """Versions 4+."""
    error_message: str | None = ""
    """Versions 4+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class FindCoordinatorResponse(Response):
    """FindCoordinatorResponse."""

    API_KEY: ClassVar[int] = 10

    throttle_time_ms: int = 0
    """Versions 1+."""
    error_code: int = 0
    """Versions 0-3."""
    error_message: str | None = ""
    """Versions 1-3."""
    node_id: int = 0
    """Versions 0-3."""
    host: str = ""
    """Versions 0-3."""
    port: int = 0
    """Versions 0-3."""
    coordinators: tuple[FindCoordinatorResponseCoordinator, ...] = ()
    """Versions 4+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class JoinGroupRequestProtocol(Struct):
    """Part of JoinGroupRequest."""

    name: str = ""
    """Versions 0+."""
    metadata: bytes = b""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class JoinGroupRequest(Request):
    """JoinGroupRequest."""

    API_KEY: ClassVar[int] = 11

    group_id: str = ""
    """Versions 0+."""
    session_timeout_ms: int = 0
    """Versions 0+."""
    rebalance_timeout_ms: int = -1
    """Versions 1+."""
    member_id: str = ""
    """Versions 0+."""
    group_instance_id: str | None = None
    """Versions 5+."""
    protocol_type: str = ""
    """Versions 0+."""
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()
    """Versions 0+."""
    reason: str | None = None
    """Versions 8+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class JoinGroupResponseMember(Struct):
    """Part of JoinGroupResponse."""

    member_id: str = ""
    """Versions 0+."""
    group_instance_id: str | None = None
    """Versions 5+."""
    metadata: bytes = b""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class JoinGroupResponse(Response):
    """JoinGroupResponse."""

    API_KEY: ClassVar[int] = 11

    throttle_time_ms: int = 0
    """Versions 2+."""
    error_code: int = 0
    """Versions 0+."""
    generation_id: int = -1
    """Versions 0+."""
    protocol_type: str | None = None
    """Versions 7+."""
    protocol_name: str | None = ""
    """Versions 0+."""
    leader: str = ""
    """Versions 0+."""
    skip_assignment: bool = False
    """Versions 9+."""
    member_id: str = ""
    """Versions 0+."""
    members: tuple[JoinGroupResponseMember, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class HeartbeatRequest(Request):
    """HeartbeatRequest."""

    API_KEY: ClassVar[int] = 12

    group_id: str = ""
    """Versions 0+."""
    generation_id: int = 0
    """Versions 0+."""
    member_id: str = ""
    """Versions 0+."""
    group_instance_id: str | None = None
    """Versions 3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class HeartbeatResponse(Response):
    """HeartbeatResponse."""

    API_KEY: ClassVar[int] = 12

    throttle_time_ms: int = 0
    """Versions 1+."""
    error_code: int = 0
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class LeaveGroupRequestMemberIdentity(Struct):
    """Part of LeaveGroupRequest."""

    member_id: str = ""
    """Versions 3+."""
    group_instance_id: str | None = None
    """Versions 3+."""
    reason: str | None = None
    """Versions 5+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class LeaveGroupRequest(Request):
    """LeaveGroupRequest."""

    API_KEY: ClassVar[int] = 13

    group_id: str = ""
    """Versions 0+."""
    member_id: str = ""
    """Versions 0-2."""
    members: tuple[LeaveGroupRequestMemberIdentity, ...] = ()
    """Versions 3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class LeaveGroupResponseMemberResponse(Struct):
    """Part of LeaveGroupResponse."""

    member_id: str = ""
    """Versions 3+."""
    group_instance_id: str | None = ""
    """Versions 3+."""
    error_code: int = 0
    """Versions 3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class LeaveGroupResponse(Response):
    """LeaveGroupResponse."""

    API_KEY: ClassVar[int] = 13

    throttle_time_ms: int = 0
    """Versions 1+."""
    error_code: int = 0
    """Versions 0+."""
    members: tuple[LeaveGroupResponseMemberResponse, ...] = ()
    """Versions 3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class SyncGroupRequestAssignment(Struct):
    """Part of SyncGroupRequest."""

    member_id: str = ""
    """Versions 0+."""
    assignment: bytes = b""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class SyncGroupRequest(Request):
    """SyncGroupRequest."""

    API_KEY: ClassVar[int] = 14

    group_id: str = ""
    """Versions 0+."""
    generation_id: int = 0
    """Versions 0+."""
    member_id: str = ""
    """Versions 0+."""
    group_instance_id: str | None = None
    """Versions 3+."""
    protocol_type: str | None = None
    """Versions 5+."""
    protocol_name: str | None = None
    """Versions 5+."""
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class SyncGroupResponse(Response):
    """SyncGroupResponse."""

    API_KEY: ClassVar[int] = 14

    throttle_time_ms: int = 0
    """Versions 1+."""
    error_code: int = 0
    """Versions 0+."""
    protocol_type: str | None = None
    """Versions 5+."""
    protocol_name: str | None = None
    """Versions 5+."""
    assignment: bytes = b""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class DescribeGroupsRequest(Request):
    """DescribeGroupsRequest."""

    API_KEY: ClassVar[int] = 15

    groups: tuple[str, ...] = ()
    """Versions 0+."""
    include_authorized_operations: bool = False
    """Versions 3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class DescribeGroupsResponseDescribedGroupMember(Struct):
    """Part of DescribeGroupsResponse."""

    member_id: str = ""
    """Versions 0+."""
    group_instance_id: str | None = None
    """Versions 4+."""
    client_id: str = ""
    """Versions 0+."""
    client_host: str = ""
    """Versions 0+."""
    member_metadata: bytes = b""
    """Versions 0+."""
    member_assignment: bytes = b""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class DescribeGroupsResponseDescribedGroup(Struct):
    """Part of DescribeGroupsResponse."""

    error_code: int = 0
    """Versions 0+."""
    error_message: str | None = None
    """Versions 6+."""
    group_id: str = ""
    """Versions 0+."""
    group_state: str = ""
    """Versions 0+."""
    protocol_type: str = ""
    """Versions 0+."""
    protocol_data: str = ""
    """Versions 0+."""
    members: tuple[DescribeGroupsResponseDescribedGroupMember, ...] = ()
    """Versions 0+."""
    authorized_operations: int = -2147483648
    """Versions 3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class DescribeGroupsResponse(Response):
    """DescribeGroupsResponse."""

    API_KEY: ClassVar[int] = 15

    throttle_time_ms: int = 0
    """Versions 1+."""
    groups: tuple[DescribeGroupsResponseDescribedGroup, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ListGroupsRequest(Request):
    """ListGroupsRequest."""

    API_KEY: ClassVar[int] = 16

    states_filter: tuple[str, ...] = ()
    """Versions 4+."""
    types_filter: tuple[str, ...] = ()
    """Versions 5+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ListGroupsResponseListedGroup(Struct):
    """Part of ListGroupsResponse."""

    group_id: str = ""
    """Versions 0+."""
    protocol_type: str = ""
    """Versions 0+."""
    group_state: str = ""
    """Versions 4+."""
    group_type: str = ""
    """Versions 5+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ListGroupsResponse(Response):
    """ListGroupsResponse."""

    API_KEY: ClassVar[int] = 16

    throttle_time_ms: int = 0
    """Versions 1+."""
    error_code: int = 0
    """Versions 0+."""
    groups: tuple[ListGroupsResponseListedGroup, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ApiVersionsRequest(Request):
    """ApiVersionsRequest."""

    API_KEY: ClassVar[int] = 18

    client_software_name: str = ""
    """Versions 3+."""
    client_software_version: str = ""
    """Versions 3+."""
    cluster_id: str | None = None
    """Versions 5+."""
    node_id: int = -1
    """Versions 5+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponseApiVersion(Struct):
    """Part of ApiVersionsResponse."""

    api_key: int = 0
    """Versions 0+."""
    min_version: int = 0
    """Versions 0+."""
    max_version: int = 0
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponseSupportedFeatureKey(Struct):
    """Part of ApiVersionsResponse."""

    name: str = ""
    """Versions 3+."""
    min_version: int = 0
    """Versions 3+."""
    max_version: int = 0
    """Versions 3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponseFinalizedFeatureKey(Struct):
    """Part of ApiVersionsResponse."""

    name: str = ""
    """Versions 3+."""
    max_version_level: int = 0
    """Versions 3+."""
    min_version_level: int = 0
    """Versions 3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponse(Response):
    """ApiVersionsResponse."""

    API_KEY: ClassVar[int] = 18

    error_code: int = 0
    """Versions 0+."""
    api_keys: tuple[ApiVersionsResponseApiVersion, ...] = ()
    """Versions 0+."""
    throttle_time_ms: int = 0
    """Versions 1+."""
    supported_features: tuple[ApiVersionsResponseSupportedFeatureKey, ...] = ()
    """Versions 3+."""
    finalized_features_epoch: int = -1
    """Versions 3+."""
    finalized_features: tuple[ApiVersionsResponseFinalizedFeatureKey, ...] = ()
    """Versions 3+."""
    zk_migration_ready: bool = False
    """Versions 3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class AddOffsetsToTxnRequest(Request):
    """AddOffsetsToTxnRequest."""

    API_KEY: ClassVar[int] = 25

    transactional_id: str = ""
    """Versions 0+."""
    producer_id: int = 0
    """Versions 0+."""
    producer_epoch: int = 0
    """Versions 0+."""
    group_id: str = ""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class AddOffsetsToTxnResponse(Response):
    """AddOffsetsToTxnResponse."""

    API_KEY: ClassVar[int] = 25

    throttle_time_ms: int = 0
    """Versions 0+."""
    error_code: int = 0
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class EndTxnRequest(Request):
    """EndTxnRequest."""

    API_KEY: ClassVar[int] = 26

    transactional_id: str = ""
    """Versions 0+."""
    producer_id: int = 0
    """Versions 0+."""
    producer_epoch: int = 0
    """Versions 0+."""
    committed: bool = False
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class EndTxnResponse(Response):
    """EndTxnResponse."""

    API_KEY: ClassVar[int] = 26

    throttle_time_ms: int = 0
    """Versions 0+."""
    error_code: int = 0
    """Versions 0+."""
    producer_id: int = -1
    """Versions 5+."""
    producer_epoch: int = -1
    """Versions 5+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequestPartition(Struct):
    """Part of TxnOffsetCommitRequest."""

    partition_index: int = 0
    """Versions 0+."""
    committed_offset: int = 0
    """Versions 0+."""
    committed_leader_epoch: int = -1
    """Versions 2+."""
    committed_metadata: str | None = ""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequestTopic(Struct):
    """Part of TxnOffsetCommitRequest."""

    name: str = ""
    """Versions 0-5."""
    topic_id: str = ZERO_UUID
    """Versions 6+."""
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequest(Request):
    """TxnOffsetCommitRequest."""

    API_KEY: ClassVar[int] = 28

    transactional_id: str = ""
    """Versions 0+."""
    group_id: str = ""
    """Versions 0+."""
    producer_id: int = 0
    """Versions 0+."""
    producer_epoch: int = 0
    """Versions 0+."""
    generation_id_or_member_epoch: int = -1
    """Versions 3+."""
    member_id: str = ""
    """Versions 3+."""
    group_instance_id: str | None = None
    """Versions 3+."""
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponsePartition(Struct):
    """Part of TxnOffsetCommitResponse."""

    partition_index: int = 0
    """Versions 0+."""
    error_code: int = 0
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponseTopic(Struct):
    """Part of TxnOffsetCommitResponse."""

    name: str = ""
    """Versions 0-5."""
    topic_id: str = ZERO_UUID
    """Versions 6+."""
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponse(Response):
    """TxnOffsetCommitResponse."""

    API_KEY: ClassVar[int] = 28

    throttle_time_ms: int = 0
    """Versions 0+."""
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class DeleteGroupsRequest(Request):
    """DeleteGroupsRequest."""

    API_KEY: ClassVar[int] = 42

    groups_names: tuple[str, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class DeleteGroupsResponseDeletableGroupResult(Struct):
    """Part of DeleteGroupsResponse."""

    group_id: str = ""
    """Versions 0+."""
    error_code: int = 0
    """Versions 0+."""
    error_message: str | None = None
    """Versions 3+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class DeleteGroupsResponse(Response):
    """DeleteGroupsResponse."""

    API_KEY: ClassVar[int] = 42

    throttle_time_ms: int = 0
    """Versions 0+."""
    results: tuple[DeleteGroupsResponseDeletableGroupResult, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestPartition(Struct):
    """Part of OffsetDeleteRequest."""

    partition_index: int = 0
    """Versions 0+."""


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestTopic(Struct):
    """Part of OffsetDeleteRequest."""

    name: str = ""
    """Versions 0+."""
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()
    """Versions 0+."""


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequest(Request):
    """OffsetDeleteRequest."""

    API_KEY: ClassVar[int] = 47

    group_id: str = ""
    """Versions 0+."""
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()
    """Versions 0+."""


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponsePartition(Struct):
    """Part of OffsetDeleteResponse."""

    partition_index: int = 0
    """Versions 0+."""
    error_code: int = 0
    """Versions 0+."""


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponseTopic(Struct):
    """Part of OffsetDeleteResponse."""

    name: str = ""
    """Versions 0+."""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()
    """Versions 0+."""


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponse(Response):
    """OffsetDeleteResponse."""

    API_KEY: ClassVar[int] = 47

    error_code: int = 0
    """Versions 0+."""
    throttle_time_ms: int = 0
    """Versions 0+."""
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
    """Versions 0+."""


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequestTopicPartitions(Struct):
    """Part of ConsumerGroupHeartbeatRequest."""

    topic_id: str = ZERO_UUID
    """Versions 0+."""
    partitions: tuple[int, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequest(Request):
    """ConsumerGroupHeartbeatRequest."""

    API_KEY: ClassVar[int] = 68

    group_id: str = ""
    """Versions 0+."""
    member_id: str = ""
    """Versions 0+."""
    member_epoch: int = 0
    """Versions 0+."""
    instance_id: str | None = None
    """Versions 0+."""
    rack_id: str | None = None
    """Versions 0+."""
    rebalance_timeout_ms: int = -1
    """Versions 0+."""
    subscribed_topic_names: tuple[str, ...] | None = None
    """Versions 0+."""
    subscribed_topic_regex: str | None = None
    """Versions 1+."""
    server_assignor: str | None = None
    """Versions 0+."""
    topic_partitions: tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...] | None = None
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponseTopicPartitions(Struct):
    """Part of ConsumerGroupHeartbeatResponse."""

    topic_id: str = ZERO_UUID
    """Versions 0+."""
    partitions: tuple[int, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponseAssignment(Struct):
    """Part of ConsumerGroupHeartbeatResponse."""

    topic_partitions: tuple[ConsumerGroupHeartbeatResponseTopicPartitions, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponse(Response):
    """ConsumerGroupHeartbeatResponse."""

    API_KEY: ClassVar[int] = 68

    throttle_time_ms: int = 0
    """Versions 0+."""
    error_code: int = 0
    """Versions 0+."""
    error_message: str | None = None
    """Versions 0+."""
    member_id: str | None = None
    """Versions 0+."""
    member_epoch: int = 0
    """Versions 0+."""
    heartbeat_interval_ms: int = 0
    """Versions 0+."""
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = None
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeRequest(Request):
    """ConsumerGroupDescribeRequest."""

    API_KEY: ClassVar[int] = 69

    group_ids: tuple[str, ...] = ()
    """Versions 0+."""
    include_authorized_operations: bool = False
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeResponseTopicPartitions(Struct):
    """Part of ConsumerGroupDescribeResponse."""

    topic_id: str = ZERO_UUID
    """Versions 0+."""
    topic_name: str = ""
    """Versions 0+."""
    partitions: tuple[int, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeResponseAssignment(Struct):
    """Part of ConsumerGroupDescribeResponse."""

    topic_partitions: tuple[ConsumerGroupDescribeResponseTopicPartitions, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeResponseMember(Struct):
    """Part of ConsumerGroupDescribeResponse."""

    member_id: str = ""
    """Versions 0+."""
    instance_id: str | None = None
    """Versions 0+."""
    rack_id: str | None = None
    """Versions 0+."""
    member_epoch: int = 0
    """Versions 0+."""
    client_id: str = ""
    """Versions 0+."""
    client_host: str = ""
    """Versions 0+."""
    subscribed_topic_names: tuple[str, ...] = ()
    """Versions 0+."""
    subscribed_topic_regex: str | None = None
    """Versions 0+."""
    assignment: ConsumerGroupDescribeResponseAssignment = field(default_factory=ConsumerGroupDescribeResponseAssignment)
    """Versions 0+."""
    target_assignment: ConsumerGroupDescribeResponseAssignment = field(default_factory=ConsumerGroupDescribeResponseAssignment)
    """Versions 0+."""
    member_type: int = -1
    """Versions 1+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeResponseDescribedGroup(Struct):
    """Part of ConsumerGroupDescribeResponse."""

    error_code: int = 0
    """Versions 0+."""
    error_message: str | None = None
    """Versions 0+."""
    group_id: str = ""
    """Versions 0+."""
    group_state: str = ""
    """Versions 0+."""
    group_epoch: int = 0
    """Versions 0+."""
    assignment_epoch: int = 0
    """Versions 0+."""
    assignor_name: str = ""
    """Versions 0+."""
    members: tuple[ConsumerGroupDescribeResponseMember, ...] = ()
    """Versions 0+."""
    authorized_operations: int = -2147483648
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeResponse(Response):
    """ConsumerGroupDescribeResponse."""

    API_KEY: ClassVar[int] = 69

    throttle_time_ms: int = 0
    """Versions 0+."""
    groups: tuple[ConsumerGroupDescribeResponseDescribedGroup, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ShareGroupHeartbeatRequest(Request):
    """ShareGroupHeartbeatRequest."""

    API_KEY: ClassVar[int] = 76

    group_id: str = ""
    """Versions 0+."""
    member_id: str = ""
    """Versions 0+."""
    member_epoch: int = 0
    """Versions 0+."""
    rack_id: str | None = None
    """Versions 0+."""
    subscribed_topic_names: tuple[str, ...] | None = None
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ShareGroupHeartbeatResponseTopicPartitions(Struct):
    """Part of ShareGroupHeartbeatResponse."""

    topic_id: str = ZERO_UUID
    """Versions 0+."""
    partitions: tuple[int, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ShareGroupHeartbeatResponseAssignment(Struct):
    """Part of ShareGroupHeartbeatResponse."""

    topic_partitions: tuple[ShareGroupHeartbeatResponseTopicPartitions, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ShareGroupHeartbeatResponse(Response):
    """ShareGroupHeartbeatResponse."""

    API_KEY: ClassVar[int] = 76

    throttle_time_ms: int = 0
    """Versions 0+."""
    error_code: int = 0
    """Versions 0+."""
    error_message: str | None = None
    """Versions 0+."""
    member_id: str | None = None
    """Versions 0+."""
    member_epoch: int = 0
    """Versions 0+."""
    heartbeat_interval_ms: int = 0
    """Versions 0+."""
    assignment: ShareGroupHeartbeatResponseAssignment | None = None
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeRequest(Request):
    """ShareGroupDescribeRequest."""

    API_KEY: ClassVar[int] = 77

    group_ids: tuple[str, ...] = ()
    """Versions 0+."""
    include_authorized_operations: bool = False
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponseTopicPartitions(Struct):
    """Part of ShareGroupDescribeResponse."""

    topic_id: str = ZERO_UUID
    """Versions 0+."""
    topic_name: str = ""
    """Versions 0+."""
    partitions: tuple[int, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponseAssignment(Struct):
    """Part of ShareGroupDescribeResponse."""

    topic_partitions: tuple[ShareGroupDescribeResponseTopicPartitions, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponseMember(Struct):
    """Part of ShareGroupDescribeResponse."""

    member_id: str = ""
    """Versions 0+."""
    rack_id: str | None = None
    """Versions 0+."""
    member_epoch: int = 0
    """Versions 0+."""
    client_id: str = ""
    """Versions 0+."""
    client_host: str = ""
    """Versions 0+."""
    subscribed_topic_names: tuple[str, ...] = ()
    """Versions 0+."""
    assignment: ShareGroupDescribeResponseAssignment = field(default_factory=ShareGroupDescribeResponseAssignment)
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponseDescribedGroup(Struct):
    """Part of ShareGroupDescribeResponse."""

    error_code: int = 0
    """Versions 0+."""
    error_message: str | None = None
    """Versions 0+."""
    group_id: str = ""
    """Versions 0+."""
    group_state: str = ""
    """Versions 0+."""
    group_epoch: int = 0
    """Versions 0+."""
    assignment_epoch: int = 0
    """Versions 0+."""
    assignor_name: str = ""
    """Versions 0+."""
    members: tuple[ShareGroupDescribeResponseMember, ...] = ()
    """Versions 0+."""
    authorized_operations: int = -2147483648
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponse(Response):
    """ShareGroupDescribeResponse."""

    API_KEY: ClassVar[int] = 77

    throttle_time_ms: int = 0
    """Versions 0+."""
    groups: tuple[ShareGroupDescribeResponseDescribedGroup, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestKeyValue(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    key: str = ""
    """Versions 0+."""
    value: str = ""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestTopicInfo(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    name: str = ""
    """Versions 0+."""
    partitions: int = 0
    """Versions 0+."""
    replication_factor: int = 0
    """Versions 0+."""
    topic_configs: tuple[StreamsGroupHeartbeatRequestKeyValue, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestCopartitionGroup(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    source_topics: tuple[int, ...] = ()
    """Versions 0+."""
    source_topic_regex: tuple[int, ...] = ()
    """Versions 0+."""
    repartition_source_topics: tuple[int, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestSubtopology(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    subtopology_id: str = ""
    """Versions 0+."""
    source_topics: tuple[str, ...] = ()
    """Versions 0+."""
    source_topic_regex: tuple[str, ...] = ()
    """Versions 0+."""
    state_changelog_topics: tuple[StreamsGroupHeartbeatRequestTopicInfo, ...] = ()
    """Versions 0+."""
    repartition_sink_topics: tuple[str, ...] = ()
    """Versions 0+."""
    repartition_source_topics: tuple[StreamsGroupHeartbeatRequestTopicInfo, ...] = ()
    """Versions 0+."""
    copartition_groups: tuple[StreamsGroupHeartbeatRequestCopartitionGroup, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestTopology(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    epoch: int = 0
    """Versions 0+."""
    subtopologies: tuple[StreamsGroupHeartbeatRequestSubtopology, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestTaskIds(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    subtopology_id: str = ""
    """Versions 0+."""
    partitions: tuple[int, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestEndpoint(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    host: str = ""
    """Versions 0+."""
    port: int = 0
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestTaskOffset(Struct):
    """Part of StreamsGroupHeartbeatRequest."""

    subtopology_id: str = ""
    """Versions 0+."""
    partition: int = 0
    """Versions 0+."""
    offset: int = 0
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequest(Request):
    """StreamsGroupHeartbeatRequest."""

    API_KEY: ClassVar[int] = 88

    group_id: str = ""
    """Versions 0+."""
    member_id: str = ""
    """Versions 0+."""
    member_epoch: int = 0
    """Versions 0+."""
    endpoint_information_epoch: int = 0
    """Versions 0+."""
    instance_id: str | None = None
    """Versions 0+."""
    rack_id: str | None = None
    """Versions 0+."""
    rebalance_timeout_ms: int = -1
    """Versions 0+."""
    topology: StreamsGroupHeartbeatRequestTopology | None = None
    """Versions 0+."""
    active_tasks: tuple[StreamsGroupHeartbeatRequestTaskIds, ...] | None = None
    """Versions 0+."""
    standby_tasks: tuple[StreamsGroupHeartbeatRequestTaskIds, ...] | None = None
    """Versions 0+."""
    warmup_tasks: tuple[StreamsGroupHeartbeatRequestTaskIds, ...] | None = None
    """Versions 0+."""
    process_id: str | None = None
    """Versions 0+."""
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = None
    """Versions 0+."""
    client_tags: tuple[StreamsGroupHeartbeatRequestKeyValue, ...] | None = None
    """Versions 0+."""
    task_offsets: tuple[StreamsGroupHeartbeatRequestTaskOffset, ...] | None = None
    """Versions 0+."""
    task_end_offsets: tuple[StreamsGroupHeartbeatRequestTaskOffset, ...] | None = None
    """Versions 0+."""
    shutdown_application: bool = False
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseStatus(Struct):
    """Part of StreamsGroupHeartbeatResponse."""

    status_code: int = 0
    """Versions 0+."""
    status_detail: str = ""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseTaskIds(Struct):
    """Part of StreamsGroupHeartbeatResponse."""

    subtopology_id: str = ""
    """Versions 0+."""
    partitions: tuple[int, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseEndpoint(Struct):
    """Part of StreamsGroupHeartbeatResponse."""

    host: str = ""
    """Versions 0+."""
    port: int = 0
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseTopicPartition(Struct):
    """Part of StreamsGroupHeartbeatResponse."""

    topic: str = ""
    """Versions 0+."""
    partitions: tuple[int, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseEndpointToPartitions(Struct):
    """Part of StreamsGroupHeartbeatResponse."""

    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = field(default_factory=StreamsGroupHeartbeatResponseEndpoint)
    """Versions 0+."""
    active_partitions: tuple[StreamsGroupHeartbeatResponseTopicPartition, ...] = ()
    """Versions 0+."""
    standby_partitions: tuple[StreamsGroupHeartbeatResponseTopicPartition, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponse(Response):
    """StreamsGroupHeartbeatResponse."""

    API_KEY: ClassVar[int] = 88

    throttle_time_ms: int = 0
    """Versions 0+."""
    error_code: int = 0
    """Versions 0+."""
    error_message: str | None = None
    """Versions 0+."""
    member_id: str = ""
    """Versions 0+."""
    member_epoch: int = 0
    """Versions 0+."""
    heartbeat_interval_ms: int = 0
    """Versions 0+."""
    acceptable_recovery_lag_legacy: int = 0
    """Versions 0."""
    task_offset_interval_ms: int = 0
    """Versions 0+."""
    acceptable_recovery_lag: int = -1
    """Versions 1+."""
    status: tuple[StreamsGroupHeartbeatResponseStatus, ...] | None = ()
    """Versions 0+."""
    active_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = None
    """Versions 0+."""
    standby_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = None
    """Versions 0+."""
    warmup_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = None
    """Versions 0+."""
    topology_description_required: bool = False
    """Versions 1+."""
    endpoint_information_epoch: int = 0
    """Versions 0+."""
    partitions_by_user_endpoint: tuple[StreamsGroupHeartbeatResponseEndpointToPartitions, ...] | None = None
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeRequest(Request):
    """StreamsGroupDescribeRequest."""

    API_KEY: ClassVar[int] = 89

    group_ids: tuple[str, ...] = ()
    """Versions 0+."""
    include_authorized_operations: bool = False
    """Versions 0+."""
    include_topology_description: bool = False
    """Versions 1+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseKeyValue(Struct):
    """Part of StreamsGroupDescribeResponse."""

    key: str = ""
    """Versions 0+."""
    value: str = ""
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopicInfo(Struct):
    """Part of StreamsGroupDescribeResponse."""

    name: str = ""
    """Versions 0+."""
    partitions: int = 0
    """Versions 0+."""
    replication_factor: int = 0
    """Versions 0+."""
    topic_configs: tuple[StreamsGroupDescribeResponseKeyValue, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseSubtopology(Struct):
    """Part of StreamsGroupDescribeResponse."""

    subtopology_id: str = ""
    """Versions 0+."""
    source_topics: tuple[str, ...] = ()
    """Versions 0+."""
    repartition_sink_topics: tuple[str, ...] = ()
    """Versions 0+."""
    state_changelog_topics: tuple[StreamsGroupDescribeResponseTopicInfo, ...] = ()
    """Versions 0+."""
    repartition_source_topics: tuple[StreamsGroupDescribeResponseTopicInfo, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopology(Struct):
    """Part of StreamsGroupDescribeResponse."""

    epoch: int = 0
    """Versions 0+."""
    subtopologies: tuple[StreamsGroupDescribeResponseSubtopology, ...] | None = None
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseEndpoint(Struct):
    """Part of StreamsGroupDescribeResponse."""

    host: str = ""
    """Versions 0+."""
    port: int = 0
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTaskOffset(Struct):
    """Part of StreamsGroupDescribeResponse."""

    subtopology_id: str = ""
    """Versions 0+."""
    partition: int = 0
    """Versions 0+."""
    offset: int = 0
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTaskIds(Struct):
    """Part of StreamsGroupDescribeResponse."""

    subtopology_id: str = ""
    """Versions 0+."""
    partitions: tuple[int, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseAssignment(Struct):
    """Part of StreamsGroupDescribeResponse."""

    active_tasks: tuple[StreamsGroupDescribeResponseTaskIds, ...] = ()
    """Versions 0+."""
    standby_tasks: tuple[StreamsGroupDescribeResponseTaskIds, ...] = ()
    """Versions 0+."""
    warmup_tasks: tuple[StreamsGroupDescribeResponseTaskIds, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseMember(Struct):
    """Part of StreamsGroupDescribeResponse."""

    member_id: str = ""
    """Versions 0+."""
    member_epoch: int = 0
    """Versions 0+."""
    instance_id: str | None = None
    """Versions 0+."""
    rack_id: str | None = None
    """Versions 0+."""
    client_id: str = ""
    """Versions 0+."""
    client_host: str = ""
    """Versions 0+."""
    topology_epoch: int = 0
    """Versions 0+."""
    process_id: str = ""
    """Versions 0+."""
    user_endpoint: StreamsGroupDescribeResponseEndpoint | None = None
    """Versions 0+."""
    client_tags: tuple[StreamsGroupDescribeResponseKeyValue, ...] = ()
    """Versions 0+."""
    task_offsets: tuple[StreamsGroupDescribeResponseTaskOffset, ...] = ()
    """Versions 0+."""
    task_end_offsets: tuple[StreamsGroupDescribeResponseTaskOffset, ...] = ()
    """Versions 0+."""
    assignment: StreamsGroupDescribeResponseAssignment = field(default_factory=StreamsGroupDescribeResponseAssignment)
    """Versions 0+."""
    target_assignment: StreamsGroupDescribeResponseAssignment = field(default_factory=StreamsGroupDescribeResponseAssignment)
    """Versions 0+."""
    is_classic: bool = False
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopologyDescriptionNode(Struct):
    """Part of StreamsGroupDescribeResponse."""

    name: str = ""
    """Versions 1+."""
    node_type: int = 0
    """Versions 1+."""
    source_topics: tuple[str, ...] = ()
    """Versions 1+."""
    sink_topic: str | None = None
    """Versions 1+."""
    stores: tuple[str, ...] = ()
    """Versions 1+."""
    successors: tuple[str, ...] = ()
    """Versions 1+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopologyDescriptionSubtopology(Struct):
    """Part of StreamsGroupDescribeResponse."""

    subtopology_id: str = ""
    """Versions 1+."""
    nodes: tuple[StreamsGroupDescribeResponseTopologyDescriptionNode, ...] = ()
    """Versions 1+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopologyDescriptionGlobalStore(Struct):
    """Part of StreamsGroupDescribeResponse."""

    source: StreamsGroupDescribeResponseTopologyDescriptionNode = field(
        default_factory=StreamsGroupDescribeResponseTopologyDescriptionNode
    )
    """Versions 1+."""
    processor: StreamsGroupDescribeResponseTopologyDescriptionNode = field(
        default_factory=StreamsGroupDescribeResponseTopologyDescriptionNode
    )
    """Versions 1+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopologyDescription(Struct):
    """Part of StreamsGroupDescribeResponse."""

    subtopologies: tuple[StreamsGroupDescribeResponseTopologyDescriptionSubtopology, ...] = ()
    """Versions 1+."""
    global_stores: tuple[StreamsGroupDescribeResponseTopologyDescriptionGlobalStore, ...] = ()
    """Versions 1+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseDescribedGroup(Struct):
    """Part of StreamsGroupDescribeResponse."""

    error_code: int = 0
    """Versions 0+."""
    error_message: str | None = None
    """Versions 0+."""
    group_id: str = ""
    """Versions 0+."""
    group_state: str = ""
    """Versions 0+."""
    group_epoch: int = 0
    """Versions 0+."""
    assignment_epoch: int = 0
    """Versions 0+."""
    topology: StreamsGroupDescribeResponseTopology | None = None
    """Versions 0+."""
    members: tuple[StreamsGroupDescribeResponseMember, ...] = ()
    """Versions 0+."""
    authorized_operations: int = -2147483648
    """Versions 0+."""
    topology_description: StreamsGroupDescribeResponseTopologyDescription | None = None
    """Versions 1+."""
    topology_description_status: int = 0
    """Versions 1+."""
    assignor_name: str | None = None
    """Versions 1+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponse(Response):
    """StreamsGroupDescribeResponse."""

    API_KEY: ClassVar[int] = 89

    throttle_time_ms: int = 0
    """Versions 0+."""
    groups: tuple[StreamsGroupDescribeResponseDescribedGroup, ...] = ()
    """Versions 0+."""
    unknown_tags: UnknownTags = ()


@dataclass(slots=True, kw_only=True)
class ConnectAssignmentConnector(Struct):
    """Part of ConnectAssignment."""

    connector: str = ""
    """Versions 0+."""
    tasks: tuple[int, ...] = ()
    """Versions 0+."""


@dataclass(slots=True, kw_only=True)
class ConnectAssignment(Struct):
    """ConnectAssignment."""

    error: int = 0
    """Versions 0+."""
    leader: str = ""
    """Versions 0+."""
    leader_url: str = ""
    """Versions 0+."""
    config_offset: int = 0
    """Versions 0+."""
    assignment: tuple[ConnectAssignmentConnector, ...] | None = ()
    """Versions 0+."""
    revoked: tuple[ConnectAssignmentConnector, ...] | None = None
    """Versions 1+."""
    delay: int = 0
    """Versions 1+."""


@dataclass(slots=True, kw_only=True)
class ConnectWorkerState(Struct):
    """ConnectWorkerState."""

    url: str = ""
    """Versions 0+."""
    config_offset: int = 0
    """Versions 0+."""
    allocation: bytes | None = None
    """Versions 1+."""


@dataclass(slots=True, kw_only=True)
class ConsumerProtocolAssignmentTopicPartition(Struct):
    """Part of ConsumerProtocolAssignment."""

    topic: str = ""
    """Versions 0+."""
    partitions: tuple[int, ...] = ()
    """Versions 0+."""


@dataclass(slots=True, kw_only=True)
class ConsumerProtocolAssignment(Struct):
    """ConsumerProtocolAssignment."""

    assigned_partitions: tuple[ConsumerProtocolAssignmentTopicPartition, ...] = ()
    """Versions 0+."""
    user_data: bytes | None = None
    """Versions 0+."""


@dataclass(slots=True, kw_only=True)
class ConsumerProtocolSubscriptionTopicPartition(Struct):
    """Part of ConsumerProtocolSubscription."""

    topic: str = ""
    """Versions 1+."""
    partitions: tuple[int, ...] = ()
    """Versions 1+."""


@dataclass(slots=True, kw_only=True)
class ConsumerProtocolSubscription(Struct):
    """ConsumerProtocolSubscription."""

    topics: tuple[str, ...] = ()
    """Versions 0+."""
    user_data: bytes | None = None
    """Versions 0+."""
    owned_partitions: tuple[ConsumerProtocolSubscriptionTopicPartition, ...] = ()
    """Versions 1+."""
    generation_id: int = -1
    """Versions 2+."""
    rack_id: str | None = None
    """Versions 3+."""


@dataclass(slots=True, kw_only=True)
class StreamsAssignmentInfo(Struct):
    """StreamsAssignmentInfo."""

    version: int = 0
    """Versions 1+."""
    commonly_supported_version: int = -1
    """Versions 3+."""


@dataclass(slots=True, kw_only=True)
class StreamsSubscriptionInfoTaskId(Struct):
    """Part of StreamsSubscriptionInfo."""

    topic_group_id: int = 0
    """Versions 1-6."""
    partition: int = 0
    """Versions 1-6."""


@dataclass(slots=True, kw_only=True)
class StreamsSubscriptionInfoPartitionToOffsetSum(Struct):
    """Part of StreamsSubscriptionInfo."""

    partition: int = 0
    """Versions 7-9."""
    offset_sum: int = 0
    """Versions 7-9."""


@dataclass(slots=True, kw_only=True)
class StreamsSubscriptionInfoTaskOffsetSum(Struct):
    """Part of StreamsSubscriptionInfo."""

    topic_group_id: int = 0
    """Versions 7+."""
    partition: int = 0
    """Versions 10+."""
    offset_sum: int = 0
    """Versions 10+."""
    named_topology: str | None = ""
    """Versions 10+."""
    partition_to_offset_sum: tuple[StreamsSubscriptionInfoPartitionToOffsetSum, ...] = ()
    """Versions 7-9."""


@dataclass(slots=True, kw_only=True)
class StreamsSubscriptionInfoClientTag(Struct):
    """Part of StreamsSubscriptionInfo."""

    key: bytes = b""
    """Versions 11+."""
    value: bytes = b""
    """Versions 11+."""


@dataclass(slots=True, kw_only=True)
class StreamsSubscriptionInfo(Struct):
    """StreamsSubscriptionInfo."""

    version: int = 0
    """Versions 1+."""
    latest_supported_version: int = -1
    """Versions 3+."""
    process_id: str = ZERO_UUID
    """Versions 1+."""
    prev_tasks: tuple[StreamsSubscriptionInfoTaskId, ...] = ()
    """Versions 1-6."""
    standby_tasks: tuple[StreamsSubscriptionInfoTaskId, ...] = ()
    """Versions 1-6."""
    user_end_point: bytes = b""
    """Versions 2+."""
    task_offset_sums: tuple[StreamsSubscriptionInfoTaskOffsetSum, ...] = ()
    """Versions 7+."""
    unique_field: int = 0
    """Versions 8+."""
    error_code: int = 0
    """Versions 9+."""
    client_tags: tuple[StreamsSubscriptionInfoClientTag, ...] = ()
    """Versions 11+."""
