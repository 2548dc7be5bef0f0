"""Random lives of groups of the consumer protocol, lawful and not, replayed through the model; see ``test_histories.py``."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.coordinator_model import lives
from tests.coordinator_model.lives import errors, replay
from tests.coordinator_model.reference.consumer_history import Plan, Profile, acts, changes_protocol, plans, profiles
from tests.coordinator_model.reference.consumer_unlawful import ACTS, StrangerAccepted
from tests.coordinator_model.reference.history import Act
from tests.coordinator_model.reference.unlawful import Unlawful, exchanges

KIP_848 = ("java", "librdkafka", "franz-go")
CLIENTS_ONLY = ("stop", "crash", "start", "freeze", "stall", "cut", "subscribe", "topic", "newcomer", "restart")
"""Without a failover: after one, most of what was proven is not any more."""


@given(plans(), st.integers(0, 2**32 - 1))
def test_a_lawful_life_has_no_error_however_it_is_seen(plan: Plan, seed: int) -> None:
    life = plan.run()
    lives.assert_no_error_however_seen("migration" if changes_protocol(life.records) else "consumer", life, Random(seed))


@given(plans(), plans())
def test_another_group_of_the_partition_makes_no_error(plan: Plan, other: Plan) -> None:
    assert errors(lives.beside(plan.life(), replace(other, brokers=plan.brokers).life())) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_an_unlawful_act_is_found_whenever_it_can_be_known(act: type[Unlawful]) -> None:
    lawful = plans(
        profiles=st.lists(profiles(KIP_848), min_size=2, max_size=4).map(tuple),
        acts=st.lists(acts(CLIENTS_ONLY), min_size=act.least_acts, max_size=act.least_acts + 4).map(tuple),
    )
    lives.assert_found_whenever_known(act.__name__, act, lawful, examples=min(settings().max_examples // 4, 2_000))


def test_an_instance_id_stays_in_use_for_longer_when_the_coordinator_moves() -> None:
    """A new coordinator begins all sessions anew, that of the dead holder too."""
    static, other = Profile(static=True), Profile()
    plan = Plan(1, (static, other), (Act(20_000, "start", 0), Act(55_000, "fail over", 0)))
    life = plan.run()
    refused = [one.asked_us for one in exchanges(life.records) if one.error == 111]
    assert refused[-1] - refused[0] > 60_000_000
    assert [finding.rule for finding in replay(life) if finding.rule == "E-06"] == []


def test_a_stranger_is_found_in_a_group_one_of_whose_members_fell_silent() -> None:
    """No frame shows what raised the epoch, and the session that is over explains it: nobody need have joined unseen."""
    profile = Profile(library="java", static=True, by_pattern=False, rebalance_ms=10_000, revoke_ms=0, throws=False)
    plan = Plan(
        seed=0,
        profiles=(profile, replace(profile, static=False)),
        acts=(Act(at_ms=3_163, what="restart", whom=0), Act(at_ms=5_675, what="stop", whom=0)),
        brokers="4.0",
    )
    life, stranger = plan.life(), StrangerAccepted(0)
    stranger.commit_to(life)
    life.run()
    assert stranger.done is not None
    assert "E-15" in {finding.rule for finding in replay(life)}
