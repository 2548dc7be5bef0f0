"""The rules, one module per subject; see ``base`` for what a rule is."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Final

from coordinator_model.groups.arrivals import Stage
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.tracker import Event
from coordinator_model.rules.base import Breach, Due, FrameRule, Matter, Rule, TimerRule
from coordinator_model.rules.hot_loops import GENERATIONS

MODULES: Final = tuple(
    import_module(f"{__name__}.{name}")
    for name in (
        "generations",
        "members",
        "joining",
        "arrivals",
        "static",
        "join_phase",
        "sync_phase",
        "rebalances",
        "standstill",
        "loops",
        "scaling",
        "no_op_rebalances",
        "hot_loops",
        "connect",
        "sessions",
        "timeouts",
        "missing",
        "assignments",
        "subscriptions",
        "protocol",
        "join_answers",
        "offsets",
        "start_positions",
        "progress",
        "unanswered",
        "coordinators",
        "record_size",
        "epochs",
        "epoch_members",
        "reconciliation",
        "streams",
        "observation",
    )
)
"""The modules that hold rules. Rules are checked in their order, and within a module in that of their definitions."""

CATALOGUE: Final[dict[str, Rule]] = {
    rule.id: rule for module in MODULES for rule in vars(module).values() if isinstance(rule, Rule)
}
TIMER_RULES: Final = tuple(rule for rule in CATALOGUE.values() if isinstance(rule, TimerRule))
EPOCH_TIMERS: Final = tuple(rule for rule in TIMER_RULES if issubclass(EpochGroup, rule.groups))

_OF_STAGE: Final = {
    Stage.LOOKS: Matter.JOINS,
    Stage.REACHES: Matter.REACHES,
    Stage.JOINS: Matter.JOINS,
    Stage.HOLDS: Matter.HOLDS,
    Stage.BEGINS: Matter.BEGINS,
}
_OF_EPOCHS: Final = frozenset(Matter) - {*_OF_STAGE.values()} | {Matter.HOLDS}


def timers_for(group: GroupModel[Any]) -> tuple[TimerRule, ...]:
    """Return the timer rules that can report anything about a group: less than half of them for a quiet one."""
    matters = {_OF_STAGE[stage] for stage in {known.stage for known in group.arrivals.clients.values()}}
    if not isinstance(group, ClassicGroupModel):
        return _timers_of(EpochGroup, _OF_EPOCHS.union(matters))
    assignments, over = group.assignments, group.rebalances.over
    if group.recurring.is_any or len(over) + 1 >= GENERATIONS or (over and over[-1].is_no_op):
        matters.add(Matter.RECURRENCE)
    if group.open or group.rebalances.is_joining:  # in which a client may have hung up, and ask again
        matters.add(Matter.REQUEST)
    if assignments.flaws or assignments.suspects:
        matters.add(Matter.PLAN)
    return _timers_of(ClassicGroupModel, frozenset(matters))


@cache
def _timers_of(type_: type[Any], matters: frozenset[Matter]) -> tuple[TimerRule, ...]:
    return tuple(
        rule
        for rule in TIMER_RULES
        if issubclass(type_, rule.groups) and (rule.matter is Matter.ANYTHING or rule.matter in matters)
    )


def _by_event() -> dict[type[Any], tuple[FrameRule, ...]]:
    table: dict[type[Any], list[FrameRule]] = {}
    for rule in CATALOGUE.values():
        if isinstance(rule, FrameRule):
            for event in rule.checks:
                table.setdefault(event, []).append(rule)
    return {event: tuple(rules) for event, rules in table.items()}


_BY_EVENT: Final = _by_event()


def rules_for(group: GroupModel[Any], event: Event) -> tuple[FrameRule, ...]:  # noqa: ARG001
    """Return the rules that check an event. Each type of group has events of its own."""
    return _BY_EVENT.get(type(event), ())


__all__ = [
    "CATALOGUE",
    "EPOCH_TIMERS",
    "MODULES",
    "TIMER_RULES",
    "Breach",
    "Due",
    "FrameRule",
    "Rule",
    "TimerRule",
    "rules_for",
    "timers_for",
]
