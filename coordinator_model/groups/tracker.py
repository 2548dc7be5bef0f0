"""The protocol of a tracker: it keeps one subject of a group beside membership and generation, each in a module of its own.

Assignments, offsets, changes of the coordinator and the history of rebalances are such subjects. A tracker is shown each modelled
request and answer of its APIs after the handler has taken it in, and returns the events that rules look at. It sees the group's
data, and no other tracker.

The trap: heartbeats are nine frames in ten. No tracker is shown a heartbeat that was simply answered with success.
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

    def on_request(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        """A request was captured. ``body`` is the decoded message."""

    def on_response(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        """An answer was captured; ``exchange.error`` holds the error that decided it, ``exchange.effective_us`` is final."""

    def on_gap(self, group: GroupData) -> None:
        """Frames are missing or the coordinator moved: forget what may have changed unseen."""
