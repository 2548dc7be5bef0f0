"""The state behind the demo's screen: the published groups and findings, and the demo's own notes.

Several threads write it while another one draws, so every method returns a copy.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Self

from streaming.background import Background
from streaming.demo.verdicts import Observation
from streaming.kafka.compacted import CompactedReader
from streaming.published.records import Json
from streaming.published.wire_text import visible


class Note(NamedTuple):
    """One line about what the demo did, or what a child reported."""

    at_us: int
    text: str


class ScreenState:
    """The newest groups, findings, notes and process ids, under one lock.

    :param on_note: called with each new note.
    :param on_sighting: called with each published state of a finding when it is read, and with the state before it.
    """

    def __init__(
        self,
        *,
        on_note: Callable[[Note], None] = lambda _note: None,
        on_observation: Callable[[Observation, Observation | None], None] = lambda _new, _before: None,
    ) -> None:
        self._lock = threading.Lock()
        self._on_note = on_note
        self._on_observation = on_observation
        self._groups: dict[str, Json] = {}
        self._observations: list[Observation] = []
        self._newest: dict[str, Observation] = {}
        self._notes: list[Note] = []
        self._pids: dict[str, list[int]] = {}

    def note(self, text: str) -> None:
        note = Note(now_us(), visible(text))
        with self._lock:
            self._notes.append(note)
        self._on_note(note)

    def process_started(self, name: str, pid: int) -> None:
        with self._lock:
            self._pids.setdefault(name, []).append(pid)

    def group_read(self, snapshot: Json) -> None:
        with self._lock:
            self._groups[snapshot["group"]] = snapshot

    def finding_read(self, finding: Json, read_us: int) -> None:
        observation = Observation(finding, read_us)
        with self._lock:
            before = self._newest.get(finding["id"])
            self._newest[finding["id"]] = observation
            self._observations.append(observation)
        self._on_observation(observation, before)

    def group(self, name: str) -> Json | None:
        """Return the newest published state of a group; None before the first."""
        with self._lock:
            return self._groups.get(name)

    def observations(self) -> list[Observation]:
        """Return all published states of all findings, in the order read."""
        with self._lock:
            return list(self._observations)

    def findings(self) -> list[Observation]:
        """Return the newest state of each finding, in the order opened."""
        with self._lock:
            return sorted(self._newest.values(), key=lambda observation: str(observation.finding["opened_at"]))

    def pids(self) -> dict[str, list[int]]:
        """Return the process ids by name, in the order started."""
        with self._lock:
            return {name: list(pids) for name, pids in self._pids.items()}

    def notes(self) -> list[Note]:
        with self._lock:
            return list(self._notes)


class Watcher(Background):
    """Reads the findings and the groups topic into a screen state; a context manager with a thread of its own."""

    ends_within_s = None

    def __init__(self, screen_state: ScreenState, bootstrap: str, *, findings: str, groups: str) -> None:
        super().__init__("watcher")
        self._screen_state = screen_state
        self._findings = findings
        self._reader = CompactedReader(lambda: {"bootstrap.servers": bootstrap}, (findings, groups), "the demo")

    def __enter__(self) -> Self:
        """Start to read; the topics must exist.

        :raises SetupError: when a topic cannot be read.
        """
        self._reader.start()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._reader.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            for record in self._reader.poll(0.1):
                if record.value is None:
                    continue
                if record.topic == self._findings:
                    self._screen_state.finding_read(json.loads(record.value), now_us())
                else:
                    self._screen_state.group_read(json.loads(record.value))


def now_us() -> int:
    """Return the current time in microseconds since the epoch."""
    return time.time_ns() // 1000


def settled(snapshot: Json | None, members: int) -> bool:
    """Return whether a published group is stable, past its warm-up, and has that many members."""
    return (
        snapshot is not None
        and snapshot["state"] == "Stable"
        and snapshot["learning"] is None
        and len(snapshot["members"]) == members
    )
