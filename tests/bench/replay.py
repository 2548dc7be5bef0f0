"""How fast a packet capture is replayed and what memory it takes: ``make bench-replay ARGS="--megabytes 100"``.

Makes captures of 500 groups of one to three members that join, heartbeat every 3 s and rebalance every 10 minutes; in the second kind
they also commit three positions every 5 s, as clients that commit by themselves do. The third kind is mostly produce and fetch, in
segments of 1,448 bytes. Measures the reading alone (packets to mirror records), the whole of ``rebalance-monitor replay``, and tshark,
where it is installed, which dissects the same capture and prints API and group of each frame.

Figures are this machine's, and of what else runs on it: the ratio to tshark travels, absolute figures do not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_model import wire
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.mirror.pcap.capture_reader import CaptureReader
from streaming.mirror.pcap.files import opened, packets
from tests.bench.usage import loop_ns
from tests.coordinator_model.conversation import assignment, subscription
from tests.streaming.mirror.wires import START_US, Connection, Segment, pcap

SUBSCRIBED = subscription("orders")
_FILE_HEADER = 24

HEARTBEAT_S, COMMIT_S, REBALANCE_S = 3, 5, 600
"""How often a member heartbeats and commits, Kafka's defaults, and a group rebalances because its leader joins again."""

SECOND_US = 1_000_000
JOIN, SYNC, HEARTBEAT, COMMIT = 9, 5, 4, 8
"""The versions that are spoken."""


class Member:
    """A consumer with the connection on which it talks to its coordinator."""

    def __init__(self, packets: list[Segment], number: int, group: str, partitions: range) -> None:
        self.group = group
        self.number = number
        self.partitions = partitions
        self.assignment = assignment(orders=tuple(partitions))
        self.id = f"app-{number}-0f0e2c1e-1111-2222-3333-{number:012d}"
        client = (f"10.0.{number // 250}.{number % 250 + 1}", 40_000)
        self.line = Connection(packets, client=client, at_us=START_US + number, step_us=100).open()
        self.correlation_id = 0
        self.position = 0
        self.named: dict[str, Any] = {}

    def exchange(self, asked: Any, answered: Any, version: int) -> None:
        """A request, its answer and the acknowledgement of that."""
        self.ask(asked, version)
        self.answer(answered, version)

    def ask(self, body: Any, version: int) -> None:
        self.line.ask(body, version, self.correlation_id, "app")

    def answer(self, body: Any, version: int) -> None:
        self.line.answer(body, version, self.correlation_id)
        self.line.acknowledge(0)
        self.correlation_id += 1

    def heartbeat(self, error_code: int = 0) -> None:
        self.exchange(wire.HeartbeatRequest(**self.named), wire.HeartbeatResponse(error_code=error_code), HEARTBEAT)

    def commit(self) -> None:
        """Three partitions of a topic, a little further on than before."""
        self.position += 100
        asked = wire.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.named["generation_id"],
            member_id=self.id,
            topics=(
                wire.OffsetCommitRequestTopic(
                    name="orders",
                    partitions=tuple(
                        wire.OffsetCommitRequestPartition(partition_index=index, committed_offset=self.position + index)
                        for index in self.partitions
                    ),
                ),
            ),
        )
        answered = wire.OffsetCommitResponse(
            topics=(
                wire.OffsetCommitResponseTopic(
                    name="orders",
                    partitions=tuple(wire.OffsetCommitResponsePartition(partition_index=index) for index in self.partitions),
                ),
            )
        )
        self.exchange(asked, answered, COMMIT)


class Group:
    """One to three members, the first of which leads."""

    def __init__(self, packets: list[Segment], number: int) -> None:
        self.name = f"group-{number}"
        self.generation = 0
        self.members = [
            Member(packets, number * 3 + index, self.name, range(index * 3, index * 3 + 3)) for index in range(1 + number % 3)
        ]
        for member in self.members:
            member.exchange(self._join(), wire.JoinGroupResponse(error_code=79, generation_id=-1, member_id=member.id), JOIN)

    def rebalance(self, at_us: int) -> None:
        """Its leader asks to join anew, the others are told at their next heartbeat, and each is assigned partitions."""
        self.generation += 1
        leader, *others = self.members
        for index, member in enumerate(self.members):
            member.line.now_us = at_us + index * 1_000
        leader.ask(self._join(leader.id), JOIN)
        for member in others:
            if member.named:
                member.heartbeat(error_code=27)
            member.ask(self._join(member.id), JOIN)
        roster = tuple(wire.JoinGroupResponseMember(member_id=member.id, metadata=SUBSCRIBED) for member in self.members)
        joined = {"generation_id": self.generation, "protocol_type": "consumer", "protocol_name": "range", "leader": leader.id}
        for index, member in enumerate(self.members):
            member.line.now_us = at_us + 20_000 + index * 1_000
            known = roster if member is leader else ()
            member.answer(wire.JoinGroupResponse(**joined, member_id=member.id, members=known), JOIN)
        for index, member in enumerate(self.members):
            member.named = {"group_id": self.name, "generation_id": self.generation, "member_id": member.id}
            plan = tuple(wire.SyncGroupRequestAssignment(member_id=one.id, assignment=one.assignment) for one in self.members)
            asked = wire.SyncGroupRequest(
                **member.named, protocol_type="consumer", protocol_name="range", assignments=plan if member is leader else ()
            )
            told = wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=member.assignment)
            member.line.now_us = at_us + 40_000 + index * 1_000
            member.exchange(asked, told, SYNC)

    def _join(self, member_id: str = "") -> wire.JoinGroupRequest:
        protocols = (wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED),)
        return wire.JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            protocol_type="consumer",
            protocols=protocols,
            member_id=member_id,
        )


def make(path: Path, megabytes: float, groups: int, commit_s: int) -> Counter[str]:
    """Write a capture of that size; gives what it holds. ``commit_s`` of 0: nobody commits."""
    made: list[Segment] = []
    held: Counter[str] = Counter()
    crowd = [Group(made, number) for number in range(groups)]
    with path.open("wb") as stream:
        stream.write(pcap(()))
        for second in count(1):
            for number, group in enumerate(crowd):
                at_us = START_US + second * SECOND_US + number * SECOND_US // 2 // groups
                if second == 1 or (second + number) % REBALANCE_S == 0:
                    group.rebalance(at_us)
                    held["rebalances"] += 1
                    continue
                for member in group.members:
                    at_us += SECOND_US // 8  # one member after the other, and what it commits behind its heartbeat
                    if (second + member.number) % HEARTBEAT_S == 0:
                        member.line.now_us = at_us
                        member.heartbeat()
                        held["heartbeats"] += 1
                    if commit_s and (second + member.number) % commit_s == 0:
                        member.line.now_us = at_us + SECOND_US // 16
                        member.commit()
                        held["commits"] += 1
            made.sort()
            stream.write(pcap(made)[_FILE_HEADER:])
            made.clear()
            if stream.tell() >= megabytes * 1e6:
                return held
    raise AssertionError


def make_data(path: Path, megabytes: float, groups: int) -> Counter[str]:
    """Write a capture that is mostly produce and fetch, beside groups that heartbeat."""
    made: list[Segment] = []
    held: Counter[str] = Counter()
    crowd = [Group(made, number) for number in range(groups)]
    records = bytes(range(256)) * (DATA_BYTES // 256)
    fetched = response_of_fetch(records)
    producer, consumer = (
        Connection(made, client=(f"10.9.0.{number}", 41_000), at_us=START_US, mss=1_448, step_us=20).open() for number in (1, 2)
    )
    with path.open("wb") as stream:
        stream.write(pcap(()))
        for second in count(1):
            at_us = START_US + second * SECOND_US
            for number, group in enumerate(crowd):
                if second == 1:
                    group.rebalance(at_us + number * 1_000)
                    continue
                for member in group.members:
                    if (second + member.number) % HEARTBEAT_S == 0:
                        member.line.now_us = at_us + number * 1_000
                        member.heartbeat()
                        held["heartbeats"] += 1
            for exchange in range(DATA_EXCHANGES):
                number = (second * DATA_EXCHANGES + exchange).to_bytes(4, "big")
                producer.now_us = max(producer.now_us, at_us)
                producer.client(request_of_produce(number, records))
                producer.broker(len(number + PRODUCED).to_bytes(4, "big") + number + PRODUCED)
                consumer.now_us = max(consumer.now_us, at_us)
                consumer.client(request_of_fetch(number))
                consumer.broker(len(number + fetched).to_bytes(4, "big") + number + fetched)
                held["produce and fetch"] += 2
            made.sort()
            stream.write(pcap(made)[_FILE_HEADER:])
            made.clear()
            if stream.tell() >= megabytes * 1e6:
                return held
    raise AssertionError


DATA_BYTES, DATA_EXCHANGES = 65_536, 20
PRODUCED = (
    bytes.fromhex("00000001 0006") + b"orders" + bytes.fromhex("00000001 00000000 0000 0000000000000000 ffffffffffffffff 00000000")
)
"""The body of a Produce v3 response: one partition, no error."""


def request_of_produce(correlation_id: bytes, records: bytes) -> bytes:
    """Produce v3, acks=1, one partition."""
    header = bytes.fromhex("0000 0003") + correlation_id + b"\0\3app"
    body = bytes.fromhex("ffff 0001 00007530 00000001 0006") + b"orders" + bytes.fromhex("00000001 00000000")
    frame = header + body + len(records).to_bytes(4, "big") + records
    return len(frame).to_bytes(4, "big") + frame


def request_of_fetch(correlation_id: bytes) -> bytes:
    """Fetch v4, one partition."""
    header = bytes.fromhex("0001 0004") + correlation_id + b"\0\3app"
    body = bytes.fromhex("ffffffff 000001f4 00000001 03200000 00 00000001 0006") + b"orders"
    frame = header + body + bytes.fromhex("00000001 00000000 0000000000000000 00100000")
    return len(frame).to_bytes(4, "big") + frame


def response_of_fetch(records: bytes) -> bytes:
    """The body of a Fetch v4 response: one partition, no error."""
    head = bytes.fromhex("00000000 00000001 0006") + b"orders" + bytes.fromhex("00000001 00000000 0000")
    return head + bytes.fromhex("0000000000000000 0000000000000000 ffffffff") + len(records).to_bytes(4, "big") + records


class Measured(NamedTuple):
    frames: int
    wall_s: float
    cpu_s: float
    peak_mb: float


class Taken:
    """Counts frames."""

    def __init__(self) -> None:
        self.frames = 0

    def record(self, record: MirrorRecord) -> None:
        self.frames += record.kind is Kind.REQUEST or record.kind is Kind.RESPONSE


def reading(path: Path) -> Measured:
    """Packets to mirror records, nothing else."""
    taken = Taken()
    began, cpu = time.perf_counter(), time.process_time()
    reader = CaptureReader(taken.record)
    with path.open("rb") as stream:
        reader.read(packets(opened(stream), print))
    reader.finish()
    return Measured(taken.frames, time.perf_counter() - began, time.process_time() - cpu, 0.0)


def replaying(path: Path, frames: int) -> Measured:
    """The whole command, as a process; its modules are compiled, as those of an installed command are."""
    command = [sys.executable, "-m", "streaming.cli", "replay", "--format", "json"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([*command, os.devnull], env=environment, capture_output=True, check=False)
    began = time.perf_counter()
    with tempfile.TemporaryFile() as found:
        process = subprocess.Popen([*command, str(path)], stdout=found, stderr=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        if status or found.tell():
            raise SystemExit("replay found something in healthy traffic")
    return Measured(frames, time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def dissecting(path: Path, frames: int) -> Measured:
    """tshark, which dissects every Kafka frame and prints its API and group."""
    fields = ["-T", "fields", "-e", "kafka.api_key", "-e", "kafka.consumer_group"]
    command = ["tshark", "-n", "-r", str(path), "-d", "tcp.port==9092,kafka", *fields]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("tshark ended with an error")
    return Measured(frames, time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--groups", type=int, default=500)
    options = parser.parse_args()
    print(f"{'':34}{'frames':>10}{'frames/CPU s':>14}{'MB/CPU s':>10}{'peak MB':>9}{'loop ns':>9}", flush=True)
    makers = {
        "heartbeats": lambda path, size: make(path, size, options.groups, 0),
        "heartbeats, commits": lambda path, size: make(path, size, options.groups, COMMIT_S),
        "produce, fetch": lambda path, size: make_data(path, size, options.groups // 50),
    }
    for kind, maker in makers.items():
        for megabytes in (options.megabytes / 10, options.megabytes):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "capture.pcap"
                held = maker(path, megabytes)
                size_mb = path.stat().st_size / 1e6
                read = reading(path)
                measured = {"read": read, "replay": replaying(path, read.frames)}
                if shutil.which("tshark"):
                    measured["tshark"] = dissecting(path, read.frames)
                for what, figures in measured.items():
                    rates = f"{figures.frames / figures.cpu_s:14,.0f}{size_mb / figures.cpu_s:10,.1f}"
                    peak = f"{figures.peak_mb:9,.0f}" if figures.peak_mb else " " * 9
                    print(
                        f"{f'{kind}, {megabytes:.0f} MB, {what}':34}{figures.frames:10,}{rates}{peak}{loop_ns():9.0f}", flush=True
                    )
                if "tshark" in measured:
                    ratio = measured["tshark"].cpu_s / measured["replay"].cpu_s
                    print(f"    replay takes 1/{ratio:.2f} of tshark's CPU time", flush=True)
        print("    exchanges: " + ", ".join(f"{count:,} {name}" for name, count in held.items()), flush=True)


if __name__ == "__main__":
    main()
