"""``rebalance-monitor rules``: what it lists and what it says of one rule."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from coordinator_model.rules import CATALOGUE
from streaming.commands.rules import rules

APP = typer.Typer()
APP.command()(rules)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(APP, arguments, env={"COLUMNS": "160"})
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def listed(output: str) -> list[str]:
    return [line.split()[0] for line in output.splitlines() if line.split()[0] in CATALOGUE]


def test_without_an_argument_every_rule_is_listed_by_family() -> None:
    status, output = run()
    assert status == 0
    assert sorted(listed(output)) == sorted(CATALOGUE)
    assert output.index("Generations") < output.index("G-01") < output.index("Member identity") < output.index("M-01")


@pytest.mark.parametrize("id_", ["G-02", "g-02"])
def test_a_rule_is_told_in_full(id_: str) -> None:
    status, output = run(id_)
    assert status == 0
    words = " ".join(output.split())
    rule = CATALOGUE["G-02"]
    for text in (rule.name, rule.expected, "critical", "confirmed", "broker", "false alarms"):
        assert text in words


def test_causes_and_effects_are_named() -> None:
    assert "G-01 zombie generation" in run("O-01")[1]
    assert "O-01 refused commits persist" in run("G-01")[1]


def test_a_family_is_listed_alone() -> None:
    status, output = run("c")
    assert status == 0
    assert listed(output) == [id_ for id_ in sorted(CATALOGUE) if id_.startswith("C-")]


def test_a_word_finds_the_names_that_hold_it() -> None:
    assert {"G-01", "M-01", "O-02"} <= set(listed(run("zombie")[1]))
    assert "C-05 split brain" in run("split brain")[1]


def test_mild_rules_can_be_left_out() -> None:
    status, output = run("--severity", "critical")
    assert status == 0
    assert {CATALOGUE[id_].severity.value for id_ in listed(output)} == {"critical"}


@pytest.mark.parametrize("arguments", [("Z-99",), ("R", "--severity", "critical")])
def test_what_there_is_not_is_an_error_that_says_so(arguments: tuple[str, ...]) -> None:
    status, output = run(*arguments)
    assert status == 2
    assert "error:" in output
