"""``rebalance-monitor top``: a live view of one's own cluster in the terminal.

Whatever else writes to the terminal destroys the picture. So logs are dropped while it is shown; what goes wrong is said in it.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.control import Control

from streaming.commands.output import fail, stdout
from streaming.commands.run import stop_signals
from streaming.commands.view import ConfigOption, PropertiesOption, ServersOption, results_source
from streaming.config.settings import ConfigError
from streaming.errors import SetupError
from streaming.published.page_state import PageState
from streaming.published.source import TopicsSource
from streaming.published.taking import TopicNames
from streaming.terminal.keyboard import Keyboard
from streaming.terminal.live_view import LiveView
from streaming.terminal.screen import Screen

if TYPE_CHECKING:
    import threading

_LOOK_EVERY_S: Final = 0.25


def top(config: ConfigOption = None, bootstrap_server: ServersOption = None, command_config: PropertiesOption = None) -> None:
    """Show the groups live in the terminal: state, members, the members they wait for, findings. q quits, ? shows the keys.

    rebalance-monitor top --config monitor.toml

    rebalance-monitor top --bootstrap-server monitor:9092
    """
    console = stdout(soft_wrap=False)
    if not (console.is_terminal and sys.stdin.isatty()) or console.is_dumb_terminal:
        fail("top needs a terminal; 'rebalance-monitor groups' prints the groups once, as a table or with --json")
    try:
        topics = results_source(config, bootstrap_server, command_config)[1]
    except (ConfigError, SetupError) as error:
        fail(error)
    state = PageState()
    source = TopicsSource(
        state,
        lambda: results_source(config, bootstrap_server, command_config)[0],
        TopicNames(topics.groups, topics.findings, topics.status, topics.events, topics.lag),
    )
    logging.getLogger().addHandler(logging.NullHandler())
    with stop_signals() as stop, source, Keyboard(sys.stdin.fileno()) as keyboard:
        _show(LiveView(state), keyboard, console, stop)


def _show(live: LiveView, keyboard: Keyboard, console: Console, stop: threading.Event) -> None:
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
