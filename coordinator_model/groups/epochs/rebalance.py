"""What the recorder notes of a group whose members have epochs: who joined, gave up, got and left, from one epoch to the next.

It compares what is known of a member before and after a response. It adds no event, and does next to nothing, for a heartbeat that
changes nothing while no rebalance is open.

*A rebalance begins with the first response that shows a new epoch of the group.* It is over when each member has that epoch, has given
up what it was asked to, and has been answered since the last partition became free; or when the next epoch is shown.

*A partition is held until the request that gives it up.* The coordinator gives it to no other member before. A member consumes what it
keeps, so only one that holds nothing costs member-seconds.

*The session of a dead member ends unseen.* Its partitions go to others before the model is certain, so a grant of what another holds
shows that the other is gone: since its connection ended, or its last frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from coordinator_model.events import (
    EPOCHS_UNKNOWN,
    GONE,
    NEXT_EPOCH,
    NO_MEMBERS,
    NOT_GIVEN_UP,
    NOT_TOLD,
    SERVED,
    ConnectionClosed,
    FramePlace,
    GaveUp,
    GroupEmptied,
    MemberAway,
    MemberJoined,
    MemberLeft,
    MemberServed,
    MemberToldToGiveUp,
    SessionOver,
    Unheld,
)
from coordinator_model.finding import Evidence
from coordinator_model.groups.epochs.group import UNSEEN_CAUSE, EpochGroupCore, topics_changed
from coordinator_model.groups.epochs.records import JOIN_EPOCH, NO_PARTITIONS, EpochMember, is_join
from coordinator_model.groups.rebalance import (
    PARTITIONS_KEPT,
    UNKNOWN,
    Awaited,
    Identity,
    MemberProgress,
    Moved,
    Rebalance,
    Recorder,
    TopicPartition,
    Waited,
    place_of,
)
from coordinator_model.groups.records import Exchange, Partitions, Removed, by_topic
from coordinator_model.groups.usual import Gone
from coordinator_model.wire.constants import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    HEARTBEAT,
    NONE,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
)

_FENCES: Final = frozenset({UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID})
_SUSPECTED: Final = frozenset({"went silent", "removed, its joins were refused", "removed, did not give partitions up"})
_UNSEEN_ENDS: Final = frozenset({Removed.SILENT, Removed.NOT_BACK})


class Known(NamedTuple):
    """What is known of a member before a response, or after it."""

    group_epoch: int | None
    member: EpochMember | None
    epoch: int | None
    granted: Partitions | None
    pending: Partitions
    removed: Removed | None


class EpochRebalances(Recorder):
    """The rebalance of one group that is not over, and the partitions without a holder."""

    before: dict[TopicPartition, str] = {}  #: partition that changed hands → who held it, "" for no member
    unheld_us: dict[TopicPartition, int] = {}  #: for how long one had no holder, in this rebalance
    free: dict[TopicPartition, tuple[str, int]] = {}  #: who held it last, "" once counted, and since when
    freed_us: int = 0  #: when a partition last became free
    known: bool = True  #: False if this rebalance touches partitions that are not known
    joiners: dict[str, int] = {}  #: member id → request of its join, which raised no epoch yet
    gone: dict[str, int] = {}  #: member id → since when it seems to be none, before that is certain
    asked: dict[str, int] = {}
    #: connection → exchange number of a JoinGroup that was noted when it was asked, as the group was still a classic one

    # ------------------------------------------------------------------------------------------------ frames

    def awaits_nothing(self, member: EpochMember) -> bool:
        """Return True if a success that changes nothing cannot be what the recorder waits for."""
        return self.current is None and member.id not in self.gone

    @staticmethod
    def known_of(group: EpochGroupCore, member_id: str) -> Known:
        """Return what is known of a member."""
        member = group.members.get(member_id)
        if member is None:
            return Known(group.epoch, None, None, None, NO_PARTITIONS, None)
        return Known(group.epoch, member, member.epoch, member.granted, member.pending, member.removed)

    def on_response(self, group: EpochGroupCore, exchange: Exchange, was: Known, member_id: str) -> None:
        """Note what a response changed.

        :param was: what was known before.
        :param member_id: whom it is about: a member of an early release gets its id with its first response.
        """
        member = group.members.get(member_id)
        if exchange.error != NONE:
            self._refused(group, exchange, member)
        elif member is None or not member.present:
            return
        elif (
            self.current is not None
            or self.known_of(group, member_id)[1:] != was[1:]  # the epoch of the group alone shows nothing of the member
            or member.id in self.gone
            or is_join(exchange)
            or exchange.api_key == SYNC_GROUP
        ):
            self._accepted(group, exchange, member, was)

    def _accepted(self, group: EpochGroupCore, exchange: Exchange, member: EpochMember, was: Known) -> None:
        identity = Identity.of_member(member)
        if self.gone.pop(member.id, None) is None:
            self.lost.pop(identity.holder, None)
        joined = is_join(exchange)
        is_new = was.member is None or was.removed not in {None, Removed.AWAY}
        if joined and self.asked.get(exchange.key[0]) != exchange.key[1]:
            self.emit(group, MemberJoined, exchange, identity, new=is_new)
        if group.epoch != was.group_epoch and group.epoch is not None:
            self._rose(group, exchange, member, was)
        progress = None if self.current is None else self.current.progress_of(identity)
        if joined and progress is not None:
            progress.joined_us = progress.joined_us or exchange.inv_us
            progress.is_new = is_new
            if was.member is None or was.removed is not None:
                progress.stopped_us = progress.stopped_us or exchange.inv_us
        gained = self._compare(group, exchange, member, was, progress)
        if gained:
            self.joiners.pop(member.id, None)
        elif joined and self.current is None:
            self.joiners[member.id] = exchange.inv_us
        served = exchange.api_key == SYNC_GROUP
        if gained or served:
            owned = None if member.granted is None else self._shown(group, member.granted)
            self.emit(group, MemberServed, exchange, identity, partitions=owned)
        if progress is not None and self.current is not None:
            at_epoch = member.epoch is not None and member.epoch >= (self.current.generation or 0)
            idles = progress.stopped_us and not progress.resumed_us
            if gained or served:
                progress.served_us, progress.resumed_us = exchange.res_us, progress.resumed_us or exchange.res_us
            elif at_epoch and not member.pending and not progress.served_us and not idles:
                progress.served_us = exchange.res_us
        self.regain_members(group, exchange, f"the epochs of all members are known, the newest is {group.epoch}")
        self._end_if_served(group, exchange.res_us, place_of(exchange))

    def _compare(
        self, group: EpochGroupCore, exchange: Exchange, member: EpochMember, was: Known, progress: MemberProgress | None
    ) -> bool:
        """Note what a member was asked to give up, gave up and got; return True if it got something."""
        granted, at_us = member.granted, exchange.res_us
        if granted is None or not group.traits.exclusive:
            self.known = False
            return granted is not None and bool(granted - (was.granted or NO_PARTITIONS))
        same = was.member is member and was.removed is None
        if same and was.granted is None:
            self.known = False
            return bool(granted)
        had = was.granted if same and was.granted is not None else NO_PARTITIONS
        held, holds = had | (was.pending if same else NO_PARTITIONS), member.holds
        identity = Identity.of_member(member)
        to_give_up = member.pending - was.pending if same else NO_PARTITIONS
        if to_give_up:
            self.emit(group, MemberToldToGiveUp, exchange, identity, partitions=self._shown(group, to_give_up), keeps=len(granted))
            if progress is not None:
                progress.told_us = progress.told_us or at_us
        gave_up = held - holds
        if gave_up:
            self._release(gave_up, identity.holder, exchange.inv_us, exchange.inv_us)
            self.emit(group, GaveUp, exchange, identity, partitions=self._shown(group, gave_up), keeps=len(granted))
            if progress is not None:
                progress.acknowledged_us = exchange.inv_us
                if not holds and not progress.stopped_us:
                    progress.stopped_us = exchange.inv_us
        gained = granted - held
        if gained:
            self._take(group, member, gained, at_us)
        return bool(gained) or (exchange.generation == JOIN_EPOCH and bool(granted))

    def _refused(self, group: EpochGroupCore, exchange: Exchange, member: EpochMember | None) -> None:
        error = exchange.error
        identity = Identity.of_sender(exchange) if member is None else Identity.of_member(member)
        if error == REBALANCE_IN_PROGRESS and exchange.api_key == HEARTBEAT:
            if member is not None and member.rejoin_asked_us == exchange.res_us:
                self.told_to_rejoin(group, exchange, identity)
            return
        if error in _FENCES:
            first = member is not None and member.refusals is not None and member.refusals.count == 1
        else:
            claim = group.claims.get(exchange.instance_id or "")
            first = error == UNRELEASED_INSTANCE_ID and claim is not None and claim.times == 1
        if first:
            self.fenced(group, exchange, identity, error)

    # ------------------------------------------------------------------------------------------------ what happens without an answer

    def on_removed(
        self,
        group: EpochGroupCore,
        member: EpochMember,
        why: str,
        at_us: int,
        *,
        held: Partitions,
        stopped_us: int,
        frame: Evidence | None,
    ) -> None:
        """Note that a member is none any more, or is away, after it was removed.

        :param held: what it held.
        :param stopped_us: see :func:`stopped_us_of`.
        """
        identity = Identity.of_member(member)
        place = None if frame is None else FramePlace(frame.partition, frame.offset)
        others = [other for other in group.members.values() if other is not member and other.present]
        if group.traits.exclusive:
            taken: set[TopicPartition] = set()
            for other in others:
                taken |= other.holds & held
            self._release(held - taken, identity.holder, stopped_us, at_us)
            self.stops_unseen |= why == Removed.SILENT and bool(held - taken) and not group.shows_ends
        if why != Removed.AWAY:
            was_member_us = stopped_us - member.joins[-1] if member.joins else 0
            named = by_topic((group.topic_text(topic), number) for topic, number in held)
            gone = Gone.of(member, Removed(why), stopped_us=stopped_us, known_us=at_us, was_member_us=was_member_us, held=named)
            _note_departure(group, gone, len(others), held)
        was_gone = self.gone.pop(member.id, None)
        self.joiners.pop(member.id, None)
        progress = self.current.members.pop(member.id, None) if self.current is not None else None
        if why in {Removed.LEFT, Removed.REMOVED}:
            self.add(group, MemberLeft, at_us, (member.id, at_us), frame=place, **identity.named, reason=None)
        elif why == Removed.AWAY:
            self.add(group, MemberAway, at_us, (member.id, at_us), frame=place, **identity.named)
        elif why in _UNSEEN_ENDS:
            silent_since_us = 0 if member.is_kept_out else stopped_us
            self.add(group, SessionOver, at_us, (member.id, stopped_us), **identity.named, silent_since_us=silent_since_us)
        if why not in {Removed.LEFT, Removed.REMOVED, Removed.AWAY, Removed.REPLACED} and not was_gone:
            self._lose(member, stopped_us, progress, at_us)
        if others or why == Removed.REPLACED:
            self._end_if_served(group, at_us, None)
            return
        if self.current is not None:
            self._end(group, at_us, NO_MEMBERS)
        elif not any(other.keeps_place for other in group.members.values()):
            self.add(group, GroupEmptied, at_us, (member.id, at_us), frame=place)
        self.lost = {}
        if why != Removed.AWAY and why not in _UNSEEN_ENDS:  # what a dead member held has no holder until somebody gets it
            self.free, self.before, self.unheld_us = {}, {}, {}

    def on_disconnect(self, group: EpochGroupCore, member: EpochMember, connection: str, at_us: int) -> None:
        """Note that a member's connection has ended. Call this before its open requests are dropped."""
        leaves = any(waiting.member_id == member.id and waiting.generation < JOIN_EPOCH for waiting in group.open.values())
        if member.present and not leaves:
            self.add(group, ConnectionClosed, at_us, (connection, member.id), **Identity.of_member(member).named)

    def on_gap(self, group: EpochGroupCore, at_us: int, because: str) -> None:
        """Note that frames are missing. Call this before what is known of the group is dropped."""
        if self.current is not None:
            self.known = False
            self._end(group, at_us, EPOCHS_UNKNOWN)
        self.free, self.before, self.unheld_us, self.joiners = {}, {}, {}, {}
        self.lose_members(group, at_us, because)

    # ------------------------------------------------------------------------------------------------ partitions

    def _release(self, partitions: Partitions, holder: str, since_us: int, at_us: int) -> None:
        """Note at ``at_us`` that partitions have had no holder since ``since_us``."""
        if len(self.free) + len(partitions) > PARTITIONS_KEPT:
            self.known = False
            return
        for each in partitions - self.free.keys():
            self.free[each] = holder, since_us
            if self.current is not None:
                self.before.setdefault(each, holder)
        if partitions:
            self.freed_us = max(self.freed_us, at_us)

    def _take(self, group: EpochGroupCore, member: EpochMember, gained: Partitions, at_us: int) -> None:
        """Note that a member holds partitions, which another may have held whose end was not seen."""
        unexplained = {each for each in gained if each not in self.free}
        if unexplained:
            for other in group.members.values():
                held = other.holds & unexplained if other is not member and other.present else NO_PARTITIONS
                if held:
                    stopped_us = stopped_us_of(other, Removed.SILENT, at_us)
                    self._release(frozenset(held), Identity.of_member(other).holder, stopped_us, at_us)
                    self.stops_unseen |= not group.shows_ends
                    self._goes(other, stopped_us, at_us)
        for each in gained:
            holder, since_us = self.free.pop(each, ("", 0))
            if self.current is not None and len(self.before) < PARTITIONS_KEPT:
                self.before.setdefault(each, holder)
                if since_us:
                    self.unheld_us[each] = self.unheld_us.get(each, 0) + max(0, at_us - since_us)

    @staticmethod
    def _shown(group: EpochGroupCore, partitions: Partitions) -> dict[str, list[int]]:
        return {group.topic_text(topic): numbers for topic, numbers in by_topic(partitions).items()}

    # ------------------------------------------------------------------------------------------------ the rebalance

    def _rose(self, group: EpochGroupCore, exchange: Exchange, member: EpochMember, was: Known) -> None:
        assert group.epoch is not None
        cause, starter = "", None
        if group.born_us == exchange.res_us:
            cause, starter = "joined", member
        elif was.group_epoch is not None and group.bumps and group.bumps[-1].epoch == group.epoch:
            cause = group.bumps[-1].cause
            starter = group.members.get(group.bumps[-1].member_id or "")
        if not cause:
            return
        idle: list[MemberProgress] = []
        if self.current is not None:
            idle = [one for one in self.current.members.values() if one.stopped_us and not one.resumed_us]
            self._end(group, exchange.res_us, NEXT_EPOCH)
        identity = UNKNOWN if starter is None else Identity.of_member(starter)
        begun = Rebalance(cause, identity, exchange.key, was.group_epoch, exchange.res_us, group.incarnation, group.epoch)
        still_here = [one for one in idle if one.identity.member_id in group.members]
        self.begin(group, begun, still_here, exchange)
        self.known = True
        self.before = {each: holder for each, (holder, _) in self.free.items() if holder}
        for id_, asked_us in self.joiners.items():  # since 4.3 a join may be answered with the epoch before
            if id_ in group.members:
                progress = begun.progress_of(Identity.of_member(group.members[id_]))
                progress.joined_us = progress.stopped_us = asked_us
        self.joiners = {}
        if starter is not None and cause in _SUSPECTED:
            self._goes(starter, stopped_us_of(starter, Removed.SILENT, exchange.res_us), exchange.res_us)

    def _goes(self, member: EpochMember, stopped_us: int, at_us: int) -> None:
        """Note at ``at_us`` that the coordinator has removed a member, before that is certain."""
        if member.id not in self.gone and member.present:
            progress = self.current.members.pop(member.id, None) if self.current is not None else None
            self._lose(member, stopped_us, progress, at_us)
            self.gone[member.id] = stopped_us

    def _lose(self, member: EpochMember, stopped_us: int, progress: MemberProgress | None, at_us: int) -> None:
        identity = Identity.of_member(member)
        told_us = progress.told_us if progress is not None else 0
        if self.current is not None:
            self.current.awaited[member.id] = Awaited(identity, NOT_GIVEN_UP if told_us else GONE, self.current.began_us, at_us)
        self.lost.setdefault(identity.holder, MemberProgress(identity, told_us=told_us, stopped_us=stopped_us))

    def _end_if_served(self, group: EpochGroupCore, at_us: int, frame: FramePlace | None) -> None:
        current = self.current
        if current is None or current.generation is None:
            return
        since_us = self.freed_us if self.free and group.traits.exclusive else 0
        for member in group.members.values():
            if not member.present or member.id in self.gone:
                continue
            gives_up = member.pending and group.traits.exclusive
            if gives_up or member.epoch is None or member.epoch < current.generation:
                return
            if member.accepted_asked_us < since_us and not member.classic:
                return
        for member in group.members.values():
            progress = current.members.get(member.id)
            if progress is not None and member.present and progress.stopped_us and not progress.resumed_us:
                progress.served_us = at_us  # there is nothing for it
                subject = (member.id, *current.subject)
                owned: dict[str, list[int]] | None = {} if member.granted is not None else None
                self.add(group, MemberServed, at_us, subject, frame=frame, **progress.identity.named, partitions=owned)
        self._end(group, at_us, SERVED, frame)

    def _end(self, group: EpochGroupCore, at_us: int, ended: str, frame: FramePlace | None = None) -> None:
        current = self.current
        assert current is not None
        present = [member for member in group.members.values() if member.present and member.id not in self.gone]
        members = [current.progress_of(Identity.of_member(member)) for member in present]
        known = self.known and group.traits.exclusive and all(member.granted is not None for member in present)
        if known and current.cause == UNSEEN_CAUSE and ended == SERVED:
            gained = frozenset(each for each, holder in self.before.items() if not holder and each not in self.unheld_us)
            if cause := topics_changed(group, gained, frozenset(self.free)):
                group.correct_cause(current.cause, cause)
                current.cause = cause
        moved = self._moved(group, present, at_us) if known else None
        self.free = {each: ("", max(at_us, since_us)) for each, (_, since_us) in self.free.items()}
        self.before, self.unheld_us, self.stops_unseen = {}, {}, False
        waited = _waited_for(current, present, at_us) if group.traits.exclusive else []
        self.end(group, at_us, ended, members, assignor=None, moved=moved, waited=waited, frame=frame)

    def _moved(self, group: EpochGroupCore, present: list[EpochMember], at_us: int) -> Moved:
        """Return which partitions have another holder than before the rebalance; what has no holder yet counts until now."""
        for each, (_, since_us) in self.free.items():
            self.unheld_us[each] = self.unheld_us.get(each, 0) + max(0, at_us - since_us)
        now = {each: Identity.of_member(member).holder for member in present for each in member.holds if each in self.before}
        elsewhere = sum(now.get(each, "") != holder for each, holder in self.before.items())
        held = sum(len(member.holds) for member in present)
        unheld = tuple(Unheld(group.topic_text(topic), number, us) for (topic, number), us in sorted(self.unheld_us.items()) if us)
        return Moved(elsewhere, held - sum(now[each] != self.before[each] for each in now), None if self.stops_unseen else unheld)


def stopped_us_of(member: EpochMember, why: Removed, at_us: int) -> int:
    """Return when a member stopped consuming, as far as frames and its connection show. Call this before it is removed."""
    if why in {Removed.LEFT, Removed.AWAY}:
        return member.heartbeat_us or member.last_frame_us or at_us  # the request of its leave
    if why == Removed.NOT_BACK:
        return member.removed_us
    if why not in {Removed.SILENT, Removed.FENCED}:
        return at_us
    if member.disconnected_us and member.disconnected_us >= member.last_frame_us:
        return member.disconnected_us
    if member.is_kept_out and member.refusals is not None:
        return member.refusals.first_us
    # A slow answer gives it what it holds. Of one that frames of others alone show, the last of these is what is known.
    return max(member.last_frame_us, member.granted_us) or member.proven_us or at_us


def _waited_for(current: Rebalance, present: Iterable[EpochMember], ended_us: int) -> list[Waited]:
    """Return for whom others waited.

    *A partition moves when its holder has given it up*: with its own heartbeats, or when it is removed. No frame shows which member is to
    get it. So a member that holds partitions and does not come to the epoch counts only if another one holds nothing.

    :param present: the members at the end of the rebalance, ``ended_us``.
    """
    return [*_waited_for_present(current, present, ended_us), *_waited_for_gone(current)]


def _waited_for_present(current: Rebalance, present: Iterable[EpochMember], ended_us: int) -> Iterator[Waited]:
    for member in present:
        progress = current.members.get(member.id)
        if progress is None:
            continue
        gave_up_us = 0 if member.pending else progress.acknowledged_us
        if member.pending or gave_up_us:
            waited_us = (gave_up_us or ended_us) - current.began_us
            yield Waited(progress.identity, NOT_GIVEN_UP, max(0, waited_us), came=bool(gave_up_us))
        elif member.holds and (member.epoch or 0) < (current.generation or 0):
            why = GONE if member.disconnected_us > member.last_frame_us else NOT_TOLD
            yield Waited(progress.identity, why, max(0, ended_us - _idle_since_us(current, member.id, ended_us)), came=False)


def _waited_for_gone(current: Rebalance) -> Iterator[Waited]:
    for id_, one in current.awaited.items():
        since_us = current.began_us if one.why == NOT_GIVEN_UP else _idle_since_us(current, id_, one.gone_us)
        yield Waited(one.identity, one.why, max(0, one.gone_us - since_us), came=False)


def _idle_since_us(current: Rebalance, but: str, otherwise_us: int) -> int:
    """Return since when another member holds nothing in this rebalance."""
    stopped = (one.stopped_us for id_, one in current.members.items() if one.stopped_us and id_ != but)
    return max(current.began_us, min(stopped, default=otherwise_us))


def _note_departure(group: EpochGroupCore, gone: Gone, left: int, held: Partitions) -> None:
    """Note a member that went, with what it held by topic id."""
    ids = {group.topic_text(topic): topic for topic, _ in held}

    def offset_of(topic: str, number: int) -> int | None:
        """Return where the group stands: commits name a topic, or its id from v10 on."""
        by_name = group.committed_offsets.offset_of(topic, number)
        return group.committed_offsets.offset_of(ids[topic], number) if by_name is None else by_name

    group.usual.went(gone, left, group.settings.usual_ms * 1_000, offset_of)
