"""Lawful members of the consumer protocol (KIP-848): what the Java client, librdkafka and franz-go send, as seen on the wire.

They differ in what a heartbeat repeats: Java says what changed since the last answered request, librdkafka and franz-go say everything
while they hold nothing (librdkafka every second), and only Java repeats its instance id.
"""

from __future__ import annotations

import base64
from typing import Any, Literal

from coordinator_model import wire
from tests.coordinator_model.reference.client import RETRY_US, Client
from tests.coordinator_model.reference.consumer_coordinator import by_topic
from tests.coordinator_model.reference.consumer_group import Partition, topic_id
from tests.coordinator_model.reference.world import MS, SECOND, VERSIONS, World

Library = Literal["java", "librdkafka", "franz-go"]
SUPERVISED_US = 8 * SECOND

TOPIC_NAMES: dict[str, str] = {}


def name_of(id_: str) -> str:
    return TOPIC_NAMES[id_]


def know(topic: str) -> str:
    """Clients learn the names of topic ids from Metadata."""
    TOPIC_NAMES[topic_id(topic)] = topic
    return topic


class ConsumerClient(Client):
    """One process, started again some time after it gave up.

    :param pattern: subscribes by it instead of by names.
    :param revoke_ms: how long its callback takes when partitions are taken from it.
    :param throws: its callback always fails, so it never gives anything up.
    """

    def __init__(
        self,
        world: World,
        name: str,
        *,
        library: Library = "java",
        pattern: str = "",
        revoke_ms: int = 0,
        throws: bool = False,
        commit_version: int = 9,
        **options: Any,
    ) -> None:
        super().__init__(world, name, versions={**VERSIONS["newest"], 8: commit_version, 18: 3, 68: 1, 76: 1, 88: 0}, **options)
        self.library = library
        self.pattern = pattern
        self.revoke_ms = revoke_ms
        self.throws = throws
        self.epoch = -1
        self.held: frozenset[Partition] = frozenset()
        self.frozen_until_us = 0
        self._refusals = 0  #: in a row
        for topic in self.topics:
            know(topic)

    # -------------------------------------------------------------------------------------------- what happens to it

    def start(self) -> None:
        self._disconnect()
        self._life += 1
        self.running, self.fatal = True, False
        self.member_id = self._new_id()
        self._connect()
        self._join()
        self._beat_later(5 * SECOND)
        self._every(5 * SECOND, self._commit)

    def stop(self) -> None:
        """A clean end: it leaves, a static member only for a while."""
        if not self.running:
            return
        if self.epoch <= 0:
            self.crash()
            return
        self._life += 1
        self.running = False
        self.main.ask(self._leave(), lambda _: self._disconnect())
        self.world.at(2 * SECOND, self._disconnect)

    def _leave(self) -> wire.ConsumerGroupHeartbeatRequest:
        static = self.instance_id is not None
        body = wire.ConsumerGroupHeartbeatRequest(
            group_id=self.world.group, member_id=self.member_id, member_epoch=-2 if static else -1
        )
        if self.library != "franz-go":  # which forgets it and is told so
            body.instance_id = self.instance_id
        if self.library == "java":
            body.subscribed_topic_names, body.topic_partitions = (), ()
        return body

    def stall(self, for_us: int) -> None:
        """Its poll loop is busy: no callback runs; beyond its rebalance timeout it leaves until it is done."""
        super().stall(for_us)
        if not self.running or for_us <= self.rebalance_ms * MS:
            return

        def leave() -> None:
            if self.epoch > 0 and self.frozen_until_us <= self.world.now_us:
                self.epoch = -1
                self.main.ask(self._leave(), lambda _: None)

        self._later(self.rebalance_ms * MS, leave)
        self._later(for_us, lambda: self._join() if self.epoch < 0 else None)

    def freeze(self, for_us: int) -> None:
        """It is suspended: nothing leaves it."""
        self.frozen_until_us = self.world.now_us + for_us
        self.stalled_until_us = max(self.stalled_until_us, self.frozen_until_us)

    def cut(self) -> None:
        if not self.running:
            return
        self._disconnect()
        self._connect()
        self._asked, self._full = False, True
        self._later(RETRY_US, self._beat)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        for topic in topics:
            know(topic)
        self.topics, self.pattern = topics, ""
        self._resubscribed = True

    def metadata_changed(self) -> None:
        pass

    def _connect(self) -> None:
        super()._connect()
        self.main.ask(wire.ApiVersionsRequest(client_software_name="reference", client_software_version="1.0"), lambda _: None)

    # -------------------------------------------------------------------------------------------- heartbeats

    def _join(self) -> None:
        if not self.running:
            return
        self.epoch, self.held = 0, frozenset()
        self._target: frozenset[Partition] | None = None
        self._revoking = self._resubscribed = self._asked = False
        self._full, self._told = True, frozenset[Partition]()
        self._attempt += 1
        self._beat()

    def _beat_later(self, after_us: int) -> None:
        def again() -> None:
            self._beat()
            self._beat_later(self.interval_us)

        self.interval_us = after_us
        self._later(after_us, again)

    def _beat(self) -> None:
        if not self.running or self._asked or self.epoch < 0:
            return
        if self.frozen_until_us > self.world.now_us:
            self._later(self.frozen_until_us - self.world.now_us, self._beat)
            return
        body = self._request()
        self._asked = True
        attempt, life = self._attempt, self._life

        def answered(reply: Any) -> None:
            if (attempt, life) == (self._attempt, self._life):
                self._asked = False
                self._answered(body, reply)

        self.main.ask(body, answered)

    def _request(self) -> wire.ConsumerGroupHeartbeatRequest:
        full = self._full or (self.library != "java" and not self.held)
        body = wire.ConsumerGroupHeartbeatRequest(group_id=self.world.group, member_id=self.member_id, member_epoch=self.epoch)
        if full or self.library == "java":
            body.instance_id = self.instance_id
        if full:
            body.rebalance_timeout_ms = self.rebalance_ms
        if full or self._resubscribed:
            if self.library == "librdkafka" or not self.pattern:
                body.subscribed_topic_names = () if self.pattern else self.topics
            if self.library == "librdkafka" or self.pattern or self._resubscribed:
                body.subscribed_topic_regex = self.pattern
        if self.epoch == 0:
            body.topic_partitions = ()
        elif full or (self.held != self._told and not self._revoking):
            body.topic_partitions = tuple(
                wire.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id(know(name)), partitions=indexes)
                for name, indexes in by_topic(self.held)
            )
        return body

    def _answered(self, body: wire.ConsumerGroupHeartbeatRequest, reply: wire.ConsumerGroupHeartbeatResponse) -> None:
        match reply.error_code:
            case 0:
                self._accepted(body, reply)
            case 25 | 110:
                if self.library == "franz-go" and reply.error_code == 25:
                    self.member_id = self._new_id()
                self._refusals += 1
                if self._refusals == 1:
                    self._join()
                else:  # 4.1 and older fence the join of a member that they still know, until its session is over
                    self.epoch = -1
                    self._later(min(RETRY_US << self._refusals, SECOND), self._join)
            case 14:
                self._full = True
                self._later(RETRY_US, self._beat)
            case 15 | 16:
                self._full = True
                self._find_coordinator()
                self._later(RETRY_US, self._beat)
            case _:
                self._die()
                life = self._life
                self.world.at(SUPERVISED_US, lambda: self.start() if self._life == life else None)  # unless another took its place

    def _accepted(self, body: wire.ConsumerGroupHeartbeatRequest, reply: wire.ConsumerGroupHeartbeatResponse) -> None:
        if self.epoch < 0:
            return
        self.epoch = reply.member_epoch
        self._refusals = 0
        self.interval_us = reply.heartbeat_interval_ms * MS
        if self.library == "librdkafka" and not self.held:
            self.interval_us = SECOND
        self._full = False
        if body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None:
            self._resubscribed = False
        if body.topic_partitions is not None:
            self._told = frozenset((name_of(one.topic_id), index) for one in body.topic_partitions for index in one.partitions)
        if reply.assignment is not None:
            self._target = frozenset(
                (name_of(one.topic_id), index) for one in reply.assignment.topic_partitions for index in one.partitions
            )
            self._reconcile()

    def _reconcile(self) -> None:
        if self._revoking or self._target is None or self._target == self.held:
            return
        if self.held <= self._target:
            self._adopt()
            return
        self._revoking = True
        attempt = self._attempt

        def done() -> None:
            if attempt != self._attempt or self.throws:
                return
            if self.stalled_until_us > self.world.now_us:
                self._later(self.stalled_until_us - self.world.now_us, done)
                return
            self._revoking = False
            self._adopt()

        self._later(self.revoke_ms * MS + 1, done)

    def _adopt(self) -> None:
        assert self._target is not None
        self.held = self._target
        self._beat()  # the acknowledgement comes at once

    def _commit(self) -> None:
        if self.epoch <= 0 or not self.held or self.stalled_until_us > self.world.now_us:
            return
        topic, index = min(self.held)
        partition = wire.OffsetCommitRequestPartition(partition_index=index, committed_offset=self.world.now_us // SECOND)
        by_id = self.versions[8] >= 10
        body = wire.OffsetCommitRequest(
            group_id=self.world.group,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=(
                wire.OffsetCommitRequestTopic(topic_id=topic_id(topic), partitions=(partition,))
                if by_id
                else wire.OffsetCommitRequestTopic(name=topic, partitions=(partition,)),
            ),
        )
        self.main.ask(body, lambda _: None)

    def _new_id(self) -> str:
        return base64.urlsafe_b64encode(self.world.random.randbytes(16)).decode().rstrip("=")
