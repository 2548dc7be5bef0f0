"""Whether anything grows while the job runs for hours: memory, threads, file handles, checkpoint. ``make soak``.

    python -m tests.bench.soak [--minutes 120] [--speed 1] [--rate 2000] [--groups 10000] [--warm-up 5] [--results FILE]

With ``--speed 2`` the clock in the data runs twice as fast as ours, and gets in an hour as far as ours in two.

Ends with status 1 if something grew since the warm-up; ``tests.bench.trend`` says what is growth.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from streaming.demo.broker import Broker
from tests.bench.job import Bench, add_common, checkpoint_mib, running, say
from tests.bench.trend import Verdict, judge
from tests.bench.usage import Usage

SAMPLE_S = 10.0
STRETCH_S = 60.0  # one command to the load
MARGIN_MINUTES = 10  # a loaded machine takes its time


def sample(bench: Bench) -> dict[str, float]:
    found: dict[str, float] = {}
    for role, process in Usage.now().by_role.items():
        found |= {f"{role} MiB": process.rss_mib, f"{role} threads": process.threads, f"{role} files": process.files}
    size, files = checkpoint_mib(bench.config.job.checkpoint)
    return found | {"checkpoint MiB": size, "checkpoint files": files, "frames": bench.read, "behind": bench.sent - bench.read}


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
    parser.add_argument("--speed", type=float, default=1.0, help="of the clock in the data")
    parser.add_argument("--rate", type=int, default=2000, help="frames a second")
    parser.add_argument("--warm-up", type=float, default=5, metavar="MINUTES", help="of the whole, not judged")
    add_common(parser)
    options = parser.parse_args()
    if options.minutes <= options.warm_up:
        parser.error("--minutes must exceed --warm-up")
    options.behind_s = (options.speed - 1) * 60 * (options.minutes + MARGIN_MINUTES)  # so that it does not get ahead of ours
    samples: list[dict[str, float]] = []
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(jvm_options=()))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rebalance-monitor-soak-")))
        bench = stack.enter_context(running("real", "soak", broker, folder, options))
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
    bench.batch_times_ms.clear()
    return taken


if __name__ == "__main__":
    sys.exit(main())
