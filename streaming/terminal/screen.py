"""Draws the live view of ``top`` to the size of the terminal.

A line that is longer than the terminal, or a row that takes two, moves everything below it off the screen. So each part is made into lines
first, and only as many are drawn as there are.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.control import Control
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from coordinator_model.events import RECONCILING, State
from streaming.published import finding_rows, sentences
from streaming.published.finding_json import from_json
from streaming.published.records import Json, arrivals_of, duration, finding_order, is_open
from streaming.published.wire_text import visible
from streaming.replay.report import finding_facts, finding_line
from streaming.replay.timeline import COLOURS
from streaming.terminal.keyboard import Keyboard
from streaming.terminal.live_view import LiveView, View
from streaming.terminal.tables import (
    arrivals_table,
    clock,
    group_facts,
    group_line,
    member_seconds,
    members_table,
    overview_table,
    overview_widths,
    rebalances_table,
)

Lines = list[list[Segment]]

_REBALANCING: Final = frozenset({State.PREPARING, State.COMPLETING, RECONCILING})
_ABOUT_CHOSEN: Final = 5  #: lines below the groups about the chosen one
_REBALANCES: Final = 20  #: of a group, the newest that are shown
_LOOK_EVERY_S: Final = 0.25
_BAD: Final = "bold white on red"
_HELP: Final = (
    ("↑ ↓  k j", "choose a group; in a group: scroll"),
    ("PgUp PgDn", "the same by a page; Home and End go to the first and the last"),
    ("Enter", "show the group's findings, members and last rebalances; Enter or Esc goes back"),
    ("/", "show only groups with this text in their name, cluster or state; Enter keeps it, Esc drops it"),
    ("Esc", "show all groups, and choose the first again"),
    ("?", "this help; any key goes back"),
    ("q  Ctrl-C", "quit"),
    ("", ""),
    ("order", "groups with the worst open finding come first, then those that rebalance"),
    ("waits for", "the members for which the coordinator waits in the join or sync phase"),
    ("findings", "how many are open, and the severity of the worst"),
    ("last hour", "rebalances that ended in it; their cost is the time in which members did not consume, added up"),
)


class Screen:
    """The live view as something that rich draws.

    :param now_s: the time that is shown, in seconds since the epoch.
    """

    def __init__(self, live: LiveView, now_s: float) -> None:
        self._live = live
        self._now_s = now_s

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or console.height
        with self._live.state.lock:
            lines = _Lines(console, options.update(width=width, height=None))
            head = [*lines.of(self._title(width)), *itertools.chain.from_iterable(map(lines.of, self._banner()))][: height // 2]
            foot = lines.of(self._foot())
            room = max(1, height - len(head) - len(foot))
            body = self._body(lines, width, room)
        body = body[:room] + [[Segment(" " * width)]] * (room - len(body))
        for number, line in enumerate([*head, *body, *foot][:height]):
            if number:
                yield Segment.line()
            yield from line

    # --- around ------------------------------------------------------------------------------------------------------

    def _title(self, width: int) -> RenderableType:
        """The first line, with less of the program's name where it would cut a word."""
        state = self._live.state
        groups = [past.content for past in state.groups.values() if past.content is not None]
        findings = sum(map(is_open, state.findings.values()))
        rebalancing = sum(known["state"] in _REBALANCING for known in groups)
        name, now = visible(self._live.source.title), Text(f"{clock(self._now_s)} UTC", "dim")
        facts = (_count(len(groups), "group"), f"{rebalancing} rebalancing", _count(findings, "open finding"))
        title = Table.grid(expand=True, padding=(0, 2))
        title.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        title.add_column(justify="right", no_wrap=True)
        for named, between in ((f"{name}   ", " · "), (f"{name.rpartition(' ')[2]}   ", " · "), ("", ", ")):
            row = Text.assemble((named, "bold"), between.join(facts))
            if row.cell_len + 2 + now.cell_len <= width:
                break
        title.add_row(row, now)
        return title

    def _banner(self) -> Iterator[Text]:
        """What the source says of itself, and findings that are about no group."""
        state = self._live.state
        for remark in self._live.source.remarks(state, self._now_s):
            yield Text(f" {visible(remark.text)}", _BAD if remark.is_bad else "dim")  # on as many lines as it takes
        of_no_group = _worst_first(one for one in state.findings.values() if (one["cluster"], one["group"]) not in state.groups)
        for row in finding_rows.rows(of_no_group)[:2]:
            finding, often = row.finding, f", {row.often}" if row.said else ""
            text = f" {finding['severity']} {finding['rule']} {sentences.by_names(finding)}{often}"
            yield _one_line(text, COLOURS[finding["severity"]])

    def _foot(self) -> Text:
        live = self._live
        if live.is_typing:
            return _one_line(
                Text.assemble(("/", "bold"), live.filter, ("▏", "blink"), ("   Enter keeps the filter, Esc drops it", "dim"))
            )
        keys: tuple[tuple[str, str], ...] = (("Esc", "back"), ("↑↓", "scroll"), ("?", "help"), ("q", "quit"))
        if live.view is View.GROUPS:
            keys = (("↑↓", "choose"), ("Enter", "show"), ("/", "filter"), ("?", "help"), ("q", "quit"))
        text = Text("  ").join(Text.assemble((key, "bold"), f" {word}") for key, word in keys)
        if not live.filter and live.view is View.GROUPS:
            text.append(f"   {visible(live.source.place)}", "dim")
        if live.filter:
            text.append(f"   filter: {live.filter}", "bold yellow")
        if live.view is View.GROUP and live.lines > live.rows:
            text.append(f"   lines {live.scrolled + 1} to {min(live.lines, live.scrolled + live.rows)} of {live.lines}", "dim")
        return _one_line(text)

    # --- views -------------------------------------------------------------------------------------------------------

    def _body(self, lines: _Lines, width: int, room: int) -> Lines:
        live = self._live
        if live.view is View.HELP:
            return lines.of(_facts(_HELP, title_width=9))
        if live.view is View.GROUPS:
            return self._groups(lines, width, room)
        all_lines = list(itertools.chain.from_iterable(map(lines.of, self._group(width))))
        live.rows, live.lines = room, len(all_lines)
        live.scrolled = max(0, min(live.scrolled, len(all_lines) - room))
        return all_lines[live.scrolled : live.scrolled + room]

    def _groups(self, lines: _Lines, width: int, room: int) -> Lines:
        live = self._live
        worst = live.worst()
        groups = live.groups(worst)
        if not groups:
            return lines.of(_nothing(live))
        live.rows = max(1, room - 2 - _ABOUT_CHOSEN)
        first, chosen = live.window(groups)
        shown = groups[first : first + live.rows]
        hours = [live.last_hour(known, self._now_s) for known in shown]
        widths = overview_widths(groups, worst, width)
        table = lines.of(overview_table(shown, worst, hours, self._now_s, widths=widths, chosen=chosen - first))
        about = lines.of(self._about(groups[chosen]))[:_ABOUT_CHOSEN]
        more = len(groups) - first - len(shown)
        below = f"─ {_count(more, 'more group')} ↓ " if more else ""
        rule = lines.of(_one_line(below + "─" * max(0, width - len(below)), "dim"))
        return [*table, *lines.of("") * (live.rows - len(shown)), *rule, *about]

    def _about(self, known: Json) -> RenderableType:
        """What there is to say of the chosen group in a few lines."""
        said = [_sentence(known, self._now_s)]
        hour = self._live.last_hour(known, self._now_s)
        if hour.rebalances:
            cost = member_seconds(hour.cost_member_seconds)
            said.append(Text(f"Last hour: {_count(hour.rebalances, 'rebalance')}, {cost} without consuming"))
        if findings := self._findings_of(known):
            worst = findings[0]
            said.append(
                Text.assemble((worst["severity"], COLOURS[worst["severity"]]), f" {worst['rule']} {sentences.by_names(worst)}")
            )
        return _stacked(text for text in said if text)

    def _group(self, width: int) -> Iterator[RenderableType]:
        known = self._live.group()
        if known is None:
            yield Text("The monitor has dropped this group: nothing was heard of it for long, or it was deleted.")
            return
        yield group_line(known, self._now_s)
        sentence = _sentence(known, self._now_s)
        if sentence:
            yield Text.assemble(sentence, style="bold yellow" if known["waits_for"] else "")
        if arrivals_of(known):
            yield Text()
            yield arrivals_table(known)
        for row in finding_rows.rows(self._findings_of(known)):
            finding = from_json(row.finding)
            facts = dict(finding_facts(finding))
            facts.pop("who", None)  # the summary names it
            yield Text()
            yield finding_line(finding).append(f", {row.often}" if row.said else "", "dim")
            yield _indented(Text(facts.pop("")))
            yield _indented(_facts(sorted(facts.items(), key=lambda fact: fact[0] != "to do")))
        if known["members"]:
            yield Text()
            yield members_table(known, width)
        rebalances = list(itertools.islice(self._live.rebalances(known), _REBALANCES))
        if rebalances:
            yield Text()
            yield rebalances_table(rebalances, width, of_one_group=True)
        yield Text()
        yield _facts(fact for fact in group_facts(known) if fact[0] not in {"waits for", "not known"})

    def _findings_of(self, known: Json) -> list[Json]:
        findings = self._live.state.findings.values()
        return _worst_first(one for one in findings if (one["cluster"], one["group"]) == (known["cluster"], known["group"]))


def show(live: LiveView, keyboard: Keyboard, console: Console, stop: threading.Event) -> None:
    """Draw when something has changed, and each second, until it is over."""
    drawn: object = None
    with console.screen():
        while not (live.is_over or stop.is_set()):
            now_s = time.time()
            current = (live.state.version, console.size, int(now_s))
            if current != drawn:
                with console:  # one write
                    console.control(Control.home())
                    console.print(Screen(live, now_s), height=console.height, end="")
                drawn = current
            try:
                keys = keyboard.read(_LOOK_EVERY_S)
            except EOFError:
                return
            for key in keys:
                live.press(key)
                drawn = None


class _Lines:
    """Makes lines of what rich draws, each as wide as the terminal."""

    def __init__(self, console: Console, options: ConsoleOptions) -> None:
        self._console = console
        self._options = options

    def of(self, part: RenderableType) -> Lines:
        return self._console.render_lines(part, self._options)


def _worst_first(findings: Iterable[Json]) -> list[Json]:
    return sorted(filter(is_open, findings), key=finding_order)


def _sentence(known: Json, now_s: float) -> Text:
    """Return what a group waits for, and for how long by now."""
    said = sentences.waits_for(known)
    since = f", for {duration(now_s - said.since_s)}{said.at_most}" if said.since_s is not None else ""
    return Text(f"{said.text}{since}")


def _nothing(live: LiveView) -> Text:
    if live.filter:
        return Text(f"No group has {live.filter} in its name, cluster or state; Esc shows all.")
    return Text("The monitor has not seen any group yet." if live.state.complete else "")


def _facts(facts: Iterable[tuple[str, str]], title_width: int = 13) -> Table:
    """Return titles and texts; a text that takes several lines stays in its column."""
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(width=title_width, style="dim", no_wrap=True)
    table.add_column(ratio=1)
    for title, text in facts:
        table.add_row(Text(title), Text(text, overflow="fold"))
    return table


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2))


def _stacked(texts: Iterable[Text]) -> Text:
    return Text("\n").join(texts)


def _one_line(text: Text | str, style: str = "") -> Text:
    line = Text(visible(text), style) if isinstance(text, str) else text
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
