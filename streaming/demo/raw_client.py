"""A Kafka client without automatic behaviour, to make groups break the protocol on purpose.

It implements the classic group protocol with this project's encoder. Each step is one call that sends one request. It has no background
heartbeats, rejoins or retries, and it returns error codes without acting on them.

A coordinator answers JoinGroup and SyncGroup only when the whole group is ready, and a broker answers a connection in order. To heartbeat
meanwhile, use a second connection, or call :meth:`Connection.send` now and :meth:`Connection.receive` later.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version as installed_version
from typing import Final, NamedTuple, TypeVar

from coordinator_model import wire
from coordinator_model.wire.constants import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    MEMBER_ID_REQUIRED,
    NONE,
    NOT_COORDINATOR,
)
from streaming.background import Closing

SOFTWARE_NAME: Final = "rebalance-monitor-raw-client"

#: The default version of each request: flexible ones, the newest of which needs Kafka 3.2.
VERSIONS: Final[Mapping[int, int]] = {
    wire.OffsetCommitRequest.API_KEY: 8,
    wire.FindCoordinatorRequest.API_KEY: 3,
    wire.JoinGroupRequest.API_KEY: 9,
    wire.HeartbeatRequest.API_KEY: 4,
    wire.LeaveGroupRequest.API_KEY: 5,
    wire.SyncGroupRequest.API_KEY: 5,
    wire.ApiVersionsRequest.API_KEY: 3,
}

#: Errors of a broker that has just created the offsets topic, or become leader of one of its partitions. They require a retry.
_NOT_YET: Final = frozenset({COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
_RETRY_S: Final = 0.1

_MAX_FRAME: Final = 64 * 2**20

Body = TypeVar("Body", bound=wire.Response)


class RawClientError(RuntimeError):
    """The broker is unreachable, closed the connection, did not answer, or sent an invalid answer; the message names the broker."""


class Connection(Closing):
    """One TCP connection to one broker.

    :param address: ``host:port``.
    :param timeout_s: how long to wait for the connection, and by default for an answer.
    :raises RawClientError: when the broker cannot be reached.
    """

    def __init__(self, address: str, *, client_id: str, timeout_s: float = 10.0, versions: Mapping[int, int] = VERSIONS) -> None:
        self.address = address
        self.client_id = client_id
        self._timeout_s = timeout_s
        self._versions = versions
        self._next_correlation_id = 0
        self._asked: dict[int, tuple[int, int]] = {}
        self._received = bytearray()
        host, _, port = address.rpartition(":")
        try:
            self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s)
        except (OSError, ValueError) as error:
            raise RawClientError(f"cannot connect to {address}: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def local_port(self) -> int:
        """The local port of the connection, which the broker or the tap sees as the client's port."""
        port: int = self._socket.getsockname()[1]
        return port

    def send(self, body: wire.Request, *, api_version: int | None = None) -> int:
        """Send a request without waiting for its answer; return its correlation id.

        :raises RawClientError: when the connection is closed.
        :raises ValueError: when the version cannot encode the value of a field.
        """
        version = self._versions[body.API_KEY] if api_version is None else api_version
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        frame = wire.encode_request(body, api_version=version, correlation_id=correlation_id, client_id=self.client_id)
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        except OSError as error:
            raise RawClientError(f"{self.address} closed the connection: {error}") from None
        self._asked[correlation_id] = (body.API_KEY, version)
        return correlation_id

    def receive(self, correlation_id: int, expected: type[Body], *, timeout_s: float | None = None) -> Body:
        """Wait for the answer to a request; answers must be received in the order of the requests.

        After a timeout it can be called again.

        :raises RawClientError: when the answer does not come in time, or is not the expected one.
        """
        frame = self._read_frame(time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s))
        found = int.from_bytes(frame[:4], "big", signed=True)
        if found != correlation_id:
            raise RawClientError(f"{self.address} answered request {found} instead of request {correlation_id}")
        api_key, version = self._asked.pop(correlation_id)
        try:
            body = wire.decode(frame, request=False, api_key=api_key, api_version=version).body
        except wire.DecodeError as error:
            raise RawClientError(f"{self.address} gave an unreadable answer: {error}") from None
        if not isinstance(body, expected):
            raise RawClientError(f"{self.address} gave a {type(body).__name__}, not a {expected.__name__}")
        return body

    def ask(
        self, body: wire.Request, expected: type[Body], *, api_version: int | None = None, timeout_s: float | None = None
    ) -> Body:
        """Send a request and return its answer; see :meth:`send` and :meth:`receive`."""
        return self.receive(self.send(body, api_version=api_version), expected, timeout_s=timeout_s)

    def introduce(self) -> wire.ApiVersionsResponse:
        """Send ApiVersions, the first request of every client, with the client's software name (KIP-511)."""
        ours = wire.ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=installed_version("rebalance-monitor")
        )
        return self.ask(ours, wire.ApiVersionsResponse)

    def close(self) -> None:
        self._socket.close()

    def _read_frame(self, deadline: float) -> bytes:
        size = int.from_bytes(self._read(4, deadline), "big", signed=True)
        if not 4 <= size <= _MAX_FRAME:
            raise RawClientError(f"{self.address} announced a frame of {size} bytes: this is not Kafka's protocol")
        frame = bytes(self._read(4 + size, deadline)[4:])
        del self._received[: 4 + size]
        return frame

    def _read(self, count: int, deadline: float) -> bytearray:
        """Return the first ``count`` buffered bytes, once there are that many. They stay in the buffer until the frame is complete."""
        while len(self._received) < count:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                received = self._socket.recv(65_536)
            except TimeoutError:
                raise RawClientError(f"{self.address} does not answer") from None
            except OSError as error:
                raise RawClientError(f"{self.address} closed the connection: {error}") from None
            finally:
                self._socket.settimeout(self._timeout_s)
            if not received:
                raise RawClientError(f"{self.address} closed the connection")
            self._received += received
        return self._received[:count]


def find_coordinator(bootstrap: str, group: str, *, client_id: str, timeout_s: float = 30.0) -> str:
    """Wait for the group's coordinator and return its ``host:port``.

    :raises RawClientError: when there is no coordinator in time.
    """
    deadline = time.monotonic() + timeout_s
    with Connection(bootstrap, client_id=client_id, timeout_s=timeout_s) as connection:
        connection.introduce()
        while True:
            answer = connection.ask(wire.FindCoordinatorRequest(key=group), wire.FindCoordinatorResponse)
            if answer.error_code == NONE:
                return f"{answer.host}:{answer.port}"
            if answer.error_code not in _NOT_YET or time.monotonic() > deadline:
                raise RawClientError(f"{bootstrap} names no coordinator for group {group}: error {answer.error_code}")
            time.sleep(_RETRY_S)


class Joined(NamedTuple):
    """The content of a successful JoinGroup answer."""

    generation: int
    leader: str
    members: tuple[str, ...]  #: all member ids if this member is the leader, else empty


@dataclass
class RawMember:
    """One group member and the steps of the protocol.

    :param connection: to the coordinator.
    """

    connection: Connection
    group: str
    topic: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    protocols: tuple[wire.JoinGroupRequestProtocol, ...] = field(default=())
    protocol_type: str = wire.CONSUMER

    def __post_init__(self) -> None:
        if not self.protocols:
            subscription = wire.encode_subscription(wire.ConsumerProtocolSubscription(topics=(self.topic,)), 1)
            self.protocols = (wire.JoinGroupRequestProtocol(name="range", metadata=subscription),)

    def join_request(self) -> wire.JoinGroupRequest:
        """Return the JoinGroup request for the member's current state."""
        return wire.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
        )

    def join(self, *, timeout_s: float = 60.0) -> wire.JoinGroupResponse:
        """Send one JoinGroup. Success sets member id and generation; MEMBER_ID_REQUIRED sets the member id for the next join."""
        answer = self.connection.ask(self.join_request(), wire.JoinGroupResponse, timeout_s=timeout_s)
        if answer.error_code == MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif answer.error_code == NONE:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def enter(self, *, timeout_s: float = 60.0) -> Joined:
        """Join completely: get a member id (KIP-394), join with it, and retry while the coordinator is loading.

        :raises RawClientError: when the coordinator refuses the member.
        """
        deadline = time.monotonic() + timeout_s
        answer = self.join(timeout_s=timeout_s)
        while answer.error_code in {MEMBER_ID_REQUIRED, *_NOT_YET} and time.monotonic() < deadline:
            if answer.error_code != MEMBER_ID_REQUIRED:
                time.sleep(_RETRY_S)
            answer = self.join(timeout_s=timeout_s)
        if answer.error_code != NONE:
            raise RawClientError(
                f"JoinGroup of {self.connection.client_id} in group {self.group} refused: error {answer.error_code}"
            )
        return Joined(answer.generation_id, answer.leader, tuple(member.member_id for member in answer.members))

    def sync(self, assignments: Mapping[str, bytes] | None = None, *, timeout_s: float = 60.0) -> wire.SyncGroupResponse:
        """Send one SyncGroup; the leader passes the assignment of each member id."""
        request = wire.SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocols[0].name,
            assignments=tuple(
                wire.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ),
        )
        return self.connection.ask(request, wire.SyncGroupResponse, timeout_s=timeout_s)

    def heartbeat(self, *, generation: int | None = None) -> int:
        """Send one Heartbeat, by default with the member's generation; return the error code."""
        request = wire.HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return self.connection.ask(request, wire.HeartbeatResponse).error_code

    def commit(self, partition: int, offset: int, *, generation: int | None = None) -> int:
        """Send one OffsetCommit for one partition; return the partition's error code."""
        commit = wire.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = wire.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation if generation is None else generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=(wire.OffsetCommitRequestTopic(name=self.topic, partitions=(commit,)),),
        )
        return self.connection.ask(request, wire.OffsetCommitResponse).topics[0].partitions[0].error_code

    def leave(self) -> int:
        """Send one LeaveGroup; return the error code."""
        member = wire.LeaveGroupRequestMemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        answer = self.connection.ask(wire.LeaveGroupRequest(group_id=self.group, members=(member,)), wire.LeaveGroupResponse)
        return answer.error_code or answer.members[0].error_code

    def as_of(self, generation: int) -> RawMember:
        """Return a copy of this member with another generation, on the same connection."""
        return replace(self, generation=generation)


def share(topic: str, partitions: int, members: Sequence[str]) -> dict[str, bytes]:
    """Return an assignment by member id that gives the partitions to the members in turn."""
    shares: dict[str, list[int]] = {member: [] for member in members}
    for partition in range(partitions):
        shares[members[partition % len(members)]].append(partition)
    return {member: _assignment(topic, tuple(owned)) for member, owned in shares.items()}


def _assignment(topic: str, partitions: tuple[int, ...]) -> bytes:
    assigned = (wire.ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions),) if partitions else ()
    return wire.encode_assignment(wire.ConsumerProtocolAssignment(assigned_partitions=assigned), 1)
