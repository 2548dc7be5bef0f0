"""What the recorder notes of a classic group: a rebalance has a join phase and a sync phase, and partitions move at its end.

It is called when something happens to the group, never for a heartbeat or a commit that succeeds.

*A rebalance begins with the state PreparingRebalance*, as the group's state is estimated, and ends when each member of the new generation
has its assignment, or when the next one begins. *A group without members has no costs*, however long its partitions have no holder.

*An eager consumer stops before it sends its JoinGroup*, and a cooperative one goes on with what it keeps. The subscription in the JoinGroup
shows which it is: an eager consumer owns nothing by then. The client's own time of stopping is on no wire; its JoinGroup is the latest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from coordinator_model.counters import Cost
from coordinator_model.events import (
    DELETED,
    MEMBERS_UNKNOWN,
    NEXT_REBALANCE,
    NO_MEMBERS,
    NOT_BEGUN,
    NOT_SEEN,
    SERVED,
    SESSION_EXPIRED,
    STATIC_RETURNED,
    TOPICS_CHANGED,
    ConnectionClosed,
    FramePlace,
    GroupEmptied,
    MemberDropped,
    MemberJoined,
    MemberLeft,
    MemberReplaced,
    MemberServed,
    MemberSynced,
    SessionOver,
    State,
    Unheld,
)
from coordinator_model.groups.classic.assignment_checks import CONSUMER, Partitions, read_assignment
from coordinator_model.groups.classic.departures import note_departure
from coordinator_model.groups.classic.holders import consumed_until_us, holders, holds_after, released_us
from coordinator_model.groups.classic.trackers.rebalance_causes import expired, had_members
from coordinator_model.groups.classic.waited_for import awaited_id, awaited_in, waited_for
from coordinator_model.groups.evidence import client_named, client_text
from coordinator_model.groups.protocol.classic import TWO_STEP_JOIN_SINCE
from coordinator_model.groups.rebalance import (
    NO_STARTER,
    PARTITIONS_KEPT,
    REBALANCES_KEPT,
    UNKNOWN,
    Identity,
    MemberProgress,
    Moved,
    Rebalance,
    Recorder,
    Starter,
    place_of,
)
from coordinator_model.groups.records import NO_CLIENT, Exchange, JoinFacts, LeaveFacts, Member, Removed
from coordinator_model.groups.recurring import Dropped
from coordinator_model.wire.constants import (
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData
    from coordinator_model.groups.classic.trackers.rebalance_history import RebalanceHistory

API_KEYS: Final = frozenset({JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP})
"""The recorder gets all frames of these but heartbeats that succeed, and of other APIs the responses with an error."""


JUST_BEFORE_US: Final = 10_000_000  #: a client that lost a connection fetches metadata sooner
CLOSINGS_KEPT: Final = 32


class ClassicRebalances(Recorder):
    """The rebalances of one group, and who holds which partitions."""

    held: dict[str, Partitions] = {}  #: holder → partitions, see :attr:`Identity.holder`
    held_known: bool = False  #: True if ``held`` is complete
    gone_us: dict[str, int] = {}  #: holder → when it ceased to be a member, since the last rebalance
    unheld: tuple[tuple[str, int, int], ...] = ()  #: topic, partition and since when the time without a holder is not counted
    closings: tuple[tuple[int, str], ...] = ()  #: (time, client id) of connections that ended lately

    # ------------------------------------------------------------------------------------------------ frames

    def on_request(self, group: GroupData, exchange: Exchange, history: RebalanceHistory) -> None:
        """Note a request, after the trackers."""
        self._begin_if_preparing(group, exchange, history.trigger)
        if exchange.api_key == JOIN_GROUP:
            self._join_asked(group, exchange)
        elif exchange.api_key == SYNC_GROUP:
            self._sync_asked(group, exchange, history)

    def on_response(self, group: GroupData, exchange: Exchange, body: Any, history: RebalanceHistory) -> None:
        """Note a response, after the trackers."""
        self._begin_if_preparing(group, exchange, history.trigger)
        if exchange.api_key == JOIN_GROUP:
            self._join_answered(group, exchange, body, history)
        elif exchange.error == REBALANCE_IN_PROGRESS:
            self._rejoin_asked(group, exchange)
        elif exchange.api_key == SYNC_GROUP and exchange.error == NONE and exchange.member_id:
            self._served(group, exchange, body, history.finished)

    def _begin_if_preparing(self, group: GroupData, exchange: Exchange, starter: Starter | None) -> None:
        if group.state is State.PREPARING and (self.current is None or self.current.generation is not None):
            self._begin(group, group.state_since_us, exchange.key, starter or NO_STARTER, group.generation, shown_by=exchange)

    def _join_asked(self, group: GroupData, exchange: Exchange) -> None:
        if not exchange.member_id and exchange.instance_id is None and exchange.api_version >= TWO_STEP_JOIN_SINCE:
            return  # it gets a member id, and joins with that
        member = group.members.get(exchange.member_id)
        if member is not None and member.fenced_us is not None:
            return  # it will be refused again
        identity = Identity.of_sender(exchange)
        if self.current is not None and self.current.generation is None and exchange.member_id:
            progress = self.current.progress_of(identity)
            if progress.joined_us:
                if exchange.actor.client_id:
                    group.recurring.on_join_asked(client_text(exchange.actor), exchange.member_id)
                return  # it waits already
            _note_join(group, progress, exchange)
        self.emit(group, MemberJoined, exchange, identity, new=_is_new(group, exchange, exchange.member_id))

    def _join_answered(self, group: GroupData, exchange: Exchange, body: Any, history: RebalanceHistory) -> None:
        newest, error = group.newest_generation, exchange.error
        if error not in {NONE, MEMBER_ID_REQUIRED} and self.current is not None and self.current.generation is None:
            refused = self.current.members.get(exchange.member_id)
            if refused is not None:
                refused.joined_us = 0
        if error == MEMBER_ID_REQUIRED and body.member_id in group.issued and self.current is not None:
            self.current.awaited[body.member_id] = awaited_id(group, body.member_id)
        if error != NONE or newest is None or body.generation_id != newest.generation:
            return
        if exchange.completes_generation:
            self._completed(group, exchange, history)
        if self.current is not None and self.current.generation == newest.generation:
            identity = Identity.of(body.member_id, exchange.instance_id, exchange.actor)
            progress = self.current.progress_of(identity)
            progress.identity = identity
            _note_join(group, progress, exchange)
        self.regain_members(group, exchange, f"the members of generation {newest.generation} are known")
        self._end_if_served(group, exchange)

    def _sync_asked(self, group: GroupData, exchange: Exchange, history: RebalanceHistory) -> None:
        newest = group.newest_generation
        if newest is None or exchange.generation != newest.generation or not exchange.member_id:
            return
        for one in self.completed[-1:]:
            if one.generation == newest.generation:
                one.starter = history.starter  # the leader's assignment may show why it rejoined
        identity = _identity_of(group, exchange)
        if self.current is not None and self.current.generation == newest.generation:
            progress = self.current.progress_of(identity)
            if progress.synced_us:
                return
            progress.synced_us = exchange.inv_us
        self.emit(group, MemberSynced, exchange, identity)

    def _served(self, group: GroupData, exchange: Exchange, body: Any, finished: Starter) -> None:
        newest, current = group.newest_generation, self.current
        if newest is None or exchange.generation != newest.generation:
            return
        identity = _identity_of(group, exchange)
        partitions, unheld = _partitions_of(group, body), None
        if current is not None and current.generation == newest.generation:
            progress = current.progress_of(identity)
            if progress.served_us:
                return
            progress.served_us, progress.partitions = exchange.res_us, partitions
            if finished.cause in TOPICS_CHANGED:
                current.cause = finished.cause
            if not current.synced_us:
                current.synced_us = exchange.res_us
                self.phase_ended(group, exchange, current, "sync", current.completed_us)
        elif partitions is not None and self.held_known:
            unheld = _returned(self, group, identity, partitions, exchange.res_us)
        shown = None if partitions is None else {topic: sorted(owned) for topic, owned in sorted(partitions.items())}
        self.emit(group, MemberServed, exchange, identity, partitions=shown, unheld=unheld)
        self._end_if_served(group, exchange)

    def _rejoin_asked(self, group: GroupData, exchange: Exchange) -> None:
        newest, current = group.newest_generation, self.current
        if current is None or current.generation is not None or not exchange.member_id:
            return
        if newest is not None and newest.generation != exchange.generation:
            return
        identity = _identity_of(group, exchange)
        progress = current.progress_of(identity)
        if progress.told_us or progress.joined_us:
            return
        progress.told_us = exchange.res_us
        self.told_to_rejoin(group, exchange, identity)

    # ------------------------------------------------------------------------------------------------ what happens to the group

    def on_state(self, group: GroupData, at_us: int) -> None:
        """Note that the estimated state has changed; a join phase may have ended without a generation."""
        state, current = group.state, self.current
        if state in {State.EMPTY, State.DEAD}:
            died = bool(self.lost) or _was_refused(group, self.gone_us)
            if current is not None:
                self._end(group, at_us, NO_MEMBERS if state is State.EMPTY else DELETED)
            elif state is State.EMPTY:
                self.add(group, GroupEmptied, at_us, (at_us,))
            if state is State.DEAD or not died:
                self.forget(held_known=True)  # else what they held has no holder until somebody is served it
        elif state in {State.STABLE, State.COMPLETING} and current is not None and current.generation is None:
            newest = group.newest_generation
            # A generation that a JoinGroup shows now, and Heartbeats did before, may be one of the same number.
            if newest is None or (newest.generation == current.from_generation and newest.proven_us < at_us):
                self._end(group, at_us, NOT_BEGUN)

    def on_silent(self, group: GroupData, member: Member, at_us: int) -> None:
        """Note that a session is over, after the member was removed: it may have begun a rebalance."""
        if group.state is State.PREPARING and (self.current is None or self.current.generation is not None):
            starter = expired(group, member)
            holder = Identity.of_member(member).holder
            lost = self.lost.pop(holder, None)  # from the rebalance that begins, not from the one before
            self._begin(group, at_us, (member.id, member.last_frame_us), starter, group.generation)
            if lost is not None:
                self.lost[holder] = lost

    def on_removed(self, group: GroupData, member: Member, why: Removed, at_us: int) -> None:
        """Note that a member is no longer one."""
        identity = Identity.of_member(member)
        if self.current is not None:
            self.current.note_gone(member.id, at_us)
        stopped_us = consumed_until_us(member, why, at_us)
        held = self.held.get(identity.holder, {}) if self.held_known else None
        note_departure(group, member, why, stopped_us=stopped_us, known_us=at_us, held=held)
        if identity.holder in self.held:
            self.gone_us.setdefault(identity.holder, stopped_us)
            self.stops_unseen |= why in _UNSEEN_STOPS and not member.leaving and not group.shows_ends
        progress = self.current.members.get(member.id) if self.current is not None else None
        told_us = progress.told_us if progress is not None else 0
        if why in {Removed.SILENT, Removed.DROPPED} and not member.leaving:
            self.lost[identity.holder] = MemberProgress(identity, told_us=told_us, stopped_us=stopped_us)
        if why == Removed.SILENT:
            silent_since_us = member.last_frame_us
            self.add(group, SessionOver, at_us, (member.id, silent_since_us), **identity.named, silent_since_us=silent_since_us)
        elif why == Removed.DROPPED and not _leaves(group, member):
            self.add(group, MemberDropped, at_us, (member.id,), **identity.named)
            if self.current is not None and not told_us:
                client = client_named(identity.client_id, identity.address)
                group.recurring.unasked_drops.add(Dropped(at_us, at_us - self.current.began_us, member.id, client))

    def on_restored(self, member: Member) -> None:
        """Note that a member that seemed to be gone is still one."""
        holder = Identity.of_member(member).holder
        self.gone_us.pop(holder, None)
        self.lost.pop(holder, None)
        if self.current is not None:
            self.current.note_gone(member.id, 0)

    def on_left(self, group: GroupData, exchange: Exchange, member: Member, reason: str) -> None:
        """Note that a LeaveGroup was granted."""
        self.emit(group, MemberLeft, exchange, Identity.of_member(member), member.id, reason=reason or None)

    def on_replaced(self, group: GroupData, exchange: Exchange, member: Member, by_member_id: str) -> None:
        """Note that a new member id took over the group.instance.id of a member."""
        self.emit(group, MemberReplaced, exchange, Identity.of_member(member), member.id, replaced_by=by_member_id)

    def on_refused(self, group: GroupData, exchange: Exchange, error: int) -> None:
        """Note that a member's first request was refused because it is no member, or not of this generation."""
        self.fenced(group, exchange, _identity_of(group, exchange), error, exchange.member_id)

    def on_disconnect(self, group: GroupData, member: Member, connection: str, at_us: int) -> None:
        """Note that a member's connection has ended."""
        if member.present and not member.leaving:
            self.add(group, ConnectionClosed, at_us, (connection, member.id), **Identity.of_member(member).named)

    def on_closed(self, client_id: str, at_us: int) -> None:
        """Note the end of a connection on which the group was seen, to any broker."""
        kept = (known for known in self.closings if at_us - known[0] <= JUST_BEFORE_US)
        self.closings = (*kept, (at_us, client_id))[-CLOSINGS_KEPT:]

    def on_gap(self, group: GroupData, at_us: int, because: str) -> None:
        """Note that frames are missing or the group moved. Call this before what is known of it is dropped."""
        if self.current is not None:
            self._end(group, at_us, MEMBERS_UNKNOWN)
        self.forget(held_known=False)
        if self.members_known and self.over:
            self.over[-1].is_no_op = False  # what followed it was not seen
        self.lose_members(group, at_us, because)

    def forget(self, *, held_known: bool) -> None:
        """Drop who holds what; ``held_known``: nobody holds anything."""
        self.held, self.gone_us, self.unheld, self.held_known, self.lost = {}, {}, (), held_known, {}
        self.stops_unseen = False

    # ------------------------------------------------------------------------------------------------ the rebalance

    def _begin(
        self,
        group: GroupData,
        at_us: int,
        subject: tuple[str | int, ...],
        starter: Starter,
        from_generation: int | None,
        *,
        shown_by: Exchange | None = None,
    ) -> None:
        idle: list[MemberProgress] = []
        if self.current is not None:
            idle = [one for one in self.current.members.values() if one.stopped_us and not one.served_us]
            self._end(group, at_us, NEXT_REBALANCE)
        identity = Identity.of(starter.member_id, starter.instance_id, starter.actor)
        begun = Rebalance(
            starter.cause,
            identity,
            subject,
            from_generation,
            at_us,
            group.incarnation,
            awaited=awaited_in(group, from_generation, at_us),
            reason=starter.reason,
            closed=len({client for closed_us, client in self.closings if at_us - JUST_BEFORE_US <= closed_us <= at_us}),
        )
        self.begin(group, begun, idle, shown_by)
        for join in group.waiting_joins():
            if join.member_id and join is not shown_by:
                _note_join(group, begun.progress_of(Identity.of_sender(join)), join)

    def _completed(self, group: GroupData, exchange: Exchange, history: RebalanceHistory) -> None:
        """Note the end of the join phase: a new generation."""
        newest, finished = group.newest_generation, history.finished
        assert newest is not None
        if self.current is None or self.current.generation is not None:  # its beginning was not captured
            began_us = exchange.res_us - (group.join_took_us or 0)
            before = group.generations[-2].generation if len(group.generations) > 1 else None
            self._begin(group, began_us, exchange.key, finished, before, shown_by=exchange)
        current = self.current
        assert current is not None
        if finished.cause != NOT_SEEN and current.cause != SESSION_EXPIRED:  # else who has come back since did not begin it
            current.cause = finished.cause
            if finished.actor != NO_CLIENT:
                current.identity = Identity.of(finished.member_id, finished.instance_id, finished.actor)
        current.generation, current.completed_us = newest.generation, exchange.res_us
        current.starter, current.also, current.interrupts = history.starter, history.others, had_members(group)
        self.phase_ended(group, exchange, current, "join", current.began_us)

    def _end_if_served(self, group: GroupData, exchange: Exchange) -> None:
        newest, current = group.newest_generation, self.current
        if current is None or newest is None or newest.roster is None or current.generation != newest.generation:
            return
        # Members are mostly served in the order of the roster: the last one decides at once.
        if all(id_ in current.members and current.members[id_].served_us for id_ in reversed(newest.roster)):
            self._end(group, exchange.res_us, SERVED, place_of(exchange))

    def _end(self, group: GroupData, at_us: int, ended: str, frame: FramePlace | None = None) -> None:
        current = self.current
        assert current is not None
        members = _took_part(group, current)
        came = {one.identity.holder for one in members}
        self.lost = {holder: one for holder, one in self.lost.items() if holder not in came}
        moved = None if current.generation is None else self._hand_over(current, members, ended, at_us)
        changed = bool(self.lost) or any(one.is_new for one in members) or bool(group.recurring.scaling.left)
        waited, assignor = waited_for(group, current, at_us), _assignor_of(group, current)
        self.end(group, at_us, ended, members, assignor=assignor, moved=moved, waited=waited, frame=frame)
        if current.generation is not None:
            current.is_no_op = moved is not None and not moved.moved and moved.stayed > 0 and not changed
            current.stayed = moved.stayed if moved is not None else 0
            current.subject, current.members, current.awaited = (), {}, {}
            if not current.is_no_op:
                current.identity, current.frame, current.reason = UNKNOWN, None, ""
            self.over = (*self.over, current)[-REBALANCES_KEPT:]

    def _hand_over(self, current: Rebalance, members: list[MemberProgress], ended: str, at_us: int) -> Moved | None:
        """Let each member hold what it was served; return what moved, None if that is not known."""
        by_holder = {one.identity.holder: one for one in members}
        moved = None
        after = {holder: holds_after(one, self.held) for holder, one in by_holder.items()}
        before_known = self.held_known or current.generation == current.incarnation == 1  # a new group
        if before_known and all(one.partitions is not None for one in members if one.served_us):
            moved = self._moved(after, by_holder, at_us)
        self.gone_us, self.stops_unseen = {}, False
        complete = ended == SERVED and all(one.partitions is not None for one in members)
        self.held_known = (complete or self.held_known) and sum(1 for _ in holders(after)) <= PARTITIONS_KEPT
        self.held = after if self.held_known else {}
        if not self.held_known:
            self.unheld = ()
        return moved

    def _moved(self, after: dict[str, Partitions], members: dict[str, MemberProgress], ended_us: int) -> Moved:
        """Return what moved between holders, and note what has no holder at the end of the rebalance."""
        old, new = dict(holders(self.held)), dict(holders(after))
        since_us = {(topic, partition): at_us for topic, partition, at_us in self.unheld}
        unheld, left = [], []
        for topic, partition in {**old, **since_us}:
            each = topic, partition
            holder, next_holder = old.get(each), new.get(each)
            free_us = since_us.get(each, 0) if holder is None else released_us(holder, next_holder, members, self.gone_us)
            if next_holder is None:
                left.append((topic, partition, ended_us))
            if free_us:
                taker = members.get(next_holder) if next_holder is not None else None
                held_us = taker.served_us if taker is not None and taker.served_us else ended_us
                unheld.append(Unheld(topic, partition, held_us - free_us))
        self.unheld = tuple(left)
        stayed = sum(new.get(each) == holder for each, holder in old.items())
        known = None if self.stops_unseen else tuple(sorted(one for one in unheld if one.us > 0))
        return Moved(len({**old, **new}) - stayed, stayed, known)


_UNSEEN_STOPS: Final = frozenset({Removed.SILENT, Removed.REPLACED, Removed.DROPPED})
"""Why a member is none any more that may have stopped at any time after its last frame: the end of its connection shows when."""


def _took_part(group: GroupData, current: Rebalance) -> list[MemberProgress]:
    newest = group.newest_generation
    if current.generation is None or newest is None or newest.generation != current.generation or newest.roster is None:
        return list(current.members.values())
    found = []
    for id_, instance_id in newest.roster.items():
        known = current.members.get(id_)
        member = group.members.get(id_)
        actor = member.actor if member is not None else NO_CLIENT
        found.append(known or MemberProgress(Identity.of(id_, instance_id, actor)))
    return found


def _assignor_of(group: GroupData, current: Rebalance) -> str | None:
    newest = group.newest_generation
    return newest.protocol if newest is not None and newest.generation == current.generation else None


def _returned(
    recorder: ClassicRebalances, group: GroupData, identity: Identity, partitions: Partitions, at_us: int
) -> tuple[Unheld, ...] | None:
    """Note what a member was served beside a rebalance; return what nobody held while it was away if it is a static one that was."""
    holder = identity.holder
    before, recorder.held[holder] = recorder.held.get(holder, {}), partitions
    since_us = recorder.gone_us.pop(holder, None) if identity.instance_id is not None else None
    if since_us is None or not group.shows_ends:
        return None
    unheld = tuple(Unheld(topic, number, at_us - since_us) for (topic, number), _ in sorted(holders({holder: before})))
    recorder.add_cost(group, STATIC_RETURNED, Cost(0, 0, sum(one.us for one in unheld)))
    return unheld


def _identity_of(group: GroupData, exchange: Exchange) -> Identity:
    """Return who sent a request; its instance id may be known from its JoinGroup alone."""
    member = group.members.get(exchange.member_id)
    instance_id = exchange.instance_id if member is None else exchange.instance_id or member.instance_id
    return Identity.of(exchange.member_id, instance_id, exchange.actor)


def _was_refused(group: GroupData, gone_us: dict[str, int]) -> bool:
    """Return True if a member that held partitions did not know that it was none any more."""
    refused = (one for one in group.members.values() if one.removed is Removed.REFUSED)
    return any(Identity.of_member(one).holder in gone_us for one in refused)


def _leaves(group: GroupData, member: Member) -> bool:
    """Return True if a LeaveGroup of the member is under way: it may be answered later than the JoinGroups that waited for the member."""
    asked = [one.facts.members for one in group.open.values() if isinstance(one.facts, LeaveFacts)]
    return member.leaving and any(id_ == member.id for named in asked for id_, _ in named)


def _is_new(group: GroupData, exchange: Exchange, member_id: str) -> bool:
    """Return True if a JoinGroup is that of a new member, which has this id by now: a known one names its id, or its instance id."""
    if exchange.member_id:
        return exchange.member_id in group.issued
    instance_id = exchange.instance_id
    return instance_id is None or all(one.instance_id != instance_id or one.id == member_id for one in group.members.values())


def _note_join(group: GroupData, progress: MemberProgress, exchange: Exchange) -> None:
    assert isinstance(exchange.facts, JoinFacts)
    if not progress.joined_us:
        progress.joined_us, progress.is_new = exchange.inv_us, _is_new(group, exchange, progress.identity.member_id)
    if not exchange.facts.owns and not progress.stopped_us:
        progress.stopped_us = progress.joined_us


def _partitions_of(group: GroupData, body: Any) -> Partitions | None:
    if (body.protocol_type or group.protocol_type) != CONSUMER:
        return None
    return read_assignment(body.assignment)
