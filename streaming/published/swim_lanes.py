"""The course of each member, made out of a group's events: bars for what it did, marks for what happened to it, and who waited for whom.

A static member keeps its lane through all its ids. Nothing is drawn without an event: where the past begins in the middle, a bar
begins with the first event, and where the capture was blind nothing is said at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model import events
from coordinator_model.groups.classic.data import CLASSIC
from streaming.published.records import Json, moment, moment_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streaming.published.page_state import GroupPast


class Doing(StrEnum):
    """What a member does, in the words of its bar."""

    JOINING = "joining: waits for the others"
    SYNCING = "waits for its assignment"
    CONSUMING = "consuming"
    ASKED_TO_REJOIN = "told to rejoin, and has not"
    GIVING_UP = "told to give partitions up, and has not"
    AWAY = "away: a static member that left for a while"
    SILENT = "silent: no frame"
    UNKNOWN = "not known: its connection closed"


class MarkKind(StrEnum):
    """What a mark means."""

    LEFT = "left"
    FENCED = "refused"
    SESSION_OVER = "session over"
    REPLACED = "replaced by another process"
    DROPPED = "removed, because it did not rejoin"
    CLOSED = "connection closed"
    BEGAN = "began the rebalance"


_BEGINS: Final[dict[type[events.GroupEvent], Doing]] = {
    events.MemberJoined: Doing.JOINING,
    events.MemberSynced: Doing.SYNCING,
    events.MemberServed: Doing.CONSUMING,
    events.MemberToldToRejoin: Doing.ASKED_TO_REJOIN,
    events.MemberToldToGiveUp: Doing.GIVING_UP,
    events.GaveUp: Doing.CONSUMING,
    events.MemberAway: Doing.AWAY,
    events.ConnectionClosed: Doing.UNKNOWN,
}
_MARKS: Final[dict[type[events.GroupEvent], MarkKind]] = {
    events.MemberLeft: MarkKind.LEFT,
    events.MemberFenced: MarkKind.FENCED,
    events.SessionOver: MarkKind.SESSION_OVER,
    events.MemberDropped: MarkKind.DROPPED,
    events.MemberReplaced: MarkKind.REPLACED,
    events.ConnectionClosed: MarkKind.CLOSED,
    events.RebalanceBegan: MarkKind.BEGAN,
}
_ENDS: Final = (events.MemberLeft, events.MemberFenced, events.MemberDropped, events.SessionOver)
_DOING_OF_STATE: Final = {  # of a member in the groups topic
    "rejoining": Doing.JOINING,
    "not rejoined": Doing.ASKED_TO_REJOIN,
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
    """What happened to a member at a moment."""

    what: MarkKind
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

    @property
    def closed_s(self) -> float:
        """When its connection closed, if nothing of it is known since; else 0."""
        return self.bars[-1].from_s if self.is_open and self.bars[-1].doing is Doing.UNKNOWN else 0.0

    def goes_on(self, at_s: float) -> None:
        """Continue the bar before its connection closed, if it sent a frame since."""
        if 0.0 < self.closed_s < at_s:
            self.bars.pop()
            self.bars[-1] = self.bars[-1]._replace(to_s=None)

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

    def by_member(self) -> dict[str | None, Lane]:
        return {lane.member_id: lane for lane in self.lanes.values() if lane.member_id}

    def waited_for(self, state: str) -> list[Lane]:
        """Return the lanes of those for whom others wait in a state of the group, as far as their bars show it."""
        lasting = [lane for lane in self.lanes.values() if lane.is_open]
        if state == events.RECONCILING:
            return [lane for lane in lasting if lane.bars[-1].doing is Doing.GIVING_UP]
        others = [lane for lane in lasting if lane.bars[-1].doing is not Doing.JOINING]
        return others if state == events.State.PREPARING and len(others) < len(lasting) else []


def swim_lanes(past: GroupPast) -> SwimLanes:
    """Return the lanes of all that is known of a group, in the order in which the members came."""
    swim = SwimLanes()
    for event in past.events:
        _take(swim, event)
    if past.content is not None:
        _take_members(swim, past.content)
    elif past.changes:
        _wait_now(swim, {lane.key for lane in swim.waited_for(past.changes[-1].state)})
    return swim


def _take(swim: SwimLanes, event: events.GroupEvent) -> None:
    match event:
        case events.RebalanceFinished():
            _take_finished(swim, event)
            if event.ended in {events.NO_MEMBERS, events.DELETED}:
                _end_of_all(swim, event.at_s)
        case events.GroupEmptied():
            _end_of_all(swim, event.at_s)
        case events.PhaseEnded():
            _end_of_those_without_id(swim, event.at_s)
        case events.SightLost():
            swim.blind.append((event.at_s, None))
        case events.SightRegained():
            if swim.blind and swim.blind[-1][1] is None:
                swim.blind[-1] = (swim.blind[-1][0], event.at_s)
        case events.MemberEvent() | events.RebalanceBegan():
            _take_of_member(swim, event)


def _take_of_member(swim: SwimLanes, event: events.MemberEvent | events.RebalanceBegan) -> None:
    begins, at_s = _BEGINS.get(type(event)), event.at_s
    closed = isinstance(event, events.ConnectionClosed)
    lane = _lane_of(swim, event, holds=begins is not None and not closed)
    if lane is None:
        return
    silent_s = moment_of(event.silent_since_us) if isinstance(event, events.SessionOver) else None
    is_holder = event.member_id in {None, lane.member_id}  # else another process took the instance over
    if silent_s is not None and is_holder:
        lane.begin(Doing.SILENT, max(min(silent_s, at_s), lane.closed_s), event.id)
    elif closed:
        if lane.is_open and is_holder:
            lane.begin(Doing.UNKNOWN, at_s, event.id)
    elif isinstance(event, events.GaveUp) and not event.keeps:
        lane.begin(Doing.SYNCING, at_s, event.id)
    elif begins is not None:
        lane.begin(begins, at_s, event.id)
    if type(event) in _MARKS:
        lane.marks.append(Mark(_MARKS[type(event)], at_s, event.id))
    if isinstance(event, _ENDS) and is_holder:
        lane.end(at_s)


def _end_of_all(swim: SwimLanes, at_s: float) -> None:
    """No member is left, but a static one that is away keeps its place."""
    for lane in swim.lanes.values():
        if lane.is_open and lane.bars[-1].doing is not Doing.AWAY:
            lane.end(at_s)


def _end_of_those_without_id(swim: SwimLanes, at_s: float) -> None:
    """Their JoinGroups were answered: from now on they have ids, and lanes of their own."""
    for lane in swim.lanes.values():
        if lane.member_id is None and lane.instance_id is None:
            lane.end(at_s)


def _take_finished(swim: SwimLanes, event: events.RebalanceFinished) -> None:
    """The member waited for longest, by all who had come before; in a group with epochs, the one that gave up last by those without any."""
    lanes = swim.by_member()
    if event.group_type != CLASSIC:
        _take_handed_over(swim, lanes, event.members)
        return
    came = {
        lanes[member.member_id].key: joined_s
        for member in event.members
        if member.member_id in lanes and (joined_s := moment_of(member.joined_us))
    }
    longest = next((one.member_id for one in event.waited_for if one.why == events.NOT_REJOINED), None)
    last = lanes.get(longest or "")
    waiting = frozenset(key for key, at_s in came.items() if last is not None and at_s < came.get(last.key, 0.0))
    if last is not None and waiting:
        swim.waits.append(Wait(came[last.key], waiting, frozenset({last.key})))


def _take_handed_over(swim: SwimLanes, lanes: Mapping[str | None, Lane], members: Iterable[events.TookPart]) -> None:
    gave_up = {member.member_id: at_s for member in members if (at_s := moment_of(member.acknowledged_us)) is not None}
    last = max(gave_up, key=lambda id_: gave_up[id_], default="")
    if last not in lanes:
        return
    at_s = gave_up[last]
    waited = (
        lanes[member.member_id].key
        for member in members
        if member.member_id in lanes
        and (joined_s := moment_of(member.joined_us)) is not None
        and (served_s := moment_of(member.served_us)) is not None
        and joined_s < at_s <= served_s
    )
    waiting = frozenset(waited) - {lanes[last].key}
    if waiting:
        swim.waits.append(Wait(at_s, waiting, frozenset({lanes[last].key})))


def _take_members(swim: SwimLanes, content: Json) -> None:
    """Members of whom no event is known any more, or none was published; and who waits for whom now."""
    since_s = moment(content["state_since"]) or moment(content.get("updated_at")) or 0.0
    for member in content["members"]:
        named = {name: member[name] for name in events.NamedMember.__struct_fields__}
        lane = _lane_of(swim, events.NamedMember(**named))
        if lane is not None and lane.is_open:
            lane.goes_on(moment(member["last_frame_at"]) or 0.0)
        elif lane is not None:
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


def _lane_of(
    swim: SwimLanes, member: events.MemberEvent | events.RebalanceBegan | events.NamedMember, *, holds: bool = True
) -> Lane | None:
    """Return the lane of a member; a new one if it has none.

    :param holds: it is the one that a static instance has now. Of one that is refused or gone that is not said.
    """
    instance, id_, client = member.instance_id, member.member_id, member.client_id
    name = name_of(member)
    if name is None:
        return None
    key = f"i\x00{instance}" if instance else f"m\x00{id_}" if id_ else f"c\x00{client}"
    lane = swim.lanes.get(key)
    if lane is None:
        lane = swim.lanes[key] = Lane(key, name, id_, instance, None)
    if holds:
        lane.member_id = id_ or lane.member_id
    lane.client_address = member.client_address or lane.client_address
    return lane
