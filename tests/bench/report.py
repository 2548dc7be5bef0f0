"""A report on many groups: how long it takes from JSON lines to the page, and how large that is.

python -m tests.bench.report --groups 1000 --rebalances 10000
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.streaming.report.many import many
from tests.streaming.web import history


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--rebalances", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=6)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recorded = history.write(Path(folder) / "recorded.jsonl", many(wanted.groups, wanted.rebalances, wanted.members))
        lines = sum(1 for _ in recorded.open("rb"))
        print(f"{wanted.groups:,} groups, {wanted.rebalances:,} rebalances, {lines:,} records, {recorded.stat().st_size:,} bytes")
        for form in ("html", "markdown", "json"):
            made = Path(folder) / form
            begin_s, busy_s = time.perf_counter(), _busy_s()
            command = [sys.executable, "-m", "streaming.cli", "report", str(recorded), "--format", form, "--output", str(made)]
            subprocess.run(command, check=True)
            took_s, busy_s = time.perf_counter() - begin_s, _busy_s() - busy_s
            print(f"{form}: {took_s:.1f} s, {busy_s:.1f} s of a processor, {made.stat().st_size:,} bytes")
        print(f"at most {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:,.0f} MiB")


def _busy_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
