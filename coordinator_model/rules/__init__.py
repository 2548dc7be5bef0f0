"""The rules, one module per family; see ``base`` for what a rule is."""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.groups.classic import ClassicGroup
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
from coordinator_model.rules.base import Breach, Due, FrameRule, Matter, Rule, TimerRule

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

_BY_MATTER: Final = {
    (requests, plans): tuple(
        rule
        for rule in TIMER_RULES
        if (requests or rule.matter is not Matter.REQUEST) and (plans or rule.matter is not Matter.PLAN)
    )
    for requests in (False, True)
    for plans in (False, True)
}


def timers_for(group: ClassicGroup) -> tuple[TimerRule, ...]:
    """The timer rules that can have anything to say about a group: in a quiet one that is less than half of them."""
    return _BY_MATTER[bool(group.open), bool(group.assignments.flaws or group.assignments.suspects)]


def _by_happening() -> dict[type[Any], tuple[FrameRule, ...]]:
    table: dict[type[Any], list[FrameRule]] = {}
    for rule in CATALOGUE.values():
        if isinstance(rule, FrameRule):
            for happening in rule.checks:
                table.setdefault(happening, []).append(rule)
    return {happening: tuple(rules) for happening, rules in table.items()}


RULES_FOR: Final = _by_happening()
"""Happening type → the rules that look at it."""

__all__ = ["CATALOGUE", "RULES_FOR", "TIMER_RULES", "Breach", "Due", "FrameRule", "Rule", "TimerRule", "timers_for"]
