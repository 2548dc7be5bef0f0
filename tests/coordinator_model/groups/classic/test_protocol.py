"""The protocol's table, held against the reference coordinator, which is written by hand and does not know it.

Every kind of request is sent to a coordinator in every phase, at each release that a row names, and random histories are lived. The
row that decides must give the answer that the coordinator gave, and what became of the group. Then each cell is changed in turn: a change
that no case notices would be a cell that nobody needs.
"""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import Phase, given, seed, settings

from coordinator_model.groups.protocol.classic import TABLE
from coordinator_model.groups.protocol.table import deciding
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import DELETE_GROUPS, LEAVE_GROUP
from tests.coordinator_model.groups.classic.table_cases import (
    APIS,
    PHASES,
    RELEASES,
    by_phase,
    changes,
    explained,
    means_the_same,
    notices,
    of_release,
    possible,
)
from tests.coordinator_model.reference import history
from tests.coordinator_model.reference.history import plans
from tests.coordinator_model.reference.observed import Case, ObservedCoordinator
from tests.samples import sampled


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
