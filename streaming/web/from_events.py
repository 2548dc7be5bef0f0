"""A group's record, made of its events where the groups topic has none: a recording of a replay holds events and findings alone.

It says no more than events do: members of whom none came are not in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from coordinator_model.events import State
from coordinator_model.wording import iso_utc
from streaming.published.swim_lanes import Doing, SwimLanes, swim_lanes

if TYPE_CHECKING:
    from streaming.published.page_state import GroupPast
    from streaming.published.records import Json

_STATE_OF_DOING: Final = {
    Doing.JOINING: "rejoining",
    Doing.SYNCING: "waits for its assignment",
    Doing.CONSUMING: "in sync",
    Doing.ASKED_TO_REJOIN: "not rejoined",
    Doing.GIVING_UP: "gives partitions up",
    Doing.AWAY: "away",
    Doing.SILENT: "silent",
    Doing.UNKNOWN: "not known",
}


def record_of(past: GroupPast) -> Json | None:
    """Return the newest record of a group, else one made of its events; None if there are none."""
    if past.content is not None or not past.events:
        return past.content
    if past.made[0] != past.version:
        past.made = (past.version, _made(past))
    return past.made[1]


def _made(past: GroupPast) -> Json:
    state = past.changes[-1] if past.changes else None
    swim = swim_lanes(past)
    newest = past.events[-1]
    return {
        "cluster": past.key[0],
        "group": past.key[1],
        "group_type": newest.group_type,
        "state": state.state if state else State.UNKNOWN.value,
        "state_since": iso_utc(round(state.at_s * 1e6)) if state else None,
        "learning": None if state else "no event tells of its state yet",
        "coordinator": None,
        "generation": newest.generation,
        "leader": None,
        "protocol": None,
        "members": _members(swim),
        "waits_for": [lane.member_id or lane.key for lane in swim.waited_for(state.state)] if state else [],
        "rebalances": {},
        "last_join_ms": None,
        "last_sync_ms": None,
    }


def _members(swim: SwimLanes) -> list[dict[str, Any]]:
    return [
        {
            "member_id": lane.member_id or lane.key,
            "instance_id": lane.instance_id,
            "client_id": lane.name,
            "client_address": lane.client_address,
            "client_software": None,
            "state": _STATE_OF_DOING[lane.bars[-1].doing],
            "last_frame": None,
            "last_frame_at": None,
        }
        for lane in swim.lanes.values()
        if lane.is_open
    ]
