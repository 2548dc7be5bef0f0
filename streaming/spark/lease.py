"""One monitor at a time on a state that lies where no lock of an operating system reaches: a file that its holder writes again and again.

A new monitor looks whether the file changes. If it does, it is held. If it does not for :data:`LAPSES_AFTER_S`, its holder is gone.
No clocks are compared. A store may have no way to create a file only if there is none. So who has written reads once more after a moment,
and each time before it writes again: of two that came at once the last stays.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from typing import TYPE_CHECKING, Final

from streaming.errors import SetupError

if TYPE_CHECKING:
    from pathlib import Path

    from streaming.spark.hadoop import HadoopPath

RENEWED_EVERY_S: Final = 3.0
LAPSES_AFTER_S: Final = 12.0
_SETTLES_AFTER_S: Final = 1.0
_LOOKS_EVERY_S: Final = 0.5


class Lease:
    """Held from :meth:`take` to :meth:`release`, as long as :meth:`keep` is called several times within its time.

    :param folder: what is held.
    """

    def __init__(self, folder: Path | HadoopPath) -> None:
        self._folder = folder
        self._file = folder / "lock"
        self._me = uuid.uuid4().hex
        self._turn = 0
        self._renewed_at: float | None = None  # None while it is not held

    def take(self) -> None:
        """Hold the folder.

        :raises SetupError: when another monitor does, or nothing can be written there.
        """
        try:
            held, until = self._read(), time.monotonic() + LAPSES_AFTER_S
            while held and time.monotonic() < until:
                time.sleep(_LOOKS_EVERY_S)
                if (now := self._read()) not in {held, ""}:
                    raise self._taken()
                held = now
            self._write()
            time.sleep(_SETTLES_AFTER_S)
            self._check()
        except OSError as error:
            raise SetupError(f"cannot use {self._folder}: {error.strerror}; mend that, or set another job.state") from None

    def keep(self) -> None:
        """Say that it is still held; where that cannot be written now, the next time will do.

        :raises SetupError: when another monitor holds it by now.
        """
        if self._renewed_at is not None and time.monotonic() - self._renewed_at >= RENEWED_EVERY_S:
            self._renewed_at = time.monotonic()
            with contextlib.suppress(OSError):
                self._check()
                self._write()

    def release(self) -> None:
        """Give it back, if it is held."""
        if self._renewed_at is not None:
            self._renewed_at = None
            with contextlib.suppress(OSError):  # it lapses
                self._file.write_text("")

    def _read(self) -> str:
        return self._file.read_text() if self._file.exists() else ""

    def _write(self) -> None:
        self._turn += 1
        self._file.write_text(f"{self._me} {self._turn}")
        self._renewed_at = time.monotonic()

    def _check(self) -> None:
        if not self._read().startswith(self._me):
            self._renewed_at = None
            raise self._taken()

    def _taken(self) -> SetupError:
        return SetupError(f"another monitor is running on the checkpoint {self._folder}; stop it, or set another job.state")
