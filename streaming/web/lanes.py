"""Lanes as they are drawn: bars, marks and lines at places, for the page and for whatever else shows a group's course."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streaming.published import sentences
from streaming.published.swim_lanes import Doing, MarkKind, swim_lanes
from streaming.web import drawing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streaming.published.page_state import GroupPast
    from streaming.published.swim_lanes import Lane, SwimLanes

AXIS_PX: Final = 20
GROUP_PX: Final = 34
LANE_PX: Final = 26

DOING_CLASSES: Final = {
    Doing.JOINING: "joining",
    Doing.SYNCING: "syncing",
    Doing.CONSUMING: "consuming",
    Doing.ASKED_TO_REJOIN: "told",
    Doing.GIVING_UP: "told",
    Doing.AWAY: "silent",
    Doing.SILENT: "silent",
    Doing.UNKNOWN: "silent",
}
MARK_CLASSES: Final = {
    MarkKind.LEFT: "left",
    MarkKind.FENCED: "fenced",
    MarkKind.SESSION_OVER: "over",
    MarkKind.REPLACED: "over",
    MarkKind.DROPPED: "dropped",
    MarkKind.CLOSED: "closed",
    MarkKind.BEGAN: "began",
}


class _Span(NamedTuple):
    """A bar as it is drawn."""

    x: float
    width: float
    kind: str
    text: str
    said: str
    event: str  #: id of its row; empty if it has none


@dataclass(frozen=True, slots=True)
class DrawnLanes:
    """A picture of a group's lanes: what its templates show, at heights in pixels and at parts of a hundred of its width."""

    height: int
    hidden: int  #: lanes for which others stand
    ticks: list[drawing.Tick]
    names: list[dict[str, Any]]
    states: list[_Span]
    lanes: list[dict[str, Any]]
    blind: list[tuple[float, float, str]]
    waits: list[dict[str, Any]]
    waits_now: list[dict[str, Any]]


def drawn(
    past: GroupPast, seen: drawing.Window, now_s: float, element_of: Mapping[str, str] | None = None, *, unfolded: bool = False
) -> DrawnLanes:
    """Draw what is seen of a group's lanes.

    :param element_of: for each event the id of its element, to which bars lead; None where no text shows the same.
    """
    swim = swim_lanes(past)
    rows = drawing.rows(swim, seen, unfolded=unfolded)
    top = AXIS_PX + GROUP_PX
    places = {row.lane.key: top + number * LANE_PX + LANE_PX // 2 for number, row in enumerate(rows)}
    return DrawnLanes(
        height=top + max(1, len(rows)) * LANE_PX + 6,
        hidden=sum(row.others for row in rows),
        ticks=seen.ticks(),
        names=_names(rows, unfolded=unfolded),
        states=_states(past, seen, "" if element_of is None else "rebalances"),
        lanes=[_lane(row, seen, now_s, element_of, y=top + number * LANE_PX) for number, row in enumerate(rows)],
        blind=_blind(past, swim, seen),
        waits=_waits(swim, seen, places),
        waits_now=_waits_now(swim, seen, places, now_s),
    )


def _lane_id(lane: Lane) -> str:
    return f"l{hashlib.blake2s(lane.key.encode(errors='surrogatepass'), digest_size=6).hexdigest()}"


def _lane(row: drawing.Row, seen: drawing.Window, now_s: float, element_of: Mapping[str, str] | None, *, y: int) -> dict[str, Any]:
    lane = row.lane
    spans = []
    for bar in lane.bars:
        if not seen.shows(bar.from_s, bar.to_s):
            continue
        x = seen.x(bar.from_s)
        end = drawing.FAR if bar.to_s is None else seen.x(bar.to_s)
        took = (now_s if bar.to_s is None else bar.to_s) - bar.from_s
        lasts = "" if bar.to_s is None else f", {sentences.milliseconds(took * 1000)}"
        said = f"{sentences.short(lane.name)}: {bar.doing}, from {drawing.clock(bar.from_s)}{lasts}"
        spans.append(
            _Span(
                x,
                round(max(0.15, end - x), 3),
                DOING_CLASSES[bar.doing],
                bar.doing.partition(":")[0] if min(end, 100.0) - max(x, 0.0) > 9 else "",
                said,
                "" if element_of is None else element_of.get(bar.event or "", "members"),
            )
        )
    marks = [
        _Span(
            seen.x(mark.at_s),
            0,
            MARK_CLASSES[mark.what],
            "",
            f"{sentences.short(lane.name)}: {mark.what}, {drawing.clock(mark.at_s)}",
            "" if element_of is None else element_of.get(mark.event, "happened"),
        )
        for mark in lane.marks
        if seen.shows(mark.at_s, mark.at_s)
    ]
    return {"id": _lane_id(lane), "spans": spans, "marks": marks, "y": y, "height": LANE_PX}


def _names(rows: list[drawing.Row], *, unfolded: bool) -> list[dict[str, Any]]:
    """Names of lanes; those of the same name are distinguished by the end of their ids."""
    names = [row.lane.name for row in rows]
    found = []
    for row in rows:
        lane = row.lane
        name = lane.name
        end = lane.member_id[-4:] if names.count(name) > 1 and lane.member_id and lane.member_id != name else ""
        title = f"{sentences.short(lane.name, 100)}, member {sentences.short(lane.member_id or 'not known', 100)}" + (
            f", {lane.client_address}" if lane.client_address else ""
        )
        found.append({"name": sentences.short(name, 32), "end": end, "title": title, "others": 0 if unfolded else row.others})
    return found


def _states(past: GroupPast, seen: drawing.Window, element_of: str) -> list[_Span]:
    spans = []
    for number, change in enumerate(past.changes):
        end_s = past.changes[number + 1].at_s if number + 1 < len(past.changes) else None
        if not seen.shows(change.at_s, end_s) or (end_s is not None and end_s <= change.at_s):
            continue
        x, end = seen.x(change.at_s), drawing.FAR if end_s is None else seen.x(end_s)
        words = sentences.STATE_WORDS.get(change.state, change.state)
        generation = "" if change.generation is None else f", generation {change.generation}"
        took = "" if end_s is None else f", {sentences.milliseconds((end_s - change.at_s) * 1000)}"
        text = f"{words}{generation}" if min(end, 100.0) - max(x, 0.0) > 12 else ""
        said = f"group {words}{generation}, from {drawing.clock(change.at_s)}{took}"
        spans.append(_Span(x, round(max(0.15, end - x), 3), change.state, text, said, element_of))
    return spans


def _blind(past: GroupPast, swim: SwimLanes, seen: drawing.Window) -> list[tuple[float, float, str]]:
    """Where nothing is known: before the first that is, and where the capture was blind."""
    known = [one[0].at_s for one in (past.changes,) if one] + [event.at_s for event in list(past.events)[:1]]
    first_s = min(known, default=seen.to_s)
    bands = [(seen.from_s, first_s, "not known: before the first record that the page has")] if first_s > seen.from_s else []
    stretches = [(seen.x(from_s), seen.x(to_s), said) for from_s, to_s, said in bands]
    stretches += [
        (
            seen.x(from_s),
            drawing.FAR if to_s is None else seen.x(to_s),
            f"not seen: the capture was blind from {drawing.clock(from_s)} on",
        )
        for from_s, to_s in swim.blind
        if seen.shows(from_s, to_s)
    ]
    return [(x, round(max(0.15, end - x), 3), said) for x, end, said in stretches]


def _waits(swim: SwimLanes, seen: drawing.Window, places: Mapping[str, int]) -> list[dict[str, Any]]:
    """Lines across lanes, each at the moment at which the one that was waited for came."""
    return [
        _wait(seen.x(wait.at_s), wait.waiting, wait.waited_for, places, f"until {drawing.clock(wait.at_s)}")
        for wait in swim.waits
        if wait.at_s is not None and seen.shows(wait.at_s, wait.at_s) and wait.waited_for & places.keys()
    ]


def _waits_now(swim: SwimLanes, seen: drawing.Window, places: Mapping[str, int], now_s: float) -> list[dict[str, Any]]:
    if not seen.live and now_s > seen.to_s:
        return []
    return [
        _wait(99.2, wait.waiting, wait.waited_for, places, "now")
        for wait in swim.waits
        if wait.at_s is None and wait.waited_for & places.keys()
    ]


def _wait(x: float, waiting: frozenset[str], waited_for: frozenset[str], places: Mapping[str, int], when: str) -> dict[str, Any]:
    dots = sorted(places[key] for key in waiting if key in places)
    heads = sorted(places[key] for key in waited_for if key in places)
    ends = [*dots, *heads]
    count = len(waiting)
    return {
        "x": x,
        "top": min(ends),
        "bottom": max(ends),
        "dots": dots,
        "heads": heads,
        "said": f"{count} member{'s wait' if count != 1 else ' waits'} for {len(waited_for)} {when}",
    }
