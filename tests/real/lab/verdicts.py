"""Commits the violations and holds what the monitor said of each against what was done."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from coordinator_model.finding import Finding, Severity
from coordinator_model.settings import Settings
from streaming.demo.verdicts import ExpectedFinding, Observation, Truth, Verdict, judge
from tests.real.lab.cluster import Site
from tests.real.lab.monitor import Monitor
from tests.real.lab.scene import Lies, Scene
from tests.real.lab.violations import Violation

AT_ONCE = 12
ATTEMPTS = 3  # at a violation that did not come about: on a busy machine a member may lose its session before its part comes
_VIOLATION = "violation-"
_AGAIN = "-again-"


@dataclass(slots=True)
class Case:
    """A violation and its verdict."""

    violation: Violation
    verdict: Verdict
    besides: list[Finding] = field(default_factory=list)  #: what else was said of its group, at error level or above
    failure: str | None = None  #: why it did not come about as it should
    attempts: int = 1


def warm_up(site: Site) -> None:
    """Wait until the coordinators have loaded and long enough afterwards: a heartbeat's success near a load proves nothing.

    They are not to move again on their own: a member that was told to misbehave does not look for another.
    """
    site.prefer_leaders()
    for number in range(len(site.brokers) * 4):
        with contextlib.closing(Scene(f"warm-up-{number}", site.fronts[0], Lies(), lambda: False)) as scene:
            member = scene.member("first")
            scene.enter(member)
            member.leave()
    time.sleep(Settings().load_window_ms / 1000 + 1)


def try_all(site: Site, monitor: Monitor, lies: Lies, say: Callable[[str], None], violations: Sequence[Violation]) -> list[Case]:
    """Commit them, several at a time, and judge."""
    warm_up(site)

    def one(violation: Violation) -> Case:
        for attempt in range(ATTEMPTS):
            case = _try(site, monitor, lies, violation, group_of(violation, attempt))
            case.attempts = attempt + 1
            if case.verdict.found or case.failure is None:
                break
            say(f"{violation.name} did not come about: {case.failure.splitlines()[-1]}")
        verdict = case.verdict
        said = f"found after {verdict.seconds_after:.1f} s" if verdict.found else f"NOT FOUND: {verdict.problem}"
        say(f"{violation.name} ({violation.rule}): {said}")
        return case

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, violations))


def group_of(violation: Violation, attempt: int = 0) -> str:
    """The group that a violation is committed in; each attempt has its own."""
    return f"{_VIOLATION}{violation.name}" + (f"{_AGAIN}{attempt}" if attempt else "")


def groups_of(violation: Violation) -> list[str]:
    """All groups that it may have been committed in, the last attempt first."""
    return [group_of(violation, attempt) for attempt in reversed(range(ATTEMPTS))]


def is_violation(group: str) -> bool:
    """Whether the group was made for a violation."""
    return group.startswith(_VIOLATION)


def _try(site: Site, monitor: Monitor, lies: Lies, violation: Violation, group: str) -> Case:
    expected = [
        ExpectedFinding(
            rule=violation.rule, group=group, blame=violation.blame, culprits=tuple(f"{group}-{culprit}" for culprit in culprits)
        )
        for culprits in (violation.culprits, *([violation.or_culprits] if violation.or_culprits else []))
    ]
    truth = Truth()

    def verdict() -> Verdict:
        verdicts = [judge(one, truth, _sightings(monitor, group)) for one in expected]
        return next((one for one in verdicts if one.found), verdicts[0])

    failure: str | None = None
    try:
        scene = Scene(group, site.fronts[0], lies, lambda: verdict().found)
        truth = scene.truth
        try:
            violation.commit(scene)
            scene.note_lie()
        finally:
            scene.close()
    except Exception:
        failure = traceback.format_exc()
    final = verdict()
    if failure is None and truth.fact_us is None:
        failure = "nothing was done that could be found"
    if not final.found and failure is not None:
        final = final._replace(problem=f"{final.problem}; {failure}")
    return Case(violation, final, _besides(monitor, group, violation.rule), failure)


def _sightings(monitor: Monitor, group: str) -> list[Observation]:
    return [
        Observation(said.finding.as_json(), said.at_us)
        for states in monitor.findings().values()
        for said in states
        if said.finding.group == group
    ]


def _besides(monitor: Monitor, group: str, rule: str) -> list[Finding]:
    last = [states[-1].finding for states in monitor.findings().values()]
    return [
        finding
        for finding in last
        if finding.group == group and finding.rule != rule and finding.severity.rank >= Severity.ERROR.rank
    ]
