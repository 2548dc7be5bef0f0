"""What the rest of the model asks of a group, whatever its type.

Each type of group has a package of its own beside this module, and a class in it that implements :class:`GroupModel`. The rest of the
model stores groups, brings frames and the time to them, applies rules to their events, and shows them; it asks for no type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.group_view import GroupView
from coordinator_model.groups.coordinator_addresses import CoordinatorAddresses
from coordinator_model.groups.late_frames import LateFrame
from coordinator_model.groups.records import AnyMember, Exchange, ExchangeKey
from coordinator_model.groups.recurring.recurring import Recurring
from coordinator_model.groups.refused_joins import RefusedJoin
from coordinator_model.groups.tracker import Event
from coordinator_model.settings import Settings
from coordinator_model.wire.record import MirrorRecord


class GroupModel(Protocol):
    """One group of one type."""

    name: str
    cluster: str
    kind: str  #: the type of the group: "classic", "consumer", "share", "streams"
    broker: str  #: its coordinator, as far as frames show it
    addresses: CoordinatorAddresses  #: others of its coordinator
    facts: ClusterFacts  #: what is known of the cluster beside its groups
    incarnation: int
    settings: Settings
    last_record_us: int
    changed: bool  #: something that the view shows
    counted: bool  #: a counter that the view shows, and no timer rule uses
    slow_changed: bool  #: something other than what every heartbeat changes
    late_frames: tuple[LateFrame, ...]  #: that came after newer ones
    open: dict[ExchangeKey, Exchange]  #: requests without a response
    refused_joins: dict[str, RefusedJoin]  #: clients that are not let in
    recurring: Recurring  #: what recurs in its events

    @property
    def members(self) -> Mapping[str, AnyMember]:
        """Members by id, those that are gone included."""

    def request(self, record: MirrorRecord, body: Any) -> tuple[Event, ...]:
        """Process a request; return its events. ``body`` is the decoded message."""

    def response(self, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Event, ...]:
        """Process a response; return its events. Without its request a response proves nothing.

        :param correlation_id: as the frame itself has it.
        """

    def abandon(self, record: MirrorRecord) -> Exchange | None:
        """Drop the exchange of a frame that cannot be read, since its outcome stays unknown; return the request, if it was seen."""

    def connection_closed(self, connection: str, at_us: int) -> None:
        """Process the end of a connection."""

    def waits_unseen(self, connection: str, at_us: int) -> bool:
        """Note that a request of this connection may wait unseen; return False if only :meth:`on_gap` does it justice."""

    def on_gap(self, at_us: int, because: str) -> None:
        """Go back to learning: frames are missing or the group moved, so what is known may have changed unseen."""

    def session_expired(self, member_id: str, at_us: int) -> tuple[Event, ...]:
        """End the session of a member, as the coordinator says that it did; return the events."""

    def end_sessions(self, now_us: int, coming: list[int]) -> Iterator[tuple[int, tuple[Event, ...]]]:
        """End the sessions that have certainly expired at ``now_us``; yield when each ended, and its events.

        :param coming: receives the times at which the others may end.
        """

    def view(self, open_findings: int, partition: int, now_us: int) -> GroupView:
        """Return the group as a dashboard shows it."""

    def slow_values(self) -> list[Any]:
        """Return what changes only when something happens to the group, for a snapshot."""

    def fast_values(self) -> list[Any]:
        """Return what every heartbeat changes, for a snapshot. Times are in microseconds before ``last_record_us``."""

    def fill(self, slow_values: Sequence[Any], fast_values: Sequence[Any]) -> None:
        """Take over what :meth:`slow_values` and :meth:`fast_values` returned; ``last_record_us`` is set before."""
