"""What the processes of a bench use, read from ``/proc``: CPU-seconds, memory, threads, file handles.

On a machine that others share, CPU-seconds travel and seconds do not. So each step of a bench states both, and what everybody else took.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple, Self

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
ROLES = ("broker", "JVM", "worker", "driver", "checks", "load")


class Process(NamedTuple):
    """One process, or the sum of several with the same role."""

    cpu_s: float = 0.0
    rss_mib: float = 0.0
    threads: int = 0
    files: int = 0

    def __add__(self, other: object) -> Process:
        assert isinstance(other, Process)
        return Process(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Usage(NamedTuple):
    """All processes of this bench by role, at one moment."""

    at_s: float
    busy_s: float  #: CPU-seconds of the whole machine since it started
    by_role: dict[str, Process]

    @classmethod
    def now(cls) -> Self:
        found = dict.fromkeys(ROLES, Process())
        for pid in _family(os.getpid()):
            try:
                role = _role(pid)
                found[role] += _process(pid)
            except (OSError, KeyError):  # it has ended meanwhile, or is a guard of the broker
                continue
        return cls(time.monotonic(), _busy_s(), found)

    def cpu_since(self, earlier: Usage) -> dict[str, float]:
        """Cores that each role, and everybody else, took since."""
        passed = self.at_s - earlier.at_s
        taken = {role: (self.by_role[role].cpu_s - earlier.by_role[role].cpu_s) / passed for role in ROLES}
        return taken | {"others": max(0.0, (self.busy_s - earlier.busy_s) / passed - sum(taken.values()))}


def _family(root: int) -> list[int]:
    """A process and all that it started, and they."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, ())
    return found


def _role(pid: int) -> str:
    """By its command line.

    :raises KeyError: when it is none of the roles.
    """
    if pid == os.getpid():
        return "driver"
    command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    for mark, role in (
        ("kafka.Kafka", "broker"),
        ("SparkSubmit", "JVM"),
        ("pyspark.daemon", "worker"),
        ("pyspark/daemon", "worker"),
        ("streaming.quality.child", "checks"),
        ("bench.load", "load"),
    ):
        if mark in command:
            return role
    raise KeyError(command)


def _process(pid: int) -> Process:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system, threads, pages = int(after_name[11]), int(after_name[12]), int(after_name[17]), int(after_name[21])
    return Process((user + system) / _TICKS, pages * _PAGE / 2**20, threads, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))


def _busy_s() -> float:
    user, nice, system, _idle, _wait, irq, soft, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + soft) / _TICKS


def loop_ns() -> float:
    """What the machine is worth just now: CPU time of one turn of a bare loop."""
    began, total = time.process_time_ns(), 0
    for number in range(1_000_000):
        total += number
    return (time.process_time_ns() - began) / 1_000_000
