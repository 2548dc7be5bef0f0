"""``top`` where it cannot be shown."""

from __future__ import annotations

from typer.testing import CliRunner

from streaming.cli import app


def test_without_a_terminal_top_names_the_command_that_prints_once():
    result = CliRunner().invoke(app, ["top", "--bootstrap-server", "localhost:1"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        result.stderr
        == "error: top needs a terminal; 'rebalance-monitor groups' prints the groups once, as a table or with --json\n"
    )
