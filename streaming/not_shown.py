"""What brokers' logs do not show, in sentences for reports, pages and terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinator_model.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streaming.published.page_state import GroupPast

LINES_LACK: Final = "not who rejoined when, who held a rebalance up, what it cost, and which partitions moved"
"""What coordinators' lines do not show, as half a sentence."""

REQUESTS_LACK: Final = (
    "a request log has a request when it is over, and no ends of connections: what is stuck at the log's end is not seen, and a client "
    "that hung up is found silent"
)


def no_finding(groups: Iterable[GroupPast]) -> str:
    """Return what it means that groups have no finding: none can be of what coordinators wrote into a log alone."""
    known = [group.is_history for group in groups]
    return "No rule was applied, so there can be no finding." if known and all(known) else "There is no finding."


def not_in_lines(groups: Iterable[GroupPast]) -> list[str]:
    """Return what the lines of coordinators in a log do not show of those groups of which there is nothing else."""
    known = sum(group.is_history for group in groups)
    if not known:
        return []
    return [
        f"Of {counted(known, 'group')} only what coordinators wrote into the broker's log is known: {LINES_LACK}.",
        "No rule was applied to them: these lines show neither requests nor answers, so trouble within them gives no finding.",
    ]
