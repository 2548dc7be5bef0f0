"""Members that leave because they polled too rarely, and come back: by how much they exceeded their poll interval each time.

The client leaves when its poll interval is over, and asks to join at its next poll. Between both lies what the application took longer.
It stays the same process: a classic member comes back on the same connection, one with an epoch under the same member id.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from coordinator_model.events import GroupEvent, MemberEvent, MemberJoined, MemberLeft, RebalanceFinished
from coordinator_model.finding import Evidence
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.recurring.frames import frame_of
from coordinator_model.stored import Stored

KEPT: Final = 6  #: of a client
CLIENTS_KEPT: Final = 16


class Overrun(NamedTuple):
    """One time that a client left and came back."""

    left_us: int
    held_us: int  #: since the last rebalance was over; 0 if none was seen
    gap_us: int  #: until it asked to join again
    reason: str  #: for which it left, in its own words
    frame: Evidence | None


class Overruns(Stored):
    """Of each client of one group that left and came back, the times in a row."""

    rebalanced_us: int = 0  #: when the last rebalance was over
    left: dict[str, tuple[int, int, str, Evidence | None]] = {}  #: process → an overrun that is not over, without its gap
    of: dict[str, tuple[Overrun, ...]] = {}  #: process → oldest first
    clients: dict[str, str] = {}  #: process → client id and address

    def on_event(self, event: GroupEvent, shown_by: Exchange | None) -> None:
        """Note what happened in the group."""
        if isinstance(event, MemberLeft):
            process = _process_of(event, shown_by)
            held_us = event.at_us - self.rebalanced_us if self.rebalanced_us else 0
            self.left.pop(process, None)
            self.left[process] = (event.at_us, held_us, event.reason or "", frame_of(event, shown_by, "left"))
            _keep(self.left, CLIENTS_KEPT)
        elif isinstance(event, MemberJoined):
            self._joined(event, shown_by)
        elif isinstance(event, RebalanceFinished):
            self.rebalanced_us = event.at_us

    def _joined(self, event: MemberJoined, shown_by: Exchange | None) -> None:
        process = _process_of(event, shown_by)
        left = self.left.pop(process, None)
        if left is not None:
            left_us, held_us, reason, frame = left
            before = self.of.pop(process, ())
            self.of[process] = (*before, Overrun(left_us, held_us, event.at_us - left_us, reason, frame))[-KEPT:]
            self.clients[process] = f"{event.client_id} at {event.client_address}"
            _keep(self.of, CLIENTS_KEPT)
            self.clients = {known: client for known, client in self.clients.items() if known in self.of}


def _process_of(event: MemberEvent, shown_by: Exchange | None) -> str:
    """Return by what the process of a member is known again: its connection, in a group with epochs its member id."""
    return shown_by.key[0] if event.group_type == "classic" and shown_by is not None else event.member_id or ""


def _keep(known: dict[str, Any], number: int) -> None:
    while len(known) > number:
        del known[next(iter(known))]
