"""Rebalances of a classic group that moved nothing: the same members got the same partitions.

Who asked for them is rarely why: a leader rejoins when the metadata of its topics changes, whatever changed it. So what came just before is
kept with each: connections that ended, and the reason that the client gave (KIP-800).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.events import GroupEvent, MemberLeft, RebalanceBegan, RebalanceFinished, SightLost
from coordinator_model.finding import Evidence
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.recurring.frames import frame_of
from coordinator_model.stored import Stored

KEPT: Final = 12
SPAN_US: Final = 900_000_000  #: rebalances that began longer ago are dropped
JUST_BEFORE_US: Final = 10_000_000  #: a client that lost a connection fetches metadata sooner
CLOSINGS_KEPT: Final = 32


class Unmoved(NamedTuple):
    """One rebalance that moved nothing."""

    began_us: int
    over_us: int
    generation: int
    cause: str
    member_id: str  #: of who began it
    client: str  #: its client id and address
    reason: str
    members: int
    partitions: int
    lost_us: int  #: for how long members consumed nothing, added up
    closed: int  #: clients that had just lost a connection on which the group was seen
    frame: Evidence | None


class UnmovedRebalances(Stored):
    """The rebalances of one group that moved nothing, since the last one that moved something."""

    in_a_row: tuple[Unmoved, ...] = ()  #: oldest first
    left: bool = False  #: a member left since the last rebalance
    began_us: int = 0
    reason: str = ""
    frame: Evidence | None = None  #: that began the rebalance which is not over
    closings: tuple[tuple[int, str], ...] = ()  #: (time, client id) of connections that ended

    def on_event(self, event: GroupEvent, shown_by: Exchange | None) -> None:
        """Note what happened in the group."""
        if isinstance(event, RebalanceBegan):
            self.began_us, self.reason = event.at_us, event.reason or ""
            self.frame = frame_of(event, shown_by, f"began a rebalance: {event.cause}")
        elif isinstance(event, RebalanceFinished):
            self._finished(event)
        elif isinstance(event, MemberLeft):
            self.left = True
        elif isinstance(event, SightLost):
            self.in_a_row = ()

    def on_closed(self, client_id: str, at_us: int) -> None:
        """Note the end of a connection on which the group was seen, to any broker."""
        kept = [known for known in self.closings if at_us - known[0] <= JUST_BEFORE_US]
        self.closings = (*kept, (at_us, client_id))[-CLOSINGS_KEPT:]

    def _finished(self, event: RebalanceFinished) -> None:
        left = self.left
        if event.to_generation is None:
            return  # another join phase follows
        self.left = False
        joined = any(one.new for one in event.members)
        if event.partitions_moved != 0 or not event.partitions_stayed or joined or left or event.never_came_back:
            self.in_a_row = ()
            return
        closed = {client for at_us, client in self.closings if self.began_us - JUST_BEFORE_US <= at_us <= self.began_us}
        one = Unmoved(
            self.began_us,
            event.at_us,
            event.to_generation,
            event.cause,
            event.member_id or "",
            f"{event.client_id} at {event.client_address}",
            self.reason,
            len(event.members),
            event.partitions_stayed,
            event.cost_us or 0,
            len(closed),
            self.frame,
        )
        kept = [known for known in self.in_a_row if one.began_us - known.began_us <= SPAN_US]
        self.in_a_row = (*kept, one)[-KEPT:]
