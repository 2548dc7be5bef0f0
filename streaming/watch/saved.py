"""Keeps the records of a watch in files by the hour, for ``replay``, ``report`` and ``web --file``; bounded in size."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from coordinator_model.wire.record import Kind, pack_envelope
from coordinator_model.wording import counted
from streaming.errors import SetupError, why_not
from streaming.mirror.record_file import RecordFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator_model.wire.record import MirrorRecord

SUFFIX: Final = ".records"
_AGAIN_S: Final = 60.0
_HOUR_US: Final = 3_600_000_000


class SavedRecords:
    """Writes records to a folder.

    :param most_bytes: of all files together; the oldest go first.
    :param tell: called with a sentence when they cannot be written, and when they can again.
    :raises SetupError: when the folder cannot be made.
    """

    def __init__(self, folder: Path, most_bytes: int, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._tell = tell
        self._hour = -1
        self._stream: BinaryIO | None = None
        self._file: RecordFile | None = None
        self._offset = 0
        self._lost = 0
        self._again_s = 0.0
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"--save: {folder} cannot be made: {why_not(error)}") from None

    def write(self, record: MirrorRecord) -> None:
        """Append a record to the file of its hour; what cannot be written is counted."""
        if self._lost and time.monotonic() < self._again_s:
            self._lost += 1
            return
        try:
            self._append(record)
        except OSError as error:
            if not self._lost:
                self._tell(f"--save: {self._folder} cannot be written: {why_not(error)}; tried again each minute")
            self._lost += 1
            self._again_s = time.monotonic() + _AGAIN_S
            self.close()
        else:
            if self._lost:
                self._tell(f"--save: {self._folder} can be written again; {counted(self._lost, 'record')} were not saved")
                self._lost = 0

    def close(self) -> None:
        """End the file of this hour."""
        stream, self._stream, self._file, self._hour = self._stream, None, None, -1
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()

    def _append(self, record: MirrorRecord) -> None:
        hour = record.at_us // _HOUR_US
        if self._file is None or hour > self._hour:
            self._begin(hour)
        assert self._file is not None
        key = None if record.group is None else record.group.encode()
        self._file.write(partition=0, offset=self._offset, key=key, value=record.frame, envelope=pack_envelope(record))
        self._offset += 1
        if record.kind is Kind.TICK and self._stream is not None:
            self._stream.flush()

    def _begin(self, hour: int) -> None:
        self.close()
        self._make_room()
        name = time.strftime("%Y-%m-%dT%H", time.gmtime(hour * 3600))
        path = self._folder / f"{name}{SUFFIX}"
        number = 0
        while path.exists():
            number += 1
            path = self._folder / f"{name}.{number}{SUFFIX}"
        self._stream = path.open("xb")
        self._file, self._hour, self._offset = RecordFile(self._stream), hour, 0

    def _make_room(self) -> None:
        files = sorted(self._folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime)
        total = sum(path.stat().st_size for path in files)
        for path in files:
            if total <= self._most_bytes:
                break
            total -= path.stat().st_size
            path.unlink()
