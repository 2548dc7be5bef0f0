"""Sums over many runs of the laboratory, from the lines that each leaves in ``results.jsonl``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from tests.real.lab.laboratory import ALL_VIOLATIONS

FILE = "results.jsonl"


class TotalsError(RuntimeError):
    """There is nothing to sum up, or it cannot be read; the message says where."""


def read(folders: Sequence[Path], lines: Sequence[str]) -> list[dict[str, Any]]:
    """Every result of these lines of releases in these folders and what lies beneath them.

    :raises TotalsError: when there is none, or a line of a file is no result.
    """
    files = sorted({file for folder in folders for file in folder.rglob(FILE)})
    results = []
    for file in files:
        for number, line in enumerate(file.read_text().splitlines(), start=1):
            try:
                results.append(json.loads(line))
            except ValueError as error:
                raise TotalsError(f"line {number} of {file} is no result of the laboratory: {error}") from None
    results = [result for result in results if result["version"].rpartition(".")[0] in lines]
    if not results:
        raise TotalsError(f"no {FILE} with a result in {', '.join(map(str, folders))}")
    return results


def table(results: Sequence[dict[str, Any]]) -> Table:
    """What all runs came to."""
    found = Table(title=f"laboratory, {_runs(len(results))}", title_justify="left", show_header=False)
    for name, value in _rows(results):
        found.add_row(name, value)
    return found


def violations(results: Sequence[dict[str, Any]]) -> Table:
    """Each violation: how often it was committed and found, and after how long."""
    found = Table(title="violations", title_justify="left")
    for column in ("violation", "rule", "found", "median", "longest"):
        found.add_column(column, justify="left" if column in {"violation", "rule"} else "right")
    rules = {violation.name: violation.rule for violation in ALL_VIOLATIONS}
    names = dict.fromkeys(name for result in results for name in result["violations"])
    for name in names:
        outcomes = [result["violations"][name] for result in results if name in result["violations"]]
        delays = [delay for delay in outcomes if delay is not None]
        times = (f"{median(delays):.1f} s", f"{max(delays):.1f} s") if delays else ("-", "-")
        found.add_row(name, rules.get(name, "?"), f"{len(delays)} of {len(outcomes)}", *times)
    return found


def _rows(results: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    def total(name: str) -> int:
        return sum(result.get(name, 0) for result in results)

    def counted(name: str) -> str:
        return _counted(sum((Counter(result.get(name, {})) for result in results), Counter()))

    unlike = total("groups_unlike")
    told: Counter[str] = Counter()
    for result in results:
        for severity, rules in result["told"].items():
            told.update({f"{severity}: {rule}": count for rule, count in rules.items()})
    outcomes = [delay for result in results for delay in result["violations"].values()]
    delays = [delay for delay in outcomes if delay is not None]
    return [
        ("time", f"{total('seconds') / 60:.0f} min, of which {total('chaos_s') / 60:.0f} min chaos"),
        ("brokers", _counted(Counter(f"{result['version']} x{result['brokers']}" for result in results), _runs)),
        ("seeds", ", ".join(str(seed) for seed in sorted({result["seed"] for result in results}))),
        ("frames", f"{total('frames'):,}"),
        ("rebalances", f"{total('rebalances'):,}"),
        ("groups", f"{total('groups'):,}"),
        ("clients started", counted("clients")),
        ("client software", "\n".join(sorted({name for result in results for name in result["software"]}))),
        ("acts of chaos", counted("acts")),
        ("told of lawful groups", _counted(told)),
        ("breaches of libraries", str(sum(len(result.get("breaches", ())) for result in results))),
        ("false errors", str(sum(len(result["false"]) for result in results))),
        ("quiet points", f"{total('quiet_points'):,}"),
        ("groups at them", f"{total('groups_compared') - unlike:,} equal, {total('groups_not_known')} not known, {unlike} differ"),
        ("equal by type", counted("equal_by_type")),
        ("violations found", f"{len(delays):,} of {len(outcomes):,}"),
        ("delay, median / longest", f"{median(delays):.1f} s / {max(delays):.1f} s" if delays else "-"),
        ("violations set anew", str(total("set_anew"))),
        ("model restored", f"{total('restores')} times"),
        ("model raised", str(total("crashes"))),
        ("replayed alike", f"{sum(not result['replay_differs'] for result in results)} of {_runs(len(results))}"),
    ]


def _counted(counts: Counter[str], said: Callable[[int], str] = str) -> str:
    return "\n".join(f"{name} {said(count)}" for name, count in sorted(counts.items())) or "-"


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"
