"""Child processes of the demo: started, listened to, signalled, and ended without exception.

The trap: a stopped process (SIGSTOP) neither notices that its parent died nor acts on SIGTERM, and the demo stops processes on purpose.
So all children live in one process group, which a guard kills as a whole when the demo is gone, however it went. Ctrl-C on a terminal
does not reach that group; the demo ends its children in the order it wants.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from streaming.demo.broker import guard

_STOP_TIMEOUT_S: Final = 25.0  # the monitor finishes its batch first


class ChildError(RuntimeError):
    """A child process ended or kept silent when it should not have; the message says which and its last words."""


class Progress(NamedTuple):
    """One line that a child wrote about itself."""

    name: str
    pid: int
    at_us: int
    event: str
    details: Mapping[str, Any]


class Child:
    """One process whose standard output is JSON lines; its standard error goes to a file.

    :param name: its ``client.id``, or what it is to the demo.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, process_group: int, log: Path, on_report: Callable[[Progress], None]
    ) -> None:
        self.name = name
        self.log = log
        self._changed = threading.Condition()
        self._reports: list[Progress] = []
        self._on_report = on_report
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                process_group=process_group,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self._reader = threading.Thread(target=self._read, name=f"reports of {name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status, None while it runs."""
        return self._process.poll()

    def reports(self, event: str) -> list[Progress]:
        """What it has told of this event so far."""
        with self._changed:
            return [report for report in self._reports if report.event == event]

    def wait_for(self, event: str, *, timeout_s: float, count: int = 1) -> Progress:
        """The ``count``-th report of an event.

        :raises ChildError: when it does not come.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                found = [report for report in self._reports if report.event == event]
                if len(found) >= count:
                    return found[count - 1]
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ChildError(f"{self.name} (pid {self.pid}) has not {event} after {timeout_s:.0f} s{self.last_words()}")
                if not self._reader.is_alive():
                    raise ChildError(f"{self.name} (pid {self.pid}) ended before it has {event}{self.last_words()}")
                self._changed.wait(min(left, 0.5))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when it has ended."""
        self._process.send_signal(number)

    def wait(self) -> int:
        return self._process.wait()

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> None:
        """End it in good order, or by force after a while."""
        for number in (signal.SIGTERM, signal.SIGCONT):
            self.signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        self._process.kill()
        self._process.wait()
        self._reader.join(1)

    def last_words(self, lines: int = 8) -> str:
        """The end of its log, to be appended to a sentence."""
        with contextlib.suppress(OSError):
            if said := self.log.read_text(errors="replace").strip().splitlines()[-lines:]:
                return ":\n" + "\n".join(said)
        return ""

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report = self._parse(line)
            with self._changed:
                self._reports.append(report)
                self._changed.notify_all()
            self._on_report(report)
        with self._changed:
            self._changed.notify_all()

    def _parse(self, line: str) -> Progress:
        try:
            details = json.loads(line)
            return Progress(self.name, self.pid, details.pop("at_us"), details.pop("event"), details)
        except (ValueError, KeyError, AttributeError):  # a program that talks to people
            with self.log.open("a") as log:
                log.write(line)
            return Progress(self.name, self.pid, time.time_ns() // 1000, "said", {"text": line.rstrip()})


def check(children: Sequence[Child]) -> None:
    """See that none has ended.

    :raises ChildError: when one has.
    """
    for child in children:
        if child.status is not None:
            raise ChildError(f"{child.name} (pid {child.pid}) ended with status {child.status}{child.last_words()}")


class ProcessSupervisor:
    """Restarts a child whenever it ends, as a container platform does, until it is told to stop."""

    def __init__(self, start: Callable[[], Child], *, pause_s: float) -> None:
        self._start = start
        self._pause_s = pause_s
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self.child = start()
        self.restarts = 0
        self._thread = threading.Thread(target=self._run, name=f"supervisor of {self.child.name}", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Start it no more; what runs goes on."""
        self._ending.set()
        with self._lock:
            pass  # a start that is under way has ended

    def stop(self) -> None:
        """End the child, for good."""
        self._ending.set()
        with self._lock:
            self.child.stop()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self.child.wait()
            if self._ending.wait(self._pause_s):
                return
            with self._lock:
                if self._ending.is_set():
                    return
                self.child = self._start()
                self.restarts += 1


class Processes:
    """All children of the demo; a context manager that leaves none behind.

    :param folder: for their logs.
    :param leftovers: folders to remove if this process is killed and cannot do so itself.
    """

    def __init__(self, folder: Path, on_report: Callable[[Progress], None], *, leftovers: Sequence[Path] = ()) -> None:
        self._folder = folder
        self._on_report = on_report
        self._leftovers = leftovers
        self._children: list[Child] = []
        self._supervisors: list[ProcessSupervisor] = []
        self._leader: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        # The group needs a first member that stays: one that waits for the end of a pipe that only this process holds.
        self._leader = subprocess.Popen(["/bin/sh", "-c", "read -r _"], stdin=subprocess.PIPE, process_group=0)
        self._guard = guard(-self._leader.pid, *self._leftovers)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.stop_all()
        finally:
            self._kill_group()

    def start(self, name: str, command: Sequence[str]) -> Child:
        """Start a child; it belongs to this object from then on."""
        assert self._leader is not None, "use as a context manager"
        log = self._folder / f"{name}.log"
        child = Child(name, command, process_group=self._leader.pid, log=log, on_report=self._on_report)
        self._children.append(child)
        return child

    def supervise(self, name: str, command: Sequence[str], *, pause_s: float) -> ProcessSupervisor:
        """Start a child that is started again ``pause_s`` after each end."""
        supervisor = ProcessSupervisor(lambda: self.start(name, command), pause_s=pause_s)
        self._supervisors.append(supervisor)
        return supervisor

    def stop_all(self) -> None:
        """End all children side by side, in good order where they can."""
        for supervisor in self._supervisors:
            supervisor.release()
        stops = [child.stop for child in tuple(self._children) if child.status is None]
        threads = [threading.Thread(target=stop) for stop in stops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _kill_group(self) -> None:
        assert self._leader is not None
        assert self._guard is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._leader.pid, signal.SIGKILL)
        self._guard.kill()
        for process in (self._leader, self._guard):
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
