"""Follows a log while it is written, across rotation, as ``tail -F`` does.

What was written between the last look and the rotation is in the file that has been moved away, and belongs before the new one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streaming.mirror.broker_log.scan import Scanner
from streaming.mirror.broker_log.times import FileClock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from streaming.mirror.broker_log.reader import RequestLogReader

_CHUNK: Final = 1 << 20
_LOOK_S: Final = 0.2


class Follower:
    """Gives a reader what is written to logs."""

    def __init__(self, files: Sequence[FollowedFile], reader: RequestLogReader) -> None:
        self._files = [(file, Scanner(reader.counts), FileClock()) for file in files]
        self._reader = reader

    def step(self) -> bool:
        """Hand on what came since the last time; return whether anything did.

        :raises OSError: when a log cannot be read.
        """
        came = False
        for file, scanner, clock in self._files:
            if data := file.read():
                came = True
                for entry in self._reader.entries_of(scanner.feed(data), clock):
                    self._reader.take(entry)
        return came


def follow(files: Sequence[FollowedFile], reader: RequestLogReader) -> None:
    """Give a reader what is written to logs, until a KeyboardInterrupt.

    :raises OSError: when one cannot be read.
    """
    follower = Follower(files, reader)
    while True:
        if not follower.step():
            time.sleep(_LOOK_S)


class FollowedFile:
    """A file that grows, and may be moved away and begun anew, or cut back to nothing.

    :param path: it need not exist yet. What it holds at first is passed over.
    :raises OSError: when it exists, and cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = self._opened()
        if self._stream is not None:
            self._stream.seek(0, os.SEEK_END)

    def read(self) -> bytes:
        """Return what has come since the last time, nothing if nothing has.

        :raises OSError: when it cannot be read.
        """
        if self._stream is None:
            self._stream = self._opened()
            if self._stream is None:
                return b""
        data: bytes = self._stream.read(_CHUNK)
        if not data and self._is_replaced(self._stream):
            self._stream.close()
            self._stream = self._opened()
            return b"\n"  # a line that was being written ends with its file
        return data

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _opened(self) -> BinaryIO | None:
        try:
            return self.path.open("rb", buffering=0)
        except FileNotFoundError:
            return None

    def _is_replaced(self, stream: BinaryIO) -> bool:
        mine = os.fstat(stream.fileno())
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return False  # between the move and the new file
        return (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino) or now.st_size < stream.tell()
