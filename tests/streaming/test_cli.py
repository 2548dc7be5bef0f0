"""The command line as a whole: its version, and that nobody is shown a traceback."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from streaming import cli


def test_it_says_its_version():
    done = CliRunner().invoke(cli.app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"rebalance-monitor {version('rebalance-monitor')}\n")


class GoneError(Exception):
    """As Spark's, whose words are fetched from a JVM."""

    def __str__(self) -> str:
        raise ConnectionError("the JVM is gone")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            GoneError(),
            "internal error: GoneError: it cannot be put into words any more (REBALANCE_MONITOR_TRACEBACK=1 shows where)",
        ),
        (KeyError("[/x]"), "internal error: KeyError: '[/x]' (REBALANCE_MONITOR_TRACEBACK=1 shows where)"),
    ],
)
def test_an_error_that_has_no_words_any_more_is_one_sentence_and_status_2(monkeypatch, capsys, error, said):
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines() == [said]
