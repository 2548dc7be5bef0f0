"""Make frames with Kafka's own generated classes, and keep them as the tests' fixtures.

    python tests/oracle/make_frames.py                  new frames from a new seed
    python tests/oracle/make_frames.py --seed 7         the same frames again

Compiles and runs ``Oracle.java`` against each of the two kafka-clients releases that the layouts come from, so it needs a JDK. The older
release contributes the versions that the newer one no longer has.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FIXTURES = HERE / "frames.jsonl.xz"
sys.path.insert(0, str(HERE.parents[1] / "deploy"))

from make_layouts import RELEASES, LayoutError, fetch_jars  # noqa: E402 - after the path is set

ROUNDS = 4


class OracleError(Exception):
    """The oracle cannot run here; the message says why."""


def run_oracle(seed: int, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Fresh frames: ``rounds`` times random, large and tags, and one minimal for each pair of message and version.

    :raises OracleError: when there is no JDK or the jars cannot be fetched.
    """
    if shutil.which("javac") is None:
        raise OracleError("javac is not installed: the oracle is a Java program")
    try:
        jars = fetch_jars()
    except LayoutError as error:
        raise OracleError(str(error)) from None
    frames: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for release in RELEASES:
        known = set(frames)
        for line in _run(":".join(map(str, jars[release])), seed, rounds):
            frame = json.loads(line)
            pair = (frame["name"], frame["version"])
            if pair not in known:
                frames.setdefault(pair, []).append(frame)
    return [frame for _, found in sorted(frames.items()) for frame in found]


def _run(classpath: str, seed: int, rounds: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        compiled = subprocess.run(
            ["javac", "-nowarn", "-d", folder, "-cp", classpath, str(HERE / "Oracle.java")],
            capture_output=True,
            text=True,
            check=False,
        )
        if compiled.returncode:
            raise OracleError(compiled.stderr)
        done = subprocess.run(
            ["java", "-cp", f"{classpath}:{folder}", "Oracle", str(seed), str(rounds)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OracleError(done.stderr)
    return done.stdout.split("\n")[:-1]


def load_fixtures() -> list[dict[str, Any]]:
    """The frames that are kept."""
    with lzma.open(FIXTURES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def main() -> int:
    """Write the fixtures; the process's exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    seed = parser.parse_args().seed
    try:
        frames = run_oracle(seed)
    except OracleError as error:
        print(f"make_frames: {error}", file=sys.stderr)
        return 2
    with lzma.open(FIXTURES, "wt", encoding="utf-8", preset=9) as lines:
        lines.writelines(json.dumps(frame, ensure_ascii=False, separators=(",", ":")) + "\n" for frame in frames)
    pairs = {(frame["name"], frame["version"]) for frame in frames}
    print(f"{FIXTURES.name}: {len(frames)} frames of {len(pairs)} pairs of message and version, seed {seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
