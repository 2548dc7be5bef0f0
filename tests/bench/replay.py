"""How fast a packet capture is replayed and what memory it takes: ``python tests/bench/replay.py [--megabytes 100]``.

Makes a capture of steady group traffic (groups that join, then heartbeats with their answers and acknowledgements), times its reading
alone (packets to mirror records) and the whole of ``rebalance-monitor replay``, and does the same with a tenth of it: the peak memory of
both must be about the same. Figures are this machine's; the share of reading in the whole is what travels.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import NamedTuple

from rich.progress import track

from coordinator_model import wire
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.mirror.captures import opened, packets
from streaming.mirror.pcap import CaptureReader
from tests.coordinator_model.conversation import ASSIGNED, SUBSCRIBED
from tests.streaming.mirror.wires import START_US, Connection, Segment, pcap

INTERVAL_US = 3_000_000


def join(line: Connection, group: str, member_id: str) -> None:
    """A group of one member forms."""
    protocols = (wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED),)
    asked = {"group_id": group, "session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000, "protocol_type": "consumer"}
    line.ask(wire.JoinGroupRequest(**asked, protocols=protocols), 9, 0)
    line.answer(wire.JoinGroupResponse(error_code=79, generation_id=-1, member_id=member_id), 9, 0)
    line.ask(wire.JoinGroupRequest(**asked, protocols=protocols, member_id=member_id), 9, 1)
    roster = (wire.JoinGroupResponseMember(member_id=member_id, metadata=SUBSCRIBED),)
    joined = {
        "generation_id": 1,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "leader": member_id,
        "member_id": member_id,
    }
    line.answer(wire.JoinGroupResponse(**joined, members=roster), 9, 1)
    assigned = (wire.SyncGroupRequestAssignment(member_id=member_id, assignment=ASSIGNED),)
    known = {"group_id": group, "generation_id": 1, "protocol_type": "consumer", "protocol_name": "range"}
    line.ask(wire.SyncGroupRequest(**known, member_id=member_id, assignments=assigned), 5, 2)
    line.answer(wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=ASSIGNED), 5, 2)


def make(path: Path, megabytes: float, groups: int) -> None:
    """Write a capture of that size."""
    made: list[Segment] = []
    members = []
    for number in range(groups):
        client = (f"10.0.{number // 250}.{number % 250 + 1}", 40_000)
        line = Connection(made, client=client, at_us=START_US + number, step_us=100).open()
        member_id = f"app-{number}-0f0e2c1e-1111-2222-3333-{number:012d}"
        join(line, f"group-{number}", member_id)
        members.append((line, f"group-{number}", member_id))
    with path.open("wb") as stream:
        stream.write(pcap(sorted(made)))
        for correlation_id in count(3):
            made.clear()
            beat(members, correlation_id)
            stream.write(pcap(made)[24:])
            if stream.tell() >= megabytes * 1e6:
                break


def beat(members: list[tuple[Connection, str, str]], correlation_id: int) -> None:
    """Every member heartbeats once, is answered, and acknowledges the answer."""
    for number, (line, group, member_id) in enumerate(members):
        line.now_us = START_US + correlation_id * INTERVAL_US + number * INTERVAL_US // len(members)
        line.ask(wire.HeartbeatRequest(group_id=group, generation_id=1, member_id=member_id), 4, correlation_id, "app")
        line.answer(wire.HeartbeatResponse(), 4, correlation_id)
        line.acknowledge(0)


class Measured(NamedTuple):
    frames: int
    wall_s: float
    cpu_s: float
    peak_mb: float


def reading(path: Path) -> Measured:
    """Packets to mirror records, nothing else."""
    frames = 0

    def take(record: MirrorRecord) -> None:
        nonlocal frames
        frames += record.kind is Kind.REQUEST or record.kind is Kind.RESPONSE

    began, cpu = time.perf_counter(), time.process_time()
    reader = CaptureReader(take)
    with path.open("rb") as stream:
        reader.read(packets(opened(stream), print))
    reader.finish()
    return Measured(frames, time.perf_counter() - began, time.process_time() - cpu, 0.0)


def replaying(path: Path, frames: int) -> Measured:
    """The whole command, as a process."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "streaming.cli", "replay", "--format", "json", str(path)]
    with tempfile.TemporaryFile() as found:
        process = subprocess.Popen(command, stdout=found, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status or found.tell():
            raise SystemExit("replay found something in healthy traffic")
    return Measured(frames, time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--groups", type=int, default=500)
    options = parser.parse_args()
    print(f"{'':24}{'frames':>10}{'frames/s':>10}{'frames/CPU s':>14}{'peak MB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in track((options.megabytes / 10, options.megabytes), description="replaying", transient=True):
            path = Path(folder) / "capture.pcap"
            make(path, megabytes, options.groups)
            read = reading(path)
            for what, measured in (
                (f"{megabytes:.0f} MB, read", read),
                (f"{megabytes:.0f} MB, replay", replaying(path, read.frames)),
            ):
                rates = f"{measured.frames / measured.wall_s:10,.0f}{measured.frames / measured.cpu_s:14,.0f}"
                peak = f"{measured.peak_mb:9,.0f}" if measured.peak_mb else ""
                print(f"{what:24}{measured.frames:10,}{rates}{peak}")


if __name__ == "__main__":
    main()
