"""Deletes findings that were resolved long ago, because nothing else limits the topic's growth.

The findings topic is compacted, so a finding stays in it until a record without a value follows. Retention by time would also delete an
open finding that has had no update for as long.

A reader that was away for longer finds neither the finding nor its end. So a reader that remembers an open finding must treat one that the
topic no longer holds as resolved (``streaming.notify.outbox``). An id is not used again, because it contains the time of opening.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.sinks.findings import FindingsReader, FindingsWriter

EVERY_S: Final = 3600.0
AT_ONCE: Final = 10_000
"""Of years of findings, the first time, no more are queued than Kafka's client takes."""

_DAY_S: Final = 86_400


class History:
    """Keeps the findings topic to so many days.

    :param days: how long a resolved finding stays, from when that was written.
    """

    def __init__(
        self, reader: FindingsReader, writer: FindingsWriter, days: float, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._kept_s = days * _DAY_S
        self._clock = clock
        self._due_s = 0.0

    def tidy(self) -> int:
        """Withdraw what is older, at most :data:`AT_ONCE` and about once an hour; return how many."""
        now_s = self._clock()
        if now_s < self._due_s:
            return 0
        old = [name for name, written_s in self._reader.resolved.items() if written_s <= now_s - self._kept_s][:AT_ONCE]
        self._writer.withdraw(old)
        for name in old:
            del self._reader.resolved[name]
        if len(old) < AT_ONCE:
            self._due_s = now_s + EVERY_S
        return len(old)
