"""Options of the commands that read packet captures."""

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

_OPEN_TO_OTHERS: Final = "others than its owner may read {}, and with it the connections whose secrets it holds"


def key_log_of(path: Path | None, note: Callable[[str], object]) -> KeyLog:
    """Open the key log; say so if others may read it.

    :raises KeyLogError: when it cannot be read.
    """
    key_log = KeyLog(path)
    if key_log.open_to_others:
        note(_OPEN_TO_OTHERS.format(path))
    return key_log
