"""The protocol of classic groups as a table: which answer a coordinator gives, in which phase, to whom.

Each row is one answer. It applies when all its cells hold at the moment at which the coordinator acts; an empty cell always holds. The
first row of an API that applies decides. Rows ``unseen`` and ``foreign`` decide nothing: their answers may come wherever no row above
decides. A request that is ``held`` gets no answer yet. A row whose phase begins with ``held`` ends that; its cells hold at the moment of
the answer.

Sources: Kafka's coordinators, in Scala up to 3.9 (``GroupCoordinator``) and in Java since 4.0 (``GroupMetadataManager``,
``OffsetMetadataManager``); KIP-62, KIP-134, KIP-211, KIP-345, KIP-394, KIP-447, KIP-559, KIP-800, KIP-814. A difference between releases is
a row of its own.

The columns:

* *row*: its name, which it keeps. J stands for JoinGroup, Y for SyncGroup, H for Heartbeat, L for LeaveGroup (once for each member that it
  names), C for OffsetCommit, T for TxnOffsetCommit, D for DeleteGroups, F for FindCoordinator, X for any of these.
* *answer*: names of error codes, or ``held``. NONE is success.
* *phase*: ``E`` Empty, ``P`` PreparingRebalance, ``K`` CompletingRebalance, ``S`` Stable, ``D`` Dead: the group is being removed. ``-``
  there is no such group, ``L`` the broker still loads it, ``N`` the broker does not coordinate it.
* *sender*: what the coordinator knows of the ids in the request.
* *generation*: of the request: ``same`` as the group's, ``other``, or ``none`` (negative).
* *if*: what else must hold.
* *then*: what becomes of the sender and the group.
* *version*: of the API. *release*: of the broker.

The words of *sender*, *generation*, *if* and *then*:
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Final

from coordinator_model.groups.protocol.table import Effect, Table, Way, ways
from coordinator_model.releases import Release, first_release
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)


class Sender(StrEnum):
    """What the coordinator knows of the member id and the instance id in a request."""

    NEW = "new"  #: no member id, no instance id
    NEW_STATIC = "new-static"  #: no member id, an instance id that no member holds
    RETURNING = "returning"  #: no member id, an instance id that a member holds
    PENDING = "pending"  #: an id that MEMBER_ID_REQUIRED gave and that no JoinGroup has used, no instance id
    PENDING_STATIC = "pending-static"  #: the same with an instance id: a fault of the client
    MEMBER = "member"  #: a member's id, with no instance id or the one that it holds
    RENAMED = "renamed"  #: a member's id, with an instance id that no member holds
    STRANGER = "stranger"  #: the id of no member, with no instance id or one that no member holds
    FENCED = "fenced"  #: an id, with an instance id that another member holds


class Condition(StrEnum):
    """What else an answer depends on."""

    UNSEEN = "unseen"  #: on what frames do not show: rights, limits, disks, the cluster's metadata version
    FOREIGN = "foreign"  #: no stock broker answers this; it harms nobody
    LEADER = "leader"  #: the sender is the group's leader
    FOLLOWER = "follower"  #: it is not
    UNCHANGED = "unchanged"  #: the protocols are those of the member's last JoinGroup, byte for byte and in the same order
    CHANGED = "changed"  #: they are not
    UNSUPPORTED = "unsupported"  #: not one of the protocols is supported by all other members
    KEEPS = "keeps"  #: with these protocols the group would select the protocol that it has
    SWITCHES = "switches"  #: it would select another
    NAMES_OTHER = "names-other"  #: the request names a protocol type or a protocol that is not the group's
    NAMES_NONE = "names-none"  #: the request names no protocol type or no protocol
    UPGRADED = "upgraded"  #: the group becomes a consumer group under the request (KIP-848)


class Generation(StrEnum):
    """How the generation in a request relates to the group's."""

    SAME = "same"
    OTHER = "other"
    NONE = "none"  #: negative, or not in the request


_TABLE: Final = """
row | answer                       | phase      | sender           | generation | if                 | then              | version | release

# JoinGroup
  # the session timeout is outside the broker's limits
J1  | INVALID_SESSION_TIMEOUT      |            |                  |            | unseen
  # the group is full
J2  | GROUP_MAX_SIZE_REACHED       |            |                  |            | unseen
J3  | COORDINATOR_LOAD_IN_PROGRESS | L
J4  | UNKNOWN_MEMBER_ID            | D          |                  |            |                    |                   |         | -2.2
J5  | COORDINATOR_NOT_AVAILABLE    | D
  # a new group has no members yet
J6  | UNKNOWN_MEMBER_ID            | -          | stranger
J7  | INCONSISTENT_GROUP_PROTOCOL  | -EPKS      |                  |            | unsupported
  # the replacement could not be written in time (Scala)
J8  | REBALANCE_IN_PROGRESS        |            | returning        |            | unseen             |                   | 5-
  # a static member is replaced: same generation, no rebalance; v9+ tells a leader to skip the assignment (KIP-814)
J9  | NONE                         | S          | returning        |            | keeps              | replaced          | 5-
J10 | held                         | S          | returning        |            | switches           | replaced prepares | 5-
  # KAFKA-9801
J11 | NONE                         | K          | returning        |            |                    | replaced          | 5-      | -2.4
J12 | held                         | K          | returning        |            |                    | replaced prepares | 5-
J13 | held                         | P          | returning        |            |                    | replaced          | 5-
J14 | held                         | -EPKS      | new-static       |            |                    | added prepares    | 5-
J15 | held                         | -EPKS      | new              |            |                    | added prepares    | 0-3
  # gives an id, which is pending until a JoinGroup uses it or its session timeout ends (KIP-394)
J16 | MEMBER_ID_REQUIRED           | -EPKS      | new              |            |                    | issued            | 4-
J17 | held                         | EPKS       | pending          |            |                    | added prepares
J18 | UNKNOWN_SERVER_ERROR         | EPKS       | pending-static
J19 | UNKNOWN_MEMBER_ID            | EPKS       | stranger renamed
  # another process holds the instance id
J20 | FENCED_INSTANCE_ID           | EPKS       | fenced           |            |                    |                   | 5-
  # in place of an earlier JoinGroup of the member, which is never answered
J21 | held                         | P          | member
  # the answer was lost; nothing changes
J22 | NONE                         | K          | member           |            | unchanged
J23 | held                         | K          | member           |            | changed            | prepares
  # so a leader says that topics changed
J24 | held                         | S          | member           |            | leader             | prepares
  # the answer was lost; nothing changes
J25 | NONE                         | S          | member           |            | follower unchanged
J26 | held                         | S          | member           |            | follower changed   | prepares
  # the join phase is over: a new generation
J27 | NONE                         | held K     | member           |            |                    | session
  # the member left, was removed, or its session ended
J28 | UNKNOWN_MEMBER_ID            | held P     | stranger
  # another process took the instance id meanwhile
J29 | FENCED_INSTANCE_ID           | held P     | fenced           |            |                    |                   | 5-
J30 | NOT_COORDINATOR              | held N
J31 | REBALANCE_IN_PROGRESS        | held P     |                  |            | upgraded

# SyncGroup
Y1  | INCONSISTENT_GROUP_PROTOCOL  |            |                  |            | names-none         |                   | 5-
Y2  | COORDINATOR_LOAD_IN_PROGRESS | L          |                  |            |                    |                   |         | 4.0-
Y3  | REBALANCE_IN_PROGRESS        | L
Y4  | UNKNOWN_MEMBER_ID            | D          |                  |            |                    |                   |         | -2.2
Y5  | COORDINATOR_NOT_AVAILABLE    | D
Y6  | UNKNOWN_MEMBER_ID            | -E
Y7  | FENCED_INSTANCE_ID           | PKS        | fenced returning |            |                    |                   | 3-
Y8  | UNKNOWN_MEMBER_ID            | PKS        | outsider renamed
Y9  | ILLEGAL_GENERATION           | PKS        | member           | other none
Y10 | INCONSISTENT_GROUP_PROTOCOL  | PKS        | member           | same       | names-other        |                   | 5-
Y11 | REBALANCE_IN_PROGRESS        | P          | member           | same
  # until the leader's assignment is written
Y12 | held                         | K          | member           | same
Y19 | NONE                         | S          | member           | same       |                    | session           |         | -3.9
Y13 | NONE                         | S          | member           | same
Y14 | NONE                         | held S     | member           | same       |                    | session
  # another join phase began first
Y15 | REBALANCE_IN_PROGRESS        | held P     | member           | same
  # the member left, was removed, or its session ended
Y16 | UNKNOWN_MEMBER_ID            | held K     | stranger         | same
  # another process took the instance id meanwhile
Y17 | FENCED_INSTANCE_ID           | held K     | fenced           | same       |                    |                   | 3-
Y18 | NOT_COORDINATOR              | held N     |                  | same

# Heartbeat
  # blind: neither member nor generation are checked
H1  | NONE                         | L
H2  | COORDINATOR_LOAD_IN_PROGRESS |            |                  |            | foreign
H3  | UNKNOWN_MEMBER_ID            | D          |                  |            |                    |                   |         | -2.2
H4  | COORDINATOR_NOT_AVAILABLE    | D
H5  | UNKNOWN_MEMBER_ID            | -E
H6  | FENCED_INSTANCE_ID           | PKS        | fenced returning |            |                    |                   | 3-
H7  | UNKNOWN_MEMBER_ID            | PKS        | outsider
  # before 3.0 an instance id that nobody holds is ignored
H8  | UNKNOWN_MEMBER_ID            | PKS        | renamed          |            |                    |                   |         | 3.0-
  # before the generation is checked
H9  | REBALANCE_IN_PROGRESS        | K          | member renamed   |            |                    |                   |         | -2.2
H10 | ILLEGAL_GENERATION           | PKS        | member renamed   | other none
H11 | REBALANCE_IN_PROGRESS        | P          | member renamed   | same       |                    | session
H12 | REBALANCE_IN_PROGRESS        | K          | member renamed   | same       |                    |                   |         | -2.6.0
H13 | NONE                         | K          | member renamed   | same       |                    | session
H14 | NONE                         | S          | member renamed   | same       |                    | session

# LeaveGroup, for each member that it names
L1  | COORDINATOR_LOAD_IN_PROGRESS | L
L2  | UNKNOWN_MEMBER_ID            | D          |                  |            |                    |                   |         | -2.2
L3  | COORDINATOR_NOT_AVAILABLE    | D
L4  | UNKNOWN_MEMBER_ID            | -
  # an operator removes who holds the instance id
L5  | NONE                         | EPKS       | returning        |            |                    | removed prepares  | 3-
  # a group that lost anybody begins anew, even if that was no member yet
L7  | NONE                         | KS         | pending pending-static |         |                    | removed prepares  |         | 4.0-
  # the id is forgotten
L6  | NONE                         | EPKS       | pending pending-static |            |                    | removed
L8  | NONE                         | PKS        | member           |            |                    | removed prepares
L9  | FENCED_INSTANCE_ID           | EPKS       | fenced           |            |                    |                   | 3-
L10 | UNKNOWN_MEMBER_ID            | EPKS       | outsider renamed

# OffsetCommit
  # for a partition, before the coordinator is asked
C1  | UNKNOWN_TOPIC_OR_PARTITION   |            |                  |            | unseen
    | TOPIC_AUTHORIZATION_FAILED
  # for a partition
C2  | OFFSET_METADATA_TOO_LARGE    |            |                  |            | unseen
    | INVALID_COMMIT_OFFSET_SIZE
  # for a partition
C3  | UNKNOWN_TOPIC_ID             |            |                  |            | unseen             |                   | 10-
  # could not be written in time (Scala)
C4  | REQUEST_TIMED_OUT            |            |                  |            | unseen
C5  | STALE_MEMBER_EPOCH           | -EPKS      |                  |            | upgraded           |                   | 9-
C6  | COORDINATOR_LOAD_IN_PROGRESS | L
C7  | UNKNOWN_MEMBER_ID            | D          |                  |            |                    |                   |         | -2.2
C8  | COORDINATOR_NOT_AVAILABLE    | D
  # a client that assigns its partitions itself
C19 | NONE                         | -E         | new              | none
  # KAFKA-14201: these releases look for the member although the group has none
C20 | UNKNOWN_MEMBER_ID            | -E         | outsider         | none       |                    |                   |         | 3.0-3.2
C9  | NONE                         | -E         |                  | none
C10 | ILLEGAL_GENERATION           | -          |                  | same other |                    |                   | 0-8
C11 | ILLEGAL_GENERATION           | -          |                  | same other |                    |                   |         | -3.9
C12 | GROUP_ID_NOT_FOUND           | -          |                  | same other |                    |                   | 9-
C13 | FENCED_INSTANCE_ID           | EPKS       | fenced returning |            |                    |                   | 7-
  # before the member and the generation are checked
C18 | REBALANCE_IN_PROGRESS        | K          |                  |            |                    |                   |         | -2.3
C14 | UNKNOWN_MEMBER_ID            | EPKS       | outsider renamed
C15 | ILLEGAL_GENERATION           | PKS        | member           | other none
C16 | REBALANCE_IN_PROGRESS        | K          | member           | same
  # so that offsets can be committed before the member rejoins
C17 | NONE                         | PS         | member           | same       |                    | session

# TxnOffsetCommit
  # for a partition, before the coordinator is asked
T1  | UNKNOWN_TOPIC_OR_PARTITION   |            |                  |            | unseen
    | TOPIC_AUTHORIZATION_FAILED
  # for a partition
T2  | OFFSET_METADATA_TOO_LARGE    |            |                  |            | unseen
    | INVALID_COMMIT_OFFSET_SIZE
    | REQUEST_TIMED_OUT
  # about the producer
T3  | TRANSACTIONAL_ID_AUTHORIZATION_FAILED |            |                  |            | unseen
    | INVALID_PRODUCER_EPOCH
    | INVALID_TXN_STATE
    | INVALID_PRODUCER_ID_MAPPING
    | CONCURRENT_TRANSACTIONS
    | UNKNOWN_PRODUCER_ID
    | PRODUCER_FENCED
    | TRANSACTION_ABORTABLE
T4  | REBALANCE_IN_PROGRESS        |            |                  |            | foreign
    | GROUP_ID_NOT_FOUND
    | STALE_MEMBER_EPOCH
T5  | COORDINATOR_LOAD_IN_PROGRESS | L
T6  | UNKNOWN_MEMBER_ID            | D          |                  |            |                    |                   |         | -2.2
T7  | COORDINATOR_NOT_AVAILABLE    | D
  # these versions name no member
T8  | NONE                         | -EPKS      |                  |            |                    |                   | 0-2
T9  | NONE                         | -EPKS      | new              | none
T10 | ILLEGAL_GENERATION           | -          |                  | same other |                    |                   | 3-
  # KAFKA-14201
T16 | UNKNOWN_MEMBER_ID            | -E         | outsider         | none       |                    |                   | 3-      | 3.0-3.2
T11 | NONE                         | -E         |                  | none
T12 | FENCED_INSTANCE_ID           | EPKS       | fenced returning |            |                    |                   | 3-
T13 | UNKNOWN_MEMBER_ID            | EPKS       | outsider renamed |            |                    |                   | 3-
T14 | ILLEGAL_GENERATION           | PKS        | member           | other none |                    |                   | 3-
T15 | NONE                         | PKS        | member           | same

# DeleteGroups
D1  | COORDINATOR_LOAD_IN_PROGRESS | L
D2  | GROUP_ID_NOT_FOUND           | -D
D3  | NON_EMPTY_GROUP              | PKS
  # ids that are pending are forgotten too
D4  | NONE                         | E          |                  |            |                    | removed

# any API
  # the version is unknown; or a static member, and the cluster's metadata version is below 2.3
X1  | UNSUPPORTED_VERSION          |            |                  |            | unseen
  # the client may not read the group
X2  | GROUP_AUTHORIZATION_FAILED   |            |                  |            | unseen
  # the coordinator has not started, or could not write
X3  | COORDINATOR_NOT_AVAILABLE    |            |                  |            | unseen
  # the group id is empty
X4  | INVALID_GROUP_ID             |            |                  |            | unseen
  # a fault in the broker, a malformed request
X5  | UNKNOWN_SERVER_ERROR         |            |                  |            | unseen
    | INVALID_REQUEST
  # the broker lost the group's log while it wrote
X6  | NOT_COORDINATOR              |            |                  |            | unseen

# FindCoordinator
F1  | TRANSACTIONAL_ID_AUTHORIZATION_FAILED |            |                  |            | unseen
F2  | TRANSACTION_ABORTABLE        |            |                  |            | unseen             |                   | 5-
F3  | COORDINATOR_LOAD_IN_PROGRESS |            |                  |            | foreign
    | TOPIC_AUTHORIZATION_FAILED
F4  | NONE

# any API but FindCoordinator, which every broker answers
  # another broker coordinates the group
X7  | NOT_COORDINATOR              | N
"""

TABLE: Final = Table(
    _TABLE,
    {
        "J": JOIN_GROUP, "Y": SYNC_GROUP, "H": HEARTBEAT, "L": LEAVE_GROUP, "C": OFFSET_COMMIT, "T": TXN_OFFSET_COMMIT,
        "D": DELETE_GROUPS, "F": FIND_COORDINATOR,
    },
    {"sender": Sender, "generation": Generation, "if": Condition, "then": Effect},
    phases="-EPKSDLN",
    collective={"outsider": (Sender.STRANGER, Sender.PENDING, Sender.PENDING_STATIC, Sender.NEW, Sender.NEW_STATIC)},
)  # fmt: skip

TWO_STEP_JOIN_SINCE: Final = TABLE["J16"].versions[0]
"""JoinGroup: a client without a member id first gets one with MEMBER_ID_REQUIRED, which starts no join phase (KIP-394)."""

PREPARING: Final = frozenset(TABLE.apis[row.name[0]] for row in TABLE.rows if Effect.PREPARES in row.effects)
"""The APIs whose requests may begin a join phase."""

INSTANCE_SINCE: Final = {TABLE.apis[row[0]]: TABLE[row].versions[0] for row in ("C13", "J20", "H6", "Y7")}
"""API → first version whose request carries group.instance.id (KIP-345)."""


@cache
def phases_of_members(api_key: int, version: int, answer: int, oldest: Release, *, numbered: bool, loads: bool) -> frozenset[str]:
    """Return the phases in which a member gets an answer that nobody else gets; none if somebody else gets it, too.

    Who becomes a member by it is one. An answer that the broker's release never gives proves what one of an older release would.

    :param oldest: the broker's release is this one or later.
    :param numbered: the request names a generation. Then only members at their group's generation count.
    :param loads: the broker may load the group.
    """
    first = first_release(api_key, version)
    releases = (max(oldest, first), first)
    found = next(filter(None, (_found(api_key, version, answer, one, numbered=numbered, loads=loads) for one in releases)), ())
    if numbered and any(way.generation is not Generation.SAME for way in found):
        return frozenset()
    others = any(way.sender not in _MEMBERS and way.row.effects.isdisjoint(_JOINS) for way in found)
    return frozenset() if others else frozenset(way.phase for way in found)


def _found(api_key: int, version: int, answer: int, oldest: Release, *, numbered: bool, loads: bool) -> tuple[Way, ...]:
    return tuple(
        way
        for way in ways(TABLE, api_key, version, answer, oldest)
        if (way.generation is not Generation.NONE) == numbered and (loads or way.phase != "L")
    )


_MEMBERS: Final = frozenset({Sender.MEMBER, Sender.RENAMED})
_JOINS: Final = frozenset({Effect.ADDED, Effect.REPLACED})
