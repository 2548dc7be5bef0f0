"""Samples: of thousands of near-equal cases ``make test`` takes a few, which are always the same, and ``make test-all`` all."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], sample: Container[Any]) -> list[Any]:
    """The cases of a parametrized test, marked ``exhaustive`` unless they are in the sample.

    :raises ValueError: when none is in the sample, as after a rename: ``make test`` would guard nothing.
    """
    found = [pytest.param(case, marks=[] if case in sample else [pytest.mark.exhaustive]) for case in cases]
    if all(one.marks for one in found):
        raise ValueError("no case is in the sample")
    return found
