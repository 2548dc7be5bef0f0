"""Random lives of share groups and Streams groups, lawful and not, replayed through the model; see ``test_histories.py``."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.coordinator_model import lives
from tests.coordinator_model.reference.consumer_history import Plan, acts
from tests.coordinator_model.reference.epoch_history import CLIENTS_ONLY, profiles, share_plans, streams_plans
from tests.coordinator_model.reference.epoch_unlawful import SHARE_ACTS, STREAMS_ACTS
from tests.coordinator_model.reference.unlawful import Unlawful

KINDS = {"share": share_plans, "streams": streams_plans}


@pytest.mark.parametrize("kind", KINDS)
def test_a_lawful_life_has_no_error_however_it_is_seen(kind: str) -> None:
    @given(KINDS[kind](), st.integers(0, 2**32 - 1))
    def lived(plan: Plan, seed: int) -> None:
        lives.assert_no_error_however_seen(kind, plan.run(), Random(seed))

    lived()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "act"),
    [("share", act) for act in SHARE_ACTS] + [("streams", act) for act in STREAMS_ACTS],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_an_unlawful_act_is_found_whenever_it_can_be_known(kind: str, act: type[Unlawful]) -> None:
    lawful = KINDS[kind](
        profiles=st.lists(profiles(), min_size=2, max_size=4).map(tuple),
        acts=st.lists(acts(CLIENTS_ONLY), min_size=act.least_acts, max_size=act.least_acts + 4).map(tuple),
    )
    lives.assert_found_whenever_known(f"{act.__name__} ({kind})", act, lawful, examples=min(settings().max_examples // 4, 2_000))
