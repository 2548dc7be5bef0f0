"""``python -m tests.real.lab``: run the laboratory and print what it came to."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from confluent_kafka import KafkaException
from kafka.errors import KafkaError
from rich.console import Console

from streaming.demo.broker import BrokerError
from streaming.demo.processes import ChildError
from streaming.demo.raw_client import RawClientError
from streaming.spark.jvm import JvmError
from tests.conformance.builds import BuildError
from tests.conformance.libraries import LIBRARIES
from tests.real.lab import java, releases, totals
from tests.real.lab.chaos import NoSuchActError
from tests.real.lab.client import KINDS, LIBRARY_KINDS, Kind
from tests.real.lab.laboratory import ALL_VIOLATIONS, Say, run
from tests.real.lab.table import as_json, table, troubles, violations

VIOLATIONS_TAKE_S = 95.0
LEAST_CHAOS_S = 30.0


def main(
    *,
    minutes: Annotated[float, typer.Option(min=0.5, help="How long it all takes, shared by the releases.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Decides what happens, and to whom.")] = 1,
    version: Annotated[
        list[str] | None, typer.Option(help=f"A line of releases: {', '.join(releases.RELEASES)}. All by default.")
    ] = None,
    act: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Do this instead of what the seed has, and commit no violation; can be repeated."),
    ] = None,
    brokers: Annotated[int, typer.Option(min=0, max=3, help="Brokers in a cluster; by default one and three in turn.")] = 0,
    folder: Annotated[Path | None, typer.Option(help="Where recordings, logs and results go; by default a temporary one.")] = None,
    sum_up: Annotated[
        list[Path] | None,
        typer.Option("--totals", help="Run nothing; sum up the results (of --version) in this folder and beneath it."),
    ] = None,
) -> None:
    """Let real brokers and clients live through lawful chaos, then commit violations, and see what the monitor makes of it.

    The exit status is 0 if there was no false error, all violations were found and the model knew what the brokers said.

        python -m tests.real.lab --minutes 20 --seed 7 --version 3.9 --brokers 3

        python -m tests.real.lab --version 4.3 --brokers 3 --act "freeze coordinator" --act "slow replication"

        python -m tests.real.lab --totals lab-runs
    """
    lines = version or list(releases.RELEASES)
    for line in lines:
        if line not in releases.RELEASES:
            raise typer.BadParameter(f"no releases {line}, only {', '.join(releases.RELEASES)}", param_hint="--version")
    if sum_up:
        _sum_up(sum_up, lines)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that brokers and clients are ended
    say = Console(stderr=True, highlight=False, soft_wrap=True).print
    kinds = _kinds(say)
    place = folder or Path(tempfile.mkdtemp(prefix="rebalance-monitor-lab-"))
    place.mkdir(parents=True, exist_ok=True)
    results = []
    broken = False
    for number, line in enumerate(lines):
        try:
            result = run(
                line=line,
                brokers=brokers or (1, 3)[(seed + number) % 2],
                seed=seed,
                seconds=max(LEAST_CHAOS_S, minutes * 60 / len(lines) - VIOLATIONS_TAKE_S),
                kinds=kinds,
                folder=place,
                script=act or (),
                violations=() if act else ALL_VIOLATIONS,
                say=say,
            )
        except NoSuchActError as error:
            raise typer.BadParameter(str(error), param_hint="--act") from None
        except JvmError as error:
            say(f"error: {error}")
            raise typer.Exit(2) from None
        except (BrokerError, ChildError, RawClientError, KafkaError, KafkaException, OSError) as error:
            say(f"error: the run with Kafka {line} could not go on: {error}")
            broken = True
            continue
        results.append(result)
        with (place / "results.jsonl").open("a") as file:
            file.write(as_json(result) + "\n")
    if results:
        _show(results, place)
    raise typer.Exit(0 if all(result.good for result in results) and not broken else 1)


def _kinds(say: Say) -> list[Kind]:
    """The clients that there can be here; the others are said."""
    missing: dict[str, str] = {}
    if because := java.why_not():
        missing["java"] = because
    for library in LIBRARIES:
        if library.name in LIBRARY_KINDS:
            try:
                library.command()
            except BuildError as error:
                missing[library.name] = str(error)
    for name, why in missing.items():
        say(f"no {name} clients: {why}")
    return [kind for kind in (*KINDS, *LIBRARY_KINDS) if kind not in missing]


def _sum_up(folders: list[Path], lines: list[str]) -> None:
    try:
        results = totals.read(folders, lines)
    except (totals.TotalsError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    console = _console()
    console.print(totals.table(results))
    console.print(totals.violations(results))


def _show(results: list[Any], place: Path) -> None:
    console = _console()
    console.print(table(results))
    console.print(violations(results))
    for result in results:
        for line in troubles(result, place):
            print(line)
    print(f"recordings and logs: {place}")


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 160)


if __name__ == "__main__":
    typer.run(main)
