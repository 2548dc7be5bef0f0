"""Lawful members of share groups (KIP-932) and Streams groups (KIP-1071): what the Java clients send."""

from __future__ import annotations

from typing import Any

from coordinator_model import wire
from tests.coordinator_model.reference.consumer_client import SUPERVISED_US, ConsumerClient, name_of
from tests.coordinator_model.reference.consumer_coordinator import by_topic
from tests.coordinator_model.reference.streams_coordinator import DELAYED, NO_SOURCE, SHUTDOWN
from tests.coordinator_model.reference.world import MS, SECOND, World


class ShareClient(ConsumerClient):
    """It takes what it is assigned at once, and acknowledges records, not partitions."""

    def _leave(self) -> Any:
        return wire.ShareGroupHeartbeatRequest(group_id=self.world.group, member_id=self.member_id, member_epoch=-1)

    def _request(self) -> Any:
        body = wire.ShareGroupHeartbeatRequest(group_id=self.world.group, member_id=self.member_id, member_epoch=self.epoch)
        if self._full or self._resubscribed:
            body.subscribed_topic_names = self.topics
        return body

    def _accepted(self, body: Any, reply: Any) -> None:
        if self.epoch < 0:
            return
        self.epoch, self._refusals, self._full = reply.member_epoch, 0, False
        self.interval_us = reply.heartbeat_interval_ms * MS
        if body.subscribed_topic_names is not None:
            self._resubscribed = self.topics != body.subscribed_topic_names
        if reply.assignment is not None:
            self.held = frozenset(
                (name_of(one.topic_id), index) for one in reply.assignment.topic_partitions for index in one.partitions
            )

    def _commit(self) -> None:
        """A share group has no offsets of its members."""


class StreamsClient(ConsumerClient):
    """One thread of an application.

    :param topology: the epoch of its version of the application.
    """

    def __init__(self, world: World, name: str, *, topology: int = 0, **options: Any) -> None:
        super().__init__(world, name, **options)
        self.topology = topology
        self.asks_for_shutdown = False

    def _leave(self) -> Any:
        return wire.StreamsGroupHeartbeatRequest(group_id=self.world.group, member_id=self.member_id, member_epoch=-1)

    def _request(self) -> Any:
        body = wire.StreamsGroupHeartbeatRequest(group_id=self.world.group, member_id=self.member_id, member_epoch=self.epoch)
        if self._full:
            body.rebalance_timeout_ms = self.rebalance_ms
            body.process_id = self.name
        if self.epoch == 0:
            parts = (
                wire.StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=("payments",)),
                wire.StreamsGroupHeartbeatRequestSubtopology(subtopology_id="1", repartition_sink_topics=("app-repartition",)),
            )
            body.topology = wire.StreamsGroupHeartbeatRequestTopology(epoch=self.topology, subtopologies=parts)
            body.active_tasks = body.standby_tasks = body.warmup_tasks = ()
        elif self._full or (self.held != self._told and not self._revoking):
            body.active_tasks = tuple(
                wire.StreamsGroupHeartbeatRequestTaskIds(subtopology_id=name, partitions=numbers)
                for name, numbers in by_topic(self.held)
            )
            body.standby_tasks = body.warmup_tasks = ()
        body.shutdown_application = self.asks_for_shutdown
        return body

    def _accepted(self, body: Any, reply: Any) -> None:
        if self.epoch < 0:
            return
        self.epoch, self._refusals, self._full = reply.member_epoch, 0, False
        self.interval_us = reply.heartbeat_interval_ms * MS
        if body.active_tasks is not None:
            self._told = frozenset((one.subtopology_id, number) for one in body.active_tasks for number in one.partitions)
        if reply.active_tasks is not None:
            self._target = frozenset((one.subtopology_id, number) for one in reply.active_tasks for number in one.partitions)
            self._reconcile()
        told = {one.status_code for one in reply.status or ()}
        if SHUTDOWN in told:
            self.asks_for_shutdown = False
            self.stop()
        elif NO_SOURCE in told and DELAYED not in told:  # it gives up, and its supervisor starts it anew
            self.stop()
            life = self._life
            self.world.at(SUPERVISED_US, lambda: self.start() if self._life == life else None)

    def _commit(self) -> None:
        numbers = sorted(number for name, number in self.held if name == "0")
        if self.epoch <= 0 or not numbers or self.stalled_until_us > self.world.now_us:
            return
        partition = wire.OffsetCommitRequestPartition(partition_index=numbers[0], committed_offset=self.world.now_us // SECOND)
        body = wire.OffsetCommitRequest(
            group_id=self.world.group,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=(wire.OffsetCommitRequestTopic(name="payments", partitions=(partition,)),),
        )
        self.main.ask(body, lambda _: None)
