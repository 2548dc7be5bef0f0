"""``rebalance-monitor rules``: prints the catalogue, a part of it, or the full description of one rule."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from coordinator_model.finding import Severity
from coordinator_model.rules import CATALOGUE, Rule, TimerRule
from coordinator_model.rules.document import FAMILIES, covered_by, families, family
from streaming.commands.output import fail, stdout
from streaming.replay.timeline import COLOURS


def rules(
    rule: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A rule id (G-02), a family (G), or a word of a rule's name.")
    ] = None,
    *,
    severity: Annotated[Severity | None, typer.Option(help="List only rules of this severity and above.")] = None,
) -> None:
    """List the rules, or explain one: its meaning, its condition, and what to do.

    rebalance-monitor rules

    rebalance-monitor rules G-02

    rebalance-monitor rules G

    rebalance-monitor rules zombie

    rebalance-monitor rules --severity error
    """
    console = stdout(soft_wrap=False)
    chosen = _chosen(rule)
    if not chosen:
        fail(f"no rule id, family or rule name matches {rule!r}; 'rebalance-monitor rules' lists all rules.")
    if rule is not None and len(chosen) == 1:
        console.print(_in_full(chosen[0]))
        return
    shown = [one for one in chosen if severity is None or one.severity.rank >= severity.rank]
    if not shown:
        fail(f"none of these rules has severity {severity} or above.")
    console.print(_catalogue(shown))


def _chosen(words: str | None) -> list[Rule]:
    """Return the rules that match the argument, in the order of the catalogue."""
    every = [rule for letter in families() for rule in family(letter)]
    if words is None:
        return every
    known = CATALOGUE.get(words.upper())
    if known is not None:
        return [known]
    if words.upper() in FAMILIES:
        return family(words.upper())
    return [rule for rule in every if words.lower() in rule.name.lower()]


def _catalogue(shown: list[Rule]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("rule", "severity", "certainty", "blame", "name"):
        table.add_column(title, no_wrap=True)
    last = ""
    for rule in shown:
        if rule.family != last:
            last = rule.family
            table.add_row("", "", "", "", Text(FAMILIES[last][0], "bold"))
        severity = Text(rule.severity.value, COLOURS[rule.severity.value])
        table.add_row(rule.id, severity, rule.certainty.value, rule.blame.value, rule.name)
    return table


def _in_full(rule: Rule) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, title_justify="left", title=Text(f"{rule.id} {rule.name}", "bold"))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(max_width=100)
    title, about = FAMILIES[rule.family]
    table.add_row("family", f"{title}: {about}")
    table.add_row("severity", Text(rule.severity.value, COLOURS[rule.severity.value]))
    table.add_row("certainty", rule.certainty.value)
    table.add_row("blame", rule.blame.value)
    table.add_row("meaning", rule.meaning)
    table.add_row("fires when", rule.condition)
    table.add_row("expected", rule.expected)
    table.add_row("false alarms", rule.false_alarms)
    table.add_row("what to do", rule.action)
    table.add_row(
        "resolved when",
        "its condition no longer holds" if isinstance(rule, TimerRule) else "it has not recurred for a while, or earlier",
    )
    for label, ids in (("an effect of", rule.suppressed_by), ("covers", covered_by(rule))):
        if ids:
            table.add_row(label, "\n".join(f"{id_} {CATALOGUE[id_].name}" if id_ in CATALOGUE else id_ for id_ in ids))
    return table
