"""Kafka's error codes, an open set. Known codes have a name and a meaning, unknown ones keep their number.

A code's meaning depends on the API and the coordinator's state. 27 normally announces a rebalance, and 0 in a Heartbeat response proves
nothing while the coordinator is loading.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class ErrorCode(NamedTuple):
    """A known error code."""

    code: int
    name: str
    meaning: str


def error_name(code: int) -> str:
    """Return Kafka's name of an error code, or the number as text if no known release has it."""
    known = ERROR_CODES.get(code)
    return known.name if known else str(code)


def error_meaning(code: int) -> str:
    """Return a short description of an error code."""
    known = ERROR_CODES.get(code)
    return known.meaning if known else "a code of no known Kafka release"


_TABLE: Final = """
 -1 UNKNOWN_SERVER_ERROR                       the server failed in a way that it has no code for
  0 NONE                                       success
  1 OFFSET_OUT_OF_RANGE                        the log does not hold that offset
  2 CORRUPT_MESSAGE                            a record batch fails its checksum or its other checks
  3 UNKNOWN_TOPIC_OR_PARTITION                 this broker has no such topic or partition
  4 INVALID_FETCH_SIZE                         the fetch size makes no sense
  5 LEADER_NOT_AVAILABLE                       the partition is without a leader at present
  6 NOT_LEADER_OR_FOLLOWER                     this broker is not the replica to ask
  7 REQUEST_TIMED_OUT                          the broker could not finish in time
  8 BROKER_NOT_AVAILABLE                       the broker is not available
  9 REPLICA_NOT_AVAILABLE                      the replica is not available
 10 MESSAGE_TOO_LARGE                          a record exceeds what the broker takes
 11 STALE_CONTROLLER_EPOCH                     a controller of an earlier epoch is still sending
 12 OFFSET_METADATA_TOO_LARGE                  the text committed with an offset is too long
 13 NETWORK_EXCEPTION                          the connection broke before the answer came
 14 COORDINATOR_LOAD_IN_PROGRESS               the coordinator is still reading its groups from the log
 15 COORDINATOR_NOT_AVAILABLE                  there is no coordinator for it at present, or it could not write
 16 NOT_COORDINATOR                            another broker coordinates this group
 17 INVALID_TOPIC_EXCEPTION                    the topic may not be used this way
 18 RECORD_LIST_TOO_LARGE                      a record batch exceeds the segment size
 19 NOT_ENOUGH_REPLICAS                        too few replicas are in sync to accept a write
 20 NOT_ENOUGH_REPLICAS_AFTER_APPEND           written, but to too few replicas
 21 INVALID_REQUIRED_ACKS                      acks is none of -1, 0 and 1
 22 ILLEGAL_GENERATION                         the request's generation is not the group's
 23 INCONSISTENT_GROUP_PROTOCOL                the member's protocol type or assignors do not fit the group's
 24 INVALID_GROUP_ID                           the group id is not acceptable
 25 UNKNOWN_MEMBER_ID                          the group has no such member
 26 INVALID_SESSION_TIMEOUT                    the session timeout lies outside the broker's bounds
 27 REBALANCE_IN_PROGRESS                      the group is rebalancing: the member has to join again
 28 INVALID_COMMIT_OFFSET_SIZE                 the commit is larger than the offsets topic takes
 29 TOPIC_AUTHORIZATION_FAILED                 the client may not do this to the topic
 30 GROUP_AUTHORIZATION_FAILED                 the client may not do this to the group
 31 CLUSTER_AUTHORIZATION_FAILED               the client may not do this to the cluster
 32 INVALID_TIMESTAMP                          a record's timestamp is out of the accepted range
 33 UNSUPPORTED_SASL_MECHANISM                 the broker does not offer that SASL mechanism
 34 ILLEGAL_SASL_STATE                         a request came at the wrong point of the SASL handshake
 35 UNSUPPORTED_VERSION                        the broker does not speak that version of the API, or not that feature
 36 TOPIC_ALREADY_EXISTS                       there is a topic of that name
 37 INVALID_PARTITIONS                         the number of partitions is not acceptable
 38 INVALID_REPLICATION_FACTOR                 the replication factor is not acceptable, or there are too few brokers
 39 INVALID_REPLICA_ASSIGNMENT                 the replica assignment is not acceptable
 40 INVALID_CONFIG                             a configuration value is not acceptable
 41 NOT_CONTROLLER                             this is not the controller
 42 INVALID_REQUEST                            the request contradicts itself or the protocol
 43 UNSUPPORTED_FOR_MESSAGE_FORMAT             the log's record format is too old for it
 44 POLICY_VIOLATION                           a policy of the operator forbids it
 45 OUT_OF_ORDER_SEQUENCE_NUMBER               a batch of this producer is missing before this one
 46 DUPLICATE_SEQUENCE_NUMBER                  that batch has been written already
 47 INVALID_PRODUCER_EPOCH                     the producer's epoch is an old one
 48 INVALID_TXN_STATE                          the transaction is not in a state for it
 49 INVALID_PRODUCER_ID_MAPPING                the producer id does not belong to that transactional id
 50 INVALID_TRANSACTION_TIMEOUT                the transaction timeout exceeds the broker's bound
 51 CONCURRENT_TRANSACTIONS                    another change of the same transaction is under way
 52 TRANSACTION_COORDINATOR_FENCED             a newer transaction coordinator has taken over
 53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED      the client may not use that transactional id
 54 SECURITY_DISABLED                          the cluster has no authorizer
 55 OPERATION_NOT_ATTEMPTED                    not tried, because another part of the request failed
 56 KAFKA_STORAGE_ERROR                        the broker's disk failed
 57 LOG_DIR_NOT_FOUND                          the broker has no such log directory
 58 SASL_AUTHENTICATION_FAILED                 the credentials were refused
 59 UNKNOWN_PRODUCER_ID                        the broker no longer knows that producer
 60 REASSIGNMENT_IN_PROGRESS                   replicas are being moved already
 61 DELEGATION_TOKEN_AUTH_DISABLED             delegation tokens are switched off
 62 DELEGATION_TOKEN_NOT_FOUND                 there is no such delegation token
 63 DELEGATION_TOKEN_OWNER_MISMATCH            the delegation token belongs to someone else
 64 DELEGATION_TOKEN_REQUEST_NOT_ALLOWED       delegation tokens may not be asked for on this connection
 65 DELEGATION_TOKEN_AUTHORIZATION_FAILED      the client may not do this to the delegation token
 66 DELEGATION_TOKEN_EXPIRED                   the delegation token has expired
 67 INVALID_PRINCIPAL_TYPE                     that type of principal is not supported
 68 NON_EMPTY_GROUP                            the group still has members
 69 GROUP_ID_NOT_FOUND                         there is no such group
 70 FETCH_SESSION_ID_NOT_FOUND                 the broker no longer has that fetch session
 71 INVALID_FETCH_SESSION_EPOCH                the fetch session is at another epoch
 72 LISTENER_NOT_FOUND                         the leader has no listener of the name the client came through
 73 TOPIC_DELETION_DISABLED                    deleting topics is switched off
 74 FENCED_LEADER_EPOCH                        the client knows an older leader epoch than the broker
 75 UNKNOWN_LEADER_EPOCH                       the client knows a newer leader epoch than the broker
 76 UNSUPPORTED_COMPRESSION_TYPE               the client does not speak the compression of the records
 77 STALE_BROKER_EPOCH                         the broker has registered anew since
 78 OFFSET_NOT_AVAILABLE                       the leader does not know its high watermark yet
 79 MEMBER_ID_REQUIRED                         the member has to join again with the id it was just given (KIP-394)
 80 PREFERRED_LEADER_NOT_AVAILABLE             the preferred leader is not available
 81 GROUP_MAX_SIZE_REACHED                     the group has as many members as it may have
 82 FENCED_INSTANCE_ID                         another process has taken over this group instance id (KIP-345)
 83 ELIGIBLE_LEADERS_NOT_AVAILABLE             no replica that may lead is available
 84 ELECTION_NOT_NEEDED                        the partition has the wanted leader already
 85 NO_REASSIGNMENT_IN_PROGRESS                no replica is being moved
 86 GROUP_SUBSCRIBED_TO_TOPIC                  members are subscribed to the topic whose offsets were to be deleted
 87 INVALID_RECORD                             a record was refused
 88 UNSTABLE_OFFSET_COMMIT                     a transaction that commits these offsets is still open (KIP-447)
 89 THROTTLING_QUOTA_EXCEEDED                  the client is over its quota
 90 PRODUCER_FENCED                            a newer producer uses the same transactional id
 91 RESOURCE_NOT_FOUND                         there is no such resource
 92 DUPLICATE_RESOURCE                         the resource exists or is named twice
 93 UNACCEPTABLE_CREDENTIAL                    the credentials do not satisfy the broker's rules
 94 INCONSISTENT_VOTER_SET                     sender and receiver know different voters
 95 INVALID_UPDATE_VERSION                     the feature level may not be set to that value
 96 FEATURE_UPDATE_FAILED                      the feature levels could not be changed
 97 PRINCIPAL_DESERIALIZATION_FAILURE          a forwarded request's principal cannot be read
 98 SNAPSHOT_NOT_FOUND                         there is no such snapshot
 99 POSITION_OUT_OF_RANGE                      the position lies outside the snapshot
100 UNKNOWN_TOPIC_ID                           this broker knows no topic of that id
101 DUPLICATE_BROKER_REGISTRATION              another broker has that node id
102 BROKER_ID_NOT_REGISTERED                   no broker of that id is registered
103 INCONSISTENT_TOPIC_ID                      the topic's id in the log differs from the one asked for
104 INCONSISTENT_CLUSTER_ID                    the request is meant for another cluster
105 TRANSACTIONAL_ID_NOT_FOUND                 there is no such transactional id
106 FETCH_SESSION_TOPIC_ID_ERROR               the fetch session mixes topic names and ids
107 INELIGIBLE_REPLICA                         the new replica may not join the in-sync set
108 NEW_LEADER_ELECTED                         the change made another replica leader
109 OFFSET_MOVED_TO_TIERED_STORAGE             the offset is in remote storage by now
110 FENCED_MEMBER_EPOCH                        the member's epoch is not its own any more: it has to join anew (KIP-848)
111 UNRELEASED_INSTANCE_ID                     a live member still holds that instance id (KIP-848)
112 UNSUPPORTED_ASSIGNOR                       the broker has no such assignor (KIP-848)
113 STALE_MEMBER_EPOCH                         the member's epoch is behind: heartbeat, then retry (KIP-848)
114 MISMATCHED_ENDPOINT_TYPE                   the request went to the wrong kind of endpoint
115 UNSUPPORTED_ENDPOINT_TYPE                  that kind of endpoint is not supported
116 UNKNOWN_CONTROLLER_ID                      there is no such controller
117 UNKNOWN_SUBSCRIPTION_ID                    the telemetry subscription is not the current one
118 TELEMETRY_TOO_LARGE                        the telemetry is larger than the broker takes
119 INVALID_REGISTRATION                       the broker's registration was refused
120 TRANSACTION_ABORTABLE                      the transaction has to be aborted; the producer may go on (KIP-890)
121 INVALID_RECORD_STATE                       the record is not in a state to be acknowledged so
122 SHARE_SESSION_NOT_FOUND                    the broker no longer has that share session
123 INVALID_SHARE_SESSION_EPOCH                the share session is at another epoch
124 FENCED_STATE_EPOCH                         the share partition's state is at a later epoch
125 INVALID_VOTER_KEY                          the voter's id or directory is not the receiver's
126 DUPLICATE_VOTER                            it is a voter already
127 VOTER_NOT_FOUND                            it is no voter
128 INVALID_REGULAR_EXPRESSION                 the subscribed pattern is not valid RE2
129 REBOOTSTRAP_REQUIRED                       the client has to start again from its bootstrap servers
130 STREAMS_INVALID_TOPOLOGY                   the topology cannot be run (KIP-1071)
131 STREAMS_INVALID_TOPOLOGY_EPOCH             the topology's epoch is not acceptable (KIP-1071)
132 STREAMS_TOPOLOGY_FENCED                    the group has a newer topology (KIP-1071)
133 SHARE_SESSION_LIMIT_REACHED                the broker has as many share sessions as it may have
134 GROUP_DELETION_FAILED                      the group could not be deleted
135 STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED the description of the topology could not be stored
136 CONTROLLER_ID_NOT_REGISTERED               no controller of that id is registered
"""


def _read(line: str) -> ErrorCode:
    code, name, meaning = line.split(maxsplit=2)
    return ErrorCode(int(code), name, meaning)


ERROR_CODES: Final[Mapping[int, ErrorCode]] = MappingProxyType(
    {known.code: known for known in map(_read, _TABLE.strip("\n").splitlines())}
)
"""Every code of Kafka 4.4."""

_TO_COME: Final = 50  # as many as Kafka added in some six years


def may_be_an_error(code: int) -> bool:
    """Return True if a release has this code, or a future one may: Kafka numbers errors consecutively."""
    return code in ERROR_CODES or 0 < code - max(ERROR_CODES) <= _TO_COME
