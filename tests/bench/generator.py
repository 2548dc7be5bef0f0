"""The load of a bench, as the process that wants it sees it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys


class Generator:
    """The load's process, see ``tests.bench.load``."""

    def __init__(self, bootstrap: str, topic: str, options: argparse.Namespace) -> None:
        command = [sys.executable, "-m", "tests.bench.load", bootstrap, topic, "--partitions", str(options.partitions)]
        command += ["--groups", str(options.groups), "--members", str(options.members)]
        command += ["--speed", str(options.speed), "--behind", str(options.behind_s)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    def tell(self, **command: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, float] | None:
        """What it says of the command that it was given, once that is done."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return dict(json.loads(line))
        if self.process.poll() is not None:
            raise SystemExit("the load ended by itself")
        return None

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)
