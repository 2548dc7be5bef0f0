"""A lawful coordinator of a Streams group (KIP-1071): members, epochs, active tasks, and the statuses that say why there are none.

Written from the KIP, Kafka's source and what running brokers answer; it shares no code with the model. Tasks are reconciled as the
partitions of a consumer group were before 4.2: after an acknowledgement that is followed by a further one, the epoch rises by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from coordinator_model import wire
from tests.coordinator_model.reference.consumer_coordinator import ConsumerCoordinator, RefusedError, by_topic, nobody_leaves
from tests.coordinator_model.reference.consumer_group import ConsumerGroup, ConsumerMember, Partition
from tests.coordinator_model.reference.coordinator import committed
from tests.coordinator_model.reference.world import MS, Asked, Connection, Reply

STALE, NO_SOURCE, NO_INTERNAL, SHUTDOWN, DELAYED = 0, 1, 3, 4, 5
SOURCE, INTERNAL = "payments", "app-repartition"
SUBTOPOLOGIES = {"0": SOURCE, "1": INTERNAL}
"""Subtopology → the topic that it reads; the second is internal, and made by the broker."""


@dataclass
class StreamsMember(ConsumerMember):
    topology: int = 0


@dataclass
class StreamsGroup(ConsumerGroup):
    topology: int = -1
    shutdown_by: str = ""
    topics: frozenset[str] = frozenset()  #: those of the application that existed when it was last looked

    def tasks_of(self, member: StreamsMember) -> tuple[str, ...]:
        return tuple(SUBTOPOLOGIES) if member.topology == self.topology else ()


class StreamsCoordinator(ConsumerCoordinator):
    """One broker, of 4.2 or newer."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._first_assignment_us = 0
        self._makes_internal = False

    def handle(self, connection: Connection, asked: Asked, reply: Reply) -> None:
        body = asked.body
        if not isinstance(body, wire.StreamsGroupHeartbeatRequest):
            super().handle(connection, asked, reply)
            return
        self._guarded(
            lambda error: wire.StreamsGroupHeartbeatResponse(error_code=error),
            lambda: self._answered(
                lambda: self._heartbeat_of_streams(body),
                lambda refused: wire.StreamsGroupHeartbeatResponse(error_code=refused.error),
                reply,
            ),
            reply,
            shape=shape_error(body),
        )

    def _classic_leave(self, body: wire.LeaveGroupRequest) -> wire.LeaveGroupResponse:
        return nobody_leaves(body)

    # -------------------------------------------------------------------------------------------- heartbeats

    def _heartbeat_of_streams(self, body: wire.StreamsGroupHeartbeatRequest) -> wire.StreamsGroupHeartbeatResponse:
        if body.member_epoch < 0:
            return self._leave_streams(body)
        group = self._streams_group(body)
        owned = None if body.active_tasks is None else tasks_of(body.active_tasks)
        member = self._streams_member(group, body, owned)
        assigned_before = frozenset(member.assigned)
        if body.rebalance_timeout_ms != -1:
            member.rebalance_ms = body.rebalance_timeout_ms
        if body.shutdown_application:
            group.shutdown_by = group.shutdown_by or member.id
        there = frozenset(self.topics.intersection(SUBTOPOLOGIES.values()))
        if there != group.topics:
            group.topics = there
            group.epoch += 1
        self._assign_tasks(group)
        if group.reconcile(member, owned, resubscribed=False):
            self._dirty = True
            self._start_revocation(member)
        self._start_session(member)
        shown = body.member_epoch == 0 or assigned_before != member.assigned.keys()
        return wire.StreamsGroupHeartbeatResponse(
            member_id=member.id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self.heartbeat_ms,
            active_tasks=_shown(member.assigned) if shown else None,
            standby_tasks=() if shown else None,
            warmup_tasks=() if shown else None,
            status=tuple(
                wire.StreamsGroupHeartbeatResponseStatus(status_code=code, status_detail=detail)
                for code, detail in self._statuses(group, member)
            ),
        )

    def _streams_group(self, body: wire.StreamsGroupHeartbeatRequest) -> StreamsGroup:
        if self.consumer is None:
            if body.member_epoch:
                raise RefusedError(69)
            self.consumer = StreamsGroup((4, 1), epoch=1, assignment_epoch=1)  # tasks are reconciled as that release does
        assert isinstance(self.consumer, StreamsGroup)
        return self.consumer

    def _streams_member(
        self, group: StreamsGroup, body: wire.StreamsGroupHeartbeatRequest, owned: frozenset[Partition] | None
    ) -> StreamsMember:
        member = group.members.get(body.member_id)
        counts_all = not body.member_epoch and self.release < (4, 4)  # before it asks who joins
        if len(group.members) >= self.max_size and (member is None or counts_all):
            raise RefusedError(81)
        if member is None and body.member_epoch:
            raise RefusedError(25)
        if member is not None:
            self._check_epoch(member, body.member_epoch, owned)
        if body.topology is not None:
            self._take_topology(group, body.topology.epoch)
        if member is None:
            if not group.members:
                self._first_assignment_us = self.world.now_us + self.initial_delay_us
                group.shutdown_by = ""
            member = group.members[body.member_id] = StreamsMember(body.member_id)
            group.epoch += 1
            self._dirty = True
        assert isinstance(member, StreamsMember)
        if body.topology is not None:
            member.topology = body.topology.epoch
            member.names = group.tasks_of(member)
        return member

    def _take_topology(self, group: StreamsGroup, epoch: int) -> None:
        """A group without members takes any; later a newer one is refused, and an older one gets nothing."""
        if not group.members:
            group.topology = epoch
        elif epoch > group.topology:
            raise RefusedError(42)

    def _assign_tasks(self, group: StreamsGroup) -> None:
        now_us = self.world.now_us
        if group.epoch <= group.assignment_epoch or now_us < self._first_assignment_us:
            return
        if group.assigned_at_us is not None and now_us - group.assigned_at_us < self.assignment_interval_us:
            return
        if group.topics == {SOURCE} and not self._makes_internal:
            self._makes_internal = True
            self.world.at(self.world.random.randrange(20, 3_000) * MS, lambda: self.topics.add(INTERNAL))
        group.compute_target(now_us, set(SUBTOPOLOGIES) if group.topics == {SOURCE, INTERNAL} else set())
        self._dirty = True

    def _statuses(self, group: StreamsGroup, member: StreamsMember) -> Iterator[tuple[int, str]]:
        if member.topology < group.topology:
            yield STALE, f"The member's topology epoch {member.topology} is behind {group.topology}."
        if SOURCE not in group.topics:
            yield NO_SOURCE, "Source topics payments are missing."
        elif INTERNAL not in group.topics:
            yield NO_INTERNAL, "Internal topics are missing: [app-repartition]"
        if group.shutdown_by:
            yield SHUTDOWN, f"Streams group member {group.shutdown_by} encountered a fatal error and requested a shutdown."
        if group.epoch > group.assignment_epoch:
            yield DELAYED, "Assignment delayed."

    def _leave_streams(self, body: wire.StreamsGroupHeartbeatRequest) -> wire.StreamsGroupHeartbeatResponse:
        if self.consumer is None:
            raise RefusedError(69)
        member = self.consumer.members.get(body.member_id)
        if member is None:
            raise RefusedError(25)
        self._dirty = True
        self._fence(member)
        return wire.StreamsGroupHeartbeatResponse(member_id=body.member_id, member_epoch=-1)

    # -------------------------------------------------------------------------------------------- commits

    def _commit_by_epoch(self, asked: Asked) -> wire.OffsetCommitResponse:
        """Since 4.2 with any epoch from that of the task's assignment to the member's own."""
        body = asked.body
        member, epoch = self._committer(body), body.generation_id_or_member_epoch
        if member is None:
            return committed(body, 0)
        held = {**member.assigned, **member.pending}
        numbers = [("0", one.partition_index) for topic in body.topics for one in topic.partitions]
        if epoch > member.epoch or (epoch < member.epoch and any(held.get(task, epoch + 1) > epoch for task in numbers)):
            raise RefusedError(113)
        return committed(body, 0)


def shape_error(body: wire.StreamsGroupHeartbeatRequest) -> int:
    """42 for a request that no client may send."""
    lists = (body.active_tasks, body.standby_tasks, body.warmup_tasks)
    is_join = body.member_epoch == 0
    wrong = (
        not body.member_id.strip()
        or body.member_epoch < -1
        or body.instance_id is not None
        or (body.rack_id is not None and not body.rack_id.strip())
        or len({one is None for one in lists}) > 1
        or (is_join and (body.topology is None or body.rebalance_timeout_ms == -1 or lists != ((), (), ())))
        or (body.member_epoch > 0 and body.topology is not None)
    )
    return 42 if wrong else 0


def tasks_of(entries: tuple[wire.StreamsGroupHeartbeatRequestTaskIds, ...]) -> frozenset[Partition]:
    return frozenset((one.subtopology_id, number) for one in entries for number in one.partitions)


def _shown(assigned: dict[Partition, int]) -> tuple[wire.StreamsGroupHeartbeatResponseTaskIds, ...]:
    return tuple(
        wire.StreamsGroupHeartbeatResponseTaskIds(subtopology_id=name, partitions=numbers) for name, numbers in by_topic(assigned)
    )
