"""What recurs in a group, as its events show it, for groups of all types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinator_model.group_event import GroupEvent
from coordinator_model.groups.recurring.scaling import Scaling
from coordinator_model.groups.recurring.unmoved import UnmovedRebalances


class Recurring:
    """What recurs in one group. Each part gets all events of the group, and keeps a bounded number of them."""

    __slots__ = ("scaling", "unmoved")

    def __init__(self) -> None:
        self.scaling = Scaling()
        self.unmoved = UnmovedRebalances()

    def on_event(self, event: GroupEvent) -> None:
        """Note what happened in the group."""
        self.scaling.on_event(event)
        self.unmoved.on_event(event)

    def values(self) -> list[Any]:
        """Return plain values for :meth:`restored`. New parts are only appended."""
        return [self.scaling.values(), self.unmoved.values()]

    @classmethod
    def restored(cls, values: Sequence[Any]) -> Recurring:
        """Return what a snapshot stored."""
        recurring = cls()
        parts = iter(values)
        recurring.scaling = Scaling.restored(next(parts, recurring.scaling.values()))
        recurring.unmoved = UnmovedRebalances.restored(next(parts, recurring.unmoved.values()))
        return recurring
