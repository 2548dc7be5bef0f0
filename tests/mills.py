"""Mills: thousands of near-equal cases. ``make test`` takes a sample of each, ``make test-all`` grinds them all."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], sample: Container[Any]) -> list[Any]:
    """The cases of a parametrized test, all but the sample in the mill.

    :raises ValueError: when none is in the sample, as after a rename: ``make test`` would guard nothing.
    """
    found = [pytest.param(case, marks=[] if case in sample else [pytest.mark.mill]) for case in cases]
    if all(one.marks for one in found):
        raise ValueError("no case is in the sample")
    return found
