"""A report as a page: one file, which has its styles and drawings within, and no script.

A week of a thousand groups is more than a browser holds, or a printer. So all groups have a line, those that cost most are described in
detail, and a strip has no more pieces than can be seen.
"""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.finding import Severity
from streaming.published import finding_rows, sentences
from streaming.published.records import is_open
from streaming.report.contents import NAMED, facts_of
from streaming.report.markdown import FINDINGS_SHOWN, detailed
from streaming.web import drawing
from streaming.web.costs import by_cause
from streaming.web.happened import event_row
from streaming.web.lanes import AXIS_PX, GROUP_PX, DrawnLanes, drawn
from streaming.web.views import Renderer, strip

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streaming.published.records import Json
    from streaming.report.contents import GroupReport, Rebalance, Report

_DRAWINGS: Final = 50
_AROUND: Final = 0.2  #: of a rebalance, how much time before and after it is drawn
_LEAST_AROUND_S: Final = 0.5
_STRIP_UNITS: Final = 60  #: width of a strip, whatever time it shows: patterns look alike
_CLIENTS_SHOWN: Final = 200


def page_of(report: Report) -> str:
    """Return the report as HTML."""
    seen = drawing.Window(report.from_s, report.to_s, live=False)
    in_detail = detailed(report)
    shown_rebalances = [(group, one) for group in in_detail for one in group.shown_rebalances][:_DRAWINGS]
    drawings = [_drawing(group, one, report.to_s) for group, one in shown_rebalances]
    by_group: dict[str, list[dict[str, Any]]] = {}
    for one in drawings:
        by_group.setdefault(one["group"], []).append(one)
    return Renderer()(
        "report.html",
        styles=[(files("streaming.web") / "static" / name).read_text(encoding="utf-8") for name in ("page.css", "report.css")],
        version=version("rebalance-monitor"),
        report=report,
        ticks=seen.inner_ticks(),
        costs=by_cause(report.rebalances, report.from_s, report.to_s),
        span_min=_STRIP_UNITS,
        groups=[_line(group, seen, is_in_detail=group in in_detail) for group in report.groups],
        in_detail=[_details(group, seen, by_group.get(group.past.id, [])) for group in in_detail],
        **_findings(report.findings),
        clients=report.clients[:_CLIENTS_SHOWN],
        more_clients=len(report.clients) - _CLIENTS_SHOWN,
        has_drawings=bool(drawings),
        AXIS_PX=AXIS_PX,
        GROUP_PX=GROUP_PX,
        seconds_of=sentences.seconds_of,
        listed=sentences.listed,
    )


def _line(group: GroupReport, seen: drawing.Window, *, is_in_detail: bool) -> dict[str, Any]:
    """Return what the list of all groups shows of one."""
    scale = _STRIP_UNITS * 60 / seen.span_s
    pieces = strip(group.past, seen.from_s, seen.to_s, seen.span_s)  # in minutes
    states = _visible([(round(x * scale, 3), round(width * scale, 3), state) for x, width, state in pieces])
    counts = Counter(finding["severity"] for finding in group.findings)
    return {
        "group": group,
        "is_in_detail": is_in_detail,
        "strip": states,
        "seen_x": min((one[0] for one in states), default=drawing.FAR * 10),
        "counts": [(one.value, counts[one.value]) for one in reversed(Severity) if counts[one.value]],
        "most_by": group.most_by,
    }


def _visible(pieces: list[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Return the pieces of a strip, those of the same state that touch as one; the order of states stays."""
    by_state: dict[str, list[tuple[float, float]]] = {}
    for x, width, state in pieces:
        known = by_state.setdefault(state, [])
        if known and x <= sum(known[-1]):
            known[-1] = (known[-1][0], round(max(known[-1][1], x + width - known[-1][0]), 3))
        else:
            known.append((x, width))
    return [(*piece, state) for state, known in by_state.items() for piece in known]


def _details(group: GroupReport, seen: drawing.Window, drawings: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the section of a group shows."""
    shown = {one.event.id: one for one in group.shown}
    return {
        "group": group,
        "facts": facts_of(group),
        "costs": by_cause((one.event for one in group.rebalances), seen.from_s, seen.to_s),
        **_findings(group.findings),
        "rebalances": [{"one": one, "row": event_row(one.event.id), "lag": sentences.built_up(one.lag)} for one in shown.values()],
        "has_lag": any(one.lag for one in shown.values()),
        "advice": [
            {
                "piece": piece,
                "saved": sentences.saved(piece),
                "named": [(event_row(id_), shown[id_].event.began_s) for id_ in piece.rebalances[:NAMED] if id_ in shown],
                "more": len(piece.rebalances) - NAMED,
            }
            for piece in group.advice
        ],
        "drawings": drawings,
    }


def _drawing(group: GroupReport, rebalance: Rebalance, now_s: float) -> dict[str, Any]:
    """Return the lanes of a group around a rebalance."""
    from_s, to_s = rebalance.event.began_s, rebalance.event.at_s
    around_s = max(_LEAST_AROUND_S, (to_s - from_s) * _AROUND)
    picture: DrawnLanes = drawn(group.past, drawing.Window(from_s - around_s, to_s + around_s, live=False), now_s)
    return {"group": group.past.id, "row": event_row(rebalance.event.id), "rebalance": rebalance, "picture": picture}


def _findings(findings: Iterable[Json]) -> dict[str, Any]:
    rows = finding_rows.rows(findings)
    return {
        "findings": [{"row": row, "finding": row.finding, "is_open": is_open(row.finding)} for row in rows[:FINDINGS_SHOWN]],
        "more_findings": len(rows) - FINDINGS_SHOWN,
    }
