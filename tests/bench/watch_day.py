"""A day of traffic in time-lapse through a pipe to ``watch``: its memory must be level in the last third. ``make bench-day``.

python -m tests.bench.watch_day [--hours 24] [--frames 1000] [--groups 500]

The day goes by as fast as watch reads: it is the clock of the packets that runs faster, and nothing is ever dropped in a pipe. Beside steady
heartbeats one of a thousand groups comes and goes each second on a connection of its own, one of two hundred breaks the protocol each ten
seconds, and a steady group joins anew each five. Page, alerts and the records of ``--save`` are on. Ends with status 1 if memory grew.

Names come again, because a group that was seen once is known for a day (``forget_group_ms``). What the page keeps of the past is full
after four hours, so less than twelve show nothing.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import psutil

from coordinator_model.wire.record import Kind, MirrorRecord
from tests.bench.watch import CLI, Receiver, Steady
from tests.real.traffic import Group, breach

PORT = 9092
RAW_IP = 101
SYN, ACK, FIN = 0x02, 0x10, 0x01
CLIENT, BROKER = 1, 2
ONCE, BREACHES = 1_000, 200
SAMPLES = 90
TOLERATED = 0.03
"""How much more memory at the end than in the middle third is no growth: what a page holds of the last minute swings."""


class Pcap:
    """Packets of connections, each with a client of its own, into a stream.

    :param stream: gets the packets of a second together.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lines: dict[str, list[int]] = {}  # connection → number, next sequence numbers of client and broker
        self._numbers = itertools.count(1)
        self._out = bytearray(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, RAW_IP))

    def send(self, records: list[MirrorRecord]) -> None:
        for record in records:
            line = self._lines.get(record.connection) or self._opened(record.connection, record.at_us)
            self._packet(
                record.at_us,
                line,
                CLIENT if record.kind is Kind.REQUEST else BROKER,
                ACK,
                len(record.frame).to_bytes(4, "big") + record.frame,
            )

    def close(self, name: str, at_us: int) -> None:
        """End a connection in good order."""
        line = self._lines.pop(name)
        for side in (CLIENT, BROKER):
            self._packet(at_us, line, side, ACK | FIN, b"")
            line[side] += 1
        self._packet(at_us, line, CLIENT, ACK, b"")

    def flush(self) -> None:
        self._stream.write(self._out)
        self._stream.flush()
        self._out.clear()

    def _opened(self, name: str, at_us: int) -> list[int]:
        line = self._lines[name] = [next(self._numbers), 1, 1]
        self._packet(at_us, [line[0], 0, 0], CLIENT, SYN, b"")
        self._packet(at_us, [line[0], 1, 0], BROKER, SYN | ACK, b"")
        return line

    def _packet(self, at_us: int, line: list[int], side: int, flags: int, data: bytes) -> None:
        number, client_next, broker_next = line
        client, broker = struct.pack(">I", 0x0A010000 + number // 20_000 % 65_536), b"\x0a\x00\x00\x01"
        ports = (10_000 + number % 20_000, PORT)
        if side == BROKER:
            client, broker, ports = broker, client, ports[::-1]
        sequence, acknowledged = (client_next, broker_next) if side == CLIENT else (broker_next, client_next)
        size = 40 + len(data)
        self._out += struct.pack("<IIII", at_us // 1_000_000, at_us % 1_000_000, size, size)
        self._out += struct.pack(">BxHxxxxBBxx4s4s", 0x45, size, 64, 6, client, broker)
        self._out += struct.pack(">HHIIBBHxxxx", *ports, sequence & 0xFFFFFFFF, acknowledged & 0xFFFFFFFF, 0x50, flags, 65_535)
        self._out += data
        line[side] += len(data)


def seconds(out: Pcap, hours: float, frames: int, groups: int) -> Iterator[None]:
    """Write the packets of one second after another; the last is now."""
    steady = [Steady(f"steady-{number}") for number in range(groups)]
    turn, length = itertools.cycle(steady), int(hours * 3600)
    began_us = (int(time.time()) - length) * 1_000_000
    for group in steady:
        out.send([*group.join(began_us), *group.sync(began_us + 2_000)])
    for second in range(1, length):
        at_us = began_us + second * 1_000_000
        step_us = 2_000_000 // frames
        for number in range(frames // 2):
            out.send(next(turn).heartbeat(at_us + number * step_us))
        once = Group(f"once-{second % ONCE}")
        once_line = once.join(at_us)[0].connection
        out.send([*once.join(at_us), *once.sync(at_us + 2_000)])
        out.close(once_line, at_us + 900_000)
        if second % 10 == 0:
            broken = breach(second // 10 % BREACHES, at_us)
            out.send(broken)
            out.close(broken[0].connection, at_us + 900_000)
        if second % 5 == 0:
            group = steady[second // 5 % groups]
            out.send([*group.join(at_us + 500_000), *group.sync(at_us + 502_000)])
        out.flush()
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--frames", type=int, default=1_000, help="a second")
    parser.add_argument("--groups", type=int, default=500)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Receiver() as receiver:
        folder = Path(name)
        (folder / "url").write_text(receiver.url)
        (folder / "monitor.toml").write_text(f'[notify.webhook.chat]\nurl_file = "{folder / "url"}"\n')
        options = [
            "--web",
            "127.0.0.1:0",
            "--config",
            str(folder / "monitor.toml"),
            "--save",
            str(folder / "kept"),
            "--save-mib",
            "64",
        ]
        command = [*CLI, "watch", "-", "--state", str(folder / "state"), *options]
        said = folder / "said"  # a line for each alert
        with (
            said.open("wb") as stderr,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stderr) as process,
        ):
            assert process.stdin is not None
            samples = list(_sampled(process.pid, Pcap(process.stdin), wanted))
            process.stdin.close()
            status = process.wait(120)
        receiver.shutdown()
        if status:
            print(said.read_text()[-2_000:])
    third = len(samples) // 3
    first, middle, last = (statistics.median(samples[at : at + third]) for at in (0, third, 2 * third))
    print(f"MiB in the three thirds: {first:.1f} {middle:.1f} {last:.1f}; alerts {receiver.taken:,}; ended with {status}")
    return int(last > middle * (1 + TOLERATED) or status != 0)


def _sampled(pid: int, out: Pcap, wanted: argparse.Namespace) -> Iterator[float]:
    process, began_s, every = psutil.Process(pid), time.monotonic(), max(1, int(wanted.hours * 3600) // SAMPLES)
    for number, _ in enumerate(seconds(out, wanted.hours, wanted.frames, wanted.groups), 1):
        if number % every == 0:
            mib, passed_s = process.memory_info().rss / 2**20, time.monotonic() - began_s
            print(f"{number / 3600:6.2f} h  {mib:6.1f} MiB  {number / passed_s:5.0f} times the speed", flush=True)
            yield mib


if __name__ == "__main__":
    sys.exit(main())
