"""Output functions and exit statuses of all commands.

Results go to stdout, everything else to stderr. An error is one line that begins with ``error:``, in red on a terminal.
"""

from __future__ import annotations

from typing import Final, NoReturn

import typer
from rich.console import Console
from rich.text import Text

EXIT_OK: Final = 0
EXIT_FOUND: Final = 1  #: the command completed and found a problem
EXIT_UNUSABLE: Final = 2  #: the input or the configuration is invalid, or a required service cannot be reached
EXIT_INTERRUPTED: Final = 130


def stderr() -> Console:
    """Return a console for everything except results; it does not wrap lines, and adds no colours in a pipe."""
    return Console(stderr=True, soft_wrap=True, highlight=False)


def print_error(message: object) -> None:
    """Print each line of the message as an error."""
    _print("error: ", "bold red", message)


def print_warning(message: object) -> None:
    """Print each line of the message as a warning."""
    _print("warning: ", "bold yellow", message)


def _print(kind: str, style: str, message: object) -> None:
    console = stderr()
    for line in str(message).splitlines():
        console.print(Text(kind, style), Text(line), sep="")


def fail(message: object) -> NoReturn:
    """Print the message as an error and end with :data:`EXIT_UNUSABLE`.

    :raises typer.Exit: always.
    """
    print_error(message)
    raise typer.Exit(EXIT_UNUSABLE) from None
