"""Each test that is named after a rule, run again so that it must fail: a test that cannot fail says nothing.

A test that makes its rule speak, or sees it resolved, must fail with the rule switched off. What keeps a rule quiet does not notice
that: it must fail when a finding of the rule has come, so that it asserts the silence of the rule that it is named after. Whether what
it holds against the rule is what keeps it quiet, only ``make mutants`` tells.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from coordinator_model import rule_engine
from coordinator_model.rule_engine import rules_for, timers_for
from coordinator_model.rules import Rule
from tests.coordinator_model.conversation import Conversation, conversation_for
from tests.coordinator_model.tests_of_rules import functions_of_rules

Test = Callable[..., None]


def fails(test: Test, /, **arguments: Any) -> bool:
    """Whether the test fails in a conversation of its own."""
    if "talk" in arguments:
        arguments["talk"] = conversation_for(test)
    try:
        test(**arguments)
    except Exception:
        return True
    return False


def fails_without(rule: Rule, test: Test, /, **arguments: Any) -> bool:
    """Whether the test fails with the rule switched off."""
    with pytest.MonkeyPatch.context() as patch:
        for ask in (rules_for, timers_for):
            patch.setattr(rule_engine, ask.__name__, lambda *about, ask=ask: tuple(one for one in ask(*about) if one is not rule))
        return fails(test, **arguments)


def fails_with_a_finding(rule: Rule, test: Test, /, **arguments: Any) -> bool:
    """Whether the test fails if a finding of the rule is there when a conversation begins."""
    begin = Conversation.__init__

    def begin_with_a_finding(talk: Conversation, *about: Any, **settings: Any) -> None:
        begin(talk, *about, **settings)
        found = rule.finding(subject="x", cluster="c1", group="g", opened_at_us=0, at_us=talk.now_us, summary="", observed="")
        talk.findings.append(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Conversation, "__init__", begin_with_a_finding)
        return fails(test, **arguments)


def must_fail(test: Test, rule: Rule, *, speaks: bool) -> Test:
    @functools.wraps(test)  # with its parameters
    def run(**arguments: Any) -> None:
        failed = fails_without(rule, test, **arguments) or (not speaks and fails_with_a_finding(rule, test, **arguments))
        assert failed, f"it passes without {rule.id}" + ("" if speaks else ", and with a finding of it")

    return run


for _number, (_name, _rule, _speaks, _test) in enumerate(functions_of_rules()):
    _must_fail = must_fail(_test, _rule, speaks=_speaks)
    _must_fail = _must_fail if _number % 20 == 0 else pytest.mark.exhaustive(_must_fail)
    globals()[f"{_name}_of_{_rule.id.replace('-', '_')}"] = _must_fail  # where pytest looks for tests
