"""Groups by name: globs stand for the whole name, expressions between slashes are searched for."""

from __future__ import annotations

import pytest

from streaming.config.patterns import matches


@pytest.mark.parametrize(
    ("name", "pattern", "is_meant"),
    [
        ("orders", "orders", True),
        ("orders.v1", "orders.*", True),
        ("ordersXv1", "orders.v1", False),
        ("my-orders", "orders*", False),
        ("Orders", "orders", False),
        ("a\nb", "a*", True),
        ("contest", "/test/", True),
        ("contest", "/^test$/", False),
        ("tmp-17", "/^tmp-[0-9]+$/", True),
        ("/", "/", True),
        ("/x/", "[/]x/", True),
        ("o[1]", "o[[]1]", True),
    ],
)
def test_a_pattern_means(name, pattern, is_meant):
    assert matches(name, [pattern]) is is_meant


def test_one_of_several_is_enough_and_none_matches_nothing():
    assert matches("b", ["a", "b"])
    assert not matches("b", [])
