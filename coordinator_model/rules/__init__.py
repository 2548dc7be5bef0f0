"""The rules, one module per family; see ``base`` for what a rule is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.group_model import GroupModel
from coordinator_model.groups.tracker import Event
from coordinator_model.rules import (
    assignments,
    connect,
    coordinators,
    epoch_members,
    epochs,
    generations,
    hot_loops,
    join_phase,
    joining,
    loops,
    members,
    observation,
    offsets,
    protocol,
    rebalances,
    reconciliation,
    record_size,
    scaling,
    sessions,
    standstill,
    start_positions,
    static,
    streams,
    subscriptions,
    sync_phase,
    timeouts,
    unanswered,
    unmoved,
)
from coordinator_model.rules.base import Breach, Due, FrameRule, Matter, Rule, TimerRule

CATALOGUE: Final[dict[str, Rule]] = {
    rule.id: rule
    for family in (
        generations.RULES,
        members.RULES,
        joining.RULES,
        static.RULES,
        join_phase.RULES,
        sync_phase.RULES,
        rebalances.RULES,
        standstill.RULES,
        loops.RULES,
        scaling.RULES,
        unmoved.RULES,
        hot_loops.RULES,
        connect.RULES,
        sessions.RULES,
        timeouts.RULES,
        assignments.RULES,
        subscriptions.RULES,
        protocol.RULES,
        offsets.RULES,
        start_positions.RULES,
        coordinators.RULES,
        record_size.RULES,
        epochs.RULES,
        epoch_members.RULES,
        reconciliation.RULES,
        streams.RULES,
        observation.RULES,
    )
    for rule in family
}
TIMER_RULES: Final = tuple(rule for rule in CATALOGUE.values() if isinstance(rule, TimerRule))

_OF_EPOCHS: Final = frozenset({reconciliation.R_14, reconciliation.R_15, epoch_members.E_22, streams.R_21})
"""Timer rules of the groups whose members have epochs."""

_OF_ALL: Final = frozenset({observation.V_10, joining.M_14, unanswered.C_01, coordinators.C_14, scaling.R_24, timeouts.T_12})
"""Timer rules of groups of all types."""

_BY_MATTER: Final = {
    (requests, plans, recurrences): tuple(
        rule
        for rule in TIMER_RULES
        if (requests or rule.matter is not Matter.REQUEST)
        and (plans or rule.matter is not Matter.PLAN)
        and (recurrences or rule.matter is not Matter.RECURRENCE)
        and rule not in _OF_EPOCHS
    )
    for requests in (False, True)
    for plans in (False, True)
    for recurrences in (False, True)
}
EPOCH_TIMERS: Final = tuple(rule for rule in TIMER_RULES if rule in _OF_EPOCHS or rule in _OF_ALL)


def _classic_timers(group: ClassicGroup) -> tuple[TimerRule, ...]:
    assignments = group.assignments
    recurrences = group.recurring.is_any or len(group.rebalance_history.rebalances) >= hot_loops.GENERATIONS
    return _BY_MATTER[bool(group.open), bool(assignments.flaws or assignments.suspects), recurrences]


def _epoch_timers(group: Any) -> tuple[TimerRule, ...]:  # noqa: ARG001
    return EPOCH_TIMERS


_TIMERS: Final[dict[str, Callable[[Any], tuple[TimerRule, ...]]]] = {CLASSIC: _classic_timers}


def timers_for(group: GroupModel[Any]) -> tuple[TimerRule, ...]:
    """Return the timer rules that can report anything about a group: less than half of them for a quiet one."""
    return _TIMERS.get(group.kind, _epoch_timers)(group)


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


__all__ = ["CATALOGUE", "EPOCH_TIMERS", "TIMER_RULES", "Breach", "Due", "FrameRule", "Rule", "TimerRule", "rules_for", "timers_for"]
