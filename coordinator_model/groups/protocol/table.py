"""How a protocol's table is written: rows of cells between bars, with versions and releases as ranges.

A line without a name has one more answer of the row above. A comment that is indented is the note of the next row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class TableRow(NamedTuple):
    """The cells of a row, and what belongs to it."""

    cells: tuple[str, ...]  #: its name, its answers with blanks between, and the rest
    answers: tuple[str, ...]
    note: str


def read_rows(table: str, columns: int) -> Iterator[TableRow]:
    """Yield the rows of a table, whose first line is its heading; cells that are missing at the end are empty."""
    note = ""
    found: TableRow | None = None
    for line in table.strip().splitlines()[1:]:
        text = line.strip()
        if text.startswith("#"):
            note = text.removeprefix("# ") if line[0] == " " else ""
            continue
        if not text:
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if cells[0]:
            if found is not None:
                yield found
            cells += [""] * (columns - len(cells))
            found = TableRow(tuple(cells), (cells[1],), note)
        elif found is not None:
            answers = (*found.answers, cells[1])
            found = found._replace(answers=answers, cells=(found.cells[0], " ".join(answers), *found.cells[2:]))
        note = ""
    if found is not None:
        yield found


def versions_in(range_: str) -> tuple[int, int]:
    """Return the first and the last version of ``2-4``, ``2-`` or ``-4``."""
    first, _, last = range_.partition("-")
    return int(first or 0), int(last or 32_767)


def releases_in(range_: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first and the last release of ``2.3-2.4``, ``2.3-`` or ``-2.4``."""
    first, _, last = range_.partition("-")
    return _release(first or "0"), _release(last or "999")


def _release(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))
