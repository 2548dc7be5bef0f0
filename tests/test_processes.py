"""Processes are found however long their commands are, and end with their test, also with one that fails."""

from __future__ import annotations

import os
import sys

import pytest

from tests.processes import below, concerned_with, end, lives, started
from tests.real.harness import wait_for

SLEEPS = "import time; print('there', flush=True); time.sleep(600)"
STARTS_ANOTHER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPS!r}, 'grandchild'])"


def test_a_process_is_found_where_the_path_is_long_and_the_terminal_narrow(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")  # as pytest's workers run
    mark = str(tmp_path / ("deep " * 40))
    with started([sys.executable, "-c", SLEEPS, mark], stdout=-1) as process:
        process.stdout.readline()
        assert [found.pid for found in below(os.getpid(), "deep $")] == [process.pid]
        assert [found.pid for found in concerned_with(mark)] == [process.pid]
    assert concerned_with(mark) == []


def test_a_process_is_found_by_its_environment(tmp_path):
    with started([sys.executable, "-c", SLEEPS], stdout=-1, env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        process.stdout.readline()
        assert [found.pid for found in concerned_with(str(tmp_path))] == [process.pid]


def test_an_assertion_that_fails_ends_the_process_and_what_it_started():
    family = []

    def test():
        with started([sys.executable, "-c", STARTS_ANOTHER]) as process:
            family.extend([process, *wait_for(lambda: below(process.pid, "grandchild"), "it has started another")])
            raise AssertionError("what the test is about")

    with pytest.raises(AssertionError, match="what the test is about"):
        test()
    process, grandchild = family
    assert process.returncode == -9
    wait_for(lambda: not lives(grandchild.pid), "that ends, too")


def test_what_has_ended_by_itself_is_left_alone():
    with started([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        assert process.wait(60) == 3
    assert not lives(process.pid)
    end([process.pid])
    assert below(process.pid) == []
