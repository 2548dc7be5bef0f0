"""Family R: a group that is made larger and smaller again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from coordinator_model.finding import CONFIG, HEURISTIC, WARNING
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.recurring import Cycle
from coordinator_model.rules.base import Breach, Due, Matter, timer_rule
from coordinator_model.wording import clock, counted, seconds

_REGULAR = 3  #: cycles that make a rhythm
_MANY = 5  #: cycles that need none
_NAMED = 4


def _periods_us(cycles: Sequence[Cycle]) -> list[int]:
    return [later.fell_us - earlier.fell_us for earlier, later in pairwise(cycles)]


def _recurs(cycles: Sequence[Cycle]) -> bool:
    if len(cycles) < _REGULAR:
        return False
    periods_us = _periods_us(cycles[-_REGULAR:])
    return len(cycles) >= _MANY or max(periods_us) <= 2 * min(periods_us)


def _named(cycle: Cycle) -> str:
    return ", ".join(cycle.names[-_NAMED:])


def _what_it_cost(cycles: Sequence[Cycle]) -> str:
    lost_us, unheld_us = sum(cycle.lost_us for cycle in cycles), sum(cycle.unheld_us for cycle in cycles)
    unheld = f" and {unheld_us / 1_000_000:.1f} partition-seconds that nobody held" if unheld_us else ""
    return f"{lost_us / 1_000_000:.1f} member-seconds{unheld}"


def _what_to_do(cycles: Sequence[Cycle], period_us: int) -> str:
    stayed_us = min(cycle.fell_us - cycle.rose_us for cycle in cycles)
    scaled = (
        f"If an autoscaler does this: let it take members away later, by a cooldown or stabilization window of several times "
        f"{seconds(period_us)} (they stayed for {seconds(stayed_us)}), and set its minimum to the members that the load needs. Each step "
        "raises the lag by which it scales."
    )
    one_by_one = all(cycle.high - cycle.low == 1 for cycle in cycles)
    other = (
        " If nothing scales this group: read the log of the client that came and went, which may be started and stopped in a loop."
    )
    return scaled + (other if one_by_one else " Clients that are needed for a short time only belong in a group of their own.")


@timer_rule("scaled up and down", WARNING, HEURISTIC, CONFIG, matter=Matter.RECURRENCE, quiet_times=2)
def R_24(group: GroupModel[Any]) -> Iterator[Due]:
    """Something adds members and takes them away again, over and over, as an autoscaler does that never settles: the group
    rebalances at each step.

    Condition: Three times in an hour, at intervals that differ by a factor of two at most, or five times: clients that were not
        known joined while no member went, and the first members to go after that were most of them the same clients, with a
        LeaveGroup. A client that comes back, by its client id and host, and clients that share both are not counted; nor is a group
        that empties.
    Expected: The number of members follows the load, and then stays.
    Action: Let the autoscaler take members away later, and set its minimum to the members that the load needs.
    False alarms: Jobs that consume for a short time in the group of a service, at intervals; canaries. A deployment is none: there
        the old members go. Covers the storm that the steps make.
    """
    cycles = group.recurring.scaling.over
    if not _recurs(cycles):
        return
    periods_us = _periods_us(cycles)
    period_us = round(sum(periods_us) / len(periods_us))
    last = cycles[-1]
    low, high = min(cycle.after for cycle in cycles), max(cycle.high for cycle in cycles)

    def describe() -> Breach:
        newest = cycles[-3:]
        steps = "; ".join(
            f"{cycle.high} at {clock(cycle.rose_us)}, {cycle.after} after {clock(cycle.fell_us)}, as {_named(cycle)} went"
            for cycle in newest
        )
        return Breach(
            "",
            f"Group {group.name} is scaled up and down between {low} and {counted(high, 'member')}: {len(cycles)} times since "
            f"{clock(cycles[0].fell_us)}, every {seconds(period_us)}, clients that had just joined left again cleanly, and new ones came. "
            f"Each step is a rebalance; together they cost {_what_it_cost(cycles)}.",
            f"members: {steps}",
            tuple(frame for cycle in newest for frame in cycle.frames),
            action=_what_to_do(cycles, period_us),
        )

    yield Due(last.fell_us, "", WARNING, describe, period_us=2 * max(periods_us))
