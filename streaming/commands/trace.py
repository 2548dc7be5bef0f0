"""``rebalance-monitor trace``: prints what happened in a group as a trace, for viewers of traces."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.commands.options import ConfigOption, PropertiesOption, ServersOption
from streaming.commands.output import fail, print_json
from streaming.commands.since import moment_of
from streaming.commands.view import results_source
from streaming.config.settings import ConfigError
from streaming.errors import SetupError
from streaming.kafka.compacted import CompactedReader
from streaming.published.page_state import ALL, PageState
from streaming.published.records import event_of
from streaming.published.taking import read_file
from streaming.published.wire_text import shown_name
from streaming.traces.trace_events import trace_events

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from streaming.published.page_state import GroupPast


def trace(
    name: Annotated[str, typer.Argument(metavar="GROUP", help="The group's id.")],
    config: ConfigOption = None,
    bootstrap_server: ServersOption = None,
    command_config: PropertiesOption = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Read published events from a file, one JSON object a line, without Kafka."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="How far to go back: 30m, 8h, 2d, or a time in UTC such as 2026-01-31T03:00. All by default."
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="The group's cluster, if groups of several have the name.")
    ] = None,
) -> None:
    """Print what happened in a group as trace-event JSON, which ui.perfetto.dev and chrome://tracing open.

    rebalance-monitor trace orders --config monitor.toml --since 8h > orders.json

    rebalance-monitor trace orders --file recorded.jsonl > orders.json

    The group's state, its rebalances and each member have a lane. An arrow leads from who waits to who is waited for. A browser that
    opens the file at ui.perfetto.dev does not upload it.
    """
    now_s = time.time()
    try:
        since_s = None if since is None else moment_of(since, now_s)
        if file is not None:
            state = PageState(clock=None, kept=ALL)
            read_file(state, file)
        else:
            properties, topics = results_source(config, bootstrap_server, command_config)
            state = _read(properties, topics.events, name, since_s)
    except (ConfigError, SetupError) as error:
        fail(error)
    past = _chosen(state, name, cluster)
    print_json(trace_events(past, from_s=since_s, to_s=state.now_s()))


def _read(properties: Mapping[str, Any], topic: str, name: str, since_s: float | None) -> PageState:
    """Return the events of the groups of that name.

    :raises SetupError: when the topic cannot be read.
    """
    state = PageState(kept=ALL)
    with CompactedReader(lambda: properties, (topic,), "the reader", since_s=since_s) as reader:
        reader.start(patience_s=0)
        for record in reader.history():
            event = None if record.value is None or not record.name.endswith(f"/{name}") else event_of(record.value)
            if event is not None and event.group == name:
                state.event(event)
    return state


def _chosen(state: PageState, name: str, cluster: str | None) -> GroupPast:
    found = [past for key, past in state.groups.items() if key[1] == name and cluster in {None, key[0]} and past.events]
    if not found:
        fail(f"there is no event of a group {shown_name(name)}{f' of {shown_name(cluster)}' if cluster else ''} in that time")
    if len(found) > 1:
        clusters = ", or ".join(shown_name(past.key[0]) for past in found)
        fail(f"several clusters have a group {shown_name(name)}: choose with --cluster {clusters}")
    return found[0]
