"""Members of a classic group that a join phase dropped before anything told them of it, and that came back.

A member learns of a join phase from the answer to its next heartbeat. One that is dropped without such an answer and lives sent none for as
long as the phase lasted. That it lives shows what it sends next, which is refused; a process that has ended sends nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.events import (
    GroupEvent,
    MemberDropped,
    MemberFenced,
    MemberJoined,
    MemberToldToRejoin,
    RebalanceBegan,
    SightLost,
)
from coordinator_model.finding import Evidence
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.recurring.frames import client_of, frame_of
from coordinator_model.stored import Stored

KEPT: Final = 16
TOLD_KEPT: Final = 256
SPAN_US: Final = 600_000_000  #: those that came back longer ago are dropped


class Dropped(NamedTuple):
    """A member that was dropped without a word."""

    at_us: int
    phase_us: int  #: how long the join phase had lasted
    member_id: str
    client: str  #: client id and host
    lives: bool = False  #: it has been refused since


class CameBack(NamedTuple):
    """Its client, which asked to join as a new member."""

    dropped: Dropped
    back_us: int
    frame: Evidence | None


class Untold(Stored):
    """Those of one group."""

    began_us: int = 0  #: when the newest rebalance began
    told: tuple[str, ...] = ()  #: member ids that were told of it
    dropped: tuple[Dropped, ...] = ()
    back: tuple[CameBack, ...] = ()

    def on_event(self, event: GroupEvent, shown_by: Exchange | None) -> None:
        """Note what happened in the group."""
        if isinstance(event, RebalanceBegan):
            self.began_us, self.told = event.at_us, ()
        elif isinstance(event, MemberToldToRejoin):
            self.told = (*self.told, event.member_id or "")[-TOLD_KEPT:]
        elif isinstance(event, MemberDropped) and event.member_id not in self.told and len(self.told) < TOLD_KEPT:
            dropped = Dropped(event.at_us, event.at_us - self.began_us, event.member_id or "", client_of(event))
            self.dropped = (*self.dropped, dropped)[-KEPT:]
        elif isinstance(event, MemberFenced) and self.dropped:
            refused = event.member_id
            self.dropped = tuple(one._replace(lives=one.lives or one.member_id == refused) for one in self.dropped)
        elif isinstance(event, MemberJoined) and event.new:
            self._joined(event, shown_by)
        elif isinstance(event, SightLost):
            self.dropped = self.back = ()

    def _joined(self, event: MemberJoined, shown_by: Exchange | None) -> None:
        client = client_of(event)
        for one in self.dropped:
            if one.lives and one.client == client:
                self.dropped = tuple(other for other in self.dropped if other is not one)
                kept = [known for known in self.back if event.at_us - known.back_us <= SPAN_US]
                self.back = (*kept, CameBack(one, event.at_us, frame_of(event, shown_by, "asks to join")))[-KEPT:]
                return
