"""What runs, or is open, as long as a context."""

from __future__ import annotations

import threading
from typing import ClassVar, Final, Self

_ENDS_WITHIN_S: Final = 5.0
"""An answer of Kafka that does not come must not hold up the end."""


class Closing:
    """A context manager whose end closes it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class Background:
    """Runs :meth:`_run` in a thread while the context lasts, whose end asks it to stop.

    :param name: of the thread.
    """

    ends_within_s: ClassVar[float | None] = _ENDS_WITHIN_S  #: for how long the end of the context waits for it; None: until it ends

    def __init__(self, name: str) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(self.ends_within_s)

    def _run(self) -> None:
        """Work until ``_stop`` is set."""
        raise NotImplementedError
