"""That nothing was forgotten: every rule has its tests.

The tests of a rule are named after it: ``test_G_02_fires_when_…``. One kind makes it speak, one kind holds against it what must keep it
quiet, and one sees it resolved, by name or as the last thing that a speaking test asserts. That they do what their names say is tried in
``rules/test_switched_off.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from coordinator_model.rules import CATALOGUE
from tests.coordinator_model.tests_of_rules import NAME, RESOLVED, RULE_IN_NAME, SPEAKS, TEST_FILES

QUIET = (
    "allow",
    "needs",
    "waits",
    "ignores",
    "does_not",
    "is_no_matter",
    "is_not",
    "is_quiet",
    "leaves",
    "takes_no",
    "says_nothing",
)


def named_after_rules() -> Iterator[tuple[str, str, str]]:
    """Rule, what its test's name says of it, the test's text."""
    for path in TEST_FILES:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for function in ast.parse(text).body:
            if isinstance(function, ast.FunctionDef) and (named := NAME.fullmatch(function.name)):
                source = "\n".join(lines[function.lineno - 1 : function.end_lineno])
                for rule in RULE_IN_NAME.findall(named[1]):
                    yield rule.replace("_", "-"), named[2], source


TESTS = tuple(named_after_rules())
RULES = [rule for rule in CATALOGUE.values() if rule.family != "V"]  # those of the view have no group: test_coordinator has them


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_each_rule_has_a_test_that_fires_it_one_that_keeps_it_quiet_and_one_that_resolves_it(rule: str) -> None:
    mine = [(says, text) for id_, says, text in TESTS if id_ == rule]
    seen_resolved = re.compile(rf"""the\("{rule}"\)\.status is Status\.RESOLVED|resolved\(talk, "{rule}"\)""")
    lacking = {
        "fires it": not any(says.startswith(SPEAKS) for says, _ in mine),
        "keeps it quiet": not any(says.startswith(QUIET) for says, _ in mine),
        "resolves it": not any(says.startswith(RESOLVED) or seen_resolved.search(text) for says, text in mine),
    }
    assert [kind for kind, lacks in lacking.items() if lacks] == []


def test_every_test_that_is_named_after_a_rule_names_one_that_exists() -> None:
    assert {rule for rule, _, _ in TESTS} <= set(CATALOGUE)
