"""What the demo knows at any moment: the monitor's groups and findings as published, and what the demo itself has done.

The trap: it is written by several threads and read by the one that draws, so everything handed out is a copy.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from streaming.demo.verdicts import Sighting
from streaming.kafka.topics import SILENT_LOGGER


class Note(NamedTuple):
    """Something that the demo did or was told by a child."""

    at_us: int
    text: str


class ScreenState:
    """The newest of everything, under one lock.

    :param on_note: called with each note as it is made.
    :param on_sighting: called with each published state of a finding as it is read, and the state before it.
    """

    def __init__(
        self,
        *,
        on_note: Callable[[Note], None] = lambda _note: None,
        on_sighting: Callable[[Sighting, Sighting | None], None] = lambda _new, _before: None,
    ) -> None:
        self._lock = threading.Lock()
        self._on_note = on_note
        self._on_sighting = on_sighting
        self._groups: dict[str, Mapping[str, Any]] = {}
        self._sightings: list[Sighting] = []
        self._newest: dict[str, Sighting] = {}
        self._notes: list[Note] = []
        self._pids: dict[str, list[int]] = {}

    def note(self, text: str) -> None:
        note = Note(now_us(), text)
        with self._lock:
            self._notes.append(note)
        self._on_note(note)

    def process_started(self, name: str, pid: int) -> None:
        with self._lock:
            self._pids.setdefault(name, []).append(pid)

    def group_read(self, snapshot: Mapping[str, Any]) -> None:
        with self._lock:
            self._groups[snapshot["group"]] = snapshot

    def finding_read(self, finding: Mapping[str, Any], read_us: int) -> None:
        sighting = Sighting(finding, read_us)
        with self._lock:
            before = self._newest.get(finding["id"])
            self._newest[finding["id"]] = sighting
            self._sightings.append(sighting)
        self._on_sighting(sighting, before)

    def group(self, name: str) -> Mapping[str, Any] | None:
        """The newest snapshot of a group, None before there is one."""
        with self._lock:
            return self._groups.get(name)

    def sightings(self) -> list[Sighting]:
        """All published states of all findings, in the order read."""
        with self._lock:
            return list(self._sightings)

    def findings(self) -> list[Sighting]:
        """The newest state of each finding, in the order opened."""
        with self._lock:
            return sorted(self._newest.values(), key=lambda sighting: str(sighting.finding["opened_at"]))

    def pids(self) -> dict[str, list[int]]:
        """Process ids by name, in the order started."""
        with self._lock:
            return {name: list(pids) for name, pids in self._pids.items()}

    def notes(self) -> list[Note]:
        with self._lock:
            return list(self._notes)


class Watcher:
    """Follows the findings and the groups topic into a board; a context manager, with a thread of its own."""

    def __init__(self, board: ScreenState, bootstrap: str, *, findings: str, groups: str) -> None:
        self._board = board
        self._findings = findings
        self._topics = (findings, groups)
        self._ending = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "rebalance-monitor-demo",  # the library wants one; nothing is committed and no group is joined
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
            },
            logger=SILENT_LOGGER,
        )
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def __enter__(self) -> Self:
        """Begin; the topics must exist.

        :raises confluent_kafka.KafkaException: when they cannot be read.
        """
        partitions = [
            TopicPartition(topic, partition, OFFSET_BEGINNING)
            for topic in self._topics
            for partition in self._consumer.list_topics(topic, timeout=10).topics[topic].partitions
        ]
        self._consumer.assign(partitions)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                message = self._consumer.poll(0.1)
            except KafkaException:
                continue  # the broker is away; librdkafka tries again
            if message is None or message.error() is not None or message.value() is None:
                continue
            value = json.loads(message.value())
            if message.topic() == self._findings:
                self._board.finding_read(value, now_us())
            else:
                self._board.group_read(value)


def now_us() -> int:
    """Microseconds since the epoch, by this machine's clock."""
    return time.time_ns() // 1000


def settled(snapshot: Mapping[str, Any] | None, members: int) -> bool:
    """Whether the monitor knows a group to be stable with that many members."""
    return (
        snapshot is not None
        and snapshot["state"] == "Stable"
        and snapshot["learning"] is None
        and len(snapshot["members"]) == members
    )
