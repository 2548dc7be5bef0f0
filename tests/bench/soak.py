"""Whether anything grows while the job runs for hours: memory, threads, file handles, checkpoint. ``make soak``.

    python -m tests.bench.soak [--minutes 120] [--rate 2000] [--groups 10000] [--warm-up 5] [--results FILE]

Ends with status 1 if something grew. Growth is judged by trend: the median of the last third of the time after the warm-up against that
of its first third. A single sample says nothing: a JVM's memory swings with its collector, a checkpoint's size with its clean-up.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from streaming.demo.broker import Broker
from tests.bench.job import Bench, add_common, checkpoint_mib, running, say
from tests.bench.usage import Usage

SAMPLE_S = 10.0
STRETCH_S = 60.0  # one command to the load


class Measure(NamedTuple):
    """What is looked at, and how much more of it at the end is no growth: a share, and so much beside."""

    name: str
    share: float
    beside: float


MEASURES = (
    Measure("JVM MiB", 0.05, 16),
    Measure("worker MiB", 0.05, 8),
    Measure("driver MiB", 0.05, 8),
    Measure("JVM threads", 0.0, 3),
    Measure("worker threads", 0.0, 1),
    Measure("driver threads", 0.0, 1),
    Measure("JVM files", 0.0, 5),
    Measure("worker files", 0.0, 2),
    Measure("driver files", 0.0, 2),
    Measure("checkpoint MiB", 0.10, 8),
    Measure("checkpoint files", 0.10, 20),
)


def sample(bench: Bench) -> dict[str, float]:
    found: dict[str, float] = {}
    for role, process in Usage.now().by_role.items():
        found |= {f"{role} MiB": process.rss_mib, f"{role} threads": process.threads, f"{role} files": process.files}
    size, files = checkpoint_mib(bench.config.job.checkpoint)
    return found | {"checkpoint MiB": size, "checkpoint files": files, "frames": bench.read, "behind": bench.sent - bench.read}


class Verdict(NamedTuple):
    measure: Measure
    first: float
    middle: float
    last: float

    @property
    def grew(self) -> bool:
        return self.last > self.first * (1 + self.measure.share) + self.measure.beside


def judge(samples: list[dict[str, float]]) -> list[Verdict]:
    """Medians of the three thirds of the samples, for each measure.

    :raises ValueError: when there are fewer than three.
    """
    if len(samples) < 3:
        raise ValueError("too few samples to see a trend; let it run for longer")
    cuts = [0, len(samples) // 3, 2 * len(samples) // 3, len(samples)]
    thirds = [samples[begin:end] for begin, end in itertools.pairwise(cuts)]
    return [
        Verdict(measure, *(statistics.median(each[measure.name] for each in third) for third in thirds)) for measure in MEASURES
    ]


def table(verdicts: list[Verdict], minutes: float) -> Table:
    shown = Table(title=f"medians of three thirds of {minutes:.0f} minutes", box=None, title_justify="left")
    for heading in ("", "start", "middle", "end", "tolerated", ""):
        shown.add_column(heading, justify="right")
    for verdict in verdicts:
        limit = verdict.first * (1 + verdict.measure.share) + verdict.measure.beside
        figures = (f"{value:,.0f}" for value in (verdict.first, verdict.middle, verdict.last, limit))
        shown.add_row(verdict.measure.name, *figures, "grew" if verdict.grew else "")
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--rate", type=int, default=2000, help="frames a second")
    parser.add_argument("--warm-up", type=float, default=5, metavar="MINUTES", help="of the whole, not judged")
    add_common(parser)
    options = parser.parse_args()
    if options.minutes <= options.warm_up:
        parser.error("--minutes must exceed --warm-up")
    samples: list[dict[str, float]] = []
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rebalance-monitor-soak-")))
        bench = stack.enter_context(running("real", broker, folder, options))
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < 60 * options.minutes:
            for found in stretch(bench, options.rate):
                minute = (time.monotonic() - began) / 60
                if minute >= options.warm_up:
                    samples.append(found)
                if options.results:
                    with options.results.open("a") as file:
                        file.write(json.dumps({"minute": round(minute, 2), **found}) + "\n")
            say(f"{elapsed / 60:.0f} of {options.minutes:.0f} minutes, {bench.read:,} frames read")
    verdicts = judge(samples)
    Console(width=None if sys.stdout.isatty() else 120).print(table(verdicts, options.minutes - options.warm_up))
    return 1 if any(verdict.grew for verdict in verdicts) else 0


def stretch(bench: Bench, rate: int) -> list[dict[str, Any]]:
    """Load for a while; gives the samples taken meanwhile."""
    taken: list[dict[str, Any]] = []
    due = time.monotonic() + SAMPLE_S

    def look() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due += SAMPLE_S
            taken.append(sample(bench))

    bench.command(look, do="steady", rate=rate, seconds=STRETCH_S)
    bench.seen.clear()
    bench.batches.clear()
    return taken


if __name__ == "__main__":
    sys.exit(main())
