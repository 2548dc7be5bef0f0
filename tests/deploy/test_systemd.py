"""The systemd units start commands that exist, with options that exist."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from streaming.cli import app

UNITS = sorted(Path(__file__).parents[2].joinpath("deploy", "systemd").glob("*.service"))


class _Unit(configparser.RawConfigParser):
    """A unit file may give a key several times; the last one is enough here."""

    optionxform = staticmethod(str)  # type: ignore[assignment]


def unit(file: Path) -> _Unit:
    parsed = _Unit(strict=False, delimiters=("=",))
    parsed.read_string(file.read_text())
    return parsed


def options_of(command: str) -> set[str]:
    group = get_command(app)
    return {name for parameter in group.get_command(None, command).params for name in parameter.opts}


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.stem)
def test_a_unit_starts_a_command_that_exists(file):
    program, command, *arguments = shlex.split(unit(file)["Service"]["ExecStart"])
    options = options_of(command)
    assert program.endswith("/rebalance-monitor")
    assert {argument for argument in arguments if argument.startswith("--")} <= options


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.stem)
def test_the_options_in_a_units_comment_exist(file):
    command = shlex.split(unit(file)["Service"]["ExecStart"])[1]
    options = options_of(command)
    assert set(re.findall(r"(?<= )--[a-z-]+|(?<==)--[a-z-]+", file.read_text())) <= options


def test_the_job_is_not_started_again_when_a_person_has_to_act():
    assert unit(next(file for file in UNITS if file.stem == "rebalance-monitor"))["Service"]["RestartPreventExitStatus"] == "2"
