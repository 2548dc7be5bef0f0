"""Random lives of groups of the consumer protocol, lawful and not, replayed through the model; see ``test_histories.py``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding, Severity, Status
from tests.coordinator_model.reference import counters
from tests.coordinator_model.reference.consumer_history import History, Plan, Profile, acts, plans, profiles
from tests.coordinator_model.reference.consumer_unlawful import ACTS, StrangerAccepted
from tests.coordinator_model.reference.history import Act
from tests.coordinator_model.reference.unlawful import Unlawful, exchanges
from tests.coordinator_model.test_histories import describe, errors, renumbered, replay

KIP_848 = ("java", "librdkafka", "franz-go")
CLIENTS_ONLY = ("stop", "crash", "start", "freeze", "stall", "cut", "subscribe", "topic", "newcomer", "restart")
"""Without a failover: after one, most of what was proven is not any more."""


@given(plans())
def test_a_lawful_life_has_no_error(plan: Plan) -> None:
    life = plan.run()
    findings = replay(life)
    wrong = [finding for finding in findings if finding.severity.rank >= Severity.ERROR.rank]
    counters.count_lawful(
        "migration" if life.changes_protocol else "consumer",
        records=len(life.records),
        false=len(wrong),
        warnings=sum(finding.severity is Severity.WARNING and finding.status is Status.OPEN for finding in findings),
    )
    if wrong:
        note(describe(life, wrong))
    assert wrong == []


@given(plans(), st.integers(0, 2**32 - 1))
def test_clocks_that_differ_within_the_skew_bound_make_no_error(plan: Plan, seed: int) -> None:
    skew_ms, random = 100, Random(seed)
    off: dict[str, int] = {}
    records = [
        record._replace(at_us=record.at_us + off.setdefault(record.connection, random.randint(-skew_ms, skew_ms) * 500))
        for record in plan.run().records
    ]
    assert errors(renumbered(records), clock_skew_ms=skew_ms) == []


@given(plans(), st.integers(0, 2**32 - 1))
def test_connections_interleaved_differently_make_no_error(plan: Plan, seed: int) -> None:
    random = Random(seed)
    records = plan.run().records
    late: dict[str, int] = {}
    arrives = [record.at_us + late.setdefault(record.connection, random.randrange(400_000)) for record in records]
    order = sorted(range(len(arrives)), key=arrives.__getitem__)
    found = errors(renumbered([records[index] for index in order]))
    # E-08: what a member was granted last, on the connection before, may be captured after it says so on the next.
    assert [text for text in found if not text.startswith("E-08")] == []


@given(plans(), st.floats(0, 1))
def test_starting_in_the_middle_makes_no_error(plan: Plan, share: float) -> None:
    records = plan.run().records
    assert errors(renumbered(records[int(len(records) * share) :])) == []


@given(plans(), st.lists(st.floats(0, 1), max_size=5))
def test_snapshots_anywhere_give_identical_findings(plan: Plan, cuts: list[float]) -> None:
    life = plan.run()
    restored_at = {int(len(life.records) * cut) for cut in cuts}
    model = Coordinator(topic="mirror", partition=0)
    found: list[Finding] = []
    for index, record in enumerate(life.records):
        if index in restored_at:
            model = Coordinator.restore(model.snapshot())
        found.extend(model.receive(record))
    assert found == replay(life)


@given(plans(), st.floats(0, 1), st.integers(1, 20))
def test_records_lost_anywhere_make_no_error(plan: Plan, share: float, lost: int) -> None:
    records = plan.run().records
    start = int(len(records) * share)
    assert errors(records[:start] + records[start + lost :]) == []


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_an_unlawful_act_is_found_whenever_it_can_be_known(act: type[Unlawful]) -> None:
    counts = counters.unlawful.setdefault(act.__name__, Counter())

    @settings(max_examples=min(settings().max_examples // 4, 2_000))
    @given(
        plans(
            profiles=st.lists(profiles(KIP_848), min_size=2, max_size=4).map(tuple),
            acts=st.lists(acts(CLIENTS_ONLY), min_size=act.least_acts, max_size=act.least_acts + 4).map(tuple),
        ),
        st.integers(0, 2),
    )
    def found(plan: Plan, nth: int) -> None:
        life, unlawful = History(plan), act(nth)
        unlawful.commit_to(life)
        life.run()
        counts["histories"] += 1
        if unlawful.done is None:
            return
        counts["done"] += 1
        if not unlawful.knowable(exchanges(life.records)):
            return
        counts["knowable"] += 1
        findings = replay(life)
        spoke = any(finding.rule in act.rules for finding in findings)
        counts["found"] += spoke
        if not spoke:
            note(f"{unlawful.done}\n{describe(life, findings)}")
        assert spoke

    found()
    assert counts["knowable"] > 0
    assert counts["found"] > 0


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
    life, stranger = History(plan), StrangerAccepted(0)
    stranger.commit_to(life)
    life.run()
    assert stranger.done is not None
    assert "E-15" in {finding.rule for finding in replay(life)}
