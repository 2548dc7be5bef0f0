"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from streaming.mirror.pcap.tls.key_log import KeyLog

if TYPE_CHECKING:
    from collections.abc import Callable

STDIN: Final = "-"
"""In the place of a file."""

KeyLogFile = Annotated[
    Path | None,
    typer.Option(
        "--key-log",
        metavar="FILE",
        help="Secrets of TLS connections, as SSLKEYLOGFILE has them; read on while it grows. Those in a pcapng file are used anyway.",
    ),
]

HoldBack = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="How long what a request log tells is held back for requests that came before, and wait. What waits longer is a gap.",
    ),
]

BrokerPorts = Annotated[
    list[int] | None,
    typer.Option(
        "--port",
        "-p",
        min=1,
        max=65535,
        help="Port of the brokers in a capture. Can be repeated. By default the ports are recognised.",
    ),
]

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The monitor's configuration, for its Kafka and its topic names."),
]
ServersOption = Annotated[
    str | None, typer.Option("--bootstrap-server", metavar="HOST:PORT[,…]", help="The monitor's Kafka, if there is no --config.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the published records as JSON, one object per line.")]

PropertiesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--command-config",
        metavar="FILE|KEY=VALUE",
        help="librdkafka properties for --bootstrap-server (security.protocol=SSL, …), or a file of them; passwords in a file only.",
    ),
]

Create = Annotated[
    bool,
    typer.Option(
        "--create-topic", help="Create the mirror topic if it does not exist. If it exists, print how it differs from the options."
    ),
]
Partitions = Annotated[
    int,
    typer.Option(
        min=1, help="Partitions of a created topic. The number cannot be changed later: the job keeps one model for each."
    ),
]
ReplicationFactor = Annotated[int, typer.Option(min=-1, help="Replication factor of a created topic. -1 is the broker's default.")]
RetentionHours = Annotated[float, typer.Option(min=0.1, help="Retention of a created topic.")]

MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="HOST:PORT",
        help="Serve Prometheus metrics at this address, path /metrics, and the probes /healthz and /readyz.",
    ),
]

_OPEN_TO_OTHERS: Final = "others than its owner may read {}, and with it the connections whose secrets it holds"


def key_log_of(path: Path | None, note: Callable[[str], object]) -> KeyLog:
    """Open the key log; say so if others may read it.

    :raises KeyLogError: when it cannot be read.
    """
    key_log = KeyLog(path)
    if key_log.open_to_others:
        note(_OPEN_TO_OTHERS.format(path))
    return key_log
