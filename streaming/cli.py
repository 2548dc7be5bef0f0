"""The command line, ``rebalance-monitor``: one command per module, put together here.

*A user never sees a traceback*: a command reports an expected error itself, in one sentence and with exit status 2. An unexpected one ends
here, also in one sentence, and ``REBALANCE_MONITOR_TRACEBACK=1`` shows the rest. *Start-up is quick*: all commands together import
libraries for half a second, so only the command that is called is imported.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from streaming.commands.output import EXIT_UNUSABLE, print_error, print_internal_error
from streaming.gc_tuning import collected_seldom, leave_uncollected
from streaming.logs import log_to_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

_COMMANDS: Final = {
    "demo": "streaming.commands.demo:demo",
    "watch": "streaming.commands.watch:watch",
    "run": "streaming.commands.run:run_command",
    "tap": "streaming.commands.tap:tap",
    "replay": "streaming.commands.replay:replay",
    "mirror": "streaming.commands.mirror:mirror",
    "record": "streaming.commands.mirror:record",
    "decode": "streaming.commands.decode:decode",
    "anonymise": "streaming.commands.anonymise:anonymise",
    "groups": "streaming.commands.view:groups",
    "group": "streaming.commands.view:group",
    "findings": "streaming.commands.view:findings",
    "rebalances": "streaming.commands.view:rebalances",
    "clients": "streaming.commands.clients:clients",
    "top": "streaming.commands.top:top",
    "report": "streaming.commands.report:report",
    "trace": "streaming.commands.trace:trace",
    "web": "streaming.commands.web:web",
    "rules": "streaming.commands.rules:rules",
    "protocol": "streaming.commands.protocol:protocol",
    "verify": "streaming.commands.verify:verify",
    "checkpoint": "streaming.commands.checkpoint:app",
    "notify": "streaming.commands.notify:notify",
    "topics": "streaming.commands.topics:topics",
    "config": "streaming.commands.config:config",
}
"""Where the commands are, in the order in which they are shown."""


_EXTRAS: Final = {
    "checkpoint": "job",
    "demo": "job",
    "notify": "notify",
    "report": "web",
    "run": "job",
    "watch": "watch",
    "web": "web",
}
"""Command → extra of the package that brings its libraries. The others need ``tap``, or nothing."""


class _Commands(TyperGroup):
    """Imports a command when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(_COMMANDS)  # so that a mistyped one names what may be meant
        self._of_name: Callable[[str], Any] = _imported

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return self._of_name(cmd_name) if cmd_name in _COMMANDS else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._of_name = _listed
        super().format_help(ctx, formatter)


class _Command(TyperCommand):
    """A command whose options may lack their value where it stands in brackets, as in ``[HOST:PORT]``: it is empty then."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        optional = {name for one in self.params if _is_bracketed(one.metavar or "") for name in one.opts}
        given = [f"{one}=" if one in optional and after.startswith("-") else one for one, after in pairwise([*args, "-"])]
        return super().parse_args(ctx, given)


def _is_bracketed(metavar: str) -> bool:
    return metavar.startswith("[") and metavar.endswith("]")


@cache
def _imported(name: str) -> Any:
    module, _, attribute = _COMMANDS[name].partition(":")
    with collected_seldom():
        found = getattr(import_module(module), attribute)
    around = _group()
    if isinstance(found, typer.Typer):
        around.add_typer(found, name=name)
    else:
        around.command(name, cls=_Command)(found)
    group: Any = get_command(around)
    return group.commands[name]


def _listed(name: str) -> Any:
    """Return a command for the list of all, which also has those whose libraries are not installed."""
    try:
        return _imported(name)
    except ModuleNotFoundError:
        return TyperCommand(name, help=f"Not installed: {_remedy(name)}")


def _group(callback: Callable[..., None] = lambda: None, **settings: Any) -> typer.Typer:
    made = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="markdown", **settings)
    made.callback()(callback)  # or it would be no group as long as it has but one command, or none
    return made


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer's way of calling it
    if wanted:
        print(f"rebalance-monitor {version('rebalance-monitor')}")
        raise typer.Exit


def _options(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Those of all commands together."""


app = _group(
    _options,
    name="rebalance-monitor",
    cls=_Commands,
    help="Monitor Kafka consumer groups by reading the group protocol, and name who broke it.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line and exit with its status."""
    log_to_terminal()
    try:
        app()
    except ModuleNotFoundError as error:
        print_error(_what_to_install(error))
        sys.exit(EXIT_UNUSABLE)
    except Exception as error:  # whatever it is, the user gets a sentence
        if os.environ.get("REBALANCE_MONITOR_TRACEBACK"):
            raise
        print_internal_error(f"{type(error).__name__}: {_in_words(error)} (REBALANCE_MONITOR_TRACEBACK=1 shows where)")
        sys.exit(EXIT_UNUSABLE)
    finally:
        leave_uncollected()


def _what_to_install(error: ModuleNotFoundError) -> str:
    """Return which extra of the package brings the library that a command needs."""
    command = next((word for word in sys.argv[1:] if word in _COMMANDS), "")
    return f"{command or 'this'} needs the library {error.name}, which is not installed: {_remedy(command)}"


def _remedy(command: str) -> str:
    return f"pip install 'rebalance-monitor[{_EXTRAS.get(command, 'tap')}]'"


def _in_words(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # an error out of a JVM asks it for its words, and it may be gone
        return "it cannot be put into words any more"


if __name__ == "__main__":
    main()
