"""Data of a classic group, and simple queries on it.

This module imports no tracker and no handler, so that both can use a group without an import cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.events import State
from coordinator_model.groups.group import Group
from coordinator_model.groups.group_coordinator import are_one, is_coordinator
from coordinator_model.groups.protocol.classic import phases_of_members
from coordinator_model.groups.records import Exchange, ExchangeKey, Generation, IssuedId, JoinFacts, Member, StaticMember
from coordinator_model.releases import first_release
from coordinator_model.wire.constants import COMMITS, JOIN_GROUP, NONE, SYNC_GROUP

CLASSIC: Final = "classic"  #: the type of group that is modelled


class GroupData(Group[Member]):
    """Data of one group, without that of the trackers."""

    kind = CLASSIC
    generation_seen: int | None = None  #: newest generation in any success; for show
    state: State = State.UNKNOWN
    protocol_type: str = ""
    generations: list[Generation] = []
    instances: dict[str, StaticMember] = {}
    issued: dict[str, IssuedId] = {}
    given_up: dict[ExchangeKey, Exchange] = {}  #: JoinGroups whose client hung up before the answer
    join_took_us: int | None = None
    sync_took_us: int | None = None
    joins: tuple[int, int] = (0, 0)
    syncs: tuple[int, int] = (0, 0)
    deleted_us: int | None = None
    unconnected_us: int = 0  #: last time without any connected member, or without a coordinator: a restart then is not visible

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

    def phases_proven_by(self, exchange: Exchange) -> frozenset[str]:
        """Return the phases that the group was in, if the response proves that its member and its generation are the request's; else none.

        Of another broker than the coordinator that is known, only the version of its answer counts: it may be an older one.
        """
        if exchange.api_key in COMMITS and NONE not in exchange.error_codes:
            return frozenset()
        api_key, version = exchange.api_key, exchange.api_version
        oldest = self.broker_release if is_coordinator(self, exchange.broker) else first_release(api_key, version)
        loads = self.loading_near(exchange.broker, exchange.res_us)
        return phases_of_members(api_key, version, exchange.error, oldest, numbered=exchange.generation >= 0, loads=loads)

    def proof_beyond(self, generation: int, before_us: int) -> Generation | None:
        """Return the oldest generation above ``generation`` that was proven before ``before_us``, None if there is none."""
        skew = self.clock_skew_us
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
        surely_us = before_us - self.clock_skew_us
        if known.sync_done_us is not None and known.sync_done_us < surely_us:
            return True
        proven_us = before_us if connection == known.proof.connection else surely_us
        return known.proven_us < proven_us and self.unconnected_us < known.proven_us
