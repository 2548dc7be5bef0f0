"""How facts beyond membership and generation are kept: one watch per subject, each in a module of its own.

``ClassicGroup`` knows who is a member of what. What the leader assigned, what was committed, how coordinators came and went, and how
rebalances followed each other, each is a story of its own, told by the same frames. A watch keeps it: it is shown every modelled
request and answer of its APIs, after the group has taken it in, and gives the happenings that rules look at.

The trap: heartbeats are nine frames in ten. No watch is shown a heartbeat that was simply answered with success.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData
    from coordinator_model.groups.records import Exchange

Event: TypeAlias = tuple[Any, ...]
"""A NamedTuple; its class is what rules are registered for."""

NOTHING: tuple[Event, ...] = ()


class Tracker(Protocol):
    """A dataclass with slots, whose fields go into the snapshot."""

    def asked(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        """A request was captured. ``body`` is the decoded message."""

    def replied(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        """An answer was captured; ``exchange.error`` holds the error that decided it, ``exchange.effective_us`` is final."""

    def lost_sight(self, group: GroupData) -> None:
        """Frames are missing or the coordinator moved: forget what may have changed unseen."""
