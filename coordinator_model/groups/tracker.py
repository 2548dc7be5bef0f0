"""The protocol of a tracker, which keeps one subject of a group beside membership and generation.

Such subjects are assignments, offsets, changes of the coordinator and the history of rebalances. A tracker processes each request and
response of its APIs after the handler, and returns the events that rules check. It has access to the group's data, and to no other
tracker.

Heartbeats are nine frames in ten. No tracker gets a Heartbeat request, nor a plain Heartbeat success.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from coordinator_model.groups.records import Exchange

Event: TypeAlias = tuple[Any, ...]
"""A NamedTuple. Rules are registered for its class."""

NOTHING: tuple[Event, ...] = ()


class Tracker(Protocol):
    """State of a group beside what all its trackers share (:class:`~coordinator_model.stored.Stored`)."""

    def on_request(self, group: Any, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        """Process a request; return its events. ``body`` is the decoded message."""

    def on_response(self, group: Any, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        """Process a response; return its events. ``exchange.error`` and ``exchange.effective_us`` are final."""

    def on_gap(self, group: Any) -> None:
        """Drop what may have changed unseen, because frames are missing or the coordinator moved."""
