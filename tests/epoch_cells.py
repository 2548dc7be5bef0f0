"""The cells of the table of groups with epochs, for ``cells.py``: every change, and whether the references notice it.

A change that makes no difference at any moment that there can be is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, product
from typing import NamedTuple

from coordinator_model.groups.protocol.epochs import TABLE, Condition, Epoch, Sender
from coordinator_model.groups.protocol.table import Effect, Moment, Row, deciding
from coordinator_model.wire.constants import (
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
    SYNC_GROUP,
)
from tests.coordinator_model.groups.epochs.table_cases import RELEASES, SAID, SINCE, STATIC, answers_at, disagreements, misdeeds

_VERSIONS = {OFFSET_COMMIT: (8, 9), STREAMS_GROUP_HEARTBEAT: (0,), HEARTBEAT: (5,), SYNC_GROUP: (5,), LEAVE_GROUP: (5,)}


class Change(NamedTuple):
    """A row that is changed or removed."""

    row: Row
    what: str
    changed: Row | None

    def __str__(self) -> str:
        return f"{self.row.name} {self.what}"

    @property
    def api_key(self) -> int:
        return TABLE.apis[self.row.name[0]]

    @property
    def table(self) -> tuple[Row, ...]:
        """The rows of its API, with the change."""
        own = TABLE.of(self.api_key)
        return tuple(one for row in own if (one := self.changed if row is self.row else row) is not None)


def every() -> Iterator[Change]:
    """Remove each row and each of several answers, and narrow or widen each cell by one value."""
    for row in TABLE.rows:
        yield Change(row, "removed", None)
        if len(row.answers) > 1:
            for code in sorted(row.answers):
                yield Change(row, f"answer {code}", row._replace(answers=row.answers - {code}))
        for column, values in (("senders", Sender), ("generations", Epoch)):
            own = getattr(row, column) or frozenset(values)
            for value in values:
                if changed := own ^ {value}:  # an empty cell would be any
                    yield Change(row, f"{column} {value}", row._replace(**{column: changed}))
        for condition in Condition:
            if condition is not Condition.FOREIGN:
                yield Change(row, f"if {condition}", row._replace(conditions=row.conditions ^ {condition}))
        if not row.is_unseen:  # nothing shows what the others do
            for effect in Effect:
                yield Change(row, f"then {effect}", row._replace(effects=row.effects ^ {effect}))
        first, last = row.versions
        for ends in {(0, 8), (9, last), (first + 1, last), (first, last - 1)} - {row.versions}:
            yield Change(row, f"version {ends}", row._replace(versions=ends))
        oldest, newest = row.releases
        for release in RELEASES:
            for limits in {(release, newest), (oldest, release)} - {row.releases}:
                yield Change(row, f"release {limits}", row._replace(releases=limits))


@cache
def possible(api_key: int) -> tuple[Moment, ...]:
    """Every moment at which a coordinator can have a request of this API."""
    conditions = [frozenset[Condition](), frozenset({Condition.OWNS}), frozenset({Condition.MALFORMED})]
    beside = ((), (Condition.EMPTY,)) if api_key == OFFSET_COMMIT else SAID.get(api_key, ((),))
    conditions = [holds.union(also) for holds in conditions for also in beside]
    moments = []
    for release, sender, epoch, holds, version in product(RELEASES, Sender, Epoch, conditions, _VERSIONS.get(api_key, (0, 1))):
        is_static = sender in STATIC
        if release < SINCE.get(api_key, RELEASES[0]) or (is_static and api_key == SHARE_GROUP_HEARTBEAT):
            continue
        if api_key == STREAMS_GROUP_HEARTBEAT and is_static and release < (4, 4):
            continue
        if api_key in {HEARTBEAT, SYNC_GROUP, LEAVE_GROUP} and (sender is Sender.AWAY or Condition.MALFORMED in holds):
            continue  # a member of the new protocol is none to the classic one, away or not
        if Condition.EMPTY in holds and sender is not Sender.OUTSIDER:
            continue
        if api_key == OFFSET_COMMIT and (Condition.MALFORMED in holds or sender in {Sender.RETURNING, Sender.RIVAL}):
            continue  # who else holds an instance id makes no difference to a commit, but for what no frame shows
        if (
            epoch is Epoch.JOIN
            and not holds & {Condition.OWNS, Condition.MALFORMED}
            and api_key in {CONSUMER_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT}
        ):
            continue  # a join lists partitions: none, or it is malformed
        if epoch is Epoch.ASIDE and not is_static and Condition.MALFORMED not in holds and api_key != OFFSET_COMMIT:
            continue  # it names no instance id
        moments.append(Moment(sender, epoch, holds, version, release))
    return tuple(moments)


def is_equivalent(change: Change) -> bool:
    """Return True if the change makes no difference at any moment that there can be."""
    before, after = TABLE.of(change.api_key), change.table
    return all(
        answers_at(before, moment) == answers_at(after, moment) and _effects(before, moment) == _effects(after, moment)
        for moment in possible(change.api_key)
    )


def _effects(table: tuple[Row, ...], moment: Moment) -> frozenset[str]:
    row = deciding(table, moment)
    return frozenset() if row is None else row.effects


def is_noticed(change: Change) -> bool:
    found = chain(disagreements(change.api_key, change.table), misdeeds(change.api_key, change.table))
    return next(found, None) is not None


def share_noticed() -> float:
    """Print which changes nobody notices; return the share of those that are."""
    all_changes = list(every())
    counted = [change for change in all_changes if not is_equivalent(change)]
    alive = [change for change in counted if not is_noticed(change)]
    print(
        f"groups with epochs: {len(all_changes)} changes of {len(TABLE.rows)} rows, {len(all_changes) - len(counted)} without any difference"
    )
    for change in alive:
        print(f"    nobody notices: {change}")
    share = 1 - len(alive) / len(counted)
    print(f"{len(counted) - len(alive)} of {len(counted)} changes are noticed: {share:.1%}")
    return share
