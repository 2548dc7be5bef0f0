"""The text report of a replay: for each group what happened to it and when, and the findings with their evidence.

A group's story is made by comparing what is known of it now with what was known when it was last looked at, so that a thousand
heartbeats are no line and a rebalance is two.

The trap: a large capture has groups that rebalance all the time. Only so many lines of each are kept, the newest, and what was left out
is said.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.console import Console
from rich.text import Text

from coordinator_model.finding import Finding, Status, iso_utc
from coordinator_model.groups.classic.data import CLASSIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from coordinator_model.group_view import GroupView

LINES_KEPT: Final = 500
"""Of each group."""

FINDINGS_KEPT: Final = 2_000

_NAMED: Final = 4  # members that are named when many join or leave at once
COLOURS: Final = {"info": "cyan", "warning": "yellow", "error": "red", "critical": "bold red"}
"""Of severities."""

STATE_COLOURS: Final = {
    "Stable": "green",
    "PreparingRebalance": "yellow",
    "CompletingRebalance": "yellow",
    "Reconciling": "yellow",
    "Dead": "red",
}


class HistoryLine(NamedTuple):
    """One thing that happened in a group."""

    at: str  #: ISO 8601, UTC
    group: str
    text: Text


class GroupHistory:
    """Makes lines out of the models' changes and findings.

    :param tell: called with each line.
    :param groups: only these groups; all if there are none.
    """

    def __init__(self, tell: Callable[[HistoryLine], None], groups: Iterable[str] = ()) -> None:
        self._tell = tell
        self._groups = frozenset(groups)
        self._known: dict[tuple[str, str], dict[str, Any]] = {}
        self._lost: dict[
            tuple[str, str], frozenset[str]
        ] = {}  # members that were said not to be known any more, and not seen since

    def wants(self, group: str) -> bool:
        """Return True if the report includes this group; what concerns the capture is always included."""
        return not self._groups or not group or group in self._groups

    def group(self, snapshot: GroupView, at_us: int) -> None:
        """Something happened in a group."""
        if not self.wants(snapshot.group):
            return
        key = (snapshot.cluster, snapshot.group)
        before, now = self._known.get(key), snapshot.content
        if now is None:
            self._lost.pop(key, None)
            if self._known.pop(key, None) is not None:
                self._tell(HistoryLine(iso_utc(at_us), snapshot.group, Text("forgotten: nothing was heard of it for long", "dim")))
            return
        self._known[key] = now
        moves = _Moves(before, now, snapshot.unproven, self._lost.get(key, frozenset()))
        self._lost[key] = moves.lost
        words = list(_changes(before, now, moves))
        if words:
            moved = before is None or before["state"] != now["state"]
            at = now["state_since"] if moved and now["state_since"] else iso_utc(at_us)
            self._tell(HistoryLine(at, snapshot.group, Text.assemble(_where(now), ", ".join(words))))

    def finding(self, finding: Finding) -> None:
        """A finding opened, changed or was resolved."""
        if self.wants(finding.group):
            verb = {Status.OPEN: "", Status.UPDATE: f" ({finding.count} times by now)", Status.RESOLVED: " is over"}[finding.status]
            at_us = finding.opened_at_us if finding.status is Status.OPEN else finding.resolved_at_us or finding.updated_at_us
            text = Text.assemble(_severity(finding), f" {finding.rule} {finding.name}{verb}")
            self._tell(HistoryLine(iso_utc(at_us), finding.group, text))


class _Moves:
    """Who came and who went between two looks at a group.

    :param unproven: members that were not seen to go, though nothing shows any more that they are members.
    :param lost: those among the members of earlier looks.
    """

    def __init__(self, before: dict[str, Any] | None, now: dict[str, Any], unproven: frozenset[str], lost: frozenset[str]) -> None:
        members = {member["member_id"]: member for member in now["members"]}
        earlier = {member["member_id"]: member for member in before["members"]} if before is not None else {}
        came = [members[id_] for id_ in members if id_ not in earlier]
        went = [earlier[id_] for id_ in earlier if id_ not in members]
        self.joined = [member for member in came if member["member_id"] not in lost]
        self.returned = [member for member in came if member["member_id"] in lost]
        self.gone = [member for member in went if member["member_id"] not in unproven]
        self.forgotten = [member for member in went if member["member_id"] in unproven]
        self.lost = (lost | {member["member_id"] for member in self.forgotten}) & unproven

    def __iter__(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        yield "joined", self.joined
        yield "seen again", self.returned
        yield "gone", self.gone
        yield "not known any more", self.forgotten


def _changes(before: dict[str, Any] | None, now: dict[str, Any], moves: _Moves) -> Iterator[str]:
    """What is different, in words; nothing when only its members' frames are."""
    if before is None:
        yield "first seen"
    for verb, members in moves:
        if members:
            yield f"{verb if before is not None else 'members'} {_names(members)}"
    before = before or now
    if now["learning"] and now["learning"] != before["learning"]:
        yield f"is being learnt: {now['learning']}"
    if now["coordinator"] != before["coordinator"]:
        yield f"coordinator is now {now['coordinator']}"
    came = moves.joined or moves.returned
    if now["leader"] != before["leader"] and now["leader"] and not came:
        yield f"led by {now['leader']}"
    went = moves.gone or moves.forgotten
    if not came and not went and (now["state"], now["generation"]) != (before["state"], before["generation"]):
        count = len(now["members"])
        yield f"{count} member{'s' if count != 1 else ''}"


def _where(now: dict[str, Any]) -> Text:
    number = "" if now["generation"] is None else f"{number_name(now)} {now['generation']}"
    return Text.assemble((f"{now['state']:<20}", STATE_COLOURS.get(now["state"], "")), f"{number:<15}")


def number_name(known: dict[str, Any]) -> str:
    """Return what the number of a group is called that rises with each rebalance."""
    return "generation" if known["group_type"] == CLASSIC else "epoch"


def _names(members: list[dict[str, Any]]) -> str:
    names = [_name(member) for member in members[:_NAMED]]
    more = len(members) - len(names)
    return " and ".join([*names, f"{more} more"] if more else names)


def _name(member: dict[str, Any]) -> str:
    id_, client_id = member["member_id"], member["instance_id"] or member["client_id"]
    return id_ if not client_id or client_id in id_ else f"{client_id} ({id_})"


def _severity(finding: Finding) -> Text:
    return Text(finding.severity.value, COLOURS[finding.severity.value])


class ReplayReport:
    """Keeps the lines group by group and the last state of each finding, and prints them in the end."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[HistoryLine]] = {}
        self._left_out: dict[str, int] = {}
        self._findings: dict[str, Finding] = {}
        self._findings_left_out = 0

    def line(self, line: HistoryLine) -> None:
        """Keep a line."""
        lines = self._lines.setdefault(line.group, deque(maxlen=LINES_KEPT))
        if len(lines) == LINES_KEPT:
            self._left_out[line.group] = self._left_out.get(line.group, 0) + 1
        lines.append(line)

    def finding(self, finding: Finding) -> None:
        """Keep the state of a finding."""
        if finding.id not in self._findings and len(self._findings) >= FINDINGS_KEPT:
            self._findings_left_out += 1
        else:
            self._findings[finding.id] = finding

    def print(self, console: Console) -> None:
        """The timeline of each group, then the findings."""
        for group in sorted(self._lines):
            console.print(Text(group or "the capture", "bold"), soft_wrap=True)
            if group in self._left_out:
                console.print(Text(f"  {self._left_out[group]:,} earlier lines are left out", "dim"), soft_wrap=True)
            day = ""
            for line in sorted(self._lines[group], key=lambda line: line.at):
                if line.at[:10] != day:
                    day = line.at[:10]
                    console.print(Text(f"  {day}", "dim"), soft_wrap=True)
                console.print(Text.assemble((f"  {line.at[11:23]}  ", "dim"), line.text), soft_wrap=True)
            console.print()
        for finding in sorted(self._findings.values(), key=lambda finding: (-finding.severity.rank, finding.opened_at_us)):
            print_finding(console, finding)
        if self._findings_left_out:
            console.print(f"{self._findings_left_out:,} more findings; --format json gives them all", soft_wrap=True)


def print_line(console: Console, line: HistoryLine) -> None:
    """One line as it comes, for a capture that is being made."""
    console.print(Text.assemble((f"{line.at[11:23]} ", "dim"), (f"{line.group} ", "bold"), line.text), soft_wrap=True)


def finding_line(finding: Finding) -> Text:
    """Return severity, rule and name of a finding."""
    return Text.assemble(_severity(finding), (f" {finding.rule} {finding.name}", "bold"))


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
    for title, words in finding_facts(finding):
        console.print(Text.assemble((f"  {title:<10}" if title else "  ", "dim"), words), soft_wrap=True)
    for number, frame in enumerate(finding.evidence):
        title = "evidence" if not number else ""
        where = f"#{frame.exchange} on {frame.connection}" if frame.exchange >= 0 else frame.connection
        at = iso_utc(frame.at_us)[11:26]
        told = Text.assemble((f"  {title:<10}", "dim"), f"{at}  {frame.frame}", (f"  {where}, offset {frame.offset}", "dim"))
        console.print(told, soft_wrap=True)
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
