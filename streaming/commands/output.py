"""Output functions and exit statuses of all commands.

Results go to stdout, everything else to stderr. An error is one line that begins with ``error:``, in red on a terminal.

Names come from the wire, and a terminal obeys escape sequences. So all consoles of commands are made here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any, Final, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from streaming.published.wire_text import is_seen, json_line, visible

_PIPE_WIDTH: Final = 100_000

EXIT_OK: Final = 0
EXIT_FOUND: Final = 1  #: the command completed and found a problem
EXIT_UNUSABLE: Final = 2  #: the input or the configuration is invalid, or a required service cannot be reached
EXIT_INTERRUPTED: Final = 130


class _Console(Console):
    """Makes visible whatever text a terminal would obey; only new lines stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or is_seen(segment.text) or segment.text == "\n":
                yield segment
            else:
                yield Segment("\n".join(map(visible, segment.text.split("\n"))), segment.style)


def stdout(*, soft_wrap: bool = True) -> Console:
    """Return a console for results.

    :param soft_wrap: False for tables, which fit into the width; True leaves it to the terminal to wrap lines.
    """
    return _Console(soft_wrap=soft_wrap, highlight=False, markup=False)


def tables() -> Console:
    """Return a console for tables: as wide as the terminal, and in a pipe as wide as they are, unless COLUMNS says how wide."""
    console = stdout(soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPE_WIDTH
    return console


def stderr() -> Console:
    """Return a console for everything except results; it does not wrap lines, and adds no colours in a pipe."""
    return _Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def say(console: Console, sentence: str) -> None:
    """Print a sentence with the time of day before it."""
    console.print(Text(time.strftime("%H:%M:%S "), "dim"), Text(visible(sentence)), sep="")


def print_json(value: Any) -> None:
    """Print plain JSON as one line."""
    typer.echo(json_line(value))


def print_error(message: object) -> None:
    """Print each line of the message as an error."""
    _print("error: ", "bold red", message)


def print_internal_error(message: str) -> None:
    """Print a message about a defect of the monitor."""
    _print("internal error: ", "bold red", visible(message))


def print_warning(message: object) -> None:
    """Print each line of the message as a warning."""
    _print("warning: ", "bold yellow", message)


def _print(kind: str, style: str, message: object) -> None:
    console = stderr()
    for line in filter(None, str(message).split("\n")):
        console.print(Text(kind, style), Text(visible(line)), sep="")


def fail(message: object) -> NoReturn:
    """Print the message as an error and end with :data:`EXIT_UNUSABLE`.

    :raises typer.Exit: always.
    """
    print_error(message)
    raise typer.Exit(EXIT_UNUSABLE) from None
