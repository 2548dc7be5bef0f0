"""``rebalance-monitor protocol``: which answer a coordinator gives, in which phase, to whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from coordinator_model.groups.classic.protocol import APIS, COLUMNS, ROWS, Row
from coordinator_model.rules.document import WORDS
from coordinator_model.wire import API_NAMES, ERROR_CODES
from streaming.commands.output import fail


def protocol(
    api: Annotated[
        str | None,
        typer.Argument(metavar="[API|ERROR|ROW]", help="Heartbeat, ILLEGAL_GENERATION, 27 or H10.", show_default=False),
    ] = None,
) -> None:
    """Print the protocol of classic groups as a table: which answer a coordinator gives, in which phase, to whom.

    rebalance-monitor protocol

    rebalance-monitor protocol Heartbeat

    rebalance-monitor protocol REBALANCE_IN_PROGRESS

    rebalance-monitor protocol J16
    """
    chosen = _chosen(api)
    if not chosen:
        names = ", ".join(API_NAMES[api_key] for api_key in APIS.values())
        fail(f"{api} is no API of the table ({names}), no error that its answers have, and no row.")
    console = Console(highlight=False, soft_wrap=True)
    for letter in dict.fromkeys(row.name[0] for row in chosen):
        console.print(Text(API_NAMES[APIS[letter]] if letter in APIS else "any API", "bold"))
        for line in _table([row for row in chosen if row.name[0] == letter]):
            console.print(line)
        console.print()
    for word, meaning in _legend(chosen):
        console.print(Text.assemble((f"{word:<16}", "dim"), meaning))


def _chosen(words: str | None) -> list[Row]:
    """Return the rows that an argument means, in the order of the table."""
    if words is None:
        return list(ROWS)
    by_api = {API_NAMES[api_key].lower(): letter for letter, api_key in APIS.items()}
    letter = by_api.get(words.lower())
    if letter is not None:
        return [row for row in ROWS if row.name[0] in {letter, "X"}]
    codes = {known.code for known in ERROR_CODES.values() if words.upper() in {known.name, str(known.code)}}
    return [row for row in ROWS if row.name == words.upper() or codes & row.answers]


def _table(shown: list[Row]) -> Iterator[Text]:
    """Yield the header and the rows, without the columns that all of these rows leave empty; a row's note stands above it."""
    columns = [index for index in range(len(COLUMNS)) if any(row.cells[index] for row in shown)]
    widths = {index: max(len(COLUMNS[index]), *(len(row.cells[index]) for row in shown)) for index in columns}

    def line(cells: Sequence[str], style: str = "") -> Text:
        return Text("   ".join(cells[index].ljust(widths[index]) for index in columns).rstrip(), style)

    yield line(COLUMNS, "underline")
    for row in shown:
        if row.note:
            yield Text(f"  # {row.note}", "dim")
        yield line(row.cells, "dim" if row.is_unseen else "")


def _legend(shown: list[Row]) -> Iterator[tuple[str, str]]:
    """Yield the words that the rows use, and what they mean."""
    used = {word for row in shown for cell in row.cells for word in cell.split()}
    yield "phase", "E Empty, P PreparingRebalance, K CompletingRebalance, S Stable, D Dead,"
    yield "", "- no such group, L loading, N coordinated by another broker; held: a request that was held is answered"
    for word, meaning in WORDS.items():
        if word in used:
            yield word, meaning
