"""The delivery log as a file of JSON lines: for a monitor of one machine, which has no topic for it.

A line is a key and its newest value. The file is written anew when most of its lines are superseded, so that it does not grow.
"""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Final

from streaming.errors import SetupError, why_not
from streaming.notify.delivery_log import KeyedDeliveryLog, Memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SUPERSEDED: Final = 1_000


class FileDeliveryLog(KeyedDeliveryLog):
    """A delivery log that appends to a file. Thread-safe.

    :param tell: called with a sentence when the file cannot be written.
    :raises SetupError: when the file cannot be read or written.
    """

    def __init__(self, file: Path, findings: str, *, tell: Callable[[str], None] = lambda _sentence: None) -> None:
        super().__init__(findings)
        self._file = file
        self._topic = findings
        self._tell = tell
        self._in_trouble = False
        self._lock = threading.Lock()  # several receivers write
        self._known: dict[str, str] = {}
        self._lines = 0
        try:
            self._read()
            self._rewrite()
        except OSError as error:
            raise SetupError(f"the delivery log {file} cannot be written: {why_not(error)}") from None

    def memory(self) -> Memory:
        """Return what the log holds."""
        memory = Memory(self._topic)
        for key, value in self._known.items():
            memory.take(key.encode(), value.encode())
        return memory

    def write(self, key: bytes, value: bytes | None) -> None:
        name = key.decode()
        with self._lock:
            self._lines += 1
            if value is None:
                self._known.pop(name, None)
            else:
                self._known[name] = value.decode()
            try:
                if self._lines > 2 * len(self._known) + _SUPERSEDED:
                    self._rewrite()
                else:
                    with self._file.open("a") as stream:
                        stream.write(_line(name, None if value is None else value.decode()))
            except OSError as error:
                self._say(error)
            else:
                self._in_trouble = False

    def flush(self) -> bool:
        return not self._in_trouble

    def _read(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if not self._file.exists():
            return
        for line in self._file.read_text().splitlines():
            try:
                name, value = json.loads(line)
            except ValueError:
                continue  # a kill came between
            if value is None:
                self._known.pop(name, None)
            else:
                self._known[name] = value

    def _rewrite(self) -> None:
        anew = self._file.with_name(f"{self._file.name}.new")
        with anew.open("w") as stream:
            stream.writelines(_line(*known) for known in self._known.items())
            stream.flush()
            os.fsync(stream.fileno())
        anew.replace(self._file)
        self._lines = len(self._known)

    def _say(self, error: OSError) -> None:
        if not self._in_trouble:
            self._in_trouble = True
            sentence = f"the delivery log {self._file} cannot be written: {why_not(error)}"
            self._tell(f"{sentence}; after a restart some alerts may be sent again")


def _line(name: str, value: str | None) -> str:
    return f"{json.dumps([name, value])}\n"
