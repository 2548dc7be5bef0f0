"""Counts what the random histories amounted to, for the last lines of a test run: a property that was never put to the test is none."""

from __future__ import annotations

from collections import Counter

lawful: Counter[str] = Counter()
lawful_consumer: Counter[str] = Counter()
unlawful: dict[str, Counter[str]] = {}


def lines() -> list[str]:
    """The tables, ready to print."""
    told = []
    for kind, counts in (("classic", lawful), ("consumer", lawful_consumer)):
        if counts:
            told.append(
                f"lawful histories, {kind}: {counts['histories']:,} with {counts['records']:,} records, "
                f"error-level findings: {counts['false']}, warnings: {counts['warnings']}"
            )
    for act, counts in unlawful.items():
        told.append(
            f"unlawful act {act:22} histories {counts['histories']:6,}  done {counts['done']:6,}  "
            f"knowable {counts['knowable']:6,}  found {counts['found']:6,}"
        )
    return told
