"""The text report of a replay: for each group its state at the end and its timeline, then the findings with their evidence.

A large capture has groups that rebalance all the time. Only so many lines of each are kept, the newest, and what was left out is said.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from coordinator_model.finding import Finding
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.wording import counted, iso_utc, plural
from streaming.published.records import arrivals_of
from streaming.published.wire_text import shown_name, visible
from streaming.replay.timeline import HistoryLine, number_name, severity_text

if TYPE_CHECKING:
    from coordinator_model.group_view import GroupView

LINES_KEPT: Final = 500
"""Of each group."""

FINDINGS_KEPT: Final = 2_000

STATE_COLOURS: Final = {
    "Stable": "green",
    "PreparingRebalance": "yellow",
    "CompletingRebalance": "yellow",
    "Reconciling": "yellow",
    "Dead": "red",
}

_Key = tuple[str, str]
"""Cluster and group; a finding about the capture has no group."""


class ReplayReport:
    """Keeps the lines group by group and the last state of each finding, and prints them in the end."""

    def __init__(self) -> None:
        self._lines: dict[_Key, deque[HistoryLine]] = {}
        self._left_out: dict[_Key, int] = {}
        self._findings: dict[str, Finding] = {}
        self._findings_left_out = 0
        self._states: dict[_Key, Text] = {}
        self._arrivals: dict[_Key, list[Text]] = {}

    def state(self, group: GroupView) -> None:
        """Keep the state of a group at the end."""
        if group.content is not None:
            key = group.cluster, group.group
            self._states[key] = _state(group.content)
            self._arrivals[key] = [_arrival(client) for client in arrivals_of(group.content)]

    def line(self, line: HistoryLine) -> None:
        """Keep a line."""
        key = line.cluster, line.group
        lines = self._lines.setdefault(key, deque(maxlen=LINES_KEPT))
        if len(lines) == LINES_KEPT:
            self._left_out[key] = self._left_out.get(key, 0) + 1
        lines.append(line)

    def finding(self, finding: Finding) -> None:
        """Keep the state of a finding."""
        if finding.id not in self._findings and len(self._findings) >= FINDINGS_KEPT:
            self._findings_left_out += 1
        else:
            self._findings[finding.id] = finding

    def print(self, console: Console) -> None:
        """The state and the timeline of each group, then the findings."""
        keys = sorted({*self._lines, *self._states}, key=lambda key: (key[1], key[0]))
        several = len({cluster for cluster, group in keys if group}) > 1
        for key in keys:
            console.print(Text(_title(*key, several=several), "bold"), soft_wrap=True)
            if key in self._states:
                console.print(Text.assemble("  ", self._states[key]), soft_wrap=True)
            for client in self._arrivals.get(key, ()):
                console.print(Text.assemble("  ", client), soft_wrap=True)
            if left_out := self._left_out.get(key):
                said = f"  {counted(left_out, 'earlier line')} {plural(left_out, 'is', 'are')} left out"
                console.print(Text(said, "dim"), soft_wrap=True)
            day = ""
            for line in sorted(self._lines.get(key, ()), key=lambda line: line.at):
                if line.at[:10] != day:
                    day = line.at[:10]
                    console.print(Text(f"  {day}", "dim"), soft_wrap=True)
                console.print(Text.assemble((f"  {line.at[11:23]}  ", "dim"), line.text), soft_wrap=True)
            console.print()
        for finding in sorted(self._findings.values(), key=lambda finding: (-finding.severity.rank, finding.opened_at_us)):
            print_finding(console, finding)
        if self._findings_left_out:
            console.print(f"{counted(self._findings_left_out, 'more finding')}; --format json gives all", soft_wrap=True)


def _title(cluster: str, group: str, *, several: bool) -> str:
    """Return what a group is called, with its cluster where there are several."""
    if not group:
        return "the capture"
    return f"{shown_name(group)} of {shown_name(cluster) or '(a cluster that is not known)'}" if several else shown_name(group)


def _state(known: dict[str, Any]) -> Text:
    """Return the state of a group as a line."""
    facts = [
        f"{number_name(known.get('group_type', CLASSIC))} {known['generation']}" if known["generation"] is not None else "",
        counted(len(known["members"]), "member"),
        f"coordinator {known['coordinator']}" if known["coordinator"] else "",
        f"not known: {known['learning']}" if known["learning"] else "",
    ]
    return Text.assemble(
        (known["state"], STATE_COLOURS.get(known["state"], "")), visible("".join(f", {fact}" for fact in facts if fact))
    )


def _arrival(client: dict[str, Any]) -> Text:
    """Return where a client stands on its way to consuming, as a line."""
    name = client["instance_id"] or client["client_id"] or "a client without a client id"
    return Text(visible(f"{name} at {client['client_address']} {client['text']}"), "yellow" if client["refused"] else "")


def print_line(console: Console, line: HistoryLine) -> None:
    """One line as it comes, for a capture that is being made."""
    console.print(Text.assemble((f"{line.at[11:23]} ", "dim"), (f"{shown_name(line.group)} ", "bold"), line.text), soft_wrap=True)


def finding_line(finding: Finding) -> Text:
    """Return severity, rule and name of a finding."""
    return Text.assemble(severity_text(finding), (f" {finding.rule} {finding.name}", "bold"))


def finding_facts(finding: Finding) -> list[tuple[str, str]]:
    """Return what a finding says, without its evidence: title and text of each fact; the summary has no title."""
    times = f", {finding.count} times" if finding.count > 1 else ""
    until = f", over at {iso_utc(finding.resolved_at_us)[11:23]}" if finding.resolved_at_us is not None else ""
    facts = [
        ("", finding.summary),
        ("opened", f"{iso_utc(finding.opened_at_us)[:23].replace('T', ' ')}{times}{until}"),
        ("blame", f"{finding.blame.value}, {finding.certainty.value}"),
        ("who", _who(finding)),
        ("expected", finding.expected),
        ("observed", finding.observed),
        ("to do", finding.action),
    ]
    return [(title, words) for title, words in facts if words]


def print_finding(console: Console, finding: Finding) -> None:
    """Print a finding with its evidence."""
    console.print(finding_line(finding), soft_wrap=True)
    for title, words in (*finding_facts(finding), *([("cluster", finding.cluster)] if finding.cluster else [])):
        console.print(Text.assemble((f"  {title:<10}" if title else "  ", "dim"), visible(words)), soft_wrap=True)
    for number, frame in enumerate(finding.evidence):
        title = "evidence" if not number else ""
        where = f"#{frame.exchange} on {frame.connection}" if frame.exchange >= 0 else frame.connection
        at = iso_utc(frame.at_us)[11:26]
        seen = (visible(f"{at}  {frame.frame}"), (visible(f"  {where}, offset {frame.offset}"), "dim"))
        console.print(Text.assemble((f"  {title:<10}", "dim"), *seen), soft_wrap=True)
    console.print()


def _who(finding: Finding) -> str:
    parts = [
        ("member", finding.member_id),
        ("instance", finding.instance_id),
        ("client", finding.client_id),
        ("at", finding.client_address),
        ("software", finding.client_software),
    ]
    return ", ".join(f"{title} {value}" for title, value in parts if value)
