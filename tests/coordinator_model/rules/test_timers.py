"""A timer rule is spared the groups that hold nothing of what it speaks of: it would have had nothing to say about them."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.coordinator import Coordinator
from coordinator_model.rules import TIMER_RULES, timers_for
from tests.coordinator_model.reference.history import Plan, plans
from tests.coordinator_model.reference.unlawful import ACTS, Unlawful, lived


@given(plan=plans(), act=st.sampled_from([None, *ACTS]), seed=st.integers(0, 2**32 - 1))
def test_a_rule_that_is_spared_has_nothing_to_say(plan: Plan, act: type[Unlawful] | None, seed: int) -> None:
    random = Random(seed)
    history = lived(plan, act, random)
    model = Coordinator(topic="mirror", partition=0)
    for record in history.records:
        model.receive(record)
        for tracked in model._groups.values():
            asked = timers_for(tracked.group)
            assert [rule.id for rule in TIMER_RULES if rule not in asked and any(rule.due(tracked.group))] == []


def test_a_quiet_group_is_looked_at_by_less_than_half_of_them():
    model = Coordinator(topic="mirror", partition=0)
    group, _ = model._opened(("c", "g"))
    assert 2 * len(timers_for(group)) < len(TIMER_RULES)
