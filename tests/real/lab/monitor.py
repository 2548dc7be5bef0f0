"""The monitor of the laboratory: the model, fed in process by the tap, with everything it saw and said kept.

The trap: a model that only ever runs in one piece is not the one that runs in production. So it is now and then put into a snapshot
and restored, and in the end everything is replayed through a fresh one, which must say the same.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from coordinator_model.continuity import BLIND_US
from coordinator_model.coordinator import Coordinator
from coordinator_model.events import State
from coordinator_model.finding import Finding
from coordinator_model.settings import Settings
from coordinator_model.wire.record import Kind, MirrorRecord
from coordinator_model.wire.recording import MAGIC, pack_record, read_recording

TOPIC = "lab"


class Said(NamedTuple):
    """A state of a finding, and the capture time of the record with which it came out."""

    finding: Finding
    at_us: int


class Monitor:
    """A mirror sink with a model behind it; a context manager.

    :param recording: the file that every record is written to.
    """

    def __init__(self, recording: Path, settings: Settings) -> None:
        self.recording = recording
        self.settings = settings
        self.said: list[Said] = []
        self.crashes: list[str] = []
        self.groups: dict[str, dict[str, Any]] = {}
        self.frames = 0
        self.clients: dict[tuple[str, str], str] = {}
        self.restores = 0
        self._newest_us = 0
        self._seen_since_us = 0
        self._model = Coordinator(topic=TOPIC, partition=0, settings=settings)
        self._lock = threading.Lock()
        self._offset = 0
        self._queue: queue.SimpleQueue[MirrorRecord | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)

    def write(self, record: MirrorRecord) -> None:
        """Take a record from the tap."""
        self._queue.put(record)

    def __enter__(self) -> Self:
        self._file = self.recording.open("wb")
        self._file.write(MAGIC)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._queue.put(None)
        self._thread.join()
        self._file.close()

    def restore(self) -> None:
        """Go on with a model that is restored from a snapshot of this one."""
        with self._lock:
            self._model = Coordinator.restore(self._model.snapshot(), settings=self.settings)
            self.restores += 1

    def described(self) -> dict[str, dict[str, Any]]:
        """What the model knows of each group now."""
        with self._lock:
            self._note_groups()
            return dict(self.groups)

    @property
    def now_us(self) -> int:
        return self._model.now_us

    @property
    def seen_for_s(self) -> float:
        """For how long it has seen without a pause; what it believes of a silent member counts from there."""
        return (self._newest_us - self._seen_since_us) / 1e6

    @property
    def rebalances(self) -> int:
        with self._lock:
            self._note_groups()
            return sum(sum(group["rebalances"].values()) for group in self.groups.values())

    def findings(self) -> dict[str, list[Said]]:
        """Everything said so far, by finding id, oldest first."""
        with self._lock:
            found: dict[str, list[Said]] = {}
            for said in self.said:
                found.setdefault(said.finding.id, []).append(said)
            return found

    def _run(self) -> None:
        while (record := self._queue.get()) is not None:
            with self._lock:
                self._take(record._replace(partition=0, offset=self._offset))
                self._offset += 1

    def _take(self, record: MirrorRecord) -> None:
        if record.at_us > self._newest_us + BLIND_US:
            self._seen_since_us = record.at_us
        self._newest_us = max(self._newest_us, record.at_us)
        self._file.write(pack_record(record))
        if record.kind is Kind.REQUEST or record.kind is Kind.RESPONSE:
            self.frames += 1
            if record.client_id and record.client_software:
                self.clients[record.client_id, record.client_software] = record.client_software
        try:
            found = self._model.receive(record)
        except Exception:
            self.crashes.append(f"offset {record.offset}: {traceback.format_exc()}")
            found = self._model.receive_unreadable(record.offset, record.at_us, record.group, "the model raised")
        self.said += [Said(finding, record.at_us) for finding in found]
        if record.kind is Kind.TICK:
            self._note_groups()

    def _note_groups(self) -> None:
        for group in self._model.changed_groups():
            if group.content is None:
                self.groups[group.group] = {**self.groups.get(group.group, {"rebalances": {}}), "state": State.DEAD.value}
            else:
                self.groups[group.group] = group.content


def replayed(recording: Path, settings: Settings) -> list[Finding]:
    """Everything that a fresh model says of a recording."""
    model = Coordinator(topic=TOPIC, partition=0, settings=settings)
    with recording.open("rb") as stream:
        return [finding for record in read_recording(stream) for finding in model.receive(record)]


def around(recording: Path, finding: Finding, *, seconds: float = 30.0) -> list[MirrorRecord]:
    """The records of a finding's group from so long before its first frame of evidence to as long after it came out."""
    first_us = min([frame.at_us for frame in finding.evidence], default=finding.opened_at_us)
    span = range(first_us - int(seconds * 1e6), finding.updated_at_us + int(seconds * 1e6))
    with recording.open("rb") as stream:
        return [record for record in read_recording(stream) if record.at_us in span and record.group in {None, finding.group}]


def write(recording: Path, records: Iterable[MirrorRecord]) -> None:
    """A file of mirror records."""
    with recording.open("wb") as stream:
        stream.write(MAGIC)
        for record in records:
            stream.write(pack_record(record))
