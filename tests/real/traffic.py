"""Group traffic for the mirror topic, made with the encoder: many groups that heartbeat, and breaches planted among them.

A planted breach is a JoinGroup that names one member id and succeeds under another (rule M-08): certain from the two frames alone, so
a model says it at once. Its client id is the mark that the empty model goes by.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any

from coordinator_model import wire
from coordinator_model.wire import record as wire_record
from coordinator_model.wire.record import HEADER_NAME, Kind, MirrorRecord, pack_envelope
from tests.bench.empty_model import MARK

SUBSCRIPTION = wire.encode_subscription(wire.ConsumerProtocolSubscription(topics=("orders",)), 0)
ASSIGNMENT = wire.encode_assignment(wire.ConsumerProtocolAssignment(), 0)
TOPIC_ID = "ordersAAAAAAAAAAAAAAAA"
ROSTER = (wire.JoinGroupResponseMember(member_id="m-1", metadata=SUBSCRIPTION),)


def partition_of(group: str, partitions: int) -> int:
    return zlib.crc32(group.encode()) % partitions


class Group:
    """A group of one member on one connection."""

    def __init__(self, name: str, *, client_id: str = "client", cluster: str = "c1") -> None:
        self.name = name
        self.client_id = client_id
        self.cluster = cluster
        self.exchange = 0

    def join(self, at_us: int, *, member_id: str = "m-1", granted: str = "m-1") -> list[MirrorRecord]:
        ask = wire.JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
        )
        answer = wire.JoinGroupResponse(
            generation_id=1, protocol_type="consumer", protocol_name="range", leader=granted, member_id=granted, members=ROSTER
        )
        return self._exchange(at_us, ask, answer, 9)

    def sync(self, at_us: int) -> list[MirrorRecord]:
        assignments = (wire.SyncGroupRequestAssignment(member_id="m-1", assignment=ASSIGNMENT),)
        ask = wire.SyncGroupRequest(
            group_id=self.name,
            generation_id=1,
            member_id="m-1",
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        answer = wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=ASSIGNMENT)
        return self._exchange(at_us, ask, answer, 5)

    def heartbeat(self, at_us: int) -> list[MirrorRecord]:
        ask = wire.HeartbeatRequest(group_id=self.name, generation_id=1, member_id="m-1")
        return self._exchange(at_us, ask, wire.HeartbeatResponse(), 4)

    def _exchange(self, at_us: int, ask: Any, answer: Any, version: int) -> list[MirrorRecord]:
        number = self.exchange
        self.exchange += 1
        request = wire.encode_request(ask, api_version=version, correlation_id=number, client_id=self.client_id)
        response = wire.encode_response(answer, api_version=version, correlation_id=number)
        return [
            self._record(Kind.REQUEST, at_us, (ask.API_KEY, version, number), request),
            self._record(Kind.RESPONSE, at_us + 1000, (ask.API_KEY, version, number), response),
        ]

    def _record(self, kind: Kind, at_us: int, label: tuple[int, int, int], frame: bytes) -> MirrorRecord:
        api_key, version, number = label
        return MirrorRecord(
            partition=-1,
            offset=-1,
            group=self.name,
            kind=kind,
            at_us=at_us,
            cluster=self.cluster,
            broker="1",
            connection=f"{self.name}#1",
            exchange=number,
            api_key=api_key,
            api_version=version,
            correlation_id=number,
            client_id=self.client_id,
            client_address="10.0.0.1:40000",
            client_software="test 1.0",
            cut_bytes=0,
            queued_behind=0,
            frame=frame,
        )


class Handover(Group):
    """A consumer group (KIP-848) in which a second member joins, gets a partition from the first, and leaves, again and again."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._life = self._steps()

    def step(self, at_us: int) -> list[MirrorRecord]:
        """The next heartbeat and its answer."""
        ask, answer = next(self._life)
        return self._exchange(at_us, ask, answer, 1)

    def _steps(self) -> Iterator[tuple[Any, Any]]:
        yield self._beat("first", 0, owned=()), self._given("first", 2, (0, 1))
        epoch = 2
        for number in itertools.count():
            second = f"second-{number}"
            yield self._beat(second, 0, owned=()), self._given(second, epoch + 1, ())
            yield self._beat("first", epoch), self._given("first", epoch, (0,))
            yield self._beat("first", epoch, owned=(0,)), self._given("first", epoch + 1)
            yield self._beat(second, epoch + 1), self._given(second, epoch + 1, (1,))
            yield self._beat(second, -1), self._given(second, -1)
            yield self._beat("first", epoch + 1), self._given("first", epoch + 2, (0, 1))
            epoch += 2

    def _beat(self, member_id: str, epoch: int, owned: tuple[int, ...] | None = None) -> wire.ConsumerGroupHeartbeatRequest:
        entry = wire.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=TOPIC_ID, partitions=owned or ())
        joins: dict[str, Any] = {} if epoch else {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ("orders",)}
        return wire.ConsumerGroupHeartbeatRequest(
            group_id=self.name,
            member_id=member_id,
            member_epoch=epoch,
            topic_partitions=None if owned is None else (entry,) if owned else (),
            **joins,
        )

    @staticmethod
    def _given(member_id: str, epoch: int, partitions: tuple[int, ...] | None = None) -> wire.ConsumerGroupHeartbeatResponse:
        entry = wire.ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=TOPIC_ID, partitions=partitions or ())
        given = wire.ConsumerGroupHeartbeatResponseAssignment(topic_partitions=(entry,) if partitions else ())
        return wire.ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=epoch,
            heartbeat_interval_ms=5_000,
            assignment=None if partitions is None else given,
        )


def breach(number: int, at_us: int) -> list[MirrorRecord]:
    """A group of its own whose one join breaks the protocol."""
    return Group(f"breach-{number}", client_id=MARK).join(at_us, member_id="m-asked", granted="m-1")


def tick(at_us: int, cluster: str = "c1") -> MirrorRecord:
    return wire_record.tick(at_us, cluster=cluster, connection="")


def story(
    *,
    start_us: int,
    seconds: int,
    groups: int,
    partitions: int,
    frames_per_s: int = 1000,
    breach_every: int = 200,
    first_breach: int = 0,
) -> Iterator[tuple[int, MirrorRecord]]:
    """Steady traffic with a breach in every so many exchanges: (partition, record), by capture time."""
    alive = [Group(f"group-{number}") for number in range(groups)]
    at_us = start_us
    for group in alive:
        for record in (*group.join(at_us), *group.sync(at_us + 2000)):
            yield partition_of(group.name, partitions), record
        at_us += 100
    step_us = 2_000_000 // frames_per_s
    next_tick_us, breaches = at_us, first_breach
    for exchange in range(seconds * frames_per_s // 2):
        at_us += step_us
        if at_us >= next_tick_us:
            next_tick_us += 1_000_000
            yield from ((partition, tick(at_us)) for partition in range(partitions))
        if exchange % breach_every == breach_every // 2:
            records = breach(breaches, at_us)
            breaches += 1
        else:
            records = alive[exchange % groups].heartbeat(at_us)
        for record in records:
            yield partition_of(record.group or "", partitions), record
    yield from ((partition, tick(at_us + 2_000_000)) for partition in range(partitions))


def produce(producer: Any, topic: str, partition: int, record: MirrorRecord) -> None:
    """Hand one record to a producer, as the tap does."""
    while True:
        try:
            producer.produce(
                topic,
                record.frame,
                key=None if record.group is None else record.group.encode(),
                partition=partition,
                timestamp=record.at_us // 1000,
                headers=[(HEADER_NAME, pack_envelope(record))],
            )
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return
