"""What an operator reads of a running monitor: how far it is behind, and how long that will take."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from streaming.commands import run
from streaming.commands.run import Screen, _behind
from streaming.spark.supervisor import QueryProgress


def progress(behind: int, batch_ms: int) -> QueryProgress:
    return QueryProgress("t", batches=3, batch_ms=batch_ms, read={0: 1_000}, available={0: 1_000 + behind})


@pytest.mark.parametrize(
    ("behind", "batch_ms", "pace", "said"),
    [
        (0, 170, 0.0, "up to date"),
        (0, 170, 900.0, "up to date"),
        (1_500_000, 900, 20_000.0, "behind by 1,500,000 records (75 s at this pace)"),
        (12, 170, 0.0, "behind by 12 records"),
        (196, 4_000, 39.0, "up to date"),  # of a machine that is busy: ticks that came while a batch ran
        (196, 400, 39.0, "behind by 196 records (5 s at this pace)"),
    ],
)
def test_how_far_it_is_behind_is_told_with_the_time_that_takes(behind, batch_ms, pace, said):
    assert _behind(progress(behind, batch_ms), pace) == said


@pytest.mark.parametrize(
    ("progress", "not_reading", "said"),
    [
        (None, "starting for 12 s, nothing read yet", "starting for 12 s, nothing read yet · open findings: none"),
        (
            QueryProgress("t", batches=3, batch_ms=170, read={0: 7}, available={0: 7}),
            "nothing read for 70 s: a query or the JVM is being started again",
            "batch 3 (170 ms) · nothing read for 70 s: a query or the JVM is being started again · open findings: none",
        ),
        (
            QueryProgress("t", batches=3, batch_ms=170, read={0: 7}, available={0: 7}),
            None,
            "batch 3 (170 ms) · 0 records/s · up to date · open findings: none",
        ),
    ],
)
def test_up_to_date_and_a_pace_are_shown_only_while_records_are_read(monkeypatch, progress, not_reading, said):
    monkeypatch.setattr(run, "_STATUS_EVERY_S", 0.0)
    shown = io.StringIO()
    Screen(Console(file=shown, soft_wrap=True)).status(progress, not_reading, [])
    assert shown.getvalue().split(" ", 1)[1] == f"{said}\n"
