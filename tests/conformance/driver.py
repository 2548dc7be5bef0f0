"""A driver's process: orders to it, events from it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any

import psutil

from streaming.demo.broker import guard

LONGEST_CLOSE_S = 15.0  # a container platform is not patient either


class Driver:
    """One consumer in a process of its own; a guard ends it with this process.

    :param order: the ``join`` order, given at once.
    """

    def __init__(self, command: Sequence[str], order: dict[str, Any], log: Path) -> None:
        self.order = order
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )
        self._guard = guard(self._process.pid)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.tell("join", **order)

    @property
    def client_id(self) -> str:
        return str(self.order["client_id"])

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def errors(self) -> list[str]:
        return [event["error"] for event in self.events if event["event"] == "failed"]

    def tell(self, do: str, **details: Any) -> None:
        """Give an order; one who has ended does not hear it."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps({"do": do, **details}) + "\n")
            self._process.stdin.flush()

    def count(self, event: str) -> int:
        return sum(one["event"] == event for one in self.events)

    def wait_for(self, event: str, count: int, timeout_s: float) -> bool:
        """Whether the event came so often in time."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self.count(event) < count:
                if not self.running or time.monotonic() > deadline:
                    return False
                self._changed.wait(0.2)
        return True

    def close(self) -> bool:
        """Let it end in good order; whether it did."""
        self.tell("close")
        try:
            good = self._process.wait(LONGEST_CLOSE_S) == 0
        except subprocess.TimeoutExpired:
            good = False
        self.kill()
        return good

    def kill(self) -> None:
        self._process.send_signal(SIGKILL)
        self._process.wait()
        self._guard.kill()
        self._guard.wait()
        self._reader.join(1)
        for pipe in (self._process.stdin, self._process.stdout, self._guard.stdin):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def suspend(self) -> None:
        self._process.send_signal(SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(SIGCONT)

    def ports(self) -> set[int]:
        """Local ports of its connections."""
        with contextlib.suppress(psutil.Error):
            return {found.laddr.port for found in psutil.Process(self._process.pid).net_connections("tcp") if found.raddr}
        return set()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"event": "said", "text": line.rstrip()}
            with self._changed:
                self.events.append({"at": time.time(), **event})
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()
