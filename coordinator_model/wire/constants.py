"""Numbers of the protocol that the model uses: API keys, error codes, and the versions in which an API's behaviour changes.

Names and numbers are Kafka's own (``ApiKeys`` and ``Errors`` of its clients). ``wire.error_codes`` has all errors with their meaning.
What errors 22, 25 and 27 prove depends on API and version.
"""

from __future__ import annotations

from typing import Final

# --- APIs ---------------------------------------------------------------------------------------------------------------------------

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
API_VERSIONS: Final = 18
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
TXN_OFFSET_COMMIT: Final = 28
DELETE_GROUPS: Final = 42
OFFSET_DELETE: Final = 47
CONSUMER_GROUP_HEARTBEAT: Final = 68
CONSUMER_GROUP_DESCRIBE: Final = 69
SHARE_GROUP_HEARTBEAT: Final = 76
SHARE_GROUP_DESCRIBE: Final = 77
STREAMS_GROUP_HEARTBEAT: Final = 88
STREAMS_GROUP_DESCRIBE: Final = 89

COMMITS: Final = frozenset({OFFSET_COMMIT, TXN_OFFSET_COMMIT})
EPOCH_DESCRIPTIONS: Final = frozenset({CONSUMER_GROUP_DESCRIBE, SHARE_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE})
"""Descriptions of groups whose members have epochs."""

EPOCH_HEARTBEATS: Final = frozenset({CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT})
"""Heartbeats of members with epochs."""

# --- errors -------------------------------------------------------------------------------------------------------------------------

UNKNOWN_SERVER_ERROR: Final = -1
NONE: Final = 0
COORDINATOR_LOAD_IN_PROGRESS: Final = 14
COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_GROUP_PROTOCOL: Final = 23
UNKNOWN_MEMBER_ID: Final = 25
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
UNKNOWN_TOPIC_ID: Final = 100
INVALID_SESSION_TIMEOUT: Final = 26
REBALANCE_IN_PROGRESS: Final = 27
TOPIC_AUTHORIZATION_FAILED: Final = 29
GROUP_AUTHORIZATION_FAILED: Final = 30
UNSUPPORTED_VERSION: Final = 35
INVALID_REQUEST: Final = 42
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69
MEMBER_ID_REQUIRED: Final = 79
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82
UNSTABLE_OFFSET_COMMIT: Final = 88
FENCED_MEMBER_EPOCH: Final = 110
UNRELEASED_INSTANCE_ID: Final = 111
UNSUPPORTED_ASSIGNOR: Final = 112
STALE_MEMBER_EPOCH: Final = 113
INVALID_REGULAR_EXPRESSION: Final = 128

COORDINATOR_MOVES: Final = frozenset({COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
"""Errors of a broker that does not, or not yet, coordinate the group."""

NOT_ADMITTED: Final = (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID)
"""Errors for a client that is not, or no longer, a member of the generation in its request."""

# --- versions -----------------------------------------------------------------------------------------------------------------------

LEADER_NAMED_SINCE: Final = 9
"""JoinGroup: the response to a leader replaced within a generation names it as leader (KIP-814)."""
