"""What is stored of a troubled conversation at any point makes no difference to what is found afterwards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.coordinator_model import troubled

TALKS = {build.__name__: build() for build in (troubled.mixed, troubled.assignments, troubled.members, troubled.sessions)}
RULES = {
    "mixed": {"S-01", "V-01", "G-01", "G-02", "R-08", "V-02"},
    "assignments": {"A-01", "A-03", "A-04", "A-05", "A-06", "A-08", "A-09", "A-10", "A-11", "P-01", "P-08", "P-14"},
    "members": {"G-03", "G-07", "G-08", "G-11", "M-07", "M-10", "S-03", "S-07"},
    "sessions": {"R-05", "R-07", "R-09", "R-10", "R-13", "T-01", "T-02", "T-05", "T-06", "T-07", "T-08"},
}


@pytest.mark.parametrize("name", TALKS)
def test_a_troubled_conversation_is_troubled(name: str) -> None:
    assert RULES[name] - set(TALKS[name].rules()) == set()


@pytest.mark.parametrize("name", TALKS)
def test_a_snapshot_before_each_record_gives_identical_findings(name: str) -> None:
    assert TALKS[name].found_when_restored() == TALKS[name].findings


@pytest.mark.parametrize("name", TALKS)
@given(data=st.data())
def test_snapshots_at_any_point_give_identical_findings(name: str, data: st.DataObject) -> None:
    cuts = data.draw(st.sets(st.integers(0, len(TALKS[name].records)), max_size=12))
    assert TALKS[name].found_when_restored(cuts) == TALKS[name].findings
