"""``rebalance-monitor clients``: which API versions clients speak, oldest first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from coordinator_model.finding import Finding
from coordinator_model.groups.records import host_of
from coordinator_model.settings import Settings
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.commands.capture_files import ReplayError
from streaming.commands.output import fail, stderr
from streaming.commands.replay import ReplaySession
from streaming.commands.view import ConfigOption, JsonOption, PropertiesOption, ServersOption, published_groups
from streaming.published.records import Json
from streaming.published.wire_text import harmless
from streaming.sinks.clients import oldest_first
from streaming.terminal.tables import clients_table


def clients(
    config: ConfigOption = None,
    bootstrap_server: ServersOption = None,
    command_config: PropertiesOption = None,
    *,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            "--file", metavar="FILE", help="Read a capture or a recording, without Kafka. Can be repeated.", show_default=False
        ),
    ] = None,
    port: Annotated[
        list[int] | None,
        typer.Option(
            "--port", "-p", min=1, max=65535, help="Port of the brokers in a capture. Can be repeated.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the clients of all groups with the API versions that they speak to coordinators, the oldest first.

    That is who has to be upgraded before the brokers are: Kafka 4.0 dropped old versions (KIP-896). Those that are
    members are listed; of a capture all that are in it.

    rebalance-monitor clients --config monitor.toml

    rebalance-monitor clients --file capture.pcap
    """
    groups = _recorded(file, port or ()) if file else published_groups(config, bootstrap_server, command_config)
    found = oldest_first(groups)
    if as_json:
        for one in found:
            typer.echo(json.dumps(one.as_json(), separators=(",", ":"), ensure_ascii=False))
        return
    shown: list[Json] = [harmless(one.as_json() | {"told": one.told}, hide_addresses=False) for one in found]
    Console(highlight=False).print(clients_table(shown) if shown else "No member's API versions are known.")


def _recorded(files: list[Path], ports: Sequence[int]) -> list[Json]:
    """Return all clients of captured traffic as members of their groups, those that have left too; on an error print it and exit."""
    speakers = _Speakers()
    session = ReplaySession(speakers, Settings(), stderr(), speakers.take)
    try:
        session.read([str(file) for file in files], ports, "", None)
        session.finish()
    except ReplayError as error:
        fail(error)
    return speakers.groups()


class _Speakers:
    """Takes the requests of a replay, and nothing that it finds."""

    event = group = None

    def __init__(self) -> None:
        self._members: dict[tuple[str, str | None, str], Json] = {}

    def take(self, record: MirrorRecord) -> None:
        if record.kind is not Kind.REQUEST or not record.group:
            return
        host = host_of(record.client_address)
        member = self._members.setdefault(
            (record.group, record.client_id, host),
            {"client_id": record.client_id, "client_address": host, "client_software": "", "versions": {}},
        )
        member["client_software"] = record.client_software or member["client_software"]
        member["versions"][API_NAMES[record.api_key]] = record.api_version

    def groups(self) -> list[Json]:
        return [{"group": group, "members": [member]} for (group, _, _), member in self._members.items()]

    def finding(self, finding: Finding) -> None:
        pass

    def finish(self) -> None:
        pass
