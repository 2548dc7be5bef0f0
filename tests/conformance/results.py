"""What came of each library in each scenario, kept beside the code: a file of JSON lines for each broker release and seed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
_KEY = ("library", "scenario")

Outcome = dict[str, Any]


def read(folder: Path) -> list[Outcome]:
    """All outcomes in the folder."""
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


def keep(folder: Path, outcomes: Iterable[Outcome]) -> None:
    """Put outcomes into their files; they replace older ones of the same library and scenario, of an older version too."""
    folder.mkdir(exist_ok=True)
    runs: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        runs.setdefault(f"{outcome['broker']}-{outcome['seed']}.jsonl", []).append(outcome)
    for name, played in runs.items():
        file = folder / name
        before = file.read_text().splitlines() if file.exists() else []
        newest = {tuple(one[part] for part in _KEY): one for one in [*map(json.loads, before), *played]}
        file.write_text("".join(json.dumps(newest[key]) + "\n" for key in sorted(newest)))
