"""One classic group: what is known of it, and the changes to that which handlers make.

``data`` holds what is known. This module adds the trackers and the changes: a member joins, is accepted, refused or removed; the
coordinator moves; frames are missing. ``model`` brings each frame to the handler of its API and then to the trackers. The group
decides nothing: handlers and trackers return events, and rules check these.

* A response may be captured long after the coordinator acted, because it was parked, queued or slow. What it proves holds at some time
  between the effective time of its request and its own capture.
* A member is not a connection. A client may send heartbeats on one connection, join on another and continue on a third.
* After a failover the coordinator may lawfully issue a generation again, restore old members and lose new ones. Facts about generation
  and membership end with the incarnation. What a member's requests contain (timeouts, instance id) remains as a hint.
* A coordinator that is still loading answers every Heartbeat with success.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import field

from coordinator_model.counters import NOT_REJOINED, REFUSED, REMOVED, SESSION_EXPIRED
from coordinator_model.events import State
from coordinator_model.groups import committed_offsets, coordinator_changes
from coordinator_model.groups.classic.data import GroupData
from coordinator_model.groups.classic.positions import Verdict, judge
from coordinator_model.groups.classic.rebalance import ClassicRebalances
from coordinator_model.groups.classic.state import Observation, after, settles, unsettles
from coordinator_model.groups.classic.trackers import (
    assignments,
    descriptions,
    member_identity,
    offsets,
    rebalance_history,
    sessions,
)
from coordinator_model.groups.classic.trackers.assignments import Assignments
from coordinator_model.groups.classic.trackers.descriptions import Descriptions
from coordinator_model.groups.classic.trackers.member_identity import MemberIdentity
from coordinator_model.groups.classic.trackers.offsets import Offsets
from coordinator_model.groups.classic.trackers.rebalance_history import RebalanceHistory
from coordinator_model.groups.classic.trackers.sessions import Sessions
from coordinator_model.groups.committed_offsets import CommittedOffsets
from coordinator_model.groups.coordinator_changes import CoordinatorChanges
from coordinator_model.groups.effects import Does, PendingEffect
from coordinator_model.groups.events import FellSilent, Refused
from coordinator_model.groups.evidence import response_evidence
from coordinator_model.groups.group_coordinator import CoordinatorAddresses
from coordinator_model.groups.records import REPLACEMENTS_KEPT, Exchange, Member, Refusals, Removed
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import FENCED_INSTANCE_ID, JOIN_GROUP, LEAVE_GROUP, UNKNOWN_MEMBER_ID

#: attribute of the group → APIs whose frames the tracker gets
TRACKERS: Final[tuple[tuple[str, frozenset[int]], ...]] = (
    ("member_identity", member_identity.API_KEYS),
    ("assignments", assignments.API_KEYS),
    ("offsets", offsets.API_KEYS),
    ("committed_offsets", committed_offsets.API_KEYS),
    ("coordinator_changes", coordinator_changes.API_KEYS),
    ("rebalance_history", rebalance_history.API_KEYS),
    ("sessions", sessions.API_KEYS),
    ("descriptions", descriptions.API_KEYS),
)

GIVEN_UP_KEPT: Final = 32

_USUAL_SESSION_MS: Final = 45_000  #: default session.timeout.ms, for members whose own is not known
_EVICTIONS: Final = {Removed.SILENT: SESSION_EXPIRED, Removed.DROPPED: NOT_REJOINED, Removed.REFUSED: REFUSED}


class ClassicGroup(GroupData):
    """What is known of one group, its trackers, and how what is known changes."""

    member_identity: MemberIdentity = field(default_factory=MemberIdentity)
    assignments: Assignments = field(default_factory=Assignments)
    offsets: Offsets = field(default_factory=Offsets)
    coordinator_changes: CoordinatorChanges = field(default_factory=CoordinatorChanges)
    rebalance_history: RebalanceHistory = field(default_factory=RebalanceHistory)
    sessions: Sessions = field(default_factory=Sessions)
    rebalances: ClassicRebalances = field(default_factory=ClassicRebalances)
    descriptions: Descriptions = field(default_factory=Descriptions)

    def last_sent_us(self, member: Member) -> int:
        """Return the capture time of the last frame that a member sent: the answer to its JoinGroup, which it may not get, is none."""
        waited_us = self.sessions.long_joins.get(member.id, 0) if member.last_frame_us == member.joined_us else 0
        return member.last_frame_us - waited_us

    def comebacks(self, member: Member) -> Iterator[PendingEffect]:
        """Yield joins of a static member's client without its id since its last frame, which may have taken its place."""
        if member.instance_id is not None:
            for one in self.effects.since(member.last_frame_us, self.open.values()):
                if one.does is Does.JOINS and one.since_us > member.last_frame_us and one.may_end(member):
                    yield one

    def connection_closed(self, connection: str, at_us: int) -> None:
        """Process the end of a connection: no response is due to the requests open on it."""
        self.arrivals.closed(connection)
        for key in [key for key in self.open if key[0] == connection]:
            abandoned = self.open.pop(key)
            self.lost(abandoned, at_us)
            if abandoned.api_key == JOIN_GROUP and abandoned.gap_free:
                abandoned.connection_closed_us = at_us
                self.recurring.on_join_closed(abandoned, at_us)
                self.given_up = dict([*self.given_up.items(), (key, abandoned)][-GIVEN_UP_KEPT:])
            self.rebalance_history.on_abandoned(self, abandoned, at_us)
        for member in self.members.values():
            if member.actor.connection == connection:
                member.disconnected_us = at_us
                self.rebalances.on_disconnect(self, member, connection, at_us)
        self.sessions.on_disconnect(connection)
        line = self.connections.pop(connection, None)
        if line is not None and line.actor.client_id is not None:
            self.rebalances.on_closed(line.actor.client_id, at_us)
        if not any(
            member.proven_us is not None and member.actor.connection in self.connections for member in self.members.values()
        ):
            self.unconnected_us = at_us
            self.member_identity.on_no_connection()
            self.coordinator_changes.on_no_connection(self, at_us, self.sessions_ms())
        if line is not None and line.outstanding:
            self.changed = True
        self.last_record_us = max(self.last_record_us, at_us)

    def sessions_ms(self) -> dict[str, int]:
        """Return member id → session timeout of the members that have not asked to leave."""
        stay = (member for member in self.present_members() if not member.leaving)
        return {member.id: member.session_timeout_ms or _USUAL_SESSION_MS for member in stay}

    def waits_unseen(self, connection: str, at_us: int) -> bool:
        """Note that a request of this connection may wait unseen; return False if only :meth:`on_gap` does it justice."""
        return self.rebalance_history.on_unseen(self, connection, at_us)

    def on_gap(self, at_us: int, because: str) -> None:
        """Go back to learning: frames are missing or the group moved, so generation and membership may have changed unseen."""
        self.rebalances.on_gap(self, at_us, because)
        self.usual.on_gap(at_us)
        self.learning_because = because
        self.addresses = CoordinatorAddresses()
        self.given_up.clear()
        self.generations.clear()
        self.issued.clear()
        self.arrivals.on_gap()
        self.generation_seen = None
        for member in self.members.values():
            member.proven_us = None
            member.refusals = None
            member.rejoin_asked_us = None
            member.fenced_us = None
            member.joined = member.synced = member.in_sync = None
            member.joined_before = None
            member.idle_since_us = 0
        for instance in self.instances.values():
            instance.held_us = instance.settled_us = 0
        for waiting in self.open.values():
            waiting.gap_free = False
        for name, _ in TRACKERS:
            getattr(self, name).on_gap(self)
        self.observe(Observation.LOST_SIGHT, at_us)

    def new_incarnation(self, at_us: int, because: str) -> None:
        super().new_incarnation(at_us, because)
        committed, self.committed_offsets = self.committed_offsets, CommittedOffsets()
        self.on_gap(at_us, because)
        self.committed_offsets = committed  # they are in the log, whichever coordinator reads it

    def begin_life(self) -> None:
        """Note that the group had ended, and has begun again with the join phase that is over: no frame of it is missing.

        What it committed stays known: the coordinator may have dropped that with it, which its readers need to know.
        """
        self.incarnation += 1
        self.generations.clear()
        self.generation_seen = None
        for member in self.members.values():
            if member.joined is not None:
                member.proven_us = member.joined = member.synced = member.in_sync = member.joined_before = None
        for instance in self.instances.values():
            instance.held_us = instance.settled_us = 0
        self.member_identity.incarnation = self.coordinator_changes.incarnation = self.rebalance_history.incarnation = (
            self.incarnation
        )
        self.coordinator_changes.persisted = None
        self.rebalance_history.begin_life()
        self.rebalances.forget(held_known=True)
        if self.rebalances.current is not None:
            self.rebalances.current.from_generation, self.rebalances.current.incarnation = None, self.incarnation
        for tracker in (self.member_identity, self.assignments, self.offsets, self.descriptions):
            tracker.on_gap(self)

    def fell_silent(self, member: Member, at_us: int) -> tuple[FellSilent, ...]:
        """Remove a member whose session has certainly expired."""
        dropped_us = member.removed_us if member.removed == Removed.DROPPED else 0
        self.remove(member, Removed.SILENT, at_us)
        self.rebalances.on_silent(self, member, at_us)
        return (FellSilent(member, at_us, dropped_us),)

    # ------------------------------------------------------------------------------------------------ bookkeeping

    def observe(self, seen: Observation, at_us: int) -> None:
        """Update the estimated state by an observation."""
        if self.generations and unsettles(seen):
            self.generations[-1].unsettled_us = self.generations[-1].unsettled_us or at_us
        elif self.generations and settles(seen):
            self.generations[-1].unsettled_us = 0
        state = after(self.state, seen)
        if state is not self.state:
            if state is State.PREPARING or self.state_since_us == 0:
                self.join_took_us = self.sync_took_us = None
            self.state = state
            self.state_since_us = at_us
            self.rebalances.on_state(self, at_us)
        self.changed = True

    def served(self, exchange: Exchange) -> None:
        """Note a Heartbeat success at the newest generation, in an estimated state in which the table gives none.

        In Empty, the coordinator has loaded the group again unseen, and restarted the sessions. A join phase stands if it may have begun
        after the request, or if a JoinGroup waits. Else what seemed to begin it never reached the coordinator.
        """
        if self.state is State.PREPARING:
            late_us = self.late_us
            if exchange.inv_us <= self.state_since_us + late_us or any(one.api_key == JOIN_GROUP for one in self.open.values()):
                return
            seen = Observation.JOINED if self.generations[-1].sync_done_us is None else Observation.STILL_SERVED
        else:
            seen = Observation.HEARTBEAT_OK
        self.observe(seen, exchange.res_us)

    def remove(self, member: Member, why: Removed, at_us: int) -> None:
        """Note why a member is one no longer."""
        was_present = member.present
        member.removed = why
        member.removed_us = at_us
        self.changed = True
        if was_present:
            self.rebalances.on_removed(self, member, why, at_us)
        cause = REMOVED if why == Removed.LEFT else _EVICTIONS.get(why)
        if was_present and cause is not None and not member.leaving:
            self.counters.evictions[self.cluster, cause] += 1
        if was_present and why in {Removed.LEFT, Removed.SILENT, Removed.REFUSED}:
            comes = any(join.starts_phase and join.member_id != member.id for join in self.waiting_joins())
            if not comes and not any(True for _ in self.present_members()):
                self.observe(Observation.LAST_MEMBER_GONE, at_us)
            elif self._takes_part(member):
                self.observe(Observation.MEMBER_GONE, at_us)
        self.forget_some()

    def _takes_part(self, member: Member) -> bool:
        """Return True if the member may be in the newest generation. One that did not join it starts no rebalance when it goes."""
        newest = self.newest_generation
        if newest is None or member.joined == newest.generation:
            return True
        if newest.roster is not None:
            return member.id in newest.roster
        return member.instance_id is not None or member.parked_join in self.open

    def restore_member(self, member: Member) -> None:
        member.removed = None
        self.rebalances.on_restored(member)
        self.changed = True

    def member_of(self, exchange: Exchange) -> Member:
        """Return the member that the exchange names; create it, unproven, if it is unknown."""
        member = self.members.get(exchange.member_id)
        if member is None:
            member = self.members[exchange.member_id] = Member(exchange.member_id)
        member.actor = exchange.actor
        if exchange.instance_id is not None and member.instance_id is None and member.joined is None:
            member.instance_id = exchange.instance_id
        return member

    def accepted(self, exchange: Exchange) -> None:
        self.coordinator_changes.returned(self, exchange)
        super().accepted(exchange)

    def prove(self, member: Member, exchange: Exchange) -> None:
        """Note that the coordinator has treated a client as a member."""
        member.proven_us = exchange.res_us
        if member.leaving:
            self.stays(member, exchange)
        if member.fenced_us is not None and member.fenced_us < exchange.effective_us:
            member.fenced_us = None  # its replacement was undone
            member.frames_after_fence = 0
        if member.removed is not None:
            self.restore_member(member)

    def stays(self, member: Member, exchange: Exchange) -> None:
        """Note that a member was served after its LeaveGroup: the LeaveGroup never reached the coordinator, if this request is later."""
        asked_after = exchange.inv_us > member.leave_asked_us + self.clock_skew_us
        if asked_after and not any(open_.api_key == LEAVE_GROUP for open_ in self.open.values()):
            member.leaving = False

    def judge(
        self, exchange: Exchange, error: int, *, named: tuple[str, str | None] | None = None, issued: int | None = None
    ) -> Verdict | None:
        """Return the verdict of the protocol's table on an answer, None if it may be lawful.

        :param named: member id and instance id that the answer is about, if not the request's own.
        :param issued: the generation that the answer names.
        """
        return judge(self, exchange, error, self.member_identity.broker_version, named=named, issued=issued)

    def unlawful(self, exchange: Exchange) -> tuple[Event, ...]:
        """Return the verdict on an accepted request as an event, if it is unlawful."""
        verdict = self.judge(exchange, exchange.error)
        return NOTHING if verdict is None else (verdict,)

    def refuse(self, exchange: Exchange, error: int) -> tuple[Event, ...]:
        """Process the refusal of a Heartbeat, SyncGroup or OffsetCommit for its generation, member id or instance id."""
        if not exchange.member_id:
            return NOTHING
        member = self.member_of(exchange)
        if error == FENCED_INSTANCE_ID:
            return self.fence(exchange, member)
        if error == UNKNOWN_MEMBER_ID and exchange.instance_id is not None and exchange.instance_id != member.instance_id:
            return NOTHING  # the instance id is unknown, so the member id may be valid
        frame = response_evidence(exchange, error)
        refusals = member.refusals
        if refusals is None or (refusals.error, refusals.generation) != (error, exchange.generation):
            refusals = member.refusals = Refusals(error, exchange.generation, 0, exchange.res_us, exchange.res_us)
            self.rebalances.on_refused(self, exchange, error)
        refusals.add(exchange.res_us, frame)
        newer = member.proven_us is None or member.proven_us < exchange.effective_us
        early: tuple[Event, ...] = NOTHING
        if error == UNKNOWN_MEMBER_ID and member.removed in {None, Removed.DROPPED} and newer:
            early = self.sessions.evicted_early(self, exchange, member)
            self.remove(member, Removed.REFUSED, exchange.res_us)
        return (Refused(exchange, member), *early)

    def fence(self, exchange: Exchange, member: Member) -> tuple[Event, ...]:
        """Process FENCED_INSTANCE_ID for a member: another process holds its instance."""
        if member.fenced_us is None:
            member.fenced_us = exchange.res_us
            self.rebalances.on_refused(self, exchange, FENCED_INSTANCE_ID)
            member.fence_frames = [response_evidence(exchange, FENCED_INSTANCE_ID)]
        if member.removed is None:
            self.remove(member, Removed.REPLACED, exchange.res_us)
        if exchange.instance_id is not None:
            instance = self.instances.get(exchange.instance_id)
            if instance is not None and instance.member_id != member.id:
                actor = exchange.actor
                note = (exchange.res_us, actor.connection, actor.client_id, actor.address)
                instance.fenced = [*instance.fenced[-REPLACEMENTS_KEPT:], note]
                instance.frames = [*instance.frames[-3:], response_evidence(exchange, FENCED_INSTANCE_ID)]
        return NOTHING
