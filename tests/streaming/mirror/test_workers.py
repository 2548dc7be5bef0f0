"""Workers as processes: when they end."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from tests.processes import started

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


def parent(*, dies: bool):
    command = [sys.executable, "-c", PARENT.format(dies=dies)]
    return started(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    assert process.stdout is not None
    return [psutil.Process(int(process.stdout.readline())) for _ in range(3)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_they_end_with_their_parent_which_has_the_worst_status(number):
    with parent(dies=False) as process:
        found = workers(process)
        process.send_signal(number)
        assert process.wait(WAIT_S) == 2
        assert not any(worker.is_running() for worker in found)


def test_they_end_when_their_parent_is_killed():
    with parent(dies=False) as process:
        found = workers(process)
        process.kill()
        _, alive = psutil.wait_procs(found, WAIT_S)
        assert not alive


def test_one_that_ends_ends_all():
    with parent(dies=True) as process:
        assert process.wait(WAIT_S) == 3
