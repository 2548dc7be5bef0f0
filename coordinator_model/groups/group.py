"""What groups of all types have in common: requests and their responses, connections, a coordinator, members that come and go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, Self, TypeVar

from msgspec import field

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.counters import Counters
from coordinator_model.event_log import EventLog
from coordinator_model.groups.committed_offsets import CommittedOffsets
from coordinator_model.groups.coordinator_records import CoordinatorAddresses, is_coordinator, steps_down
from coordinator_model.groups.records import AnyMember, ConnectionState, Coverage, Disconnections, Exchange, ExchangeKey, LateFrame
from coordinator_model.groups.recurring import Recurring
from coordinator_model.groups.refused_joins import RefusedJoin
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.settings import Settings
from coordinator_model.stored import Stored
from coordinator_model.wire import error_name
from coordinator_model.wire.record import MirrorRecord

M = TypeVar("M", bound=AnyMember)

REMOVED_MEMBERS_KEPT: Final = 32


class _Attached(Generic[M]):
    """What a group has beside the slow part of its state: what it shares with others, and what every heartbeat changes."""

    __slots__ = ()

    name: str
    cluster: str
    kind: str
    settings: Settings
    loading: Mapping[tuple[str, str], int]  #: (cluster, broker) → time of its last COORDINATOR_LOAD_IN_PROGRESS in this partition
    counters: Counters  #: of the partition
    coverage: Coverage  #: of the partition
    disconnections: dict[tuple[str, str], Disconnections]  #: by (cluster, broker), of the partition
    group_events: EventLog  #: of all groups of the partition, until they are drained
    facts: ClusterFacts  #: what is known of the cluster beside its groups
    members: dict[str, M]
    open: dict[ExchangeKey, Exchange]
    connections: dict[str, ConnectionState]
    last_record_us: int
    changed: bool  #: something that the group view shows
    counted: bool  #: a counter that the group view shows, and no timer rule uses
    slow_changed: bool  #: something other than what every heartbeat changes

    rebalances: Any  #: the recorder of its type
    joins: tuple[int, int] = (0, 0)  #: number of join phases seen to end, and their total microseconds
    syncs: tuple[int, int] = (0, 0)
    join_took_us: int | None = None
    sync_took_us: int | None = None


class Group(_Attached[M], Stored, Generic[M], dict=True, eq=False):
    """A group of any type. Its fields are the slow part of its state, which changes only when something happens."""

    broker: str = ""
    addresses: CoordinatorAddresses = field(default_factory=CoordinatorAddresses)  #: others of the coordinator
    incarnation: int = 1
    settled: bool = False  #: True once a request was accepted in this incarnation
    learning_because: str = "first seen in mid-life"
    state_since_us: int = 0
    refused_joins: dict[str, RefusedJoin] = {}  #: clients that are not let in
    committed_offsets: CommittedOffsets = field(default_factory=CommittedOffsets)
    recurring: Recurring = field(default_factory=Recurring)
    causes: dict[str, int] = {}  #: completed rebalances by cause
    errors: dict[int, dict[int, int]] = {}  #: API key → error code → number of responses
    conversions: tuple[int, ...] = ()  #: times of the last conversions between protocols
    late_frames: tuple[LateFrame, ...] = ()

    def attach(
        self,
        name: str,
        cluster: str,
        *,
        settings: Settings,
        loading: Mapping[tuple[str, str], int],
        counters: Counters,
        coverage: Coverage,
        disconnections: dict[tuple[str, str], Disconnections],
        group_events: EventLog,
        facts: ClusterFacts | None = None,
    ) -> Self:
        """Give the group its name and what all groups of a partition share; return it, without members, connections and requests."""
        self.name, self.cluster = name, cluster
        self.settings, self.loading, self.counters, self.coverage = settings, loading, counters, coverage
        self.disconnections, self.group_events, self.facts = disconnections, group_events, facts or ClusterFacts()
        self.members, self.open, self.connections, self.last_record_us = {}, {}, {}, 0
        self.changed, self.counted, self.slow_changed = True, False, True
        return self

    # ------------------------------------------------------------------------------------------------ requests and connections

    def line(self, connection: str) -> ConnectionState:
        """Return the state of a connection; create it if needed."""
        line = self.connections.get(connection)
        if line is None:
            line = self.connections[connection] = ConnectionState()
        return line

    def abandon(self, record: MirrorRecord) -> Exchange | None:
        """Drop the exchange of a frame that cannot be read, since its outcome stays unknown; return the request, if it was seen."""
        exchange = self.open.pop((record.connection, record.exchange), None)
        if exchange is not None:
            line = self.connections[record.connection]
            line.outstanding -= 1
            line.last_response_us = record.at_us
        return exchange

    def count_error(self, api_key: int, error: int) -> None:
        """Count a response that holds an error."""
        known = self.errors.setdefault(api_key, {})
        known[error] = known.get(error, 0) + 1
        self.counters.errors[self.cluster, api_key, error] += 1
        self.counted = True

    # ------------------------------------------------------------------------------------------------ coordinator

    def accepted(self, exchange: Exchange) -> None:
        """Note that this broker acted as the group's coordinator; a new broker begins a new incarnation."""
        self.facts.nodes.coordinator_accepted(self.cluster, exchange)
        if not is_coordinator(self, exchange.broker) and not self.addresses.still_acts(self, exchange):
            addresses = CoordinatorAddresses.replaced(self, exchange)
            if self.broker and self.settled:
                self.new_incarnation(exchange.res_us, f"the coordinator moved from {self.broker} to {exchange.broker}")
            self.broker, self.addresses = exchange.broker, addresses
            self.changed = True
        self.settled = True

    def coordinator_moves(self, exchange: Exchange) -> tuple[Event, ...]:
        """Process error 14, 15 or 16: the group is moving, unless the client asked the wrong broker."""
        if steps_down(self, exchange.broker):
            self.new_incarnation(exchange.res_us, f"{exchange.broker} answered {error_name(exchange.error)}")
        return NOTHING

    def new_incarnation(self, at_us: int, because: str) -> None:  # noqa: ARG002 - types of groups say what else it means
        """Begin a new incarnation: the coordinator moved, or loaded the group again."""
        self.incarnation += 1
        self.settled = False

    @property
    def broker_release(self) -> tuple[int, int]:
        """The oldest release that the coordinator can be."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------ members

    @property
    def generation(self) -> int | None:
        """The newest generation or epoch."""
        raise NotImplementedError

    @property
    def learning(self) -> bool:
        """True while the membership is not known."""
        raise NotImplementedError

    def present_members(self) -> Iterator[M]:
        return (member for member in self.members.values() if member.present)

    def forget_some(self) -> bool:
        """Forget those whose removal is longest ago, if many were removed; return True if any was forgotten."""
        gone = [member for member in self.members.values() if not member.keeps_place]
        gone.sort(key=lambda member: max(member.last_frame_us, member.removed_us))
        forgotten = gone[: max(0, len(gone) - REMOVED_MEMBERS_KEPT)]
        for member in forgotten:
            del self.members[member.id]
        return bool(forgotten)
