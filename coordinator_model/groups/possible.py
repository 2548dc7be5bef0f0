"""What may be so, of something that only moves forward, at a time that no frame shows.

A chain keeps two staircases of bounds: "from this time on it had reached at least that position" and "until this time it had gone no
further than that". Both come from frames, and each keeps its frame as proof. Between them lies what is possible: a position can hold
during an interval unless one bound lies beyond it before the interval begins, or short of it after the interval ends.

A bound is added only for what was seen, never for what was not: a frame that is late would prove it wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

Position: TypeAlias = tuple[int, ...]
"""The larger one comes later."""


class Bound(NamedTuple):
    """A position that had been reached, or not been left, at a time."""

    at_us: int
    position: Position
    proof: Any  #: whatever shows it


class Chain:
    """The bounds on the position of one thing."""

    __slots__ = ("_at_least", "_at_most")

    def __init__(self) -> None:
        self._at_least: list[Bound] = []
        self._at_most: list[Bound] = []

    def reached(self, at_us: int, position: Position, proof: Any) -> None:
        """Note that from ``at_us`` on it is at this position or beyond."""
        self._at_least.append(Bound(at_us, position, proof))

    def not_beyond(self, until_us: int, position: Position, proof: Any) -> None:
        """Note that until ``until_us`` it is at this position or before."""
        self._at_most.append(Bound(until_us, position, proof))

    def excludes(self, position: Position, first_us: int, last_us: int) -> Bound | None:
        """Return the bound that shows it at another position throughout the interval, the oldest there is; None if there is none."""
        return self.beyond(position, first_us) or self.short_of(position, last_us)

    def beyond(self, position: Position, at_us: int) -> Bound | None:
        """Return the oldest bound that shows it beyond this position before ``at_us``, None if there is none."""
        found = [bound for bound in self._at_least if bound.at_us < at_us and bound.position > position]
        return min(found, key=lambda bound: bound.at_us, default=None)

    def short_of(self, position: Position, at_us: int) -> Bound | None:
        """Return the newest bound that shows it short of this position after ``at_us``, None if there is none."""
        found = [bound for bound in self._at_most if bound.at_us > at_us and bound.position < position]
        return max(found, key=lambda bound: bound.at_us, default=None)
