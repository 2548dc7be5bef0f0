"""Bounds on the position of something that only moves forward."""

from __future__ import annotations

import pytest

from coordinator_model.groups.classic.positions import Bound, Chain


@pytest.fixture
def chain() -> Chain:
    """At 2 from 20 on, at 4 from 40 on; at most at 5 until 50, at most at 3 until 30."""
    chain = Chain()
    chain.reached(40, (4,), "four")
    chain.reached(20, (2,), "two")
    chain.not_beyond(30, (3,), "three")
    chain.not_beyond(50, (5,), "five")
    return chain


def test_everything_is_possible_without_bounds() -> None:
    assert Chain().excludes((1,), 0, 100) is None


@pytest.mark.parametrize(
    ("position", "first_us", "last_us", "by"),
    [
        (1, 0, 10, None),
        (1, 20, 20, None),  # it may have moved at that instant
        (1, 21, 60, "two"),
        (1, 41, 60, "two"),  # the oldest that shows it
        (3, 21, 60, None),
        (3, 41, 60, "four"),
        (4, 0, 29, "three"),
        (4, 0, 30, None),
        (6, 0, 29, "five"),  # the newest that shows it
        (6, 0, 49, "five"),
        (6, 0, 50, None),
        (9, 60, 60, None),
    ],
)
def test_a_position_is_excluded_by_a_bound_beyond_it_before_or_short_of_it_afterwards(
    chain: Chain, position: int, first_us: int, last_us: int, by: str | None
) -> None:
    bound = chain.excludes((position,), first_us, last_us)
    assert (None if bound is None else bound.proof) == by


def test_a_bound_keeps_its_time_and_its_proof(chain: Chain) -> None:
    assert chain.beyond((1,), 21) == Bound(20, (2,), "two")
    assert chain.short_of((4,), 29) == Bound(30, (3,), "three")
