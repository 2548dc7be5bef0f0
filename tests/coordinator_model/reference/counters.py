"""Counts what the random histories amounted to, for the last lines of a test run: a property that was never put to the test is none."""

from __future__ import annotations

from collections import Counter

lawful: dict[str, Counter[str]] = {}
"""Kind of life → counts."""

unlawful: dict[str, Counter[str]] = {}


def count_lawful(kind: str, *, records: int, false: int, warnings: int) -> None:
    """Count a lawful history, and the findings at error level or above, none of which is right."""
    lawful.setdefault(kind, Counter()).update(histories=1, records=records, false=false, warnings=warnings)


def lines() -> list[str]:
    """The tables, ready to print."""
    told = [
        f"lawful histories, {kind:9} {counts['histories']:6,} with {counts['records']:9,} records, "
        f"error-level findings: {counts['false']}, warnings: {counts['warnings']}"
        for kind, counts in lawful.items()
    ]
    for act, counts in unlawful.items():
        told.append(
            f"unlawful act {act:22} histories {counts['histories']:6,}  done {counts['done']:6,}  "
            f"knowable {counts['knowable']:6,}  found {counts['found']:6,}"
        )
    return told
