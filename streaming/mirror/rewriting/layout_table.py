"""Answers that hold addresses of brokers, and ApiVersions. Written by ``deploy/make_layouts.py``: do not edit.

Kafka 4.4.0, and 3.9.2 for the versions dropped since. Lines as in ``coordinator_model/wire/layout_table.py``.
"""

from typing import Final

TABLE: Final = """
message ProduceResponse key 0 versions 0-13 flexible 9+
    responses                     []ProduceResponseTopicProduceResponse 0+
    throttle_time_ms              int32                 1+   ignorable
    node_endpoints                []ProduceResponseNodeEndpoint 10+  tag=0
  struct ProduceResponseTopicProduceResponse
    name                          string                0-12 ignorable
    topic_id                      uuid                  13+  ignorable
    partition_responses           []ProduceResponsePartitionProduceResponse 0+
  struct ProduceResponsePartitionProduceResponse
    index                         int32                 0+
    error_code                    int16                 0+
    base_offset                   int64                 0+
    log_append_time_ms            int64                 2+   default=-1 ignorable
    log_start_offset              int64                 5+   default=-1 ignorable
    record_errors                 []ProduceResponseBatchIndexAndErrorMessage 8+   ignorable
    error_message                 string                8+   nullable=8+ default=null ignorable
    current_leader                ProduceResponseLeaderIdAndEpoch 10+  tag=0
  struct ProduceResponseBatchIndexAndErrorMessage
    batch_index                   int32                 8+
    batch_index_error_message     string                8+   nullable=8+ default=null
  struct ProduceResponseLeaderIdAndEpoch
    leader_id                     int32                 10+  default=-1
    leader_epoch                  int32                 10+  default=-1
  struct ProduceResponseNodeEndpoint
    node_id                       int32                 10+
    host                          string                10+
    port                          int32                 10+
    rack                          string                10+  nullable=10+ default=null

message FetchResponse key 1 versions 0-18 flexible 12+
    throttle_time_ms              int32                 1+   ignorable
    error_code                    int16                 7+   ignorable
    session_id                    int32                 7+
    responses                     []FetchResponseFetchableTopicResponse 0+
    node_endpoints                []FetchResponseNodeEndpoint 16+  tag=0
  struct FetchResponseFetchableTopicResponse
    topic                         string                0-12 ignorable
    topic_id                      uuid                  13+  ignorable
    partitions                    []FetchResponsePartitionData 0+
  struct FetchResponsePartitionData
    partition_index               int32                 0+
    error_code                    int16                 0+
    high_watermark                int64                 0+
    last_stable_offset            int64                 4+   default=-1 ignorable
    log_start_offset              int64                 5+   default=-1 ignorable
    diverging_epoch               FetchResponseEpochEndOffset 12+  tag=0
    current_leader                FetchResponseLeaderIdAndEpoch 12+  tag=1
    snapshot_id                   FetchResponseSnapshotId 12+  tag=2
    aborted_transactions          []FetchResponseAbortedTransaction 4+   nullable=4+ ignorable
    preferred_read_replica        int32                 11+  default=-1
    records                       bytes                 0+   nullable=0+
  struct FetchResponseEpochEndOffset
    epoch                         int32                 12+  default=-1
    end_offset                    int64                 12+  default=-1
  struct FetchResponseLeaderIdAndEpoch
    leader_id                     int32                 12+  default=-1
    leader_epoch                  int32                 12+  default=-1
  struct FetchResponseSnapshotId
    end_offset                    int64                 0+   default=-1
    epoch                         int32                 0+   default=-1
  struct FetchResponseAbortedTransaction
    producer_id                   int64                 4+
    first_offset                  int64                 4+
  struct FetchResponseNodeEndpoint
    node_id                       int32                 16+
    host                          string                16+
    port                          int32                 16+
    rack                          string                16+  nullable=16+ default=null

message MetadataResponse key 3 versions 0-13 flexible 9+
    throttle_time_ms              int32                 3+   ignorable
    brokers                       []MetadataResponseBroker 0+
    cluster_id                    string                2+   nullable=2+ default=null ignorable
    controller_id                 int32                 1+   default=-1 ignorable
    topics                        []MetadataResponseTopic 0+
    cluster_authorized_operations int32                 8-10 default=-2147483648
    error_code                    int16                 13+  ignorable
  struct MetadataResponseBroker
    node_id                       int32                 0+
    host                          string                0+
    port                          int32                 0+
    rack                          string                1+   nullable=1+ default=null ignorable
  struct MetadataResponseTopic
    error_code                    int16                 0+
    name                          string                0+   nullable=12+
    topic_id                      uuid                  10+  ignorable
    is_internal                   bool                  1+   ignorable
    partitions                    []MetadataResponsePartition 0+
    topic_authorized_operations   int32                 8+   default=-2147483648
  struct MetadataResponsePartition
    error_code                    int16                 0+
    partition_index               int32                 0+
    leader_id                     int32                 0+
    leader_epoch                  int32                 7+   default=-1 ignorable
    replica_nodes                 []int32               0+
    isr_nodes                     []int32               0+
    offline_replicas              []int32               5+   ignorable

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

message DescribeClusterResponse key 60 versions 0-2 flexible 0+
    throttle_time_ms              int32                 0+
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    endpoint_type                 int8                  1+   default=1
    cluster_id                    string                0+
    controller_id                 int32                 0+   default=-1
    brokers                       []DescribeClusterResponseDescribeClusterBroker 0+
    cluster_authorized_operations int32                 0+   default=-2147483648
  struct DescribeClusterResponseDescribeClusterBroker
    broker_id                     int32                 0+
    host                          string                0+
    port                          int32                 0+
    rack                          string                0+   nullable=0+ default=null
    is_fenced                     bool                  2+

message ShareFetchResponse key 78 versions 0-2 flexible 0+
    throttle_time_ms              int32                 0+
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    acquisition_lock_timeout_ms   int32                 1+
    responses                     []ShareFetchResponseShareFetchableTopicResponse 0+
    node_endpoints                []ShareFetchResponseNodeEndpoint 0+
  struct ShareFetchResponseShareFetchableTopicResponse
    topic_id                      uuid                  0+
    partitions                    []ShareFetchResponsePartitionData 0+
  struct ShareFetchResponsePartitionData
    partition_index               int32                 0+
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    acknowledge_error_code        int16                 0+
    acknowledge_error_message     string                0+   nullable=0+ default=null
    current_leader                ShareFetchResponseLeaderIdAndEpoch 0+
    records                       bytes                 0+   nullable=0
    acquired_records              []ShareFetchResponseAcquiredRecords 0+
  struct ShareFetchResponseLeaderIdAndEpoch
    leader_id                     int32                 0+
    leader_epoch                  int32                 0+
  struct ShareFetchResponseAcquiredRecords
    first_offset                  int64                 0+
    last_offset                   int64                 0+
    delivery_count                int16                 0+
  struct ShareFetchResponseNodeEndpoint
    node_id                       int32                 0+
    host                          string                0+
    port                          int32                 0+
    rack                          string                0+   nullable=0+ default=null

message ShareAcknowledgeResponse key 79 versions 0-2 flexible 0+
    throttle_time_ms              int32                 0+
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    acquisition_lock_timeout_ms   int32                 2+   ignorable
    responses                     []ShareAcknowledgeResponseShareAcknowledgeTopicResponse 0+
    node_endpoints                []ShareAcknowledgeResponseNodeEndpoint 0+
  struct ShareAcknowledgeResponseShareAcknowledgeTopicResponse
    topic_id                      uuid                  0+
    partitions                    []ShareAcknowledgeResponsePartitionData 0+
  struct ShareAcknowledgeResponsePartitionData
    partition_index               int32                 0+
    error_code                    int16                 0+
    error_message                 string                0+   nullable=0+ default=null
    current_leader                ShareAcknowledgeResponseLeaderIdAndEpoch 0+
  struct ShareAcknowledgeResponseLeaderIdAndEpoch
    leader_id                     int32                 0+
    leader_epoch                  int32                 0+
  struct ShareAcknowledgeResponseNodeEndpoint
    node_id                       int32                 0+
    host                          string                0+
    port                          int32                 0+
    rack                          string                0+   nullable=0+ default=null
"""
