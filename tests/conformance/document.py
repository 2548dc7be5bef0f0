"""Writes docs/conformance.md from the results of runs, and says what in them has not been judged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.judgements import JUDGEMENTS, Judgement, Verdict, judged
from tests.conformance.libraries import LIBRARIES
from tests.conformance.scenarios import SCENARIOS

KEPT, NOT_PLAYED, UNJUDGED, UNSETTLED = "kept", "", "?", "stuck"
_CHAPTERS = (
    (Verdict.BREACH, "Breaches"),
    (Verdict.ODDITY, "Lawful oddities"),
    (Verdict.NOISE, "What the monitor says too much"),
)
_TELLS = {scenario.name: scenario.tells for scenario in SCENARIOS}

_HEAD = """\
# Conformance of client libraries

Written by `make conformance` from its results; change `tests/conformance/`, not this file.

Every library below was led through the same lawful scenarios, on real brokers and through the tap. The monitor's model judged the
frames. For each breach and oddity *Source* says where the library's own source shows it, or that nobody has looked yet.

A cell says what came of a scenario on all brokers and with all seeds: *kept* (nothing but what the scenario does on purpose), a breach
(`B…`), an oddity (`O…`) or noise of the monitor's own (`N…`), which are explained below, *stuck* when the group did not become stable
within 45 s in one of the runs, or *?* when there is a finding that nobody has judged yet.
An empty cell was not played: the library has no such feature, or its toolchain was missing.
"""


def read(files: Iterable[Path]) -> list[dict[str, Any]]:
    """The newest outcome of each library, broker, scenario and seed."""
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for file in files:
        for line in file.read_text().splitlines():
            outcome = json.loads(line)
            newest[tuple(outcome[name] for name in ("library", "version", "broker", "scenario", "seed"))] = outcome
    return list(newest.values())


def surprises(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    """Findings that say more than what the scenario does."""
    return [finding for finding in outcome["findings"] if finding["rule"] not in _TELLS.get(outcome["scenario"], ())]


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
    parts = [_HEAD, _runs(outcomes), _table(outcomes), _scenarios()]
    for verdict, title in _CHAPTERS:
        found = [one for one in JUDGEMENTS if one.verdict is verdict]
        parts.append(f"## {title}\n")
        parts += [_explained(one, outcomes) for one in found] or ["None.\n"]
    parts.append(_stuck(outcomes))
    return "\n".join(parts)


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


def _table(outcomes: Sequence[dict[str, Any]]) -> str:
    played = [scenario.name for scenario in SCENARIOS if any(outcome["scenario"] == scenario.name for outcome in outcomes)]
    lines = ["| library | " + " | ".join(played) + " |", "| --- |" + " --- |" * len(played)]
    for library in LIBRARIES:
        mine = [outcome for outcome in outcomes if outcome["library"] == library.name]
        if mine:
            cells = [_cell([outcome for outcome in mine if outcome["scenario"] == name]) for name in played]
            lines.append(f"| {library.name} {library.version} ({library.language}) | " + " | ".join(cells) + " |")
    return "\n".join(["## Table", "", *lines, ""])


def _cell(outcomes: Sequence[dict[str, Any]]) -> str:
    if not outcomes:
        return NOT_PLAYED
    told = sorted(
        {
            UNJUDGED if (one := judged(outcome["library"], finding["rule"], outcome["scenario"])) is None else one.key
            for outcome in outcomes
            for finding in surprises(outcome)
        }
    )
    if any(trouble.startswith("not stable") for outcome in outcomes for trouble in outcome["troubles"]):
        told.append(UNSETTLED)
    return ", ".join(told) or KEPT


def _scenarios() -> str:
    lines = ["| scenario | what happens | what the monitor tells of it on purpose |", "| --- | --- | --- |"]
    lines += [f"| {scenario.name} | {scenario.does} | {', '.join(sorted(scenario.tells))} |" for scenario in SCENARIOS]
    return "\n".join(["## Scenarios", "", *lines, ""])


def _explained(one: Judgement, outcomes: Sequence[dict[str, Any]]) -> str:
    seen = [
        (outcome, finding)
        for outcome in outcomes
        for finding in surprises(outcome)
        if judged(outcome["library"], finding["rule"], outcome["scenario"]) is one
    ]
    versions = sorted({f"{outcome['library']} {outcome['version']}" for outcome, _ in seen})
    where = sorted({f"{outcome['scenario']} ({outcome['broker']})" for outcome, _ in seen})
    lines = [
        f"### {one.key}: {one.title}",
        "",
        f"- **Who**: {', '.join(versions) or ', '.join(one.libraries) + ' (not seen in these runs)'}",
        f"- **Rule**: {', '.join(f'[{rule}](rules.md)' for rule in one.rules)}",
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
