"""Counts what the random histories amounted to, for the last lines of a test run: a property that was never put to the test is none."""

from __future__ import annotations

from collections import Counter

lawful: Counter[str] = Counter()
unlawful: dict[str, Counter[str]] = {}


def lines() -> list[str]:
    """The tables, ready to print."""
    told = []
    if lawful:
        told.append(
            f"lawful histories: {lawful['histories']:,} with {lawful['records']:,} records, "
            f"error-level findings: {lawful['false']}, warnings: {lawful['warnings']}"
        )
    for act, counts in unlawful.items():
        told.append(
            f"unlawful act {act:22} histories {counts['histories']:6,}  done {counts['done']:6,}  "
            f"knowable {counts['knowable']:6,}  found {counts['found']:6,}"
        )
    return told
