"""What recurs in a group, as its events show it, for groups of all types."""

from __future__ import annotations

from msgspec import field

from coordinator_model.events import GroupEvent
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.recurring.config_offsets import ConfigOffsets
from coordinator_model.groups.recurring.given_up import GivenUpJoins
from coordinator_model.groups.recurring.hot_joins import HotJoins
from coordinator_model.groups.recurring.poll_intervals import Overruns
from coordinator_model.groups.recurring.scaling import Scaling
from coordinator_model.groups.recurring.unmoved import UnmovedRebalances
from coordinator_model.groups.recurring.untold import Untold
from coordinator_model.stored import Stored


class Recurring(Stored):
    """What recurs in one group. Each part gets all events of the group, and keeps a bounded number of them."""

    scaling: Scaling = field(default_factory=Scaling)
    unmoved: UnmovedRebalances = field(default_factory=UnmovedRebalances)
    overruns: Overruns = field(default_factory=Overruns)
    untold: Untold = field(default_factory=Untold)
    given_up: GivenUpJoins = field(default_factory=GivenUpJoins)
    hot_joins: HotJoins = field(default_factory=HotJoins)
    config_offsets: ConfigOffsets = field(default_factory=ConfigOffsets)

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
