"""The demo's output: live tables on a terminal, one line per event elsewhere, and the summary at the end.

This module only renders the state that other modules collect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Self

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from coordinator_model.wording import counted
from streaming.demo.scenarios import HEALTHY_GROUP, TROUBLES, Scenario
from streaming.demo.screen_state import Note, ScreenState, now_us
from streaming.demo.verdicts import FindingJson, Sighting, Truth, Verdict, about_group, judge, micros

SEVERITY_STYLES: Final = {"info": "cyan", "warning": "yellow", "error": "red", "critical": "bold red"}
_STATE_STYLES: Final = {"Stable": "green", "Empty": "dim", "Dead": "dim", "Unknown": "dim"}
_MOVING: Final = "yellow"
_FRAMES_PER_S: Final = 4
_TITLE: Final = "bold"
_HEADINGS: Final = 6  #: lines of the live view for the headings of findings and notes, and for spacing
_WIDE: Final = 130  #: from this width in columns, the summary table has all its columns


class ScreenLine(NamedTuple):
    """The current state of one scenario."""

    trouble: Scenario
    truth: Truth
    verdict: Verdict
    began: bool
    ended: bool


class ScenarioOutcome(NamedTuple):
    """The content of the summary."""

    lines: Sequence[ScreenLine]
    about_healthy: Sequence[FindingJson]
    healthy: Mapping[str, Any] | None  #: newest snapshot of the healthy group
    findings: Sequence[Sighting]  #: the newest state of each
    pids: Mapping[str, Sequence[int]]  #: by client id, in the order started
    took_s: float


# --- live ----------------------------------------------------------------------------------------------------


class DemoScreen:
    """The live view; it redraws itself from the screen state while the context lasts."""

    def __init__(
        self, console: Console, screen_state: ScreenState, lines: Any, *, page: str, began_us: int, duration_s: float
    ) -> None:
        self._screen_state = screen_state
        self._lines = lines
        self._page = page
        self._began_us = began_us
        self._duration_s = duration_s
        self._live = Live(self, console=console, refresh_per_second=_FRAMES_PER_S, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines: Sequence[ScreenLine] = self._lines()
        above = (self._heading(), Text(), troubles_table(lines), Text(), groups_table(self._screen_state, now_us()), Text())
        used = sum(len(console.render_lines(part, options, pad=False)) for part in above)
        left = options.max_height - used - _HEADINGS
        notes = max(1, min(8, left // 3))
        yield Group(
            *above,
            findings_table(self._screen_state.findings(), room=max(3, left - notes), width=options.max_width),
            Text(),
            Text("What the demo does", _TITLE),
            *notes_lines(self._screen_state.notes()[-notes:]),
        )

    def _heading(self) -> RenderableType:
        passed_s = min((now_us() - self._began_us) / 1e6, self._duration_s)
        return Text.assemble(
            ("rebalance-monitor demo", _TITLE),
            f"   {_clock(passed_s)} of {_clock(self._duration_s)}   ",
            ("real broker, real consumers, real faults; Ctrl-C ends it", "dim"),
            f"\nthe same in a browser: {self._page}",
            no_wrap=True,
            overflow="ellipsis",
        )


def troubles_table(lines: Sequence[ScreenLine]) -> Table:
    """Return a table with one row per fault: what is expected, and whether it was found."""
    table = _table(
        "Faults", ("fault", {}), ("group", {}), ("client", {"ratio": 1}), ("expected", {}), ("found", {}), ("after", _RIGHT)
    )
    for line in lines:
        expected, verdict = line.trouble.expected, line.verdict
        table.add_row(
            Text(line.trouble.name, "" if line.began else "dim"),
            expected.group,
            Text(", ".join(expected.culprits), overflow="ellipsis", no_wrap=True),
            expected.rule,
            _standing(line),
            "" if verdict.seconds_after is None else f"{verdict.seconds_after:.1f} s",
        )
    return table


def _standing(line: ScreenLine) -> Text:
    if line.verdict.found and line.verdict.sighting is not None:
        return Text(f"✔ {line.verdict.sighting.finding['severity']}", "green")
    if line.truth.failure is not None:
        return Text("✘ not injected", "red")
    if not line.began:
        return Text("pending", "dim")
    if line.truth.fact_us is None:
        return Text("starting", "dim")
    return Text("✘ not found", "red") if line.ended else Text("active", "yellow")


def groups_table(screen_state: ScreenState, at_us: int) -> Table:
    """Return a table with one row per group, as the monitor publishes it."""
    names = [HEALTHY_GROUP, *(trouble.expected.group for trouble in TROUBLES)]
    table = _table(
        "Groups, as published by the monitor",
        ("group", {}),
        ("state", {"min_width": 19}),
        ("for", {"justify": "right", "min_width": 6}),
        ("generation", _RIGHT),
        ("members", _RIGHT),
        ("open", _RIGHT),
        ("waits for", {"ratio": 1}),
    )
    for name in names:
        snapshot = screen_state.group(name)
        if snapshot is not None:
            table.add_row(*_group_row(name, snapshot, at_us))
    return table


def _group_row(name: str, snapshot: Mapping[str, Any], at_us: int) -> list[RenderableType]:
    state: str = snapshot["state"]
    since = snapshot["state_since"]
    owners = {member["member_id"]: member["client_id"] or member["member_id"] for member in snapshot["members"]}
    remark = ", ".join(owners.get(id_, id_) for id_ in snapshot["waits_for"])
    if snapshot["learning"] is not None:
        remark = f"learning: {snapshot['learning']}"
    waiting = bool(snapshot["waits_for"]) and snapshot["learning"] is None
    return [
        Text(name + (" (healthy)" if name == HEALTHY_GROUP else "")),
        Text(state, _STATE_STYLES.get(state, _MOVING)),
        "" if since is None else _age((at_us - micros(since)) / 1e6),
        "" if snapshot["generation"] is None else str(snapshot["generation"]),
        str(len(snapshot["members"])),
        Text(str(snapshot["open_findings"]), "red" if snapshot["open_findings"] else "dim"),
        Text(remark, "yellow" if waiting else "dim", overflow="ellipsis", no_wrap=True),
    ]


def findings_table(findings: Sequence[Sighting], *, room: int, width: int) -> Table:
    """Return a table of the newest findings that fit into ``room`` lines; a summary may take several lines."""
    table = _table(
        f"Findings ({sum(sighting.finding['status'] != 'resolved' for sighting in findings)} open of {len(findings)})",
        ("time", {}),
        ("rule", {}),
        ("severity", {"min_width": 8}),
        ("status", {"min_width": 8}),
        ("summary", {"ratio": 1}),
    )
    shown: list[tuple[RenderableType, ...]] = []
    for sighting in reversed(findings):
        finding = sighting.finding
        room -= -(-len(finding["summary"]) // max(20, width - 44))
        if room < 0:
            break
        over = finding["status"] == "resolved"
        shown.append(
            (
                _local(micros(finding["opened_at"])),
                finding["rule"],
                Text(finding["severity"], SEVERITY_STYLES[finding["severity"]]),
                Text("resolved", "green") if over else Text("open"),
                Text(finding["summary"], "dim" if over else ""),
            )
        )
    for row in reversed(shown):
        table.add_row(*row)
    return table


def notes_lines(notes: Sequence[Note]) -> list[Text]:
    """Return one line per note."""
    return [Text.assemble((f"{_local(note.at_us)}   ", "dim"), note.text, overflow="ellipsis", no_wrap=True) for note in notes]


# --- plain ---------------------------------------------------------------------------------------------------


class Log:
    """Prints one line per event, with ``--plain`` or if the output is not a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def note(self, note: Note) -> None:
        self._line(note.at_us, Text(f"demo      {note.text}"))

    def sighting(self, new: Sighting, before: Sighting | None) -> None:
        """Print a finding when it opens, changes its severity or is resolved; other updates are not printed."""
        word = _word(new.finding)
        if before is not None and word == _word(before.finding):
            return
        style = SEVERITY_STYLES.get(word, "green")
        self._line(new.read_us, Text.assemble((f"{word:<9} ", style), f"{new.finding['rule']} {new.finding['summary']}"))

    def _line(self, at_us: int, text: Text) -> None:
        self._console.print(Text(f"{_local(at_us)} ", "dim") + text, soft_wrap=True)


# --- summary -------------------------------------------------------------------------------------------------


def summary(outcome: ScenarioOutcome, width: int) -> RenderableType:
    """Return the summary: what was expected, what was found, who was named, and how many seconds after the fault."""
    wide = width >= _WIDE
    table = _table(
        "Summary",
        ("fault", {"no_wrap": True}),
        ("expected", {"no_wrap": True}),
        ("found", {"no_wrap": True}),
        ("named", {"ratio": 1}),
        ("seconds", _RIGHT),
        *((("counted from", {"no_wrap": True}), ("the rule itself waits for", {"no_wrap": True})) if wide else ()),
    )
    for line in outcome.lines:
        row = _summary_row(line, outcome.pids)
        table.add_row(*(row if wide else row[:5]))
    legend = [] if wide else [Text("The seconds count from; the rule itself waits for:", "dim"), *map(_legend, outcome.lines)]
    return Group(table, *legend, Text(), *_closing_lines(outcome))


def _summary_row(line: ScreenLine, pids: Mapping[str, Sequence[int]]) -> list[RenderableType]:
    trouble, verdict = line.trouble, line.verdict
    if not verdict.found or verdict.sighting is None:
        found, named = Text("✘ no", "red"), Text(verdict.problem or "", "red")
    else:
        finding = verdict.sighting.finding
        found = Text(f"✔ {finding['severity']}", "green")
        named = Text("\n".join(f"{culprit}{_pids(pids.get(culprit, ()))}" for culprit in trouble.expected.culprits))
    return [
        trouble.name,
        trouble.expected.rule,
        found,
        named,
        "" if verdict.seconds_after is None else f"{verdict.seconds_after:.1f}",
        trouble.fact,
        Text(trouble.rule_waits, "dim"),
    ]


def _legend(line: ScreenLine) -> Text:
    return Text(f"  {line.trouble.name}: {line.trouble.fact}; {line.trouble.rule_waits}", "dim")


def _pids(pids: Sequence[int]) -> str:
    """Return the process ids as text; a restarted process has several."""
    return f" (pid {', '.join(map(str, pids))})" if pids else ""


def _closing_lines(outcome: ScenarioOutcome) -> list[Text]:
    found = sum(line.verdict.found for line in outcome.lines)
    lines = [
        _verdict_line(found == len(outcome.lines), f"{found} of {len(outcome.lines)} faults found and their culprits named"),
        _verdict_line(*_healthy_line(outcome)),
    ]
    expected = {(line.trouble.expected.rule, line.trouble.expected.group) for line in outcome.lines}
    faulty = {group for _, group in expected}
    effects, unexplained = set[str](), set[str]()
    for finding in (sighting.finding for sighting in outcome.findings):
        group = finding["group"]
        if (finding["rule"], group) not in expected and group != HEALTHY_GROUP:
            (effects if group in faulty else unexplained).add(f"{finding['rule']} {finding['name']} ({group or 'no group'})")
    if effects:
        lines.append(Text(f"  also found in the groups with a fault, as its effects: {', '.join(sorted(effects))}", "dim"))
    if unexplained:
        lines.append(Text(f"  also found, and explained by no fault: {', '.join(sorted(unexplained))}", "yellow"))
    lines.append(Text(f"  duration {_clock(outcome.took_s)}", "dim"))
    return lines


def _healthy_line(outcome: ScenarioOutcome) -> tuple[bool, str]:
    if outcome.healthy is None:
        return False, f"the monitor never saw the healthy group {HEALTHY_GROUP}"
    generation = outcome.healthy["generation"]
    if not outcome.about_healthy:
        return True, f"no finding about the healthy group {HEALTHY_GROUP} (generation {generation})"
    listed = ", ".join(f"{finding['rule']} {finding['name']}" for finding in outcome.about_healthy)
    return False, f"{counted(len(outcome.about_healthy), 'finding')} about the healthy group {HEALTHY_GROUP}: {listed}"


def _verdict_line(good: bool, text: str) -> Text:  # noqa: FBT001 - the first element of a (good, text) pair
    return Text.assemble(("✔ ", "green") if good else ("✘ ", "bold red"), text)


def standing(trouble: Scenario, truth: Truth, sightings: Sequence[Sighting], *, began: bool, ended: bool) -> ScreenLine:
    """Return the state of a scenario, given what was published so far."""
    return ScreenLine(trouble, truth, judge(trouble.expected, truth, sightings), began, ended)


def outcome(lines: Sequence[ScreenLine], screen_state: ScreenState, took_s: float) -> ScenarioOutcome:
    """Return the content of the summary."""
    about_healthy = about_group(HEALTHY_GROUP, screen_state.sightings())
    return ScenarioOutcome(
        lines, about_healthy, screen_state.group(HEALTHY_GROUP), screen_state.findings(), screen_state.pids(), took_s
    )


def _word(finding: FindingJson) -> str:
    return "resolved" if finding["status"] == "resolved" else str(finding["severity"])


# --- pieces --------------------------------------------------------------------------------------------------

_RIGHT: Final[Mapping[str, Any]] = {"justify": "right"}


def _table(title: str, *columns: tuple[str, Mapping[str, Any]]) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style=_TITLE,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        expand=True,
        pad_edge=False,
        padding=(0, 1),
    )
    for name, options in columns:
        table.add_column(name, header_style="dim", **options)
    return table


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _age(seconds: float) -> str:
    return f"{max(0.0, seconds):.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _local(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6).astimezone().strftime("%H:%M:%S")
