"""What rebalances cost over a time, by cause: a row of bars for each cause, all on one scale.

Rows and not colours distinguish causes. A rebalance counts when it is over, with the member-seconds in which members consumed nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from streaming.published import sentences
from streaming.web.drawing import clock

if TYPE_CHECKING:
    from coordinator_model.events import RebalanceFinished

STEPS: Final = 48
_LEAST: Final = 0.05  #: of the height, so that what cost next to nothing is seen
_LEVELS: Final = "▁▂▃▄▅▆▇█"


class Bar(NamedTuple):
    """What one step of the time cost, in parts of a hundred of width and height."""

    x: float
    width: float
    height: float


class CauseCosts(NamedTuple):
    """One cause."""

    cause: str
    rebalances: int
    member_seconds: float | None  #: None if it is not known of any
    bars: tuple[Bar, ...]
    levels: str  #: the same as text, a character for each step
    said: str  #: in words


def by_cause(rebalances: Iterable[RebalanceFinished], from_s: float, to_s: float, steps: int = STEPS) -> list[CauseCosts]:
    """Return what rebalances that ended within a time cost, by cause, the costliest first."""
    step_s = max(to_s - from_s, 1e-6) / steps
    costs: dict[str, dict[int, float]] = {}
    counts: dict[str, int] = {}
    for event in rebalances:
        step = min(int((event.at_s - from_s) // step_s), steps - 1)  # what ends with the time is in its last step
        if step >= 0:
            counts[event.cause] = counts.get(event.cause, 0) + 1
            each = costs.setdefault(event.cause, {})
            if event.cost_s is not None:
                each[step] = each.get(step, 0.0) + event.cost_s
    most = max((cost for each in costs.values() for cost in each.values()), default=0.0) or 1.0
    found = [_row(cause, counts[cause], each, most, (from_s, step_s, steps)) for cause, each in costs.items()]
    return sorted(found, key=lambda one: (-(one.member_seconds or 0.0), -one.rebalances, one.cause))


def _row(cause: str, rebalances: int, each: dict[int, float], most: float, times: tuple[float, float, int]) -> CauseCosts:
    from_s, step_s, steps = times
    if not each:
        return CauseCosts(cause, rebalances, None, (), " " * steps, "what they cost is not known")
    width = 100 / steps
    bars = tuple(
        Bar(round(step * width, 2), round(width * 0.85, 2), round(100 * max(_LEAST, cost / most), 1))
        for step, cost in sorted(each.items())
    )
    levels = "".join(_LEVELS[min(7, int(each[step] / most * 7.999))] if step in each else " " for step in range(steps))
    dearest = max(each, key=lambda step: (each[step], -step))
    said = f"most around {clock(from_s + (dearest + 0.5) * step_s, seconds=False)}: {sentences.seconds_of(each[dearest])} member-seconds"
    return CauseCosts(cause, rebalances, sum(each.values()), bars, levels, said)
