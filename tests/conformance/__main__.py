"""``python -m tests.conformance``: play the scenarios and write down what the libraries made of them."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tests.conformance.builds import BuildError
from tests.conformance.document import document, read, unjudged
from tests.conformance.libraries import LIBRARIES, Library
from tests.conformance.run import Say, run
from tests.conformance.scenarios import SCENARIOS
from tests.real.lab import releases

RESULTS = "results.jsonl"


def main(
    *,
    client: Annotated[list[str] | None, typer.Option(help="Only this library; can be repeated.")] = None,
    scenario: Annotated[list[str] | None, typer.Option(help="Only this scenario; can be repeated.")] = None,
    broker: Annotated[list[str] | None, typer.Option(help="Only this release or line of releases; can be repeated.")] = None,
    brokers: Annotated[int, typer.Option(min=1, max=3, help="Brokers in the cluster.")] = 3,
    seed: Annotated[int, typer.Option(help="Decides whom things happen to, and when.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Groups at a time.")] = 5,
    folder: Annotated[Path | None, typer.Option(help="Where results, recordings and logs go; a temporary one by default.")] = None,
    write: Annotated[
        Path | None, typer.Option(help="Run nothing; write this page from all results in the folder and beneath it.")
    ] = None,
) -> None:
    """Lead client libraries through lawful scenarios, and tell who breaks the group protocol.

    The exit status is 0 if every finding is one that a scenario causes on purpose or that has been judged (judgements.py).

        python -m tests.conformance --client franz-go --broker 4.3.1 --seed 7

        python -m tests.conformance --folder conformance-runs --write docs/conformance.md
    """
    place = folder or Path(tempfile.mkdtemp(prefix="rebalance-monitor-conformance-"))
    if write is None:
        _run(client or (), scenario or (), broker or (), brokers=brokers, seed=seed, jobs=jobs, place=place)
    outcomes = read(sorted(place.rglob(RESULTS)))
    if write is not None:
        write.write_text(document(outcomes))
    left = unjudged(outcomes)
    print(f"{len(outcomes)} scenarios played, {len(left)} findings that nobody has judged", *left, sep="\n")
    print(f"results, recordings and logs: {place}")
    raise typer.Exit(1 if left else 0)


def _run(
    clients: Sequence[str], scenarios: Sequence[str], wanted: Sequence[str], *, brokers: int, seed: int, jobs: int, place: Path
) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that brokers and drivers are ended
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", file=sys.stderr, flush=True)

    commands = _commands([library for library in LIBRARIES if not clients or library.name in clients], say)
    for line in releases.RELEASES:
        if wanted and not any(name.startswith(line) for name in wanted):
            continue
        outcomes = run(
            line=line,
            seed=seed,
            commands=commands,
            scenarios=[found for found in SCENARIOS if not scenarios or found.name in scenarios],
            brokers=brokers,
            jobs=jobs,
            folder=place,
            say=say,
        )
        with (place / RESULTS).open("a") as file:
            file.writelines(json.dumps(outcome.as_json()) + "\n" for outcome in outcomes)


def _commands(libraries: list[Library], say: Say) -> list[tuple[Library, list[str]]]:
    commands = []
    for library in libraries:
        try:
            commands.append((library, library.command()))
        except BuildError as error:
            say(f"{library.name} is skipped: {error}")
    return commands


if __name__ == "__main__":
    typer.run(main)
