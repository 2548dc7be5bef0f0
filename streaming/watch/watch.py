"""The engine of a watch: takes records from an input, and hands on what comes of them several times a second.

The page and the alerts get the very rows that the job writes to its topics. So they need not know where these come from.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from coordinator_model.snapshots import SnapshotError
from coordinator_model.wire.record import Cause, Loss, gap
from streaming.engine.engine import Engine
from streaming.engine.handover import Handover
from streaming.engine.results import OutputRow, Outputs, Status, status_due
from streaming.watch.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coordinator_model.finding import Finding
    from coordinator_model.settings import Settings
    from coordinator_model.wire.record import MirrorRecord
    from streaming.engine.intake import MirrorRow
    from streaming.mirror.producer import MirrorSink
    from streaming.watch.state import StateFile

CAPTURE: Final = "capture"
"""In the place of a mirror topic in findings, where there is none."""

HAND_ON_S: Final = 0.1
SAVE_S: Final = 60.0


class Tally(NamedTuple):
    """What an input has read so far."""

    packets: int = 0
    dropped: int = 0  #: packets, or records, that came faster than they could be read
    behind_s: float = 0.0  #: how old what is read now is, where more waits
    late_s: float = 0.0  #: how old the newest is that an input can have read, by its nature


class Input(Protocol):
    """Where records come from."""

    @property
    def title(self) -> str:
        """What is read, for people."""

    @property
    def topic(self) -> str:
        """Name of the mirror topic in findings."""

    def run(self, watch: Watch, stop: threading.Event) -> None:
        """Give records to the watch until ``stop`` is set or there are no more, and call :meth:`Watch.tend` several times a second.

        :raises SetupError: when it cannot be read.
        """

    def tally(self) -> Tally:
        """Return what was read; called by other threads."""

    def why_nothing(self) -> str | None:
        """Why no frame of a group was read yet and what to do about it, one sentence; None if there is one. Called by other threads."""


class Watch:
    """Takes records; :meth:`tend` hands on what came of them, and keeps the state.

    :param topic: name of the mirror topic in findings; inputs that have none say ``capture``.
    :param outputs: names of the result topics.
    :param sinks: they get each record beside the engine: a file, or the mirror topic.
    :param tell: called with a sentence that an operator should know.
    """

    def __init__(
        self,
        *,
        topic: str,
        settings: Settings,
        outputs: Outputs,
        state: StateFile,
        sinks: Sequence[MirrorSink] = (),
        tell: Callable[[str], None],
    ) -> None:
        self._topic = topic
        self._outputs = outputs
        self._state = state
        self._sinks = sinks
        self._rows: list[OutputRow] = []
        self._statuses: dict[int, Status] = {}
        self._status_s = float("-inf")
        self._handed_on_s = self._saved_s = time.monotonic()
        self._records = 0
        self._snapshot_bytes: dict[int, int] = {}
        earlier = state.read()
        try:
            self.engine = self._engine(settings, earlier)
        except SnapshotError as error:
            tell(f"the state of the last run cannot be read, and everything is learned anew: {error}")
            earlier = State(origin=earlier.origin)
            self.engine = self._engine(settings, earlier)
        knows_groups = any(len(model.groups) for model in self.engine.models.values())
        self._resumed_us = (
            earlier.saved_us if knows_groups else 0
        )  # newest capture time of the run before, if a gap after it matters
        self.handover = Handover(outputs, earlier.offsets)
        self._origin = earlier.origin

    def _engine(self, settings: Settings, earlier: State) -> Engine:
        outputs, add = self._outputs, self._rows.append
        return Engine(
            topic=self._topic,
            settings=settings,
            found=lambda finding: add(outputs.finding(finding)),
            shown=lambda group: add(outputs.group(group)),
            happened=lambda event: add(outputs.event(event)),
            snapshots=earlier.snapshots,
        )

    def begin(self) -> None:
        """Hand on what stands from the run before, once all readers are there."""
        self.engine.stand()
        self._hand_on()

    def write(self, record: MirrorRecord) -> None:
        """Take a record of an input that has no offsets. Before the first there is a gap, if an earlier run knows groups."""
        if self._resumed_us:
            from_us, self._resumed_us = self._resumed_us, 0
            if record.at_us > from_us:
                loss = Loss(0, 0, from_us, record.at_us, Cause.NOT_RUNNING)
                self.engine.captured(gap(record.at_us, loss, cluster=record.cluster))
        self._records += 1
        self.engine.captured(record)
        for sink in self._sinks:
            sink.write(record)

    def row(self, row: MirrorRow) -> None:
        """Take a record as it stands in the mirror topic."""
        self._records += 1
        self.engine.row(row)

    def found(self, findings: Sequence[Finding]) -> None:
        """Hand on findings about the input itself."""
        self._rows += map(self._outputs.finding, findings)

    def tend(self) -> None:
        """Hand on what came, and keep the state, as often as each is due."""
        now_s = time.monotonic()
        if now_s - self._handed_on_s >= HAND_ON_S:
            self._handed_on_s = now_s
            self._hand_on()
        if now_s - self._saved_s >= SAVE_S:
            self._saved_s = now_s
            self.save()

    def end(self) -> None:
        """The input has ended: hand on what came and keep the state."""
        self._hand_on()
        self.save()
        self._state.close()

    def save(self) -> None:
        """Keep the state."""
        self.engine.forget_unknown()
        snapshots = self.engine.snapshots()
        self._snapshot_bytes = {number: len(blob) for number, blob in snapshots.items()}
        self._state.write(
            State(
                origin=self._origin,
                snapshots=snapshots,
                offsets=dict(self.handover.offsets),
                saved_us=max((model.now_us for model in self.engine.models.values()), default=0),
            )
        )

    def _hand_on(self) -> None:
        self.engine.show()
        self._say_status()
        if self._rows:
            self.handover.hand_on(self._rows)
            self._rows.clear()

    def _say_status(self) -> None:
        models = self.engine.models
        if not models and time.monotonic() - self._status_s > 1.0:
            self._status_s = time.monotonic()
            self._rows.append(self._outputs.starting(self._topic))
        for number, model in models.items():
            status = status_due(model, self._statuses.get(number))
            if status is not None:
                self._statuses[number] = status
                measured = {
                    "next_offset": model.next_offset,
                    "newest_record_ms": model.now_us // 1000,
                    "records": self._records,
                    "snapshot_bytes": self._snapshot_bytes.get(number, 0),
                }
                self._rows.append(status.row(self._topic, self._outputs, number, **measured))
                self._records = 0
