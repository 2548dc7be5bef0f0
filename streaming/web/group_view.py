"""The view of one group: its lanes, its rebalances, its members, and the same as text.

A picture that slides would be another picture every second. So it is drawn for one moment, the anchor, and the browser moves it; only what
has changed is drawn anew, and all of it once it has moved by half of its width.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.advice import advise
from streaming.not_shown import no_finding
from streaming.published import finding_rows, sentences
from streaming.published.page_state import KEPT_S
from streaming.published.progress import progress_facts, scale
from streaming.published.records import Json, arrivals_of, finding_order, lag_of_rebalance, moment, name_of
from streaming.published.wire_text import shown_name
from streaming.web import drawing
from streaming.web.costs import STEPS, by_cause
from streaming.web.from_events import record_of
from streaming.web.happened import event_row, lines
from streaming.web.lanes import AXIS_PX, GROUP_PX, drawn
from streaming.web.recording import cost_text, stretch_of
from streaming.web.views import NotShownError, View, rebalances_within, summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinator_model.events import GroupEvent, NamedMember, RebalanceFinished
    from streaming.published.page_state import GroupPast, PageState
    from streaming.web.views import Renderer

_LINES_SHOWN: Final = 150
_MEMBERS_SHOWN: Final = 20
_FINDINGS_SHOWN: Final = 20
_REBALANCES_SHOWN: Final = 50
_COST_STEP_S: Final = KEPT_S / STEPS
_PROOFS_SHOWN: Final = 10  #: rebalances that the advice is made from
_BEFORE_AND_AFTER: Final = 0.2  #: of a rebalance, how much time around it is shown


def group_by_id(state: PageState, id_: str) -> GroupPast:
    """Return a group by the id that its address has.

    :raises NotShownError: when there is none.
    """
    found = next((past for past in state.groups.values() if past.id == id_), None)
    if found is None:
        raise NotShownError("The page does not know this group. It may have been forgotten, or the monitor has not seen it yet.")
    return found


def rebalance_by_row(past: GroupPast, row: str) -> RebalanceFinished:
    """Return the record of a rebalance by the id that its address has.

    :raises NotShownError: when there is none.
    """
    found = next((one for one in past.rebalances if event_row(one.id) == row), None)
    if found is None:
        raise NotShownError("The page does not know this rebalance any more: it keeps the newest of each group.")
    return found


def moment_text(at_s: float) -> str:
    """Return a time as an address has it."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def link_to(past_id: str, *, from_s: float, to_s: float) -> str:
    """Return the address of a stretch of time in a group's lanes."""
    span_s = next((float(one) for one in drawing.SPANS_S if one >= (to_s - from_s) * (1 + 2 * _BEFORE_AND_AFTER)), 14_400.0)
    end_s = (from_s + to_s) / 2 + span_s / 2
    return f"/groups/{past_id}?span={span_s:g}&end={moment_text(end_s)}"


def link_to_row(past_id: str, events: Sequence[GroupEvent]) -> str:
    """Return the address of the line of text about some events."""
    times = [event.at_s for event in events]
    return f"{link_to(past_id, from_s=min(times), to_s=max(times))}#{event_row(events[0].id)}"


class GroupPage:
    """One group at one address."""

    def __init__(self, state: PageState, render: Renderer, *, has_frames: bool) -> None:
        self._state = state
        self._render = render
        self._has_frames = has_frames

    def view(self, id_: str, query: Mapping[str, str]) -> View:
        """Return the view.

        :raises NotShownError: when there is no such group.
        """
        state = self._state
        past = group_by_id(state, id_)
        content = record_of(past)
        now_s, stretch = state.now_s(), stretch_of(state)
        seen = self._window(past, query, now_s)
        unfolded = query.get("all") == "1"
        findings = [one for one in state.findings.values() if (one["cluster"], one["group"]) == past.key]
        findings.sort(key=finding_order)
        listed = finding_rows.rows(findings)
        happened_lines, element_of = lines(event for event in past.events if seen.shows(event.at_s, event.at_s))
        picture = drawn(past, seen, now_s, element_of, unfolded=unfolded)
        lanes: dict[str, str] = {lane["id"]: self._render("_lane.html", **lane) for lane in picture.lanes}
        return View(
            "group.html",
            shown_name(past.key[1]),
            parts={
                "head": self._render(
                    "_group_head.html",
                    now=summary(past),
                    content=content,
                    sentence=sentences.waits_for(content),
                    stretch=stretch.title.lower(),
                    said=(state.is_recorded and cost_text(past)) or rebalances_within(past, now_s, stretch.span_s),
                    progress=progress_facts(content or {}),
                    hour=_hour(content),
                    lag=sentences.lag_facts(past.lag),
                ),
                "arrivals": self._render("_arrivals.html", arrivals=arrivals_of(content or {})),
                "lane-names": self._render("_lane_names.html", names=picture.names, id="lane-names"),
                "lane-axis": self._render("_lane_axis.html", picture=picture, id="lane-axis"),
                "lane-group": self._render(
                    "_lane_group.html", spans=picture.states, y=AXIS_PX, height=GROUP_PX - 8, id="lane-group"
                ),
                "lane-blind": self._render("_lane_blind.html", picture=picture, y=AXIS_PX, id="lane-blind"),
                "lane-waits": self._render("_lane_waits.html", waits=picture.waits, id="lane-waits"),
                "wait-now": self._render("_lane_waits.html", waits=picture.waits_now, id="wait-now"),
                "folded": self._render("_folded.html", hidden=picture.hidden, id=past.id, unfolded=unfolded, query=query),
                "rebalances": self._render(
                    "_rebalances.html", past=past, rebalances=_rebalances(past), has_lag=past.lag is not None
                ),
                "advice": self._render("_advice.html", advice=_advice(past, findings)),
                "costs": self._render("_costs.html", **_costs(past, now_s, whole=state.is_recorded)),
                "members": self._render("_members.html", past=past, **_members(content, unfolded=unfolded)),
                "group-findings": self._render(
                    "_findings.html",
                    recorded=state.is_recorded,
                    rows=listed[:_FINDINGS_SHOWN],
                    more=len(listed) - _FINDINGS_SHOWN,
                    if_none=no_finding([past]),
                    id="group-findings",
                ),
                "happened": self._render(
                    "_happened.html",
                    lines=happened_lines[: -_LINES_SHOWN - 1 : -1],
                    more=len(happened_lines) - _LINES_SHOWN,
                    past=past,
                    has_frames=self._has_frames,
                ),
            },
            lists={"lane-list": lanes},
            attributes={"lanes": {"height": str(picture.height), "data-to": f"{seen.to_s:.3f}", "data-span": f"{seen.span_s:g}"}},
            fixed={"past": past, "seen": seen, "links": _links(past, seen, now_s), "name": shown_name(past.key[1]), "query": query},
        )

    def _window(self, past: GroupPast, query: Mapping[str, str], now_s: float) -> drawing.Window:
        end_s = moment(query.get("end", ""))
        try:
            span_s = drawing.nearest_span(float(query.get("span", "")))
        except ValueError:
            first_s = past.events[0].at_s if past.events else now_s - 900
            if self._state.is_recorded and end_s is None:
                return drawing.whole(first_s, past.newest_s)  # a recording may hold groups of different days
            span_s = drawing.fitting_span(first_s, now_s if end_s is None else end_s)
        if end_s is not None or self._state.is_recorded:
            return drawing.window(now_s, span_s=span_s, end_s=now_s if end_s is None else end_s)
        try:
            anchor_s = float(query.get("anchor", ""))
        except ValueError:
            anchor_s = now_s
        if not 0 <= now_s - anchor_s < span_s / 2:
            anchor_s = now_s
        return drawing.window(anchor_s, span_s=span_s, end_s=None)


def _hour(content: Json | None) -> dict[str, Any] | None:
    """Return the bars of the hour in which the group committed, None if there are none."""
    records = ((content or {}).get("progress") or {}).get("records")
    if content is None or not records:
        return None
    most = max(records) or 1
    return {
        "heights": [round(100 * one / most) for one in records],
        "scale": scale(content),
        "said": ", ".join(f"{one:,}" for one in records),
    }


def _members(content: Json | None, *, unfolded: bool) -> dict[str, Any]:
    """Return the members that the table shows: those that are waited for first."""
    members = [] if content is None else content["members"]
    waited_for = set() if content is None else set(content["waits_for"])
    ordered = sorted(members, key=lambda member: member["member_id"] not in waited_for)
    shown = ordered if unfolded else ordered[:_MEMBERS_SHOWN]
    return {"members": shown, "more": len(ordered) - len(shown), "waited_for": waited_for, "leader": content and content["leader"]}


def _rebalances(past: GroupPast) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for event in past.rebalances:
        if len(found) == _REBALANCES_SHOWN:
            break
        names = Counter(_who(member) for member in {member.member_id: member for member in event.members}.values())
        found.append(
            {
                "event": event,
                "row": event_row(event.id),
                "began_s": event.began_s,
                "who": _who(event, names),
                "held_up": sentences.held_up(event),
                "lanes": link_to(past.id, from_s=event.began_s, to_s=event.at_s),
                "lag": sentences.built_up(lag_of_rebalance(past.lag, event)),
            }
        )
    return found


def _costs(past: GroupPast, now_s: float, *, whole: bool) -> dict[str, Any]:
    """Return what rebalances cost over the time that the page knows; of a live page its end is a round moment, so that it stands still."""
    first_s = past.events[0].at_s if past.events else now_s
    to_s = past.newest_s if whole else math.ceil(now_s / _COST_STEP_S) * _COST_STEP_S
    from_s = first_s if whole else to_s - KEPT_S
    seen = drawing.Window(from_s, max(to_s, from_s + 1), live=False)
    return {"costs": by_cause(past.rebalances, seen.from_s, seen.to_s), "ticks": seen.inner_ticks()}


def _advice(past: GroupPast, findings: Sequence[Json]) -> list[dict[str, Any]]:
    begun = {event.id: event.began_s for event in past.rebalances}
    return [
        {
            "piece": piece,
            "saved": sentences.saved(piece),
            "named": [(f"/groups/{past.id}/rebalances/{event_row(id_)}", begun[id_]) for id_ in piece.rebalances[:_PROOFS_SHOWN]],
            "more": len(piece.rebalances) - _PROOFS_SHOWN,
        }
        for piece in advise(past.events, findings)
    ]


def _who(member: NamedMember | RebalanceFinished, names: Mapping[str | None, int] | None = None) -> str | None:
    """Return the name of a member, with the end of its id if others have the same name."""
    name = name_of(member)
    if name is None or (names or {}).get(name, 0) < 2 or not member.member_id:
        return name
    return f"{sentences.short(name, 24)}…{member.member_id[-4:]}"


def _links(past: GroupPast, seen: drawing.Window, now_s: float) -> dict[str, str | None]:
    """Addresses of the same group at other times."""
    smaller, greater = drawing.spans_beside(seen.span_s)
    middle = (seen.from_s + seen.to_s) / 2

    def at(span_s: float | None, end_s: float | None) -> str | None:
        if span_s is None:
            return None
        end = "" if end_s is None or end_s >= now_s else f"&end={moment_text(end_s)}"
        return f"/groups/{past.id}?span={span_s:g}{end}"

    def around(span_s: float | None) -> str | None:
        return at(span_s, None if seen.live or seen.to_s >= now_s else middle + (span_s or 0) / 2)

    return {
        "earlier": at(seen.span_s, seen.to_s - seen.span_s / 2),
        "later": None if seen.live or seen.to_s >= now_s else at(seen.span_s, seen.to_s + seen.span_s / 2),
        "in": around(smaller),
        "out": around(greater),
        "now": None if seen.live or seen.to_s >= now_s else at(seen.span_s, None),
    }
