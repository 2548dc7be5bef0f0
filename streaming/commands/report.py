"""``rebalance-monitor report``: what happened in groups, why, and what it cost, as one page to send to a team."""

from __future__ import annotations

import difflib
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from streaming.commands.capture_files import ReplayError
from streaming.commands.options import BrokerPorts, KeyLogFile, PropertiesOption, ServersOption
from streaming.commands.output import EXIT_OK, EXIT_UNUSABLE, fail
from streaming.commands.recordings import NOTHING_READ, read_recordings
from streaming.commands.replay import settings_of
from streaming.commands.since import moment_of
from streaming.commands.view import results_source
from streaming.config.settings import ConfigError
from streaming.errors import SetupError, why_not
from streaming.mirror.pcap.tls.key_log import KeyLogError
from streaming.published.page_state import ALL, PageState
from streaming.published.source import read_topics
from streaming.published.taking import TopicNames
from streaming.published.wire_text import json_line, shown_name
from streaming.report.contents import report_of
from streaming.report.markdown import markdown_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streaming.report.contents import Report


class Format(StrEnum):
    """The form of a report."""

    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"


_SINCE: Final = "7d"


def report(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]…",
            help="What to report on, without Kafka: packet captures, files of mirror records, brokers' logs, or published records as JSON "
            "lines. A folder stands for the files in it, - for a capture on standard input. Without a file the monitor's topics are read.",
        ),
    ] = None,
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="The monitor's configuration: for its Kafka and its topic names; with files, for its [model] settings.",
        ),
    ] = None,
    bootstrap_server: ServersOption = None,
    command_config: PropertiesOption = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help=f"How far to go back in the topics: 30m, 8h, 2d, or a time in UTC such as 2026-01-31T03:00; {_SINCE} by default.",
        ),
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", "-g", metavar="NAME", help="Report only this group. Can be repeated.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report to a file, and not to standard output.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", "-f", help="Make a page, Markdown, or JSON with everything in it.")
    ] = Format.HTML,
    port: BrokerPorts = None,
    cluster: Annotated[str, typer.Option(help="Name of the cluster of a capture or a log. Mirror records carry their own.")] = "",
    key_log: KeyLogFile = None,
    hide_addresses: Annotated[bool, typer.Option("--hide-addresses", help="Leave the addresses of members out.")] = False,
) -> None:
    """Report what happened in groups: what their rebalances cost, by cause, who was waited for, and what is wrong.

    The page is one file without scripts, to send to a team or to print. It ends with what the monitor could not see.

    Exit status: 0 if the report was made, 2 if something cannot be read, or a file not to its end; then the report says so.

        rebalance-monitor report incident.pcapng -o report.html

        rebalance-monitor report --config monitor.toml --since 7d -o report.html

        rebalance-monitor report --config monitor.toml --since 8h --group orders --format markdown

        rebalance-monitor report server.log* --format json | jq '.groups[0].causes'
    """
    if form is Format.HTML and output is None and sys.stdout.isatty():
        fail("a page is nothing for a terminal: write it to a file with -o report.html, or choose --format markdown")
    try:
        since_s = _begin(since, files)
        state = PageState(clock=None if files else time.time, hide_addresses=hide_addresses, kept=ALL)
        if since_s is None:
            read = read_recordings(state, files or (), settings_of(config), ports=port or (), cluster=cluster, key_log=key_log)
        else:
            _read_topics(state, config, bootstrap_server, command_config, since_s)
            read = NOTHING_READ
        made = report_of(state, wanted=_wanted(state, group or ()), since_s=since_s, clients=read.clients, read=read.summary)
    except (ConfigError, SetupError, ReplayError, KeyLogError) as error:
        fail(error)
    _write(_form(made, form), output)
    raise typer.Exit(EXIT_UNUSABLE if read.is_damaged else EXIT_OK)


def _begin(since: str | None, files: Sequence[str] | None) -> float | None:
    """Return where the time begins that is reported; None for the beginning of files.

    :raises ConfigError: when it goes with files, or is no time.
    """
    if not files:
        return moment_of(since or _SINCE, time.time())
    if since is not None:
        raise ConfigError("--since goes with the monitor's topics: of files everything is reported")
    return None


def _read_topics(
    state: PageState, config: Path | None, bootstrap_server: str | None, command_config: list[str] | None, since_s: float
) -> None:
    """Read what the monitor has published.

    :raises ConfigError, SetupError: when it cannot be read.
    """
    try:
        properties, topics = results_source(config, bootstrap_server, command_config)
    except ConfigError as error:
        nowhere = config is None and bootstrap_server is None
        raise ConfigError(f"name a file to report on, or {error}" if nowhere else str(error)) from None
    names = TopicNames(topics.groups, topics.findings, topics.status, topics.events, topics.lag)
    read_topics(state, lambda: properties, names, since_s=since_s)


def _wanted(state: PageState, names: Sequence[str]) -> Callable[[str], bool]:
    """Return which groups are reported.

    :raises ConfigError: when one of these names is no group's.
    """
    known = {group for _, group in state.groups}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigError(
                f"--group: nothing is known of a group {shown_name(name)}"
                + (f"; did you mean {shown_name(near[0])}?" if near else "")
            )
    chosen = frozenset(names)
    return lambda group: not chosen or group in chosen


def _form(made: Report, form: Format) -> str:
    if form is Format.JSON:
        return json_line(made.as_json()) + "\n"
    if form is Format.MARKDOWN:
        return markdown_of(made)
    from streaming.report.page import page_of  # noqa: PLC0415 - needs what only the page needs

    return page_of(made)


def _write(text: str, output: Path | None) -> None:
    content = text.encode(errors="backslashreplace")  # a name may hold half of a character
    if output is None:
        sys.stdout.buffer.write(content)
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        fail(f"{output} cannot be written: {why_not(error)}")
