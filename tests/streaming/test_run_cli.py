"""What an operator reads of a running monitor: how far it is behind, and how long that will take."""

from __future__ import annotations

import pytest

from streaming.run_cli import _behind


@pytest.mark.parametrize(
    ("records", "pace", "said"),
    [
        (0, 0.0, "up to date"),
        (0, 900.0, "up to date"),
        (1_500_000, 20_000.0, "behind by 1,500,000 records (75 s at this pace)"),
        (12, 0.0, "behind by 12 records"),
    ],
)
def test_how_far_it_is_behind_is_told_with_the_time_that_takes(records, pace, said):
    assert _behind(records, pace) == said
