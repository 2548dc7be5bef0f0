"""Imports run one way: no circle of modules in either package, those for type checkers included, and the model knows no I/O."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("coordinator_model", "streaming")

MODEL_MAY_IMPORT = {"coordinator_model", "msgspec"}
"""Beside the standard library."""

NO_IO = {"asyncio", "logging", "os", "pathlib", "socket", "subprocess", "threading", "time"}


def modules(package: str) -> dict[str, Path]:
    files = (ROOT / package).rglob("*.py")
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imported(file: Path) -> Iterator[tuple[str, str | None]]:
    """Module and name of each import, wherever it stands."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


@cache
def graph(package: str) -> dict[str, set[str]]:
    known = modules(package)
    return {
        name: {
            found
            for module, attribute in imported(file)
            if (found := f"{module}.{attribute}" if f"{module}.{attribute}" in known else module) in known and found != name
        }
        for name, file in known.items()
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_no_modules_import_each_other_in_a_circle(package: str) -> None:
    order = list(TopologicalSorter(graph(package)).static_order())  # raises CycleError, which names them
    assert len(order) == len(modules(package))


def test_the_model_imports_neither_the_engine_nor_anything_that_does_io() -> None:
    names = {module.partition(".")[0] for file in modules("coordinator_model").values() for module, _ in imported(file)}
    foreign = {name for name in names if name in NO_IO or (name not in MODEL_MAY_IMPORT and name not in sys.stdlib_module_names)}
    assert foreign == set()


LONGEST_MODULE, MOST_METHODS = 500, 25
GENERATED = {"coordinator_model.wire.messages", "coordinator_model.wire.layout_table"}


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_and_classes_can_be_read_in_one_sitting(package: str) -> None:
    too_long, too_many = [], []
    for name, file in modules(package).items():
        text = file.read_text(encoding="utf-8")
        if name not in GENERATED and text.count("\n") > LONGEST_MODULE:
            too_long.append(name)
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.ClassDef):
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
                too_many += [f"{name}.{node.name}"] if len(methods) > MOST_METHODS else []
    assert (too_long, too_many) == ([], [])


def test_groups_with_epochs_stand_on_nothing_of_classic_groups() -> None:
    of_epochs = {name: found for name, found in graph("coordinator_model").items() if ".groups.epochs" in name}
    assert [name for name, found in of_epochs.items() if any(".groups.classic" in one for one in found)] == []


MAY_IMPORT: dict[str, set[str]] = {
    "config": set(),
    "kafka": {"config"},
    "published": {"kafka"},
    "sinks": {"config", "kafka", "published"},
    "mirror": {"kafka"},
    "engine": {"kafka", "mirror", "published"},
    "replay": {"kafka", "published"},
    "terminal": {"published", "replay"},
}
"""Packages of ``streaming`` that others stand on, and what they stand on themselves."""


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_of_streaming_stand_on_each_other_in_one_order(package: str) -> None:
    below = {
        found.split(".")[1]
        for name, imports in graph("streaming").items()
        if name.startswith(f"streaming.{package}.")
        for found in imports
        if found.count(".") > 1  # in a package
    }
    assert below - {package} == MAY_IMPORT[package]
