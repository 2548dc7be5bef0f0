"""Processes in tests: which of them live, and that none outlives its test. psutil asks the system itself: no ``ps`` is needed, and no line is cut."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psutil


def lives(pid: int) -> bool:
    """Whether it runs; one that has ended and waits to be collected does not."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def below(pid: int, pattern: str = "") -> list[psutil.Process]:
    """The processes that a process started, and those that these started, whose command line matches; parents first."""
    with suppress(psutil.NoSuchProcess):
        return [process for process in psutil.Process(pid).children(recursive=True) if re.search(pattern, command_of(process))]
    return []


def command_of(process: psutil.Process) -> str:
    """Its command line; empty if it has ended or is somebody else's."""
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def concerned_with(text: str) -> list[psutil.Process]:
    """Living processes with this text in their arguments or environment."""
    return [process for process in psutil.process_iter() if lives(process.pid) and _mentions(process, text)]


def _mentions(process: psutil.Process, text: str) -> bool:
    if text in command_of(process):
        return True
    with suppress(psutil.Error, OSError):  # somebody else's, or gone
        return any(text in value for value in process.environ().values())
    return False


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process that is ended at the end of the block, with all that it started, whatever happens.

    ``with Popen(...)`` alone waits for the process: an assertion that fails inside would hang for as long as it lives.
    """
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            with suppress(psutil.NoSuchProcess):
                end([psutil.Process(process.pid), *below(process.pid)])  # the first may start others again


def end(processes: Iterable[psutil.Process | int]) -> None:
    """Kill them; those that have ended are none."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            (psutil.Process(process) if isinstance(process, int) else process).kill()
