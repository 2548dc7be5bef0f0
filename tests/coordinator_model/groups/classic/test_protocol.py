"""The protocol's table, held against the reference coordinator, which is written by hand and does not know it.

Every kind of request is sent to a coordinator in every phase, at each release that a row names, and random histories are lived. The
row that decides must give the answer that the coordinator gave, and what became of the group. Then each cell is changed in turn: a change
that no case notices would be a cell that nobody needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest
from hypothesis import Phase, given, seed, settings

from coordinator_model.groups.protocol.classic import TABLE, Condition, Generation, Sender
from coordinator_model.groups.protocol.table import Moment, deciding
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import (
    COMMITS,
    DELETE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from tests.coordinator_model.groups.classic.table_cases import (
    NEWEST,
    PHASES,
    RELEASES,
    STATIC_SINCE,
    by_phase,
    changes,
    explained,
    means_the_same,
    notices,
    of_release,
)
from tests.coordinator_model.reference import history
from tests.coordinator_model.reference.history import plans
from tests.coordinator_model.reference.observed import Case, ObservedCoordinator
from tests.samples import sampled

APIS = (JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP, OFFSET_COMMIT, TXN_OFFSET_COMMIT, DELETE_GROUPS)


@cache
def by_history() -> frozenset[Case]:
    cases: set[Case] = set()

    class Observed(ObservedCoordinator):
        pass

    Observed.cases = cases

    @seed(1)
    @settings(database=None, phases=[Phase.generate], deadline=None)
    @given(plans())
    def live(plan: history.Plan) -> None:
        plan.run()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "Coordinator", Observed)
        live()
    return frozenset(cases)


@pytest.mark.parametrize("release", sampled(RELEASES, (RELEASES[0], RELEASES[-1])), ids=str)
@pytest.mark.parametrize("api_key", APIS, ids=API_NAMES.__getitem__)
def test_the_row_that_decides_gives_what_the_coordinator_answers_in_every_phase(api_key, release):
    cases = of_release(api_key, release)
    assert {case.moment.phase for case in cases} == set(PHASES)
    assert [case for case in cases if not explained(case, deciding(TABLE.of(api_key), case.moment))] == []


def test_the_row_that_decides_gives_what_the_coordinator_answers_in_random_histories():
    strange = [case for case in by_history() if not explained(case, deciding(TABLE.of(case.api_key), case.moment))]
    assert strange == []


# ---------------------------------------------------------------------------------------------------- each cell


@cache
def possible(api_key: int) -> tuple[Moment, ...]:
    """Every moment at which a coordinator can have a request of this API, or end that it holds one."""
    return (*_moments_of_requests(api_key), *_moments_of_ends(api_key))


def _moments_of_requests(api_key: int) -> Iterator[Moment]:
    outside = [Sender.STRANGER, Sender.NEW, Sender.NEW_STATIC]
    pending = [Sender.PENDING, Sender.PENDING_STATIC]
    senders = {phase: list(Sender) for phase in PHASES} | {"-": outside, "E": [*outside, *pending]}
    static = {Sender.NEW_STATIC, Sender.RETURNING, Sender.PENDING_STATIC, Sender.RENAMED, Sender.FENCED}
    generations = list(Generation) if api_key in {SYNC_GROUP, HEARTBEAT, *COMMITS} else [Generation.NONE]
    for phase, generation, version, release in product(PHASES, generations, range(NEWEST[api_key] + 1), RELEASES):
        if phase == "-" and generation is Generation.SAME:
            continue
        for sender in senders[phase]:
            if sender in static and version < STATIC_SINCE.get(api_key, 99):
                continue
            if api_key == DELETE_GROUPS and sender is not Sender.NEW:
                continue
            for conditions in _conditions(api_key, sender, version):
                yield Moment(sender, generation, frozenset(conditions), version, release, phase)


def _conditions(api_key: int, sender: Sender, version: int) -> list[tuple[Condition, ...]]:
    if api_key == SYNC_GROUP and version >= 5:
        return [(), (Condition.NAMES_OTHER,), (Condition.NAMES_NONE,)]
    if api_key != JOIN_GROUP:
        return [()]
    if sender is Sender.RETURNING:
        return [(Condition.UNSUPPORTED,), (Condition.KEEPS,), (Condition.SWITCHES,)]
    if sender is Sender.MEMBER:
        roles = (Condition.LEADER, Condition.FOLLOWER)
        return [(Condition.UNSUPPORTED,), *product(roles, (Condition.UNCHANGED, Condition.CHANGED))]
    return [(Condition.UNSUPPORTED,), ()]


def _moments_of_ends(api_key: int) -> Iterator[Moment]:
    ends = {
        JOIN_GROUP: (("K", Sender.MEMBER), ("P", Sender.STRANGER), ("P", Sender.FENCED), ("N", Sender.MEMBER)),
        SYNC_GROUP: (*product("SPN", [Sender.MEMBER]), ("K", Sender.STRANGER), ("K", Sender.FENCED)),
    }.get(api_key, ())
    generation = Generation.SAME if api_key == SYNC_GROUP else Generation.NONE
    for (phase, sender), version, release in product(ends, range(NEWEST[api_key] + 1), RELEASES):
        if sender is not Sender.FENCED or version >= STATIC_SINCE[api_key]:
            yield Moment(sender, generation, frozenset(), version, release, phase, held=True)


@pytest.mark.parametrize("api_key", sampled(APIS, (LEAVE_GROUP, DELETE_GROUPS)), ids=API_NAMES.__getitem__)
def test_a_case_notices_each_change_of_a_cell(api_key):
    table = tuple(row for row in TABLE.of(api_key) if not row.is_unseen)
    index_of = {row: index for index, row in enumerate(table)}
    cases = [(index_of[deciding(table, case.moment)], case) for case in by_phase(api_key)]
    moments = [(index_of[deciding(table, moment)], moment) for moment in possible(api_key)]
    different = [
        (index, f"{row.name} {what}", mutant)
        for index, row in enumerate(table)
        for what, mutant in [("removed", None), *changes(row)]
        if not means_the_same(moments, table, index, mutant)
    ]
    assert len(different) > 20 * len(table)
    assert [what for index, what, mutant in different if not notices(cases, table, index, mutant)] == []
