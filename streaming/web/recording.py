"""What a recording holds as a whole: the time that it spans, and what the rebalances of each group cost.

A recording is looked at after the event. What is open and who waits at its end is seldom what it was made for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.wording import counted
from streaming.published import sentences

if TYPE_CHECKING:
    from streaming.published.page_state import GroupPast, PageState

HOUR_S: Final = 3600.0
_LEAST_S: Final = 1.0


class Stretch(NamedTuple):
    """The time that strips show."""

    title: str
    span_s: float

    @property
    def span_min(self) -> float:
        return round(self.span_s / 60, 3)


class Cost(NamedTuple):
    """What the rebalances of a group cost, to compare groups by."""

    member_seconds: float
    took_ms: int
    rebalances: int


LAST_HOUR: Final = Stretch("Last hour", HOUR_S)


def stretch_of(state: PageState) -> Stretch:
    """Return the time that strips show: the last hour, or the whole recording."""
    return Stretch("Recording", max(_LEAST_S, state.now_s() - state.first_s)) if state.is_recorded else LAST_HOUR


def cost_of(past: GroupPast) -> Cost:
    """Return what the rebalances of a group that are over cost."""
    over = list(past.rebalances)
    member_seconds = sum(event.cost_s or 0.0 for event in over)
    return Cost(member_seconds, sum(event.took_ms or 0 for event in over), len(over))


def cost_text(past: GroupPast) -> str:
    """Return what the rebalances of a group cost, and who held the longest up; empty if there was none."""
    cost = cost_of(past)
    if not cost.rebalances:
        return ""
    is_known = any(event.took_ms is not None for event in past.rebalances)
    longest = max(past.rebalances, key=lambda event: event.took_ms or 0)
    facts = [
        f"{counted(cost.rebalances, 'rebalance')}{f', {sentences.milliseconds(cost.took_ms)}' if is_known else ''}",
        f"{cost.member_seconds:,.1f} member-seconds without consuming" if cost.member_seconds else "",
        sentences.held_up(longest),
    ]
    return "; ".join(fact for fact in facts if fact)
