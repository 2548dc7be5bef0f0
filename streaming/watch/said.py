"""What a watch says to the operator: on standard error, or above the groups while the terminal shows these."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SHOWN_S: Final = 60.0
_AT_MOST: Final = 2


class Said:
    """Takes sentences from any thread.

    :param out: prints one.
    """

    def __init__(self, out: Callable[[str], None]) -> None:
        self._out = out
        self._recent: deque[tuple[float, str]] = deque(maxlen=_AT_MOST)
        self._later: list[str] | None = None
        self._lock = threading.Lock()

    def say(self, sentence: str) -> None:
        """Print a sentence; while a screen is shown, keep it for that."""
        with self._lock:
            self._recent.append((time.time(), sentence))
            if self._later is None:
                self._out(sentence)
            else:
                self._later = [*self._later[-20:], sentence]

    def keep(self) -> None:
        """From now on the terminal is somebody else's."""
        self._later = []

    def release(self) -> None:
        """Print what was kept."""
        later, self._later = self._later or [], None
        for sentence in later:
            self._out(sentence)

    def recent(self, now_s: float) -> Iterator[str]:
        """The sentences of the last minute."""
        for at_s, sentence in tuple(self._recent):
            if now_s - at_s < _SHOWN_S:
                yield sentence
