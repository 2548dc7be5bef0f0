"""``rebalance-monitor web``: the page, a process of its own that reads the topics."""

from __future__ import annotations

import errno
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator_model.settings import Settings
from streaming.commands.capture_files import ReplayError
from streaming.commands.capture_options import BrokerPorts
from streaming.commands.output import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNUSABLE, print_error, stderr
from streaming.commands.recordings import read_recordings
from streaming.commands.run import stop_signals
from streaming.commands.view import ConfigOption, PropertiesOption, ServersOption, results_source
from streaming.config.metrics import Address, parse_address
from streaming.config.settings import ConfigError
from streaming.errors import SetupError
from streaming.published.page_state import ALL, PageState
from streaming.published.source import TopicsSource
from streaming.published.taking import TopicNames
from streaming.web.guard import Guard, NotSafeError
from streaming.web.mirror_frames import MirrorFrames
from streaming.web.server import STREAMS, Page, Server

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
        address = _address(listen)
        guard = Guard(address.host, frozenset(one.lower() for one in name or ()), _token(token_file), proxy)
        guard.check()
        if file is not None:
            state = PageState(clock=None, hide_addresses=hide_addresses, kept=ALL)
            read_recordings(state, [str(file)], Settings(), ports=port or ())
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
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        with stop_signals() as stop, _listening(address) as listener, source:
            _serve(Page(state, guard, streams=streams, frames=frames), listener, stop)
    except (ConfigError, SetupError, NotSafeError, ReplayError) as error:
        print_error(error)
        raise typer.Exit(EXIT_UNUSABLE) from None
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    raise typer.Exit(EXIT_OK)


def _serve(page: Page, listener: socket.socket, stop: threading.Event) -> None:
    server = Server(page)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="server")
    thread.start()
    host, port = listener.getsockname()[:2]
    stderr().print(f"the page is at http://{f'[{host}]' if ':' in host else host}:{port}/")
    try:
        while thread.is_alive() and not stop.wait(0.5):
            pass
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def _listening(address: Address) -> Iterator[socket.socket]:
    """Return a socket that listens.

    :raises SetupError: when the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server((address.host, address.port), family=family, backlog=128)
    except OSError as error:
        why = "it is in use: name another port" if error.errno == errno.EADDRINUSE else (error.strerror or str(error))
        raise SetupError(f"--listen: cannot listen on {address.host}:{address.port}: {why}") from None
    with listener:
        yield listener


def _address(listen: str) -> Address:
    try:
        return parse_address(listen)
    except ValueError:
        raise ConfigError(f"--listen: {listen} is not HOST:PORT, as in {DEFAULT_LISTEN} or [::1]:8080") from None


def _token(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_text().strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"--token-file: {file} cannot be read: {error}") from None
