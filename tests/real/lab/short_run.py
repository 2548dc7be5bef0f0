"""A run of the laboratory with fixed acts, and the violations that are found at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.real.lab.fleet import MAKES
from tests.real.lab.laboratory import ALL_VIOLATIONS, Result, run

ACTS = (
    "take right to write",
    "renew certificate",
    "stop",
    "cut",
    "delay",
    "switch topics",
    "suspend",
    "cut",
    "rolling restart",
    "delete group",
    "restart broker",
    "add",
    "lose coordinator",
)
SLOW = {
    "G-01",
    "M-01",
    "C-01",
    "C-02",
    "C-03",
    "R-02",
    "R-03",
    "R-08",
    "R-09",
    "M-04",
    "T-06",
    "R-17",
    "S-02",
    "S-01",
    "R-10",
    "R-18",
    "M-13",
    "E-06",
    "E-09",
    "E-11",
    "E-15",
    "R-14",
    "T-04",
}


def short_run(folder: Path, **others: Any) -> Result:
    """Run the acts and the violations that are found at once, with clients of two libraries."""
    return run(
        line="4.3",
        brokers=1,
        seed=11,
        seconds=0,
        script=ACTS,
        kinds=("confluent-kafka", "kafka-python"),
        folder=folder,
        makes=[make for make in MAKES if make.name in {"eager", "static"}],
        violations=[violation for violation in ALL_VIOLATIONS if violation.rule not in SLOW],
        say=lambda text: print(text, file=sys.stderr),
        **others,
    )
