"""The views as HTML: each made of a frame, which stays, and of parts, which are replaced one by one when they change.

A thousand groups are shown to many viewers at once. So what a view shows is rendered in pieces, pieces are kept as long as nothing of their
group changes, and comparing two views mostly compares a piece with itself.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from coordinator_model.events import RECONCILING, State
from coordinator_model.finding import Severity
from coordinator_model.wording import counted
from streaming.not_shown import no_finding
from streaming.published import finding_rows, sentences
from streaming.published.page_state import rounded
from streaming.published.progress import rate
from streaming.published.records import REBALANCING, Json, duration, finding_order, member_name, seconds, trouble
from streaming.published.wire_text import readable, shown_name
from streaming.web import drawing
from streaming.web.from_events import record_of
from streaming.web.recording import cost_of, cost_text, stretch_of
from streaming.web.static_files import address_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streaming.published.page_state import GroupPast, Key, PageState

_log: Final = logging.getLogger(__name__)

_UNSTABLE: Final = frozenset(REBALANCING)
_BEGUN: Final = frozenset({State.PREPARING.value, RECONCILING})
_FINDINGS_SHOWN: Final = 50
_SAID_FOR_S: Final = 300.0  #: how long what is said of the last hour holds
_LEAST: Final = 1 / 150  #: part of a strip as which a short rebalance is drawn, so that it is seen


class NotShownError(LookupError):
    """There is no such group, finding or rebalance; the message is a sentence."""


@dataclass(slots=True)
class View:
    """What one address shows now.

    ``parts`` are elements by id; ``lists`` hold elements that come, go and change their order.
    """

    template: str
    title: str
    parts: dict[str, str] = field(default_factory=dict)
    lists: dict[str, dict[str, str]] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)  #: of elements that stay, by their id
    fixed: dict[str, Any] = field(default_factory=dict)  #: what the frame shows and never changes


class Renderer:
    """Jinja with everything that templates call."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("streaming.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._environment.filters |= {
            "short": sentences.short,
            "by_names": sentences.by_names,
            "readable": readable,
            "name": member_name,
            "duration": duration,
            "ms": sentences.milliseconds,
            "cost": sentences.seconds_of,
            "generation": lambda generation: "none" if generation is None else generation,
            "clock": drawing.clock,
            "counted": counted,
            "day": lambda at_s: datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            "seconds": seconds,
            "state_words": lambda state: sentences.STATE_WORDS.get(state, state),
        }
        self._environment.globals |= {"address_of": address_of}

    def __call__(self, template: str, **values: Any) -> Markup:
        """Return what a template makes of the values: HTML, in which the values have been escaped."""
        return Markup(self._environment.get_template(template).render(**values))  # noqa: S704 - it escapes


class Overview:
    """All groups, those in trouble first, of a recording the costliest; each row is rendered when its group has changed."""

    def __init__(self, state: PageState, render: Renderer) -> None:
        self._state = state
        self._render = render
        self._rows: dict[Key, tuple[tuple[int, int, bool], str]] = {}
        self._base_s = state.now_s() // 60 * 60  #: where minutes on strips are counted from

    def view(self, query: Mapping[str, str]) -> View:
        """Return the view, of groups that the query wants."""
        state = self._state
        findings = state.listed_findings()
        worst = {key: (Severity(found[0]["severity"]), len(found)) for key, found in findings.items()}
        wanted = _Wanted(query)
        chosen = [past for past in state.groups.values() if wanted(past, findings.get(past.key, []))]
        chosen.sort(key=_costliest if state.is_recorded else lambda past: _trouble(past, worst))
        stretch = stretch_of(state)
        clusters = sorted({key[0] for key in state.groups})
        several = len(clusters) > 1
        now_s = state.now_s()
        self._rows = {key: row for key, row in self._rows.items() if key in state.groups}
        shown = sorted((one for past in chosen for one in findings.get(past.key, ())), key=finding_order)
        elsewhere = [] if wanted.is_set else [one for key, found in findings.items() if key not in state.groups for one in found]
        listed = finding_rows.rows(elsewhere + shown)
        return View(
            "overview.html",
            "Groups",
            parts={
                "counts": self._render(
                    "_counts.html",
                    counts=_counts(state, findings),
                    shown=len(chosen),
                    complete=state.complete,
                    recorded=state.is_recorded,
                    from_s=state.first_s,
                    to_s=now_s,
                    length=sentences.milliseconds(round(stretch.span_s * 1000)),
                ),
                "findings": self._render(
                    "_findings.html",
                    recorded=state.is_recorded,
                    rows=listed[:_FINDINGS_SHOWN],
                    more=len(listed) - _FINDINGS_SHOWN,
                    if_none=no_finding(state.groups.values()),
                ),
            },
            lists={"groups": {past.id: self._row(past, findings.get(past.key, []), now_s, several=several) for past in chosen}},
            fixed={
                "query": {name: query.get(name, "") for name in ("text", "state", "severity", "cluster")},
                "clusters": [(cluster, shown_name(cluster)) for cluster in clusters],
                "states": list(sentences.STATE_WORDS.items()),
                "severities": [one.value for one in reversed(Severity)],
                "base_s": self._base_s,
                "stretch": stretch,
                "state_title": "State at the end" if state.is_recorded else "State",
                "facts_title": "What its rebalances cost" if state.is_recorded else "Waits for",
            },
        )

    def _row(self, past: GroupPast, findings: list[Json], now_s: float, *, several: bool) -> str:
        known, version = self._rows.get(past.key), (past.version, int(now_s // _SAID_FOR_S), several)
        if known is not None and known[0] == version:
            return known[1]
        try:
            row = self._rendered(past, findings, now_s, several=several)
        except Exception:  # one record of another program must not hide all other groups
            _log.exception("the row of group %r cannot be made", past.key[1])
            row = self._render("_broken_row.html", past=past, name=shown_name(past.key[1]))
        self._rows[past.key] = (version, row)
        return row

    def _rendered(self, past: GroupPast, findings: list[Json], now_s: float, *, several: bool) -> str:
        stretch = stretch_of(self._state)
        states = strip(past, self._base_s, now_s, stretch.span_s)
        waits = sentences.waits_for(record_of(past))
        counts: dict[str, int] = {}
        for finding in findings:
            counts[finding["severity"]] = counts.get(finding["severity"], 0) + 1
        return self._render(
            "_group_row.html",
            past=past,
            cluster=shown_name(past.key[0]) if several else "",
            name=shown_name(past.key[1]),
            now=summary(past),
            pace=rate(((past.content or {}).get("progress") or {}).get("records_per_s")),
            lag=None if past.lag is None else sentences.count(rounded(past.lag["lag"])),
            cost=cost_text(past) if self._state.is_recorded else "",
            sentence=waits,
            span_min=stretch.span_min,
            strip=states,
            seen_x=min((one[0] for one in states), default=drawing.FAR * 10),
            said=f"{stretch.title}: {rebalances_within(past, now_s, stretch.span_s)}",
            counts=counts,
            first=findings[0] if findings else None,
        )


class _Wanted:
    """The filter of the overview."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self._text = query.get("text", "").casefold()
        self._state = query.get("state", "")
        self._severity = query.get("severity", "")
        self._cluster = query.get("cluster", "")
        self._least = Severity(self._severity).rank if self._severity in set(Severity) else None
        self.is_set = bool(self._text or self._state or self._severity or self._cluster)

    def __call__(self, past: GroupPast, findings: list[Json]) -> bool:
        cluster, name = past.key
        if self._text and self._text not in name.casefold() and self._text not in shown_name(name).casefold():
            return False
        if self._cluster and cluster != self._cluster:
            return False
        if self._state and summary(past)["state"] != self._state:
            return False
        return self._least is None or any(Severity(one["severity"]).rank >= self._least for one in findings)


def summary(past: GroupPast) -> dict[str, Any]:
    """Return what is known of a group now."""
    content = record_of(past)
    if content is None:
        return {"state": State.UNKNOWN.value, "since_s": None, "generation": None, "members": None, "type": ""}
    return {
        "state": content["state"],
        "since_s": seconds(content["state_since"]) if content["state_since"] else None,
        "generation": content["generation"],
        "members": None if content["learning"] and not content["members"] else len(content["members"]),
        "type": content.get("group_type", ""),
    }


def strip(past: GroupPast, base_s: float, now_s: float, span_s: float) -> list[tuple[float, float, str]]:
    """Return the states of a group within a span as (begin, length, state), in minutes since a base; the last one goes on."""
    changes = past.changes
    found = []
    for number, change in enumerate(changes):
        if number + 1 < len(changes) and changes[number + 1].at_s < now_s - span_s:
            continue
        begin = (change.at_s - base_s) / 60
        end = (changes[number + 1].at_s - base_s) / 60 if number + 1 < len(changes) else drawing.FAR * 10
        if end > begin:
            found.append((round(begin, 3), round(max(span_s / 60 * _LEAST, end - begin), 3), change.state))
    return sorted(found, key=lambda one: one[2] in _UNSTABLE)  # short ones above


def rebalances_within(past: GroupPast, now_s: float, span_s: float) -> str:
    """Return the strip in words."""
    rebalances, unstable_s = 0, 0.0
    for number, change in enumerate(past.changes):
        end_s = past.changes[number + 1].at_s if number + 1 < len(past.changes) else now_s
        if end_s <= now_s - span_s:
            continue
        if change.state in _UNSTABLE:
            unstable_s += end_s - max(change.at_s, now_s - span_s)
            rebalances += change.state in _BEGUN
    if not rebalances:
        return "no rebalance seen"
    return f"{counted(rebalances, 'rebalance')}, {duration(unstable_s)} in all"


def _costliest(past: GroupPast) -> tuple[float, int, Key]:
    cost = cost_of(past)
    return -cost.member_seconds, -cost.took_ms, past.key


def _trouble(past: GroupPast, worst: Mapping[Key, tuple[Severity, int]]) -> tuple[int, int, str, str]:
    return trouble({"cluster": past.key[0], "group": past.key[1], "state": summary(past)["state"]}, worst)


def _counts(state: PageState, findings: Mapping[Key, list[Json]]) -> dict[str, int]:
    """Return how many groups there are, rebalance and are in trouble."""
    states = [summary(past)["state"] for past in state.groups.values()]
    return {
        "groups": len(states),
        "rebalances": sum(cost_of(past).rebalances for past in state.groups.values()) if state.is_recorded else 0,
        "rebalancing": sum(one in _UNSTABLE for one in states),
        "with findings": sum(key in state.groups for key in findings),
        "findings": sum(map(len, findings.values())),
    }
