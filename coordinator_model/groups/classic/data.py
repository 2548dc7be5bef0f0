"""What is known of a classic group: plain data, and what follows from it at once.

It imports no tracker and no handler, so that these can be shown a group without knowing who shows it to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from coordinator_model.counters import Counters
from coordinator_model.groups.classic.state import State
from coordinator_model.groups.records import (
    NOBODY,
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
from coordinator_model.settings import Settings
from coordinator_model.wire.constants import JOIN_GROUP, SYNC_GROUP

CLASSIC: Final = "classic"  #: the type of group that is modelled


class ConnectionState:
    """What one connection looks like from this group: enough to know when a queued request can have been processed."""

    __slots__ = ("actor", "last_response_us", "outstanding")

    def __init__(self, outstanding: int = 0, last_response_us: int = 0) -> None:
        self.outstanding = outstanding
        self.last_response_us = last_response_us
        self.actor = NOBODY  #: who spoke on it last


class GroupData:
    """What is known of one group, but for what trackers keep."""

    __slots__ = (
        "broker",
        "causes",
        "changed",
        "cluster",
        "connections",
        "counted",
        "counters",
        "coverage",
        "deleted_us",
        "disconnections",
        "errors",
        "generation_seen",
        "generations",
        "incarnation",
        "instances",
        "issued",
        "join_took_us",
        "joins",
        "kind",
        "last_record_us",
        "learning_because",
        "loading",
        "members",
        "name",
        "open",
        "protocol_type",
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
    ) -> None:
        self.name = name
        self.cluster = cluster
        self.settings = settings
        self.loading = loading  #: (cluster, broker) → last time that it told anybody in this partition that it is loading
        self.counters = counters  #: of the partition
        self.coverage = coverage  #: likewise
        self.disconnections = disconnections  #: by (cluster, broker), of the partition
        self.kind = CLASSIC
        self.broker = ""
        self.incarnation = 1
        self.settled = False  #: something was accepted in this incarnation
        self.learning_because = "first seen in mid-life"
        self.generation_seen: int | None = None  #: newest generation in any success; for show
        self.state = State.UNKNOWN
        self.state_since_us = 0
        self.protocol_type = ""
        self.generations: list[Generation] = []
        self.members: dict[str, Member] = {}
        self.instances: dict[str, StaticMember] = {}
        self.issued: dict[str, IssuedId] = {}
        self.open: dict[ExchangeKey, Exchange] = {}
        self.connections: dict[str, ConnectionState] = {}
        self.causes: dict[str, int] = {}  #: completed rebalances by what began them
        self.errors: dict[int, dict[int, int]] = {}  #: API key → error code → answers
        self.join_took_us: int | None = None
        self.sync_took_us: int | None = None
        self.joins = (0, 0)  #: join phases that were seen to end, and the microseconds that they took together
        self.syncs = (0, 0)
        self.deleted_us: int | None = None
        self.last_record_us = 0
        self.changed = True  #: something that an overview shows
        self.counted = False  #: likewise, but nothing that a timer rule looks at
        self.slow_changed = True  #: something other than what every heartbeat changes
        self.unconnected_us = 0  #: last time that no member was connected: a coordinator that restarts then does so unseen

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
        """No full roster has been seen in this incarnation: whoever needs the membership must wait."""
        newest = self.newest_generation
        return newest is None or newest.roster is None

    def present_members(self) -> Iterator[Member]:
        return (member for member in self.members.values() if member.present)

    def rebalance_timeout_ms(self) -> tuple[int, bool]:
        """The largest rebalance timeout among the members, and whether every member's is known."""
        roster = self.newest_generation.roster if self.newest_generation is not None else None
        known = [member.rebalance_timeout_ms for member in self.present_members() if member.rebalance_timeout_ms is not None]
        asked = [waiting.facts.rebalance_timeout_ms for waiting in self.waiting_joins() if isinstance(waiting.facts, JoinFacts)]
        complete = roster is not None and all(
            id_ in self.members and self.members[id_].rebalance_timeout_ms is not None for id_ in roster
        )
        return max([*known, *asked], default=0), complete

    def waiting_joins(self) -> Iterator[Exchange]:
        """JoinGroup requests that are owed an answer, oldest first."""
        return (
            waiting
            for waiting in self.open.values()
            if waiting.api_key == JOIN_GROUP and not waiting.superseded and waiting.gap_free
        )

    def waiting_syncs(self) -> Iterator[Exchange]:
        return (waiting for waiting in self.open.values() if waiting.api_key == SYNC_GROUP and waiting.gap_free)

    def parked(self, member: Member) -> bool:
        """Whether a JoinGroup or SyncGroup of this member waits for its answer."""
        return member.parked_join in self.open or member.parked_sync in self.open

    def loading_near(self, broker: str, at_us: int) -> bool:
        """Whether that broker said it was loading about then, so that a heartbeat's success means nothing."""
        last = self.loading.get((self.cluster, broker))
        return last is not None and abs(at_us - last) <= self.settings.load_window_ms * 1_000

    def proof_beyond(self, generation: int, before_us: int) -> Generation | None:
        """The oldest one above ``generation`` that was proven before ``before_us``; None if there is none."""
        skew = self.settings.clock_skew_ms * 1_000
        for candidate in self.generations:
            if candidate.generation > generation and candidate.proven_us < before_us - skew:
                return candidate
        return None

    def lasts(self, known: Generation, before_us: int) -> bool:
        """Whether this generation was proven before ``before_us``, and no coordinator that loads the group anew, unseen, can have lost it.

        It would start from what was last written. A restart that nobody sees ends all connections.
        """
        proven_us = before_us - self.settings.clock_skew_ms * 1_000
        if known.sync_done_us is not None and known.sync_done_us < proven_us:
            return True
        return known.proven_us < proven_us and self.unconnected_us < known.proven_us

    def lasting_beyond(self, generation: int, before_us: int) -> Generation | None:
        """The oldest one above ``generation`` that :meth:`lasts`; None if there is none."""
        for candidate in self.generations:
            if candidate.generation > generation and self.lasts(candidate, before_us):
                return candidate
        return None

    def line(self, connection: str) -> ConnectionState:
        """What is known of a connection, from now on if it was not."""
        line = self.connections.get(connection)
        if line is None:
            line = self.connections[connection] = ConnectionState()
            self.slow_changed = True
        return line
