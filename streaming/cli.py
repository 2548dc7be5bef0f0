"""The command line, ``rebalance-monitor``: one command per module, put together here.

The trap: a user is never shown a traceback. What a command can foresee it says itself, in one sentence and with exit status 2; what
nobody foresaw ends here, likewise in one sentence, and ``REBALANCE_MONITOR_TRACEBACK=1`` shows the rest.
"""

from __future__ import annotations

import os
import sys

import typer
from rich.console import Console

from streaming.checkpoint_cli import app as checkpoint_app
from streaming.config_cli import config
from streaming.decode_cli import decode
from streaming.demo.cli import demo
from streaming.mirror.tap_cli import tap
from streaming.mirror_cli import mirror, record
from streaming.notify_cli import notify
from streaming.replay_cli import replay
from streaming.rules_cli import rules
from streaming.run_cli import run_command
from streaming.verify_cli import verify

app = typer.Typer(
    name="rebalance-monitor",
    help="Watches Kafka consumer groups by reading the group protocol itself, and names who broke it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo)
app.command("run")(run_command)
app.add_typer(checkpoint_app, name="checkpoint")
app.add_typer(notify, name="notify")
app.add_typer(config, name="config")
app.command("tap")(tap)
app.command("replay")(replay)
app.command("mirror")(mirror)
app.command("record")(record)
app.command("decode")(decode)
app.command("rules")(rules)
app.command("verify")(verify)


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        app()
    except Exception as error:  # whatever it is, the user gets a sentence
        if os.environ.get("REBALANCE_MONITOR_TRACEBACK"):
            raise
        Console(stderr=True, highlight=False).print(
            f"[bold red]internal error:[/] {type(error).__name__}: {error} (REBALANCE_MONITOR_TRACEBACK=1 shows where)",
            soft_wrap=True,
        )
        sys.exit(2)


if __name__ == "__main__":
    main()
