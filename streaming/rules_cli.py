"""``rebalance-monitor rules``: the catalogue, or all that there is to say of one rule."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coordinator_model.rules import CATALOGUE, Rule

COLOURS: Final = {"info": "cyan", "warning": "yellow", "error": "red", "critical": "bold red"}


def rules(
    rule: Annotated[str | None, typer.Argument(metavar="[ID]", help="One rule, in full.", show_default=False)] = None,
) -> None:
    """List the rules, or tell all about one: what it means, when it speaks, what to do.

    rebalance-monitor rules

    rebalance-monitor rules G-02
    """
    console = Console(highlight=False)
    if rule is None:
        console.print(_catalogue())
        return
    known = CATALOGUE.get(rule.upper())
    if known is None:
        Console(stderr=True, highlight=False).print(
            f"[bold red]error:[/] there is no rule {rule!r}; 'rebalance-monitor rules' lists them all.", soft_wrap=True
        )
        raise typer.Exit(2)
    console.print(_in_full(known))


def _catalogue() -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("rule", "severity", "certainty", "blame", "name"):
        table.add_column(title, no_wrap=True)
    for rule in CATALOGUE.values():
        severity = Text(rule.severity.value, COLOURS[rule.severity.value])
        table.add_row(rule.id, severity, rule.certainty.value, rule.blame.value, rule.name)
    return table


def _in_full(rule: Rule) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, title_justify="left", title=Text(f"{rule.id} {rule.name}", "bold"))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(max_width=100)
    table.add_row("severity", Text(rule.severity.value, COLOURS[rule.severity.value]))
    table.add_row("certainty", rule.certainty.value)
    table.add_row("blame", rule.blame.value)
    table.add_row("meaning", rule.meaning)
    table.add_row("speaks when", rule.condition)
    table.add_row("expected", rule.expected)
    table.add_row("false alarms", rule.false_alarms)
    table.add_row("what to do", rule.action)
    if rule.folds_under:
        table.add_row("an effect of", ", ".join(rule.folds_under))
    return table
