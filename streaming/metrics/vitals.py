"""Whether the job is healthy and ready, by its batches and by whether Kafka answers.

Without Kafka no batch ends, and a restart does not bring Kafka back; it loses the warm JVM and adds its start to the outage. So the time in
which Kafka did not answer excuses the job, and so does the time of its start.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from streaming.metrics.server import Probes

if TYPE_CHECKING:
    from collections.abc import Callable

STALLED_S: Final = 300.0
"""Without a batch for so long, although Kafka answers, the job is not healthy. Catching up makes batches of seconds, not of minutes."""

UNREAD_S: Final = 60.0
"""Without a batch for so long the job is not ready. Its queries report each second, with or without records."""


class Vitals:
    """Written by the driver's loop and by the thread of the metrics, read by the requests; each value is written by one of them.

    :param now_s: a clock that never goes back.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._excused_s = now_s()  # the last moment at which no batch could be expected
        self._progress_s: float | None = None
        self._running = False
        self._kafka_answers = True
        self.probes: Final = Probes(self._unhealthy, self._unready)

    def observe(self, *, running: bool) -> None:
        """Take note of whether the queries run and Kafka accepts the driver's clients."""
        self._running = running

    def observe_progress(self) -> None:
        """Take note that all queries have reported since the last time."""
        self._progress_s = self._now_s()

    def observe_kafka(self, *, answers: bool) -> None:
        """Take note of whether Kafka answered; to be called every few seconds."""
        self._kafka_answers = answers
        if not answers:
            self._excused_s = self._now_s()

    def _unhealthy(self) -> str | None:
        still_s = self._now_s() - max(self._excused_s, self._progress_s or 0.0)
        return None if still_s < STALLED_S else f"no batch has ended for {still_s:.0f} s, although Kafka answers"

    def _unready(self) -> str | None:
        if not self._kafka_answers:
            return "Kafka does not answer"
        if self._progress_s is None:
            return "no batch has ended yet"
        if not self._running:
            return "a query is being started again, or Kafka refuses a client"
        still_s = self._now_s() - self._progress_s
        return None if still_s < UNREAD_S else f"no batch has ended for {still_s:.0f} s"
