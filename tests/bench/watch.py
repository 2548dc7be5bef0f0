"""``watch`` on packets of the loopback device, and on the mirror topic: cores, memory, latency, and seconds to the first group.

python -m tests.bench.watch --frames 1000 --groups 500

The packets are those of clients and a broker that only exchange frames, at a steady pace. Latency is from the frame that completes a
rebalance to the line that says so. The Spark job at the same load is what ``make bench`` measures.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.demo.broker import Broker, free_port
from streaming.kafka.mirror_topic import MirrorTopic
from streaming.mirror.producer import KafkaSink
from tests.real.traffic import Group, tick

JOIN_EVERY_S = 0.2

Send = Callable[[Sequence[MirrorRecord]], None]


class Measured(NamedTuple):
    """One run."""

    cores: float
    mib: float
    latencies_s: list[float]
    first_s: float
    sent_per_s: float


class Wire:
    """Connections of clients with a broker, on loopback."""

    def __init__(self) -> None:
        self.port = free_port()
        self._server = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._pairs: dict[str, tuple[socket.socket, socket.socket]] = {}

    def send(self, records: Sequence[MirrorRecord]) -> None:
        """Exchange frames of a group on its connection."""
        for record in records:
            if record.kind not in {Kind.REQUEST, Kind.RESPONSE}:
                continue
            client, broker = self._pairs.get(record.connection) or self._connected(record.connection)
            sender, receiver = (client, broker) if record.kind is Kind.REQUEST else (broker, client)
            sender.sendall(len(record.frame).to_bytes(4, "big") + record.frame)
            receiver.recv(1 << 16)

    def _connected(self, name: str) -> tuple[socket.socket, socket.socket]:
        client = socket.create_connection(("127.0.0.1", self.port))
        pair = self._pairs[name] = (client, self._server.accept()[0])
        for end in pair:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return pair


class Lines:
    """What a watch prints: when each group was first served, and how long after its frame that was said."""

    def __init__(self, stream: Iterator[bytes]) -> None:
        self.latencies_s: list[float] = []
        self.first = threading.Event()
        self._stream = stream
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._stream:
            now_s, said = time.time(), json.loads(line)
            if said.get("kind") == "rebalance_finished":
                self.first.set()
                at_s = time.mktime(time.strptime(said["at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone + float(said["at"][19:26])
                self.latencies_s.append(now_s - at_s)


def run(options: Sequence[str], send: Send, frames: int, groups: int, seconds: float) -> Measured:
    """Start a watch, and let so many groups exchange so many frames a second."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "streaming.cli", "watch", "--state", str(Path(folder) / "state"), "--web", "127.0.0.1:0"]
        began_s = time.monotonic()
        with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            lines = Lines(iter(process.stdout))
            for number in itertools.count():
                _join(Group(f"first-{number}"), send)
                if lines.first.wait(0.2):
                    break
            first_s = time.monotonic() - began_s
            members = [Group(f"steady-{number}") for number in range(groups)]
            for member in members:
                _join(member, send)
            time.sleep(1.0)
            lines.latencies_s.clear()
            watched = psutil.Process(process.pid)
            before, since_s = sum(watched.cpu_times()[:2]), time.monotonic()
            sent = _pace(members, send, frames, seconds)
            took_s = time.monotonic() - since_s
            cores = (sum(watched.cpu_times()[:2]) - before) / took_s
            time.sleep(1.0)
            mib = watched.memory_info().rss / 2**20
            process.send_signal(2)
            process.wait(30)
    return Measured(cores, mib, sorted(lines.latencies_s), first_s, sent / took_s)


def _join(group: Group, send: Send) -> None:
    now_us = time.time_ns() // 1000
    send([*group.join(now_us), *group.sync(now_us + 1)])


def _pace(members: Sequence[Group], send: Send, frames: int, seconds: float) -> int:
    began_s, sent, turn, joined, ticked = time.monotonic(), 0, itertools.cycle(members), 0, 0
    while (passed_s := time.monotonic() - began_s) < seconds:
        while sent < frames * passed_s:
            send(next(turn).heartbeat(time.time_ns() // 1000))
            sent += 2
        if passed_s > joined * JOIN_EVERY_S:
            joined += 1
            _join(Group(f"new-{os.getpid()}-{joined}"), send)
        if passed_s > ticked:
            ticked += 1
            send([tick(time.time_ns() // 1000)])
        time.sleep(0.002)
    return sent


def report(name: str, frames: int, groups: int, measured: Measured) -> None:
    """Print a line of the table."""
    latencies = measured.latencies_s or [float("nan")]
    p50, p99 = statistics.median(latencies), latencies[min(len(latencies) - 1, int(len(latencies) * 0.99))]
    print(
        f"{name:<8} {frames:>7,} {groups:>7,} {measured.sent_per_s:>9,.0f} {measured.cores:>7.3f} {measured.mib:>6.0f} "
        f"{p50:>7.2f} {p99:>7.2f} {measured.first_s:>7.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="*", default=[10, 100, 1_000, 5_000])
    parser.add_argument("--groups", type=int, nargs="*", default=[30, 500])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--inputs", nargs="*", default=["packets", "topic"])
    wanted = parser.parse_args()
    print("input   frames/s  groups    sent/s   cores    MiB   p50 s   p99 s  first s")
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker()) if "topic" in wanted.inputs else None
        for groups, frames, name in itertools.product(wanted.groups, wanted.frames, wanted.inputs):
            if name == "packets":
                wire = Wire()
                options, send = ["-i", "lo", "--port", str(wire.port)], wire.send
            else:
                assert broker is not None
                topic = f"mirror-{groups}-{frames}"
                sink = KafkaSink({"bootstrap.servers": broker.internal}, topic=topic, wanted=MirrorTopic(4, -1, 1))
                stack.callback(sink.close, 5)
                options = ["--bootstrap-server", broker.internal, "--topic", topic, "--last", "0"]

                def send(records: Sequence[MirrorRecord], sink: KafkaSink = sink) -> None:
                    for record in records:
                        sink.write(record)

            report(name, frames, groups, run(options, send, frames, groups, wanted.seconds))


if __name__ == "__main__":
    main()
