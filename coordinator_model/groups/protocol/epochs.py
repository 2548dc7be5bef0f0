"""The protocol of consumer, share and Streams groups as a table: which answer a coordinator gives to a heartbeat or a commit.

The form is that of the classic protocol's table. Each row is one answer. It applies when all its cells hold at the moment at which the
coordinator acts; an empty cell always holds. The first row of an API that applies decides. Rows ``unseen`` and ``foreign`` decide
nothing: their answers may come wherever no row above decides. A difference between releases is a row of its own.

Sources: Kafka's Java coordinator since 4.0 (``GroupMetadataManager``, ``OffsetMetadataManager``); KIP-848, KIP-932, KIP-1071, KIP-1082,
KIP-1251. The error lists in the comments of Kafka's message schemas are incomplete, so they are no source.

The columns:

* *row*: its name, which it keeps. U stands for ConsumerGroupHeartbeat, W for ShareGroupHeartbeat, Z for StreamsGroupHeartbeat, V for an
  OffsetCommit in such a group; K for a Heartbeat, Y for a SyncGroup and N for a LeaveGroup of a member of the classic protocol in a
  consumer group.
* *answer*: names of error codes. NONE is success.
* *sender*: what the coordinator knows of the ids in the request.
* *epoch*: of the request, compared with the member's own.
* *if*: what else must hold.
* *then*: what becomes of the sender; rows that decide nothing do not say.
* *version*: of the API. *release*: of the broker.

The words of *sender*, *epoch*, *if* and *then*:
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from coordinator_model.groups.protocol.table import Effect, Table
from coordinator_model.wire.constants import (
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
    SYNC_GROUP,
)


class Sender(StrEnum):
    """What the coordinator knows of the member id and the instance id in a request."""

    MEMBER = "member"  #: a member's id, with no instance id
    STATIC = "static"  #: a member's id, with the instance id that it holds
    AWAY = "away"  #: the id of a static member that left for a while with epoch -2
    OUTSIDER = "outsider"  #: the id of no member, with no instance id or one that no member holds
    RETURNING = "returning"  #: an id, with the instance id of another member that is away or uses the classic protocol
    RIVAL = "rival"  #: an id, with an instance id that another member holds


class Epoch(StrEnum):
    """How the epoch in a request relates to the member's own."""

    JOIN = "join"  #: 0: the member joins
    LEAVE = "leave"  #: -1: the member leaves
    ASIDE = "aside"  #: -2: a static member leaves for a while
    SAME = "same"  #: the member's own
    PREVIOUS = "previous"  #: the one before the coordinator last wrote the member's state
    LOWER = "lower"  #: lower than both
    HIGHER = "higher"  #: higher than the member's own


class Condition(StrEnum):
    """What else an answer depends on."""

    UNSEEN = "unseen"  #: on what frames do not show: rights, limits, disks, the type of the group
    FOREIGN = "foreign"  #: no stock broker answers this yet; it harms nobody
    MALFORMED = "malformed"  #: the request lacks a field that it needs, or has one that it must not have
    OWNS = "owns"  #: the request lists the partitions that the member owns, all of which it was assigned
    ASSIGNOR = "assignor"  #: the request names a server assignor
    PATTERN = "pattern"  #: the request subscribes by a pattern
    EMPTY = "empty"  #: the group has no members


_TABLE: Final = """
row | answer                       | sender                | epoch                     | if        | then     | version | release

# ConsumerGroupHeartbeat
U1  | UNSUPPORTED_VERSION          |                       |                           | unseen
    | GROUP_AUTHORIZATION_FAILED
    | TOPIC_AUTHORIZATION_FAILED
U2  | COORDINATOR_NOT_AVAILABLE    |                       |                           | unseen
    | COORDINATOR_LOAD_IN_PROGRESS
    | NOT_COORDINATOR
U3  | UNSUPPORTED_ASSIGNOR         |                       |                           | assignor unseen
  # the group is missing, of another type, or cannot be migrated
U4  | GROUP_ID_NOT_FOUND           |                       |                           | unseen
  # the assignor failed
U5  | UNKNOWN_SERVER_ERROR         |                       |                           | unseen
  # a new pattern that RE2 cannot compile
U6  | INVALID_REGULAR_EXPRESSION   |                       | join same previous        | pattern unseen
U7  | INVALID_REQUEST              |                       |                           | malformed
U8  | GROUP_MAX_SIZE_REACHED       | outsider              | join same previous lower higher | unseen
  # the size counted before the instance id, so that a static member that returned to a full group was refused too
U26 | GROUP_MAX_SIZE_REACHED       | returning rival       | join same previous lower higher | unseen |          | | -4.3
U9  | NONE                         | member static away    | leave                     |           | removed
U10 | NONE                         | static away           | aside                     |           | away
U11 | UNKNOWN_MEMBER_ID            | outsider              | leave aside
U12 | FENCED_INSTANCE_ID           | returning rival       | leave aside
U13 | NONE                         | outsider              | join                      |           | added
  # the answer to its join was lost
U16 | NONE                         | member                | join                      | unseen
U14 | NONE                         | member                | join                      |           | session  |         | 4.2-
U15 | FENCED_MEMBER_EPOCH          | member                | join                      |           |          |         | -4.1
U19 | NONE                         | static                | join                      | foreign
  # also where the holder asks itself
U17 | UNRELEASED_INSTANCE_ID       | static rival          | join
U18 | NONE                         | away returning        | join                      |           | replaced
U20 | UNKNOWN_MEMBER_ID            | outsider              | same previous lower higher
U21 | FENCED_INSTANCE_ID           | returning rival       | same previous lower higher
U22 | FENCED_MEMBER_EPOCH          | away                  | same previous lower higher
U23 | NONE                         | member static         | same                      |           | session
  # the answer at the newer epoch was lost
U24 | NONE                         | member static         | previous                  | owns      | session
U25 | FENCED_MEMBER_EPOCH          | member static         | previous lower higher

# ShareGroupHeartbeat
W1  | UNSUPPORTED_VERSION          |                       |                           | unseen
    | GROUP_AUTHORIZATION_FAILED
    | TOPIC_AUTHORIZATION_FAILED
W2  | COORDINATOR_NOT_AVAILABLE    |                       |                           | unseen
    | COORDINATOR_LOAD_IN_PROGRESS
    | NOT_COORDINATOR
W3  | GROUP_ID_NOT_FOUND           |                       |                           | unseen
W4  | UNKNOWN_SERVER_ERROR         |                       |                           | unseen
W5  | INVALID_REQUEST              |                       |                           | malformed
W6  | GROUP_MAX_SIZE_REACHED       | outsider              | join same previous lower higher | unseen
W7  | NONE                         | member                | leave                     |           | removed
W8  | NONE                         | outsider              | join                      |           | added
W11 | NONE                         | member                | join                      | unseen
W9  | NONE                         | member                | join                      |           | session  |         | 4.2-
W10 | FENCED_MEMBER_EPOCH          | member                | join                      |           |          |         | -4.1
W12 | UNKNOWN_MEMBER_ID            | outsider              | leave same previous lower higher
W13 | NONE                         | member                | same previous             |           | session
W14 | FENCED_MEMBER_EPOCH          | member                | lower higher

# StreamsGroupHeartbeat
Z1  | UNSUPPORTED_VERSION          |                       |                           | unseen
    | GROUP_AUTHORIZATION_FAILED
    | TOPIC_AUTHORIZATION_FAILED
    | CLUSTER_AUTHORIZATION_FAILED
Z2  | COORDINATOR_NOT_AVAILABLE    |                       |                           | unseen
    | COORDINATOR_LOAD_IN_PROGRESS
    | NOT_COORDINATOR
Z3  | GROUP_ID_NOT_FOUND           |                       |                           | unseen
Z4  | UNKNOWN_SERVER_ERROR         |                       |                           | unseen
  # the topology, which is not compared, may be refused too
Z5  | INVALID_REQUEST              |                       |                           | unseen
    | STREAMS_INVALID_TOPOLOGY
    | STREAMS_INVALID_TOPOLOGY_EPOCH
    | STREAMS_TOPOLOGY_FENCED
Z6  | INVALID_REQUEST              |                       |                           | malformed
Z7  | GROUP_MAX_SIZE_REACHED       | outsider returning rival | join same previous lower higher | unseen
  # the size counted before the member id, so that a member that joined again was refused too
Z21 | GROUP_MAX_SIZE_REACHED       | member                | join                      | unseen    |          |         | -4.3
  # static members since 4.4
Z8  | FENCED_INSTANCE_ID           | static returning rival |                           | unseen    |          |         | 4.4-
    | UNRELEASED_INSTANCE_ID
Z9  | NONE                         | member static away    | leave                     |           | removed
Z10 | NONE                         | static away           | aside                     |           | away     |         | 4.4-
Z11 | UNKNOWN_MEMBER_ID            | outsider              | leave aside
Z12 | NONE                         | outsider              | join                      |           | added
Z22 | NONE                         | away returning        | join                      |           | replaced
Z15 | NONE                         | member                | join                      | unseen
Z13 | NONE                         | member static         | join                      |           | session  |         | 4.2-
Z14 | FENCED_MEMBER_EPOCH          | member                | join                      |           |          |         | -4.1
Z16 | UNKNOWN_MEMBER_ID            | outsider              | same previous lower higher
Z17 | FENCED_MEMBER_EPOCH          | away                  | same previous lower higher
Z18 | NONE                         | member static         | same                      |           | session
Z19 | NONE                         | member static         | previous                  | owns      | session
Z20 | FENCED_MEMBER_EPOCH          | member static         | previous lower higher

# OffsetCommit of a member of the new protocol
V1  | UNKNOWN_TOPIC_OR_PARTITION   |                       |                           | unseen
    | TOPIC_AUTHORIZATION_FAILED
    | GROUP_AUTHORIZATION_FAILED
    | OFFSET_METADATA_TOO_LARGE
    | INVALID_COMMIT_OFFSET_SIZE
    | INVALID_GROUP_ID
    | UNKNOWN_TOPIC_ID
V2  | COORDINATOR_NOT_AVAILABLE    |                       |                           | unseen
    | COORDINATOR_LOAD_IN_PROGRESS
    | NOT_COORDINATOR
    | UNKNOWN_SERVER_ERROR
  # the group has become a classic one, or is gone
V3  | ILLEGAL_GENERATION           |                       |                           | unseen
    | REBALANCE_IN_PROGRESS
    | FENCED_INSTANCE_ID
    | GROUP_ID_NOT_FOUND
  # before 9 a member of the new protocol cannot commit
V4  | UNSUPPORTED_VERSION          | member static away    |                           |           |          | 0-8
  # of an operator
V5  | NONE                         | outsider              | leave aside               | empty
V6  | UNKNOWN_MEMBER_ID            | outsider
V7  | NONE                         | member static         | same
  # partitions assigned no later than that epoch (KIP-1251); first in Streams groups, which have no static members then
V8  | NONE                         | member                | previous lower            | unseen    |          |         | 4.2-
V10 | NONE                         | static                | previous lower            | unseen    |          |         | 4.3-
V9  | STALE_MEMBER_EPOCH           | member static         | previous lower higher join leave aside
V11 | STALE_MEMBER_EPOCH           | away

# Heartbeat of a member of the classic protocol in a consumer group; who is none of those is an outsider
K1  | COORDINATOR_NOT_AVAILABLE    |                       |                           | unseen
    | COORDINATOR_LOAD_IN_PROGRESS
    | NOT_COORDINATOR
    | GROUP_AUTHORIZATION_FAILED
    | UNKNOWN_SERVER_ERROR
K2  | UNKNOWN_MEMBER_ID            | outsider
K3  | FENCED_INSTANCE_ID           | returning rival
K4  | ILLEGAL_GENERATION           | member static         | join leave aside previous lower higher
  # it is to join again: the group has a newer epoch, or it gives partitions up, or those that it waits for are free
K5  | REBALANCE_IN_PROGRESS        | member static         | same                      | unseen
K6  | NONE                         | member static         | same                      |           | session

# SyncGroup of a member of the classic protocol in a consumer group
Y1  | COORDINATOR_NOT_AVAILABLE    |                       |                           | unseen
    | COORDINATOR_LOAD_IN_PROGRESS
    | NOT_COORDINATOR
    | GROUP_AUTHORIZATION_FAILED
    | UNKNOWN_SERVER_ERROR
Y2  | UNKNOWN_MEMBER_ID            | outsider
Y3  | FENCED_INSTANCE_ID           | returning rival
Y4  | ILLEGAL_GENERATION           | member static         | join leave aside previous lower higher
  # the protocol is not the one of the answer to its join
Y5  | INCONSISTENT_GROUP_PROTOCOL  | member static         | same                      | unseen
  # the group has a newer epoch
Y6  | REBALANCE_IN_PROGRESS        | member static         | same                      | unseen
Y7  | NONE                         | member static         | same                      |           | session

# LeaveGroup that names a member of the classic protocol in a consumer group by its id
N1  | COORDINATOR_NOT_AVAILABLE    |                       |                           | unseen
    | COORDINATOR_LOAD_IN_PROGRESS
    | NOT_COORDINATOR
    | GROUP_AUTHORIZATION_FAILED
    | UNKNOWN_SERVER_ERROR
  # a member of the new protocol, since an operator can remove it
N2  | NONE                         | outsider              |                           | unseen
N3  | UNKNOWN_MEMBER_ID            | outsider
N4  | FENCED_INSTANCE_ID           | returning rival
N5  | NONE                         | member static         |                           |           | removed
"""

TABLE: Final = Table(
    _TABLE,
    {
        "U": CONSUMER_GROUP_HEARTBEAT,
        "W": SHARE_GROUP_HEARTBEAT,
        "Z": STREAMS_GROUP_HEARTBEAT,
        "V": OFFSET_COMMIT,
        "K": HEARTBEAT,
        "Y": SYNC_GROUP,
        "N": LEAVE_GROUP,
    },
    {"sender": Sender, "epoch": Epoch, "if": Condition, "then": Effect},
)
