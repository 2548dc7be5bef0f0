"""The table that a run ends with, its line for sums over many runs, and the evidence for what was wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from rich.table import Table

from coordinator_model.finding import Finding
from tests.real.lab.laboratory import Result
from tests.real.lab.monitor import around, write
from tests.real.lab.verdicts import Case


def table(results: list[Result]) -> Table:
    """One column per release."""
    found = Table(title="laboratory", title_justify="left")
    found.add_column("")
    for result in results:
        found.add_column(f"{result.version} x{result.brokers}\nseed {result.seed}", justify="right")
    for name, value in _ROWS.items():
        found.add_row(name, *(value(result) for result in results))
    return found


def _equal(result: Result) -> str:
    groups = sum(comparison.groups for comparison in result.comparisons)
    unknown = sum(len(comparison.unknown) for comparison in result.comparisons)
    unlike = sum(comparison.unlike for comparison in result.comparisons)
    return f"{groups - unknown - unlike} equal, {unknown} not known, {unlike} differ"


def _found(result: Result) -> str:
    return f"{sum(case.verdict.found for case in result.cases)} of {len(result.cases)}"


def _set_anew(result: Result) -> int:
    return sum(case.attempts - 1 for case in result.cases)


def _slowest(result: Result) -> str:
    delays = sorted(case.verdict.seconds_after for case in result.cases if case.verdict.seconds_after is not None)
    return f"{delays[len(delays) // 2]:.1f} s / {delays[-1]:.1f} s" if delays else "-"


def _counted(counts: Counter[str]) -> str:
    return "\n".join(f"{name} {count}" for name, count in counts.most_common()) or "-"


def _told(result: Result) -> str:
    return (
        "\n".join(
            f"{severity}: {rule} {count}" for severity in result.findings for rule, count in result.findings[severity].items()
        )
        or "-"
    )


_ROWS: dict[str, Any] = {
    "chaos": lambda result: f"{result.chaos_s:.0f} s",
    "frames": lambda result: f"{result.frames}",
    "rebalances": lambda result: f"{result.rebalances}",
    "groups": lambda result: f"{result.groups}",
    "clients started": lambda result: _counted(result.clients),
    "acts of chaos": lambda result: _counted(result.acts),
    "told of lawful groups": _told,
    "breaches of libraries": lambda result: str(len(result.breaches)),
    "false errors": lambda result: str(len(result.false_alarms)),
    "quiet points": lambda result: str(len(result.comparisons)),
    "groups at them": _equal,
    "equal by type": lambda result: _counted(sum((comparison.equal for comparison in result.comparisons), Counter())),
    "violations found": _found,
    "delay, median / longest": _slowest,
    "violations set anew": lambda result: str(_set_anew(result)),
    "model raised": lambda result: str(len(result.crashes)),
    "replayed alike": lambda result: "no" if result.replay_differs else "yes",
    "mirrored alike": lambda result: "no" if result.mirror_differs else f"yes, {result.mirror_doubled} twice",
}


def violations(results: list[Result]) -> Table:
    """Each violation with what became of it."""
    found = Table(title="violations", title_justify="left")
    for column in ("violation", "rule", *(f"{result.version} x{result.brokers}" for result in results)):
        found.add_column(column)
    outcomes = [{case.violation.name: case for case in result.cases} for result in results]
    for violation in {case.violation.name: case.violation for result in results for case in result.cases}.values():
        cells = (_outcome(cases.get(violation.name)) for cases in outcomes)
        found.add_row(violation.name, violation.rule, *cells)
    return found


def _outcome(case: Case | None) -> str:
    """What came of a violation in one run; nothing where the release has no such groups."""
    if case is None:
        return ""
    return f"{case.verdict.seconds_after:.1f} s" if case.verdict.found else "NOT FOUND"


def troubles(result: Result, folder: Path) -> list[str]:
    """What was wrong, in lines; the records around each false alarm go to a file."""
    lines = [f"BREACH {finding.rule} {finding.name}: {finding.summary}" for finding in result.breaches]
    for number, finding in enumerate(result.false_alarms):
        file = folder / f"false-{result.version}-{result.brokers}-{result.seed}-{number}-{finding.rule}.records"
        write(file, around(result.recording, finding))
        lines += [f"FALSE {finding.severity} {finding.rule} {finding.name}: {finding.summary}", *_evidence(finding), f"    {file}"]
    for case in result.cases:
        if not case.verdict.found:
            lines.append(f"MISSED {case.violation.name} ({case.violation.rule}): {case.verdict.problem}")
        lines += [f"besides {case.violation.name}: {finding.rule} {finding.severity} {finding.summary}" for finding in case.besides]
    lines += [f"DIFFERS {difference}" for comparison in result.comparisons for difference in comparison.differences]
    lines += [f"RAISED {crash}" for crash in result.crashes[:3]]
    lines += [f"REPLAY {difference}" for difference in result.replay_differs]
    lines += [f"MIRROR {difference}" for difference in result.mirror_differs]
    return lines


def _evidence(finding: Finding) -> list[str]:
    return [f"    observed: {finding.observed}"] + [
        f"    offset {frame.offset}, connection {frame.connection}: {frame.frame}" for frame in finding.evidence
    ]


def as_json(result: Result) -> str:
    """One line for sums over many runs."""
    return json.dumps(
        {
            "version": result.version,
            "brokers": result.brokers,
            "seed": result.seed,
            "seconds": round(result.seconds),
            "chaos_s": round(result.chaos_s),
            "frames": result.frames,
            "rebalances": result.rebalances,
            "groups": result.groups,
            "clients": dict(result.clients),
            "software": result.software,
            "acts": dict(result.acts),
            "told": {severity.value: dict(rules) for severity, rules in result.findings.items()},
            "false": [[finding.rule, finding.id, finding.summary] for finding in result.false_alarms],
            "breaches": [[finding.rule, finding.id, finding.summary] for finding in result.breaches],
            "quiet_points": len(result.comparisons),
            "groups_compared": sum(comparison.groups - len(comparison.unknown) for comparison in result.comparisons),
            "groups_not_known": sum(len(comparison.unknown) for comparison in result.comparisons),
            "groups_unlike": sum(comparison.unlike for comparison in result.comparisons),
            "equal_by_type": dict(sum((comparison.equal for comparison in result.comparisons), Counter())),
            "differences": [difference for comparison in result.comparisons for difference in comparison.differences],
            "violations": {
                case.violation.name: case.verdict.seconds_after if case.verdict.found else None for case in result.cases
            },
            "set_anew": _set_anew(result),
            "restores": result.restores,
            "crashes": len(result.crashes),
            "replay_differs": bool(result.replay_differs),
            "mirror_differs": bool(result.mirror_differs),
            "mirror_doubled": result.mirror_doubled,
        }
    )
