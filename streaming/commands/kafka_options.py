"""Options of the commands that connect to Kafka."""

from __future__ import annotations

from typing import Annotated

import typer

PropertiesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--command-config",
        metavar="FILE|KEY=VALUE",
        help="librdkafka properties for --bootstrap-server (security.protocol=SSL, …), or a file of them; passwords in a file only.",
    ),
]
