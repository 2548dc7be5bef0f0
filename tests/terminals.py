"""A pseudo-terminal in which a command runs, and what it shows."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from typing import Self

PATIENCE_S = 60.0
_IN_ITS_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C is a signal to it

from streaming.cli import main
main()
"""
CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~])")


class Terminal:
    """A terminal of 80 by 24 in which ``rebalance-monitor`` runs.

    :param words: command and options.
    """

    def __init__(self, *words: str) -> None:
        self.keyboard, self.inner = pty.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(self.inner)
        self.output = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_ITS_TERMINAL, *words],
            stdin=self.inner,
            stdout=self.inner,
            stderr=self.inner,
            env={name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
            | {"TERM": "xterm-256color"},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.keyboard)
        os.close(self.inner)

    def resize(self, width: int, height: int) -> None:
        termios.tcsetwinsize(self.keyboard, (height, width))

    def press(self, keys: str) -> None:
        os.write(self.keyboard, keys.encode())

    def shows(self, *wanted: str) -> list[str]:
        """Wait until the newest picture has all of these; gives its lines."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            lines = CONTROL.sub("", self.output.rpartition("\x1b[H")[2]).replace("\r", "").split("\n")
            text = "\n".join(line.rstrip() for line in lines)
            if all(one in text for one in wanted):
                return text.split("\n")
            self._listen()
        raise AssertionError(f"{wanted} not in:\n{text}")

    def exit_status(self) -> int:
        """Wait until it has ended, and what it wrote has been read."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it does not end"
            self._listen()
        self._listen()
        return self.process.returncode

    def _listen(self) -> None:
        if select.select([self.keyboard], [], [], 0.2)[0]:
            self.output += os.read(self.keyboard, 65_536).decode(errors="replace")
