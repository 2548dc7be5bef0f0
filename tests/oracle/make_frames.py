"""Make frames with Kafka's own generated classes, and keep them as the tests' fixtures.

    python tests/oracle/make_frames.py                  new frames from a new seed
    python tests/oracle/make_frames.py --seed 7         the same frames again

Compiles and runs ``Oracle.java`` against each of the two kafka-clients releases that the layouts come from, so it needs a JDK. The older
release contributes the versions that the newer one no longer has.
"""

from __future__ import annotations

import argparse
import base64
import json
import lzma
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FIXTURES = HERE / "frames.jsonl.xz"
ANSWERS = HERE / "answers.jsonl.xz"
LOGGED = HERE / "logged.jsonl.xz"  # as each release names the fields in JSON, which is what its request log has
ANSWER_KEYS = (0, 1, 3, 10, 18, 60, 78, 79)  # of what the tap's own table holds
sys.path.insert(0, str(HERE.parents[1] / "deploy"))

from make_layouts import LOGGING, RELEASES, LayoutError, fetch_jars  # noqa: E402 - after the path is set

ROUNDS = 4


class OracleError(Exception):
    """The oracle cannot run here; the message says why."""


def run_oracle(seed: int, rounds: int = ROUNDS, api_keys: Sequence[int] = ()) -> list[dict[str, Any]]:
    """Fresh frames: ``rounds`` times random, large and tags, and one minimal for each pair of message and version.

    :param api_keys: for the responses of these, and no others.
    :raises OracleError: when there is no JDK or the jars cannot be fetched.
    """
    frames: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for release in RELEASES:
        known = set(frames)
        for line in _run(release, [str(seed), str(rounds), *([",".join(map(str, api_keys))] if api_keys else [])]):
            frame = json.loads(line)
            pair = (frame["name"], frame["version"])
            if pair not in known:
                frames.setdefault(pair, []).append(frame)
    return [frame for _, found in sorted(frames.items()) for frame in found]


def logged_messages(seed: int) -> list[dict[str, Any]]:
    """One random frame for each pair of message and version of each release that logs them, with ``release``.

    :raises OracleError: when there is no JDK or the jars cannot be fetched.
    """
    lines = ((release, json.loads(line)) for release in LOGGING for line in _run(release, [str(seed), "1"]))
    return [{"release": release, **frame} for release, frame in lines if frame["style"] == "random"]


def read_responses(release: str, responses: Sequence[tuple[str, int, bytes]]) -> list[dict[str, Any]]:
    """What the classes of a release read in responses, given by API name (FETCH), version and frame; ``error`` where they read nothing.

    :raises OracleError: when there is no JDK or the jars cannot be fetched.
    """
    lines = "".join(f"{name} {version} {base64.b64encode(frame).decode()}\n" for name, version, frame in responses)
    return [json.loads(line) for line in _run(release, ["read"], lines)]


def _run(release: str, arguments: list[str], given: str = "") -> list[str]:
    if shutil.which("javac") is None:
        raise OracleError("javac is not installed: the oracle is a Java program")
    command = ["java", "-cp", _class_path(release), "Oracle", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, input=given)
    if done.returncode:
        raise OracleError(done.stderr)
    return done.stdout.split("\n")[:-1]


@cache
def _compiled_into() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()  # which goes when the process ends


@cache
def _class_path(release: str) -> str:
    """The compiled oracle and the jars of a release."""
    try:
        jars = ":".join(map(str, fetch_jars()[release]))
    except LayoutError as error:
        raise OracleError(str(error)) from None
    folder = f"{_compiled_into().name}/{release}"
    command = ["javac", "-nowarn", "-d", folder, "-cp", jars, str(HERE / "Oracle.java")]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    if compiled.returncode:
        raise OracleError(compiled.stderr)
    return f"{jars}:{folder}"


def load_fixtures(file: Path = FIXTURES) -> list[dict[str, Any]]:
    """The frames that are kept."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def main() -> int:
    """Write the fixtures; the process's exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    seed = parser.parse_args().seed
    try:
        made = {FIXTURES: run_oracle(seed), ANSWERS: run_oracle(seed, 1, ANSWER_KEYS), LOGGED: logged_messages(seed)}
    except OracleError as error:
        print(f"make_frames: {error}", file=sys.stderr)
        return 2
    for file, frames in made.items():
        _keep(file, frames)
        pairs = {(frame["name"], frame["version"]) for frame in frames}
        print(f"{file.name}: {len(frames)} frames of {len(pairs)} pairs of message and version, seed {seed}")
    return 0


def _keep(file: Path, frames: list[dict[str, Any]]) -> None:
    with lzma.open(file, "wt", encoding="utf-8", preset=9) as lines:
        lines.writelines(json.dumps(frame, ensure_ascii=False, separators=(",", ":")) + "\n" for frame in frames)


if __name__ == "__main__":
    sys.exit(main())
