"""The states of a classic group, as estimated from the frames on the wire.

The coordinator moves a group through Empty, PreparingRebalance, CompletingRebalance and Stable. None of these moves is a frame. A join
phase begins when a timer fires or a request arrives, and ends inside the coordinator. The wire carries only the answers: later, on many
connections, in any order. This has three consequences.

*A late response describes the past.* A SyncGroup success may be captured after another member already got REBALANCE_IN_PROGRESS, so
"in sync" must not undo "preparing". Within one generation a group only moves forward: completing, stable, preparing. It never returns from
preparing to stable without a new generation. If it seems to, no join phase had begun. The table below shows this; responses of
generations older than the newest proven one do not count.

*What an answer shows is in the protocol's table*: the phases in which a row gives it to a member at its group's generation. The estimate
stays where it is if that is among them, and else goes to the last of them: that one lasts longest.

*A heartbeat's success does not distinguish Stable from CompletingRebalance*: brokers since 2.6.1 answer both alike.

*Silence is not emptiness.* A group whose members vanished without a LeaveGroup is Empty only after their session timeouts, and no frame
shows their end.

Dashboards show the estimate. Heuristic findings use it: who seems to have started a rebalance (R-06, R-07). No confirmed or
certain finding rests on it. Those rest on generations, on requests that the coordinator holds, and on ``Generation.unsettled_us``: whether
any frame since a generation was completed may have begun another join phase.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from coordinator_model.events import State
from coordinator_model.groups.protocol.classic import TABLE, Generation, Sender
from coordinator_model.groups.protocol.table import shown
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    NON_EMPTY_GROUP,
    NONE,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
)


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


_IN_ORDER: Final = {"K": State.COMPLETING, "S": State.STABLE, "P": State.PREPARING}
"""Phase of the table → state, as they follow each other within a generation."""

_SINCE: Final = TABLE["H12"].releases[1]  #: releases before answered a Heartbeat in CompletingRebalance otherwise, for a moment


def _given(api_key: int, version: int, error: int, *, held: bool | None = None) -> tuple[State, ...]:
    """Return the states in which a member at its group's generation gets this answer."""
    found = {
        way.phase
        for way in shown(TABLE, api_key, version, error, _SINCE)
        if way.sender is Sender.MEMBER and way.generation is Generation.SAME and held in {None, way.row.ends_hold}
    }
    return tuple(state for phase, state in _IN_ORDER.items() if phase in found)


SHOWN: Final[dict[Observation, tuple[State, ...]]] = {
    Observation.TOLD_TO_REJOIN: _given(HEARTBEAT, 4, REBALANCE_IN_PROGRESS),
    Observation.JOINED: _given(JOIN_GROUP, 9, NONE, held=True),
    Observation.SYNCED: _given(SYNC_GROUP, 5, NONE),
    Observation.HEARTBEAT_OK: _given(HEARTBEAT, 4, NONE),
    Observation.STILL_SERVED: _given(HEARTBEAT, 4, NONE),
}
"""Answer → the states that it shows, by the protocol's table."""

WITH_MEMBERS: Final = frozenset(_IN_ORDER[way.phase] for way in shown(TABLE, DELETE_GROUPS, 2, NON_EMPTY_GROUP, _SINCE))

_PERHAPS_LATE: Final = frozenset({Observation.SYNCED, Observation.HEARTBEAT_OK})
_MOVES: Final = {
    Observation.JOIN_TRIGGERS: State.PREPARING,
    Observation.DELETED: State.DEAD,
    Observation.LOST_SIGHT: State.UNKNOWN,
}


def after(state: State, seen: Observation) -> State:
    """Return the state after an observation."""
    shown = SHOWN.get(seen)
    if shown is not None:
        stays = state in shown or (state is State.PREPARING and seen in _PERHAPS_LATE)
        return state if stays else shown[-1]
    if seen is Observation.MEMBER_GONE:
        return State.PREPARING if state in WITH_MEMBERS else state
    if seen is Observation.LAST_MEMBER_GONE:
        return State.EMPTY if state in WITH_MEMBERS else state  # else members may exist that were never captured
    return _MOVES[seen]


def unsettles(seen: Observation) -> bool:
    """Return True if another join phase may have begun: no group that was in sync stays so."""
    return after(State.STABLE, seen) not in _IN_SYNC


def settles(seen: Observation) -> bool:
    """Return True if none has begun that is not over: even a group in a join phase is past it."""
    return after(State.PREPARING, seen) in _IN_SYNC


_IN_SYNC: Final = frozenset({State.COMPLETING, State.STABLE})
