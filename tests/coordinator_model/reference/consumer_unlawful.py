"""One unlawful act in an otherwise lawful life of a group whose members have epochs: see ``unlawful.py``, which this is like.

Whether an observer can know of an act is worked out from the captured exchanges alone, by other means than the model's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from coordinator_model import wire
from coordinator_model.wire.constants import (
    CONSUMER_GROUP_HEARTBEAT,
    JOIN_GROUP,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
)
from coordinator_model.wire.record import Kind
from tests.coordinator_model.reference.consumer_coordinator import by_topic
from tests.coordinator_model.reference.consumer_group import UNREVOKED, ConsumerGroup, ConsumerMember, topic_id
from tests.coordinator_model.reference.unlawful import Seen, Unlawful, decoded, exchanges
from tests.coordinator_model.reference.world import MS, SECOND, START_US, VERSIONS, Asked, Connection

REQUESTS = (wire.ConsumerGroupHeartbeatRequest, wire.ShareGroupHeartbeatRequest, wire.StreamsGroupHeartbeatRequest)
ANSWERS = (wire.ConsumerGroupHeartbeatResponse, wire.ShareGroupHeartbeatResponse, wire.StreamsGroupHeartbeatResponse)
_OF_MEMBERS = (JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT)
SPOKEN_US = 10 * SECOND  #: findings may take so long
Granted = frozenset[tuple[str, int]]


def heartbeats(seen: list[Seen], member_id: str | None = None) -> Iterator[Seen]:
    """All answered heartbeats, or those of one member, by time of answer."""
    for one in seen:
        if isinstance(one.request, REQUESTS) and member_id in {None, one.request.member_id}:
            yield one


def _names_instance(request: Any) -> bool:
    """Whether the request is a join with an instance id."""
    if isinstance(request, wire.JoinGroupRequest):
        return request.group_instance_id is not None
    return request.member_epoch == 0 and request.instance_id is not None


def _surely_us(timeout_ms: int) -> int:
    """How long a timer certainly runs: a tenth and two seconds are left to the coordinator."""
    return timeout_ms * 900 - 2 * SECOND


def granted(answer: wire.ConsumerGroupHeartbeatResponse) -> Granted:
    assert answer.assignment is not None
    return frozenset((topic.topic_id, index) for topic in answer.assignment.topic_partitions for index in topic.partitions)


class UnlawfulHeartbeat(Unlawful):
    """The coordinator answers a heartbeat as it must not."""

    least_acts = 0
    kind: type[Any] = wire.ConsumerGroupHeartbeatRequest

    @property
    def group(self) -> ConsumerGroup:
        group = self.history.coordinator.consumer
        return group if group is not None else ConsumerGroup((4, 3))

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        return isinstance(body, ANSWERS) and not self._is_late() and self.tempts(connection, asked.body, body)

    def tempts(
        self, connection: Connection, request: wire.ConsumerGroupHeartbeatRequest, answer: wire.ConsumerGroupHeartbeatResponse
    ) -> bool:
        """Whether this is an answer to lie in."""
        raise NotImplementedError

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        return True

    def _is_late(self) -> bool:
        end_us = self.history.world.records[0].at_us + self.history.plan.lasts_ms * MS
        return self.history.world.now_us > end_us - SPOKEN_US

    def delivered(self, seen: list[Seen], act: Seen) -> Seen | None:
        """The last success that the member had before it asked.

        None if another request of its was under way, its place is over, or an answer to it was not captured.
        """
        last = None
        lost = (body for _, body in self._unanswered(seen, act.answered_us) if isinstance(body, REQUESTS))
        if any(body.member_id == act.request.member_id for body in lost):
            return None
        for one in heartbeats(seen, act.request.member_id):
            if one is act:
                continue
            if one.asked_us < act.answered_us and one.answered_us > act.asked_us:
                return None
            if one.answered_us < act.asked_us:
                last = one if one.error == 0 and one.answer.member_epoch > 0 else None
        return last

    def _unanswered(self, seen: list[Seen], until_us: int) -> Iterator[tuple[int, Any]]:
        """Yield the JoinGroups and heartbeats without an answer, with their times: nobody can tell what became of them."""
        answered = {(one.connection, one.exchange) for one in seen}
        for record in self.history.records:
            if record.kind is not Kind.REQUEST or record.at_us >= until_us or record.api_key not in _OF_MEMBERS:
                continue
            if (record.connection, record.exchange) not in answered:
                yield record.at_us, decoded(record)


class EpochLowered(UnlawfulHeartbeat):
    """A member is answered an epoch below its own."""

    rules = frozenset({"E-01"})

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        return not answer.error_code and request.member_epoch >= 2

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, member_epoch=asked.body.member_epoch - 1)


class JoinWithoutEpoch(UnlawfulHeartbeat):
    """A join is answered with epoch 0."""

    rules = frozenset({"E-25"})

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        return not answer.error_code and request.member_epoch == 0

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, member_epoch=0)


class LeaveWithAnEpoch(UnlawfulHeartbeat):
    """A leave is answered with the epoch of a member."""

    least_acts = 8
    rules = frozenset({"E-25"})

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        return not answer.error_code and request.member_epoch < 0

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, member_epoch=self.group.epoch)


class WrongFence(UnlawfulHeartbeat):
    """A member that names the epoch it was answered last is fenced."""

    rules = frozenset({"E-03"})

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        return not answer.error_code and request.member_epoch > 0

    def lie(self, asked: Asked, body: Any) -> Any:
        return type(body)(error_code=110)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        last = self.delivered(seen, act)
        return last is not None and last.answer.member_epoch == act.request.member_epoch


class ForeignMember(UnlawfulHeartbeat):
    """The answer names another member."""

    rules = frozenset({"M-08"})

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        return not answer.error_code and request.member_epoch > 0

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, member_id=topic_id("somebody else"))


class AssignmentWithheld(UnlawfulHeartbeat):
    """A join, or a request that says everything, is answered without an assignment."""

    rules = frozenset({"E-12"})

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        full = request.rebalance_timeout_ms != -1 and request.topic_partitions is not None
        subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        return not answer.error_code and request.member_epoch >= 0 and full and subscribes

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, assignment=None)


class ImpossibleError(UnlawfulHeartbeat):
    """A heartbeat is answered with an error of the classic protocol."""

    rules = frozenset({"P-07"})

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        return not answer.error_code and request.member_epoch > 0

    def lie(self, asked: Asked, body: Any) -> Any:
        return type(body)(error_code=27)


class OwnerFenced(UnlawfulHeartbeat):
    """The member that holds an instance id is told that another does."""

    rules = frozenset({"E-18", "S-09"})

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        return not answer.error_code and request.member_epoch > 0 and request.instance_id is not None

    def lie(self, asked: Asked, body: Any) -> Any:
        return type(body)(error_code=82)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """It was the last to be let in under this id, nobody else was on the way, its session and its time to give up are not over.

        Not counted as known is one since whose last success a client with any instance id hung up before its join was answered: until
        the next success the model does not tell which ids were taken unseen.
        """
        before = self.delivered(seen, act)
        if before is None or act.answered_us > min(self._removed_us(seen, act), before.asked_us + _surely_us(45_000)):
            return False
        lost = self._unanswered(exchanges(self.history.records), act.answered_us)
        if any(at_us > before.asked_us and _names_instance(body) for at_us, body in lost):
            return False
        last = None
        for one in heartbeats(seen):
            if one.request.instance_id != act.request.instance_id or one is act or one.request.member_epoch:
                continue
            if one.asked_us < act.answered_us and one.answered_us > act.asked_us:
                return False
            if one.answered_us < act.asked_us and one.error == 0:
                last = one.request.member_id
        return last == act.request.member_id

    @staticmethod
    def _removed_us(seen: list[Seen], act: Seen) -> float:
        """When the member may have been removed at the earliest, because it does not give up what it was told to."""
        holds, told_us, timeout_ms = frozenset[tuple[str, int]](), 0, 0
        for one in heartbeats(seen, act.request.member_id):
            if one.error or one.answered_us > act.asked_us or one.request.member_epoch < 0:
                continue
            if one.request.rebalance_timeout_ms != -1:
                timeout_ms = one.request.rebalance_timeout_ms
            if one.answer.member_epoch != one.request.member_epoch:
                told_us = 0
            if one.answer.assignment is not None:
                told_us = one.answered_us if holds - granted(one.answer) else told_us
                holds = granted(one.answer)
        return told_us + _surely_us(timeout_ms) if told_us else float("inf")


class TooManyTopics(UnlawfulHeartbeat):
    """A member is assigned partitions of more topics than it subscribes to."""

    rules = frozenset({"E-16"})

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        member = self.group.members.get(request.member_id)
        if answer.error_code or answer.assignment is None or member is None or member.pattern or self.group.release < (4, 2):
            return False
        return {topic for topic, _ in member.assigned} == set(member.names)

    def lie(self, asked: Asked, body: Any) -> Any:
        more = wire.ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id("t"), partitions=(99,))
        if more.topic_id in {topic.topic_id for topic in body.assignment.topic_partitions}:
            more.topic_id = topic_id(
                "u" if topic_id("u") not in {one.topic_id for one in body.assignment.topic_partitions} else "v"
            )
        topics = (*body.assignment.topic_partitions, more)
        return replace(body, assignment=replace(body.assignment, topic_partitions=topics))

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """The last subscription that was taken in, this request's included, has fewer names."""
        names: tuple[str, ...] | None = None
        for one in heartbeats(seen, act.request.member_id):
            if one.answered_us <= act.answered_us and one.error == 0 and one.request.subscribed_topic_names is not None:
                names = one.request.subscribed_topic_names
                if one.request.subscribed_topic_regex:
                    names = None
        return names is not None and len(act.answer.assignment.topic_partitions) > len(set(names))


class DoubleGrant(UnlawfulHeartbeat):
    """A partition that one member keeps is granted to another."""

    rules = frozenset({"A-12"})

    def given(self, answer: Any) -> Granted | None:
        """All that the member is to have, if the answer says so."""
        return None if answer.assignment is None else granted(answer)

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        if answer.error_code or self.given(answer) is None or request.member_epoch < 0:
            return False
        return self.keeper(request.member_id) is not None

    def keeper(self, member_id: str) -> ConsumerMember | None:
        """Somebody else, who holds something and is to keep it."""
        for one in self.group.members.values():
            keeps = one.classic is None and one.epoch > 0 and one.state != UNREVOKED
            if one.id != member_id and keeps and set(one.assigned) & self.group.targets.get(one.id, frozenset()):
                return one
        return None

    def lie(self, asked: Asked, body: Any) -> Any:
        keeper = self.keeper(asked.body.member_id)
        assert keeper is not None
        name, index = min(set(keeper.assigned) & self.group.targets[keeper.id])
        self.keeper_id, self.partition = keeper.id, (topic_id(name), index)
        own = {(topic.topic_id, number) for topic in body.assignment.topic_partitions for number in topic.partitions}
        topics = tuple(
            wire.ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic, partitions=indexes)
            for topic, indexes in by_topic({*own, self.partition})
        )
        return replace(body, assignment=replace(body.assignment, topic_partitions=topics))

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """The keeper was given it before, did not lose it, and is accepted afterwards without having joined again."""
        has = False
        for one in heartbeats(seen, self.keeper_id):
            joins_or_leaves = one.request.member_epoch <= 0
            if one.error or (joins_or_leaves and one.answered_us > act.asked_us):
                if one.answered_us > act.asked_us:
                    return False
                has = False
                continue
            shown = self.given(one.answer)
            if one.asked_us > act.answered_us:
                return has and (shown is None or self.partition in shown)
            if shown is not None:
                has = self.partition in shown and one.answered_us < act.asked_us
        return False


# ---------------------------------------------------------------------------------------------------- somebody at the door


class Shadow(UnlawfulHeartbeat):
    """Somebody without the right sends a request now and then, which is to be refused, and once is not."""

    least_acts = 2
    commit_version = 9

    def commit_to(self, history: Any) -> None:
        super().commit_to(history)
        history.world.at(15 * SECOND, self._call)

    def _call(self) -> None:
        if self.done is not None:
            return
        request = None if self.history.coordinator.consumer is None or self._is_late() else self.request()
        if request is not None:
            world = self.history.world
            versions = {**VERSIONS["newest"], 8: self.commit_version, 68: 1, 76: 1, 88: 0}
            connection = Connection(world, "shadow", self.history.coordinator.name, versions)
            connection.ask(request, lambda _: None)
            world.at(2 * SECOND, connection.close)
        self.history.world.at(3 * SECOND, self._call)

    def request(self) -> Any:
        raise NotImplementedError

    def beat(self, member_id: str, epoch: int, instance_id: str | None = None) -> Any:
        """A heartbeat of the group's kind that says nothing else."""
        body = self.kind(group_id=self.history.world.group, member_id=member_id, member_epoch=epoch)
        if instance_id is not None:
            body.instance_id = instance_id
        return body

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        return connection.client_id == "shadow" and answer.error_code in self.refusals

    refusals = frozenset[int]()

    def lie(self, asked: Asked, body: Any) -> Any:
        request = asked.body
        return type(body)(member_id=request.member_id, member_epoch=max(request.member_epoch, 1), heartbeat_interval_ms=5_000)


class StaleEpochAccepted(Shadow):
    """A heartbeat with an epoch that the member left behind, and without partitions, is accepted."""

    rules = frozenset({"E-04"})
    refusals = frozenset({110})

    def request(self) -> Any:
        old = [one for one in self.group.members.values() if one.classic is None and one.epoch >= 3]
        if not old:
            return None
        return self.beat(old[0].id, old[0].epoch - 1, old[0].instance_id)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        last = self.delivered(seen, act)
        return last is not None and last.answer.member_epoch > act.request.member_epoch


class GoneAccepted(Shadow):
    """An id that left is accepted without a join."""

    rules = frozenset({"E-14"})
    refusals = frozenset({25})
    end = frozenset({0})

    def request(self) -> Any:
        for one in self._ended():
            if one not in self.group.members:
                return self.beat(one, 2)
        return None

    def _ended(self) -> list[str]:
        return [id_ for id_ in self.left if id_ not in self.group.members]

    def commit_to(self, history: Any) -> None:
        self.left: list[str] = []
        super().commit_to(history)

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        if isinstance(body, ANSWERS) and connection.client_id != "shadow" and self._ends(asked, body):
            self.left.append(asked.body.member_id)
        return super().occasion(connection, asked, body)

    @staticmethod
    def _ends(asked: Asked, body: Any) -> bool:
        return asked.body.member_epoch == -1 and not body.error_code

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """It has not asked to join since, not even in vain: E-14 says so."""
        over = False
        for one in heartbeats(seen, act.request.member_id):
            if one is act:
                continue
            if one.asked_us < act.answered_us and one.answered_us > act.asked_us:
                return False
            if one.answered_us < act.asked_us:
                stays_out = one.error != 0 and one.request.member_epoch != 0
                over = self._was_the_end(one) or (over and stays_out)
        return over

    @staticmethod
    def _was_the_end(one: Seen) -> bool:
        return one.error == 0 and one.request.member_epoch == -1


class FencedAccepted(GoneAccepted):
    """An id that was told that it is unknown is accepted without a join."""

    least_acts = 10

    @staticmethod
    def _ends(asked: Asked, body: Any) -> bool:
        return asked.body.member_epoch > 0 and body.error_code == 25

    @staticmethod
    def _was_the_end(one: Seen) -> bool:
        return one.error == 25


class StrangerAccepted(Shadow):
    """An id that never joined is accepted at a positive epoch, in a group that was seen from its beginning and for longer than a session."""

    rules = frozenset({"E-15"})
    refusals = frozenset({25})

    def request(self) -> Any:
        if self.history.world.now_us < START_US + 75 * SECOND:
            return None
        return self.beat(topic_id("nobody"), max(1, self.group.epoch))

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """Nobody joined unseen: every request was answered, and what was asked explains each rise of the group's epoch."""
        asked = {
            (one.connection, one.exchange) for one in self.history.records if one.kind is Kind.REQUEST and one.at_us < act.asked_us
        }
        if asked - {(one.connection, one.exchange) for one in seen if one.answered_us < act.asked_us}:
            return False
        begun_us = min((one.answered_us for one in heartbeats(seen)), default=act.asked_us)
        if act.asked_us <= begun_us + 60 * SECOND:
            return False  # less than the longest session after the group was seen first
        newest, causes = 0, 0
        members: dict[str, tuple[str, ...] | None] = {}
        instances: set[str] = set()
        for one in heartbeats(seen):
            if one is act:
                return True
            request, id_ = one.request, one.request.member_id
            names = request.subscribed_topic_names
            if one.error == 25 or (not one.error and request.member_epoch == -1):
                causes += id_ in members
                members.pop(id_, None)
            elif not one.error and request.member_epoch >= 0:
                is_new = id_ not in members and request.instance_id not in instances  # a successor raises nothing
                causes += is_new or (names is not None and names != members.get(id_, names))
                members[id_] = names if names is not None else members.get(id_)
                instances.add(request.instance_id or id_)
                if newest and one.answer.member_epoch - newest > causes:
                    return False
                if one.answer.member_epoch > newest:
                    newest, causes = one.answer.member_epoch, 0
        return False


class MalformedAccepted(Shadow):
    """A join that claims partitions is accepted."""

    rules = frozenset({"E-17"})
    refusals = frozenset({42})

    def request(self) -> Any:
        owned = wire.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id("t"), partitions=(0,))
        return wire.ConsumerGroupHeartbeatRequest(
            group_id=self.history.world.group,
            member_id=topic_id("greedy"),
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=("t",),
            topic_partitions=(owned,),
        )


class CommitOfTheFutureAccepted(Shadow):
    """A commit with an epoch that nobody has is accepted."""

    rules = frozenset({"E-20"})

    def request(self) -> Any:
        members = [one for one in self.group.members.values() if one.classic is None and one.epoch > 0]
        if not members:
            return None
        partition = wire.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        return wire.OffsetCommitRequest(
            group_id=self.history.world.group,
            generation_id_or_member_epoch=self.group.epoch + 50,
            member_id=members[0].id,
            group_instance_id=members[0].instance_id,
            topics=(wire.OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
        )

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        if connection.client_id != "shadow" or not isinstance(body, wire.OffsetCommitResponse):
            return False
        return body.topics[0].partitions[0].error_code == 113

    def lie(self, asked: Asked, body: Any) -> Any:
        return with_error(body, 0)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        last = self.delivered(seen, act)
        return last is not None and last.answer.member_epoch < act.generation


class CommitTooEarlyAccepted(CommitOfTheFutureAccepted):
    """A commit with an epoch of the member that is older than its right to the partition is accepted."""

    least_acts = 4
    commit_version = 10  # which names topics by their ids

    def request(self) -> Any:
        for one in self.group.members.values():
            newest = max(one.assigned.items(), key=lambda given: given[1], default=None)
            if self.group.release < (4, 2) or one.classic is not None or one.epoch <= 0 or newest is None or newest[1] < 2:
                continue
            (name, number), since = newest
            self.partition = (topic_id(name), number)
            partition = wire.OffsetCommitRequestPartition(partition_index=number, committed_offset=1)
            return wire.OffsetCommitRequest(
                group_id=self.history.world.group,
                generation_id_or_member_epoch=since - 1,
                member_id=one.id,
                group_instance_id=one.instance_id,
                topics=(wire.OffsetCommitRequestTopic(topic_id=self.partition[0], partitions=(partition,)),),
            )
        return None

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """Since its join, which was seen, the partition was first given with a newer epoch; or the commit is older than the join."""
        last = self.delivered(seen, act)
        if last is None or last.answer.member_epoch <= act.generation:
            return False
        first: int | None = None
        has_joined = False
        for one in heartbeats(seen, act.request.member_id):
            if one.answered_us > act.asked_us or one.error:
                continue
            if one.request.member_epoch == 0:
                has_joined, first = True, None
            if one.answer.assignment is not None and self.partition in granted(one.answer) and first is None:
                first = None if one.request.member_epoch == 0 else one.answer.member_epoch
                if first is None:
                    return False  # it may have had it before
        return has_joined and first is not None and first > act.generation


class CommitRefused(UnlawfulHeartbeat):
    """A commit with the member's epoch is refused as stale."""

    rules = frozenset({"E-20"})

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        if not isinstance(body, wire.OffsetCommitResponse) or self._is_late():
            return False
        return asked.body.generation_id_or_member_epoch > 0 and body.topics[0].partitions[0].error_code == 0

    def lie(self, asked: Asked, body: Any) -> Any:
        return with_error(body, 113)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        last = self.delivered(seen, act)
        return last is not None and last.answer.member_epoch == act.generation


def with_error(body: wire.OffsetCommitResponse, error: int) -> wire.OffsetCommitResponse:
    return replace(
        body,
        topics=tuple(
            replace(topic, partitions=tuple(replace(partition, error_code=error) for partition in topic.partitions))
            for topic in body.topics
        ),
    )


ACTS: tuple[type[Unlawful], ...] = (
    EpochLowered,
    JoinWithoutEpoch,
    LeaveWithAnEpoch,
    WrongFence,
    ForeignMember,
    AssignmentWithheld,
    ImpossibleError,
    OwnerFenced,
    TooManyTopics,
    DoubleGrant,
    StaleEpochAccepted,
    GoneAccepted,
    FencedAccepted,
    StrangerAccepted,
    MalformedAccepted,
    CommitOfTheFutureAccepted,
    CommitTooEarlyAccepted,
    CommitRefused,
)
