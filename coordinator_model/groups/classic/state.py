"""The life of a classic group, as somebody sees it who watches the wire.

The coordinator moves a group through Empty, PreparingRebalance, CompletingRebalance and Stable. None of these moves is a frame. A join
phase begins when a timer fires or a request arrives, and ends inside the coordinator; what crosses the wire are the answers, and they
cross it later, on many connections, in any order. Three traps follow.

*A late answer tells of the past.* The success of a SyncGroup may be captured after another member was already told to rejoin, so
"in sync" must not undo "preparing". Within one generation a group only moves forward: completing, stable, preparing. It never
returns from preparing to stable without a new generation; where it seems to, what looked like the start of a join phase was none. The
table below says so, and whoever feeds it has to drop answers that belong to an older generation than the newest one proven.

*A heartbeat's success does not tell Stable from CompletingRebalance*: brokers since 2.6.1 answer it alike in both.

*Silence is not emptiness.* A group whose members vanished without a LeaveGroup is Empty only after their session timeouts, which
nobody announces.

The estimate serves dashboards, and says who seems to have started a rebalance (R-06, R-07) or been evicted early (T-03), which are
heuristics. No finding that is confirmed or certain rests on it: those rest on generations, on requests that the coordinator holds, and on
:attr:`Round.unsettled_us`: whether any frame since a generation was completed may have begun another join phase.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The coordinator's names, as DescribeGroups gives them, and one for "not known yet"."""

    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Seen(StrEnum):
    """What the wire tells about the state, newest generation only."""

    JOIN_TRIGGERS = "a JoinGroup that starts a join phase"  #: a new member, the leader, or changed protocols
    TOLD_TO_REJOIN = "REBALANCE_IN_PROGRESS at the current generation"
    JOINED = "a JoinGroup success at a new generation"
    SYNCED = "a SyncGroup success at the current generation"
    HEARTBEAT_OK = "a Heartbeat success at the current generation"
    STILL_SERVED = "the same, asked long after a join phase seemed to start"  #: and nobody waits for it to end
    MEMBER_GONE = "a member left or its session ran out, others remain"
    LAST_MEMBER_GONE = "the last member left or its session ran out"
    DELETED = "a DeleteGroups success"
    LOST_SIGHT = "a failover, or frames that were not captured"


UNSETTLING: Final = frozenset({Seen.JOIN_TRIGGERS, Seen.TOLD_TO_REJOIN, Seen.MEMBER_GONE, Seen.LAST_MEMBER_GONE, Seen.DELETED})
"""After any of these the newest generation may not be the last word."""

SETTLING: Final = frozenset({Seen.JOINED, Seen.STILL_SERVED})
"""These show that it is."""

_U, _E, _P, _K, _S, _D = State.UNKNOWN, State.EMPTY, State.PREPARING, State.COMPLETING, State.STABLE, State.DEAD

#: state → what was seen → state. Read a row as: in this state, having seen that, the group is now there.
TRANSITIONS: Final[dict[State, dict[Seen, State]]] = {
    _U: {
        Seen.JOIN_TRIGGERS: _P,
        Seen.TOLD_TO_REJOIN: _P,
        Seen.JOINED: _K,
        Seen.SYNCED: _S,
        Seen.HEARTBEAT_OK: _S,  # or completing: the far shorter of the two
        Seen.STILL_SERVED: _S,
        Seen.MEMBER_GONE: _U,
        Seen.LAST_MEMBER_GONE: _U,  # others may exist that were never seen
        Seen.DELETED: _D,
        Seen.LOST_SIGHT: _U,
    },
    _E: {
        Seen.JOIN_TRIGGERS: _P,
        Seen.TOLD_TO_REJOIN: _P,
        Seen.JOINED: _K,
        Seen.SYNCED: _S,
        Seen.HEARTBEAT_OK: _S,
        Seen.STILL_SERVED: _S,
        Seen.MEMBER_GONE: _E,
        Seen.LAST_MEMBER_GONE: _E,
        Seen.DELETED: _D,
        Seen.LOST_SIGHT: _U,
    },
    _P: {
        Seen.JOIN_TRIGGERS: _P,
        Seen.TOLD_TO_REJOIN: _P,
        Seen.JOINED: _K,
        Seen.SYNCED: _P,  # the success of the round before, captured late
        Seen.HEARTBEAT_OK: _P,  # likewise
        Seen.STILL_SERVED: _S,
        Seen.MEMBER_GONE: _P,
        Seen.LAST_MEMBER_GONE: _E,
        Seen.DELETED: _D,
        Seen.LOST_SIGHT: _U,
    },
    _K: {
        Seen.JOIN_TRIGGERS: _P,
        Seen.TOLD_TO_REJOIN: _P,
        Seen.JOINED: _K,  # a round that nobody synced, and the next one
        Seen.SYNCED: _S,
        Seen.HEARTBEAT_OK: _K,
        Seen.STILL_SERVED: _K,
        Seen.MEMBER_GONE: _P,
        Seen.LAST_MEMBER_GONE: _E,
        Seen.DELETED: _D,
        Seen.LOST_SIGHT: _U,
    },
    _S: {
        Seen.JOIN_TRIGGERS: _P,
        Seen.TOLD_TO_REJOIN: _P,
        Seen.JOINED: _K,
        Seen.SYNCED: _S,
        Seen.HEARTBEAT_OK: _S,
        Seen.STILL_SERVED: _S,
        Seen.MEMBER_GONE: _P,
        Seen.LAST_MEMBER_GONE: _E,
        Seen.DELETED: _D,
        Seen.LOST_SIGHT: _U,
    },
    _D: {
        Seen.JOIN_TRIGGERS: _P,
        Seen.TOLD_TO_REJOIN: _P,
        Seen.JOINED: _K,
        Seen.SYNCED: _S,
        Seen.HEARTBEAT_OK: _S,
        Seen.STILL_SERVED: _S,
        Seen.MEMBER_GONE: _D,
        Seen.LAST_MEMBER_GONE: _D,
        Seen.DELETED: _D,
        Seen.LOST_SIGHT: _U,
    },
}
