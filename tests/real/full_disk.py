"""A folder whose disk can be made full: a small file system of its own where that may be mounted, else a limit on what a process writes."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

SIZE_MB = 160


class SmallDisk:
    """A context manager; ``folder`` is where to write.

    Mounting needs root. Without it the writing process is limited instead (RLIMIT_FSIZE): its writes then fail with another error, at
    the same places.
    """

    def __init__(self, folder: Path, *, size_mb: int = SIZE_MB) -> None:
        self.folder = folder
        self.is_mounted = False  #: a file system of its own
        self._size_mb = size_mb

    def __enter__(self) -> Self:
        self.folder.mkdir()
        if os.geteuid() == 0:
            mount = ["mount", "-t", "tmpfs", "-o", f"size={self._size_mb}m", "tmpfs", str(self.folder)]
            self.is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    @contextlib.contextmanager
    def full_for(self, pid: int) -> Iterator[None]:
        """For as long as this lasts, the process cannot write to the folder."""
        if not self.is_mounted:
            if not hasattr(resource, "prlimit"):
                pytest.skip("without root a full disk needs prlimit, which this system does not have")
            soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
            try:
                yield
            finally:
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
            return
        filler, enough = self.folder / "filler", threading.Event()
        filler.touch()
        thread = threading.Thread(target=_fill, args=(filler, enough))
        thread.start()
        try:
            yield
        finally:
            enough.set()
            thread.join()
            filler.unlink()


def _fill(filler: Path, enough: threading.Event) -> None:
    """A job deletes as it writes: what it makes free is filled, too."""
    with filler.open("ab", buffering=0) as file:
        while not enough.wait(0.01):
            with contextlib.suppress(OSError):
                while not enough.is_set():
                    file.write(bytes(4096))
