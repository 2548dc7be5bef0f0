"""Tracker of member ids and generations: which client got which, and which refusals and acceptances contradict that.

*Later responses decide about a refusal.* A refusal is wrong only if a later response shows that nothing had changed, so a suspected one
is kept for a while. *No frame announces that a coordinator loaded its group again*: it may restart between two frames, and then starts
from the last generation in the log. What relies on a generation or an instance must therefore rely on one that a SyncGroup success
proved to be in the log. *A frame that was not captured explains anything*: members that were never captured are not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from coordinator_model.finding import Certainty
from coordinator_model.groups.classic.positions import Later, judge
from coordinator_model.groups.classic.trackers.identity_proofs import (
    abandoned_joins,
    bears_generation,
    differs,
    in_one_life,
    never_empty,
    nothing_else_moves,
    unused_ids,
)
from coordinator_model.groups.events import (
    Collided,
    Contradicted,
    HostAlternated,
    IdMishandled,
    Inconsistent,
    Invented,
    LeaveRefused,
    LeftByItself,
    Malformed,
    Mispaired,
    Needless,
    NewId,
    OtherGeneration,
    OverCapacity,
    TwoRosters,
)
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.group_coordinator import is_coordinator
from coordinator_model.groups.protocol.classic import INSTANCE_SINCE, PREPARING, TWO_STEP_JOIN_SINCE
from coordinator_model.groups.records import (
    Ahead,
    Exchange,
    ExchangeKey,
    Generation,
    JoinFacts,
    Member,
    Removed,
    Skip,
    StaticMember,
    SuspectedRefusal,
    host_of,
)
from coordinator_model.groups.responses import leave_outcomes
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.releases import BrokerVersion
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    HEARTBEAT,
    ILLEGAL_GENERATION,
    JOIN_GROUP,
    LEAVE_GROUP,
    MEMBER_ID_REQUIRED,
    NOT_ADMITTED,
    OFFSET_COMMIT,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
    UNKNOWN_MEMBER_ID,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

API_KEYS: Final = frozenset({OFFSET_COMMIT, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DELETE_GROUPS})

HANDED_OUT_KEPT: Final = 64
SUSPECTED_KEPT: Final = 4
MISMATCHED_KEPT: Final = 8
AHEAD_KEPT: Final = 8
LEAVES_KEPT: Final = 8
FRESH_KEPT: Final = 64
_GONE_KEPT: Final = 32  # with as many removed members as a group keeps, an unknown id may be a dropped one


class MemberIdentity(Stored):
    """Facts of one group about ids, issued generations and suspected refusals."""

    alert: bool = False  #: True while successes must be checked too
    incarnation: int = 1
    broker_version: BrokerVersion = BrokerVersion()
    highest: int = -1  #: highest generation of any JoinGroup success so far, across incarnations
    born_us: int | None = None  #: when the group began at generation 1, if no frame was lost and no failover happened since
    handed_out: tuple[int, ...] = ()  #: CRC-32 of the ids issued with MEMBER_ID_REQUIRED since then
    suspected: tuple[SuspectedRefusal, ...] = ()
    ahead: dict[str, Ahead] = {}  #: by member id
    mismatched: tuple[ExchangeKey, ...] = ()  #: open requests whose instance id is not their member's
    fresh: tuple[int, tuple[str, ...]] | None = None  #: a generation whose leader has not synced, and its members
    lost: tuple[int, tuple[str, ...]] | None = None  #: the same, of the incarnation before: it was never written to the log
    skip: Skip | None = None
    returns: tuple[tuple[ExchangeKey, int, bool], ...] = ()
    #: static members' returns to a settled group: (request, generation then, whether REBALANCE_IN_PROGRESS was answered since)
    refused_leaves: dict[str, int] = {}

    # ------------------------------------------------------------------------------------------------ frames

    def on_request(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG002
        api_key = exchange.api_key
        if api_key == SYNC_GROUP:
            newest = group.newest_generation
            if newest is not None and (newest.generation, newest.leader) == (exchange.generation, exchange.member_id):
                self.fresh = None
        elif api_key in PREPARING:
            # Before the first REBALANCE_IN_PROGRESS, this request may have started the join phase.
            self.returns = tuple(one for one in self.returns if one[2])
        if api_key != JOIN_GROUP:
            return NOTHING
        if exchange.member_id:
            self.ahead.pop(exchange.member_id, None)
            return NOTHING
        if exchange.instance_id is not None:
            if nothing_else_moves(group, exchange):
                assert group.newest_generation is not None
                self.returns = (*self.returns, (exchange.key, group.newest_generation.generation, False))
            return NOTHING
        return unused_ids(group, exchange)

    def on_response(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        api_key = exchange.api_key
        if is_coordinator(group, exchange.broker):
            self.broker_version = self.broker_version.answered(api_key, exchange.api_version)
        if api_key == DELETE_GROUPS:
            if 0 in exchange.error_codes:
                self.born_us = None
            return NOTHING
        if api_key == LEAVE_GROUP:
            return tuple(self._left(group, exchange, body))
        events: list[Event] = []
        if api_key == JOIN_GROUP:
            events.extend(self._join_answered(group, exchange, body))
        elif api_key == SYNC_GROUP and self.fresh is not None and (exchange.error, exchange.generation) == (0, self.fresh[0]):
            self.fresh = None
        if exchange.error == REBALANCE_IN_PROGRESS:
            self.returns = tuple((key, generation, True) for key, generation, _ in self.returns)
        elif exchange.error in NOT_ADMITTED and exchange.member_id in group.members:
            self._suspect(group, exchange)
            self._look_ahead(group, exchange)
        self._mind()
        return tuple(events)

    def on_gap(self, group: GroupData) -> None:
        """Drop what is no longer proven. After a failover, unlike after lost frames, it is known which generation was never written."""
        moved = group.incarnation != self.incarnation
        self.incarnation = group.incarnation
        self.lost = self.fresh if moved else None
        if moved:
            self.broker_version = BrokerVersion()
        self.fresh = self.born_us = self.skip = None
        self.handed_out = self.suspected = self.mismatched = self.returns = ()
        self.ahead = {}
        self._mind()

    def on_no_connection(self) -> None:
        """Drop suspected refusals, because no member is connected: the coordinator may restart unseen."""
        self.suspected = ()
        self._mind()

    # ------------------------------------------------------------------------------------------------ checks of single frames

    def check_identity(self, exchange: Exchange, member: Member) -> tuple[Event, ...]:
        """Check a request whose generation or instance id is not its member's; return events."""
        events: list[Event] = []
        generation, frame = exchange.generation, member.joined_frame
        if (
            generation >= 0
            and member.joined is not None
            and member.joined_before is not None
            and generation not in {member.joined, member.joined_before}
            and generation <= self.highest
            and frame is not None
            and frame.connection == exchange.key[0]
        ):
            events.append(OtherGeneration(exchange, member))
        known_as, calls_itself = member.instance_id, exchange.instance_id
        if known_as != calls_itself and exchange.api_version >= INSTANCE_SINCE.get(exchange.api_key, 0x7FFF):
            if calls_itself is not None:
                self.mismatched = (*self.mismatched[1 - MISMATCHED_KEPT :], exchange.key)
                self._mind()
            if known_as is not None and member.proven_us is not None and (generation >= 0 or exchange.api_key == JOIN_GROUP):
                events.append(Inconsistent(exchange, member))
        return tuple(events)

    def check_connection(self, group: GroupData, exchange: Exchange, member: Member) -> tuple[Event, ...]:
        """Process a Heartbeat on another connection than the member's last; return an event if its host alternates."""
        before, member.actor = member.actor, exchange.actor
        if before.connection not in group.connections or host_of(before.address) == host_of(exchange.actor.address):
            if before.connection not in group.connections:
                member.alternations = 0
            return NOTHING
        member.alternations += 1
        return (HostAlternated(exchange, member, before),)

    def recheck(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        """Check a response while :attr:`alert` is set; return events."""
        was_mismatched = exchange.key in self.mismatched
        if was_mismatched:
            self.mismatched = tuple(key for key in self.mismatched if key != exchange.key)
        events: list[Event] = []
        if phases := group.phases_proven_by(exchange):
            if was_mismatched:
                events.append(Mispaired(exchange))
            events.extend(self._clear_up(group, exchange, body, settled="P" not in phases))
            events.extend(self._collision(group, exchange))
        if self.mismatched:
            self.mismatched = tuple(key for key in self.mismatched if key in group.open)
        self._mind()
        return tuple(events)

    def taken_over(self, group: GroupData, exchange: Exchange) -> StaticMember | None:
        """Return the request's instance if another member provably held it before the request was processed, else None."""
        instance = group.instances.get(exchange.instance_id) if exchange.instance_id is not None else None
        if instance is None or instance.member_id == exchange.member_id or not instance.settled_us:
            return None
        return instance if instance.settled_us + group.clock_skew_us < exchange.effective_us else None

    # ------------------------------------------------------------------------------------------------ helpers

    def _mind(self) -> None:
        self.alert = bool(self.suspected or self.mismatched or self.lost is not None)

    def contradicted(self, exchange: Exchange, body: Any) -> Malformed:
        """Return the event of a JoinGroup success that contradicts itself."""
        self.returns = tuple(one for one in self.returns if one[0] != exchange.key)
        return Malformed(exchange, body.generation_id, body.member_id)

    def _join_answered(self, group: GroupData, exchange: Exchange, body: Any) -> list[Event]:
        events: list[Event] = []
        if exchange.error and bears_generation(self.broker_version, exchange, body):
            events.append(Malformed(exchange, body.generation_id, body.member_id))
        new = not exchange.member_id and exchange.instance_id is None
        two_step = exchange.api_version >= TWO_STEP_JOIN_SINCE
        if (exchange.error == 0 and new and two_step) or (exchange.error == MEMBER_ID_REQUIRED and not (new and two_step)):
            events.append(IdMishandled(exchange))
        if exchange.error == 0:
            events.extend(self._joined(group, exchange, body, new=new))
        elif exchange.error == MEMBER_ID_REQUIRED:
            self.handed_out = (*self.handed_out, crc32(body.member_id.encode()))
            events.append(NewId(exchange, body.member_id, abandoned_joins(group, exchange)))
        elif exchange.member_id:
            events.extend(self._join_refused(group, exchange))
        elif exchange.instance_id in group.instances:
            group.instances[exchange.instance_id].tried_us = exchange.res_us
        self.returns = tuple(one for one in self.returns if one[0] != exchange.key)
        if len(self.handed_out) > HANDED_OUT_KEPT:
            self.handed_out, self.born_us = (), None
        return events

    def _joined(self, group: GroupData, exchange: Exchange, body: Any, *, new: bool) -> list[Event]:
        events: list[Event] = []
        newest = group.newest_generation
        if self.skip is not None and self.skip.before < body.generation_id < self.skip.generation:
            self.skip = None  # a response captured late explains it
        if newest is None or newest.generation != body.generation_id:
            return events
        generation = newest.generation
        if exchange.completes_generation:
            self._completed(group, exchange, newest)
        self.highest = max(self.highest, generation)
        if self.fresh is not None and self.fresh[0] == generation:
            self.fresh = (generation, (*self.fresh[1][1 - FRESH_KEPT :], body.member_id))
        for key, before, _ in self.returns:
            if key == exchange.key and generation == before + 1:
                events.append(Needless(exchange, before))
        if new:
            events.append(NewId(exchange, body.member_id, abandoned_joins(group, exchange)))
        if body.members and body.member_id == body.leader:
            roster = {entry.member_id: entry.group_instance_id for entry in body.members}
            if differs(group, newest, exchange, body, roster) and in_one_life(group, exchange, newest):
                events.append(TwoRosters(exchange, newest, tuple(sorted(roster)), body.leader, body.protocol_name))
            events.extend(self._roster_shows(group, exchange, roster))
        return events

    def _completed(self, group: GroupData, exchange: Exchange, newest: Generation) -> None:
        """Process the first JoinGroup success of a generation."""
        generation = newest.generation
        begun = generation == 1 and self._is_new(exchange) and not group.conversions
        # The first generation seen in an incarnation may have been written before it.
        self.fresh = (generation, ()) if begun or len(group.generations) > 1 else None
        if self.lost is not None and generation > self.lost[0]:
            self.lost = None
        since_us = exchange.res_us - group.settings.quiet_ms * 1_000
        self.ahead = {id_: ahead for id_, ahead in self.ahead.items() if ahead.at_us > since_us}
        self.skip = None
        if begun:
            self.born_us = exchange.res_us
        if len(group.generations) < 2:
            return
        before = group.generations[-2]
        if generation - before.generation > 1 and never_empty(group, before, exchange):
            frames = (before.proof, newest.proof)
            self.skip = Skip(before.generation, generation, exchange.res_us, exchange.actor, frames)

    def _is_new(self, exchange: Exchange) -> bool:
        """Return True if a JoinGroup success is a newcomer's: it was parked, so its generation is new."""
        if exchange.member_id:
            return crc32(exchange.member_id.encode()) in self.handed_out
        return exchange.instance_id is None

    def _join_refused(self, group: GroupData, exchange: Exchange) -> list[Event]:
        member = group.members.get(exchange.member_id)
        if member is None:
            return []  # the group was deleted while this request waited
        if exchange.error == GROUP_MAX_SIZE_REACHED and member.proven_us is not None:
            return [OverCapacity(exchange, member)]
        assert isinstance(exchange.facts, JoinFacts)
        if (
            exchange.error == UNKNOWN_MEMBER_ID
            and self.born_us is not None
            and exchange.inv_us > self.born_us + exchange.facts.session_timeout_ms * 1_000
            and member.joined is None
            and member.proven_us is None
            and crc32(member.id.encode()) not in self.handed_out
            and sum(1 for one in group.members.values() if one.removed is not None) < _GONE_KEPT
        ):
            return [Invented(exchange)]
        return []

    def _suspect(self, group: GroupData, exchange: Exchange) -> None:
        """Note a refusal that a later success would show to be unlawful: at this generation, or of the same member."""
        newest = group.newest_generation
        illegal = exchange.error == ILLEGAL_GENERATION
        if newest is None or (illegal and not _is_written(group, newest, exchange)):
            return
        by_others = judge(group, exchange, exchange.error, BrokerVersion(), later=Later(newest.generation, in_sync=not illegal))
        verdict = by_others or (
            None if illegal else judge(group, exchange, exchange.error, BrokerVersion(), later=Later(member=True))
        )
        if verdict is None or verdict.certainty is Certainty.CERTAIN:
            return  # it may be lawful in any case, or is unlawful in any case
        member = group.members[exchange.member_id]
        refusal = SuspectedRefusal(
            exchange.error,
            member.id,
            exchange.instance_id,
            newest.generation,
            by_others is not None,
            member.joined_us,
            exchange.res_us,
            exchange.actor,
            (*verdict.proof, response_evidence(exchange, exchange.error)),
            verdict.text,
        )
        others = tuple(one for one in self.suspected if (one.error, one.member_id) != (refusal.error, refusal.member_id))
        self.suspected = (*others[1 - SUSPECTED_KEPT :], refusal)

    def _look_ahead(self, group: GroupData, exchange: Exchange) -> None:
        """Note a refused generation that was never issued, used by a proven member."""
        member = group.members[exchange.member_id]
        highest = max(self.highest, group.generation_seen or 0)
        if (
            exchange.error == FENCED_INSTANCE_ID
            or group.newest_generation is None
            or member.proven_us is None
            or exchange.generation <= highest
        ):
            return
        known = self.ahead.get(member.id)
        if known is not None:
            self.ahead = {**self.ahead, member.id: known._replace(generation=exchange.generation, last_us=exchange.res_us)}
            group.changed = True
            return
        frames = (group.newest_generation.proof, request_evidence(exchange), response_evidence(exchange, exchange.error))
        kept = list(self.ahead.items())[1 - AHEAD_KEPT :]
        self.ahead = {**dict(kept), member.id: Ahead(exchange.generation, highest, exchange.res_us, exchange.actor, frames)}
        group.changed = True

    def _clear_up(self, group: GroupData, exchange: Exchange, body: Any, *, settled: bool) -> list[Event]:
        """Return events for the earlier refusals that this response proves wrong.

        :param settled: no join phase was under way.
        """
        joins = exchange.api_key == JOIN_GROUP
        member_id = body.member_id if joins else exchange.member_id
        generation = body.generation_id if joins else exchange.generation
        wrong, left = [], []
        stale_us = exchange.res_us - group.settings.quiet_ms * 1_000
        for refusal in self.suspected:
            after = refusal.res_us + group.clock_skew_us < exchange.effective_us
            same = refusal.member_id == member_id and refusal.error != ILLEGAL_GENERATION
            unbroken = refusal.by_others and generation == refusal.generation and (settled or refusal.error == ILLEGAL_GENERATION)
            if after and (same or unbroken):
                wrong.append(refusal)
            elif refusal.res_us > stale_us:
                left.append(refusal)
        self.suspected = tuple(left)
        return [Contradicted(exchange, refusal, member_id) for refusal in wrong]

    def _roster_shows(self, group: GroupData, exchange: Exchange, roster: dict[str, str | None]) -> list[Event]:
        """Return events for the members that were fenced without a replacement, as the leader's list shows."""
        holders = {instance_id: id_ for id_, instance_id in roster.items() if instance_id is not None}
        wrong, left = [], []
        for refusal in self.suspected:
            holder_id = holders.get(refusal.instance_id) if refusal.instance_id is not None else None
            after = refusal.res_us + group.clock_skew_us < exchange.effective_us
            if refusal.error == FENCED_INSTANCE_ID and holder_id is not None and after:
                holder = group.members.get(holder_id)
                earlier = holder is not None and holder.removed == Removed.REPLACED and holder.joined_us < refusal.joined_us
                if holder_id == refusal.member_id or earlier:
                    wrong.append(Contradicted(exchange, refusal, holder_id))
                continue
            left.append(refusal)
        self.suspected = tuple(left)
        return list(wrong)

    def _collision(self, group: GroupData, exchange: Exchange) -> list[Event]:
        newest, member = group.newest_generation, group.members.get(exchange.member_id)
        if self.lost is None or newest is None or member is None:
            return []
        generation, holders = self.lost
        if exchange.generation == generation == newest.generation and member.id in holders and member.joined is None:
            return [Collided(exchange, member, newest)]
        return []

    def _left(self, group: GroupData, exchange: Exchange, body: Any) -> list[Event]:
        events: list[Event] = []
        if body.error_code not in {0, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID}:
            return events
        for id_, instance_id, outcome in leave_outcomes(exchange, body):
            member = group.members.get(id_)
            if outcome:
                if member is not None and member.removed == Removed.LEFT:
                    continue  # the second of two LeaveGroups, the first of which was granted
                subject = id_ or instance_id
                if not subject:
                    continue  # librdkafka sends this if it closes before it has an id
                times = self.refused_leaves.pop(subject, 0) + 1
                kept = list(self.refused_leaves.items())[1 - LEAVES_KEPT :]
                self.refused_leaves = {**dict(kept), subject: times}
                events.append(LeaveRefused(exchange, id_, instance_id, outcome, times))
            elif member is not None and member.instance_id is not None and member.actor.named == exchange.actor.named:
                events.append(LeftByItself(exchange, member))
        return events


def _is_written(group: GroupData, known: Generation, exchange: Exchange) -> bool:
    """Return True if no load can have lost the generation before this request. One that is lost is given again later."""
    surely_us = exchange.effective_us - group.clock_skew_us
    return known.sync_done_us is not None and known.sync_done_us < surely_us
