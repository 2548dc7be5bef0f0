"""A lawful coordinator of a group that may be of the consumer protocol (KIP-848), classic, or mixed while it migrates.

While the group is classic it is the classic reference; what turns it into the other kind and back is here. Each refusal stands where
running brokers have it: the order of the checks matters for the error that a client sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from coordinator_model import wire
from coordinator_model.wire import decode_assignment, decode_subscription, encode_assignment
from tests.coordinator_model.reference.consumer_group import (
    LEFT_FOR_A_WHILE,
    UNRELEASED,
    UNREVOKED,
    ConsumerGroup,
    ConsumerMember,
    Partition,
    topic_id,
)
from tests.coordinator_model.reference.coordinator import Coordinator, Group, Member, committed, deleted, error_join
from tests.coordinator_model.reference.world import MS, Asked, Connection, Reply, World

ASSIGNORS = frozenset({"uniform", "range"})


class RefusedError(Exception):
    """The request is answered with an error."""

    def __init__(self, error: int, message: str | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.message = message


class ConsumerCoordinator(Coordinator):
    """One broker, of 4.0 or newer.

    :param topics: names that exist; all others are unknown to the broker.
    :param policy: ``group.consumer.migration.policy``.
    """

    def __init__(
        self,
        world: World,
        name: str,
        log: list[Any],
        *,
        release: tuple[int, ...],
        topics: set[str],
        policy: str = "bidirectional",
        session_ms: int = 45_000,
        heartbeat_ms: int = 5_000,
        assignment_interval_ms: int = 1_000,
        max_size: int = 100,
        initial_delay_ms: int = 3_000,
    ) -> None:
        super().__init__(world, name, log, release=release, initial_delay_ms=initial_delay_ms)
        self.consumer: ConsumerGroup | None = None  #: None while the group is classic
        self.topics = topics
        self.policy = policy
        self.session_us = session_ms * MS
        self.heartbeat_ms = heartbeat_ms
        self.assignment_interval_us = assignment_interval_ms * MS if release >= (4, 3) else 0
        self.max_size = max_size
        self._dirty = False

    # -------------------------------------------------------------------------------------------- leadership

    def _loaded(self) -> None:
        last = self.log[-1] if self.log else None
        if not isinstance(last, ConsumerGroup):
            self.consumer = None
            super()._loaded()
            return
        self.loading = False
        self.group = Group()
        self.consumer = last.persisted()
        for member in self.consumer.members.values():
            member.join_is_awaited = False  # these timers are lost
            self._start_session(member)
            if member.state == UNREVOKED and member.classic is None:
                self._start_revocation(member)
        for pattern in sorted({one.pattern for one in self.consumer.members.values()} - {"", *self.consumer.patterns}):
            self._resolve_later(pattern)

    def resign(self) -> None:
        if self.consumer is None:
            super().resign()
        else:
            self.unload()

    # -------------------------------------------------------------------------------------------- requests

    def handle(self, connection: Connection, asked: Asked, reply: Reply) -> None:
        body = asked.body
        if isinstance(body, wire.ApiVersionsRequest):
            reply(wire.ApiVersionsResponse(api_keys=advertised(self.release)))
            return
        if isinstance(body, wire.ConsumerGroupHeartbeatRequest):
            self._guarded(
                lambda error: wire.ConsumerGroupHeartbeatResponse(error_code=error, member_epoch=0),
                lambda: self._answered(lambda: self._consumer_heartbeat(asked), refused_heartbeat, reply),
                reply,
                shape=shape_error(body, asked.api_version),
            )
            return
        if self.consumer is None or not self.active or self.loading:
            super().handle(connection, asked, reply)
            return
        match body:
            case wire.JoinGroupRequest():
                if self._has_members():
                    self._answered(lambda: self._classic_join(asked), lambda error: error_join(error.error, body.member_id), reply)
                elif body.member_id:
                    reply(error_join(25, body.member_id))
                else:  # an empty one is replaced
                    self.consumer, self.group = None, Group()
                    super().handle(connection, asked, reply)
            case wire.SyncGroupRequest():
                self._answered(
                    lambda: self._classic_sync(asked), lambda error: wire.SyncGroupResponse(error_code=error.error), reply
                )
            case wire.HeartbeatRequest():
                self._answered(
                    lambda: self._classic_heartbeat(body), lambda error: wire.HeartbeatResponse(error_code=error.error), reply
                )
            case wire.LeaveGroupRequest():
                self._answered(
                    lambda: self._classic_leave(body), lambda error: wire.LeaveGroupResponse(error_code=error.error), reply
                )
            case wire.OffsetCommitRequest():
                self._answered(lambda: self._commit_by_epoch(asked), lambda error: committed(body, error.error), reply)
            case wire.DeleteGroupsRequest():
                if self._has_members():
                    reply(deleted(body, 68))
                else:
                    self.consumer, self.group = None, Group()
                    self.log.append(Group())
                    reply(deleted(body, 0))

    def expire(self) -> None:
        if self.consumer is None:
            super().expire()
        elif self.active and not self.loading and not self.consumer.members:
            self.consumer, self.group = None, Group()
            self.log.append(Group())

    def _guarded(self, refusal: Callable[[int], Any], action: Callable[[], None], reply: Reply, *, shape: int = 0) -> None:
        """The shape of a request is looked at by a broker that does not coordinate the group, too."""
        if shape:
            reply(refusal(shape))
        else:
            super()._guarded(refusal, action, reply)

    def _answered(self, action: Callable[[], Any], refusal: Callable[[RefusedError], Any], reply: Reply) -> None:
        """Answer once what was written is committed; an answer without a write waits for the writes before it."""
        self._dirty = False
        try:
            body = action()
        except RefusedError as refused:
            reply(refusal(refused))
            return
        self._flush(lambda: reply(body), lambda error: reply(refusal(RefusedError(error))))

    def _flush(self, then: Callable[[], None] = lambda: None, lost: Callable[[int], None] = lambda _: None) -> None:
        if self._dirty:
            self._dirty = False
            record = self.consumer.persisted() if self.consumer is not None else self.group.persisted()
            self.written(then, lost, lambda: self.log.append(record))
        else:
            self.once_written(then, lost)

    def _has_members(self) -> bool:
        return self.consumer is not None and bool(self.consumer.members)

    # -------------------------------------------------------------------------------------------- ConsumerGroupHeartbeat

    def _consumer_heartbeat(self, asked: Asked) -> wire.ConsumerGroupHeartbeatResponse:
        body = asked.body
        if body.member_epoch < 0:
            return self._leave_consumer(body)
        group = self._group_for(body)
        member_id = body.member_id or self._new_uuid()
        returns = self.release >= (4, 4) and group.holder_of(body.instance_id) is not None
        if len(group.members) >= self.max_size and member_id not in group.members and not returns:
            raise RefusedError(81)
        owned = None if body.topic_partitions is None else self._partitions(body.topic_partitions)
        member = self._identify(group, body, member_id, owned)
        if body.subscribed_topic_regex and not is_pattern(body.subscribed_topic_regex):
            raise RefusedError(128)
        fresh = member.id not in group.members or group.members[member.id] is not member
        if fresh:
            group.members[member.id] = member
        assigned_before = frozenset() if fresh and not member.assigned else frozenset(member.assigned)
        resubscribed = self._update(group, member, body)
        if group.metadata_changed:
            group.metadata_changed = False
            group.epoch += not resubscribed
        self._maybe_assign(group)
        if group.reconcile(member, owned, resubscribed=resubscribed):
            self._dirty = True
            self._start_revocation(member)
        self._start_session(member)
        full = body.rebalance_timeout_ms != -1 and (
            body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None
        )
        full = full and body.topic_partitions is not None
        shown = body.member_epoch == 0 or full or assigned_before != member.assigned.keys()
        return wire.ConsumerGroupHeartbeatResponse(
            error_code=0,
            member_id=member.id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self.heartbeat_ms,
            assignment=shown_assignment(member.assigned) if shown else None,
        )

    def _group_for(self, body: wire.ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
        """The group, made or converted where epoch 0 allows that."""
        if self.consumer is not None:
            return self.consumer
        if body.member_epoch:
            raise RefusedError(69)
        if self.group.members:
            self._upgrade()
        else:
            self.consumer = ConsumerGroup(self.release)
            self.group = Group()
        assert self.consumer is not None
        return self.consumer

    def _identify(
        self,
        group: ConsumerGroup,
        body: wire.ConsumerGroupHeartbeatRequest,
        member_id: str,
        owned: frozenset[Partition] | None,
    ) -> ConsumerMember:
        member = group.members.get(member_id)
        if body.instance_id is None:
            if member is None:
                if body.member_epoch:
                    raise RefusedError(25)
                return ConsumerMember(member_id)
            self._check_epoch(member, body.member_epoch, owned)
            return member
        holder = group.holder_of(body.instance_id)
        if body.member_epoch == 0:
            if holder is None:
                return member or ConsumerMember(member_id, body.instance_id)
            if holder.epoch != LEFT_FOR_A_WHILE and holder.classic is None:
                raise RefusedError(111)
            return self._replace_static(group, holder, member_id)
        if holder is None:
            raise RefusedError(25)
        if holder.id != member_id:
            raise RefusedError(82)
        self._check_epoch(holder, body.member_epoch, owned)
        return holder

    def _check_epoch(self, member: ConsumerMember, epoch: int, owned: frozenset[Partition] | None) -> None:
        if epoch == 0 and self.release >= (4, 2):  # KAFKA-19233
            return
        if epoch > member.epoch:
            raise RefusedError(110)
        if epoch < member.epoch and not (epoch == member.previous_epoch and member.holds_all(owned)):
            raise RefusedError(110)

    def _replace_static(self, group: ConsumerGroup, holder: ConsumerMember, member_id: str) -> ConsumerMember:
        """The successor takes over everything but id and epoch."""
        del group.members[holder.id]
        target = group.targets.pop(holder.id, None)
        if target is not None:
            group.targets[member_id] = target
        new = ConsumerMember(
            member_id,
            holder.instance_id,
            epoch=0,
            previous_epoch=0,
            state=holder.state,
            assigned=holder.assigned,
            pending=holder.pending,
            names=holder.names,
            pattern=holder.pattern,
            rebalance_ms=holder.rebalance_ms,
        )
        group.members[member_id] = new
        self._dirty = True
        return new

    def _update(self, group: ConsumerGroup, member: ConsumerMember, body: wire.ConsumerGroupHeartbeatRequest) -> bool:
        """Take in what the request says anew; whether the subscription changed."""
        if member.instance_id is None and body.instance_id is not None:
            member.instance_id = body.instance_id
        if body.rebalance_timeout_ms != -1:
            member.rebalance_ms = body.rebalance_timeout_ms
        names, pattern = member.names, member.pattern
        if body.subscribed_topic_names is not None:
            names = tuple(sorted(set(body.subscribed_topic_names)))
        if body.subscribed_topic_regex is not None:
            pattern = body.subscribed_topic_regex
        return self._resubscribe(group, member, names, pattern)

    def _resubscribe(self, group: ConsumerGroup, member: ConsumerMember, names: tuple[str, ...], pattern: str) -> bool:
        names_changed = names != member.names
        pattern_changed = pattern != member.pattern
        if pattern_changed and pattern and pattern not in group.patterns:
            self._resolve_later(pattern)
        known = pattern_changed and (not pattern or pattern in group.patterns)
        member.names, member.pattern = names, pattern
        in_use = {one.pattern for one in group.members.values()}
        for unused in group.patterns.keys() - in_use:
            del group.patterns[unused]
        if names_changed or known or group.epoch == 0:
            group.epoch += 1
            self._dirty = True
        elif pattern_changed:
            self._dirty = True
        return names_changed or pattern_changed

    def _resolve_later(self, pattern: str) -> None:
        """A pattern is looked up outside the request; a group gets a new epoch for it without one."""

        def resolved() -> None:
            group = self.consumer
            if group is None or all(one.pattern != pattern for one in group.members.values()):
                return
            prefix = pattern.removeprefix("^").removesuffix(".*")
            found = tuple(sorted(topic for topic in self.topics if topic.startswith(prefix)))
            if group.patterns.get(pattern) != found:
                group.patterns[pattern] = found
                group.epoch += 1
                self._dirty = True
                self._flush()

        self.later(self.world.random.randrange(5, 200) * MS, resolved)

    def topic_created(self, topic: str) -> None:
        """A topic came into being: patterns are looked up again, and the next heartbeat notices one that is named.

        Only the broker that has loaded the group looks, since it alone may write to the log.
        """
        group = self.consumer
        if group is not None and self.active and not self.loading:
            group.metadata_changed = group.metadata_changed or any(topic in one.names for one in group.members.values())
            for pattern in sorted(group.patterns):
                self._resolve_later(pattern)

    def _maybe_assign(self, group: ConsumerGroup) -> None:
        if group.epoch <= group.assignment_epoch:
            return
        now_us = self.world.now_us
        if group.assigned_at_us is not None and now_us - group.assigned_at_us < self.assignment_interval_us:
            return
        group.compute_target(now_us, self.topics)
        self._dirty = True

    def _leave_consumer(self, body: wire.ConsumerGroupHeartbeatRequest) -> wire.ConsumerGroupHeartbeatResponse:
        group = self.consumer
        if group is None:
            raise RefusedError(69)
        if body.instance_id is None:
            member = group.members.get(body.member_id)
            if member is None:
                raise RefusedError(25)
        else:
            member = group.holder_of(body.instance_id)
            if member is None:
                raise RefusedError(25)
            if member.id != body.member_id:
                raise RefusedError(82)
        self._dirty = True
        if body.member_epoch == LEFT_FOR_A_WHILE:
            member.epoch = LEFT_FOR_A_WHILE
            member.pending = {}
            member.revocation += 1
        else:
            self._fence(member)
        return wire.ConsumerGroupHeartbeatResponse(error_code=0, member_id=body.member_id, member_epoch=body.member_epoch)

    # -------------------------------------------------------------------------------------------- timers

    def _start_session(self, member: ConsumerMember) -> None:
        member.session += 1
        session_us = self.session_us if member.classic is None else member.classic.session_timeout_ms * MS
        self._timer(member, "session", session_us)

    def _start_revocation(self, member: ConsumerMember) -> None:
        """Begin anew if it is to give something up, and end it otherwise."""
        member.revocation += 1
        if member.state == UNREVOKED and member.classic is None:
            self._timer(member, "revocation", member.rebalance_ms * MS)

    def _timer(self, member: ConsumerMember, name: str, after_us: int) -> None:
        count = getattr(member, name)

        def fire() -> None:
            group = self.consumer
            if group is not None and group.members.get(member.id) is member and getattr(member, name) == count:
                self._fence(member)
                self._dirty = True
                self._flush()

        self.later(after_us, fire)

    def _fence(self, *members: ConsumerMember) -> None:
        """Remove members; the group turns classic when only members of that protocol remain."""
        group = self.consumer
        assert group is not None
        for member in members:
            del group.members[member.id]
            group.targets.pop(member.id, None)
        if self._may_downgrade(group):
            self._downgrade()
            self._prepare()
        else:
            group.epoch += 1

    # -------------------------------------------------------------------------------------------- conversion

    def _upgrade(self) -> None:
        """The classic group becomes one of the consumer protocol; whoever is held is told to join again."""
        old = self.group
        if self.policy not in {"bidirectional", "upgrade"} or len(old.members) > self.max_size:
            raise RefusedError(69)
        if any(one.assignment and decode_assignment(one.assignment).user_data for one in old.members.values()):
            raise RefusedError(69)
        group = ConsumerGroup(self.release, epoch=old.generation, assignment_epoch=old.generation)
        for one in old.members.values():
            assigned: dict[Partition, int] = {}
            if one.assignment:
                for topic in decode_assignment(one.assignment).assigned_partitions:
                    assigned |= {(topic.topic, index): old.generation for index in topic.partitions}
            member = group.members[one.id] = ConsumerMember(
                one.id,
                one.instance_id,
                epoch=old.generation,
                previous_epoch=old.generation,
                assigned=assigned,
                names=decode_subscription(one.protocols[0][1]).topics,
                rebalance_ms=one.rebalance_us // MS,
                classic=wire.JoinGroupRequest(
                    member_id=one.id,
                    group_instance_id=one.instance_id,
                    session_timeout_ms=one.session_us // MS,
                    rebalance_timeout_ms=one.rebalance_us // MS,
                    protocol_type="consumer",
                    protocols=tuple(wire.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in one.protocols),
                ),
            )
            group.targets[one.id] = frozenset(assigned)
            one.timer += 1
            self._answer_join(one, error_join(27, one.id))
            self._answer_sync(one, wire.SyncGroupResponse(error_code=27))
            self.consumer = group
            self._start_session(member)
        old.members, old.phase = {}, old.phase + 1
        old.state = "D"
        self.group = Group()
        self._dirty = True

    def _may_downgrade(self, group: ConsumerGroup) -> bool:
        return (
            self.policy in {"bidirectional", "downgrade"}
            and bool(group.members)
            and all(one.classic is not None for one in group.members.values())
        )

    def _downgrade(self) -> None:
        """The group becomes a classic one at the group's epoch."""
        group = self.consumer
        assert group is not None
        classic = Group()
        classic.state, classic.generation = "S", group.epoch
        for one in group.members.values():
            assert one.classic is not None
            member = classic.members[one.id] = Member(one.id, one.classic)
            member.instance_id = one.instance_id
            if one.instance_id is not None:
                classic.instances[one.instance_id] = one.id
            member.assignment = classic_assignment(group.targets.get(one.id, frozenset()))
            classic.leader = classic.leader or one.id
        self.consumer, self.group = None, classic
        classic.protocol = self._choose()
        for member in classic.members.values():
            self._restart_session(member)

    # -------------------------------------------------------------------------------------------- classic members

    def _classic_join(self, asked: Asked) -> wire.JoinGroupResponse:
        group, body = self.consumer, asked.body
        assert group is not None
        if self.policy == "disabled" and self.release >= (4, 3):
            raise RefusedError(23)
        if len(group.members) >= self.max_size and body.member_id not in group.members:
            raise RefusedError(81)
        offered = {protocol.name for protocol in body.protocols}
        known = [one.classic for one in group.members.values() if one.classic is not None]  # its own of before counts too
        common = offered.intersection(*({protocol.name for protocol in one.protocols} for one in known))
        if body.protocol_type != "consumer" or not common:
            raise RefusedError(23)
        if not body.member_id and body.group_instance_id is None and asked.api_version >= 4:
            return error_join(79, self._new_uuid())
        member, replaced_last = self._classic_member(group, body)
        subscription = decode_subscription(body.protocols[0].metadata)
        names = tuple(sorted(set(subscription.topics)))
        first = member.rebalance_ms < 0
        body = _with_identity(body, member)
        member.classic = body
        member.rebalance_ms = body.rebalance_timeout_ms if body.rebalance_timeout_ms >= 0 else body.session_timeout_ms
        resubscribed = self._resubscribe(group, member, names, "")
        self._maybe_assign(group)
        owned = frozenset((topic.topic, index) for topic in subscription.owned_partitions for index in topic.partitions)
        if getattr(subscription, "generation_id", -1) != member.epoch:
            owned = frozenset()
        if group.reconcile(member, owned, resubscribed=resubscribed) or first:
            self._dirty = True
        member.joining += 1
        member.join_is_awaited = False
        self._start_session(member)
        member.syncing += 1
        self._timer(member, "syncing", member.rebalance_ms * MS)
        epoch = member.epoch
        if replaced_last and self._may_downgrade(group):
            is_stale = group.assignment_epoch < group.epoch
            self._downgrade()
            if is_stale:
                self._prepare()
        return wire.JoinGroupResponse(
            error_code=0,
            generation_id=epoch,
            protocol_type="consumer",
            protocol_name=body.protocols[0].name,
            leader="",
            member_id=member.id,
            members=(),
        )

    def _classic_member(self, group: ConsumerGroup, body: wire.JoinGroupRequest) -> tuple[ConsumerMember, bool]:
        """Who joins, and whether it took the place of a member of the consumer protocol."""
        member_id = body.member_id or self._new_uuid()
        if body.group_instance_id is None:
            member = group.members.get(member_id)
            if member is None:
                member = group.members[member_id] = ConsumerMember(member_id)
            elif member.classic is None:
                return member, True
            return member, False
        holder = group.holder_of(body.group_instance_id)
        if body.member_id:
            if holder is None:
                raise RefusedError(25)
            if holder.id != body.member_id:
                raise RefusedError(82)
            return holder, False
        if holder is None:
            member = group.members[member_id] = ConsumerMember(member_id, body.group_instance_id)
            return member, False
        by_consumer = holder.classic is None
        return self._replace_static(group, holder, member_id), by_consumer

    def _classic_identity(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        group = self.consumer
        assert group is not None
        if instance_id is not None:
            holder = group.holder_of(instance_id)
            if holder is None:
                raise RefusedError(25)
            if holder.id != member_id:
                raise RefusedError(82)
        member = group.members.get(member_id)
        if member is None or member.classic is None:
            raise RefusedError(25)
        return member

    def _classic_sync(self, asked: Asked) -> wire.SyncGroupResponse:
        group, body = self.consumer, asked.body
        assert group is not None
        member = self._classic_identity(body.member_id, body.group_instance_id)
        assert member.classic is not None
        if body.generation_id != member.epoch:
            raise RefusedError(22)
        protocol = member.classic.protocols[0].name
        if asked.api_version >= 5 and (body.protocol_type, body.protocol_name) != ("consumer", protocol):
            raise RefusedError(23)
        member.syncing += 1
        if group.is_behind(member) and member.state != UNREVOKED:
            self._await_join(member)
            raise RefusedError(27)
        self._start_session(member)
        return wire.SyncGroupResponse(
            error_code=0,
            protocol_type="consumer",
            protocol_name=protocol,
            assignment=classic_assignment(frozenset(member.assigned)),
        )

    def _classic_heartbeat(self, body: wire.HeartbeatRequest) -> wire.HeartbeatResponse:
        group = self.consumer
        assert group is not None
        member = self._classic_identity(body.member_id, body.group_instance_id)
        if body.generation_id != member.epoch:
            raise RefusedError(22)
        self._start_session(member)
        to_rejoin = (
            group.is_behind(member) or member.state == UNREVOKED or (member.state == UNRELEASED and not group.waits_in_vain(member))
        )
        if to_rejoin:
            self._await_join(member)
        return wire.HeartbeatResponse(error_code=27 if to_rejoin else 0)

    def _await_join(self, member: ConsumerMember) -> None:
        if not member.join_is_awaited:
            member.join_is_awaited = True
            self._timer(member, "joining", member.rebalance_ms * MS)

    def _classic_leave(self, body: wire.LeaveGroupRequest) -> wire.LeaveGroupResponse:
        group = self.consumer
        assert group is not None
        outcomes, leaving = [], []
        for entry in body.members or (wire.LeaveGroupRequestMemberIdentity(member_id=body.member_id),):
            holder = group.holder_of(entry.group_instance_id)
            member = holder if entry.group_instance_id is not None else group.members.get(entry.member_id)
            error = 25 if member is None else 82 if entry.member_id not in {"", member.id} else 0
            if member is not None and not error and member not in leaving:
                leaving.append(member)
            outcomes.append(
                wire.LeaveGroupResponseMemberResponse(
                    member_id=entry.member_id, group_instance_id=entry.group_instance_id, error_code=error
                )
            )
        if leaving:
            self._dirty = True
            self._fence(*leaving)
        if body.members:
            return wire.LeaveGroupResponse(error_code=0, members=tuple(outcomes))
        return wire.LeaveGroupResponse(error_code=outcomes[0].error_code)

    # -------------------------------------------------------------------------------------------- commits

    def _committer(self, body: wire.OffsetCommitRequest) -> Any:
        """The member that commits; None for who is none, while the group is empty."""
        assert self.consumer is not None
        if not self.consumer.members and body.generation_id_or_member_epoch < 0:
            return None
        member = self.consumer.members.get(body.member_id)
        if member is None:
            raise RefusedError(25)
        return member

    def _commit_by_epoch(self, asked: Asked) -> wire.OffsetCommitResponse:
        body = asked.body
        member, epoch = self._committer(body), body.generation_id_or_member_epoch
        if member is None:
            return committed(body, 0)
        if member.classic is None and asked.api_version < 9:
            raise RefusedError(35)
        stale = 113 if member.classic is None else 22
        if epoch > member.epoch or (epoch < member.epoch and self.release < (4, 3)):
            raise RefusedError(stale)
        if epoch < member.epoch:
            by_id = {topic_id(name): name for name in self.topics}
            held = {**member.assigned, **member.pending}
            for topic in body.topics:
                name = topic.name or by_id.get(topic.topic_id, "")
                for partition in topic.partitions:
                    if held.get((name, partition.partition_index), epoch + 1) > epoch:
                        raise RefusedError(stale)
        return committed(body, 0)

    # -------------------------------------------------------------------------------------------- helpers

    def _partitions(self, topics: tuple[wire.ConsumerGroupHeartbeatRequestTopicPartitions, ...]) -> frozenset[Partition]:
        names = {topic_id(name): name for name in self.topics}
        return frozenset((names.get(topic.topic_id, "?"), index) for topic in topics for index in topic.partitions)

    def _new_uuid(self) -> str:
        return topic_id(f"{self.world.random.getrandbits(64):016x}")


ADVERTISED: dict[tuple[int, int], dict[int, int]] = {
    (4, 0): {0: 12, 1: 17, 8: 9, 9: 9, 18: 4, 28: 5, 35: 4, 66: 1, 68: 1},
    (4, 1): {0: 13, 1: 18, 8: 9, 9: 9, 18: 4, 28: 5, 35: 4, 66: 2, 68: 1},
    (4, 2): {0: 13, 1: 18, 8: 10, 9: 10, 18: 4, 28: 5, 35: 4, 66: 2, 68: 1, 76: 1, 88: 0},
    (4, 3): {0: 13, 1: 18, 8: 10, 9: 10, 18: 4, 28: 5, 35: 5, 66: 2, 68: 1, 76: 1, 88: 0},
}
"""Release → API key → highest version: those by which releases can be told apart."""


def advertised(release: tuple[int, ...]) -> tuple[wire.ApiVersionsResponseApiVersion, ...]:
    return tuple(
        wire.ApiVersionsResponseApiVersion(api_key=api_key, min_version=0, max_version=highest)
        for api_key, highest in ADVERTISED[release[:2]].items()
    )


def shape_error(body: wire.ConsumerGroupHeartbeatRequest, api_version: int) -> int:
    """42 for a request that no client may send, 112 for an assignor that there is not."""
    epoch = body.member_epoch
    blank = [text is not None and not text.strip() for text in (body.instance_id, body.rack_id)]
    id_needed = api_version >= 1 or epoch > 0 or epoch == -1
    if not body.group_id.strip() or any(blank) or (id_needed and not body.member_id.strip()):
        return 42
    if epoch < LEFT_FOR_A_WHILE or (epoch == LEFT_FOR_A_WHILE and body.instance_id is None):
        return 42
    if epoch == 0:
        subscribes = body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None  # to nothing will do
        if body.rebalance_timeout_ms == -1 or body.topic_partitions is None or body.topic_partitions or not subscribes:
            return 42
    if body.server_assignor is not None and body.server_assignor not in ASSIGNORS:
        return 112
    return 0


def is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def nobody_leaves(body: wire.LeaveGroupRequest) -> wire.LeaveGroupResponse:
    """In the types of groups that have no classic members, an operator removes nobody."""
    return wire.LeaveGroupResponse(
        members=tuple(
            wire.LeaveGroupResponseMemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=25)
            for one in body.members
        )
    )


def refused_heartbeat(refused: RefusedError) -> wire.ConsumerGroupHeartbeatResponse:
    return wire.ConsumerGroupHeartbeatResponse(error_code=refused.error, error_message=refused.message)


def shown_assignment(assigned: dict[Partition, int]) -> wire.ConsumerGroupHeartbeatResponseAssignment:
    return wire.ConsumerGroupHeartbeatResponseAssignment(
        topic_partitions=tuple(
            wire.ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id(name), partitions=indexes)
            for name, indexes in by_topic(assigned)
        )
    )


def classic_assignment(assigned: frozenset[Partition]) -> bytes:
    return encode_assignment(
        wire.ConsumerProtocolAssignment(
            assigned_partitions=tuple(
                wire.ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=indexes)
                for name, indexes in by_topic(assigned)
            )
        ),
        version=1,
    )


def by_topic(partitions: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [
        (name, tuple(sorted(index for topic, index in partitions if topic == name)))
        for name in sorted({topic for topic, _ in partitions})
    ]


def _with_identity(body: wire.JoinGroupRequest, member: ConsumerMember) -> wire.JoinGroupRequest:
    return wire.JoinGroupRequest(
        group_id=body.group_id,
        session_timeout_ms=body.session_timeout_ms,
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        member_id=member.id,
        group_instance_id=member.instance_id,
        protocol_type=body.protocol_type,
        protocols=body.protocols,
    )
