"""Every answer to every kind of request, judged as the reference coordinator and the facts of a scene say that it must be."""

from __future__ import annotations

import pytest

from coordinator_model.groups.protocol.classic import TABLE
from coordinator_model.groups.protocol.table import Row
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import HEARTBEAT, LEAVE_GROUP
from tests import cells
from tests.coordinator_model.groups.classic.verdict_cases import APIS, SCENES, Scene, disagreements, probes, unlawful
from tests.samples import sampled

SAMPLE = [scene for scene in SCENES if scene.name == "settled"]


@pytest.mark.parametrize("api_key", sampled(APIS, [HEARTBEAT, LEAVE_GROUP]), ids=API_NAMES.__getitem__)
@pytest.mark.parametrize("scene", sampled(SCENES, SAMPLE), ids=lambda scene: scene.name)
def test_an_answer_is_unlawful_exactly_where_the_reference_gives_it_at_no_possible_moment(scene: Scene, api_key: int) -> None:
    assert list(disagreements(scene, api_key)) == []


@pytest.mark.exhaustive
def test_what_frames_show_makes_more_answers_unlawful() -> None:
    """Else each scene could find nothing at all, and agree with a reference that is asked in vain."""
    count = {scene.name: sum(len(unlawful(scene, probe)) for api_key in APIS for probe in probes(api_key)) for scene in SCENES}
    assert count["settled"] > count["nothing known"] + 100
    assert count["settled, recent brokers"] > count["settled"]
    assert count["no assignments yet"] < count["settled"] < count["two wait in a join phase"]
    assert count["a broker that loads"] < count["settled"]
    assert count["still in sync later"] > count["still at the generation later"] > count["settled"] + 100
    assert count["still a member later"] > count["settled"] + 100


@pytest.mark.exhaustive
@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.name)
def test_each_row_is_missed_when_it_is_removed(row: Row) -> None:
    """``make cells`` changes every cell; this is its coarsest part."""
    change = cells.Change(row, cells.REMOVED, None)
    assert cells.is_equivalent(change) or cells.is_noticed_by_reference(change) or cells.is_noticed_by_verdicts(change)


@pytest.mark.exhaustive
def test_a_changed_table_is_put_back() -> None:
    change = cells.Change(TABLE.rows[0], cells.REMOVED, None)
    with cells.changed_table(change):
        assert not any(disagreements(SCENES[0], 12))
        assert any(disagreements(SCENES[0], 11))
    assert not any(disagreements(SCENES[0], 11))
