"""Whether each cell of the protocol's table bears load: change every one, and show which changes no test notices.

A change removes a row, or narrows or widens one of its cells by one value. Two oracles may notice it, and neither knows the table:

* the reference coordinator, which was asked each kind of request in each phase: the row that decides gives another answer;
* the verdicts (``verdict_cases``): an answer is found unlawful that the reference gives at a possible moment, or the reverse.

A change that makes no difference at any moment that there can be is not counted. The verdicts are asked about each row that is removed,
about each change that the reference does not notice, and about a sample of the others. The table of groups with epochs is put to the test
in ``epoch_cells.py``.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from coordinator_model.groups.protocol import classic as protocol
from coordinator_model.groups.protocol import table as tables
from coordinator_model.groups.protocol.classic import TABLE
from coordinator_model.groups.protocol.table import Moment, Row, deciding
from coordinator_model.wire.constants import FIND_COORDINATOR
from tests import epoch_cells
from tests.coordinator_model.groups.classic import verdict_cases
from tests.coordinator_model.groups.classic.table_cases import APIS, by_phase, changes, means_the_same, notices, possible
from tests.coordinator_model.reference.observed import Case

REMOVED = "removed"
ANY_VERSION = 32_767  #: the last one in a cell without an end
_CELLS = {
    "ends_hold": 2,
    "phase": 2,
    "senders": 3,
    "generations": 4,
    "then": 6,
    "version": 7,
    "release": 8,
}  #: first word of a change → the cell that it changes


class Change(NamedTuple):
    """A table with one row changed or removed."""

    row: Row
    what: str
    changed: Row | None

    def __str__(self) -> str:
        return f"{self.row.name} {self.what}"

    @property
    def api_keys(self) -> tuple[int, ...]:
        own = TABLE.apis.get(self.row.name[0])
        return tuple(verdict_cases.APIS) if own is None else (own,)


def every() -> Iterator[Change]:
    for row in TABLE.rows:
        yield Change(row, REMOVED, None)
        if len(row.answers) > 1:
            for code in sorted(row.answers):
                yield Change(row, f"answer {code}", row._replace(answers=row.answers - {code}))
        if row.is_unseen or TABLE.apis.get(row.name[0]) == FIND_COORDINATOR:
            yield from _of_no_phase(row)
        else:
            yield from (Change(row, what, changed) for what, changed in changes(row))


def _of_no_phase(row: Row) -> Iterator[Change]:
    """Yield the changes of a row that no state of a group decides: empty cells stay empty, for frames show nothing of them."""
    if row.conditions:
        yield Change(row, "seen", row._replace(conditions=frozenset()))
    for what, changed in changes(row):
        column = what.split()[0]
        first, last = changed.versions
        within = first <= last and (last == row.versions[1] or row.versions[1] < ANY_VERSION)
        if column != "if" and row.cells[_CELLS[column]] and within:
            yield Change(row, what, changed)


# ---------------------------------------------------------------------------------------------------- by the reference


@cache
def _table(api_key: int) -> tuple[Row, ...]:
    return tuple(row for row in TABLE.of(api_key) if not row.is_unseen)


@cache
def _decided(api_key: int) -> tuple[list[tuple[int, Case]], list[tuple[int, Moment]]]:
    """Each case and each moment that there can be, with the index of the row that decides it."""
    table = _table(api_key)
    index_of = {row: index for index, row in enumerate(table)}
    cases = [(index_of[deciding(table, case.moment)], case) for case in by_phase(api_key)]  # type: ignore[index]
    moments = [(index_of[deciding(table, moment)], moment) for moment in possible(api_key)]  # type: ignore[index]
    return cases, moments


def is_equivalent(change: Change) -> bool:
    """Return True if the change makes no difference at any moment that there can be."""
    if change.row.is_unseen:
        return False
    return all(
        means_the_same(_decided(api_key)[1], _table(api_key), _table(api_key).index(change.row), change.changed)
        for api_key in change.api_keys
        if api_key in APIS
    ) and any(api_key in APIS for api_key in change.api_keys)


def is_noticed_by_reference(change: Change) -> bool:
    if change.row.is_unseen:
        return False
    return any(
        notices(_decided(api_key)[0], _table(api_key), _table(api_key).index(change.row), change.changed)
        for api_key in change.api_keys
        if api_key in APIS
    )


# ---------------------------------------------------------------------------------------------------- by verdicts


@contextmanager
def changed_table(change: Change) -> Iterator[None]:
    """Let the model judge by the changed table."""
    whole = TABLE.rows
    after = tuple(one for row in whole if (one := change.changed if row is change.row else row) is not None)
    _set(after)
    try:
        yield
    finally:
        _set(whole)


def _set(table: tuple[Row, ...]) -> None:
    TABLE.rows = table
    for cached in (tables.ways, tables.shown, tables.unseen, tables.effects, protocol.phases_of_members):
        cached.cache_clear()


def is_noticed_by_verdicts(change: Change) -> bool:
    errors = {api_key: sorted({code for row in TABLE.of(api_key) for code in row.answers}) for api_key in change.api_keys}
    with changed_table(change):
        return any(
            next(verdict_cases.disagreements(scene, api_key, errors[api_key]), None) is not None
            for api_key in change.api_keys
            for scene in verdict_cases.SCENES
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=100, help="how many of the other changes the verdicts are asked about")
    parser.add_argument("--seed", type=int, default=1, help="which ones are drawn")
    options = parser.parse_args()
    began_s = time.monotonic()
    all_changes = list(every())
    counted = [change for change in all_changes if not is_equivalent(change)]
    by_reference = {change for change in counted if is_noticed_by_reference(change)}
    print(
        f"{len(all_changes)} changes of {len(TABLE.rows)} rows, {len(all_changes) - len(counted)} of them without any difference; "
        f"the reference notices {len(by_reference)} of {len(counted)}",
        flush=True,
    )
    removed = [change for change in counted if change.what == REMOVED]
    left = [change for change in counted if change not in by_reference and change.what != REMOVED]
    others = [change for change in by_reference if change.what != REMOVED and not change.what.startswith("then")]
    drawn = random.Random(options.seed).sample(sorted(others, key=str), min(options.sample, len(others)))
    noticed = {change for change in (*removed, *left, *drawn) if is_noticed_by_verdicts(change)}
    for name, group in (("rows removed", removed), ("what the reference does not notice", left), ("sample of the others", drawn)):
        print(f"verdicts notice {sum(change in noticed for change in group):4} of {len(group):4}: {name}")
    alive = [change for change in counted if change not in by_reference and change not in noticed]
    for change in alive:
        print(f"    nobody notices: {change}")
    share = 1 - len(alive) / len(counted)
    print(f"{len(counted) - len(alive)} of {len(counted)} changes are noticed: {share:.1%}, in {time.monotonic() - began_s:.0f} s")
    sys.exit(min(share, epoch_cells.share_noticed()) < 0.97)


if __name__ == "__main__":
    main()
