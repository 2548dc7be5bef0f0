"""What the workflows run is there: targets of make, files, commands of the monitor."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from streaming.cli import _COMMANDS

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
MADE = {"dist", "packages"}
"""Folders that a run before makes."""

ELSEWHERE = {"docker", "helm", "mkdir", "mv", "printf", "sudo"}
"""Programs of the machine that runs a workflow."""


def commands(file: Path) -> Iterator[list[str]]:
    """Each command that a workflow runs, as words."""
    for job in YAML(typ="safe").load(file)["jobs"].values():
        for script in (step["run"] for step in job["steps"] if "run" in step):
            for line in script.replace("|", "&&").replace("&&", "\n").splitlines():
                if line.strip():
                    yield shlex.split(line)


RUN = [pytest.param(words, id=f"{file.stem}: {' '.join(words)}") for file in WORKFLOWS for words in commands(file)]


def recipe(target: str) -> str:
    """What make runs for a target."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found is not None
    return found[1]


def test_each_workflow_runs_something():
    assert {name.stem for name in WORKFLOWS} == {"ci", "histories", "release"}
    assert len(RUN) >= 20


@pytest.mark.parametrize("words", RUN)
def test_what_a_workflow_runs_is_there(words):
    program, *given = words
    if program == "make":
        targets = [word for word in given if "=" not in word]
        assert targets
        assert set(targets) <= TARGETS
        assert "ARGS=" not in "".join(given) or all("$(ARGS)" in recipe(target) for target in targets)
    else:
        assert program in ELSEWHERE or re.match(r"\w+=", program), f"{program} is nothing that a workflow has"
    for word in given:
        top, slash, _ = word.partition("/")
        if slash and "$" not in word and "=" not in word and top not in MADE:
            assert (ROOT / word).exists(), f"there is no {word}"


def test_the_image_is_asked_for_a_command_that_there_is():
    asked = [words for file in WORKFLOWS for words in commands(file) if words[:2] == ["docker", "run"]]
    assert [words[words.index("$image") + 1] in _COMMANDS for words in asked] == [True]
