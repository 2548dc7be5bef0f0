"""``python -m tests.conformance``: play the scenarios and write down what the libraries made of them."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from tests.conformance.builds import BuildError
from tests.conformance.document import unjudged, write_page
from tests.conformance.libraries import LIBRARIES, Library
from tests.conformance.results import RESULTS, Outcome, keep
from tests.conformance.run import Say, run
from tests.conformance.scenarios import SCENARIOS
from tests.real.lab import releases


def main(
    *,
    client: Annotated[list[str] | None, typer.Option(help="Only this library; can be repeated.")] = None,
    scenario: Annotated[list[str] | None, typer.Option(help="Only this scenario; can be repeated.")] = None,
    broker: Annotated[list[str] | None, typer.Option(help="Only this release or line of releases; can be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Decides whom things happen to, and when.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Groups at a time.")] = 5,
    folder: Annotated[Path | None, typer.Option(help="Where results, recordings and logs go; a temporary one by default.")] = None,
    save: Annotated[
        bool,
        typer.Option(
            "--save", help="Keep the results in tests/conformance/results, and write docs/conformance.md anew from all there."
        ),
    ] = False,
) -> None:
    """Lead client libraries through lawful scenarios, and tell who breaks the group protocol.

    The exit status is 0 if every finding is one that a scenario causes on purpose or that has been judged (judgements.py).

        python -m tests.conformance --client franz-go --broker 4.3.1 --seed 7

        python -m tests.conformance --broker 4.3 --seed 2 --save
    """
    place = folder or Path(tempfile.mkdtemp(prefix="rebalance-monitor-conformance-"))
    outcomes = []
    for played in _run(client or (), scenario or (), broker or (), seed=seed, jobs=jobs, place=place):
        outcomes += played
        keep(place, played)
        if save:
            keep(RESULTS, played)
            write_page()
    left = unjudged(outcomes)
    print(f"{len(outcomes)} scenarios played, {len(left)} findings that nobody has judged", *left, sep="\n")
    print(f"results, recordings and logs: {place}")
    raise typer.Exit(1 if left else 0)


def _run(
    clients: Sequence[str], scenarios: Sequence[str], wanted: Sequence[str], *, seed: int, jobs: int, place: Path
) -> Iterator[list[Outcome]]:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that brokers and drivers are ended
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", file=sys.stderr, flush=True)

    commands = _commands([library for library in LIBRARIES if not clients or library.name in clients], say)
    for line in (*releases.RELEASES, *releases.OLD_RELEASES):
        if wanted and not any(name.startswith(line) for name in wanted):
            continue
        for outcomes in run(
            line=line,
            seed=seed,
            commands=commands,
            scenarios=[found for found in SCENARIOS if not scenarios or found.name in scenarios],
            jobs=jobs,
            folder=place,
            say=say,
        ):
            yield [outcome.as_json() for outcome in outcomes]


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
