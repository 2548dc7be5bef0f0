"""The tests of each rule, which are named after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from coordinator_model.rules import CATALOGUE, Rule

SPEAKS = ("fires", "warns", "notes", "tells", "documents", "names", "quotes", "infers")
RESOLVED = ("resolves", "is_resolved", "is_over")
NAME = re.compile(r"test_((?:[A-Z]_\d\d_(?:and_)?)+)(\w+)")
RULE_IN_NAME = re.compile(r"[A-Z]_\d\d")
TEST_FILES = tuple(path for path in sorted((Path(__file__).parent / "rules").glob("test_*.py")) if path.stem != "test_switched_off")


def functions_of_rules() -> Iterator[tuple[str, Rule, bool, Callable[..., None]]]:
    """Name of a test, its rule, whether it makes the rule speak or sees it resolved, and the test itself."""
    for path in TEST_FILES:
        for name, test in vars(import_module(f"tests.coordinator_model.rules.{path.stem}")).items():
            if named := NAME.fullmatch(name):
                for rule in RULE_IN_NAME.findall(named[1]):
                    yield name, CATALOGUE[rule.replace("_", "-")], named[2].startswith((*SPEAKS, *RESOLVED)), test
