"""``python -m tests.real.lab``: run the laboratory and print what it came to."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tests.real.lab import java, releases
from tests.real.lab.client import Kind
from tests.real.lab.laboratory import Result, run

KINDS: tuple[Kind, ...] = ("confluent-kafka", "kafka-python", "java")


def main(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long chaos goes on, over all versions.")] = 10.0,
    seed: Annotated[int, typer.Option(help="What decides the order of events.")] = 1,
    version: Annotated[str, typer.Option(help=f"One line of releases only: {', '.join(releases.RELEASES)}.")] = "",
    brokers: Annotated[int, typer.Option(help="Brokers in the cluster: 1 or 3.")] = 1,
    folder: Annotated[Path | None, typer.Option(help="Where recordings and logs go.")] = None,
) -> None:
    """Run real brokers and clients through lawful chaos and say what the monitor made of it."""
    say = Console(stderr=True, highlight=False).print
    kinds = [kind for kind in KINDS if kind != "java" or java.why_not() is None]
    if "java" not in kinds:
        say(f"no Java clients: {java.why_not()}")
    place = folder or Path(tempfile.mkdtemp(prefix="rebalance-monitor-lab-"))
    place.mkdir(parents=True, exist_ok=True)
    lines = [version] if version else list(releases.RELEASES)
    good = True
    for line in lines:
        result = run(line=line, brokers=brokers, seed=seed, seconds=minutes * 60 / len(lines), kinds=kinds, folder=place, say=say)
        _show(result, say)
        good = good and result.good
    sys.exit(0 if good else 1)


def _show(result: Result, say) -> None:
    print(f"kafka {result.version} x{result.brokers} seed {result.seed}: {result.seconds:.0f} s, {result.frames} frames, {result.rebalances} rebalances, {result.groups} groups")
    print("clients", dict(result.clients))
    print("acts", dict(result.acts))
    for severity, rules in result.findings.items():
        print(severity, dict(rules))
    for finding in result.false_alarms:
        print("FALSE", finding.rule, finding.name, finding.group, finding.status, finding.summary, "| observed:", finding.observed)
        for evidence in finding.evidence:
            print("     ", evidence.offset, evidence.connection, evidence.at_us, evidence.frame)
    for comparison in result.comparisons:
        print(comparison)
    for crash in result.crashes[:5]:
        print("CRASH", crash)
    print("replay differs:", result.replay_differs)
    print(dict(result.counters), result.recording)


if __name__ == "__main__":
    typer.run(main)
