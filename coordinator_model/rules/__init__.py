"""The rules, one module per subject; see ``base`` for what a rule is."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from coordinator_model.rules.base import Breach, Due, FrameRule, Rule, TimerRule

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
        "zombies",
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

__all__ = [
    "CATALOGUE",
    "MODULES",
    "TIMER_RULES",
    "Breach",
    "Due",
    "FrameRule",
    "Rule",
    "TimerRule",
]
