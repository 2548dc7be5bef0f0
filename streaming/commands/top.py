"""``rebalance-monitor top``: a live view of one's own cluster in the terminal.

Whatever else writes to the terminal destroys the picture. So logs are dropped while it is shown; what goes wrong is said in it.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from streaming.commands.options import ConfigOption, PropertiesOption, ServersOption
from streaming.commands.output import fail, stdout
from streaming.commands.stopping import stop_signals
from streaming.commands.view import results_source
from streaming.config.settings import ConfigError
from streaming.errors import SetupError
from streaming.published.page_state import PageState
from streaming.published.records import STALE_S, duration
from streaming.published.source import TopicsSource
from streaming.published.taking import TopicNames
from streaming.terminal.keyboard import Keyboard
from streaming.terminal.live_view import LiveView, Remark
from streaming.terminal.screen import show

if TYPE_CHECKING:
    from collections.abc import Iterator


def top(config: ConfigOption = None, bootstrap_server: ServersOption = None, command_config: PropertiesOption = None) -> None:
    """Show the groups live in the terminal: state, members, the members they wait for, findings. q quits, ? shows the keys.

    rebalance-monitor top --config monitor.toml

    rebalance-monitor top --bootstrap-server monitor:9092
    """
    console = stdout(soft_wrap=False)
    if not (console.is_terminal and sys.stdin.isatty()) or console.is_dumb_terminal:
        fail("top needs a terminal; 'rebalance-monitor groups' prints the groups once, as a table or with --json")
    try:
        properties, topics = results_source(config, bootstrap_server, command_config)
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
        show(LiveView(state, TopicsShown(str(properties["bootstrap.servers"]))), keyboard, console, stop)


class TopicsShown:
    """The result topics, as the source of what is shown."""

    title = "rebalance-monitor top"

    def __init__(self, servers: str) -> None:
        self.place = servers

    def remarks(self, state: PageState, now_s: float) -> Iterator[Remark]:
        """Whatever makes what is shown untrue."""
        age_s = now_s - state.status_written_s
        if state.problem is not None:
            yield Remark(f"nothing new comes: {state.problem}", is_bad=True)
        elif not state.complete:
            yield Remark("the topics are being read; what is shown is not complete yet")
        elif not state.status_written_s:
            yield Remark("no monitor has run on this Kafka yet: it has not written any status", is_bad=True)
        elif age_s > STALE_S:
            since = f"the monitor wrote its last status {duration(age_s)} ago"
            yield Remark(f"{since}: it is not running, and what is shown is of that age", is_bad=True)
