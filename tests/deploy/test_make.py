"""What make does before a target: the environment is made with the Python that is asked for, and nothing is done twice."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INPUTS = ("requirements.lock", "pyproject.toml", "deploy/ivy.xml", "deploy/setup.sh")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def run(command, folder):
    """As from a shell: make hands what it was called with down to what it runs, these tests too."""
    return subprocess.run(command, cwd=folder, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)


def said(command, folder):
    done = run(command, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(folder, version):
    """One that says that it is of this version, whatever it is asked."""
    folder.mkdir(parents=True)
    file = folder / "python"
    file.write_text(f"#!/bin/sh\necho {version}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def checkout(tmp_path):
    """A checkout in a path with a blank, with an environment that is there."""
    folder = tmp_path / "my checkout"
    (folder / "deploy").mkdir(parents=True)
    for name in ("Makefile", *INPUTS):
        shutil.copy(ROOT / name, folder / name)
    python(folder / ".venv" / "bin", "3.11.7")
    (folder / ".venv" / ".ready").touch()
    (folder / ".venv" / ".tools").touch()
    return folder


def test_an_environment_that_is_there_is_used(checkout, tmp_path):
    assert "setup.sh" not in said(["make", "-n", "test"], checkout)
    same = python(tmp_path / "the same", "3.11.7")
    assert "setup.sh" not in said(["make", "-n", "test", f"PYTHON={same}"], checkout)


def test_another_python_than_before_makes_the_environment_anew(checkout, tmp_path):
    other = python(tmp_path / "another one", "3.13.0")
    assert "deploy/setup.sh" in said(["make", "-n", "test", f"PYTHON={other}"], checkout)
    assert "deploy/setup.sh" in said(["make", "-n", "demo", f"PYTHON={other}"], checkout)


def test_a_python_that_is_none_is_named(checkout):
    done = run(["make", "setup", "PYTHON=python2.7"], checkout)
    assert done.returncode != 0
    assert "PYTHON names python2.7, which is no Python 3.11 or newer." in done.stderr


def test_tests_do_not_wait_for_a_checker_of_style_or_types(checkout):
    told = said(["make", "-n", "test"], checkout)
    assert "pytest" in told
    assert "mypy" not in told
    assert "ruff" not in told


@pytest.mark.parametrize("target", ["lint", "format", "quick", "coverage"])
def test_style_and_the_models_tests_need_no_java(checkout, target):
    assert "setup.sh" not in said(["make", "-n", target], checkout)
    (checkout / ".venv" / ".ready").unlink()
    (checkout / ".venv" / ".tools").unlink()
    told = said(["make", "-n", target], checkout)
    assert "deploy/setup.sh tools" in told
    assert told.count("setup.sh") == 1


def test_the_list_of_targets_stands_in_columns_without_what_only_gnu_sed_knows(checkout):
    lines = said(["make", "help"], checkout).splitlines()
    assert "  make demo           Start a real Kafka" in "\n".join(lines)
    assert len({len(line) - len(line.split(None, 2)[2]) for line in lines}) == 1
    assert "sed" not in said(["make", "-n", "help"], checkout)
