"""``python -m tests.golden.make``: run the laboratory, cut the golden transcripts from it, and write down what the model says of them.

``--lives`` makes only those of the newer protocols anew, from ``tests/real/lab/lives.py``. ``--new`` adds those of violations without one. ``--expectations`` leaves the transcripts and writes only ``expected.json`` and ``events/`` anew: after a rule has changed, read the difference.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tests.golden import transcript
from tests.real.lab import lives, releases
from tests.real.lab.client import KINDS
from tests.real.lab.fleet import makes_for
from tests.real.lab.laboratory import ALL_VIOLATIONS, release_of, run
from tests.real.lab.verdicts import group_of, groups_of

CHAOS_S = 90.0
LIVES = "lives"
"""The folder with their recordings, in that of the laboratory's."""


def main(
    *,
    expectations: Annotated[
        bool, typer.Option("--expectations", help="Keep the transcripts; write what is expected of them.")
    ] = False,
    only_lives: Annotated[bool, typer.Option("--lives", help="Keep the transcripts of the laboratory; make the others.")] = False,
    only_new: Annotated[
        bool, typer.Option("--new", help="Keep the transcripts; add those of violations that have none yet.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the chaos.")] = 1,
    folder: Annotated[
        Path | None, typer.Option(help="Cut them from the recordings of an earlier run in this folder, which had all violations.")
    ] = None,
) -> None:
    """Make the golden transcripts anew: a few minutes, with brokers of every release."""
    if only_new:
        _add_new(seed)
    elif not expectations:
        recordings = {} if only_lives else _recordings(folder) if folder is not None else _run(seed)
        lived = _recordings(folder / LIVES) if folder is not None else _live()
        for old in transcript.names():
            if not only_lives or any(old.startswith(f"lawful-{life}-") for life in lives.LIVES):
                (transcript.FOLDER / f"{old}{transcript.SUFFIX}").unlink()
        if recordings:
            _cut(recordings)
        for version, recording in lived.items():
            for life in lives.lives_for(version):
                transcript.write(f"lawful-{life}-{version}", transcript.cut(recording, life))
    transcript.expect({name: transcript.said(name) for name in transcript.names()})
    transcript.expect_events((name, transcript.told(transcript.replayed(name).events)) for name in transcript.names())
    size = sum(path.stat().st_size for path in transcript.FOLDER.glob(f"*{transcript.SUFFIX}"))
    print(f"{len(transcript.names())} transcripts, {size / 1e6:.2f} MB")


def _recordings(folder: Path) -> dict[str, Path]:
    """One recording for each release that the folder has."""
    found = sorted(folder.glob("*.records"))
    return {path.stem.partition("-")[0]: path for path in found if not path.name.startswith("false")}


def _run(seed: int) -> dict[str, Path]:
    folder = Path(tempfile.mkdtemp(prefix="rebalance-monitor-golden-"))
    recordings = {}
    for number, line in enumerate(releases.RELEASES):
        result = run(
            line=line,
            brokers=(1, 3)[number % 2],
            seed=seed,
            seconds=CHAOS_S,
            kinds=KINDS,
            folder=folder,
            say=lambda text: print(text, file=sys.stderr),
        )
        recordings[result.version] = result.recording
    return recordings


def _add_new(seed: int) -> None:
    """Commit the violations that have no transcript against the newest release, without a fleet, and cut theirs."""
    have = {name.rpartition("-")[0] for name in transcript.names()}
    folder = Path(tempfile.mkdtemp(prefix="rebalance-monitor-golden-"))
    result = run(
        line=max(line for line in releases.RELEASES if line < "4.4"),
        brokers=1,
        seed=seed,
        seconds=0.0,
        kinds=KINDS,
        folder=folder,
        makes=(),
        violations=[violation for violation in ALL_VIOLATIONS if group_of(violation) not in have],
        say=lambda text: print(text, file=sys.stderr),
    )
    groups = transcript.groups(result.recording)
    for case in result.cases:
        if not case.verdict.found:
            raise SystemExit(f"{case.violation.name} was not found: {case.verdict.problem}")
        group = next(group for group in groups_of(case.violation) if group in groups)
        transcript.write(f"{group_of(case.violation)}-{result.version}", transcript.cut(result.recording, group))


def _live() -> dict[str, Path]:
    folder = Path(tempfile.mkdtemp(prefix="rebalance-monitor-golden-")) / LIVES
    folder.mkdir()
    recordings = {}
    for line in releases.RELEASES:
        if lives.lives_for(line):
            jars = releases.broker_jars(line)
            version = releases.version(jars)
            recordings[version] = folder / f"{version}.records"
            lives.record(jars, recordings[version], folder / "clients", lives.lives_for(line))
    print(f"recordings: {folder.parent}", file=sys.stderr)
    return recordings


def _cut(recordings: dict[str, Path]) -> None:
    """Each violation from one release in turn, and each lawful group from every one."""
    versions = sorted(recordings, reverse=True)
    groups = {version: transcript.groups(recordings[version]) for version in versions}
    for number, violation in enumerate(ALL_VIOLATIONS):
        able = [version for version in versions if violation.since <= release_of(version)]
        version = able[number % len(able)]
        group = next(group for group in groups_of(violation) if group in groups[version])
        transcript.write(f"{group_of(violation)}-{version}", transcript.cut(recordings[version], group))
    for version in versions:
        for make in makes_for(version):
            transcript.write(f"lawful-{make.name}-{version}", transcript.cut(recordings[version], make.name))


if __name__ == "__main__":
    typer.run(main)
