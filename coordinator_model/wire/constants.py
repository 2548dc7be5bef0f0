"""What the protocol calls by number, as far as the model asks for it by name: APIs, errors, and versions from which an API is another.

The names and numbers are Kafka's own (``ApiKeys`` and ``Errors`` of its clients); all errors, with their meaning, are in
``wire.error_codes``. The trap: an error says nothing by itself. What 22, 25 and 27 tell hangs on the API that they answer and its version.
"""

from __future__ import annotations

from typing import Final

# --- APIs ---------------------------------------------------------------------------------------------------------------------------

OFFSET_COMMIT: Final = 8
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
TXN_OFFSET_COMMIT: Final = 28
DELETE_GROUPS: Final = 42

COMMITS: Final = frozenset({OFFSET_COMMIT, TXN_OFFSET_COMMIT})

# --- errors -------------------------------------------------------------------------------------------------------------------------

UNKNOWN_SERVER_ERROR: Final = -1
NONE: Final = 0
COORDINATOR_LOAD_IN_PROGRESS: Final = 14
COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_GROUP_PROTOCOL: Final = 23
UNKNOWN_MEMBER_ID: Final = 25
INVALID_SESSION_TIMEOUT: Final = 26
REBALANCE_IN_PROGRESS: Final = 27
MEMBER_ID_REQUIRED: Final = 79
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82

COORDINATOR_MOVES: Final = frozenset({COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
"""Said by a broker that does not, or not yet, coordinate the group."""

NOT_ADMITTED: Final = (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID)
"""Said to whoever is not, or no longer, the member of the generation that it claims to be."""

# --- versions -----------------------------------------------------------------------------------------------------------------------

TWO_STEP_JOIN_SINCE: Final = 4
"""JoinGroup: whoever has no member id yet is given one first, by MEMBER_ID_REQUIRED, and starts nothing (KIP-394)."""

LEADER_TOLD_SINCE: Final = 9
"""JoinGroup: a leader that was replaced within a generation is told that it leads (KIP-814)."""

HEARTBEAT_VALIDATES_SINCE: Final = 3
"""Heartbeat: exists since brokers 2.3, which check member and generation before the state."""

INSTANCE_SINCE: Final = {OFFSET_COMMIT: 7, JOIN_GROUP: 5, HEARTBEAT: HEARTBEAT_VALIDATES_SINCE, SYNC_GROUP: 3}
"""API → first version whose request carries group.instance.id (KIP-345)."""
