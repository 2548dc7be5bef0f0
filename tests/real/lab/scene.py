"""What a violation is made of: members that do exactly what they are told, others that follow the protocol, and lies by the broker's proxy.

Each violation has a group of its own. The trap: a member that is not looked after is evicted, and a violation that was to be one becomes
another. So whoever has no part to play just now is put into the care of a thread, :meth:`Scene.steady`, which heartbeats and rejoins;
sessions and rebalances last a minute unless a violation is about their end, for on a busy machine a step may take seconds; and a scene that
did not come about as it should raises, so that it is set anew instead of being taken for a violation that nobody found.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from coordinator_model.wire import (
    CONSUMER,
    ConsumerGroupHeartbeatRequest,
    JoinGroupRequestProtocol,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from coordinator_model.wire.constants import NONE, REBALANCE_IN_PROGRESS
from streaming.demo.faulty_proxy import Forge, ProxiedExchange, Swallow, Tamper
from streaming.demo.raw_client import VERSIONS, Connection, RawClientError, RawMember, find_coordinator, share
from streaming.demo.verdicts import Truth

TOPIC = "lab-a"
PARTITIONS = 3
SESSION_MS = 60_000
REBALANCE_MS = 60_000
SHORT_SESSION_MS = 6_000  #: the shortest that brokers allow by default
SHORT_REBALANCE_MS = 8_000
HEARTBEAT_S = 0.5
STEP_S = 120.0  #: a bound for what a busy machine may take to do what is done in milliseconds
FOUND_S = 90.0  #: every rule has spoken by then

HEARTBEATS_OF_EPOCHS = frozenset(
    request.API_KEY for request in (ConsumerGroupHeartbeatRequest, ShareGroupHeartbeatRequest, StreamsGroupHeartbeatRequest)
)

Lie = Callable[[ProxiedExchange], Forge | Swallow | None]


class ViolationError(RuntimeError):
    """The violation could not be committed; the message says why."""


class Lies:
    """The lies that are told just now, by group; :attr:`tamper` is what a proxy tells them by."""

    def __init__(self) -> None:
        self._lies: dict[str, Lie] = {}
        self.first_us: dict[str, int] = {}
        self.tamper = Tamper("the laboratory's", HEARTBEATS_OF_EPOCHS | frozenset(VERSIONS) - {18, 10}, self._tell)

    def tell(self, group: str, lie: Lie) -> None:
        self._lies[group] = lie

    def end(self, group: str) -> None:
        self._lies.pop(group, None)

    def _tell(self, exchange: ProxiedExchange) -> Forge | Swallow | None:
        group = exchange.request.group_id
        lie = self._lies.get(group)
        told = lie(exchange) if lie is not None else None
        if told is not None:
            self.first_us.setdefault(group, time.time_ns() // 1000)
        return told


class Scene:
    """One violation while it is committed.

    :param found: whether the monitor has said what it should, so that nothing need go on longer.
    """

    def __init__(self, group: str, bootstrap: str, lies: Lies, found: Callable[[], bool]) -> None:
        self.group = group
        self.truth = Truth()
        self.over = threading.Event()
        self._bootstrap = bootstrap
        self._lies = lies
        self._found = found
        self._stack = contextlib.ExitStack()
        self.ends = threading.Event()
        self._address = find_coordinator(bootstrap, group, client_id=f"{group}-finder", timeout_s=STEP_S)

    def close(self) -> None:
        self.ends.set()
        self._lies.end(self.group)
        self._stack.close()

    # --- people -------------------------------------------------------------------------------------------------------

    def connect(self, client_id: str, versions: Mapping[int, int] = VERSIONS) -> Connection:
        connection = Connection(self._address, client_id=client_id, timeout_s=STEP_S, versions=versions)
        self._stack.enter_context(connection)
        connection.introduce()
        return connection

    def member(
        self,
        name: str,
        *,
        instance_id: str | None = None,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        protocols: tuple[JoinGroupRequestProtocol, ...] = (),
        protocol_type: str = CONSUMER,
    ) -> RawMember:
        """Somebody who has not joined yet; the client id is the group's name and this one."""
        return RawMember(
            connection=self.connect(f"{self.group}-{name}"),
            group=self.group,
            topic=TOPIC,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            instance_id=instance_id,
            protocols=protocols,
            protocol_type=protocol_type,
        )

    def enter(self, member: RawMember) -> None:
        """Join and sync as the protocol has it, leading if need be, until there is an assignment."""
        deadline = time.monotonic() + STEP_S
        while time.monotonic() < deadline:
            joined = member.enter(timeout_s=STEP_S)
            answer = member.sync(share(TOPIC, PARTITIONS, joined.members) if joined.members else None, timeout_s=STEP_S)
            if answer.error_code == NONE:
                return
            if answer.error_code != REBALANCE_IN_PROGRESS:
                raise ViolationError(f"SyncGroup of {member.connection.client_id} refused with error {answer.error_code}")
        raise ViolationError(f"{member.connection.client_id} found no rest in {STEP_S:.0f} s")

    def until_told(self, member: RawMember) -> None:
        """Heartbeat until told to rejoin."""
        deadline = time.monotonic() + STEP_S
        while (error := member.heartbeat()) != REBALANCE_IN_PROGRESS:
            if error != NONE or time.monotonic() > deadline:
                raise ViolationError(f"{member.connection.client_id} was not told to rejoin, but error {error}")
            time.sleep(HEARTBEAT_S / 2)

    def steady(self, name: str, **options: str) -> RawMember:
        """A member that from now on follows the protocol by itself."""
        member = self.member(name, **options)  # type: ignore[arg-type]
        threading.Thread(target=self._follow, args=(member,), name=member.connection.client_id, daemon=True).start()
        return member

    def care_for(self, member: RawMember) -> None:
        """Let a member that is in the group follow the protocol by itself from now on."""
        threading.Thread(target=self._follow, args=(member,), name=member.connection.client_id, daemon=True).start()

    def _follow(self, member: RawMember) -> None:
        with contextlib.suppress(RawClientError, ViolationError, OSError):
            if member.generation < 0:
                self.enter(member)
            while not self.ends.wait(HEARTBEAT_S):
                error = member.heartbeat()
                if error == REBALANCE_IN_PROGRESS:
                    self.enter(member)
                elif error != NONE:
                    member.member_id = ""
                    self.enter(member)
            member.leave()

    def pair(self, first: str = "culprit", second: str = "company", **timeouts_ms: int) -> tuple[RawMember, RawMember]:
        """Two members of one settled generation, nobody in care. The first one leads."""
        leader, follower = self.member(first, **timeouts_ms), self.member(second, **timeouts_ms)  # type: ignore[arg-type]
        self.enter(leader)
        with ThreadPoolExecutor(1) as pool:
            joining = pool.submit(self.enter, follower)
            self.until_told(leader)
            self.enter(leader)
            joining.result(STEP_S)
        self.know(leader)
        return leader, follower

    def rebalance(self, leader: RawMember, follower: RawMember) -> None:
        """Another generation, brought about by the leader."""
        self.together(lambda: self.enter(leader), lambda: self._told(follower))

    def follow(self, member: RawMember) -> None:
        """Rejoin when told to, and stop short of asking for the assignment."""
        self.until_told(member)
        member.enter(timeout_s=STEP_S)

    def _told(self, member: RawMember) -> None:
        self.until_told(member)
        self.enter(member)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition that the violation needs."""
        deadline = time.monotonic() + STEP_S
        while not condition():
            if time.monotonic() > deadline:
                raise ViolationError(f"waited {STEP_S:.0f} s in vain: {what}")
            time.sleep(HEARTBEAT_S / 2)

    def know(self, culprit: RawMember) -> None:
        """Note a culprit's member id."""
        self.truth.member_ids.add(culprit.member_id)

    def together(self, *calls: Callable[[], object]) -> list[object]:
        with ThreadPoolExecutor(len(calls)) as pool:
            return [future.result(STEP_S) for future in [pool.submit(call) for call in calls]]

    # --- the violation ----------------------------------------------------------------------------------------------------

    def lie(self, lie: Lie) -> None:
        """From now on answers of this group are changed; the first one that is becomes the fact."""
        self._lies.tell(self.group, lie)

    def tell_truth(self) -> None:
        self._lies.end(self.group)

    def fact(self) -> None:
        """The violation is committed now."""
        self.truth.fact_us = time.time_ns() // 1000

    def note_lie(self) -> None:
        if self.truth.fact_us is None:
            self.truth.fact_us = self._lies.first_us.get(self.group)

    def until_found(self, every_s: float = HEARTBEAT_S) -> Iterator[None]:
        """One turn each so many seconds until the monitor has found it, or time is up."""
        deadline = time.monotonic() + FOUND_S
        while not self._found() and time.monotonic() < deadline and not self.over.is_set():
            yield
            time.sleep(every_s)
            self.note_lie()
        self.note_lie()
