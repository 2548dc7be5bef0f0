"""``rebalance-monitor protocol``: which answer a coordinator gives, in which state, to whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.text import Text

from coordinator_model.groups.protocol.table import Row
from coordinator_model.rules.document import PAGES, ProtocolPage
from coordinator_model.wire import ERROR_CODES
from streaming.commands.output import fail, stdout


def protocol(
    api: Annotated[str | None, typer.Argument(metavar="[API|ERROR|ROW]", help="Heartbeat, ILLEGAL_GENERATION, 27 or H10.")] = None,
) -> None:
    """Print the protocol as tables: which answer a coordinator gives, in which state, to whom.

    Classic groups have one table, and consumer, share and Streams groups another.

    rebalance-monitor protocol

    rebalance-monitor protocol Heartbeat

    rebalance-monitor protocol ConsumerGroupHeartbeat

    rebalance-monitor protocol REBALANCE_IN_PROGRESS

    rebalance-monitor protocol J16
    """
    console = stdout()
    found = [(page, rows) for page in PAGES if (rows := _chosen(page, api))]
    if not found:
        names = ", ".join(dict.fromkeys(page.api(row.name) for page in PAGES for row in page.table.rows if row.name[0] != "X"))
        fail(f"{api} is no API of the tables ({names}), no error that its answers have, and no row.")
    for page, rows in found:
        console.print(Text(page.title, "bold underline"), end="\n\n")
        for letter in dict.fromkeys(row.name[0] for row in rows):
            console.print(Text(page.api(letter), "bold"))
            for line in _lines(page, [row for row in rows if row.name[0] == letter]):
                console.print(line)
            console.print()
        for word, meaning in _legend(page, rows):
            console.print(Text.assemble((f"{word:<16}", "dim"), meaning))
        console.print()


def _chosen(page: ProtocolPage, words: str | None) -> list[Row]:
    """Return the rows that an argument means, in the order of the table."""
    if words is None:
        return list(page.table.rows)
    of_api = [row for row in page.table.rows if page.api(row.name).lower() == words.lower()]
    if of_api:
        return [*of_api, *page.rows_of("X")]
    codes = {known.code for known in ERROR_CODES.values() if words.upper() in {known.name, str(known.code)}}
    return [row for row in page.table.rows if row.name == words.upper() or codes & row.answers]


def _lines(page: ProtocolPage, shown: list[Row]) -> Iterator[Text]:
    """Yield the header and the rows, without the columns that all of these rows leave empty; a row's note stands above it."""
    columns = [index for index in range(len(page.table.columns)) if any(row.cells[index] for row in shown)]
    widths = {index: max(len(page.table.columns[index]), *(len(row.cells[index]) for row in shown)) for index in columns}

    def line(cells: Sequence[str], style: str = "") -> Text:
        return Text("   ".join(cells[index].ljust(widths[index]) for index in columns).rstrip(), style)

    yield line(page.table.columns, "underline")
    for row in shown:
        if row.note:
            yield Text(f"  # {row.note}", "dim")
        yield line(row.cells, "dim" if row.is_unseen else "")


def _legend(page: ProtocolPage, shown: list[Row]) -> Iterator[tuple[str, str]]:
    """Yield the words that the rows use, and what they mean."""
    used = {word for row in shown for cell in row.cells for word in cell.split()}
    if page.phases:
        yield "phase", page.phases
    for word, meaning in page.words.items():
        if word in used:
            yield word, meaning
