"""The views of one finding, of one rebalance, and of what the monitor sees."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.events import SightLost, SightRegained
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.rules import CATALOGUE
from coordinator_model.wording import counted
from streaming.not_shown import not_in_lines
from streaming.published import sentences
from streaming.published.records import STALE_S, Json, is_open, lag_of_rebalance, member_name, moment_of, name_of, seconds
from streaming.published.wire_text import readable, shown_name
from streaming.sinks.clients import oldest_first
from streaming.web import drawing
from streaming.web.group_view import group_by_id, link_to, rebalance_by_row
from streaming.web.views import NotShownError, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coordinator_model.events import LostMember, RebalanceFinished
    from streaming.published.page_state import PageState
    from streaming.web.views import Renderer

_MEMBERS_UNFOLDED: Final = 30
_FIRST_AND_LAST: Final = 12
_UNHELD_SHOWN: Final = 20
_LOST_NAMED: Final = 3
_TAPS_SHOWN: Final = 20
_CLIENTS_SHOWN: Final = 100
_BROKERS_SHOWN: Final = 100


class Details:
    """Views that show one record."""

    def __init__(self, state: PageState, render: Renderer, *, has_frames: bool) -> None:
        self._state = state
        self._render = render
        self._has_frames = has_frames

    def finding(self, name: str) -> View:
        """Return the view of a finding: what is wrong, what it means, what to do, and its evidence.

        :raises NotShownError: when there is no such finding.
        """
        finding = self._state.findings.get(name)
        if finding is None:
            raise NotShownError("The page does not know this finding. Resolved ones leave the topic after some weeks.")
        past = self._state.groups.get((finding["cluster"], finding["group"]))
        opened_s, updated_s = seconds(finding["opened_at"]), seconds(finding["updated_at"])
        rule = CATALOGUE.get(finding["rule"])
        content = self._render(
            "_finding.html",
            finding=finding,
            is_open=is_open(finding),
            opened_s=opened_s,
            resolved_s=seconds(finding["resolved_at"]) if finding["resolved_at"] else None,
            rule=rule,
            group=past,
            group_name=shown_name(finding["group"]),
            member=member_name(finding) if finding["member_id"] or finding["instance_id"] or finding["client_id"] else None,
            lanes=link_to(past.id, from_s=opened_s, to_s=max(updated_s, opened_s + 10)) if past is not None else None,
            plain=_as_text(finding),
            has_frames=self._has_frames,
        )
        return View("finding.html", f"{finding['rule']} {finding['name']}", parts={"finding": content})

    def rebalance(self, id_: str, row: str, query: Mapping[str, str]) -> View:
        """Return the view of one rebalance: who came when, what it cost, and what moved.

        :raises NotShownError: when there is no such group or rebalance.
        """
        past = group_by_id(self._state, id_)
        event = rebalance_by_row(past, row)
        begun_s = event.began_s
        members = _waterfall(event)
        unfolded = query.get("all") == "1" or len(members) <= _MEMBERS_UNFOLDED
        shown = members if unfolded else members[:_FIRST_AND_LAST] + members[-_FIRST_AND_LAST:]
        unheld = sorted(((one.us / 1e6, one.topic, str(one.partition)) for one in event.unheld or ()), reverse=True)
        seen = drawing.Window(begun_s, max(event.at_s, begun_s + 0.001), live=False)
        return View(
            "rebalance.html",
            f"Rebalance of {shown_name(past.key[1])}",
            fixed={
                "past": past,
                "name": shown_name(past.key[1]),
                "event": event,
                "began_s": begun_s,
                "who": name_of(event),
                "held_up": sentences.held_up(event),
                "lag": sentences.built_up(lag_of_rebalance(past.lag, event)),
                "has_epochs": event.group_type != CLASSIC,
                "members": shown,
                "lost": [member for member in members if member["is_lost"]][:_LOST_NAMED],
                "lost_more": max(0, sum(member["is_lost"] for member in members) - _LOST_NAMED),
                "hidden": len(members) - len(shown),
                "gap_after": None if unfolded else _FIRST_AND_LAST,
                "join_x": _part(event.join_ms, event.took_ms),
                "ticks": seen.ticks(),
                "trace": f"/groups/{past.id}/trace.json?rebalance={row}",
                "lanes": link_to(past.id, from_s=begun_s, to_s=event.at_s),
                "unheld": unheld[:_UNHELD_SHOWN],
                "unheld_more": len(unheld) - _UNHELD_SHOWN,
            },
        )

    def sight(self) -> View:
        """Return the view of what the monitor sees."""
        state = self._state
        now_s = state.now_s()
        learning = sorted(
            (
                (shown_name(past.key[1]), past.id, past.content["learning"])
                for past in state.groups.values()
                if past.content and past.content["learning"]
            ),
        )
        blind = sorted(
            (shown_name(past.key[1]), past.id, event.at_s, event.kind, event.reason)
            for past in state.groups.values()
            for event in list(past.events)[-50:]
            if isinstance(event, SightLost | SightRegained)
        )
        return View(
            "sight.html",
            "Sight",
            parts={
                "sight": self._render(
                    "_sight.html",
                    state=state,
                    notes=[*state.notes, *not_in_lines(state.groups.values())],
                    partitions=[
                        _partition(status, state.mirror_ends.get(partition)) for partition, status in sorted(state.status.items())
                    ],
                    taps=_taps(state.status.values()),
                    clients=oldest_first(past.content for past in state.groups.values() if past.content)[:_CLIENTS_SHOWN],
                    brokers=_brokers(past.content for past in state.groups.values()),
                    stale_s=now_s - state.status_written_s if state.status_written_s else None,
                    is_stale=not state.is_recorded and now_s - state.status_written_s > STALE_S,
                    learning=learning[:100],
                    blind=sorted(blind, key=lambda one: -one[2])[:100],
                )
            },
        )


def _taps(statuses: Iterable[Json]) -> list[tuple[str, str, float, list[str]]]:
    """Return name, cluster, time of the newest tick and versions not offered to clients of each capturer, the newest first."""
    newest: dict[tuple[str, str], float] = {}
    not_offered: dict[str, list[str]] = {}
    for status in statuses:
        names = status.get("not_offered")
        if isinstance(names, dict):
            not_offered.update({name: list(map(str, texts)) for name, texts in names.items() if isinstance(texts, list)})
        for row in status.get("taps") or ():
            if isinstance(row, list) and len(row) == 3 and isinstance(row[2], int | float):
                key = str(row[0]), str(row[1])
                newest[key] = max(newest.get(key, 0.0), row[2] / 1000)
    found = [(*key, at_s, not_offered.get(key[0], [])) for key, at_s in newest.items()]
    return sorted(found, key=lambda one: -one[2])[:_TAPS_SHOWN]


def _brokers(groups: Iterable[Json | None]) -> list[tuple[str, str, int, int]]:
    """Return cluster, address, groups and members of each broker that coordinates groups."""
    found: dict[tuple[str, str], list[int]] = {}
    for content in groups:
        if content is not None and content["coordinator"]:
            known = found.setdefault((str(content["cluster"]), str(content["coordinator"])), [0, 0])
            known[0] += 1
            known[1] += len(content["members"])
    return [(*key, groups, members) for key, (groups, members) in sorted(found.items())][:_BROKERS_SHOWN]


def _partition(status: Json, end: int | None) -> dict[str, Any]:
    newest_ms, tick_ms = status.get("newest_record_ms"), status.get("last_tick_ms")
    gaps = status.get("gaps")
    counters = status.get("counters")
    read = status.get("next_offset")
    return {
        "partition": status["partition"],
        "topic": status.get("topic", ""),
        "newest_s": newest_ms / 1000 if isinstance(newest_ms, int | float) else None,
        "tick_s": tick_ms / 1000 if isinstance(tick_ms, int | float) else None,
        "groups": status.get("groups"),
        "next_offset": read,
        "gaps": dict(gaps) if isinstance(gaps, dict) else {},
        "gap_ms": status.get("gap_ms", 0),
        "counters": sorted(counters.items()) if isinstance(counters, dict) else [],
        "opened": counters.get("open", 0) if isinstance(counters, dict) else 0,
        "closed": counters.get("close", 0) if isinstance(counters, dict) else 0,
        "behind": max(0, end - read) if end is not None and isinstance(read, int) else None,
    }


def _waterfall(event: RebalanceFinished) -> list[dict[str, Any]]:
    """One row for each member, in the order in which they came back; those that did not are the last."""
    began_s = event.began_s
    span_s = max(event.at_s - began_s, 0.001)

    def x(at_s: float) -> float:
        return round(max(0.0, min(100.0, float((at_s - began_s) / span_s * 100))), 3)

    rows: list[dict[str, Any]] = []
    has_epochs = event.group_type != CLASSIC
    waited = {one.member_id: one.waited_ms for one in event.waited_for[:1]}
    for is_lost, member in [*((False, one) for one in event.members), *((True, one) for one in event.never_came_back)]:
        times = {
            name: moment_of(getattr(member, f"{name}_us", None)) for name in ("told", "joined", "served", "stopped", "acknowledged")
        }
        if has_epochs and not is_lost:
            rows.append(_handed_over(member, times, began_s, x) | {"waited_ms": waited.get(member.member_id)})
            continue
        joined, served = times["joined"], times["served"]
        start = times["told"] or (began_s if joined is None else min(joined, began_s))
        rows.append(
            {
                "name": name_of(member) or "",
                "member_id": member.member_id,
                "times": times,
                "told": (x(start), round(max(0.3, x(joined if joined is not None else event.at_s) - x(start)), 3)),
                "joining": None if joined is None else (x(joined), round(max(0.3, x(served or event.at_s) - x(joined)), 3)),
                "served": None if served is None else x(served),
                "stopped": None if times["stopped"] is None else x(times["stopped"]),
                "is_lost": is_lost,
                "waited_ms": waited.get(member.member_id),
            }
        )
    names = Counter(row["name"] for row in rows)
    for row in rows:
        row["end"] = row["member_id"][-4:] if names[row["name"]] > 1 and row["member_id"] else ""
    rows.sort(key=lambda row: (row["is_lost"], row["times"]["joined"] is None, row["times"]["joined"] or 0.0, row["name"]))
    return rows


def _handed_over(member: LostMember, times: dict[str, float | None], began_s: float, x: Callable[[float], float]) -> dict[str, Any]:
    """Return the row of a member with an epoch: it consumes unless it holds nothing."""
    asked, gave_up, served, stopped = (times[name] for name in ("told", "acknowledged", "served", "stopped"))
    since = x(began_s if stopped is None else stopped)
    resumed = 100.0 if served is None else x(served)
    until = 100.0 if gave_up is None else x(gave_up)
    return {
        "name": name_of(member) or "",
        "member_id": member.member_id,
        "times": times | {"joined": gave_up},
        "told": None if asked is None else (x(asked), round(max(0.3, until - x(asked)), 3)),
        "joining": None if stopped is None else (since, round(max(0.3, resumed - since), 3)),
        "served": 0.0 if stopped is None else resumed,
        "stopped": None if stopped is None else since,
        "is_lost": False,
    }


def _part(some: int | None, whole: int | None) -> float | None:
    return round(min(100.0, some / whole * 100), 3) if some is not None and whole else None


def _as_text(finding: Json) -> str:
    """Return the finding as somebody pastes it into a chat or a ticket."""
    lines = [
        f"{finding['rule']} {finding['name']} ({finding['severity']}, {finding['certainty']}), group {finding['group'] or '-'}",
        finding["summary"],
        f"Expected: {finding['expected']}",
        f"Observed: {finding['observed']}",
        f"Do: {finding['action']}",
        f"Opened {finding['opened_at']}, {counted(finding['count'], 'time')}, id {finding['id']}",
        *(
            f"- {frame['at']} {frame['frame']} (partition {frame['partition']}, offset {frame['offset']})"
            for frame in finding["evidence"]
        ),
    ]
    return "\n".join(map(readable, lines))
