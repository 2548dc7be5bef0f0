"""The rules, one module per family; see ``base`` for what a rule is."""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.rules import (
    assignments,
    coordinators,
    generations,
    loops,
    members,
    offsets,
    protocol,
    rebalances,
    sessions,
    static,
    view,
)
from coordinator_model.rules.base import Breach, Due, FrameRule, Rule, TimerRule

CATALOGUE: Final[dict[str, Rule]] = {
    rule.id: rule
    for family in (
        generations.RULES,
        members.RULES,
        static.RULES,
        rebalances.RULES,
        loops.RULES,
        sessions.RULES,
        assignments.RULES,
        protocol.RULES,
        offsets.RULES,
        coordinators.RULES,
        view.RULES,
    )
    for rule in family
}
TIMER_RULES: Final = tuple(rule for rule in CATALOGUE.values() if isinstance(rule, TimerRule))


def _by_happening() -> dict[type[Any], tuple[FrameRule, ...]]:
    table: dict[type[Any], list[FrameRule]] = {}
    for rule in CATALOGUE.values():
        if isinstance(rule, FrameRule):
            for happening in rule.checks:
                table.setdefault(happening, []).append(rule)
    return {happening: tuple(rules) for happening, rules in table.items()}


RULES_FOR: Final = _by_happening()
"""Happening type → the rules that look at it."""

__all__ = ["CATALOGUE", "RULES_FOR", "TIMER_RULES", "Breach", "Due", "FrameRule", "Rule", "TimerRule"]
