"""The states of a classic group, as estimated from the frames on the wire.

The coordinator moves a group through Empty, PreparingRebalance, CompletingRebalance and Stable. None of these moves is a frame. A join
phase begins when a timer fires or a request arrives, and ends inside the coordinator. The wire carries only the answers: later, on many
connections, in any order. This has three consequences.

*A late response describes the past.* A SyncGroup success may be captured after another member already got REBALANCE_IN_PROGRESS, so
"in sync" must not undo "preparing". Within one generation a group only moves forward: completing, stable, preparing. It never returns from
preparing to stable without a new generation. If it seems to, no join phase had begun. The table below encodes this, and its caller must
drop responses of generations older than the newest proven one.

*A heartbeat's success does not distinguish Stable from CompletingRebalance*: brokers since 2.6.1 answer both alike.

*Silence is not emptiness.* A group whose members vanished without a LeaveGroup is Empty only after their session timeouts, and no frame
shows their end.

Dashboards show the estimate. Heuristic findings use it: who seems to have started a rebalance (R-06, R-07) or been evicted early (T-03). No
confirmed or certain finding rests on it. Those rest on generations, on requests that the coordinator holds, and on
``Generation.unsettled_us``: whether any frame since a generation was completed may have begun another join phase.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The coordinator's states, as in DescribeGroups, and one for "not known yet"."""

    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Observation(StrEnum):
    """What the wire shows about the state, for the newest generation only."""

    JOIN_TRIGGERS = "a JoinGroup that starts a join phase"  #: a new member, the leader, or changed protocols
    TOLD_TO_REJOIN = "REBALANCE_IN_PROGRESS at the current generation"
    JOINED = "a JoinGroup success at a new generation"
    SYNCED = "a SyncGroup success at the current generation"
    HEARTBEAT_OK = "a Heartbeat success at the current generation"
    STILL_SERVED = "the same, asked long after a join phase seemed to start"  #: and no JoinGroup waits for it to end
    MEMBER_GONE = "a member left or its session ran out, others remain"
    LAST_MEMBER_GONE = "the last member left or its session ran out"
    DELETED = "a DeleteGroups success"
    LOST_SIGHT = "a failover, or frames that were not captured"


UNSETTLING: Final = frozenset(
    {
        Observation.JOIN_TRIGGERS,
        Observation.TOLD_TO_REJOIN,
        Observation.MEMBER_GONE,
        Observation.LAST_MEMBER_GONE,
        Observation.DELETED,
    }
)
"""After any of these another join phase may have begun."""

SETTLING: Final = frozenset({Observation.JOINED, Observation.STILL_SERVED})
"""These show that none has."""

_U, _E, _P, _K, _S, _D = State.UNKNOWN, State.EMPTY, State.PREPARING, State.COMPLETING, State.STABLE, State.DEAD

#: state → observation → next state
TRANSITIONS: Final[dict[State, dict[Observation, State]]] = {
    _U: {
        Observation.JOIN_TRIGGERS: _P,
        Observation.TOLD_TO_REJOIN: _P,
        Observation.JOINED: _K,
        Observation.SYNCED: _S,
        Observation.HEARTBEAT_OK: _S,  # or completing: the far shorter of the two
        Observation.STILL_SERVED: _S,
        Observation.MEMBER_GONE: _U,
        Observation.LAST_MEMBER_GONE: _U,  # members may exist that were never captured
        Observation.DELETED: _D,
        Observation.LOST_SIGHT: _U,
    },
    _E: {
        Observation.JOIN_TRIGGERS: _P,
        Observation.TOLD_TO_REJOIN: _P,
        Observation.JOINED: _K,
        Observation.SYNCED: _S,
        Observation.HEARTBEAT_OK: _S,
        Observation.STILL_SERVED: _S,
        Observation.MEMBER_GONE: _E,
        Observation.LAST_MEMBER_GONE: _E,
        Observation.DELETED: _D,
        Observation.LOST_SIGHT: _U,
    },
    _P: {
        Observation.JOIN_TRIGGERS: _P,
        Observation.TOLD_TO_REJOIN: _P,
        Observation.JOINED: _K,
        Observation.SYNCED: _P,  # the success of the generation before, captured late
        Observation.HEARTBEAT_OK: _P,  # also captured late
        Observation.STILL_SERVED: _S,
        Observation.MEMBER_GONE: _P,
        Observation.LAST_MEMBER_GONE: _E,
        Observation.DELETED: _D,
        Observation.LOST_SIGHT: _U,
    },
    _K: {
        Observation.JOIN_TRIGGERS: _P,
        Observation.TOLD_TO_REJOIN: _P,
        Observation.JOINED: _K,  # the next generation after one without a SyncGroup success
        Observation.SYNCED: _S,
        Observation.HEARTBEAT_OK: _K,
        Observation.STILL_SERVED: _K,
        Observation.MEMBER_GONE: _P,
        Observation.LAST_MEMBER_GONE: _E,
        Observation.DELETED: _D,
        Observation.LOST_SIGHT: _U,
    },
    _S: {
        Observation.JOIN_TRIGGERS: _P,
        Observation.TOLD_TO_REJOIN: _P,
        Observation.JOINED: _K,
        Observation.SYNCED: _S,
        Observation.HEARTBEAT_OK: _S,
        Observation.STILL_SERVED: _S,
        Observation.MEMBER_GONE: _P,
        Observation.LAST_MEMBER_GONE: _E,
        Observation.DELETED: _D,
        Observation.LOST_SIGHT: _U,
    },
    _D: {
        Observation.JOIN_TRIGGERS: _P,
        Observation.TOLD_TO_REJOIN: _P,
        Observation.JOINED: _K,
        Observation.SYNCED: _S,
        Observation.HEARTBEAT_OK: _S,
        Observation.STILL_SERVED: _S,
        Observation.MEMBER_GONE: _D,
        Observation.LAST_MEMBER_GONE: _D,
        Observation.DELETED: _D,
        Observation.LOST_SIGHT: _U,
    },
}
