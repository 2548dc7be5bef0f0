"""Random lives of groups, put to the model: whole or as a spoilt capture shows them, lawful or with one unlawful act in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from hypothesis import given, note, settings
from hypothesis import strategies as st

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding, Severity, Status
from coordinator_model.settings import Settings
from coordinator_model.wire import API_NAMES, decode
from coordinator_model.wire.record import MirrorRecord
from tests.coordinator_model.reference import counters
from tests.coordinator_model.reference.history import History, Plan
from tests.coordinator_model.reference.unlawful import Unlawful, exchanges

SKEW_MS = 100
LATEST_MS = 400  #: less than the model waits for late records by default

Spoil = Callable[[list[MirrorRecord], Random], list[MirrorRecord]]


def replay(life: History) -> list[Finding]:
    model = Coordinator(topic="mirror", partition=0)
    return [finding for record in life.records for finding in model.receive(record)]


def is_error(finding: Finding) -> bool:
    """Return True if a finding accuses somebody. That nobody reads for a group is true of a life in which all stop or wait."""
    return finding.severity.rank >= Severity.ERROR.rank and finding.rule not in ("T-13", "R-18")


def errors(records: list[MirrorRecord], **settings: int) -> list[str]:
    model = Coordinator(topic="mirror", partition=0, settings=Settings(**settings))
    found = [finding for record in records for finding in model.receive(record)]
    return [f"{finding.rule} {finding.summary}" for finding in found if is_error(finding)]


def describe(life: History, findings: list[Finding]) -> str:
    lines = []
    begin_us = life.records[0].at_us
    for record in life.records:
        body: object = ""
        if record.api_key >= 0 and record.frame:
            body = decode(record.frame, request=record.kind == "req", api_key=record.api_key, api_version=record.api_version).body
        if record.kind != "tick" and record.api_key != 12:
            lines.append(
                f"{(record.at_us - begin_us) / 1e6:9.4f} {record.broker} {record.connection:12} #{record.exchange:<3} "
                f"{API_NAMES.get(record.api_key, '')} {record.kind} {body}"
            )
    lines += [f"!!! {finding.opened_at_us - begin_us} {finding.status} {finding.summary}" for finding in findings]
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------------- captures that are spoilt


def renumbered(records: list[MirrorRecord]) -> list[MirrorRecord]:
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


def skewed(records: list[MirrorRecord], random: Random) -> list[MirrorRecord]:
    """Each connection is captured by a clock of its own; no two differ by more than ``SKEW_MS``."""
    off: dict[str, int] = {}
    return renumbered(
        [one._replace(at_us=one.at_us + off.setdefault(one.connection, random.randint(-SKEW_MS, SKEW_MS) * 500)) for one in records]
    )


def late(latest_ms: int = LATEST_MS) -> Spoil:
    """Let each connection's records arrive late, in their own order."""

    def spoil(records: list[MirrorRecord], random: Random) -> list[MirrorRecord]:
        delay: dict[str, int] = {}
        arrives = [one.at_us + delay.setdefault(one.connection, random.randrange(latest_ms * 1_000)) for one in records]
        return renumbered([records[index] for index in sorted(range(len(records)), key=arrives.__getitem__)])

    return spoil


def lossy(records: list[MirrorRecord], random: Random) -> list[MirrorRecord]:
    """Some records are missing, and their offsets with them."""
    start = random.randrange(len(records))
    return records[:start] + records[start + random.randint(1, 20) :]


def paused(records: list[MirrorRecord], random: Random) -> list[MirrorRecord]:
    """Nothing is captured for a minute, and the offsets of that time are missing."""
    since_us = random.choice(records).at_us
    return [one for one in records if not since_us <= one.at_us < since_us + 60_000_000]


def from_the_middle(records: list[MirrorRecord], random: Random) -> list[MirrorRecord]:
    return renumbered(records[random.randrange(len(records)) :])


SPOILS: Final = (skewed, late(), from_the_middle, lossy, paused)
"""What renumbers the records comes first: it would hide that some are missing."""


def twice(records: list[MirrorRecord], random: Random) -> list[MirrorRecord]:
    """Two of these at once."""
    for index in sorted(random.sample(range(len(SPOILS)), 2)):
        records = SPOILS[index](records, random) if records else records
    return records


def beside(life: History, other: History) -> list[MirrorRecord]:
    """Run two lives; return the records of both, of two groups of one partition."""
    other.world.group = "h"
    life.run()
    other.run()
    others = [
        one._replace(connection=f"{one.connection}/h", client_id=f"{one.client_id} of h")
        for one in other.records
        if one.kind != "tick"
    ]
    return renumbered(sorted([*life.records, *others], key=lambda one: one.at_us))


# ---------------------------------------------------------------------------------------------------- what holds of every life


def assert_no_error_however_seen(kind: str, life: History, random: Random) -> None:
    """Assert that the model blames nobody for a lawful life, whatever a capture shows of it, and count it.

    A model that is stored and restored on the way says the same as one that is not.
    """
    findings = replay(life)
    wrong = [finding for finding in findings if is_error(finding)]
    counters.count_lawful(
        kind,
        records=len(life.records),
        false=len(wrong),
        warnings=sum(finding.severity is Severity.WARNING and finding.status is Status.OPEN for finding in findings),
    )
    if wrong:
        note(describe(life, wrong))
    assert wrong == []
    assert _restored(life, random) == findings
    for spoil in (*SPOILS, twice):
        found = errors(spoil(life.records, random), clock_skew_ms=SKEW_MS if spoil in {skewed, twice} else 0)
        assert found == [], spoil


def _restored(life: History, random: Random) -> list[Finding]:
    """Return what a model finds that is stored and restored up to five times."""
    restored_at = set(random.choices(range(len(life.records)), k=random.randint(0, 5)))
    model = Coordinator(topic="mirror", partition=0)
    found: list[Finding] = []
    for index, record in enumerate(life.records):
        if index in restored_at:
            model = Coordinator.restore(model.snapshot())
        found.extend(model.receive(record))
    return found


def assert_found_whenever_known(name: str, act: type[Unlawful], plans: st.SearchStrategy[Plan], *, examples: int) -> None:
    """Assert that one of the act's rules speaks of each act that can be known, and count the acts by name."""
    counts = counters.unlawful.setdefault(name, Counter())

    @settings(max_examples=examples)
    @given(plans, st.integers(0, 2))
    def found(plan: Plan, nth: int) -> None:
        life, unlawful = plan.life(), act(nth)
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
