"""Compares the monitor's findings with the faults that the demo injected.

A finding of the right rule is not enough. It counts only if it is about the right group, opened after the fault, blames the right side, and
names exactly the culprits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from coordinator_model.finding import Blame
from streaming.published.finding_json import microseconds
from streaming.published.records import Json

_CLOCK_TOLERANCE_US: Final = 50_000  # the fault and the frame that shows it get their times in different processes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFinding:
    """The finding that a fault must cause, according to the catalogue."""

    rule: str
    group: str
    blame: Blame
    culprits: tuple[str, ...]  #: client ids; the finding must name all of them


@dataclass(slots=True)
class Truth:
    """What the demo did; filled in while a scenario runs."""

    fact_us: int | None = None  #: when the fault began
    member_ids: set[str] = field(default_factory=set)  #: of the culprits, where the demo knows them
    failure: str | None = None  #: why the fault could not be injected


class Observation(NamedTuple):
    """One published state of a finding, and when the demo read it."""

    finding: Json
    read_us: int


class Verdict(NamedTuple):
    """The result of one expectation."""

    found: bool
    observation: Observation | None  #: the finding that meets the expectation, else the first one that nearly does
    seconds_after: float | None  #: from the fault to the demo's reading of the finding
    problem: str | None  #: why the expectation is not met


def judge(expected: ExpectedFinding, truth: Truth, observations: Sequence[Observation]) -> Verdict:
    """Compare all published findings, oldest first, with one expectation."""
    if truth.failure is not None:
        return Verdict(False, None, None, truth.failure)
    if truth.fact_us is None:
        return Verdict(False, None, None, "the fault was not injected")
    nearest: tuple[Observation, str] | None = None
    for observation in observations:
        finding = observation.finding
        if finding["rule"] != expected.rule or finding["group"] != expected.group:
            continue
        problem = _mismatch(finding, expected, truth, truth.fact_us)
        if problem is None:
            return Verdict(True, observation, (observation.read_us - truth.fact_us) / 1e6, None)
        nearest = nearest or (observation, problem)
    if nearest is None:
        return Verdict(False, None, None, f"no finding of {expected.rule} about group {expected.group}")
    return Verdict(False, nearest[0], None, nearest[1])


def _mismatch(finding: Json, expected: ExpectedFinding, truth: Truth, fact_us: int) -> str | None:
    """Return why a finding of the right rule and group is not the expected one; None if it is."""
    if microseconds(finding["opened_at"]) < fact_us - _CLOCK_TOLERANCE_US:
        return "opened before the fault"
    if finding["blame"] != expected.blame:
        return f"blames {finding['blame']}, not {expected.blame}"
    if finding["client_id"] is not None and finding["client_id"] not in expected.culprits:
        return f"names {finding['client_id']}"
    unnamed = [culprit for culprit in expected.culprits if not names(finding, culprit)]
    if unnamed:
        return f"does not name {' and '.join(unnamed)}"
    member_id = finding["member_id"]
    if truth.member_ids and member_id is not None and member_id not in truth.member_ids:
        return f"names member {member_id}, which is not the culprit"
    return None


def names(finding: Json, client_id: str) -> bool:
    """Return whether the finding names this client id, in its own field or as a whole word in its text."""
    if finding["client_id"] == client_id:
        return True
    word = re.compile(rf"(?<![\w.-]){re.escape(client_id)}(?![\w-]|\.\w)")
    return any(word.search(finding[text]) for text in ("summary", "observed"))


def about_group(group: str, observations: Iterable[Observation]) -> list[Json]:
    """Return the newest state of each finding about a group."""
    newest = {one.finding["id"]: one.finding for one in observations if one.finding["group"] == group}
    return list(newest.values())


def exit_status(verdicts: Iterable[Verdict], about_healthy: Sequence[Json], *, healthy_seen: bool) -> int:
    """Return 0 if every fault was found, and the monitor saw the healthy group and has no finding about it; else 1."""
    return 0 if all(verdict.found for verdict in verdicts) and not about_healthy and healthy_seen else 1
