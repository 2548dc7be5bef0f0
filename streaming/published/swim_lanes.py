"""The course of each member, made out of a group's events: bars for what it did, marks for what befell it, and who waited for whom.

A static member keeps its lane through all its ids. Nothing is drawn that no event tells: where the past begins in the middle, a bar
begins with the first event, and where the capture was blind nothing is said at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.events import RECONCILING, State
from streaming.published.records import Json, member_name, moment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streaming.published.page_state import GroupPast


class Doing(StrEnum):
    """What a member does, in the words of its bar."""

    JOINING = "joining: waits for the others"
    SYNCING = "waits for its assignment"
    CONSUMING = "consuming"
    TOLD = "told to rejoin, and has not"
    GIVING_UP = "told to give partitions up, and has not"
    AWAY = "away: a static member that left for a while"
    SILENT = "silent: no frame"


class Befell(StrEnum):
    """What a mark tells."""

    LEFT = "left"
    FENCED = "refused"
    SESSION_OVER = "session over"
    REPLACED = "replaced by another process"
    DROPPED = "removed, because it did not rejoin"
    CLOSED = "connection closed"
    BEGAN = "began the rebalance"


_BEGINS: Final = {
    "member_joined": Doing.JOINING,
    "member_synced": Doing.SYNCING,
    "member_served": Doing.CONSUMING,
    "told_to_rejoin": Doing.TOLD,
    "told_to_give_up": Doing.GIVING_UP,
    "gave_up": Doing.CONSUMING,
    "member_away": Doing.AWAY,
    "member_silent": Doing.SILENT,
}
_MARKS: Final = {
    "member_left": Befell.LEFT,
    "member_fenced": Befell.FENCED,
    "session_over": Befell.SESSION_OVER,
    "member_dropped": Befell.DROPPED,
    "member_replaced": Befell.REPLACED,
    "connection_closed": Befell.CLOSED,
    "rebalance_began": Befell.BEGAN,
}
_ENDS: Final = frozenset({"member_left", "member_fenced", "member_dropped", "session_over"})
_DOING_OF_STATE: Final = {  # of a member in the groups topic
    "rejoining": Doing.JOINING,
    "not rejoined": Doing.TOLD,
    "waits for its assignment": Doing.SYNCING,
    "joined": Doing.SYNCING,
    "in sync": Doing.CONSUMING,
    "gives partitions up": Doing.GIVING_UP,
    "not told of the newest epoch": Doing.CONSUMING,
}


class Bar(NamedTuple):
    """What a member did for a while."""

    doing: Doing
    from_s: float
    to_s: float | None  #: None: still
    event: str | None  #: id of the event with which it began


class Mark(NamedTuple):
    """What befell a member at a moment."""

    what: Befell
    at_s: float
    event: str


class Wait(NamedTuple):
    """Some members wait for others: a line across their lanes."""

    at_s: float | None  #: when it ended; None: they still wait
    waiting: frozenset[str]  #: keys of lanes
    waited_for: frozenset[str]


@dataclass(slots=True, eq=False)
class Lane:
    """One member, or one static instance through all its ids."""

    key: str
    name: str
    member_id: str | None
    instance_id: str | None
    client_address: str | None
    bars: list[Bar] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return bool(self.bars) and self.bars[-1].to_s is None

    @property
    def first_s(self) -> float:
        return min([bar.from_s for bar in self.bars[:1]] + [mark.at_s for mark in self.marks[:1]], default=0.0)

    @property
    def last_s(self) -> float | None:
        """When something of it is last known; None while a bar lasts."""
        if self.is_open:
            return None
        return max([bar.to_s or 0.0 for bar in self.bars[-1:]] + [mark.at_s for mark in self.marks[-1:]], default=0.0)

    def begin(self, doing: Doing, at_s: float, event: str | None) -> None:
        self.end(at_s)
        self.bars.append(Bar(doing, at_s, None, event))

    def end(self, at_s: float) -> None:
        if self.is_open:
            last = self.bars[-1]
            self.bars[-1] = last._replace(to_s=max(at_s, last.from_s))


@dataclass(slots=True, eq=False)
class SwimLanes:
    """All of a group."""

    lanes: dict[str, Lane] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    blind: list[tuple[float, float | None]] = field(default_factory=list)  #: from, and to; None: still

    def by_member(self) -> dict[str, Lane]:
        return {lane.member_id: lane for lane in self.lanes.values() if lane.member_id}


def swim_lanes(past: GroupPast) -> SwimLanes:
    """Return the lanes of all that is known of a group, in the order in which the members came."""
    swim = SwimLanes()
    for event in past.events:
        _take(swim, event)
    if past.content is not None:
        _take_members(swim, past.content)
    elif past.changes and past.changes[-1].state == RECONCILING:
        _wait_now(swim, {lane.key for lane in swim.lanes.values() if lane.is_open and lane.bars[-1].doing is Doing.GIVING_UP})
    elif past.changes and past.changes[-1].state == State.PREPARING:
        _wait_now(swim, {lane.key for lane in swim.lanes.values() if lane.is_open and lane.bars[-1].doing is not Doing.JOINING})
    return swim


def _take(swim: SwimLanes, event: Json) -> None:
    kind, at_s = event["kind"], event["at_s"]
    if kind == "rebalance_finished":
        _take_finished(swim, event)
    elif kind == "phase_ended":
        _end_of_those_without_id(swim, at_s)
    elif kind == "sight_lost":
        swim.blind.append((at_s, None))
    elif kind == "sight_regained":
        if swim.blind and swim.blind[-1][1] is None:
            swim.blind[-1] = (swim.blind[-1][0], at_s)
    elif kind in _BEGINS or kind in _MARKS:
        lane = _lane_of(swim, event, holds=kind in _BEGINS)
        if lane is None:
            return
        silent_s = moment(event.get("silent_since"))
        is_holder = event.get("member_id") in {None, lane.member_id}  # else another process took the instance over
        if silent_s is not None and is_holder:
            lane.begin(Doing.SILENT, min(silent_s, at_s), event["id"])
        elif kind == "gave_up" and event.get("keeps") == 0:
            lane.begin(Doing.SYNCING, at_s, event["id"])
        elif kind in _BEGINS:
            lane.begin(_BEGINS[kind], at_s, event["id"])
        if kind in _MARKS:
            lane.marks.append(Mark(_MARKS[kind], at_s, event["id"]))
        if kind in _ENDS and is_holder:
            lane.end(at_s)


def _end_of_those_without_id(swim: SwimLanes, at_s: float) -> None:
    """Their JoinGroups were answered: from now on they have ids, and lanes of their own."""
    for lane in swim.lanes.values():
        if lane.member_id is None and lane.instance_id is None:
            lane.end(at_s)


def _take_finished(swim: SwimLanes, event: Json) -> None:
    """Whoever was waited for longest, by all who had come before; in a group with epochs, whoever gave up last by those without any."""
    lanes = swim.by_member()
    if "acknowledged_at" in next(iter(event.get("members") or ({},))):
        _take_handed_over(swim, lanes, event["members"])
        return
    came = {
        lanes[member["member_id"]].key: joined_s
        for member in event.get("members") or ()
        if member.get("member_id") in lanes and (joined_s := moment(member.get("joined_at")))
    }
    longest = next((one["member_id"] for one in event.get("waited_for") or () if one["why"] == "not rejoined"), None)
    last = lanes.get(longest or "")
    waiting = frozenset(key for key, at_s in came.items() if last is not None and at_s < came.get(last.key, 0.0))
    if last is not None and waiting:
        swim.waits.append(Wait(came[last.key], waiting, frozenset({last.key})))


def _take_handed_over(swim: SwimLanes, lanes: Mapping[str, Lane], members: list[Json]) -> None:
    gave_up = {member["member_id"]: at_s for member in members if (at_s := moment(member.get("acknowledged_at"))) is not None}
    last = max(gave_up, key=lambda id_: gave_up[id_], default="")
    if last not in lanes:
        return
    at_s = gave_up[last]
    waited = (
        lanes[member["member_id"]].key
        for member in members
        if member["member_id"] in lanes
        and (joined_s := moment(member.get("joined_at"))) is not None
        and (served_s := moment(member.get("served_at"))) is not None
        and joined_s < at_s <= served_s
    )
    waiting = frozenset(waited) - {lanes[last].key}
    if waiting:
        swim.waits.append(Wait(at_s, waiting, frozenset({lanes[last].key})))


def _take_members(swim: SwimLanes, content: Json) -> None:
    """Members of whom no event is known any more, or none was published; and who waits for whom now."""
    since_s = moment(content["state_since"]) or moment(content.get("updated_at")) or 0.0
    for member in content["members"]:
        lane = _lane_of(swim, member)
        if lane is not None and not lane.is_open:
            doing = _DOING_OF_STATE.get(member["state"])
            if doing is not None and (lane.last_s or 0.0) <= since_s:
                lane.begin(doing, since_s, None)
    _wait_now(swim, {lane.key for lane in map(swim.by_member().get, content["waits_for"]) if lane is not None})


def _wait_now(swim: SwimLanes, waited_for: set[str]) -> None:
    waiting = frozenset(
        lane.key
        for lane in swim.lanes.values()
        if lane.is_open and lane.bars[-1].doing in {Doing.JOINING, Doing.SYNCING} and lane.key not in waited_for
    )
    if waited_for and waiting:
        swim.waits.append(Wait(None, waiting, frozenset(waited_for)))


def _lane_of(swim: SwimLanes, member: Json, *, holds: bool = True) -> Lane | None:
    """Return the lane of a member; a new one if it has none.

    :param holds: it is the one that a static instance has now. Of one that is refused or gone that is not said.
    """
    instance, id_, client = member.get("instance_id"), member.get("member_id"), member.get("client_id")
    if not (instance or id_ or client):
        return None
    key = f"i\x00{instance}" if instance else f"m\x00{id_}" if id_ else f"c\x00{client}"
    lane = swim.lanes.get(key)
    if lane is None:
        name = member_name({"instance_id": instance, "client_id": client, "member_id": id_})
        lane = swim.lanes[key] = Lane(key, name, id_, instance, None)
    if holds:
        lane.member_id = id_ or lane.member_id
    lane.client_address = member.get("client_address") or lane.client_address
    return lane
