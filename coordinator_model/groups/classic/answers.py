"""The protocol's table turned round: at which moments a coordinator gives an answer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from coordinator_model.groups.protocol.classic import (
    Generation,
    Moment,
    Row,
    Sender,
    deciding,
    rows,
)

Release = tuple[int, ...]


class Way(NamedTuple):
    """A moment at which a coordinator gives an answer, and the row that decides so."""

    row: Row
    phase: str
    sender: Sender
    generation: Generation


@cache
def ways(api_key: int, version: int, error: int, oldest: Release) -> tuple[Way, ...]:
    """Return every way to an answer whose reasons frames show, if the broker's release is ``oldest`` or later."""
    table = tuple(row for row in rows(api_key) if not row.is_unseen and row.versions[0] <= version <= row.versions[1])
    releases = _one_of_each(table, oldest)
    found = {way: None for row in table if error in row.answers for way in _ways_of(row, table, version, releases)}
    return tuple(found)


def _ways_of(row: Row, table: tuple[Row, ...], version: int, releases: list[Release]) -> Iterator[Way]:
    senders = sorted(row.senders or Sender)
    generations = sorted(row.generations or Generation)
    for phase, sender, generation, release in product(row.phases, senders, generations, releases):
        moment = Moment(row.ends_hold, phase, sender, generation, row.conditions, version, release)
        if deciding(table, moment) is row:
            yield Way(row, phase, sender, generation)


@cache
def unseen(api_key: int, version: int, error: int) -> tuple[Row, ...]:
    """Return the rows by which an answer may come for reasons that frames do not show."""
    return tuple(
        row for row in rows(api_key) if error in row.answers and row.is_unseen and row.versions[0] <= version <= row.versions[1]
    )


def _one_of_each(table: tuple[Row, ...], oldest: Release) -> list[Release]:
    """Return a release for each stretch of releases that the table does not tell apart, from ``oldest`` on."""
    begins = {begin for row in table for begin in (row.releases[0], _following(row.releases[1]))}
    return [oldest, *sorted(begin for begin in begins if begin > oldest)]


def _following(release: Release) -> Release:
    return *release[:-1], release[-1] + 1
