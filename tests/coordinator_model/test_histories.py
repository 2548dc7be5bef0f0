"""Random lives of a group, lawful and not, replayed through the model.

How many is set by the Hypothesis profile: a few hundred in the test suite, ``make histories`` runs 20,000 and prints the counts.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding, Severity, Status
from coordinator_model.settings import Settings
from coordinator_model.wire import API_NAMES, decode
from coordinator_model.wire.record import MirrorRecord
from tests.coordinator_model.reference import counters
from tests.coordinator_model.reference.history import History, Plan, acts, plans, profiles
from tests.coordinator_model.reference.unlawful import ACTS, Unlawful, exchanges

CLIENTS_ONLY = ("stop", "crash", "start", "stall", "cut", "subscribe", "metadata", "newcomer", "restart")
"""Without a failover: after one, most of what was proven is not any more."""


def replay(history: History) -> list[Finding]:
    model = Coordinator(topic="mirror", partition=0)
    return [finding for record in history.records for finding in model.receive(record)]


def describe(history: History, findings: list[Finding]) -> str:
    lines = []
    for record in history.records:
        body: object = ""
        if record.api_key >= 0 and record.frame:
            body = decode(record.frame, request=record.kind == "req", api_key=record.api_key, api_version=record.api_version).body
        at_s = (record.at_us - history.records[0].at_us) / 1e6
        if record.kind != "tick" and record.api_key != 12:
            lines.append(
                f"{at_s:9.4f} {record.broker} {record.connection:12} #{record.exchange:<3} {API_NAMES.get(record.api_key, '')} {record.kind} {body}"
            )
    lines += [f"!!! {finding.opened_at_us - history.records[0].at_us} {finding.status} {finding.summary}" for finding in findings]
    return "\n".join(lines)


@given(plans())
def test_a_lawful_life_has_no_error(plan: Plan) -> None:
    history = plan.run()
    findings = replay(history)
    errors = [finding for finding in findings if finding.severity.rank >= Severity.ERROR.rank]
    counters.count_lawful(
        "classic",
        records=len(history.records),
        false=len(errors),
        warnings=sum(finding.severity is Severity.WARNING and finding.status is Status.OPEN for finding in findings),
    )
    if errors:
        note(describe(history, errors))
    assert errors == []


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_an_unlawful_act_is_found_whenever_it_can_be_known(act: type[Unlawful]) -> None:
    counts = counters.unlawful.setdefault(act.__name__, Counter())

    @settings(max_examples=min(settings().max_examples, 2_000))
    @given(
        plans(
            profiles=st.lists(profiles(), min_size=2, max_size=4).map(tuple),
            acts=st.lists(acts(CLIENTS_ONLY), min_size=act.least_acts, max_size=act.least_acts + 4).map(tuple),
        ),
        st.integers(0, 2),
    )
    def found(plan: Plan, nth: int) -> None:
        history, unlawful = History(plan), act(nth)
        unlawful.commit_to(history)
        history.run()
        counts["histories"] += 1
        if unlawful.done is None:
            return
        counts["done"] += 1
        if not unlawful.knowable(exchanges(history.records)):
            return
        counts["knowable"] += 1
        findings = replay(history)
        spoke = any(finding.rule in act.rules for finding in findings)
        counts["found"] += spoke
        if not spoke:
            note(f"{unlawful.done}\n{describe(history, findings)}")
        assert spoke

    found()
    assert counts["knowable"] > 0


def errors(records: list[MirrorRecord], **settings: int) -> list[str]:
    model = Coordinator(topic="mirror", partition=0, settings=Settings(**settings))
    found = [finding for record in records for finding in model.receive(record)]
    return [f"{finding.rule} {finding.summary}" for finding in found if finding.severity.rank >= Severity.ERROR.rank]


def renumbered(records: list[MirrorRecord]) -> list[MirrorRecord]:
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


@given(plans(), st.integers(0, 2**32 - 1))
def test_clocks_that_differ_within_the_skew_bound_make_no_error(plan: Plan, seed: int) -> None:
    """Each connection is captured by a clock of its own, up to 100 ms off."""
    skew_ms, random = 100, Random(seed)
    history = plan.run()
    off: dict[str, int] = {}
    records = [
        record._replace(at_us=record.at_us + off.setdefault(record.connection, random.randint(-skew_ms, skew_ms) * 500))
        for record in history.records
    ]
    assert errors(renumbered(records), clock_skew_ms=skew_ms) == []


@given(plans(), st.integers(0, 2**32 - 1))
def test_connections_interleaved_differently_make_no_error(plan: Plan, seed: int) -> None:
    """Each connection's records arrive late by up to 400 ms, in their own order."""
    random = Random(seed)
    history = plan.run()
    late: dict[str, int] = {}
    arrives = [record.at_us + late.setdefault(record.connection, random.randrange(400_000)) for record in history.records]
    order = sorted(range(len(arrives)), key=arrives.__getitem__)
    assert errors(renumbered([history.records[index] for index in order])) == []


@given(plans(), st.floats(0, 1))
def test_starting_in_the_middle_makes_no_error(plan: Plan, share: float) -> None:
    history = plan.run()
    assert errors(renumbered(history.records[int(len(history.records) * share) :])) == []


@given(plans(), st.lists(st.floats(0, 1), max_size=5))
def test_snapshots_anywhere_give_identical_findings(plan: Plan, cuts: list[float]) -> None:
    history = plan.run()
    restored_at = {int(len(history.records) * cut) for cut in cuts}
    model = Coordinator(topic="mirror", partition=0)
    found: list[Finding] = []
    for index, record in enumerate(history.records):
        if index in restored_at:
            model = Coordinator.restore(model.snapshot())
        found.extend(model.receive(record))
    assert found == replay(history)


@given(plans(), st.floats(0, 1), st.integers(1, 20))
def test_records_lost_anywhere_make_no_error(plan: Plan, share: float, lost: int) -> None:
    """A hole in the offsets: the model says that it was blind, and blames nobody."""
    history = plan.run()
    start = int(len(history.records) * share)
    assert errors(history.records[:start] + history.records[start + lost :]) == []
