"""A group as a dashboard shows it: one JSON object per group, rewritten after anything off the fast path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group, as published. ``content`` is None once the group is dropped: its record is then deleted."""

    cluster: str
    group: str
    content: dict[str, Any] | None

    @property
    def key(self) -> str:
        """Return the key of the record in the compacted topic."""
        return f"{self.cluster}/{self.group}"

    def as_json(self) -> dict[str, Any] | None:
        return self.content
