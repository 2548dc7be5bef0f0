"""What ``make test`` takes of many cases."""

from __future__ import annotations

import pytest

from tests.samples import sampled


def test_all_cases_but_the_sample_are_exhaustive():
    found = [(one.values, [mark.name for mark in one.marks]) for one in sampled(range(4), [0, 3])]
    assert found == [((0,), []), ((1,), ["exhaustive"]), ((2,), ["exhaustive"]), ((3,), [])]


def test_a_sample_of_no_case_is_refused():
    with pytest.raises(ValueError, match="no case is in the sample"):
        sampled(["a", "b"], ["renamed"])
