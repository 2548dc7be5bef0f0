"""Whether the monitor found what was done, and named who did it: findings held against the truth that only the demo knows.

The trap: a finding of the right rule is not enough. It counts only if it is about the right group, opened after the fact, blames
the right side, and names every culprit and nobody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from coordinator_model.finding import Blame

FindingJson = Mapping[str, Any]

_CLOCK_TOLERANCE_US: Final = 50_000  # the fact is noted by one process, the frame that tells it by another


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFinding:
    """What the catalogue says must be found."""

    rule: str
    group: str
    blame: Blame
    culprits: tuple[str, ...]  #: client ids, all of which the finding has to name


@dataclass(slots=True)
class Truth:
    """What really happened, as far as it has: filled in while a trouble goes on."""

    fact_us: int | None = None  #: the first instant at which something was wrong
    member_ids: set[str] = field(default_factory=set)  #: of the culprits, where the demo knows them
    failure: str | None = None  #: why the trouble could not be made


class Sighting(NamedTuple):
    """One published state of a finding, and when the demo could read it."""

    finding: FindingJson
    read_us: int


class Verdict(NamedTuple):
    """What became of one expectation."""

    found: bool
    sighting: Sighting | None  #: the finding that meets it, else the nearest miss
    seconds_after: float | None  #: from the fact to the finding being readable
    problem: str | None  #: why it is not met


def judge(expected: ExpectedFinding, truth: Truth, sightings: Sequence[Sighting]) -> Verdict:
    """Hold all published findings, oldest first, against one expectation."""
    if truth.failure is not None:
        return Verdict(False, None, None, truth.failure)
    if truth.fact_us is None:
        return Verdict(False, None, None, "the trouble was not made")
    nearest: tuple[Sighting, str] | None = None
    for sighting in sightings:
        finding = sighting.finding
        if finding["rule"] != expected.rule or finding["group"] != expected.group:
            continue
        problem = _mismatch(finding, expected, truth, truth.fact_us)
        if problem is None:
            return Verdict(True, sighting, (sighting.read_us - truth.fact_us) / 1e6, None)
        nearest = nearest or (sighting, problem)
    if nearest is None:
        return Verdict(False, None, None, f"no finding of {expected.rule} about group {expected.group}")
    return Verdict(False, nearest[0], None, nearest[1])


def _mismatch(finding: FindingJson, expected: ExpectedFinding, truth: Truth, fact_us: int) -> str | None:
    """Why a finding of the right rule and group is not the expected one."""
    if micros(finding["opened_at"]) < fact_us - _CLOCK_TOLERANCE_US:
        return "opened before anything was wrong"
    if finding["blame"] != expected.blame:
        return f"blames {finding['blame']}, not {expected.blame}"
    if finding["client_id"] is not None and finding["client_id"] not in expected.culprits:
        return f"names {finding['client_id']}"
    unnamed = [culprit for culprit in expected.culprits if not names(finding, culprit)]
    if unnamed:
        return f"does not name {' and '.join(unnamed)}"
    member_id = finding["member_id"]
    if truth.member_ids and member_id is not None and member_id not in truth.member_ids:
        return f"names member {member_id}, which is another"
    return None


def names(finding: FindingJson, client_id: str) -> bool:
    """Whether a reader of the finding learns this client id: from its own field or, as a whole word, from its text."""
    if finding["client_id"] == client_id:
        return True
    word = re.compile(rf"(?<![\w.-]){re.escape(client_id)}(?![\w-]|\.\w)")
    return any(word.search(finding[text]) for text in ("summary", "observed"))


def about_group(group: str, sightings: Iterable[Sighting]) -> list[FindingJson]:
    """The newest state of each finding about a group."""
    newest = {sighting.finding["id"]: sighting.finding for sighting in sightings if sighting.finding["group"] == group}
    return list(newest.values())


def exit_status(verdicts: Iterable[Verdict], about_healthy: Sequence[FindingJson], *, healthy_seen: bool) -> int:
    """0 only if every trouble was found and the healthy group, which the monitor must have seen, had no finding of any severity."""
    return 0 if all(verdict.found for verdict in verdicts) and not about_healthy and healthy_seen else 1


def micros(iso: str) -> int:
    """Microseconds since the epoch of an ISO 8601 time."""
    moment = datetime.fromisoformat(iso)
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
