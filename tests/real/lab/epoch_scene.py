"""Members of consumer, share and Streams groups for violations: they send what they are told to, and nothing by themselves.

The trap is that of ``scene.py``: whoever has no part to play is put into care, or its session ends.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any

from coordinator_model.wire import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTaskIds,
    StreamsGroupHeartbeatRequestTopology,
    StreamsGroupHeartbeatResponse,
)
from coordinator_model.wire.constants import NONE
from streaming.demo.raw_client import Connection, RawClientError
from tests.real.lab.scene import HEARTBEAT_S, REBALANCE_MS, TOPIC, Scene, ViolationError

COMMIT_VERSION = 9  #: of OffsetCommit, the first with an epoch
HEARTBEAT_VERSION = 1  #: of either heartbeat: the client makes its member id
JOIN, LEAVE, ASIDE = 0, -1, -2

Place = tuple[str, int]
"""Topic id and partition."""


@dataclass
class EpochMember:
    """A member of a consumer group (KIP-848)."""

    connection: Connection
    group: str
    topics: tuple[str, ...] = (TOPIC,)
    rebalance_ms: int = REBALANCE_MS
    instance_id: str | None = None
    member_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    epoch: int = JOIN
    interval_ms: int = 0
    assigned: frozenset[Place] = frozenset()

    def say(self, epoch: int | None = None, **fields: Any) -> Any:
        """Send one heartbeat, by default at the member's epoch and without news; its answer changes nothing here."""
        at = self.epoch if epoch is None else epoch
        values = {"group_id": self.group, "member_id": self.member_id, "member_epoch": at, "instance_id": self.instance_id}
        request = ConsumerGroupHeartbeatRequest(**{**values, **fields})
        return self.connection.ask(request, ConsumerGroupHeartbeatResponse, api_version=HEARTBEAT_VERSION)

    def join(self) -> int:
        """Send one join; return the error code."""
        self.assigned = frozenset()
        return self.take(self.say(JOIN, **self.everything()))

    def beat(self, **fields: Any) -> int:
        """Send one heartbeat that acknowledges what the member is assigned, and take in its answer; return the error code."""
        return self.take(self.say(**{"topic_partitions": listed(self.assigned), **fields}))

    def take(self, answer: Any) -> int:
        """Take in an answer; return the error code."""
        if answer.error_code == NONE:
            self.epoch, self.interval_ms = answer.member_epoch, answer.heartbeat_interval_ms
            if answer.assignment is not None:
                self.assigned = places(answer.assignment)
        return int(answer.error_code)

    def everything(self) -> dict[str, Any]:
        """What a join and a full request say."""
        return {
            "rebalance_timeout_ms": self.rebalance_ms,
            "subscribed_topic_names": self.topics,
            "topic_partitions": listed(self.assigned),
        }

    def commit(self, epoch: int | None = None, number: int = 0) -> int:
        """Send one OffsetCommit for one partition; return its error code."""
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.epoch if epoch is None else epoch,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=(
                OffsetCommitRequestTopic(
                    name=self.topics[0], partitions=(OffsetCommitRequestPartition(partition_index=number, committed_offset=1),)
                ),
            ),
        )
        answer = self.connection.ask(request, OffsetCommitResponse, api_version=COMMIT_VERSION)
        return answer.topics[0].partitions[0].error_code


class ShareMember(EpochMember):
    """A member of a share group (KIP-932), which owns nothing and says so little."""

    def say(self, epoch: int | None = None, **fields: Any) -> Any:
        at = self.epoch if epoch is None else epoch
        topics = fields.get("subscribed_topic_names")
        request = ShareGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=at, subscribed_topic_names=topics
        )
        return self.connection.ask(request, ShareGroupHeartbeatResponse, api_version=HEARTBEAT_VERSION)


class StreamsMember(EpochMember):
    """A member of a Streams group (KIP-1071) with one subtopology; what it is assigned are tasks."""

    def say(self, epoch: int | None = None, **fields: Any) -> Any:
        at = self.epoch if epoch is None else epoch
        request = StreamsGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=at, **fields)
        return self.connection.ask(request, StreamsGroupHeartbeatResponse, api_version=0)

    def join(self) -> int:
        self.assigned = frozenset()
        source = StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=self.topics)
        topology = StreamsGroupHeartbeatRequestTopology(subtopologies=(source,))
        return self.take(self.say(JOIN, topology=topology, process_id=self.member_id, **self.everything()))

    def beat(self, **fields: Any) -> int:
        return self.take(self.say(**{**self._tasks(), **fields}))

    def take(self, answer: Any) -> int:
        if answer.error_code == NONE:
            self.epoch, self.interval_ms = answer.member_epoch, answer.heartbeat_interval_ms
            if answer.active_tasks is not None:
                self.assigned = frozenset(
                    (task.subtopology_id, number) for task in answer.active_tasks for number in task.partitions
                )
        return int(answer.error_code)

    def everything(self) -> dict[str, Any]:
        return {"rebalance_timeout_ms": self.rebalance_ms, **self._tasks()}

    def _tasks(self) -> dict[str, Any]:
        numbers = tuple(sorted(number for _, number in self.assigned))
        owned = (StreamsGroupHeartbeatRequestTaskIds(subtopology_id="0", partitions=numbers),) if numbers else ()
        return {"active_tasks": owned, "standby_tasks": (), "warmup_tasks": ()}


def listed(assigned: frozenset[Place]) -> tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...]:
    """Partitions as a request has them."""
    topics = sorted({topic for topic, _ in assigned})
    return tuple(
        ConsumerGroupHeartbeatRequestTopicPartitions(
            topic_id=topic, partitions=tuple(sorted(number for known, number in assigned if known == topic))
        )
        for topic in topics
    )


def places(assignment: Any) -> frozenset[Place]:
    return frozenset((topic.topic_id, number) for topic in assignment.topic_partitions for number in topic.partitions)


def member(scene: Scene, name: str, kind: type[EpochMember] = EpochMember, **options: Any) -> EpochMember:
    """Somebody who has not joined yet; the client id is the group's name and this one."""
    return kind(scene.connect(f"{scene.group}-{name}"), scene.group, **options)


def enter(scene: Scene, newcomer: EpochMember) -> None:
    """Join; a broker may still be loading."""
    scene.until(lambda: newcomer.join() == NONE, f"{newcomer.connection.client_id} joins")


def settle(scene: Scene, *members: EpochMember) -> None:
    """Heartbeat until all are at one epoch and have something."""

    def settled() -> bool:
        for one in members:
            if error := one.beat():
                raise ViolationError(f"{one.connection.client_id} was refused with error {error}")
        return len({one.epoch for one in members}) == 1 and all(one.assigned for one in members)

    scene.until(settled, "all are at one epoch and have partitions")


def enter_all(scene: Scene, *members: EpochMember) -> None:
    """Join one after the other; the first one is assigned everything until the next comes."""
    for number, newcomer in enumerate(members, start=1):
        enter(scene, newcomer)
        settle(scene, *members[:number])


def pair(scene: Scene, kind: type[EpochMember] = EpochMember, **options: Any) -> tuple[EpochMember, EpochMember]:
    """A culprit and its company, settled, nobody in care."""
    culprit, company = member(scene, "culprit", kind, **options), member(scene, "company", kind)
    enter_all(scene, culprit, company)
    scene.truth.member_ids.add(culprit.member_id)
    return culprit, company


def care_for(scene: Scene, one: EpochMember) -> None:
    """Let a member follow the protocol by itself from now on."""
    threading.Thread(target=_follow, args=(scene, one), name=one.connection.client_id, daemon=True).start()


def _follow(scene: Scene, one: EpochMember) -> None:
    with contextlib.suppress(RawClientError, OSError):
        while not scene.ends.wait(HEARTBEAT_S):
            if one.beat() != NONE:
                one.join()
        one.say(LEAVE)
