"""Cost by cause over time: what counts where, and on which scale."""

from __future__ import annotations

import pytest
from msgspec import structs

from coordinator_model.events import RebalanceFinished
from streaming.web.costs import Bar, by_cause
from tests.streaming.terminal.records import rebalance


def over(at_s: float, cause: str, cost_s: float | None) -> RebalanceFinished:
    known: RebalanceFinished = rebalance("g", cause=cause, cost=cost_s)
    return structs.replace(known, at_us=round(at_s * 1e6))


def test_each_cause_has_a_row_of_bars_on_one_scale_the_costliest_first() -> None:
    found = by_cause([over(5, "left", 10.0), over(6, "left", 10.0), over(25, "new", 5.0), over(5, "new", 0.0)], 0, 100, 10)
    assert [(one.cause, one.rebalances, one.member_seconds) for one in found] == [("left", 2, 20.0), ("new", 2, 5.0)]
    left, new = found
    assert left.bars == (Bar(0.0, 8.5, 100.0),)
    assert new.bars == (Bar(0.0, 8.5, 5.0), Bar(20.0, 8.5, 25.0)), "what cost nothing is seen all the same"
    assert (left.levels, new.levels) == ("█         ", "▁ ▂       ")
    assert new.said == "most around 00:00: 5.0 member-seconds"


def test_what_ends_with_the_time_is_in_its_last_step_and_what_ended_before_is_in_none() -> None:
    [row] = by_cause([over(-1, "left", 1.0), over(100, "left", 2.0), over(101, "left", 2.0)], 0, 100, 10)
    assert (row.rebalances, row.levels) == (2, "         █")


def test_a_brokers_log_shows_no_cost() -> None:
    [row] = by_cause([over(50, "not seen", None)], 0, 100, 10)
    assert (row.cause, row.rebalances, row.member_seconds) == ("not seen", 1, None)
    assert (row.bars, row.said) == ((), "what they cost is not known")
    assert by_cause([], 0, 100) == []


@pytest.mark.parametrize("moment", [10.0, 0.0])
def test_a_time_of_no_length_holds_what_ended_in_it(moment: float) -> None:
    [row] = by_cause([over(moment, "left", 2.0)], moment, moment)
    assert row.rebalances == 1
