"""Workers as processes: when they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.processes import lives, started
from tests.real.harness import wait_for

WAIT_S = 60
PARENT = """
import os, select, sys
from streaming.mirror.workers import in_workers

def work(number, ended):
    os.write(1, b"%d\\n" % os.getpid())
    if number == 0 and {dies}:
        return 3
    select.select([ended], [], [])
    return number

sys.exit(in_workers(3, work))
"""

REAPS_NOBODY = """
import ctypes, subprocess, sys

if sys.platform == "linux":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans below become children of this process
print(subprocess.Popen([sys.executable, "-c", sys.argv[1]]).pid, flush=True)
sys.stdin.read()
"""
"""As process 1 of a container without an init: what ends as an orphan stays in the table of processes."""


def parent(*, dies: bool):
    command = [sys.executable, "-c", PARENT.format(dies=dies)]
    return started(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def workers(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(3)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_they_end_with_their_parent_which_has_the_worst_status(number):
    with parent(dies=False) as process:
        found = workers(process)
        process.send_signal(number)
        assert process.wait(WAIT_S) == 2
        assert not any(map(lives, found))


def test_they_end_when_their_parent_is_killed():
    command = [sys.executable, "-c", REAPS_NOBODY, PARENT.format(dies=False)]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        killed, *found = [int(process.stdout.readline()) for _ in range(4)]
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: not any(map(lives, found)), "they end", WAIT_S)


def test_one_that_ends_ends_all():
    with parent(dies=True) as process:
        assert process.wait(WAIT_S) == 3
