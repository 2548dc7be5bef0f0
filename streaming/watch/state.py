"""What a watch keeps in a file, so that the next start goes on from it: the models, and how far results were counted.

The file is replaced as a whole, so a kill leaves the one before. Two processes must not go on from the same state, so it is locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, Final, TextIO

import msgspec

from streaming.errors import why_not

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FORMAT: Final = 1


class State(msgspec.Struct, array_like=True):
    """What is kept."""

    format: int = _FORMAT
    origin: str = ""  #: of what: an input, its topic
    snapshots: dict[int, bytes] = msgspec.field(default_factory=dict)  #: by partition
    offsets: dict[str, int] = msgspec.field(default_factory=dict)  #: of the results handed on
    saved_us: int = 0  #: newest capture time


class StateFile:
    """Reads and writes the state.

    :param path: None keeps nothing.
    :param origin: what is watched; the state of another one is not gone on from.
    :param tell: called with a sentence when it cannot be read or written.
    """

    def __init__(self, path: Path | None, origin: str, tell: Callable[[str], None]) -> None:
        self._path = path
        self._origin = origin
        self._tell = tell
        self._in_trouble = False
        self._held: TextIO | None = None
        if path is not None and not self._lock(path):
            self._path = None

    def read(self) -> State:
        """Return what was kept; an empty state if there is none."""
        nothing = State(origin=self._origin)
        if self._path is None:
            return nothing
        try:
            state = msgspec.msgpack.decode(self._path.read_bytes(), type=State)
        except FileNotFoundError:
            return nothing
        except (OSError, msgspec.MsgspecError) as error:
            self._tell(f"the state {self._path} cannot be read, and everything is learned anew: {error}")
            return nothing
        if (state.format, state.origin) != (_FORMAT, self._origin):
            self._tell(f"the state {self._path} is of another input ({state.origin}), and everything is learned anew")
            return nothing
        return state

    def write(self, state: State) -> None:
        """Keep a state in the place of the one before."""
        if self._path is None:
            return
        anew = self._path.with_name(f"{self._path.name}.new")
        try:
            with anew.open("wb") as stream:
                stream.write(msgspec.msgpack.encode(state))
                stream.flush()
                os.fsync(stream.fileno())
            anew.replace(self._path)
        except OSError as error:
            if not self._in_trouble:
                self._tell(f"the state {self._path} cannot be written: {why_not(error)}; a start will go on from an older one")
            self._in_trouble = True
            with contextlib.suppress(OSError):
                anew.unlink()
        else:
            self._in_trouble = False

    def close(self) -> None:
        """Let another process go on from the state."""
        if self._held is not None:
            self._held.close()

    def _lock(self, path: Path) -> bool:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._held = path.with_name(f"{path.name}.lock").open("w")
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._tell(f"another watch uses the state {path}: this one keeps none; --state names another file")
            return False
        except OSError as error:
            self._tell(f"no state is kept, {path} cannot be written: {why_not(error)}")
            return False
        return True
