"""Random lives of a classic group, lawful and not, replayed through the model.

How many is set by the Hypothesis profile: a few hundred in the test suite, ``make histories`` runs 20,000 and prints the counts.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.coordinator_model import lives
from tests.coordinator_model.lives import errors
from tests.coordinator_model.reference.history import Act, Plan, Profile, acts, plans, profiles
from tests.coordinator_model.reference.unlawful import ACTS, Unlawful

CLIENTS_ONLY = ("stop", "crash", "start", "stall", "cut", "subscribe", "metadata", "newcomer", "restart")
"""Without a failover: after one, most of what was proven is not any more."""


@given(plans(), st.integers(0, 2**32 - 1))
def test_a_lawful_life_has_no_error_however_it_is_seen(plan: Plan, seed: int) -> None:
    lives.assert_no_error_however_seen("classic", plan.run(), Random(seed))


@pytest.mark.exhaustive
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_an_unlawful_act_is_found_whenever_it_can_be_known(act: type[Unlawful]) -> None:
    lawful = plans(
        profiles=st.lists(profiles(), min_size=2, max_size=4).map(tuple),
        acts=st.lists(acts(CLIENTS_ONLY), min_size=act.least_acts, max_size=act.least_acts + 4).map(tuple),
    )
    lives.assert_found_whenever_known(act.__name__, act, lawful, examples=min(settings().max_examples, 2_000))


@given(plans(), plans())
def test_another_group_of_the_partition_makes_no_error(plan: Plan, other: Plan) -> None:
    assert errors(lives.beside(plan.life(), replace(other, brokers=plan.brokers).life())) == []


def test_a_client_joins_again_when_its_coordinator_moves_while_it_waits_for_its_assignment() -> None:
    """Its heartbeats tell it so on a connection of their own; what the old coordinator held is never answered."""
    worker = Profile(separate=True, rebalance_ms=8_000, session_ms=6_000)
    static = replace(worker, static=True)
    begun = (Act(0, "start", 3), Act(0, "start", 5), Act(59, "start", 1))
    moved = (Act(3_506, "reload", 0), Act(5_214, "start", 3), Act(13_227, "fail over", 0))
    plan = Plan(36, (static, replace(worker, session_ms=10_000), static, replace(worker, release="2.0")), (*begun, *moved))
    assert errors(plan.run().records) == []
