"""The rules, one module per family; see ``base`` for what a rule is."""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.tracker import Event
from coordinator_model.rules import (
    assignments,
    coordinators,
    generations,
    loops,
    members,
    observation,
    offsets,
    protocol,
    rebalances,
    sessions,
    standstill,
    static,
)
from coordinator_model.rules.base import Breach, Due, FrameRule, Matter, Rule, TimerRule

CATALOGUE: Final[dict[str, Rule]] = {
    rule.id: rule
    for family in (
        generations.RULES,
        members.RULES,
        static.RULES,
        rebalances.RULES,
        standstill.RULES,
        loops.RULES,
        sessions.RULES,
        assignments.RULES,
        protocol.RULES,
        offsets.RULES,
        coordinators.RULES,
        observation.RULES,
    )
    for rule in family
}
TIMER_RULES: Final = tuple(rule for rule in CATALOGUE.values() if isinstance(rule, TimerRule))

_OF_ANY_TYPE: Final = frozenset("CPV")
"""Families that speak of single answers and of brokers: they hold for a group of any type."""
_OF_ANY_TYPE_TOO: Final = frozenset({"O-08", "O-09"})


def _speaks_of(rule: Rule, *, classic: bool) -> bool:
    """Whether a rule says anything of such a group. What a member owes and is owed differs in a type that is not modelled."""
    return classic or rule.family in _OF_ANY_TYPE or rule.id in _OF_ANY_TYPE_TOO


_BY_MATTER: Final = {
    (classic, requests, plans): tuple(
        rule
        for rule in TIMER_RULES
        if (requests or rule.matter is not Matter.REQUEST)
        and (plans or rule.matter is not Matter.PLAN)
        and _speaks_of(rule, classic=classic)
    )
    for classic in (False, True)
    for requests in (False, True)
    for plans in (False, True)
}


def timers_for(group: ClassicGroup) -> tuple[TimerRule, ...]:
    """The timer rules that can have anything to say about a group: in a quiet one that is less than half of them."""
    assignments = group.assignments
    return _BY_MATTER[group.kind == CLASSIC, bool(group.open), bool(assignments.flaws or assignments.suspects)]


def _by_happening(*, classic: bool) -> dict[type[Any], tuple[FrameRule, ...]]:
    table: dict[type[Any], list[FrameRule]] = {}
    for rule in CATALOGUE.values():
        if isinstance(rule, FrameRule) and _speaks_of(rule, classic=classic):
            for event in rule.checks:
                table.setdefault(event, []).append(rule)
    return {event: tuple(rules) for event, rules in table.items()}


_BY_HAPPENING: Final = {classic: _by_happening(classic=classic) for classic in (False, True)}


def rules_for(group: ClassicGroup, event: Event) -> tuple[FrameRule, ...]:
    """The rules that look at what happened in a group."""
    return _BY_HAPPENING[group.kind == CLASSIC].get(type(event), ())


__all__ = ["CATALOGUE", "TIMER_RULES", "Breach", "Due", "FrameRule", "Rule", "TimerRule", "rules_for", "timers_for"]
