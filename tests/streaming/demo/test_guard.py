"""What is left of a process that was killed is removed, although somebody else still writes there for a moment."""

from __future__ import annotations

import subprocess
import sys

from streaming.demo.broker import guard
from tests.processes import started

WRITES_ON = """
import pathlib, sys, time
folder, told, number = pathlib.Path(sys.argv[1]), False, 0
while folder.exists():
    for number in range(number, number + 200):
        try:
            (folder / str(number)).touch()
        except FileNotFoundError:
            break
    if not told:
        told = True
        print("writing", flush=True)
        begun = time.monotonic()
    if time.monotonic() - begun > 3:
        break
"""
"""Until the folder is gone, or for three seconds."""


def test_who_writes_on_for_a_moment_leaves_nothing(tmp_path):
    folder = tmp_path / "broker"
    folder.mkdir()
    with (
        started(["sleep", "600"]) as killed,
        started([sys.executable, "-c", WRITES_ON, str(folder)], stdout=subprocess.PIPE) as writer,
    ):
        assert writer.stdout is not None
        assert writer.stdout.readline()
        watch = guard(killed.pid, folder)
        assert watch.stdin is not None
        watch.stdin.close()  # as it is when this process is gone
        assert watch.wait() == 0
        assert killed.wait() == -9
    assert not folder.exists()
