"""What recurs in a group, as its events show it, for groups of all types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinator_model.events import GroupEvent
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.recurring.config_offsets import ConfigOffsets
from coordinator_model.groups.recurring.given_up import GivenUpJoins
from coordinator_model.groups.recurring.hot_joins import HotJoins
from coordinator_model.groups.recurring.poll_intervals import Overruns
from coordinator_model.groups.recurring.scaling import Scaling
from coordinator_model.groups.recurring.unmoved import UnmovedRebalances
from coordinator_model.groups.recurring.untold import Untold


class Recurring:
    """What recurs in one group. Each part gets all events of the group, and keeps a bounded number of them."""

    __slots__ = ("config_offsets", "given_up", "hot_joins", "overruns", "scaling", "unmoved", "untold")

    def __init__(self) -> None:
        self.scaling = Scaling()
        self.unmoved = UnmovedRebalances()
        self.overruns = Overruns()
        self.untold = Untold()
        self.given_up = GivenUpJoins()
        self.hot_joins = HotJoins()
        self.config_offsets = ConfigOffsets()

    def on_event(self, event: GroupEvent, shown_by: Exchange | None) -> None:
        """Note what happened in the group.

        :param shown_by: the exchange whose frame shows it.
        """
        self.scaling.on_event(event, shown_by)
        self.unmoved.on_event(event, shown_by)
        self.overruns.on_event(event, shown_by)
        self.untold.on_event(event, shown_by)
        self.given_up.on_event(event)

    @property
    def is_any(self) -> bool:
        """True if anything is known that may recur. False for a group that has settled and stays so."""
        return bool(
            self.scaling.cycles
            or self.unmoved.in_a_row
            or self.overruns.of
            or self.untold.back
            or self.given_up.known
            or self.hot_joins.by_connection
            or self.config_offsets.is_any
        )

    def values(self) -> list[Any]:
        """Return plain values for :meth:`restored`. New parts are only appended."""
        return [
            self.scaling.values(),
            self.unmoved.values(),
            self.overruns.values(),
            self.untold.values(),
            self.given_up.values(),
            self.hot_joins.values(),
            self.config_offsets.values(),
        ]

    @classmethod
    def restored(cls, values: Sequence[Any]) -> Recurring:
        """Return what a snapshot stored."""
        recurring = cls()
        parts = iter(values)
        recurring.scaling = Scaling.restored(next(parts, recurring.scaling.values()))
        recurring.unmoved = UnmovedRebalances.restored(next(parts, recurring.unmoved.values()))
        recurring.overruns = Overruns.restored(next(parts, recurring.overruns.values()))
        recurring.untold = Untold.restored(next(parts, recurring.untold.values()))
        recurring.given_up = GivenUpJoins.restored(next(parts, recurring.given_up.values()))
        recurring.hot_joins = HotJoins.restored(next(parts, recurring.hot_joins.values()))
        recurring.config_offsets = ConfigOffsets.restored(next(parts, recurring.config_offsets.values()))
        return recurring
