"""Shows the live view in a terminal until it is over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rich.control import Control

from streaming.terminal.screen import Screen

if TYPE_CHECKING:
    import threading

    from rich.console import Console

    from streaming.terminal.keyboard import Keyboard
    from streaming.terminal.live_view import LiveView

_LOOK_EVERY_S: Final = 0.25


def show(live: LiveView, keyboard: Keyboard, console: Console, stop: threading.Event) -> None:
    """Draw when something has changed, and each second, until it is over."""
    drawn: object = None
    with console.screen():
        while not (live.is_over or stop.is_set()):
            now_s = time.time()
            current = (live.state.version, console.size, int(now_s))
            if current != drawn:
                with console:  # one write
                    console.control(Control.home())
                    console.print(Screen(live, now_s), height=console.height, end="")
                drawn = current
            try:
                keys = keyboard.read(_LOOK_EVERY_S)
            except EOFError:
                return
            for key in keys:
                live.press(key)
                drawn = None
