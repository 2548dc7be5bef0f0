"""``rebalance-monitor clients``: which API versions clients speak, oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from coordinator_model.finding import Finding
from coordinator_model.settings import Settings
from streaming.commands.capture_files import ReplayError
from streaming.commands.options import BrokerPorts, ConfigOption, JsonOption, PropertiesOption, ServersOption
from streaming.commands.output import fail, print_json, stderr, tables
from streaming.commands.replay import ReplaySession
from streaming.commands.view import published_groups
from streaming.published.records import Json
from streaming.published.wire_text import harmless
from streaming.sinks.clients import ClientsSeen, oldest_first
from streaming.terminal.tables import clients_table


def clients(
    config: ConfigOption = None,
    bootstrap_server: ServersOption = None,
    command_config: PropertiesOption = None,
    *,
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", metavar="FILE", help="Read a capture or a recording, without Kafka. Can be repeated."),
    ] = None,
    port: BrokerPorts = None,
    as_json: JsonOption = False,
) -> None:
    """List the clients of all groups with the API versions that they speak to coordinators, the oldest first.

    Upgrade these clients before the brokers: Kafka 4.0 dropped old versions (KIP-896). The monitor lists clients that are members, a
    capture all that are in it. Below the list are the known defects of their releases.

    rebalance-monitor clients --config monitor.toml

    rebalance-monitor clients --file capture.pcap
    """
    groups = _recorded(file, port or ()) if file else published_groups(config, bootstrap_server, command_config)
    found = oldest_first(groups)
    if as_json:
        for one in found:
            print_json(one.as_json())
        return
    shown: list[Json] = [harmless(one.as_json() | {"told": one.versions_text}, hide_addresses=False) for one in found]
    console = tables()
    console.print(clients_table(shown) if shown else "No member's API versions are known.")
    for line in dict.fromkeys(line for one in found for line in one.known_defects):
        console.print(line, soft_wrap=True)


def _recorded(files: list[Path], ports: Sequence[int]) -> list[Json]:
    """Return all clients of captured traffic as members of their groups, those that have left too; on an error print it and exit."""
    clients_seen = ClientsSeen()
    session = ReplaySession(_Unshown(), Settings(), stderr(), clients_seen.take)
    try:
        session.read([str(file) for file in files], ports, "", None)
        session.finish()
    except ReplayError as error:
        fail(error)
    return clients_seen.groups()


class _Unshown:
    """Takes nothing that a replay finds."""

    event = group = None

    def finding(self, finding: Finding) -> None:
        pass

    def finish(self) -> None:
        pass
