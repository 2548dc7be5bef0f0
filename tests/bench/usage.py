"""What the processes of a bench use: CPU-seconds, memory, threads, file handles.

On a machine that others share, CPU-seconds travel and seconds do not. So each step of a bench states both, and what everybody else took.
"""

from __future__ import annotations

import time
from typing import NamedTuple, Self

import psutil

ROLES = ("broker", "JVM", "worker", "driver", "checks", "load")


class Process(NamedTuple):
    """One process, or the sum of several with the same role."""

    cpu_s: float = 0.0
    rss_mib: float = 0.0
    threads: int = 0
    files: int = 0
    written_mib: float = 0.0  #: to disks since it started
    pss_mib: float = 0.0  #: memory, what processes share being divided among them

    def __add__(self, other: object) -> Process:
        assert isinstance(other, Process)
        return Process(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Usage(NamedTuple):
    """All processes of this bench by role, at one moment."""

    at_s: float
    busy_s: float  #: CPU-seconds of the whole machine since it started
    by_role: dict[str, Process]

    @classmethod
    def now(cls, driver: int | None = None) -> Self:
        """As it is now.

        :param driver: process id of the job's driver, if that is not this process.
        """
        found = dict.fromkeys(ROLES, Process())
        mine = psutil.Process()
        for process in [mine, *mine.children(recursive=True)]:
            try:
                found[_role(process, driver or mine.pid)] += _used_by(process)
            except (psutil.Error, KeyError):  # it has ended meanwhile, or is a guard of the broker
                continue
        return cls(time.monotonic(), _busy_s(), found)

    def cpu_since(self, earlier: Usage) -> dict[str, float]:
        """Cores that each role, and everybody else, took since."""
        passed = self.at_s - earlier.at_s
        taken = {role: (self.by_role[role].cpu_s - earlier.by_role[role].cpu_s) / passed for role in ROLES}
        return taken | {"others": max(0.0, (self.busy_s - earlier.busy_s) / passed - sum(taken.values()))}


def _role(process: psutil.Process, driver: int) -> str:
    """By its command line.

    :raises KeyError: when it is none of the roles.
    """
    if process.pid == driver:
        return "driver"
    command = " ".join(process.cmdline())
    for mark, role in (
        ("kafka.Kafka", "broker"),
        ("SparkSubmit", "JVM"),
        ("pyspark.daemon", "worker"),
        ("pyspark/daemon", "worker"),
        ("streaming.quality.worker", "checks"),
        ("bench.load", "load"),
    ):
        if mark in command:
            return role
    raise KeyError(command)


def _used_by(process: psutil.Process) -> Process:
    with process.oneshot():
        times = process.cpu_times()
        rss = process.memory_info().rss
        written = process.io_counters().write_bytes if hasattr(process, "io_counters") else 0  # macOS has neither this
        shared = getattr(process.memory_full_info(), "pss", rss)  # nor that
        figures = (rss / 2**20, process.num_threads(), process.num_fds(), written / 2**20, shared / 2**20)
        return Process(times.user + times.system, *figures)


def _busy_s() -> float:
    times = psutil.cpu_times()
    return sum(getattr(times, kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq"))


def loop_ns() -> float:
    """What the machine is worth just now: CPU time of one turn of a bare loop."""
    began, total = time.process_time_ns(), 0
    for number in range(1_000_000):
        total += number
    return (time.process_time_ns() - began) / 1_000_000
