"""Random lives of share groups and Streams groups, lawful and not, replayed through the model; see ``test_histories.py``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding, Severity, Status
from coordinator_model.wire.record import MirrorRecord
from tests.coordinator_model.reference import counters
from tests.coordinator_model.reference.consumer_history import History, acts
from tests.coordinator_model.reference.epoch_history import (
    CLIENTS_ONLY,
    ShareHistory,
    StreamsHistory,
    profiles,
    share_plans,
    streams_plans,
)
from tests.coordinator_model.reference.epoch_unlawful import SHARE_ACTS, STREAMS_ACTS
from tests.coordinator_model.reference.unlawful import Unlawful, exchanges
from tests.coordinator_model.test_histories import describe, errors, renumbered, replay

KINDS = {"share": (share_plans, ShareHistory), "streams": (streams_plans, StreamsHistory)}


def with_clocks_apart(records: list[MirrorRecord], random: Random) -> list[str]:
    """Each connection is captured by a clock of its own, up to 100 ms off."""
    skew_ms, off = 100, dict[str, int]()
    moved = [
        record._replace(at_us=record.at_us + off.setdefault(record.connection, random.randint(-skew_ms, skew_ms) * 500))
        for record in records
    ]
    return errors(renumbered(moved), clock_skew_ms=skew_ms)


def interleaved_differently(records: list[MirrorRecord], random: Random) -> list[str]:
    """Each connection's records arrive late by up to 400 ms, in their own order."""
    late: dict[str, int] = {}
    arrives = [record.at_us + late.setdefault(record.connection, random.randrange(400_000)) for record in records]
    order = sorted(range(len(arrives)), key=arrives.__getitem__)
    found = errors(renumbered([records[index] for index in order]))
    # E-08: what a member was granted last, on the connection before, may be captured after it says so on the next.
    return [text for text in found if not text.startswith("E-08")]


def from_the_middle_on(records: list[MirrorRecord], random: Random) -> list[str]:
    return errors(renumbered(records[random.randrange(len(records)) :]))


def with_a_hole(records: list[MirrorRecord], random: Random) -> list[str]:
    start = random.randrange(len(records))
    return errors(records[:start] + records[start + random.randint(1, 20) :])


@pytest.mark.parametrize("kind", KINDS)
def test_a_lawful_life_has_no_error(kind: str) -> None:
    @given(KINDS[kind][0]())
    def lives(plan: object) -> None:
        life = plan.run()  # type: ignore[attr-defined]
        findings = replay(life)
        wrong = [finding for finding in findings if finding.severity.rank >= Severity.ERROR.rank]
        warnings = sum(finding.severity is Severity.WARNING and finding.status is Status.OPEN for finding in findings)
        counters.count_lawful(kind, records=len(life.records), false=len(wrong), warnings=warnings)
        if wrong:
            note(describe(life, wrong))
        assert wrong == []

    lives()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seen", [with_clocks_apart, interleaved_differently, from_the_middle_on, with_a_hole])
def test_a_lawful_life_has_no_error_however_it_is_seen(kind: str, seen: Callable[[list[MirrorRecord], Random], list[str]]) -> None:
    @settings(max_examples=settings().max_examples // 2)
    @given(KINDS[kind][0](), st.integers(0, 2**32 - 1))
    def lives(plan: object, seed: int) -> None:
        assert seen(plan.run().records, Random(seed)) == []  # type: ignore[attr-defined]

    lives()


@pytest.mark.parametrize("kind", KINDS)
def test_snapshots_anywhere_give_identical_findings(kind: str) -> None:
    @settings(max_examples=settings().max_examples // 2)
    @given(KINDS[kind][0](), st.lists(st.floats(0, 1), max_size=5))
    def lives(plan: object, cuts: list[float]) -> None:
        life = plan.run()  # type: ignore[attr-defined]
        restored_at = {int(len(life.records) * cut) for cut in cuts}
        model = Coordinator(topic="mirror", partition=0)
        found: list[Finding] = []
        for index, record in enumerate(life.records):
            if index in restored_at:
                model = Coordinator.restore(model.snapshot())
            found.extend(model.receive(record))
        assert found == replay(life)

    lives()


@pytest.mark.parametrize(
    ("kind", "act"),
    [("share", act) for act in SHARE_ACTS] + [("streams", act) for act in STREAMS_ACTS],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_an_unlawful_act_is_found_whenever_it_can_be_known(kind: str, act: type[Unlawful]) -> None:
    counts = counters.unlawful.setdefault(f"{act.__name__} ({kind})", Counter())
    plans, history = KINDS[kind]

    @settings(max_examples=min(settings().max_examples // 4, 2_000))
    @given(
        plans(
            profiles=st.lists(profiles(), min_size=2, max_size=4).map(tuple),
            acts=st.lists(acts(CLIENTS_ONLY), min_size=act.least_acts, max_size=act.least_acts + 4).map(tuple),
        ),
        st.integers(0, 2),
    )
    def found(plan: object, nth: int) -> None:
        life: History = history(plan)  # type: ignore[arg-type]
        unlawful = act(nth)
        unlawful.commit_to(life)  # type: ignore[arg-type]
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
