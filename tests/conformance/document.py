"""Writes docs/conformance.md from the results that are kept, and says what in them has not been judged.

``python -m tests.conformance.document`` does the former after a change of the judgements.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.conformance.judgements import JUDGEMENTS, Judgement, Verdict, judged
from tests.conformance.libraries import LIBRARIES, OLDEST_BROKER, Library
from tests.conformance.results import RESULTS, read
from tests.conformance.scenarios import OF_THE_MACHINE, SCENARIOS, Scenario

PAGE = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"
KEPT, NOT_PLAYED, UNJUDGED, UNSETTLED = "kept", "", "?", "stuck"
_CHAPTERS = (
    (Verdict.BREACH, "Breaches"),
    (Verdict.ODDITY, "Lawful oddities"),
    (Verdict.NOISE, "What the monitor says too much"),
)
_TELLS = {scenario.name: scenario.tells | OF_THE_MACHINE for scenario in SCENARIOS}

_HEAD = """\
# Conformance of client libraries

Written by `make conformance ARGS=--save` from `tests/conformance/results/`; change `tests/conformance/`, not this file.

Every library below was led through the same lawful scenarios, on real brokers and through the tap. The monitor's model judged the
frames. For each breach and oddity *Source* says where the library's own source shows it, or that nobody has looked yet.

A cell says what came of a scenario on all brokers and with all seeds: *kept* (nothing but what the scenario does on purpose), a breach
(`B…`), an oddity (`O…`) or noise of the monitor's own (`N…`), which are explained below, *stuck* when the group did not become stable
within 90 s in one of the runs and nobody has judged why, or *?* when there is such a finding.
An empty cell was not played; [the last chapter](#what-was-not-played) says why.
"""


def surprises(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    """Findings that say more than what the scenario does."""
    return [finding for finding in outcome["findings"] if finding["rule"] not in _TELLS.get(outcome["scenario"], ())]


def _signs(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    """What a judgement may be about: findings, and a group that did not settle."""
    stuck = [trouble for trouble in outcome["troubles"] if trouble.startswith("not stable")]
    return [*surprises(outcome), *({"rule": UNSETTLED, "summary": f"The group was {trouble}.", "frames": []} for trouble in stuck)]


def unjudged(outcomes: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each finding that nobody has looked at yet."""
    return [
        f"{outcome['library']}, {outcome['scenario']}, Kafka {outcome['broker']}, seed {outcome['seed']}: "
        f"{finding['severity']} {finding['rule']} {finding['summary']}"
        for outcome in outcomes
        for finding in surprises(outcome)
        if judged(outcome["library"], finding["rule"], outcome["scenario"]) is None
    ]


def document(outcomes: Sequence[dict[str, Any]]) -> str:
    """The whole page."""
    parts = [_HEAD, _runs(outcomes), _agreement(outcomes), _table(outcomes), _scenarios()]
    for verdict, title in _CHAPTERS:
        found = [one for one in JUDGEMENTS if one.verdict is verdict]
        parts.append(f"## {title}\n")
        parts += [_explained(one, outcomes) for one in found] or ["None.\n"]
    parts += [_stuck(outcomes), _skipped(outcomes)]
    return "\n".join(parts)


def write_page() -> None:
    """Write the page from the results that are kept."""
    PAGE.write_text(document(read(RESULTS)))


def _runs(outcomes: Sequence[dict[str, Any]]) -> str:
    lines = ["| Kafka | seeds | libraries | scenarios played | stage time |", "| --- | --- | --- | --- | --- |"]
    for broker in sorted({outcome["broker"] for outcome in outcomes}, reverse=True):
        there = [outcome for outcome in outcomes if outcome["broker"] == broker]
        seeds = ", ".join(map(str, sorted({outcome["seed"] for outcome in there})))
        minutes = sum(outcome["seconds"] for outcome in there) / 60
        lines.append(
            f"| {broker} | {seeds} | {len({outcome['library'] for outcome in there})} | {len(there)} | {minutes:.0f} min |"
        )
    return "\n".join([*lines, ""])


def _agreement(outcomes: Sequence[dict[str, Any]]) -> str:
    """Whether another seed gave another verdict, of a library in one scenario and of a library as a whole."""
    played: dict[tuple[str, str, str], dict[int, list[str]]] = {}
    for outcome in outcomes:
        place = (outcome["library"], outcome["scenario"], outcome["broker"])
        played.setdefault(place, {})[outcome["seed"]] = _told([outcome])
    twice = {place: by_seed for place, by_seed in played.items() if len(by_seed) > 1}
    differ = {place: by_seed for place, by_seed in twice.items() if len({tuple(told) for told in by_seed.values()}) > 1}
    wholes: dict[tuple[str, str], dict[int, set[str]]] = {}
    for (library, _, broker), by_seed in twice.items():
        for seed, told in by_seed.items():
            wholes.setdefault((library, broker), {}).setdefault(seed, set()).update(told)
    same = [by_seed for by_seed in wholes.values() if len({frozenset(told) for told in by_seed.values()}) == 1]
    said = (
        f"{len(twice)} of these were played with several seeds, with the same verdict in {len(twice) - len(differ)}. "
        f"Over all its scenarios on one release a library has the same verdict with each seed in {len(same)} of {len(wholes)} cases. "
        "What depends on who is first shows with one seed and not with another."
    )
    lines = [said]
    if differ:
        lines += ["It differs in:", ""]
        lines += [
            f"- {library}, {scenario}, Kafka {broker}: "
            + ", ".join(f"{_cell(told)} with seed {seed}" for seed, told in sorted(by_seed.items()))
            for (library, scenario, broker), by_seed in sorted(differ.items())
        ]
    return "\n".join([*lines, ""])


def _table(outcomes: Sequence[dict[str, Any]]) -> str:
    played = [scenario.name for scenario in SCENARIOS if any(outcome["scenario"] == scenario.name for outcome in outcomes)]
    lines = ["| library | " + " | ".join(played) + " |", "| --- |" + " --- |" * len(played)]
    for library in LIBRARIES:
        mine = [outcome for outcome in outcomes if outcome["library"] == library.name]
        if mine:
            there = [[outcome for outcome in mine if outcome["scenario"] == name] for name in played]
            cells = [_cell(_told(some)) if some else NOT_PLAYED for some in there]
            versions = ", ".join(sorted({outcome["version"] for outcome in mine}))
            lines.append(f"| {library.name} {versions} ({library.language}) | " + " | ".join(cells) + " |")
    return "\n".join(["## Table", "", *lines, ""])


def _told(outcomes: Sequence[dict[str, Any]]) -> list[str]:
    """Keys of the judgements of what was found, and whether a group got stuck that nobody has judged."""
    told: set[str] = set()
    for outcome in outcomes:
        for sign in _signs(outcome):
            one = judged(outcome["library"], sign["rule"], outcome["scenario"])
            nobody = UNSETTLED if sign["rule"] == UNSETTLED else UNJUDGED
            told.add(nobody if one is None else one.key)
    return sorted(told)


def _cell(told: Sequence[str]) -> str:
    return ", ".join(told) or KEPT


def _scenarios() -> str:
    lines = ["| scenario | what happens | what the monitor tells of it on purpose |", "| --- | --- | --- |"]
    lines += [f"| {scenario.name} | {scenario.does} | {', '.join(sorted(scenario.tells))} |" for scenario in SCENARIOS]
    busy = f"In each of them the brokers of a busy machine may answer late, which {', '.join(sorted(OF_THE_MACHINE))} tells."
    return "\n".join(["## Scenarios", "", *lines, "", busy, ""])


def _explained(one: Judgement, outcomes: Sequence[dict[str, Any]]) -> str:
    seen = [
        (outcome, finding)
        for outcome in outcomes
        for finding in _signs(outcome)
        if judged(outcome["library"], finding["rule"], outcome["scenario"]) is one
    ]
    versions = sorted({f"{outcome['library']} {outcome['version']}" for outcome, _ in seen})
    where = sorted({f"{outcome['scenario']} ({outcome['broker']})" for outcome, _ in seen})
    lines = [
        f"### {one.key}: {one.title}",
        "",
        f"- **Who**: {', '.join(versions) or ', '.join(one.libraries) + ' (not seen in these runs)'}",
        f"- **Rule**: {', '.join(rule if rule == UNSETTLED else f'[{rule}](rules/{rule[0]}.md)' for rule in one.rules)}",
        f"- **Protocol**: {one.protocol}",
        f"- **Source**: {one.source}",
        f"- **Cost**: {one.costs}",
        f"- **How to avoid it**: {one.avoid}",
        f"- **Known**: {one.known}",
    ]
    if seen:
        outcome, finding = max(seen, key=lambda pair: min(len(pair[1]["frames"]), 6))
        lines += [
            f"- **Seen** {len(seen)} times: {', '.join(where)}. For example ({outcome['scenario']}, Kafka {outcome['broker']}):",
            "",
            f"  {finding['summary']}",
            "",
            *(f"      {frame}" for frame in finding["frames"]),
        ]
    return "\n".join([*lines, ""])


def _stuck(outcomes: Sequence[dict[str, Any]]) -> str:
    lines = [
        f"- {outcome['library']}, {outcome['scenario']}, Kafka {outcome['broker']}, seed {outcome['seed']}: {'; '.join(outcome['troubles'])}"
        for outcome in outcomes
        if outcome["troubles"]
    ]
    return "\n".join(["## What did not come as it should", "", *(sorted(lines) or ["Nothing."]), ""])


def _skipped(outcomes: Sequence[dict[str, Any]]) -> str:
    """What was not played, and why."""
    lines = []
    for broker in sorted({outcome["broker"] for outcome in outcomes}, reverse=True):
        there = [outcome for outcome in outcomes if outcome["broker"] == broker]
        played = {(outcome["library"], outcome["scenario"]) for outcome in there}
        for library in LIBRARIES:
            missing = [scenario for scenario in SCENARIOS if (library.name, scenario.name) not in played]
            if missing:
                lines.append(f"| {broker} | {library.name} | {_why_not(library, broker, missing)} |")
    return "\n".join(["## What was not played", "", "| Kafka | library | what |", "| --- | --- | --- |", *lines, ""])


def _why_not(library: Library, broker: str, missing: Sequence[Scenario]) -> str:
    if not library.speaks_to(broker):
        return f"all: its protocol needs Kafka {'.'.join(map(str, OLDEST_BROKER[library.protocol]))}"
    lacks = ", ".join(scenario.name for scenario in missing if not scenario.needs(library))
    others = ", ".join(scenario.name for scenario in missing if scenario.needs(library))
    reasons = (f"{lacks}: it has no such feature" if lacks else "", f"{others}: not run" if others else "")
    return "; ".join(filter(None, reasons))


if __name__ == "__main__":
    write_page()
