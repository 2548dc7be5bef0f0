"""A week of many groups, for what has to be quick and small."""

from __future__ import annotations

from collections.abc import Iterator

from tests.streaming.web import history
from tests.streaming.web.history import NOW_S

WEEK_S = 7 * 86_400.0


def many(groups: int = 1_000, rebalances: int = 10_000, members: int = 6) -> Iterator[dict]:
    """Records of groups that rebalance in turn over a week; each twentieth has a finding."""
    each = rebalances // groups
    for number in range(groups):
        name = f"{('orders', 'billing', 'mail', 'audit', 'stock')[number % 5]}-{number:04d}"
        group = history.Group(name, [f"{name}-{one}" for one in range(members)])
        step_s = WEEK_S / (each + 1)
        for turn in range(each):
            cause = ("new member", "member left", "session expired")[(number + turn) % 3]
            at_s = NOW_S - WEEK_S + step_s * turn + number % 97 * 60
            group.rebalance(at_s, cause=cause, slow=turn % members, slow_s=(number % 13) * 2.0, starter=turn % members)
        group.view("Stable", NOW_S - 60)
        if number % 20 == 0:
            group.finding("R-01", "member never rejoins", "error", NOW_S - 3_600, status="resolved")
        yield from group.records
