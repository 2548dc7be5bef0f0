"""Lawful clients: what a consumer does between its first JoinGroup and its last frame, told by every error what to do next."""

from __future__ import annotations

from typing import Any

from coordinator_model import wire
from coordinator_model.wire import decode_assignment, decode_subscription, encode_assignment, encode_subscription
from tests.coordinator_model.reference.world import MS, SECOND, VERSIONS, Connection, World

RETRY_US = 100 * MS
PARTITIONS = 6


class Client:
    """One process. ``separate`` clients heartbeat and commit on one connection and join on another."""

    def __init__(
        self,
        world: World,
        name: str,
        *,
        session_ms: int = 10_000,
        rebalance_ms: int = 20_000,
        instance_id: str | None = None,
        separate: bool = False,
        topics: tuple[str, ...] = ("t",),
        protocols: tuple[str, ...] = ("range",),
        versions: dict[int, int] = VERSIONS["newest"],
    ) -> None:
        self.world = world
        self.name = name
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.instance_id = instance_id
        self.separate = separate
        self.topics = topics
        self.protocols = protocols
        self.versions = versions
        self.member_id = ""
        self.generation = -1
        self.broker = "1"
        self.leads = False
        self.owned: list[tuple[str, int]] = []
        self.running = False
        self.joining = False
        self.stalled_until_us = 0
        self.fatal = False
        self.main = self.joiner = Connection(world, name, "1", self.versions)
        self.main.closed = True  # until it starts
        self._life = 0  # what was scheduled in an earlier life, or waits for a lost answer, is void
        self._attempt = 0

    # -------------------------------------------------------------------------------------------- what happens to it

    def start(self) -> None:
        self._disconnect()
        self._life += 1
        self.running, self.fatal, self.joining = True, False, False
        self.member_id, self.generation, self.leads, self.owned = "", -1, False, []
        self._connect()
        self.join()
        self._every(self.session_ms * MS // 3, self._heartbeat)
        self._every(5 * SECOND, self._commit)

    def crash(self) -> None:
        self._life += 1
        self.running = False
        self._disconnect()

    def stop(self) -> None:
        """A clean end: a dynamic member leaves, a static one just goes (KIP-345)."""
        if not self.running:
            return
        if self.instance_id is not None or not self.member_id:
            self.crash()
            return
        if self.versions[13] < 3:
            body = wire.LeaveGroupRequest(group_id=self.world.group, member_id=self.member_id)
        else:
            reason = "the consumer is being closed" if self.versions[13] >= 5 else None
            identity = wire.LeaveGroupRequestMemberIdentity(member_id=self.member_id, reason=reason)
            body = wire.LeaveGroupRequest(group_id=self.world.group, members=(identity,))
        self._life += 1
        self.running = False
        self.main.ask(body, lambda _: self._disconnect())
        self.world.at(2 * SECOND, self._disconnect)

    def stall(self, for_us: int) -> None:
        """Its poll loop is busy: it heartbeats, but neither commits nor rejoins."""
        self.stalled_until_us = max(self.stalled_until_us, self.world.now_us + for_us)

    def cut(self) -> None:
        """Its connections break; it resumes on new ones, with the same member id."""
        if not self.running:
            return
        self._disconnect()
        self._connect()
        if self.joining:
            self._later(RETRY_US, self._ask_join)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        self.topics = topics
        self.join()

    def metadata_changed(self) -> None:
        if self.leads and not self.joining:
            self.join()

    # -------------------------------------------------------------------------------------------- joining

    def join(self) -> None:
        if not self.running or self.fatal or self.joining:
            return
        if self.stalled_until_us > self.world.now_us:
            self._later(self.stalled_until_us - self.world.now_us, self.join)
            return
        self.joining = True
        self._ask_join()

    def _ask_join(self) -> None:
        if not self.joining:
            return
        self._attempt += 1
        attempt = self._attempt
        metadata = encode_subscription(wire.ConsumerProtocolSubscription(topics=self.topics), version=1)
        body = wire.JoinGroupRequest(
            group_id=self.world.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms if self.versions[11] >= 1 else -1,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=tuple(wire.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in self.protocols),
        )
        life = self._life
        self.joiner.ask(body, lambda reply: self._joined(reply) if (life, attempt) == (self._life, self._attempt) else None)

        def give_up() -> None:
            if attempt == self._attempt and self.joining:
                self.cut()

        self._later((self.rebalance_ms + 5_000) * MS, give_up)

    def _joined(self, reply: wire.JoinGroupResponse) -> None:
        match reply.error_code:
            case 0:
                self.member_id, self.generation = reply.member_id, reply.generation_id
                self.leads = reply.leader == reply.member_id
                self._sync(reply)
            case 79:
                self.member_id = reply.member_id
                self._ask_join()
            case 25:
                self.member_id, self.generation = "", -1
                self._later(RETRY_US, self._ask_join)
            case 14 | 27:
                self._later(RETRY_US, self._ask_join)
            case 15 | 16:
                self._find_coordinator()
                self._later(RETRY_US, self._ask_join)
            case _:
                self._die()

    def _sync(self, joined: wire.JoinGroupResponse) -> None:
        self._attempt += 1
        attempt, life = self._attempt, self._life
        body = wire.SyncGroupRequest(
            group_id=self.world.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=() if joined.skip_assignment else assign(joined.members),
        )
        self.joiner.ask(body, lambda reply: self._synced(reply) if (life, attempt) == (self._life, self._attempt) else None)

    def _synced(self, reply: wire.SyncGroupResponse) -> None:
        self.joining = False
        match reply.error_code:
            case 0:
                given = decode_assignment(reply.assignment).assigned_partitions if reply.assignment else ()
                self.owned = [(topic.topic, partition) for topic in given for partition in topic.partitions]
            case 22 | 27:
                self._later(RETRY_US, self.join)
            case 25:
                self.member_id, self.generation = "", -1
                self._later(RETRY_US, self.join)
            case 14 | 15 | 16:
                self._find_coordinator()
                self._later(RETRY_US, self.join)
            case _:
                self._die()

    # -------------------------------------------------------------------------------------------- living

    def _heartbeat(self) -> None:
        if self.generation < 0 or not self.member_id or (self.joining and not self.separate):
            return
        generation, member_id, life = self.generation, self.member_id, self._life
        body = wire.HeartbeatRequest(
            group_id=self.world.group, generation_id=generation, member_id=member_id, group_instance_id=self.instance_id
        )
        self.main.ask(body, lambda reply: self._told(reply.error_code, generation, member_id, life))

    def _commit(self) -> None:
        if self.generation < 0 or self.joining or not self.owned or self.stalled_until_us > self.world.now_us:
            return
        generation, member_id, life = self.generation, self.member_id, self._life
        partition = wire.OffsetCommitRequestPartition(
            partition_index=self.owned[0][1], committed_offset=self.world.now_us // SECOND
        )
        body = wire.OffsetCommitRequest(
            group_id=self.world.group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=self.instance_id,
            topics=(wire.OffsetCommitRequestTopic(name=self.owned[0][0], partitions=(partition,)),),
        )

        def told(reply: wire.OffsetCommitResponse) -> None:
            self._told(reply.topics[0].partitions[0].error_code, generation, member_id, life)

        self.main.ask(body, told)

    def _told(self, error: int, generation: int, member_id: str, life: int) -> None:
        current = (generation, member_id, life) == (self.generation, self.member_id, self._life)
        if not error or not current or not self.running:
            return
        if error in {15, 16}:
            if self._find_coordinator() and self.joining:  # what it waited for went with the connection
                self._later(RETRY_US, self._ask_join)
        elif error == 82:
            self._die()
        elif not self.joining and error in {22, 25, 27}:
            if error == 25:
                self.member_id, self.generation = "", -1
            if error == 22:
                self.generation = -1
            self.join()

    def _die(self) -> None:
        self.fatal = True
        self.crash()

    def _find_coordinator(self) -> bool:
        """Return True if it is another one, to which the client has connected."""
        active = [name for name, broker in self.world.brokers.items() if broker.active]
        if not active or active[0] == self.broker:
            return False
        self.broker = active[0]
        self._disconnect()
        self._connect()
        return True

    # -------------------------------------------------------------------------------------------- plumbing

    def _connect(self) -> None:
        self.main = Connection(self.world, self.name, self.broker, self.versions)
        self.joiner = Connection(self.world, self.name, self.broker, self.versions) if self.separate else self.main

    def _disconnect(self) -> None:
        self.main.close()
        self.joiner.close()

    def _later(self, delay_us: int, action: Any) -> None:
        life = self._life
        self.world.at(delay_us, lambda: action() if life == self._life else None)

    def _every(self, period_us: int, action: Any) -> None:
        def again() -> None:
            action()
            self._later(period_us, again)

        self._later(self.world.random.randrange(period_us), again)


def assign(members: tuple[wire.JoinGroupResponseMember, ...]) -> tuple[wire.SyncGroupRequestAssignment, ...]:
    """Deals out the partitions of each topic among those who subscribed to it."""
    owned: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in members}
    subscribed: dict[str, list[str]] = {}
    for member in members:
        for topic in decode_subscription(member.metadata).topics:
            subscribed.setdefault(topic, []).append(member.member_id)
    for topic, takers in subscribed.items():
        for partition in range(PARTITIONS):
            owned[takers[partition % len(takers)]].setdefault(topic, []).append(partition)
    return tuple(
        wire.SyncGroupRequestAssignment(
            member_id=id_,
            assignment=encode_assignment(
                wire.ConsumerProtocolAssignment(
                    assigned_partitions=tuple(
                        wire.ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=tuple(partitions))
                        for topic, partitions in topics.items()
                    )
                ),
                version=1,
            ),
        )
        for id_, topics in owned.items()
    )
