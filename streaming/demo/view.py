"""The demo's output: live tables on a terminal, one line per event elsewhere, and the summary at the end.

This module only renders the state that other modules collect.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, Self

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from coordinator_model.wording import counted
from streaming.demo.scenarios import HEALTHY_GROUP, TROUBLES, Scenario
from streaming.demo.screen_state import Note, ScreenState, now_us
from streaming.demo.verdicts import Observation, Truth, Verdict, about_group, judge
from streaming.published.records import Json, is_open, worst_findings
from streaming.published.wire_text import visible
from streaming.replay.timeline import COLOURS
from streaming.terminal.tables import LastHour, findings_table, overview_table, overview_widths

_FRAMES_PER_S: Final = 4
_TITLE: Final = "bold"
_HEADINGS: Final = 4  #: lines of the live view for the headings of findings and notes, and for spacing
_FINDINGS_HEAD: Final = 2  #: lines of the table of findings above the first
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
    about_healthy: Sequence[Json]
    healthy: Mapping[str, Any] | None  #: newest snapshot of the healthy group
    findings: Sequence[Observation]  #: the newest state of each
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
        lines_of = partial(console.render_lines, options=options.update(height=None), pad=False)
        findings = [observation.finding for observation in self._screen_state.findings()]
        above = lines_of(
            Group(
                self._heading(), Text(), troubles_table(self._lines()), Text(), *self._groups(findings, options.max_width), Text()
            )
        )
        title, *listed = lines_of(
            Group(
                Text(f"Findings ({sum(map(is_open, findings))} open of {len(findings)})", _TITLE),
                findings_table(findings, time.time()),
            )
        )
        left = options.max_height - len(above) - _HEADINGS - _FINDINGS_HEAD
        notes = max(1, min(8, left // 3))
        newest = listed[_FINDINGS_HEAD:][-max(3, left - notes) :]
        below = lines_of(Group(Text(), Text("What the demo does", _TITLE), *notes_lines(self._screen_state.notes()[-notes:])))
        for line in [*above, title, *listed[:_FINDINGS_HEAD], *newest, *below]:
            yield from line
            yield Segment.line()

    def _groups(self, findings: Sequence[Json], width: int) -> tuple[Text, Table]:
        """The groups as the monitor publishes them, a line each."""
        names = [HEALTHY_GROUP, *(trouble.expected.group for trouble in TROUBLES)]
        known = [group for group in map(self._screen_state.group, names) if group is not None]
        worst = worst_findings(findings)
        hours = [LastHour(0, 0.0)] * len(known)
        table = overview_table(known, worst, hours, time.time(), widths=overview_widths(known, worst, width), chosen=None)
        return Text("Groups, as published by the monitor", _TITLE), table

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
    if line.verdict.found and line.verdict.observation is not None:
        return Text(f"✔ {line.verdict.observation.finding['severity']}", "green")
    if line.truth.failure is not None:
        return Text("✘ not injected", "red")
    if not line.began:
        return Text("pending", "dim")
    if line.truth.fact_us is None:
        return Text("starting", "dim")
    return Text("✘ not found", "red") if line.ended else Text("active", "yellow")


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

    def observation(self, new: Observation, before: Observation | None) -> None:
        """Print a finding when it opens, changes its severity or is resolved; other updates are not printed."""
        finding, word = new.finding, _word(new.finding)
        if before is not None and word == _word(before.finding):
            return
        words = f"{finding['rule']} {finding['summary']}"
        if before is None and word == "resolved":  # over before it was published
            word, words = str(finding["severity"]), f"{words} It is over."
        self._line(new.read_us, Text.assemble((f"{word:<9} ", COLOURS.get(word, "green")), visible(words)))

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
    if not verdict.found or verdict.observation is None:
        found, named = Text("✘ no", "red"), Text(verdict.problem or "", "red")
    else:
        finding = verdict.observation.finding
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
    for finding in (observation.finding for observation in outcome.findings):
        group = finding["group"]
        if (finding["rule"], group) not in expected and group != HEALTHY_GROUP:
            (effects if group in faulty else unexplained).add(
                visible(f"{finding['rule']} {finding['name']} ({group or 'no group'})")
            )
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


def standing(trouble: Scenario, truth: Truth, observations: Sequence[Observation], *, began: bool, ended: bool) -> ScreenLine:
    """Return the state of a scenario, given what was published so far."""
    return ScreenLine(trouble, truth, judge(trouble.expected, truth, observations), began, ended)


def outcome(lines: Sequence[ScreenLine], screen_state: ScreenState, took_s: float) -> ScenarioOutcome:
    """Return the content of the summary."""
    about_healthy = about_group(HEALTHY_GROUP, screen_state.observations())
    return ScenarioOutcome(
        lines, about_healthy, screen_state.group(HEALTHY_GROUP), screen_state.findings(), screen_state.pids(), took_s
    )


def _word(finding: Json) -> str:
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


def _local(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6).astimezone().strftime("%H:%M:%S")
