"""Kafka's group protocol on the wire, all versions. Written by ``deploy/make_layouts.py``: do not edit.

Kafka 4.4.0, and 3.9.2 for the versions dropped since; what Streams embeds from 4.3.1. One line a field, in wire order:

    name   type   versions   [nullable=versions] [default=value] [tag=number] [ignorable]

``0+`` is "from version 0 on". A field without a default has the one of its type: 0, false, "", no bytes, no elements.
``ignorable``: where a version lacks the field, a value may be dropped without an error.
"""

from typing import Final

TABLE: Final = """
message OffsetCommitRequest key 8 versions 0-10 flexible 8+
    group_id                      string                0+
    generation_id_or_member_epoch int32                 1+   default=-1 ignorable
    member_id                     string                1+   ignorable
    group_instance_id             string                7+   nullable=7+ default=null
    retention_time_ms             int64                 2-4  default=-1 ignorable
    topics                        []OffsetCommitRequestTopic 0+
  struct OffsetCommitRequestTopic
    name                          string                0-9  ignorable
    topic_id                      uuid                  10+  ignorable
    partitions                    []OffsetCommitRequestPartition 0+
  struct OffsetCommitRequestPartition
    partition_index               int32                 0+
    committed_offset              int64                 0+
    committed_leader_epoch        int32                 6+   default=-1 ignorable
    commit_timestamp              int64                 1    default=-1
    committed_metadata            string                0+   nullable=0+

message OffsetCommitResponse key 8 versions 0-10 flexible 8+
    throttle_time_ms              int32                 3+   ignorable
    topics                        []OffsetCommitResponseTopic 0+
  struct OffsetCommitResponseTopic
    name                          string                0-9  ignorable
    topic_id                      uuid                  10+  ignorable
    partitions                    []OffsetCommitResponsePartition 0+
  struct OffsetCommitResponsePartition
    partition_index               int32                 0+
    error_code                    int16                 0+

message OffsetFetchRequest key 9 versions 0-10 flexible 6+
    group_id                      string                0-7
    topics                        []OffsetFetchRequestTopic 0-7  nullable=2-7
    groups                        []OffsetFetchRequestGroup 8+
    require_stable                bool                  7+
  struct OffsetFetchRequestTopic
    name                          string                0-7
    partition_indexes             []int32               0-7
  struct OffsetFetchRequestGroup
    group_id                      string                8+
    member_id                     string                9+   nullable=9+ default=null ignorable
    member_epoch                  int32                 9+   default=-1 ignorable
    topics                        []OffsetFetchRequestTopics 8+   nullable=8+
  struct OffsetFetchRequestTopics
    name                          string                8-9  ignorable
    topic_id                      uuid                  10+  ignorable
    partition_indexes             []int32               8+

message OffsetFetchResponse key 9 versions 0-10 flexible 6+
    throttle_time_ms              int32                 3+   ignorable
    topics                        []OffsetFetchResponseTopic 0-7
    error_code                    int16                 2-7  ignorable
    groups                        []OffsetFetchResponseGroup 8+
  struct OffsetFetchResponseTopic
    name                          string                0-7
    partitions                    []OffsetFetchResponsePartition 0-7
  struct OffsetFetchResponsePartition
    partition_index               int32                 0-7
    committed_offset              int64                 0-7
    committed_leader_epoch        int32                 5-7  default=-1 ignorable
    metadata                      string                0-7  nullable=0-7
    error_code                    int16                 0-7
  struct OffsetFetchResponseGroup
    group_id                      string                8+
    topics                        []OffsetFetchResponseTopics 8+
    error_code                    int16                 8+
  struct OffsetFetchResponseTopics
    name                          string                8-9  ignorable
    topic_id                      uuid                  10+  ignorable
    partitions                    []OffsetFetchResponsePartitions 8+
  struct OffsetFetchResponsePartitions
    partition_index               int32                 8+
    committed_offset              int64                 8+
    committed_leader_epoch        int32                 8+   default=-1 ignorable
    metadata                      string                8+   nullable=8+
    error_code                    int16                 8+

message FindCoordinatorRequest key 10 versions 0-6 flexible 3+
    key                           string                0-3
    key_type                      int8                  1+
    coordinator_keys              []string              4+

message FindCoordinatorResponse key 10 versions 0-6 flexible 3+
    throttle_time_ms              int32                 1+   ignorable
    error_code                    int16                 0-3
    error_message                 string                1-3  nullable=1-3 ignorable
    node_id                       int32                 0-3
    host                          string                0-3
    port                          int32                 0-3
    coordinators                  []FindCoordinatorResponseCoordinator 4+
  struct FindCoordinatorResponseCoordinator
    key                           string                4+
    node_id                       int32                 4+
    host                          string                4+
    port                          int32                 4+
    error_code                    int16                 4+
    error_message                 string                4+   nullable=4+ ignorable

message JoinGroupRequest key 11 versions 0-9 flexible 6+
    group_id                      string                0+
    session_timeout_ms            int32                 0+
    rebalance_timeout_ms          int32                 1+   default=-1 ignorable
    member_id                     string                0+
    group_instance_id             string                5+   nullable=5+ default=null
    protocol_type                 string                0+
    protocols                     []JoinGroupRequestProtocol 0+
    reason                        string                8+   nullable=8+ default=null ignorable
  struct JoinGroupRequestProtocol
    name                          string                0+
    metadata                      bytes                 0+

message JoinGroupResponse key 11 versions 0-9 flexible 6+
    throttle_time_ms              int32                 2+   ignorable
    error_code                    int16                 0+
    generation_id                 int32                 0+   default=-1
    protocol_type                 string                7+   nullable=7+ default=null ignorable
    protocol_name                 string                0+   nullable=7+
    leader                        string                0+
    skip_assignment               bool                  9+
    member_id                     string                0+
    members                       []JoinGroupResponseMember 0+
  struct JoinGroupResponseMember
    member_id                     string                0+
    group_instance_id             string                5+   nullable=5+ default=null ignorable
    metadata                      bytes                 0+

message HeartbeatRequest key 12 versions 0-4 flexible 4+
    group_id                      string                0+
    generation_id                 int32                 0+
    member_id                     string                0+
    group_instance_id             string                3+   nullable=3+ default=null

message HeartbeatResponse key 12 versions 0-4 flexible 4+
    throttle_time_ms              int32                 1+   ignorable
    error_code                    int16                 0+

message LeaveGroupRequest key 13 versions 0-5 flexible 4+
    group_id                      string                0+
    member_id                     string                0-2
    members                       []LeaveGroupRequestMemberIdentity 3+
  struct LeaveGroupRequestMemberIdentity
    member_id                     string                3+
    group_instance_id             string                3+   nullable=3+ default=null
    reason                        string                5+   nullable=5+ default=null ignorable

message LeaveGroupResponse key 13 versions 0-5 flexible 4+
    throttle_time_ms              int32                 1+   ignorable
    error_code                    int16                 0+
    members                       []LeaveGroupResponseMemberResponse 3+
  struct LeaveGroupResponseMemberResponse
    member_id                     string                3+
    group_instance_id             string                3+   nullable=3+
    error_code                    int16                 3+

message SyncGroupRequest key 14 versions 0-5 flexible 4+
    group_id                      string                0+
    generation_id                 int32                 0+
    member_id                     string                0+
    group_instance_id             string                3+   nullable=3+ default=null
    protocol_type                 string                5+   nullable=5+ default=null ignorable
    protocol_name                 string                5+   nullable=5+ default=null ignorable
    assignments                   []SyncGroupRequestAssignment 0+
  struct SyncGroupRequestAssignment
    member_id                     string                0+
    assignment                    bytes                 0+

message SyncGroupResponse key 14 versions 0-5 flexible 4+
    throttle_time_ms              int32                 1+   ignorable
    error_code                    int16                 0+
    protocol_type                 string                5+   nullable=5+ default=null ignorable
    protocol_name                 string                5+   nullable=5+ default=null ignorable
    assignment                    bytes                 0+

message DescribeGroupsRequest key 15 versions 0-6 flexible 5+
    groups                        []string              0+
    include_authorized_operations bool                  3+

message DescribeGroupsResponse key 15 versions 0-6 flexible 5+
    throttle_time_ms              int32                 1+   ignorable
    groups                        []DescribeGroupsResponseDescribedGroup 0+
  struct DescribeGroupsResponseDescribedGroup
    error_code                    int16                 0+
    error_message                 string                6+   nullable=6+ default=null
    group_id                      string                0+
    group_state                   string                0+
    protocol_type                 string                0+
    protocol_data                 string                0+
    members                       []DescribeGroupsResponseDescribedGroupMember 0+
    authorized_operations         int32                 3+   default=-2147483648
  struct DescribeGroupsResponseDescribedGroupMember
    member_id                     string                0+
    group_instance_id             string                4+   nullable=4+ default=null ignorable
    client_id                     string                0+
    client_host                   string                0+
    member_metadata               bytes                 0+
    member_assignment             bytes                 0+

message ListGroupsRequest key 16 versions 0-5 flexible 3+
    states_filter                 []string              4+
    types_filter                  []string              5+

message ListGroupsResponse key 16 versions 0-5 flexible 3+
    throttle_time_ms              int32                 1+   ignorable
    error_code                    int16                 0+
    groups                        []ListGroupsResponseListedGroup 0+
  struct ListGroupsResponseListedGroup
    group_id                      string                0+
    protocol_type                 string                0+
    group_state                   string                4+   ignorable
    group_type                    string                5+   ignorable

message ApiVersionsRequest key 18 versions 0-5 flexible 3+
    client_software_name          string                3+   ignorable
    client_software_version       string                3+   ignorable
    cluster_id                    string                5+   nullable=5+ default=null ignorable
    node_id                       int32                 5+   default=-1 ignorable

message ApiVersionsResponse key 18 versions 0-5 flexible 3+
    error_code                    int16                 0+
    api_keys                      []ApiVersionsResponseApiVersion 0+
    throttle_time_ms              int32                 1+   ignorable
    supported_features            []ApiVersionsResponseSupportedFeatureKey 3+   tag=0 ignorable
    finalized_features_epoch      int64                 3+   default=-1 tag=1 ignorable
    finalized_features            []ApiVersionsResponseFinalizedFeatureKey 3+   tag=2 ignorable
    zk_migration_ready            bool                  3+   tag=3 ignorable
  struct ApiVersionsResponseApiVersion
    api_key                       int16                 0+
    min_version                   int16                 0+
    max_version                   int16                 0+
  struct ApiVersionsResponseSupportedFeatureKey
    name                          string                3+
    min_version                   int16                 3+
    max_version                   int16                 3+
  struct ApiVersionsResponseFinalizedFeatureKey
    name                          string                3+
    max_version_level             int16                 3+
    min_version_level             int16                 3+

message AddOffsetsToTxnRequest key 25 versions 0-4 flexible 3+
    transactional_id              string                0+
    producer_id                   int64                 0+
    producer_epoch                int16                 0+
    group_id                      string                0+

message AddOffsetsToTxnResponse key 25 versions 0-4 flexible 3+
    throttle_time_ms              int32                 0+
    error_code                    int16                 0+

message EndTxnRequest key 26 versions 0-5 flexible 3+
    transactional_id              string                0+
    producer_id                   int64                 0+
    producer_epoch                int16                 0+
    committed                     bool                  0+

message EndTxnResponse key 26 versions 0-5 flexible 3+
    throttle_time_ms              int32                 0+
    error_code                    int16                 0+
    producer_id                   int64                 5+   default=-1 ignorable
    producer_epoch                int16                 5+   default=-1 ignorable

message TxnOffsetCommitRequest key 28 versions 0-6 flexible 3+
    transactional_id              string                0+
    group_id                      string                0+
    producer_id                   int64                 0+
    producer_epoch                int16                 0+
    generation_id_or_member_epoch int32                 3+   default=-1
    member_id                     string                3+
    group_instance_id             string                3+   nullable=3+ default=null
    topics                        []TxnOffsetCommitRequestTopic 0+
  struct TxnOffsetCommitRequestTopic
    name                          string                0-5  ignorable
    topic_id                      uuid                  6+   ignorable
    partitions                    []TxnOffsetCommitRequestPartition 0+
  struct TxnOffsetCommitRequestPartition
    partition_index               int32                 0+
    committed_offset              int64                 0+
    committed_leader_epoch        int32                 2+   default=-1 ignorable
    committed_metadata            string                0+   nullable=0+

message TxnOffsetCommitResponse key 28 versions 0-6 flexible 3+
    throttle_time_ms              int32                 0+
    topics                        []TxnOffsetCommitResponseTopic 0+
  struct TxnOffsetCommitResponseTopic
    name                          string                0-5  ignorable
    topic_id                      uuid                  6+   ignorable
    partitions                    []TxnOffsetCommitResponsePartition 0+
  struct TxnOffsetCommitResponsePartition
    partition_index               int32                 0+
    error_code                    int16                 0+

message DeleteGroupsRequest key 42 versions 0-3 flexible 2+
    groups_names                  []string              0+

message DeleteGroupsResponse key 42 versions 0-3 flexible 2+
    throttle_time_ms              int32                 0+
    results                       []DeleteGroupsResponseDeletableGroupResult 0+
  struct DeleteGroupsResponseDeletableGroupResult
    group_id                      string                0+
    error_code                    int16                 0+
    error_message                 string                3+   nullable=3+ default=null ignorable

message OffsetDeleteRequest key 47 versions 0 flexible none
    group_id                      string                0+
    topics                        []OffsetDeleteRequestTopic 0+
  struct OffsetDeleteRequestTopic
    name                          string                0+
    partitions                    []OffsetDeleteRequestPartition 0+
  struct OffsetDeleteRequestPartition
    partition_index               int32                 0+

message OffsetDeleteResponse key 47 versions 0 flexible none
    error_code                    int16                 0+
    throttle_time_ms              int32                 0+   ignorable
    topics                        []OffsetDeleteResponseTopic 0+
  struct OffsetDeleteResponseTopic
    name                          string                0+
    partitions                    []OffsetDeleteResponsePartition 0+
  struct OffsetDeleteResponsePartition
    partition_index               int32                 0+
    error_code                    int16                 0+

message ConsumerGroupHeartbeatRequest key 68 versions 0-1 flexible 0+
    group_id                      string                0+
    member_id                     string                0+
    member_epoch                  int32                 0+
    instance_id                   string                0+   nullable=0+ default=null
    rack_id                       string                0+   nullable=0+ default=null
    rebalance_timeout_ms          int32                 0+   default=-1
    subscribed_topic_names        []string              0+   nullable=0+ default=null
    subscribed_topic_regex        string                1+   nullable=1+ default=null
    server_assignor               string                0+   nullable=0+ default=null
    topic_partitions              []ConsumerGroupHeartbeatRequestTopicPartitions 0+   nullable=0+ default=null
  struct ConsumerGroupHeartbeatRequestTopicPartitions
    topic_id                      uuid                  0+
    partitions                    []int32               0+

message ConsumerGroupHeartbeatResponse key 68 versions 0-1 flexible 0+
    throttle_time_ms              int32                 0+
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    member_id                     string                0+   nullable=0+ default=null
    member_epoch                  int32                 0+
    heartbeat_interval_ms         int32                 0+
    assignment                    ConsumerGroupHeartbeatResponseAssignment 0+   nullable=0+ default=null
  struct ConsumerGroupHeartbeatResponseTopicPartitions
    topic_id                      uuid                  0+
    partitions                    []int32               0+
  struct ConsumerGroupHeartbeatResponseAssignment
    topic_partitions              []ConsumerGroupHeartbeatResponseTopicPartitions 0+

message ConsumerGroupDescribeRequest key 69 versions 0-1 flexible 0+
    group_ids                     []string              0+
    include_authorized_operations bool                  0+

message ConsumerGroupDescribeResponse key 69 versions 0-1 flexible 0+
    throttle_time_ms              int32                 0+
    groups                        []ConsumerGroupDescribeResponseDescribedGroup 0+
  struct ConsumerGroupDescribeResponseTopicPartitions
    topic_id                      uuid                  0+
    topic_name                    string                0+
    partitions                    []int32               0+
  struct ConsumerGroupDescribeResponseAssignment
    topic_partitions              []ConsumerGroupDescribeResponseTopicPartitions 0+
  struct ConsumerGroupDescribeResponseDescribedGroup
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    group_id                      string                0+
    group_state                   string                0+
    group_epoch                   int32                 0+
    assignment_epoch              int32                 0+
    assignor_name                 string                0+
    members                       []ConsumerGroupDescribeResponseMember 0+
    authorized_operations         int32                 0+   default=-2147483648
  struct ConsumerGroupDescribeResponseMember
    member_id                     string                0+
    instance_id                   string                0+   nullable=0+ default=null
    rack_id                       string                0+   nullable=0+ default=null
    member_epoch                  int32                 0+
    client_id                     string                0+
    client_host                   string                0+
    subscribed_topic_names        []string              0+
    subscribed_topic_regex        string                0+   nullable=0+ default=null
    assignment                    ConsumerGroupDescribeResponseAssignment 0+
    target_assignment             ConsumerGroupDescribeResponseAssignment 0+
    member_type                   int8                  1+   default=-1 ignorable

message ShareGroupHeartbeatRequest key 76 versions 0-1 flexible 0+
    group_id                      string                0+
    member_id                     string                0+
    member_epoch                  int32                 0+
    rack_id                       string                0+   nullable=0+ default=null
    subscribed_topic_names        []string              0+   nullable=0+ default=null

message ShareGroupHeartbeatResponse key 76 versions 0-1 flexible 0+
    throttle_time_ms              int32                 0+
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    member_id                     string                0+   nullable=0+ default=null
    member_epoch                  int32                 0+
    heartbeat_interval_ms         int32                 0+
    assignment                    ShareGroupHeartbeatResponseAssignment 0+   nullable=0+ default=null
  struct ShareGroupHeartbeatResponseTopicPartitions
    topic_id                      uuid                  0+
    partitions                    []int32               0+
  struct ShareGroupHeartbeatResponseAssignment
    topic_partitions              []ShareGroupHeartbeatResponseTopicPartitions 0+

message ShareGroupDescribeRequest key 77 versions 0-1 flexible 0+
    group_ids                     []string              0+
    include_authorized_operations bool                  0+

message ShareGroupDescribeResponse key 77 versions 0-1 flexible 0+
    throttle_time_ms              int32                 0+
    groups                        []ShareGroupDescribeResponseDescribedGroup 0+
  struct ShareGroupDescribeResponseTopicPartitions
    topic_id                      uuid                  0+
    topic_name                    string                0+
    partitions                    []int32               0+
  struct ShareGroupDescribeResponseAssignment
    topic_partitions              []ShareGroupDescribeResponseTopicPartitions 0+
  struct ShareGroupDescribeResponseDescribedGroup
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    group_id                      string                0+
    group_state                   string                0+
    group_epoch                   int32                 0+
    assignment_epoch              int32                 0+
    assignor_name                 string                0+
    members                       []ShareGroupDescribeResponseMember 0+
    authorized_operations         int32                 0+   default=-2147483648
  struct ShareGroupDescribeResponseMember
    member_id                     string                0+
    rack_id                       string                0+   nullable=0+ default=null
    member_epoch                  int32                 0+
    client_id                     string                0+
    client_host                   string                0+
    subscribed_topic_names        []string              0+
    assignment                    ShareGroupDescribeResponseAssignment 0+

message StreamsGroupHeartbeatRequest key 88 versions 0-1 flexible 0+
    group_id                      string                0+
    member_id                     string                0+
    member_epoch                  int32                 0+
    endpoint_information_epoch    int32                 0+
    instance_id                   string                0+   nullable=0+ default=null
    rack_id                       string                0+   nullable=0+ default=null
    rebalance_timeout_ms          int32                 0+   default=-1
    topology                      StreamsGroupHeartbeatRequestTopology 0+   nullable=0+ default=null
    active_tasks                  []StreamsGroupHeartbeatRequestTaskIds 0+   nullable=0+ default=null
    standby_tasks                 []StreamsGroupHeartbeatRequestTaskIds 0+   nullable=0+ default=null
    warmup_tasks                  []StreamsGroupHeartbeatRequestTaskIds 0+   nullable=0+ default=null
    process_id                    string                0+   nullable=0+ default=null
    user_endpoint                 StreamsGroupHeartbeatRequestEndpoint 0+   nullable=0+ default=null
    client_tags                   []StreamsGroupHeartbeatRequestKeyValue 0+   nullable=0+ default=null
    task_offsets                  []StreamsGroupHeartbeatRequestTaskOffset 0+   nullable=0+ default=null
    task_end_offsets              []StreamsGroupHeartbeatRequestTaskOffset 0+   nullable=0+ default=null
    shutdown_application          bool                  0+
  struct StreamsGroupHeartbeatRequestKeyValue
    key                           string                0+
    value                         string                0+
  struct StreamsGroupHeartbeatRequestTopicInfo
    name                          string                0+
    partitions                    int32                 0+
    replication_factor            int16                 0+
    topic_configs                 []StreamsGroupHeartbeatRequestKeyValue 0+
  struct StreamsGroupHeartbeatRequestEndpoint
    host                          string                0+
    port                          uint16                0+
  struct StreamsGroupHeartbeatRequestTaskOffset
    subtopology_id                string                0+
    partition                     int32                 0+
    offset                        int64                 0+
  struct StreamsGroupHeartbeatRequestTaskIds
    subtopology_id                string                0+
    partitions                    []int32               0+
  struct StreamsGroupHeartbeatRequestTopology
    epoch                         int32                 0+
    subtopologies                 []StreamsGroupHeartbeatRequestSubtopology 0+
  struct StreamsGroupHeartbeatRequestSubtopology
    subtopology_id                string                0+
    source_topics                 []string              0+
    source_topic_regex            []string              0+
    state_changelog_topics        []StreamsGroupHeartbeatRequestTopicInfo 0+
    repartition_sink_topics       []string              0+
    repartition_source_topics     []StreamsGroupHeartbeatRequestTopicInfo 0+
    copartition_groups            []StreamsGroupHeartbeatRequestCopartitionGroup 0+
  struct StreamsGroupHeartbeatRequestCopartitionGroup
    source_topics                 []int16               0+
    source_topic_regex            []int16               0+
    repartition_source_topics     []int16               0+

message StreamsGroupHeartbeatResponse key 88 versions 0-1 flexible 0+
    throttle_time_ms              int32                 0+
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    member_id                     string                0+
    member_epoch                  int32                 0+
    heartbeat_interval_ms         int32                 0+
    acceptable_recovery_lag_legacy int32                 0
    task_offset_interval_ms       int32                 0+
    acceptable_recovery_lag       int64                 1+   default=-1 ignorable
    status                        []StreamsGroupHeartbeatResponseStatus 0+   nullable=0+
    active_tasks                  []StreamsGroupHeartbeatResponseTaskIds 0+   nullable=0+ default=null
    standby_tasks                 []StreamsGroupHeartbeatResponseTaskIds 0+   nullable=0+ default=null
    warmup_tasks                  []StreamsGroupHeartbeatResponseTaskIds 0+   nullable=0+ default=null
    topology_description_required bool                  1+
    endpoint_information_epoch    int32                 0+
    partitions_by_user_endpoint   []StreamsGroupHeartbeatResponseEndpointToPartitions 0+   nullable=0+ default=null
  struct StreamsGroupHeartbeatResponseStatus
    status_code                   int8                  0+
    status_detail                 string                0+
  struct StreamsGroupHeartbeatResponseTopicPartition
    topic                         string                0+
    partitions                    []int32               0+
  struct StreamsGroupHeartbeatResponseTaskIds
    subtopology_id                string                0+
    partitions                    []int32               0+
  struct StreamsGroupHeartbeatResponseEndpoint
    host                          string                0+
    port                          uint16                0+
  struct StreamsGroupHeartbeatResponseEndpointToPartitions
    user_endpoint                 StreamsGroupHeartbeatResponseEndpoint 0+
    active_partitions             []StreamsGroupHeartbeatResponseTopicPartition 0+
    standby_partitions            []StreamsGroupHeartbeatResponseTopicPartition 0+

message StreamsGroupDescribeRequest key 89 versions 0-1 flexible 0+
    group_ids                     []string              0+
    include_authorized_operations bool                  0+
    include_topology_description  bool                  1+

message StreamsGroupDescribeResponse key 89 versions 0-1 flexible 0+
    throttle_time_ms              int32                 0+
    groups                        []StreamsGroupDescribeResponseDescribedGroup 0+
  struct StreamsGroupDescribeResponseEndpoint
    host                          string                0+
    port                          uint16                0+
  struct StreamsGroupDescribeResponseTaskOffset
    subtopology_id                string                0+
    partition                     int32                 0+
    offset                        int64                 0+
  struct StreamsGroupDescribeResponseAssignment
    active_tasks                  []StreamsGroupDescribeResponseTaskIds 0+
    standby_tasks                 []StreamsGroupDescribeResponseTaskIds 0+
    warmup_tasks                  []StreamsGroupDescribeResponseTaskIds 0+
  struct StreamsGroupDescribeResponseTaskIds
    subtopology_id                string                0+
    partitions                    []int32               0+
  struct StreamsGroupDescribeResponseKeyValue
    key                           string                0+
    value                         string                0+
  struct StreamsGroupDescribeResponseTopicInfo
    name                          string                0+
    partitions                    int32                 0+
    replication_factor            int16                 0+
    topic_configs                 []StreamsGroupDescribeResponseKeyValue 0+
  struct StreamsGroupDescribeResponseTopologyDescription
    subtopologies                 []StreamsGroupDescribeResponseTopologyDescriptionSubtopology 1+
    global_stores                 []StreamsGroupDescribeResponseTopologyDescriptionGlobalStore 1+
  struct StreamsGroupDescribeResponseTopologyDescriptionSubtopology
    subtopology_id                string                1+
    nodes                         []StreamsGroupDescribeResponseTopologyDescriptionNode 1+
  struct StreamsGroupDescribeResponseTopologyDescriptionNode
    name                          string                1+
    node_type                     int8                  1+
    source_topics                 []string              1+
    sink_topic                    string                1+   nullable=1+ default=null
    stores                        []string              1+
    successors                    []string              1+
  struct StreamsGroupDescribeResponseTopologyDescriptionGlobalStore
    source                        StreamsGroupDescribeResponseTopologyDescriptionNode 1+
    processor                     StreamsGroupDescribeResponseTopologyDescriptionNode 1+
  struct StreamsGroupDescribeResponseDescribedGroup
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    group_id                      string                0+
    group_state                   string                0+
    group_epoch                   int32                 0+
    assignment_epoch              int32                 0+
    topology                      StreamsGroupDescribeResponseTopology 0+   nullable=0+ default=null
    members                       []StreamsGroupDescribeResponseMember 0+
    authorized_operations         int32                 0+   default=-2147483648
    topology_description          StreamsGroupDescribeResponseTopologyDescription 1+   nullable=1+ default=null
    topology_description_status   int8                  1+
    assignor_name                 string                1+   nullable=1+ default=null ignorable
  struct StreamsGroupDescribeResponseTopology
    epoch                         int32                 0+
    subtopologies                 []StreamsGroupDescribeResponseSubtopology 0+   nullable=0+ default=null
  struct StreamsGroupDescribeResponseSubtopology
    subtopology_id                string                0+
    source_topics                 []string              0+
    repartition_sink_topics       []string              0+
    state_changelog_topics        []StreamsGroupDescribeResponseTopicInfo 0+
    repartition_source_topics     []StreamsGroupDescribeResponseTopicInfo 0+
  struct StreamsGroupDescribeResponseMember
    member_id                     string                0+
    member_epoch                  int32                 0+
    instance_id                   string                0+   nullable=0+ default=null
    rack_id                       string                0+   nullable=0+ default=null
    client_id                     string                0+
    client_host                   string                0+
    topology_epoch                int32                 0+
    process_id                    string                0+
    user_endpoint                 StreamsGroupDescribeResponseEndpoint 0+   nullable=0+ default=null
    client_tags                   []StreamsGroupDescribeResponseKeyValue 0+
    task_offsets                  []StreamsGroupDescribeResponseTaskOffset 0+
    task_end_offsets              []StreamsGroupDescribeResponseTaskOffset 0+
    assignment                    StreamsGroupDescribeResponseAssignment 0+
    target_assignment             StreamsGroupDescribeResponseAssignment 0+
    is_classic                    bool                  0+

message ConnectAssignment key none versions 0-2 flexible none
    error                         int16                 0+
    leader                        string                0+
    leader_url                    string                0+
    config_offset                 int64                 0+
    assignment                    []ConnectAssignmentConnector 0+   nullable=1+
    revoked                       []ConnectAssignmentConnector 1+   nullable=1+ default=null
    delay                         int32                 1+
  struct ConnectAssignmentConnector
    connector                     string                0+
    tasks                         []int32               0+

message ConnectWorkerState key none versions 0-2 flexible none
    url                           string                0+
    config_offset                 int64                 0+
    allocation                    bytes                 1+   nullable=1+ default=null

message ConsumerProtocolAssignment key none versions 0-3 flexible none
    assigned_partitions           []ConsumerProtocolAssignmentTopicPartition 0+
    user_data                     bytes                 0+   nullable=0+ default=null
  struct ConsumerProtocolAssignmentTopicPartition
    topic                         string                0+
    partitions                    []int32               0+

message ConsumerProtocolSubscription key none versions 0-3 flexible none
    topics                        []string              0+
    user_data                     bytes                 0+   nullable=0+ default=null
    owned_partitions              []ConsumerProtocolSubscriptionTopicPartition 1+   ignorable
    generation_id                 int32                 2+   default=-1 ignorable
    rack_id                       string                3+   nullable=3+ default=null ignorable
  struct ConsumerProtocolSubscriptionTopicPartition
    topic                         string                1+
    partitions                    []int32               1+

message StreamsAssignmentInfo key none versions 1-11 flexible none
    version                       int32                 1+
    commonly_supported_version    int32                 3+   default=-1

message StreamsSubscriptionInfo key none versions 1-11 flexible none
    version                       int32                 1+
    latest_supported_version      int32                 3+   default=-1
    process_id                    uuid                  1+
    prev_tasks                    []StreamsSubscriptionInfoTaskId 1-6
    standby_tasks                 []StreamsSubscriptionInfoTaskId 1-6
    user_end_point                bytes                 2+
    task_offset_sums              []StreamsSubscriptionInfoTaskOffsetSum 7+
    unique_field                  int8                  8+
    error_code                    int32                 9+
    client_tags                   []StreamsSubscriptionInfoClientTag 11+
  struct StreamsSubscriptionInfoTaskId
    topic_group_id                int32                 1-6
    partition                     int32                 1-6
  struct StreamsSubscriptionInfoTaskOffsetSum
    topic_group_id                int32                 7+
    partition                     int32                 10+
    offset_sum                    int64                 10+
    named_topology                string                10+  nullable=10+
    partition_to_offset_sum       []StreamsSubscriptionInfoPartitionToOffsetSum 7-9
  struct StreamsSubscriptionInfoPartitionToOffsetSum
    partition                     int32                 7-9
    offset_sum                    int64                 7-9
  struct StreamsSubscriptionInfoClientTag
    key                           bytes                 11+
    value                         bytes                 11+
"""
