"""The load of ``make bench``: steady traffic of many groups, cheap enough to leave the machine to what is measured.

    python -m tests.bench.load HOST:PORT TOPIC [--groups 10000] [--members 2] [--partitions 4] [--speed 1] [--behind 0]

Reads commands as JSON lines and answers each with one (:class:`Load`). Heartbeats are encoded once; what differs between two heartbeats
of a member, capture time and exchange number, is patched into them a batch at a time, and Kafka's Produce requests are put together
here: a hundredth of what a producer costs that is handed single records. Joins, commits and breaches are few and encoded when due.

The traps. *Fixed widths*: a patch must not change a length, so exchange numbers begin where msgpack writes them in four bytes. *Nothing
is sent in blocks that would flatter the model*: the requests of eight connections come before their answers, as they do on a wire. *A
reader takes what it is given in gulps, clients do not*: while frames follow the reader, they drive the clock in the data, so that the
heartbeats of a member are as far apart as a client's, and a pause shorter than all before it stays what it is, a rarity.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import queue
import socket
import struct
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from crc32c import crc32c

from coordinator_model import wire
from coordinator_model.wire.record import HEADER_NAME, Kind, MirrorRecord, pack_envelope
from tests.real.traffic import SUBSCRIPTION, breach, partition_of, tick

SESSION_MS = 1_800_000  # at the lowest rate a member's turn comes but once in a minute
FIRST_EXCHANGE = 70_000
TOGETHER = 8  #: connections whose requests come before their answers
BLOCK = 2 * TOGETHER
BLOCKS_PER_BATCH = 4  # 64 records: the offset within a batch then takes one byte
IN_FLIGHT = 16
LINGER_S = 0.01  # as a tap's producer waits for company
BREACHES_PER_S = 40
BREACH_NAMES = 4_000  # a name comes again when its finding is over: the state does not grow with time
LIVELY = 200  #: groups that commit and rebalance, beside those that only heartbeat
COMMITS_PER_S = 50
REJOINS_PER_S = 1

_BATCH = struct.Struct(">qiibIhiqqqhii")
_CRC_FROM = 21  # the checksum covers what follows it


class Clock:
    """What the capture's clock says: it may go faster than ours, and then begins behind it.

    :param speed: capture seconds in one of ours.
    :param behind_s: how far it is behind when it begins.
    """

    def __init__(self, speed: float = 1.0, behind_s: float = 0.0) -> None:
        self._speed = speed
        self._began_s = time.time()
        self._begins_s = self._began_s - behind_s

    def now_us(self) -> int:
        return int((self._begins_s + (time.time() - self._began_s) * self._speed) * 1e6)


class FrameClock:
    """A clock of the capture that frames drive, from what another says.

    :param per_s: frames in a second of the capture.
    """

    def __init__(self, load: Load, per_s: float) -> None:
        self._load = load
        self._began_us = load.clock.now_us()
        self._first = load.sent
        self._per_s = per_s

    def now_us(self) -> int:
        return self._began_us + int((self._load.sent - self._first) * 1e6 / self._per_s)


@dataclass
class Member:
    """One member of a group that does nothing but heartbeat, on a connection of its own."""

    group: str
    number: int

    @property
    def id(self) -> str:
        return f"consumer-{self.group}-{self.number}-5f0e4e0c-9d2b-4b1c-8f5e-0123456789ab"

    def record(self, kind: Kind, at_us: int, exchange: int, message: wire.Request | wire.Response, version: int) -> MirrorRecord:
        client = f"consumer-{self.group}-{self.number}"
        if isinstance(message, wire.Request):
            frame = wire.encode_request(message, api_version=version, correlation_id=exchange, client_id=client)
        else:
            frame = wire.encode_response(message, api_version=version, correlation_id=exchange)
        return MirrorRecord(
            partition=-1,
            offset=-1,
            group=self.group,
            kind=kind,
            at_us=at_us,
            cluster="orders",
            broker="1",
            connection=f"10.0.{self.number}.1:41234-10.0.0.2:9092-{self.group}",
            exchange=exchange,
            api_key=message.API_KEY,
            api_version=version,
            correlation_id=exchange,
            client_id=client,
            client_address=f"10.0.{self.number}.1:41234",
            client_software="apache-kafka-java 4.0.0",
            cut_bytes=0,
            queued_behind=0,
            frame=frame,
        )

    def exchange(
        self, at_us: int, number: int, ask: wire.Request, answer: wire.Response, version: int
    ) -> tuple[MirrorRecord, MirrorRecord]:
        return (
            self.record(Kind.REQUEST, at_us, number, ask, version),
            self.record(Kind.RESPONSE, at_us + 1_000, number, answer, version),
        )

    def heartbeat(self, at_us: int, number: int) -> tuple[MirrorRecord, MirrorRecord]:
        ask = wire.HeartbeatRequest(group_id=self.group, generation_id=1, member_id=self.id)
        return self.exchange(at_us, number, ask, wire.HeartbeatResponse(), 4)


@cache
def one_partition(number: int) -> bytes:
    """The assignment of one partition of the topic ``orders``."""
    orders = wire.ConsumerProtocolAssignmentTopicPartition(topic="orders", partitions=(number,))
    return wire.encode_assignment(wire.ConsumerProtocolAssignment(assigned_partitions=(orders,)), 0)


def round_of(members: Sequence[Member], generation: int, at_us: int, exchange: int) -> list[MirrorRecord]:
    """A rebalance of all members: every JoinGroup is asked before the first is answered, then every SyncGroup."""
    leader = members[0]
    named = {"protocol_type": "consumer", "protocol_name": "range"}
    roster = tuple(wire.JoinGroupResponseMember(member_id=member.id, metadata=SUBSCRIPTION) for member in members)
    plan = tuple(
        wire.SyncGroupRequestAssignment(member_id=member.id, assignment=one_partition(index))
        for index, member in enumerate(members)
    )
    joins, syncs = [], []
    for member, given in zip(members, plan, strict=True):
        leads = member is leader
        ask = wire.JoinGroupRequest(
            group_id=member.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id=member.id,
            protocol_type="consumer",
            protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
        )
        told = wire.JoinGroupResponse(
            generation_id=generation, leader=leader.id, member_id=member.id, members=roster if leads else (), **named
        )
        joins.append(member.exchange(at_us, exchange, ask, told, 9))
        submit = wire.SyncGroupRequest(
            group_id=member.group, generation_id=generation, member_id=member.id, assignments=plan if leads else (), **named
        )
        answer = wire.SyncGroupResponse(assignment=given.assignment, **named)
        syncs.append(member.exchange(at_us + 2_000, exchange + 1, submit, answer, 5))
    return [record for exchanges in (joins, syncs) for side in (0, 1) for record in (each[side] for each in exchanges)]


def commit_of(member: Member, generation: int, at_us: int, exchange: int) -> tuple[MirrorRecord, MirrorRecord]:
    position = wire.OffsetCommitRequestPartition(partition_index=0, committed_offset=exchange)
    ask = wire.OffsetCommitRequest(
        group_id=member.group,
        generation_id_or_member_epoch=generation,
        member_id=member.id,
        topics=(wire.OffsetCommitRequestTopic(name="orders", partitions=(position,)),),
    )
    answered = wire.OffsetCommitResponseTopic(name="orders", partitions=(wire.OffsetCommitResponsePartition(partition_index=0),))
    return member.exchange(at_us, exchange, ask, wire.OffsetCommitResponse(topics=(answered,)), 8)


# ---------------------------------------------------------------------------------------------------- Kafka's record batches


def varint(number: int) -> bytes:
    """Zigzag, as Kafka writes the lengths within a record."""
    left = number << 1
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def packed(record: MirrorRecord, position: int, envelope: bytes) -> bytes:
    """One record of a batch."""
    key = b"\x01" if record.group is None else varint(len(record.group.encode())) + record.group.encode()
    name = HEADER_NAME.encode()
    header = b"\x02" + varint(len(name)) + name + varint(len(envelope)) + envelope
    body = b"\x00\x00" + varint(position) + key + varint(len(record.frame)) + record.frame + header
    return varint(len(body)) + body


def batch_of(records: bytes, count: int, at_ms: int) -> bytes:
    """A record batch (magic 2) around packed records."""
    head = _BATCH.pack(0, len(records) + _BATCH.size - 12, 0, 2, 0, 0, count - 1, at_ms, at_ms, -1, -1, -1, count)
    checksum = crc32c(records, crc32c(head[_CRC_FROM:]))
    return b"".join((head[: _CRC_FROM - 4], checksum.to_bytes(4, "big"), head[_CRC_FROM:], records))


class Heartbeats:
    """The heartbeats of all members of one partition, packed, to be stamped and sent round and round."""

    def __init__(self, members: Sequence[Member]) -> None:
        starts, ats, numbers, positions = [0], [], [], []
        image = bytearray()
        whole = len(members) // TOGETHER * TOGETHER
        for first in range(0, whole, TOGETHER):
            pairs = [member.heartbeat(2**62, FIRST_EXCHANGE) for member in members[first : first + TOGETHER]]
            for record in (pair[side] for side in (0, 1) for pair in pairs):
                envelope = pack_envelope(record)
                raw = packed(record, 0, envelope)
                begins = len(image)
                positions.append(begins + 4)  # behind a length of two bytes, the attributes and the timestamp
                inner = begins + raw.rindex(envelope)
                ats.append(inner + envelope.index(b"\xa2at\xcf") + 4)
                frame = begins + raw.index(record.frame)
                numbers.append(
                    (
                        inner + envelope.index(b"\xa2sq\xce") + 4,
                        inner + envelope.index(b"\xa3cor\xce") + 5,
                        frame + (4 if record.kind is Kind.REQUEST else 0),
                    )
                )
                image += raw
                starts.append(len(image))
        self._image = np.frombuffer(image, np.uint8)
        self._starts = starts
        self._ats = np.array(ats)[:, None] + np.arange(8)
        self._numbers = (np.array(numbers)[:, :, None] + np.arange(4)).reshape(-1, 12)
        self._positions = np.array(positions)
        self.blocks = len(ats) // BLOCK
        self._next = 0
        self._exchange = FIRST_EXCHANGE

    def batch(self, blocks: int, now_us: int) -> tuple[bytes, int]:
        """Up to so many blocks as a record batch, with the number of its records."""
        first = self._next
        last = min(self.blocks, first + min(blocks, BLOCKS_PER_BATCH))
        chosen = slice(first * BLOCK, last * BLOCK)
        count = (last - first) * BLOCK
        at_us = now_us - count + np.arange(count)
        self._image[self._ats[chosen]] = at_us.astype(">u8").view(np.uint8).reshape(-1, 8)
        self._image[self._numbers[chosen]] = np.frombuffer(struct.pack(">I", self._exchange) * 3, np.uint8)
        self._image[self._positions[chosen]] = np.arange(0, 2 * count, 2)
        records = self._image[self._starts[chosen.start] : self._starts[chosen.stop]].tobytes()
        self._next = last
        if last == self.blocks:
            self._next = 0
            self._exchange += 1
        return batch_of(records, count, now_us // 1000), count


class Broker:
    """A connection that carries Produce requests (version 7, acknowledged by the leader), several at a time."""

    def __init__(self, address: str, topic: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._topic = topic.encode()
        self._free = threading.Semaphore(IN_FLIGHT)
        self._number = 0
        self._failure = ""
        threading.Thread(target=self._listen, daemon=True).start()

    def produce(self, batches: dict[int, bytes]) -> None:
        """Send one record batch to each of some partitions; waits when too many requests are unanswered."""
        if not self._free.acquire(timeout=60):
            raise SystemExit("the broker does not answer")
        if self._failure:
            raise SystemExit(f"the broker refused the load: {self._failure}")
        self._number += 1
        parts = [
            struct.pack(">hhih4shhiih", 0, 7, self._number, 4, b"load", -1, 1, 30_000, 1, len(self._topic)),
            self._topic,
            struct.pack(">i", len(batches)),
        ]
        for partition, batch in batches.items():
            parts += [struct.pack(">ii", partition, len(batch)), batch]
        self._socket.sendall(struct.pack(">i", sum(map(len, parts))) + b"".join(parts))

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        for _ in range(IN_FLIGHT):
            if not self._free.acquire(timeout=60):
                raise SystemExit("the broker does not answer")
        for _ in range(IN_FLIGHT):
            self._free.release()

    def _listen(self) -> None:
        stream = self._socket.makefile("rb")
        while size := stream.read(4):
            answer = stream.read(int.from_bytes(size, "big"))
            at = 10 + len(self._topic)
            count = int.from_bytes(answer[at : at + 4], "big")
            for number in range(count):
                partition, error = struct.unpack_from(">ih", answer, at + 4 + 30 * number)
                if error:
                    self._failure = f"error {error} for partition {partition}"
            self._free.release()


# ---------------------------------------------------------------------------------------------------- the load


@dataclass
class Load:
    """What is sent, and how far it is. Commands, each a JSON object with ``do``:

    ``form`` lets every group join; ``rest`` sends nothing but ticks for ``seconds``; ``steady`` sends ``rate`` frames a second for
    ``seconds``; ``follow`` keeps ``ahead`` frames before what the reader says with ``{"read": n}``, for ``seconds``, in a capture of
    ``rate`` frames a second; ``backlog`` sends ``frames`` at once.
    Between commands only the ticks go on. The answer has ``sent`` (frames so far), ``took_s`` and ``cpu_s``.
    """

    broker: Broker
    groups: int
    members: int
    partitions: int
    clock: Clock | FrameClock = field(default_factory=Clock)
    sent: int = 0
    read: int = 0
    breaches: int = 0
    _extra: dict[int, list[MirrorRecord]] = field(default_factory=lambda: defaultdict(list))
    _told: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        steady: dict[int, list[Member]] = defaultdict(list)
        for number in range(self.members):
            for group in range(self.groups):
                name = f"orders-service-{group}"
                steady[partition_of(name, self.partitions)].append(Member(name, number))
        self._steady = dict(sorted(steady.items()))
        self._heartbeats = {partition: Heartbeats(members) for partition, members in self._steady.items()}
        total = sum(each.blocks for each in self._heartbeats.values())
        self._share = {partition: each.blocks / total for partition, each in self._heartbeats.items()}
        self._lively = [[Member(f"lively-{number}", index) for index in range(self.members)] for number in range(LIVELY)]
        self._lively_at = [[1, 0] for _ in range(LIVELY)]  # generation, exchange

    def form(self) -> None:
        """Let all groups join and sync. Ticks go on, since the model takes ten seconds without any record for a loss."""
        by_group: dict[str, list[Member]] = defaultdict(list)
        for members in self._steady.values():
            for member in members:
                by_group[member.group].append(member)
        for members in by_group.values():
            self._put(round_of(members, 1, self.clock.now_us(), FIRST_EXCHANGE - 2))
            if len(self._extra[partition_of(members[0].group, self.partitions)]) >= 50:
                self.idle()
                self._send_extra(self.clock.now_us())
        for number in range(LIVELY):
            self._rebalance(number, self.clock.now_us())
        self._send_extra(self.clock.now_us())

    def steady(self, rate: float, seconds: float) -> None:
        began, before = time.time(), self.sent
        while (elapsed := time.time() - began) < seconds:
            while self._send(rate * elapsed - (self.sent - before)):
                pass
            self._accompany(elapsed)
            time.sleep(LINGER_S)

    def rest(self, seconds: float) -> None:
        began = time.time()
        while time.time() - began < seconds:
            self.idle()
            time.sleep(LINGER_S)

    def follow(self, ahead: int, seconds: float, rate: float) -> None:
        began, origin, clock = time.time(), self.sent - self.read, self.clock
        self.clock = FrameClock(self, rate)
        while (elapsed := time.time() - began) < seconds:
            while self._send(self.read + origin + ahead - self.sent):
                pass
            self._accompany(elapsed)
            time.sleep(LINGER_S)
        self.clock = clock

    def backlog(self, frames: int) -> None:
        wanted = self.sent + frames
        while self.sent < wanted:
            self._send(wanted - self.sent + BLOCK * self.partitions)
        self._accompany(0)

    def idle(self) -> None:
        """A tick to every partition, once a second."""
        now_us = self.clock.now_us()
        if self._due("tick", now_us / 1e6, 1):
            for partition in self._steady:
                self._extra[partition].append(tick(now_us, "orders"))
            self._send_extra(now_us)

    def begin(self) -> None:
        """What comes so many times a second is counted from here."""
        self._told = {"tick": self._told.get("tick", 0)}

    def _send(self, due: float) -> int:
        now_us = self.clock.now_us()
        batches, count = {}, 0
        for partition, heartbeats in self._heartbeats.items():
            blocks = int(due * self._share[partition] / BLOCK)
            if blocks > 0:
                batches[partition], records = heartbeats.batch(blocks, now_us)
                count += records
        if batches:
            self.broker.produce(batches)
            self.sent += count
        return count

    def _accompany(self, elapsed: float) -> None:
        """Ticks, breaches, commits and rebalances, as many as are due after so many seconds."""
        self.idle()
        now_us = self.clock.now_us()
        for _ in range(self._due("breach", elapsed, BREACHES_PER_S)):
            self._put(breach(self.breaches % BREACH_NAMES, now_us - 1_000))
            self.breaches += 1
        for _ in range(self._due("commit", elapsed, COMMITS_PER_S)):
            number = self._told["commit"] % LIVELY
            generation, exchange = self._lively_at[number]
            self._lively_at[number][1] += 1
            self._put(commit_of(self._lively[number][0], generation - 1, now_us - 1_000, exchange))
            self._told["commit"] += 1
        for _ in range(self._due("rejoin", elapsed, REJOINS_PER_S)):
            self._rebalance(self._told["rejoin"] % LIVELY, now_us - 3_000)
        if any(self._extra.values()):
            self._send_extra(now_us)

    def _due(self, what: str, elapsed: float, per_s: float) -> int:
        wanted, told = int(elapsed * per_s), self._told.get(what, 0)
        self._told[what] = wanted
        return 1 if what == "tick" and wanted > told else max(0, wanted - told)

    def _rebalance(self, number: int, at_us: int) -> None:
        generation, exchange = self._lively_at[number]
        self._lively_at[number] = [generation + 1, exchange + 2]
        self._put(round_of(self._lively[number], generation, at_us, exchange))

    def _put(self, records: Iterable[MirrorRecord]) -> None:
        for record in records:
            self._extra[partition_of(record.group or "", self.partitions)].append(record)

    def _send_extra(self, now_us: int) -> None:
        while any(self._extra.values()):
            batches = {}
            for partition, waiting in self._extra.items():
                some, self._extra[partition] = waiting[:64], waiting[64:]
                if some:
                    records = b"".join(packed(record, number, pack_envelope(record)) for number, record in enumerate(some))
                    batches[partition] = batch_of(records, len(some), now_us // 1000)
                    self.sent += len(some)
            self.broker.produce(batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("broker")
    parser.add_argument("topic")
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--speed", type=float, default=1.0, help="of the clock in the data")
    parser.add_argument("--behind", type=float, default=0.0, metavar="S", help="where that clock begins, before ours")
    options = parser.parse_args()
    clock = Clock(options.speed, options.behind)
    load = Load(Broker(options.broker, options.topic), options.groups, options.members, options.partitions, clock)
    commands: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            command = json.loads(line)
            if "read" in command:
                load.read = command["read"]
            else:
                commands.put(command)
        commands.put(None)

    threading.Thread(target=listen, daemon=True).start()
    actions = {"form": load.form, "rest": load.rest, "steady": load.steady, "follow": load.follow, "backlog": load.backlog}
    while True:
        try:
            command = commands.get(timeout=0.2)
        except queue.Empty:
            load.idle()
            continue
        if command is None:
            return
        began, cpu = time.time(), time.process_time()
        load.begin()
        actions[command.pop("do")](**command)
        load.broker.flush()
        print(json.dumps({"sent": load.sent, "took_s": time.time() - began, "cpu_s": time.process_time() - cpu}), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
