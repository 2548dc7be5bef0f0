"""Patterns for names: a glob (``orders-*``), or a regular expression between slashes (``/^orders-(eu|us)$/``).

A glob must match the whole name: most users expect that, and dots are frequent in group names. A regular expression is searched for in the
name, so ``/test/`` also matches "contest": the user must write the anchors.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

if TYPE_CHECKING:
    from collections.abc import Iterable


@functools.cache
def _expression(pattern: str) -> re.Pattern[str]:
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        return re.compile(pattern[1:-1])
    return re.compile(f"^{fnmatch.translate(pattern)}")


def _usable(pattern: str) -> str:
    if not pattern:
        raise ValueError("an empty pattern matches nothing; '*' matches everything")
    try:
        _expression(pattern)
    except re.error as error:
        raise ValueError(f"{pattern} is not a valid regular expression: {error}") from None
    return pattern


Pattern = Annotated[str, AfterValidator(_usable)]


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return True if any of the patterns matches the name."""
    return any(_expression(pattern).search(name) for pattern in patterns)


def selects(name: str, allowed: Iterable[str], denied: Iterable[str]) -> bool:
    """Return True if a name is among the allowed ones, and not among the denied."""
    return matches(name, allowed) and not matches(name, denied)
