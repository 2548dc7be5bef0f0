"""``rebalance-monitor web``: the page, a process of its own that reads the topics."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator_model.settings import Settings
from streaming.commands.capture_files import ReplayError
from streaming.commands.options import BrokerPorts, ConfigOption, PropertiesOption, ServersOption
from streaming.commands.output import EXIT_INTERRUPTED, EXIT_OK, fail, stderr
from streaming.commands.recordings import read_recordings
from streaming.commands.stopping import stop_signals
from streaming.commands.view import results_source
from streaming.config.settings import ConfigError
from streaming.errors import SetupError
from streaming.published.page_state import ALL, PageState
from streaming.published.source import TopicsSource
from streaming.published.taking import TopicNames
from streaming.web.guard import Guard, NotSafeError
from streaming.web.mirror_frames import MirrorFrames
from streaming.web.server import STREAMS, Page
from streaming.web.serving import page_address, serving

DEFAULT_LISTEN: Final = "127.0.0.1:8080"


def web(
    config: ConfigOption = None,
    bootstrap_server: ServersOption = None,
    command_config: PropertiesOption = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="Show a recording without Kafka: a packet capture, a file of mirror records, a broker's log, or published records as "
            "JSON lines.",
        ),
    ] = None,
    port: BrokerPorts = None,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to listen; port 0 takes a free one.")] = DEFAULT_LISTEN,
    name: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="Another host name by which the page is called. Can be repeated.")
    ] = None,
    token_file: Annotated[Path | None, typer.Option(metavar="FILE", help="File with the token that viewers have to give.")] = None,
    proxy: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address of the proxy in front, which asks who looks; only it may connect."),
    ] = None,
    streams: Annotated[int, typer.Option(min=1, max=900, help="How many viewers are told of changes at a time.")] = STREAMS,
    hide_addresses: Annotated[bool, typer.Option("--hide-addresses", help="Show no addresses of members.")] = False,
) -> None:
    """Show groups, rebalances and findings on a page, for browsers, until it is stopped.

    rebalance-monitor web --config monitor.toml

    rebalance-monitor web --file recorded.jsonl

    rebalance-monitor web --file incident.pcapng

    Only this machine reaches the page by default. Another address to listen on needs a token, or a proxy in front.
    """
    try:
        address = page_address(listen, "--listen", DEFAULT_LISTEN)
        guard = Guard(address.host, frozenset(one.lower() for one in name or ()), _token(token_file), proxy)
        guard.check()
        if file is not None:
            state = PageState(clock=None, hide_addresses=hide_addresses, kept=ALL)
            state.notes = read_recordings(state, [str(file)], Settings(), ports=port or ()).summary
            source: nullcontext[None] | TopicsSource = nullcontext()
            frames = None
        else:
            topics = results_source(config, bootstrap_server, command_config)[1]
            state = PageState(hide_addresses=hide_addresses)
            frames = MirrorFrames(lambda: results_source(config, bootstrap_server, command_config)[0], topics.mirror)
            source = TopicsSource(
                state,
                lambda: results_source(config, bootstrap_server, command_config)[0],
                TopicNames(topics.groups, topics.findings, topics.status, topics.events, topics.lag),
            )
        page = Page(state, guard, streams=streams, frames=frames)
        with stop_signals() as stop, serving(page, address, "--listen") as (url, thread), source:
            stderr().print(f"the page is at {url}")
            while thread.is_alive() and not stop.wait(0.5):
                pass
    except (ConfigError, SetupError, NotSafeError, ReplayError) as error:
        fail(error)
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    raise typer.Exit(EXIT_OK)


def _token(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_text().strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"--token-file: {file} cannot be read: {error}") from None
