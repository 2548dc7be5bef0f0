"""Signs of life of the notifiers, in the topic of notifications: one record for each host, which a notifier writes every few seconds."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

from streaming.errors import SetupError
from streaming.kafka.compacted import CompactedReader
from streaming.kafka.record import ALIVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.config.settings import MonitorConfig

_AGAIN_S: Final = 10.0


def alive_prefix(findings: str) -> str:
    """Return how the keys of the notifiers of a findings topic begin; the host follows."""
    return f"{findings}/{ALIVE}/"


class SignsOfLife:
    """Reads the signs of life. Close it at the end.

    A topic that does not exist has no notifier. It is looked for again now and then, and so is one that may not be read.

    :param tell: called with a sentence when Kafka cannot be read.
    """

    def __init__(self, config: MonitorConfig, *, tell: Callable[[str], None]) -> None:
        self._prefix = alive_prefix(config.topics.findings)
        self._reader = CompactedReader(
            config.kafka.for_librdkafka,
            (config.topics.notifications,),
            "the reader of notifications",
            reach_timeout_s=config.kafka.reach_timeout_s,
            trouble=tell,
        )
        self._look_at = 0.0
        self._before: dict[str, int] = {}

    def close(self) -> None:
        self._reader.close()

    def read(self) -> dict[str, int] | None:
        """Return by host when the newest sign was written (microseconds since the epoch), of those that came since the last call.

        :returns: None as long as the topic is not read to its end.
        """
        if not self._reader.ends and not self._is_started():
            return None
        for record in self._reader.poll(0):
            if record.name.startswith(self._prefix):
                try:
                    self._before[record.name.removeprefix(self._prefix)] = int(json.loads(record.value or b"")["at_ms"]) * 1000
                except (ValueError, LookupError, TypeError):
                    continue
        if not self._reader.caught_up():
            return None
        signs, self._before = self._before, {}
        return signs

    def _is_started(self) -> bool:
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + _AGAIN_S
        try:
            self._reader.start(patience_s=0)
        except SetupError:
            return False
        return True
