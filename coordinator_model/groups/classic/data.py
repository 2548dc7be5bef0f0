"""Data of a classic group, and simple queries on it.

This module imports no tracker and no handler, so that both can use a group without an import cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.counters import Counters
from coordinator_model.event_log import EventLog
from coordinator_model.groups.classic.state import State
from coordinator_model.groups.coordinator_addresses import CoordinatorAddresses, are_one
from coordinator_model.groups.late_frames import LateFrame
from coordinator_model.groups.records import (
    ConnectionState,
    Coverage,
    Disconnections,
    Exchange,
    ExchangeKey,
    Generation,
    IssuedId,
    JoinFacts,
    Member,
    StaticMember,
)
from coordinator_model.groups.recurring.recurring import Recurring
from coordinator_model.groups.refused_joins import RefusedJoin
from coordinator_model.settings import Settings
from coordinator_model.wire.constants import JOIN_GROUP, SYNC_GROUP

CLASSIC: Final = "classic"  #: the type of group that is modelled


class GroupData:
    """Data of one group, without that of the trackers."""

    __slots__ = (
        "abandoned_us",
        "addresses",
        "broker",
        "causes",
        "changed",
        "cluster",
        "connections",
        "conversions",
        "counted",
        "counters",
        "coverage",
        "deleted_us",
        "disconnections",
        "errors",
        "facts",
        "generation_seen",
        "generations",
        "given_up",
        "group_events",
        "incarnation",
        "instances",
        "issued",
        "join_took_us",
        "joins",
        "kind",
        "last_record_us",
        "late_frames",
        "learning_because",
        "loading",
        "members",
        "name",
        "open",
        "protocol_type",
        "recurring",
        "refused_joins",
        "settings",
        "settled",
        "slow_changed",
        "state",
        "state_since_us",
        "sync_took_us",
        "syncs",
        "unconnected_us",
    )

    def __init__(
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
    ) -> None:
        self.name = name
        self.cluster = cluster
        self.settings = settings
        self.loading = loading  #: (cluster, broker) → time of its last COORDINATOR_LOAD_IN_PROGRESS in this partition
        self.counters = counters  #: of the partition
        self.coverage = coverage  #: of the partition
        self.disconnections = disconnections  #: by (cluster, broker), of the partition
        self.group_events = group_events  #: of all groups of the partition, until they are drained
        self.recurring = Recurring()
        self.kind = CLASSIC
        self.broker = ""
        self.addresses = CoordinatorAddresses()  #: others of the coordinator
        self.facts = ClusterFacts()  #: what is known of the cluster beside its groups
        self.incarnation = 1
        self.settled = False  #: True once a request was accepted in this incarnation
        self.learning_because = "first seen in mid-life"
        self.generation_seen: int | None = None  #: newest generation in any success; for show
        self.state = State.UNKNOWN
        self.state_since_us = 0
        self.protocol_type = ""
        self.generations: list[Generation] = []
        self.members: dict[str, Member] = {}
        self.instances: dict[str, StaticMember] = {}
        self.issued: dict[str, IssuedId] = {}
        self.refused_joins: dict[str, RefusedJoin] = {}  #: clients that are not let in
        self.open: dict[ExchangeKey, Exchange] = {}
        self.given_up: dict[ExchangeKey, Exchange] = {}  #: JoinGroups whose client hung up before the answer
        self.connections: dict[str, ConnectionState] = {}
        self.causes: dict[str, int] = {}  #: completed rebalances by cause
        self.errors: dict[int, dict[int, int]] = {}  #: API key → error code → number of responses
        self.join_took_us: int | None = None
        self.sync_took_us: int | None = None
        self.joins = (0, 0)  #: number of join phases seen to end, and their total microseconds
        self.syncs = (0, 0)
        self.deleted_us: int | None = None
        self.conversions: tuple[int, ...] = ()  #: times of the last conversions between protocols
        self.abandoned_us = 0  #: when a connection last ended on which a JoinGroup or LeaveGroup waited, which may still act
        self.last_record_us = 0
        self.late_frames: tuple[LateFrame, ...] = ()
        self.changed = True  #: something that the group view shows
        self.counted = False  #: a counter that the group view shows, and no timer rule uses
        self.slow_changed = True  #: something other than what every heartbeat changes
        self.unconnected_us = 0  #: last time without any connected member; a restart of the coordinator at that time is not visible

    @property
    def newest_generation(self) -> Generation | None:
        """The newest generation proven in this incarnation."""
        return self.generations[-1] if self.generations else None

    @property
    def generation(self) -> int | None:
        newest = self.newest_generation
        return self.generation_seen if newest is None else newest.generation

    @property
    def learning(self) -> bool:
        """True until the newest generation's full roster is known: the membership is unknown until then."""
        newest = self.newest_generation
        return newest is None or newest.roster is None

    def present_members(self) -> Iterator[Member]:
        return (member for member in self.members.values() if member.present)

    def rebalance_timeout_ms(self) -> tuple[int, bool]:
        """Return the largest rebalance timeout among the members, and whether every member's is known."""
        roster = self.newest_generation.roster if self.newest_generation is not None else None
        known = [member.rebalance_timeout_ms for member in self.present_members() if member.rebalance_timeout_ms is not None]
        asked = [waiting.facts.rebalance_timeout_ms for waiting in self.waiting_joins() if isinstance(waiting.facts, JoinFacts)]
        complete = roster is not None and all(
            id_ in self.members and self.members[id_].rebalance_timeout_ms is not None for id_ in roster
        )
        return max([*known, *asked], default=0), complete

    def waiting_joins(self) -> Iterator[Exchange]:
        """Yield the JoinGroup requests for which a response is due, oldest first."""
        return (
            waiting
            for waiting in self.open.values()
            if waiting.api_key == JOIN_GROUP and not waiting.superseded and waiting.gap_free
        )

    def waiting_syncs(self) -> Iterator[Exchange]:
        return (waiting for waiting in self.open.values() if waiting.api_key == SYNC_GROUP and waiting.gap_free)

    def parked(self, member: Member) -> bool:
        """Return True if a JoinGroup or SyncGroup of this member waits for its response."""
        return member.parked_join in self.open or member.parked_sync in self.open

    def may_have_expired(self, member: Member, at_us: int) -> bool:
        """Return True if a member sent nothing for its session timeout, and no request of it is parked."""
        timeout_ms = member.session_timeout_ms
        return timeout_ms is not None and not self.parked(member) and member.last_frame_us + timeout_ms * 1_000 <= at_us

    def loading_near(self, broker: str, at_us: int) -> bool:
        """Return True if the broker was loading at about that time, so that a Heartbeat success proves nothing."""
        window_us = self.settings.load_window_ms * 1_000
        return any(
            cluster == self.cluster and abs(at_us - last_us) <= window_us and are_one(self, known, broker)
            for (cluster, known), last_us in self.loading.items()
        )

    def proof_beyond(self, generation: int, before_us: int) -> Generation | None:
        """Return the oldest generation above ``generation`` that was proven before ``before_us``, None if there is none."""
        skew = self.settings.clock_skew_ms * 1_000
        for candidate in self.generations:
            if candidate.generation > generation and candidate.proven_us < before_us - skew:
                return candidate
        return None

    def lasts(self, known: Generation, before_us: int, connection: str = "") -> bool:
        """Return True if this generation was proven before ``before_us``, and no unseen restart of the coordinator can have lost it.

        A coordinator that restarts loads what was last written. A restart that no frame shows ends all connections.

        :param connection: that of the frame with the time ``before_us``; the frames of one connection have one clock.
        """
        if self.deleted_us is not None and self.deleted_us >= known.proven_us:
            return False
        surely_us = before_us - self.settings.clock_skew_ms * 1_000
        if known.sync_done_us is not None and known.sync_done_us < surely_us:
            return True
        proven_us = before_us if connection == known.proof.connection else surely_us
        return known.proven_us < proven_us and self.unconnected_us < known.proven_us

    def line(self, connection: str) -> ConnectionState:
        """Return the state of a connection; create it if needed."""
        line = self.connections.get(connection)
        if line is None:
            line = self.connections[connection] = ConnectionState()
        return line
