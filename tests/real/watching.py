"""``rebalance-monitor watch`` as an operator starts it: a process of its own, and what it prints."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.processes import started

RUN = [sys.executable, "-m", "streaming.cli"]

Found = tuple[str, str, str | None]
"""Rule, group and culprit."""


class Watching(NamedTuple):
    """A process and what it prints."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def findings(self) -> list[dict[str, Any]]:
        return [record for record in self._records() if "rule" in record]

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self._records() if record.get("kind") == kind]

    def _records(self) -> list[dict[str, Any]]:
        records = []
        for line in self.out.read_text().rpartition("\n")[0].splitlines():
            with suppress(ValueError):  # a line that a kill cut
                records.append(json.loads(line))
        return records

    def found(self) -> set[Found]:
        """What is found about groups."""
        return found_in(self.findings())

    def says(self, words: str) -> bool:
        return words in self.err.read_text()


def found_in(findings: list[dict[str, Any]]) -> set[Found]:
    """What is found about groups, by the newest state of each finding."""
    newest = {one["id"]: one for one in findings}
    return {(one["rule"], one["group"], one["client_id"]) for one in newest.values() if one["group"]}


@contextmanager
def watching(folder: Path, name: str, *options: str, stdin: IO[bytes] | None = None) -> Iterator[Watching]:
    """Let a watch run as long as the context lasts; it must end well."""
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    with out.open("ab") as stdout, err.open("ab") as stderr:
        command = [*RUN, "watch", "--state", str(folder / f"{name}.state"), *options]
        with started(command, stdin=stdin, stdout=stdout, stderr=stderr) as process:
            yield Watching(process, out, err)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, err.read_text()
