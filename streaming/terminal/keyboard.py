"""Reads single keys of a terminal, and puts the terminal back as it was.

A terminal that is left without echo is useless afterwards. So everything that could end the process without its context
managers is switched off meanwhile (the keys for quit and suspend), and Ctrl-C stays the signal that it is.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import select
import termios
from typing import Final, Self

_ESCAPE: Final = "\x1b"
_ESCAPE_ALONE_S: Final = 0.05  #: after which what came is the key Escape, and not the beginning of a sequence
_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])")
_BEGUN_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?")
_NAMES: Final = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1bOH": "home",
    "\x1b[1~": "home",
    "\x1b[F": "end",
    "\x1bOF": "end",
    "\x1b[4~": "end",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x15": "clear",
    _ESCAPE: "escape",
}


class Keyboard:
    """The keys of a terminal, one by one and without echo; a context manager.

    :param descriptor: of the terminal.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._begun = ""

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._descriptor)
        mode = termios.tcgetattr(self._descriptor)
        disabled = bytes([os.fpathconf(self._descriptor, "PC_VDISABLE") & 0xFF])
        mode[0] &= ~termios.IXON  # Ctrl-S would stop the picture
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VQUIT] = mode[6][termios.VSUSP] = disabled
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, mode)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

    def read(self, timeout_s: float) -> list[str]:
        """Return the keys that were pressed, waiting up to ``timeout_s`` for the first: a character, or a name such as "up".

        :raises EOFError: when the terminal is gone.
        """
        if not self._ready(_ESCAPE_ALONE_S if self._begun else timeout_s):
            begun, self._begun = self._begun, ""
            return [_NAMES[_ESCAPE]] if begun == _ESCAPE else []
        try:
            data = os.read(self._descriptor, 1024)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        keys, self._begun = keys_of(self._begun + self._decoder.decode(data))
        return keys

    def _ready(self, timeout_s: float) -> bool:
        return bool(select.select([self._descriptor], [], [], timeout_s)[0])


def keys_of(text: str) -> tuple[list[str], str]:
    """Return the keys that a terminal's text stands for, and what may be the beginning of another one; unknown keys are left out."""
    keys = []
    while text:
        if found := _SEQUENCE.match(text):
            keys.append(_NAMES.get(found[0], ""))
            text = text[found.end() :]
        elif _BEGUN_SEQUENCE.fullmatch(text):
            break
        else:
            keys.append(_NAMES.get(text[0], text[0] if text[0].isprintable() else ""))
            text = text[1:]
    return [key for key in keys if key], text
