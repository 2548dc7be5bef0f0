"""Input of brokers' request logs, followed from their ends on, across rotation.

A line is written when its exchange is over, so records are held back for requests that came before and wait: what is shown is late by that.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Final

from streaming.errors import SetupError, why_not
from streaming.mirror.broker_log.follow import FollowedFile, Follower
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.not_shown import REQUESTS_LACK
from streaming.watch.watch import CAPTURE, Tally

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from streaming.watch.watch import Watch

_LOOK_S: Final = 0.1


class RequestLogs:
    """Lines of request logs.

    :param held_back_s: how long records are held back.
    :param tell: called with a sentence that says how late what is shown will be.
    """

    def __init__(self, paths: Sequence[Path], *, held_back_s: float, cluster: str, tell: Callable[[str], None]) -> None:
        self.title = f"request log {', '.join(map(str, paths))}"
        self.topic = CAPTURE
        self._paths = paths
        self._held_back_s = held_back_s
        self._cluster = cluster
        self._tell = tell
        self._reader: RequestLogReader | None = None

    def run(self, watch: Watch, stop: threading.Event) -> None:
        """Read lines until ``stop`` is set."""
        reader = self._reader = RequestLogReader(
            watch.write,
            cluster=self._cluster,
            name=f"watch-{os.getpid()}",
            held_back_us=int(self._held_back_s * 1_000_000),
            held_at_least=0,
        )
        try:
            with ExitStack() as stack:
                follower = Follower([stack.enter_context(closing(FollowedFile(path))) for path in self._paths], reader)
                self._tell(REQUESTS_LACK)
                self._tell(f"followed from its end on; what happens is shown {self._held_back_s:,.0f} s later (--hold-back)")
                while not stop.is_set():
                    if not follower.step():
                        stop.wait(_LOOK_S)
                    watch.tend()
        except OSError as error:
            raise SetupError(f"{error.filename} cannot be read: {why_not(error)}") from None

    def tally(self) -> Tally:
        """Return what was read."""
        reader = self._reader
        return Tally(
            late_s=max(0.0, time.time() - reader.now_us / 1e6) if reader is not None and reader.now_us else self._held_back_s
        )

    def why_nothing(self) -> str | None:
        """Why no line of a request was read, and the next step."""
        reader = self._reader
        if reader is None or reader.counts["exchanges"]:
            return None
        missing = [str(path) for path in self._paths if not path.exists()]
        if missing:
            return f"{', '.join(missing)} does not exist: see log4j2.yaml of the broker for the file of kafka.request.logger."
        return (
            f"{self.title} has no new line of a group: switch it on with kafka-configs.sh --entity-type broker-loggers "
            "--add-config kafka.request.logger=DEBUG (docs/inputs.md)."
        )
