"""Findings and events of a watch as JSON lines, for a pipe."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from streaming.published.wire_text import one_line
from streaming.watch.shown import FeedThread

if TYPE_CHECKING:
    import threading

    from streaming.engine.handover import LocalFeed
    from streaming.kafka.record import Record
    from streaming.watch.shown import Failed


def json_lines(feed: LocalFeed, stop: threading.Event, failed: Failed) -> FeedThread:
    """Return what prints each record. Who read them may have gone: then the watch ends."""

    def take(records: list[Record]) -> None:
        try:
            for record in records:
                if record.value is not None:
                    sys.stdout.write(f"{one_line(record.value.decode())}\n")
            if records:
                sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards what is still buffered
            stop.set()

    return FeedThread(feed, take, "lines", failed)
