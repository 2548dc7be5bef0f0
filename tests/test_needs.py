"""A run says in one line at its end what it skipped, and how to get it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.needs import PACKAGES, closing_line, reason

ROOT = Path(__file__).parents[1]


def test_nothing_is_said_where_nothing_was_skipped():
    assert closing_line([]) is None


def test_all_packages_stand_in_one_command_and_other_reasons_beside_it():
    reasons = [reason("prometheus"), reason("promtool"), reason("dumpcap"), "Skipped: capturing on loopback is not allowed"]
    assert closing_line(reasons) == (
        "4 tests were skipped: 3 want for programs: sudo apt-get install prometheus wireshark-common; "
        "1 (capturing on loopback is not allowed)"
    )


def test_a_run_without_prometheus_ends_with_the_line_that_gets_it(tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/streaming/metrics/test_documents.py"]
    for workers in ("0", "1"):
        done = subprocess.run(
            [*command, "-n", workers],
            cwd=ROOT,
            env={**os.environ, "PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        (line,) = [line for line in done.stdout.splitlines() if "tests were skipped" in line]
        assert line.endswith(" want for programs: sudo apt-get install prometheus")


def test_ci_installs_what_tests_are_skipped_without():
    named = dict(
        re.findall(r"([\w-]+):([\w-]+)", (ROOT / ".ci" / "run").read_text().partition("programs=")[2].partition("if [")[0])
    )
    assert named == PACKAGES
