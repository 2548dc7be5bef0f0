"""Child processes of the demo: start them, read their reports, signal them, and end all of them.

A process that was stopped with SIGSTOP neither notices the end of its parent nor handles SIGTERM, and the demo uses SIGSTOP. So all
children are in one process group, and a guard process kills that group when the demo is gone, for whatever reason. Ctrl-C on a terminal
does not reach that group, so the demo ends its children in the right order.
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
from typing import Any, Final, NamedTuple, Self

from streaming.demo.broker import guard

_STOP_TIMEOUT_S: Final = 25.0  # long enough for the monitor to finish its batch


class ChildError(RuntimeError):
    """A child process ended, or did not report in time; the message names it and ends with the end of its log."""


class ChildReport(NamedTuple):
    """One line that a child wrote to its standard output."""

    name: str
    pid: int
    at_us: int
    event: str
    details: Mapping[str, Any]


class Child:
    """One process that reports events as JSON lines on standard output; its standard error goes to a file.

    :param name: its ``client.id``, or its role in the demo.
    :param on_report: called with each report, in the thread that reads the child's output.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, process_group: int, log: Path, on_report: Callable[[ChildReport], None]
    ) -> None:
        self.name = name
        self.log = log
        self._changed = threading.Condition()
        self._reports: list[ChildReport] = []
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
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, name=f"reports of {name}", daemon=True)
        self._reader.start()

    @property
    def status(self) -> int | None:
        """Exit status; None while the process runs."""
        return self._process.poll()

    def reports(self, event: str) -> list[ChildReport]:
        """Return the reports of this event so far."""
        with self._changed:
            return [report for report in self._reports if report.event == event]

    def wait_for(self, event: str, *, timeout_s: float, count: int = 1) -> ChildReport:
        """Wait for the ``count``-th report of an event and return it.

        :raises ChildError: when the process ends first, or does not report in time.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                found = [report for report in self._reports if report.event == event]
                if len(found) >= count:
                    return found[count - 1]
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ChildError(
                        f"{self.name} (pid {self.pid}) did not report {event!r} within {timeout_s:.0f} s{self.last_words()}"
                    )
                if not self._reader.is_alive():
                    raise ChildError(f"{self.name} (pid {self.pid}) ended before it reported {event!r}{self.last_words()}")
                self._changed.wait(min(left, 0.5))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; do nothing if the process has ended."""
        self._process.send_signal(number)

    def wait(self) -> int:
        return self._process.wait()

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> None:
        """Terminate the process, and kill it if it still runs after ``timeout_s``."""
        for number in (signal.SIGTERM, signal.SIGCONT):
            self.signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        self._process.kill()
        self._process.wait()
        self._reader.join(1)

    def last_words(self, lines: int = 8) -> str:
        """Return the end of the log, to be appended to a message."""
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

    def _parse(self, line: str) -> ChildReport:
        try:
            details = json.loads(line)
            return ChildReport(self.name, self.pid, details.pop("at_us"), details.pop("event"), details)
        except (ValueError, KeyError, AttributeError):  # not a report but text
            with self.log.open("a") as log:
                log.write(line)
            return ChildReport(self.name, self.pid, time.time_ns() // 1000, "said", {"text": line.rstrip()})


def check(children: Sequence[Child]) -> None:
    """Check that all children still run.

    :raises ChildError: when one has ended.
    """
    for child in children:
        if child.status is not None:
            raise ChildError(f"{child.name} (pid {child.pid}) ended with status {child.status}{child.last_words()}")


class ProcessSupervisor:
    """Restarts a child whenever it ends, as a container platform does, until :meth:`release` or :meth:`stop`."""

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
        """Stop restarting; a running child continues to run."""
        self._ending.set()
        with self._lock:
            pass  # wait for a start that has already begun

    def stop(self) -> None:
        """End the child without a restart."""
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
    """All children of the demo; a context manager that ends all of them.

    :param folder: for their logs.
    :param leftovers: folders that the guard removes if this process is killed.
    """

    def __init__(self, folder: Path, on_report: Callable[[ChildReport], None], *, leftovers: Sequence[Path] = ()) -> None:
        self._folder = folder
        self._on_report = on_report
        self._leftovers = leftovers
        self._children: list[Child] = []
        self._supervisors: list[ProcessSupervisor] = []
        self._leader: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        # The process group needs a leader that does not end: this one waits for end-of-file on a pipe that only this process holds.
        self._leader = subprocess.Popen(["/bin/sh", "-c", "read -r _"], stdin=subprocess.PIPE, process_group=0)
        self._guard = guard(-self._leader.pid, *self._leftovers)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop_all()
        finally:
            self._kill_group()

    def start(self, name: str, command: Sequence[str]) -> Child:
        """Start a child; this object ends it at the latest when the context ends."""
        assert self._leader is not None, "use as a context manager"
        log = self._folder / f"{name}.log"
        child = Child(name, command, process_group=self._leader.pid, log=log, on_report=self._on_report)
        self._children.append(child)
        return child

    def supervise(self, name: str, command: Sequence[str], *, pause_s: float) -> ProcessSupervisor:
        """Start a child that is restarted ``pause_s`` after each end."""
        supervisor = ProcessSupervisor(lambda: self.start(name, command), pause_s=pause_s)
        self._supervisors.append(supervisor)
        return supervisor

    def stop_all(self) -> None:
        """End all children in parallel; terminate each first, and kill it if it does not end."""
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
