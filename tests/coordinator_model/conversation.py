"""Frames that clients and a coordinator exchange, for tests: encoded for real, fed to the model, findings collected.

Time is explicit: every step says how much passes. ``ask`` sends a request and leaves it open, ``answer`` ends it, ``call`` does both.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, get_type_hints

from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding
from coordinator_model.settings import Settings
from coordinator_model.wire.record import NO_END, Kind, Loss, MirrorRecord, pack_loss, pack_topics

START_US = 1_700_000_000_000_000
MS = 1_000


def subscription(*topics: str, **fields: Any) -> bytes:
    """What a consumer offers with a protocol. ``fields`` as in :class:`wire.ConsumerProtocolSubscription`."""
    return wire.encode_subscription(wire.ConsumerProtocolSubscription(topics=topics, **fields))


def assignment(**partitions: tuple[int, ...]) -> bytes:
    """What a leader assigns: topic → partitions."""
    given = tuple(
        wire.ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers) for topic, numbers in partitions.items()
    )
    return wire.encode_assignment(wire.ConsumerProtocolAssignment(assigned_partitions=given), version=1)


SUBSCRIBED = subscription("t")
ASSIGNED = assignment()
VERSIONS = {8: 8, 9: 8, 10: 4, 11: 9, 12: 4, 13: 5, 14: 5, 15: 5, 28: 4, 42: 2, 47: 0, 68: 1, 76: 1, 88: 0}


class Client:
    """One connection of one process."""

    def __init__(self, talk: Conversation, name: str, broker: str = "1") -> None:
        self.talk = talk
        self.name = name
        self.broker = broker
        self.connection = f"{name}#{talk.connections}"
        talk.connections += 1
        self.host = "10.0.0.1"
        self.port = 40_000 + talk.connections
        self.exchange = 0
        self.outstanding = 0
        self.member_id = ""
        self.instance_id: str | None = None
        self.software = "test 1.0"
        self.generation = -1

    def reconnected(self, broker: str | None = None) -> Client:
        """The same process on a new connection."""
        other = Client(self.talk, self.name, broker or self.broker)
        other.member_id, other.instance_id, other.generation = self.member_id, self.instance_id, self.generation
        return other


class Asked:
    def __init__(self, client: Client, api_key: int, api_version: int, exchange: int) -> None:
        self.client = client
        self.api_key = api_key
        self.api_version = api_version
        self.exchange = exchange


class Conversation:
    """A group, its clients, and the model that listens."""

    def __init__(self, group: str = "g", **settings: Any) -> None:
        self.group = group
        self.now_us = START_US
        self.offset = 0
        self.connections = 0
        self.records: list[MirrorRecord] = []
        self.findings: list[Finding] = []
        self.protocol_type, self.protocol = "consumer", "range"  #: what members offer unless they are told otherwise
        self.settings = Settings(**settings)
        self.model = Coordinator(topic="mirror", partition=0, settings=self.settings)

    # -------------------------------------------------------------------------------------------- time and records

    def wait(self, ms: float) -> None:
        """Let time pass, ticks included, as the tap writes them."""
        end_us = self.now_us + int(ms * 1_000)
        while self.now_us + 1_000_000 <= end_us:
            self.now_us += 1_000_000
            self.tick()
        self.now_us = end_us

    def tick(self) -> None:
        self._feed(Kind.TICK, None, b"")

    def settle(self) -> None:
        """Long enough for held findings to come out, short enough for no timer."""
        self.wait(600)
        self.tick()

    def restore(self) -> None:
        """The model is stored and restored."""
        self.model = Coordinator.restore(self.model.snapshot(), settings=self.settings)

    def found_when_restored(self, at: Container[int] | None = None) -> list[Finding]:
        """Return what a model finds in the records that is stored and restored before those at these indices; before all if None."""
        model = Coordinator(topic="mirror", partition=0, settings=self.settings)
        found: list[Finding] = []
        for index, record in enumerate(self.records):
            if at is None or index in at:
                model = Coordinator.restore(model.snapshot(), settings=self.settings)
            found += model.receive(record)
        return found

    def client(
        self, name: str, broker: str = "1", *, member_id: str = "", instance_id: str | None = None, generation: int = -1
    ) -> Client:
        """A process with a connection; what it knows of itself is empty unless given."""
        client = Client(self, name, broker)
        client.member_id, client.instance_id, client.generation = member_id, instance_id, generation
        return client

    def ask(self, client: Client, body: Any, *, version: int | None = None, group: str | None = None) -> Asked:
        api_key = body.API_KEY
        version = VERSIONS[api_key] if version is None else version
        frame = wire.encode_request(body, api_version=version, correlation_id=client.exchange, client_id=client.name)
        asked = Asked(client, api_key, version, client.exchange)
        self._feed(Kind.REQUEST, asked, frame, queued_behind=client.outstanding, group=group)
        client.exchange += 1
        client.outstanding += 1
        return asked

    def answer(self, asked: Asked, body: Any, *, after_ms: float = 1) -> None:
        self.now_us += int(after_ms * 1_000)
        frame = wire.encode_response(body, api_version=asked.api_version, correlation_id=asked.exchange)
        asked.client.outstanding -= 1
        self._feed(Kind.RESPONSE, asked, frame)

    def call(self, client: Client, body: Any, reply: Any, *, version: int | None = None, after_ms: float = 1) -> None:
        self.answer(self.ask(client, body, version=version), reply, after_ms=after_ms)

    def open(self, client: Client, *, shows_end: bool = True) -> None:
        """A connection begins whose end will be captured, or not, as in a broker's request log."""
        self._feed(Kind.OPEN, Asked(client, -1, -1, -1), b"" if shows_end else NO_END)

    def close(self, client: Client) -> None:
        self._feed(Kind.CLOSE, Asked(client, -1, -1, -1), b"")

    def lose(self, records: int = 1) -> None:
        """Records that never reach the model."""
        self.offset += records

    def gap(self, records: int = 3) -> None:
        loss = Loss(records, 100 * records, self.now_us - 1_000_000, self.now_us)
        self._feed(Kind.GAP, None, pack_loss(loss))

    def topics(self, **partitions: int) -> None:
        """A Metadata response passes by that says how many partitions topics have."""
        self._feed(Kind.TOPICS, None, pack_topics(partitions))

    def raw(self, client: Client, frame: bytes, *, api_key: int = 12, version: int = 4, cut_bytes: int = 0) -> None:
        asked = Asked(client, api_key, version, client.exchange)
        client.exchange += 1
        self._feed(Kind.REQUEST, asked, frame, cut_bytes=cut_bytes)

    def _feed(
        self,
        kind: Kind,
        asked: Asked | None,
        frame: bytes,
        *,
        queued_behind: int = 0,
        cut_bytes: int = 0,
        capped_bytes: int = 0,
        group: str | None = None,
    ) -> None:
        client = asked.client if asked is not None else None
        record = MirrorRecord(
            partition=0,
            offset=self.offset,
            group=(group or self.group) if client is not None else group,
            kind=kind,
            at_us=self.now_us,
            cluster="c1",
            broker=client.broker if client is not None else "",
            connection=client.connection if client is not None else "",
            exchange=asked.exchange if asked is not None else -1,
            api_key=asked.api_key if asked is not None else -1,
            api_version=asked.api_version if asked is not None else -1,
            correlation_id=asked.exchange if asked is not None else 0,
            client_id=client.name if client is not None else None,
            client_address=f"{client.host}:{client.port}" if client is not None else "",
            client_software=client.software if client is not None else "",
            cut_bytes=cut_bytes,
            capped_bytes=capped_bytes,
            queued_behind=queued_behind,
            frame=frame,
        )
        self.offset += 1
        self.records.append(record)
        self.findings.extend(self.model.receive(record))

    # -------------------------------------------------------------------------------------------- the protocol's moves

    def join_request(self, client: Client, **fields: Any) -> wire.JoinGroupRequest:
        values: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 20_000,
            "member_id": client.member_id,
            "group_instance_id": client.instance_id,
            "protocol_type": self.protocol_type,
            "protocols": (wire.JoinGroupRequestProtocol(name=self.protocol, metadata=SUBSCRIBED),),
        }
        return wire.JoinGroupRequest(**{**values, **fields})

    def ask_join(self, client: Client, **fields: Any) -> Asked:
        return self.ask(client, self.join_request(client, **fields))

    def joined(self, asked: Asked, *, generation: int, leader: Client, roster: list[Client], member_id: str | None = None) -> None:
        """The coordinator's answer at the end of a join phase."""
        client = asked.client
        client.member_id = member_id or client.member_id
        client.generation = generation
        members = tuple(
            wire.JoinGroupResponseMember(member_id=one.member_id, group_instance_id=one.instance_id, metadata=SUBSCRIBED)
            for one in roster
        )
        self.answer(
            asked,
            wire.JoinGroupResponse(
                error_code=0,
                generation_id=generation,
                protocol_type=self.protocol_type,
                protocol_name=self.protocol,
                leader=leader.member_id,
                member_id=client.member_id,
                members=members if client.member_id == leader.member_id else (),
            ),
        )

    def refuse_join(self, asked: Asked, error: int, member_id: str = "") -> None:
        reply = wire.JoinGroupResponse(error_code=error, generation_id=-1, leader="", member_id=member_id)
        self.answer(asked, reply)

    def hand_out_id(self, client: Client, member_id: str | None = None) -> None:
        """The first step of a dynamic join: MEMBER_ID_REQUIRED (KIP-394)."""
        asked = self.ask_join(client)
        client.member_id = member_id or f"{client.name}-{client.connection}-{self.offset}"
        self.refuse_join(asked, 79, client.member_id)

    def join_all(self, clients: list[Client], generation: int, *, leader: Client | None = None, **fields: Any) -> None:
        """One lawful join phase of these members, whose requests say so; new ones take both steps."""
        for client in clients:
            if not client.member_id and client.instance_id is None:
                self.hand_out_id(client)
        asked = [self.ask_join(client, **fields) for client in clients]
        for client in clients:
            client.member_id = client.member_id or f"{client.instance_id}-{client.connection}"
        for one in asked:
            self.joined(one, generation=generation, leader=leader or clients[0], roster=clients)

    def sync_request(self, client: Client, roster: list[Client], **fields: Any) -> wire.SyncGroupRequest:
        values: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": client.generation,
            "member_id": client.member_id,
            "group_instance_id": client.instance_id,
            "protocol_type": self.protocol_type,
            "protocol_name": self.protocol,
            "assignments": tuple(wire.SyncGroupRequestAssignment(member_id=one.member_id, assignment=ASSIGNED) for one in roster),
        }
        return wire.SyncGroupRequest(**{**values, **fields})

    def sync_all(self, clients: list[Client], *, leader: Client | None = None) -> None:
        leader = leader or clients[0]
        asked = [self.ask(one, self.sync_request(one, clients if one is leader else [])) for one in clients]
        for one in asked:
            self.answer(one, self.synced())

    def synced(self, error: int = 0) -> wire.SyncGroupResponse:
        if error:
            return wire.SyncGroupResponse(error_code=error)
        return wire.SyncGroupResponse(
            error_code=0, protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=ASSIGNED
        )

    def round(self, clients: list[Client], generation: int, *, leader: Client | None = None, **fields: Any) -> None:
        """Join and sync, lawfully."""
        self.join_all(clients, generation, leader=leader, **fields)
        self.sync_all(clients, leader=leader)

    def heartbeat(
        self,
        client: Client,
        error: int = 0,
        *,
        version: int | None = None,
        generation: int | None = None,
        after_ms: float = 1,
        throttle_ms: int = 0,
    ) -> None:
        version = VERSIONS[wire.HeartbeatRequest.API_KEY] if version is None else version
        body = wire.HeartbeatRequest(
            group_id=self.group,
            generation_id=client.generation if generation is None else generation,
            member_id=client.member_id,
            group_instance_id=client.instance_id if version >= 3 else None,
        )
        reply = wire.HeartbeatResponse(error_code=error, throttle_time_ms=throttle_ms)
        self.call(client, body, reply, version=version, after_ms=after_ms)

    def commit(self, client: Client, error: int = 0, **fields: Any) -> None:
        partition = wire.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        values: dict[str, Any] = {
            "group_id": self.group,
            "generation_id_or_member_epoch": client.generation,
            "member_id": client.member_id,
            "group_instance_id": client.instance_id,
            "topics": (wire.OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
        }
        done = wire.OffsetCommitResponsePartition(partition_index=0, error_code=error)
        reply = wire.OffsetCommitResponse(topics=(wire.OffsetCommitResponseTopic(name="t", partitions=(done,)),))
        self.call(client, wire.OffsetCommitRequest(**{**values, **fields}), reply)

    def commit_request(self, client: Client, offsets: dict[int, int], **fields: Any) -> wire.OffsetCommitRequest:
        """``offsets``: partition of topic ``t`` → offset."""
        partitions = tuple(wire.OffsetCommitRequestPartition(partition_index=p, committed_offset=at) for p, at in offsets.items())
        values: dict[str, Any] = {
            "group_id": self.group,
            "generation_id_or_member_epoch": client.generation,
            "member_id": client.member_id,
            "group_instance_id": client.instance_id,
            "topics": (wire.OffsetCommitRequestTopic(name="t", partitions=partitions),),
        }
        return wire.OffsetCommitRequest(**{**values, **fields})

    def committed(self, codes: dict[int, int]) -> wire.OffsetCommitResponse:
        """``codes``: partition of topic ``t`` → error."""
        partitions = tuple(wire.OffsetCommitResponsePartition(partition_index=p, error_code=code) for p, code in codes.items())
        return wire.OffsetCommitResponse(topics=(wire.OffsetCommitResponseTopic(name="t", partitions=partitions),))

    def commit_offsets(self, client: Client, offsets: dict[int, int], codes: dict[int, int] | None = None, **fields: Any) -> None:
        reply = self.committed({p: (codes or {}).get(p, 0) for p in offsets})
        self.call(client, self.commit_request(client, offsets, **fields), reply)

    def fetch_request(self, client: Client, partitions: tuple[int, ...], **fields: Any) -> wire.OffsetFetchRequest:
        """Asks where the group stands in partitions of topic ``t``. ``fields`` as in :class:`wire.OffsetFetchRequestGroup`."""
        topic = wire.OffsetFetchRequestTopics(name="t", partition_indexes=partitions)
        group = wire.OffsetFetchRequestGroup(**{"group_id": self.group, "topics": (topic,), **fields})
        return wire.OffsetFetchRequest(groups=(group,))

    def fetched(self, offsets: dict[int, int], codes: dict[int, int] | None = None, error: int = 0) -> wire.OffsetFetchResponse:
        """``offsets``: partition of topic ``t`` → offset; ``codes``: partition → error; ``error``: of the group."""
        entries = tuple(
            wire.OffsetFetchResponsePartitions(partition_index=p, committed_offset=at, error_code=(codes or {}).get(p, 0))
            for p, at in offsets.items()
        )
        topics = () if error else (wire.OffsetFetchResponseTopics(name="t", partitions=entries),)
        return wire.OffsetFetchResponse(
            groups=(wire.OffsetFetchResponseGroup(group_id=self.group, topics=topics, error_code=error),)
        )

    def fetch_offsets(self, client: Client, offsets: dict[int, int], codes: dict[int, int] | None = None, error: int = 0) -> None:
        """Read where the group stands, or be refused."""
        self.call(client, self.fetch_request(client, tuple(offsets)), self.fetched(offsets, codes, error))

    def find_coordinator(
        self, client: Client, node_id: int = 1, error: int = 0, *, version: int = 4, address: str | None = None
    ) -> None:
        """Ask whichever broker ``client`` is connected to; node 1 is at kafka-1:9092 unless an address is given."""
        named, _, number = (address or f"kafka-{node_id}:9092").rpartition(":")
        host, port = ("", -1) if error else (named, int(number))
        if version >= 4:
            answer = wire.FindCoordinatorResponseCoordinator(
                key=self.group, node_id=-1 if error else node_id, host=host, port=port, error_code=error
            )
            request = wire.FindCoordinatorRequest(coordinator_keys=(self.group,))
            self.call(client, request, wire.FindCoordinatorResponse(coordinators=(answer,)), version=version)
            return
        reply = wire.FindCoordinatorResponse(node_id=-1 if error else node_id, host=host, port=port, error_code=error)
        self.call(client, wire.FindCoordinatorRequest(key=self.group), reply, version=version)

    def leave_request(self, *members: Client, reason: str | None = None) -> wire.LeaveGroupRequest:
        identities = tuple(
            wire.LeaveGroupRequestMemberIdentity(member_id=one.member_id, group_instance_id=one.instance_id, reason=reason)
            for one in members
        )
        return wire.LeaveGroupRequest(group_id=self.group, members=identities)

    def left(self, *members: Client, error: int = 0) -> wire.LeaveGroupResponse:
        outcomes = tuple(wire.LeaveGroupResponseMemberResponse(member_id=one.member_id, error_code=error) for one in members)
        return wire.LeaveGroupResponse(members=outcomes)

    def leave(self, client: Client, error: int = 0, *, reason: str | None = None) -> None:
        self.call(client, self.leave_request(client, reason=reason), self.left(client, error=error))

    def remove(self, client: Client, *, reason: str | None = None) -> Client:
        """An operator takes a member out of the group; return who that is."""
        operator = self.client("admin")
        self.call(operator, self.leave_request(client, reason=reason), self.left(client))
        return operator

    def ask_delete(self) -> Asked:
        """An operator asks to delete the group."""
        return self.ask(self.client("operator"), wire.DeleteGroupsRequest(groups_names=(self.group,)))

    def deleted(self, error: int = 0) -> wire.DeleteGroupsResponse:
        result = wire.DeleteGroupsResponseDeletableGroupResult(group_id=self.group, error_code=error)
        return wire.DeleteGroupsResponse(results=(result,))

    def delete(self, error: int = 0) -> None:
        self.answer(self.ask_delete(), self.deleted(error))

    def consumer_heartbeat(self, client: Client, error: int = 0, *, epoch: int = 1) -> None:
        """A ConsumerGroupHeartbeat (KIP-848), and its answer: what a member of a group of the consumer type sends instead."""
        member_id = client.member_id or f"{client.name}-id"
        body = wire.ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=member_id, member_epoch=epoch)
        reply = wire.ConsumerGroupHeartbeatResponse(error_code=error, member_id=member_id, member_epoch=epoch)
        self.call(client, body, reply)

    # -------------------------------------------------------------------------------------------- what came out

    def opened(self) -> list[Finding]:
        """The first event of each finding: one that was over before it was said begins with its end."""
        first: dict[str, Finding] = {}
        for finding in self.findings:
            first.setdefault(finding.id, finding)
        return list(first.values())

    def rules(self) -> list[str]:
        """The rules that spoke, once each, in order."""
        return list(dict.fromkeys(finding.rule for finding in self.opened()))

    def settled_rules(self) -> list[str]:
        """The same, once what is held has come out."""
        self.settle()
        return self.rules()

    def the(self, rule: str) -> Finding:
        """The newest event of the only finding of this rule."""
        events = [finding for finding in self.findings if finding.rule == rule]
        assert len({event.id for event in events}) == 1, f"{rule}: {[event.summary for event in events]}"
        return events[-1]

    def group_json(self) -> dict[str, Any]:
        group, open_findings = self.model.groups.opened(("c1", self.group))
        content = group.view(len(open_findings.open), self.model.partition, self.now_us).content
        assert content is not None
        return content


def conversation_for(test: Callable[..., None]) -> Conversation:
    """A conversation of the type that a test gives its parameter ``talk``."""
    talk: Conversation = get_type_hints(test).get("talk", Conversation)()
    return talk
