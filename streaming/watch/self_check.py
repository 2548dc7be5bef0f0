"""What a watch notices of itself: that it reads nothing, and why; and that one process is not enough."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.wording import counted, plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.watch.watch import Input, Watch

_NOTHING_AFTER_S: Final = 10.0
_BEHIND_S: Final = 2.0
_CORE: Final = 0.8
_FOR_S: Final = 60.0
_SAY_EVERY_S: Final = 300.0
_RATES_S: Final = 5.0

_NOT_ENOUGH: Final = (
    "one process is not enough for this traffic. Name the brokers' ports (--port); or write it to a topic (--mirror-to KAFKA:9092), which "
    "'rebalance-monitor run' reads with all cores (docs/scaling.md)"
)


class Rates(NamedTuple):
    """Per second, over the last few."""

    packets: float
    frames: float
    cores: float


class _Look(NamedTuple):
    at_s: float
    packets: int
    frames: int
    cpu_s: float


class SelfCheck:
    """To be called once a second or so; says what an operator should know, each once in some minutes.

    :param tell: called with a sentence.
    """

    def __init__(self, source: Input, watch: Watch, tell: Callable[[str], None]) -> None:
        self.rates = Rates(0.0, 0.0, 0.0)
        self.nothing: str | None = None  #: why nothing of a group was read yet
        self._source = source
        self._watch = watch
        self._tell = tell
        self._began_s = time.monotonic()
        self._seen: deque[_Look] = deque()
        self._dropped = 0
        self._busy_since_s: float | None = None
        self._said_s: dict[str, float] = {}

    def look(self) -> None:
        """Look at the input and at the process."""
        tally, now_s = self._source.tally(), time.monotonic()
        self._rate(_Look(now_s, tally.packets, self._watch.engine.counters["frames"], time.process_time()))
        self.nothing = self._source.why_nothing() if now_s - self._began_s > _NOTHING_AFTER_S else None
        if self.nothing:
            self._say("nothing", self.nothing)
        if tally.dropped > self._dropped:
            self._say(
                "dropped",
                f"{counted(tally.dropped - self._dropped, 'packet')} {plural(tally.dropped - self._dropped, 'was', 'were')} "
                f"dropped, and groups get a gap: {_NOT_ENOUGH}",
            )
            self._dropped = tally.dropped
        if tally.behind_s >= _BEHIND_S:
            self._say("behind", f"what is read now is {tally.behind_s:.0f} s old: {_NOT_ENOUGH}")
        self._busy_since_s = (self._busy_since_s or now_s) if self.rates.cores >= _CORE else None
        if self._busy_since_s is not None and now_s - self._busy_since_s >= _FOR_S:
            self._say("busy", f"{self.rates.cores:.0%} of a core for a minute: {_NOT_ENOUGH}")

    def _rate(self, look: _Look) -> None:
        self._seen.append(look)
        while len(self._seen) > 2 and look.at_s - self._seen[1].at_s > _RATES_S:
            self._seen.popleft()
        first = self._seen[0]
        took_s = max(look.at_s - first.at_s, 1e-3)
        self.rates = Rates(
            (look.packets - first.packets) / took_s, (look.frames - first.frames) / took_s, (look.cpu_s - first.cpu_s) / took_s
        )

    def _say(self, what: str, sentence: str) -> None:
        now_s = time.monotonic()
        if now_s - self._said_s.get(what, float("-inf")) >= _SAY_EVERY_S:
            self._said_s[what] = now_s
            self._tell(sentence)
