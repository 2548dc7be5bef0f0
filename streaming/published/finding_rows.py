"""Findings as rows of a list: what one client does again and again is one row, with a count and the times.

A client that dies and is started again has a finding for each closed connection, for each session, and for the loop: one row. Each
partition of the mirror has a model of its own, and all of them see a gap: what several find at one time is one row, too.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.groups.records import host_of
from coordinator_model.wording import clock as clock_of
from streaming.published.records import Json, seconds

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

_WIDTH = 100
_DEATHS = frozenset({"M-13", "T-04", "T-09"})
_STILL = "9"  #: after each time as it is published

STANDS_FOR: Final = {
    "V-01": {"V-01"},
    "V-02": {"V-02"},
    "V-03": {"V-03"},
    "V-04": {"V-04", "V-09"},
    "V-06": {"V-06"},
    "V-09": {"V-09"},
}
"""Rules about a partition → those that another partition, or this one, finds because of the same event."""


class FindingRow(NamedTuple):
    """One row: a finding, and those of the same rule, or of other signs of the same deaths, about the same client; or of one event."""

    finding: Json  #: the first of them in the order of the list
    times: int  #: how often it happened, over all of them: that of the rule that saw it most often
    bars: tuple[float, ...]  #: when each of them opened, in parts of a hundred; empty if there is one, or one event
    said: str  #: the same in words

    @property
    def often(self) -> str:
        """How often, in words: ``3 times``, ``3 times in 4 findings, 10:00:00 to 10:02:00``; empty for once."""
        return " ".join([f"{self.times:,} times"] * (self.times > 1) + [f"in {self.said}"] * bool(self.said))


def rows(findings: Iterable[Json]) -> list[FindingRow]:
    """Return the rows, in the order of their first findings."""
    together: dict[Hashable, list[Json]] = {}
    events: list[list[Json]] = []
    for finding in findings:
        if finding["group"] or finding["rule"] not in STANDS_FOR:
            together.setdefault(_key(finding), []).append(finding)
        elif (event := next((ones for ones in events if any(_are_one_event(one, finding) for one in ones)), None)) is not None:
            event.append(finding)
        else:
            events.append(together.setdefault(finding["id"], [finding]))
    return [_row(ones) for ones in together.values()]


def _are_one_event(one: Json, other: Json) -> bool:
    """Return True if two partitions found the one and the other because of the same: both were open at one time."""
    alike = other["rule"] in STANDS_FOR[one["rule"]] or one["rule"] in STANDS_FOR[other["rule"]]
    overlap = one["opened_at"] <= (other["resolved_at"] or _STILL) and other["opened_at"] <= (one["resolved_at"] or _STILL)
    return alike and overlap and one["cluster"] == other["cluster"]


def _key(finding: Json) -> Hashable:
    client = (finding["client_id"], host_of(finding["client_address"] or "")) if finding["client_id"] else finding["id"]
    return finding["cluster"], finding["group"], _DEATHS if finding["rule"] in _DEATHS else finding["rule"], client


def _row(ones: list[Json]) -> FindingRow:
    counts: Counter[str] = Counter()
    is_event = ones[0]["rule"] in STANDS_FOR
    for one in ones:
        counts[one["id"] if is_event else one["rule"]] += one["count"]
    times = max(counts.values())
    if len(ones) == 1:
        return FindingRow(ones[0], times, (), "")
    opened = sorted(seconds(one["opened_at"]) for one in ones)
    first_s, last_s = opened[0], max(seconds(one["updated_at"]) for one in ones)
    span_s = max(last_s - first_s, 1e-6)
    bars = () if is_event else tuple(round((at_s - first_s) / span_s * (_WIDTH - 1), 2) for at_s in opened)
    return FindingRow(
        ones[0], times, bars, f"{len(ones)} findings, {clock_of(round(first_s * 1e6))} to {clock_of(round(last_s * 1e6))}"
    )
