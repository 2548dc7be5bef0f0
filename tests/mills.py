"""Mills: thousands of near-equal cases. ``make test`` takes a sample of each, ``make test-all`` grinds them all."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], sample: Container[Any]) -> list[Any]:
    """The cases of a parametrized test, all but the sample in the mill."""
    return [pytest.param(case, marks=[] if case in sample else [pytest.mark.mill]) for case in cases]
