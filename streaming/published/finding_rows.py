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
    "C-13": {"C-13"},
    "C-14": {"C-14", "T-06"},
    "T-06": {"T-06"},
}
"""Rules about what many see → those that others find because of the same event.

Of the V rules each partition of the mirror finds it, of the others each group of one broker.
"""


def place(finding: Json) -> tuple[str, str] | None:
    """Return where an event is that many see: cluster and broker, none for the mirror; None if the finding is of its group alone."""
    broker = finding.get("broker") or ""
    return (finding["cluster"], broker) if finding["rule"] in STANDS_FOR and (broker or not finding["group"]) else None


def stands_for(one: Json, other: Json) -> bool:
    """Return True if what one finding says is all there is to say of the other, should they be of one time."""
    return place(one) is not None and place(one) == place(other) and other["rule"] in STANDS_FOR[one["rule"]]


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
        if place(finding) is None:
            together.setdefault(_key(finding), []).append(finding)
        elif (event := next((ones for ones in events if any(_are_one_event(one, finding) for one in ones)), None)) is not None:
            event.append(finding)
        else:
            events.append(together.setdefault(finding["id"], [finding]))
    return [_row(ones) for ones in together.values()]


def _are_one_event(one: Json, other: Json) -> bool:
    """Return True if the one and the other were found because of the same: in one place, and both were open at one time."""
    overlap = one["opened_at"] <= (other["resolved_at"] or _STILL) and other["opened_at"] <= (one["resolved_at"] or _STILL)
    return overlap and (stands_for(one, other) or stands_for(other, one))


def _key(finding: Json) -> Hashable:
    client = (finding["client_id"], host_of(finding["client_address"] or "")) if finding["client_id"] else finding["id"]
    return finding["cluster"], finding["group"], _DEATHS if finding["rule"] in _DEATHS else finding["rule"], client


def _row(ones: list[Json]) -> FindingRow:
    counts: Counter[str] = Counter()
    is_event = place(ones[0]) is not None
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
