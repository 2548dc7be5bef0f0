"""The demo finds what it makes, says so in its exit status, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from streaming.demo.scenarios import TROUBLES
from streaming.demo.show import LEAST_DURATION_S
from tests.browser import browser
from tests.needs import needs
from tests.processes import below, concerned_with, end, started
from tests.real.harness import wait_for

pytestmark = pytest.mark.real


@contextmanager
def demo(folder, *options):
    """A running demo whose descendants can be told by the environment they inherit; in a session of its own, as from a terminal."""
    command = [sys.executable, "-m", "streaming.cli", "demo", "--plain", *options]
    with started(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(folder), "COLUMNS": "160"},
    ) as process:
        yield process


def descendants(folder):
    """The processes that have the folder in their arguments or environment."""
    return [process for process in concerned_with(str(folder)) if process.pid != os.getpid()]


def read_until(process, text):
    said = []
    for line in process.stdout:
        said.append(line)
        if text in line:
            return "".join(said)
    raise AssertionError("".join(said))


def assert_all_gone(folder):
    try:
        wait_for(lambda: not descendants(folder), "all processes are gone")
    finally:
        end(descendants(folder))


def assert_nothing_left(folder):
    assert_all_gone(folder)
    wait_for(lambda: not list(folder.glob("rebalance-monitor-*")), "the demo's folder is gone")  # its guard tries until it is


def test_a_short_demo_finds_everything_and_names_the_culprits(tmp_path):
    with demo(tmp_path, "--duration", f"{LEAST_DURATION_S:.0f}s") as process:
        text, _ = process.communicate(timeout=840)
        assert process.returncode == 0, text
    for trouble in TROUBLES:
        row = next(line for line in text.splitlines() if line.startswith(trouble.name))
        assert f" {trouble.expected.rule} " in row
        assert f"{trouble.expected.culprits[0]} (pid " in row
    assert "✔ 10 of 10 faults found" in text
    assert "✔ no finding about the healthy group" in text
    assert_nothing_left(tmp_path)


@pytest.mark.long
@needs("chromium")
def test_on_the_page_of_a_demo_a_stuck_rebalance_appears_and_is_over_without_reload_and_with_keep_all_goes_on(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    with demo(work, "--duration", f"{LEAST_DURATION_S:.0f}s", "--keep") as process, browser(tmp_path / "profile") as tab:
        page = read_until(process, "the page: ").rpartition("the page: ")[2].strip()
        tab.open(page)
        tab.js("window.same = document")
        row = "[...document.querySelectorAll('.row')].find(one => one.querySelector('.name').textContent.includes('billing'))"
        tab.wait_for(f"{row}?.textContent.includes('Waits for billing-worker-1 to rejoin')")
        tab.wait_for(f"{row}.textContent.includes('stable') && !{row}.textContent.includes('Waits for')")
        assert tab.js("window.same === document")
        tab.js(f"{row}.querySelector('.name a').click()")
        tab.wait_for("document.querySelector('#happened')?.textContent.includes('was removed: no JoinGroup came in time')")
        tab.wait_for("document.querySelectorAll('#rebalances tbody tr').length >= 2")
        read_until(process, "everything still runs")
        tab.open(page)
        assert tab.complaints == []
        tab.open("about:blank")
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=60)
        assert process.returncode == 0, text
        assert "stopping everything" in text
        assert "interrupted" not in text
    assert_all_gone(work)


def test_a_demo_that_is_interrupted_stops_everything(tmp_path):
    with demo(tmp_path) as process:
        read_until(process, "starting Spark")
        assert len(descendants(tmp_path)) > 5
        process.send_signal(signal.SIGINT)
        read_until(process, "interrupted; stopping everything")
        process.send_signal(signal.SIGHUP)  # the terminal is closed meanwhile
        text, _ = process.communicate(timeout=60)
        assert process.returncode == 130
        assert text.strip() == "everything is stopped"
    assert_nothing_left(tmp_path)


def test_a_ctrl_c_after_sigterm_gives_up_at_once_and_leaves_nothing_either(tmp_path):
    with demo(tmp_path) as process:
        read_until(process, "starting the tap")
        process.send_signal(signal.SIGTERM)
        read_until(process, "interrupted; stopping everything")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert_all_gone(tmp_path)


def test_a_demo_that_is_killed_leaves_nothing_running(tmp_path):
    with demo(tmp_path) as process:
        read_until(process, "waiting until the monitor has learnt")
        process.kill()
        process.wait()  # else its guards are still below it when the block ends, and are ended with it
    assert_nothing_left(tmp_path)


def test_a_monitor_that_dies_ends_the_demo_with_a_sentence(tmp_path):
    with demo(tmp_path) as process:
        read_until(process, "starting Spark")
        (monitor,) = below(process.pid, r"streaming\.cli run")
        monitor.kill()
        text, _ = process.communicate(timeout=60)
        assert process.returncode == 2
        assert f"error: monitor (pid {monitor.pid}) ended with status -9" in text
    assert_nothing_left(tmp_path)


def test_a_missing_java_is_told_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with demo(tmp_path) as process:
        text, _ = process.communicate(timeout=60)
        assert process.returncode == 2
        assert "error: Java 17 or newer is needed" in text
        assert "Traceback" not in text
    assert not list(tmp_path.glob("rebalance-monitor-*"))
