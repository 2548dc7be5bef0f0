"""A protocol's table turned round: at which moments a coordinator gives an answer."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import NamedTuple

from coordinator_model.groups.protocol.table import Moment, Release, Row, Table, deciding


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
