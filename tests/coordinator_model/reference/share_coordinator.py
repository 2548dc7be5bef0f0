"""A lawful coordinator of a share group (KIP-932): members, epochs, targets; nobody owns anything alone, so nothing is revoked.

Written from the KIP, Kafka's source and what running brokers answer; it shares no code with the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coordinator_model import wire
from tests.coordinator_model.reference.consumer_coordinator import ConsumerCoordinator, RefusedError, by_topic, nobody_leaves
from tests.coordinator_model.reference.consumer_group import PARTITIONS, STABLE, ConsumerGroup, ConsumerMember, Partition, topic_id
from tests.coordinator_model.reference.world import MS, Asked, Connection, Reply


@dataclass
class ShareGroup(ConsumerGroup):
    ready: set[str] = field(default_factory=set)  #: topics whose partitions the share coordinator has initialised
    is_more_ready: bool = False  #: since the last heartbeat

    def compute_target(self, now_us: int, topics: set[str]) -> None:
        """Every partition has a reader, and every reader a partition; more readers than partitions share them."""
        self.assignment_epoch, self.assigned_at_us = self.epoch, now_us
        shares: dict[str, set[Partition]] = {id_: set() for id_ in self.members}
        for topic in sorted(self.ready & topics):
            takers = sorted(id_ for id_, one in self.members.items() if topic in one.names)
            for number in range(max(len(takers), PARTITIONS) if takers else 0):
                shares[takers[number % len(takers)]].add((topic, number % PARTITIONS))
        self.targets = {id_: frozenset(share) for id_, share in shares.items()}

    def reconcile(self, member: ConsumerMember, owned: frozenset[Partition] | None, *, resubscribed: bool) -> bool:
        """A member takes its target at once."""
        target = self.targets.get(member.id, frozenset())
        if member.epoch == self.assignment_epoch and member.assigned.keys() == target:
            return False
        member.write(self.assignment_epoch, STABLE, dict.fromkeys(target, self.assignment_epoch), {})
        return True


class ShareCoordinator(ConsumerCoordinator):
    """One broker, of 4.1 or newer.

    :param ready_ms: how long the share coordinator takes at most to make the partitions of a topic ready.
    """

    def __init__(self, *arguments: Any, ready_ms: int = 400, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ready_ms = ready_ms
        self._initialising: set[str] = set()

    def _loaded(self) -> None:
        self._initialising.clear()
        super()._loaded()

    def handle(self, connection: Connection, asked: Asked, reply: Reply) -> None:
        body = asked.body
        if not isinstance(body, wire.ShareGroupHeartbeatRequest):
            super().handle(connection, asked, reply)
            return
        self._guarded(
            lambda error: wire.ShareGroupHeartbeatResponse(error_code=error),
            lambda: self._answered(
                lambda: self._heartbeat_of_share(body),
                lambda refused: wire.ShareGroupHeartbeatResponse(error_code=refused.error),
                reply,
            ),
            reply,
            shape=shape_error(body),
        )

    def _classic_leave(self, body: wire.LeaveGroupRequest) -> wire.LeaveGroupResponse:
        return nobody_leaves(body)

    def _heartbeat_of_share(self, body: wire.ShareGroupHeartbeatRequest) -> wire.ShareGroupHeartbeatResponse:
        if body.member_epoch < 0:
            return self._leave_share(body)
        group = self._share_group(body)
        member = group.members.get(body.member_id)
        if member is None:
            if len(group.members) >= self.max_size:
                raise RefusedError(81)
            if body.member_epoch:
                raise RefusedError(25)
            member = group.members[body.member_id] = ConsumerMember(body.member_id)
        else:
            self._check_share_epoch(member, body.member_epoch)
        assigned_before = frozenset(member.assigned)
        if body.subscribed_topic_names is not None and (names := tuple(sorted(set(body.subscribed_topic_names)))) != member.names:
            member.names = names
            group.epoch += 1
            self._dirty = True
        elif group.metadata_changed or group.is_more_ready:
            group.epoch += 1
            self._dirty = True
        group.metadata_changed = group.is_more_ready = False
        self._initialise(group)
        self._maybe_assign(group)
        if group.reconcile(member, None, resubscribed=False):
            self._dirty = True
        self._start_session(member)
        shown = body.member_epoch == 0 or body.subscribed_topic_names is not None or assigned_before != member.assigned.keys()
        return wire.ShareGroupHeartbeatResponse(
            member_id=member.id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self.heartbeat_ms,
            assignment=_shown(member.assigned) if shown else None,
        )

    def _share_group(self, body: wire.ShareGroupHeartbeatRequest) -> ShareGroup:
        if self.consumer is None:
            if body.member_epoch:
                raise RefusedError(69)
            self.consumer = ShareGroup(self.release)
        assert isinstance(self.consumer, ShareGroup)
        return self.consumer

    def _check_share_epoch(self, member: ConsumerMember, epoch: int) -> None:
        if epoch == 0 and self.release >= (4, 2):
            return
        if epoch not in {member.epoch, member.previous_epoch}:
            raise RefusedError(110)

    def _initialise(self, group: ShareGroup) -> None:
        """Ask the share coordinator to make subscribed topics ready, which takes its time."""
        wanted = {topic for one in group.members.values() for topic in one.names} & self.topics
        for topic in sorted(wanted - group.ready - self._initialising):
            self._initialising.add(topic)
            self.later(self.world.random.randrange(5, self.ready_ms) * MS, lambda topic=topic: self._is_ready(topic))

    def _is_ready(self, topic: str) -> None:
        group = self.consumer
        self._initialising.discard(topic)
        if isinstance(group, ShareGroup):
            group.ready.add(topic)
            group.is_more_ready = self._dirty = True
            self._flush()

    def _leave_share(self, body: wire.ShareGroupHeartbeatRequest) -> wire.ShareGroupHeartbeatResponse:
        if self.consumer is None:
            raise RefusedError(69)
        member = self.consumer.members.get(body.member_id)
        if member is None:
            raise RefusedError(25)
        self._dirty = True
        self._fence(member)
        return wire.ShareGroupHeartbeatResponse(member_id=body.member_id, member_epoch=-1)


def shape_error(body: wire.ShareGroupHeartbeatRequest) -> int:
    """42 for a request that no client may send."""
    joins_without_topics = body.member_epoch == 0 and not body.subscribed_topic_names
    blank_rack = body.rack_id is not None and not body.rack_id.strip()
    return 42 if not body.member_id.strip() or body.member_epoch < -1 or joins_without_topics or blank_rack else 0


def _shown(assigned: dict[Partition, int]) -> wire.ShareGroupHeartbeatResponseAssignment:
    return wire.ShareGroupHeartbeatResponseAssignment(
        topic_partitions=tuple(
            wire.ShareGroupHeartbeatResponseTopicPartitions(topic_id=topic_id(name), partitions=indexes)
            for name, indexes in by_topic(assigned)
        )
    )
