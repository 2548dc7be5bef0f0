"""Children are heard, restarted, and never left behind, stopped ones included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from streaming.demo.processes import ChildError, Processes
from tests.processes import end, lives, started

TELLER = """
import json, signal, sys, time
stopping = []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(1))
print(json.dumps({"at_us": 1, "event": "started", "answer": 42}), flush=True)
print("for people", flush=True)
while not stopping: time.sleep(0.01)
print(json.dumps({"at_us": 2, "event": "stopped"}), flush=True)
"""
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"


def python(program):
    return [sys.executable, "-c", program]


def until(condition, timeout_s=20):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def reports():
    return []


@pytest.fixture
def processes(tmp_path, reports):
    with Processes(tmp_path / "logs", reports.append) as running:
        yield running


def test_a_child_is_heard_and_ends_in_good_order(processes, reports):
    child = processes.start("teller", python(TELLER))
    started = child.wait_for("started", timeout_s=20)
    assert (started.name, started.pid, started.at_us, started.details) == ("teller", child.pid, 1, {"answer": 42})
    child.wait_for("said", timeout_s=20)
    child.stop()
    assert child.status == 0
    assert [report.event for report in reports] == ["started", "said", "stopped"]
    assert "for people" in child.last_words()


def test_a_child_that_ends_too_early_is_told_with_its_last_words(processes):
    child = processes.start("hasty", python("raise SystemExit('no broker here')"))
    with pytest.raises(ChildError, match=r"hasty \(pid \d+\) ended before it reported 'joined':\nno broker here"):
        child.wait_for("joined", timeout_s=20)


def test_a_silent_child_is_given_up_on(processes):
    child = processes.start("silent", python("import time; time.sleep(600)"))
    with pytest.raises(ChildError, match="did not report 'joined' within 0 s"):
        child.wait_for("joined", timeout_s=0.3)


def test_a_supervised_child_comes_back_until_it_is_stopped(processes, reports):
    supervisor = processes.supervise(
        "pod", python("import json; print(json.dumps({'at_us': 1, 'event': 'started'}))"), pause_s=0.01
    )
    until(lambda: len({report.pid for report in reports}) >= 3)
    supervisor.stop()
    restarts = supervisor.restarts
    assert restarts >= 2
    assert not lives(supervisor.child.pid)
    time.sleep(0.1)  # ten times the pause
    assert supervisor.restarts == restarts


def test_stop_ends_a_stopped_and_a_stubborn_child(processes):
    stopped, stubborn = processes.start("stopped", python(TELLER)), processes.start("stubborn", python(STUBBORN))
    stopped.wait_for("started", timeout_s=20)
    stubborn.wait_for("said", timeout_s=20)
    stopped.signal(signal.SIGSTOP)
    stopped.stop()
    assert stopped.status == 0  # it went on, and ended in good order
    stubborn.stop(timeout_s=0.1)
    assert stubborn.status == -signal.SIGKILL


def test_nothing_is_left_behind_when_the_block_is_left(tmp_path):
    with Processes(tmp_path / "logs", lambda _report: None) as running:
        child = running.start("teller", python(TELLER))
        supervised = running.supervise("pod", python(TELLER), pause_s=0.01)
        child.wait_for("started", timeout_s=20)
        supervised.child.wait_for("started", timeout_s=20)
        child.signal(signal.SIGSTOP)
    assert not lives(child.pid)
    assert not lives(supervised.child.pid)


def test_children_and_leftovers_go_when_the_parent_is_killed(tmp_path):
    leftover = tmp_path / "leftover"
    leftover.mkdir()
    parent = f"""
import signal, sys, time
from pathlib import Path
from streaming.demo.processes import Processes
with Processes(Path({str(tmp_path / "logs")!r}), lambda _: None, leftovers=[Path({str(leftover)!r})]) as running:
    children = [running.start(name, [sys.executable, "-c", {STUBBORN!r}]) for name in ("runs", "stopped")]
    for child in children: child.wait_for("said", timeout_s=20)
    children[1].signal(signal.SIGSTOP)
    print(*(child.pid for child in children), flush=True)
    time.sleep(600)
"""
    with started(python(parent), stdout=subprocess.PIPE, text=True) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(lives, pids))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    try:
        until(lambda: not any(map(lives, pids)) and not leftover.exists())
    finally:
        end(pids)
