"""How a protocol's table is written and read: rows of cells between bars, with versions and releases as ranges.

A line without a name has one more answer of the row above. A comment that is indented is the note of the next row. :func:`ways` turns a
table round: at which moments a coordinator gives an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from itertools import product
from typing import Final, NamedTuple

from coordinator_model.wire import ERROR_CODES

HELD: Final = "held"
UNSEEN: Final = frozenset({"unseen", "foreign", "upgraded"})
"""Conditions of which frames do not show whether they hold."""

Release = tuple[int, ...]
_CODES: Final = {known.name: known.code for known in ERROR_CODES.values()}


class Effect(StrEnum):
    """What becomes of the sender and the group."""

    ISSUED = "issued"  #: the answer gives a member id, which is pending from here on
    ADDED = "added"  #: the sender is a member from here on
    REPLACED = "replaced"  #: a new member id takes the place of the one that held the instance id; its session begins
    AWAY = "away"  #: the static member has left for a while; its instance id and partitions are kept for it
    REMOVED = "removed"  #: the member is one no longer
    PREPARES = "prepares"  #: a join phase begins, unless one runs
    SESSION = "session"  #: the member's session timeout starts anew


class Moment(NamedTuple):
    """What is so when a coordinator acts on a request."""

    sender: str
    generation: str  #: of the request, compared with the group's; or its epoch, with the member's
    conditions: frozenset[str]
    version: int
    release: Release  #: of the broker: ``(2, 6, 1)``
    phase: str = ""  #: of the group, if the table tells phases apart
    held: bool = False  #: the request is held already, and something ends that


class Row(NamedTuple):
    """One row. A collection is empty where any value will do."""

    name: str
    answers: frozenset[int]  #: error codes; none if the request is held
    ends_hold: bool  #: the request was held
    phases: str
    senders: frozenset[str]
    generations: frozenset[str]  #: or epochs
    conditions: frozenset[str]
    effects: frozenset[str]
    versions: tuple[int, int]  #: the first and the last
    releases: tuple[Release, Release]  #: the first, and the first to which it applies no longer
    cells: tuple[str, ...]  #: as the table has them; several answers are separated by blanks
    note: str

    @property
    def is_unseen(self) -> bool:
        """True if frames alone do not show whether the row applies."""
        return not self.conditions.isdisjoint(UNSEEN)

    def applies(self, moment: Moment) -> bool:
        return (
            self.ends_hold == moment.held
            and moment.phase in self.phases
            and (not self.senders or moment.sender in self.senders)
            and (not self.generations or moment.generation in self.generations)
            and self.conditions - UNSEEN <= moment.conditions
            and self.versions[0] <= moment.version <= self.versions[1]
            and self.releases[0] <= moment.release < self.releases[1]
        )


def deciding(among: Iterable[Row], moment: Moment) -> Row | None:
    """Return the row that decides at this moment, None if there is none."""
    return next((row for row in among if not row.is_unseen and row.applies(moment)), None)


class Table:
    """A protocol: its rows in their order, and the words of their cells."""

    def __init__(
        self,
        text: str,
        apis: Mapping[str, int],
        words: Mapping[str, type[StrEnum]],
        phases: str = "",
        collective: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Read a table, whose first line is its heading.

        :param apis: first letter of a row's name → its API; a letter without one stands for any.
        :param words: heading of a column → the words of its cells.
        :param phases: all of them, one letter each; none if the table does not tell them apart.
        :param collective: word → the words that it stands for.
        """
        self.apis = apis
        self.words = words
        self.phases = phases
        self.collective = collective or {}
        self.columns = tuple(_cells(text.strip().splitlines()[0]))
        self.rows = tuple(self._rows(text))

    def of(self, api_key: int) -> tuple[Row, ...]:
        """Return the rows of an API, in their order."""
        return tuple(row for row in self.rows if self.apis.get(row.name[0], api_key) == api_key)

    def __getitem__(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def _rows(self, text: str) -> Iterator[Row]:
        note, rows = "", list[tuple[list[str], str]]()
        for line in text.strip().splitlines()[1:]:
            cells = _cells(line)
            if cells[0].startswith("#"):
                note = cells[0].removeprefix("# ") if line[0] == " " else ""
                continue
            if cells[0]:
                rows.append((cells + [""] * (len(self.columns) - len(cells)), note))
            elif len(cells) > 1:
                rows[-1][0][1] += f" {cells[1]}"
            note = ""
        return (self._row(dict(zip(self.columns, cells, strict=True)), note) for cells, note in rows)

    def _row(self, cells: dict[str, str], note: str) -> Row:
        phase = cells.get("phase", "")
        senders, generations, conditions, effects = (self._words(column, cells.get(column, "")) for column in self.words)
        return Row(
            cells["row"],
            frozenset(_CODES[answer] for answer in cells["answer"].split() if answer != HELD),
            phase.startswith(HELD),
            phase.removeprefix(HELD).strip() or self.phases,
            senders,
            generations,
            conditions,
            effects,
            _versions(cells["version"]),
            _releases(cells["release"]),
            tuple(cells.values()),
            note,
        )

    def _words(self, column: str, cell: str) -> frozenset[str]:
        words = (one for word in cell.split() for one in self.collective.get(word, (word,)))
        return frozenset(map(self.words[column], words))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def _versions(range_: str) -> tuple[int, int]:
    """Return the first and the last version of ``2-4``, ``2-`` or ``-4``."""
    first, _, last = range_.partition("-")
    return int(first or 0), int(last or 32_767)


def _releases(range_: str) -> tuple[Release, Release]:
    """Return the first release of ``2.3-2.4``, ``2.3-`` or ``-2.4``, and the one that follows the last."""
    first, _, last = range_.partition("-")
    *line, final = _release(last or "999")
    return _release(first or "0"), (*line, final + 1)


def _release(text: str) -> Release:
    return tuple(map(int, text.split(".")))


class Way(NamedTuple):
    """A moment at which a coordinator gives an answer, and the row by which it does."""

    row: Row
    phase: str
    sender: str
    generation: str


@cache
def ways(
    table: Table, api_key: int, version: int, answer: int, oldest: Release, *, holds: frozenset[str] | None = None
) -> tuple[Way, ...]:
    """Return every way to an answer, if the broker's release is ``oldest`` or later.

    :param holds: the conditions that hold; None if they are not known.
    """
    own = tuple(row for row in table.of(api_key) if row.versions[0] <= version <= row.versions[1])
    releases = {oldest, *(begin for row in own for begin in row.releases if begin > oldest)}  # one of each stretch
    senders, generations = list(table.words.values())[:2]
    found: dict[Way, None] = {}
    for row in own:
        if answer not in row.answers:
            continue
        conditions = row.conditions if holds is None else holds
        for phase, sender, generation, release in product(
            row.phases if table.phases else ("",),
            sorted(row.senders or senders),
            sorted(row.generations or generations),
            sorted(releases),
        ):
            moment = Moment(sender, generation, conditions, version, release, phase, row.ends_hold)
            if row.applies(moment) and _comes_before(own, row, moment):
                found[Way(row, phase, sender, generation)] = None
    return tuple(found)


def _comes_before(own: tuple[Row, ...], row: Row, moment: Moment) -> bool:
    """Return True if no row above this one decides."""
    return row is next(one for one in own if one is row or (not one.is_unseen and one.applies(moment)))


@cache
def shown(table: Table, api_key: int, version: int, answer: int, oldest: Release) -> tuple[Way, ...]:
    """Return every way to an answer whose reasons frames show."""
    return tuple(way for way in ways(table, api_key, version, answer, oldest) if not way.row.is_unseen)


@cache
def unseen(table: Table, api_key: int, version: int, answer: int, oldest: Release) -> tuple[Row, ...]:
    """Return the rows by which an answer may come for reasons that frames do not show."""
    return tuple(dict.fromkeys(way.row for way in ways(table, api_key, version, answer, oldest) if way.row.is_unseen))


@cache
def effects(table: Table, api_key: int, moment: Moment) -> frozenset[str]:
    """Return what becomes of the sender and the group at this moment, by the row that decides."""
    row = deciding(table.of(api_key), moment)
    return frozenset() if row is None else row.effects
