"""The command line as a whole: its version, and that nobody is shown a traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streaming import cli


def test_it_says_its_version():
    done = CliRunner().invoke(cli.app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"rebalance-monitor {version('rebalance-monitor')}\n")


def test_the_tap_compresses_with_zstd_unless_told_otherwise():
    shown = CliRunner().invoke(cli.app, ["tap", "--help"], env={"COLUMNS": "200"}).output
    assert "snappy, gzip or none. [default: zstd]" in " ".join(shown.replace("│", " ").split())


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


GOLDEN = Path(__file__).parents[1] / "golden"
ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in {"confluent_kafka", "cryptography", "great_expectations", "jinja2", "kafka", "numpy", "pandas", "prometheus_client",
                    "pyarrow", "pydantic_settings", "pyspark", "requests", "starlette", "uvicorn"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=top)
sys.meta_path.insert(0, Absent())
from streaming.cli import main
main()
"""


def without_extras(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command where no extra is installed."""
    return subprocess.run(
        [sys.executable, "-c", ABSENT, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "120"},
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("rules", "T-03"),
        ("protocol", "J9"),
        ("decode", "--help"),
        ("watch", "--help"),
        ("replay", str(GOLDEN / "lawful-cooperative-4.1.2.records.xz")),
    ],
)
def test_what_reads_captures_needs_neither_kafka_nor_spark(arguments):
    done = without_extras(*arguments)
    assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize("arguments", [("--help",), ()])
def test_the_list_of_commands_also_has_those_whose_libraries_are_not_installed(arguments):
    done = without_extras(*arguments)
    assert done.stderr == ""
    listed = {line.split()[1]: line for line in done.stdout.splitlines() if re.match(r"│ [a-z]+ ", line)}
    assert list(listed) == list(cli._COMMANDS)
    assert "Replay captured traffic" in listed["replay"]
    assert "Not installed: pip install 'rebalance-monitor[job]'" in listed["run"]
    assert "Not installed: pip install 'rebalance-monitor[tap]'" in listed["tap"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tap", "--help"), "tap needs the library confluent_kafka, which is not installed: pip install 'rebalance-monitor[tap]'"),
        (("run",), "run needs the library pydantic_settings, which is not installed: pip install 'rebalance-monitor[job]'"),
        (("report",), "report needs the library pydantic_settings, which is not installed: pip install 'rebalance-monitor[web]'"),
        (("web",), "web needs the library pydantic_settings, which is not installed: pip install 'rebalance-monitor[web]'"),
        (
            ("replay", "--config", "x.toml", "y"),
            "replay needs the library pydantic_settings, which is not installed: pip install 'rebalance-monitor[tap]'",
        ),
    ],
)
def test_a_command_whose_libraries_are_not_installed_says_what_brings_them(arguments, said):
    done = without_extras(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {said}\n")


def test_page_metrics_alerts_and_tap_of_watch_need_no_kafka_client_and_no_spark():
    modules = (
        "streaming.watch.alerts, streaming.watch.measured, streaming.web.serving, streaming.watch.tapped, streaming.commands.watch"
    )
    absent = ABSENT.partition("sys.meta_path")[0].replace("top in {", "top in {'pandas', 'pyspark', 'confluent_kafka'} & {")
    done = subprocess.run(
        [sys.executable, "-c", f"{absent}sys.meta_path.insert(0, Absent())\nimport {modules}"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
