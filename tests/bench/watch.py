"""``watch`` on packets of the loopback device and on the mirror topic, and the Spark job: cores, memory, latency, seconds to the first group.

python -m tests.bench.watch --frames 1000 --groups 500 --inputs packets

The packets are those of clients and a broker that only exchange frames, at a steady pace; the topic gets the same as records. Beside it a
group is new five times a second and one breaks the protocol each second, so that page and alerts have something to do. Latency is from the
frame that completes a group's first rebalance to the page that shows the group. Memory is resident, of all processes together; of the
job's too: driver, JVM, workers and the page. What is lost are packets, as the watch says.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import psutil
import requests

from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.demo.broker import Broker, free_port
from streaming.kafka.mirror_topic import MirrorTopic
from streaming.mirror.producer import KafkaSink
from tests.real.monitor_process import MonitorProcess
from tests.real.traffic import Group, breach, tick

JOIN_EVERY_S = 0.2
BREACH_EVERY_S = 1.0
PARTITIONS = 4
JOB_FRAMES, JOB_GROUPS = 1_000, 500
MOST_FRAMES = 20_000
CLI = (sys.executable, "-m", "streaming.cli")

Send = Callable[[Sequence[MirrorRecord]], None]


class Measured(NamedTuple):
    """One run."""

    cores: float
    mib: float
    latencies_s: list[float]
    first_s: float
    sent_per_s: float
    alerts: int
    lost: int


class Running(NamedTuple):
    """What is measured."""

    processes: list[int]
    page: str
    lost: Callable[[], int]


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

    def close(self) -> None:
        for end in (*itertools.chain(*self._pairs.values()), self._server):
            end.close()

    def _connected(self, name: str) -> tuple[socket.socket, socket.socket]:
        client = socket.create_connection(("127.0.0.1", self.port))
        pair = self._pairs[name] = (client, self._server.accept()[0])
        for end in pair:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return pair


class Steady(Group):
    """A group that only heartbeats: encoded once, since what differs is where it stands."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._beat: list[MirrorRecord] | None = None

    def heartbeat(self, at_us: int) -> list[MirrorRecord]:
        if self._beat is None:
            self._beat = super().heartbeat(at_us)
            return self._beat
        number = self.exchange
        self.exchange += 1
        written = number.to_bytes(4, "big")
        ask, answer = self._beat
        return [
            ask._replace(at_us=at_us, exchange=number, correlation_id=number, frame=ask.frame[:4] + written + ask.frame[8:]),
            answer._replace(at_us=at_us + 1, exchange=number, correlation_id=number, frame=written + answer.frame[4:]),
        ]


class Newcomers:
    """Groups that are new, and how long after their first rebalance the page shows each."""

    def __init__(self, send: Send) -> None:
        self.latencies_s: list[float] = []
        self.seen = threading.Event()
        self._send = send
        self._names = itertools.count()
        self._joined_s: dict[str, float] = {}

    def join(self) -> None:
        name = f"new-{os.getpid()}-{next(self._names)}"
        now_us = time.time_ns() // 1000
        group = Group(name)
        self._send([*group.join(now_us), *group.sync(now_us + 1)])
        self._joined_s[name] = time.monotonic()

    def look(self, page: str) -> None:
        """Look at the page as a browser does, in a thread, as long as there is one."""
        threading.Thread(target=self._look, args=(page,), daemon=True).start()

    def _look(self, page: str) -> None:
        mark = re.compile(rf"new-{os.getpid()}-\d+")
        with (
            contextlib.suppress(requests.RequestException),
            requests.get(f"{page}stream?view=/?text=new-", stream=True, timeout=600) as answer,
        ):
            for line in answer.iter_lines(chunk_size=1):
                now_s = time.monotonic()
                for name in set(mark.findall(line.decode())):
                    if (joined_s := self._joined_s.pop(name, None)) is not None:
                        self.latencies_s.append(now_s - joined_s)
                        self.seen.set()


class Receiver(ThreadingHTTPServer):
    """Takes alerts."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taken)
        self.taken = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Taken(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Receiver)
        self.server.taken += 1
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def _page_of(process: subprocess.Popen[bytes], said: Path) -> str:
    while not (found := re.search(r"the page is at (\S+)", said.read_text())):
        assert process.poll() is None, said.read_text()
        time.sleep(0.01)
    return found[1]


@contextlib.contextmanager
def watch(options: Sequence[str], folder: Path, receiver: Receiver) -> Iterator[Running]:
    """A watch with page and alerts."""
    (folder / "url").write_text(receiver.url)
    (folder / "monitor.toml").write_text(f'[notify.webhook.chat]\nurl_file = "{folder / "url"}"\n')
    said = folder / "said"
    command = [*CLI, "watch", "--state", str(folder / "state"), "--web", "127.0.0.1:0", "--config", str(folder / "monitor.toml")]
    with said.open("wb") as stderr, subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=stderr) as process:

        def lost() -> int:
            return sum(int(one.replace(",", "")) for one in re.findall(r"([\d,]+) packets were dropped", said.read_text()))

        try:
            yield Running([process.pid], _page_of(process, said), lost)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


@contextlib.contextmanager
def job(broker: Broker, topic: str, folder: Path) -> Iterator[Running]:
    """The Spark job and its page."""
    monitor = MonitorProcess(folder, broker.internal, "job", mirror=topic, quality={"enabled": False}).start()
    said = folder / "said"
    command = [*CLI, "web", "--config", str(monitor.config), "--listen", "127.0.0.1:0"]
    try:
        with said.open("wb") as stderr, subprocess.Popen(command, stderr=stderr) as page:
            try:
                assert monitor.process is not None
                yield Running([monitor.process.pid, page.pid], _page_of(page, said), lambda: 0)
            finally:
                page.send_signal(signal.SIGINT)
                page.wait(60)
    finally:
        monitor.stop()


def run(
    starts: contextlib.AbstractContextManager[Running], send: Send, receiver: Receiver, *, frames: int, groups: int, seconds: float
) -> Measured:
    """Start what is measured, and let so many groups exchange so many frames a second."""
    began_s, newcomers, alerts = time.monotonic(), Newcomers(send), receiver.taken
    with starts as running:
        newcomers.look(running.page)
        while not newcomers.seen.wait(0.2):
            newcomers.join()
            send([tick(time.time_ns() // 1000)])
        first_s = time.monotonic() - began_s
        members = [Steady(f"steady-{number}") for number in range(groups)]
        for member in members:
            now_us = time.time_ns() // 1000
            send([*member.join(now_us), *member.sync(now_us + 1)])
        time.sleep(2.0)
        newcomers.latencies_s.clear()
        before, since_s = _cpu_s(running), time.monotonic()
        sent = _pace(members, newcomers, send, frames, seconds)
        took_s = time.monotonic() - since_s
        cores = (_cpu_s(running) - before) / took_s
        time.sleep(2.0)
        mib = sum(process.memory_info().rss for process in _processes(running)) / 2**20
        lost = running.lost()
    return Measured(cores, mib, sorted(newcomers.latencies_s), first_s, sent / took_s, receiver.taken - alerts, lost)


def _processes(running: Running) -> Iterator[psutil.Process]:
    for pid in running.processes:
        process = psutil.Process(pid)
        yield from (process, *process.children(recursive=True))


def _cpu_s(running: Running) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in _processes(running))


def _pace(members: Sequence[Steady], newcomers: Newcomers, send: Send, frames: int, seconds: float) -> int:
    began_s, sent, turn, joined, ticked, broken = time.monotonic(), 0, itertools.cycle(members), 0, 0, 0
    while (passed_s := time.monotonic() - began_s) < seconds:
        while sent < frames * passed_s and time.monotonic() - began_s < seconds:
            send(next(turn).heartbeat(time.time_ns() // 1000))
            sent += 2
        if passed_s > joined * JOIN_EVERY_S:
            joined += 1
            newcomers.join()
        if passed_s > broken * BREACH_EVERY_S:
            broken += 1
            send(breach(broken, time.time_ns() // 1000))
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
        f"{name:<8} {frames:>8,} {groups:>7,} {measured.sent_per_s:>9,.0f} {measured.cores:>7.3f} {measured.mib:>6.0f} "
        f"{p50:>7.2f} {p99:>7.2f} {measured.first_s:>7.1f} {measured.alerts:>7,} {measured.lost:>6,}",
        flush=True,
    )


def _topic(broker: Broker, topic: str, stack: contextlib.ExitStack) -> Send:
    sink = KafkaSink({"bootstrap.servers": broker.internal}, topic=topic, wanted=MirrorTopic(PARTITIONS, -1, 1))
    stack.callback(sink.close, 5)

    def send(records: Sequence[MirrorRecord]) -> None:
        for record in records:
            sink.write(record)

    return send


def measure(name: str, frames: int, groups: int, seconds: float, broker: Broker | None) -> Measured:
    """Measure one input at one load."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        receiver = stack.enter_context(Receiver())
        stack.callback(receiver.shutdown)
        if name == "packets":
            wire = stack.enter_context(contextlib.closing(Wire()))
            starts = watch(["-i", "lo", "--port", str(wire.port)], folder, receiver)
            return run(starts, wire.send, receiver, frames=frames, groups=groups, seconds=seconds)
        assert broker is not None
        topic = f"mirror-{name}-{groups}-{frames}"
        send = _topic(broker, topic, stack)
        options = ["--bootstrap-server", broker.internal, "--topic", topic, "--last", "0"]
        starts = watch(options, folder, receiver) if name == "topic" else job(broker, topic, folder)
        return run(starts, send, receiver, frames=frames, groups=groups, seconds=seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--frames", type=int, nargs="*", default=[10, 100, 1_000, 5_000], help="a second; 20,000 of packets come last"
    )
    parser.add_argument("--groups", type=int, nargs="*", default=[30, 500])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--inputs", nargs="*", choices=["packets", "topic", "job"], default=["packets", "topic", "job"])
    wanted = parser.parse_args()
    print("input    frames/s  groups    sent/s   cores    MiB   p50 s   p99 s  first s  alerts   lost")
    loads = list(itertools.product(wanted.groups, wanted.frames, [one for one in wanted.inputs if one != "job"]))
    if wanted.frames == parser.get_default("frames"):
        loads += [(JOB_GROUPS, MOST_FRAMES, one) for one in wanted.inputs if one == "packets"]
    loads += [(JOB_GROUPS, JOB_FRAMES, one) for one in wanted.inputs if one == "job"]
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker()) if {"topic", "job"} & {*wanted.inputs} else None
        for groups, frames, name in loads:
            report(name, frames, groups, measure(name, frames, groups, wanted.seconds, broker))


if __name__ == "__main__":
    main()
