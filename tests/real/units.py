"""Stands in for ``systemctl`` and ``journalctl``, with what documents ask of them. Run as a program: its first word says as which.

    python -m tests.real.units systemctl enable --now rebalance-monitor-tap rebalance-monitor

A service is started as its unit says, in its folder and with its environment; the sandbox of a unit is not built.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.processes import end, lives
from tests.real.harness import wait_for

INSTALLED: Final = Path("/etc/systemd/system")
RUNNING: Final = Path("/run/units")


def settings_of(name: str) -> dict[str, list[str]]:
    """The keys of a unit, each with the values of its lines."""
    found: dict[str, list[str]] = {}
    for line in (INSTALLED / f"{name}.service").read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not key.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def start(name: str) -> None:
    unit = settings_of(name)
    environment = dict(os.environ)
    for file in unit.get("EnvironmentFile", []):
        path = Path(file.removeprefix("-"))
        if path.exists() or not file.startswith("-"):
            environment |= _assigned(path.read_text().splitlines())
    environment |= _assigned(unit.get("Environment", []))
    folder = Path("/var/lib") / unit["StateDirectory"][0]
    folder.mkdir(exist_ok=True)
    words = re.sub(r"\$(\w+)", lambda found: environment[found[1]], unit["ExecStart"][0])
    RUNNING.mkdir(exist_ok=True)
    with (RUNNING / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            shlex.split(words),
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    (RUNNING / f"{name}.pid").write_text(str(process.pid))


def _assigned(lines: list[str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines if "=" in line)


def log_of(name: str) -> str:
    return (RUNNING / f"{name}.log").read_text()


def stop() -> list[str]:
    """End all services, as a shutdown does; returns their names."""
    running = {file.stem: int(file.read_text()) for file in RUNNING.glob("*.pid")}
    for pid in running.values():
        if lives(pid):
            os.kill(pid, signal.SIGTERM)
    try:
        for name, pid in running.items():
            wait_for(lambda pid=pid: not lives(pid), f"{name} ends", 60)  # type: ignore[misc]
            (RUNNING / f"{name}.pid").unlink()
    finally:
        end(running.values())
    return list(running)


def main(program: str, *words: str) -> None:
    names = [word for word in words[1:] if not word.startswith("-")]
    if program == "journalctl":
        os.execvp("tail", ["tail", "-n", "+1", "-F", str(RUNNING / f"{words[-1]}.log")])
    elif words[0] == "enable":
        for name in names:
            start(name)
    elif words[0] != "daemon-reload":
        sys.exit(f"systemctl {' '.join(words)} is not known here")


if __name__ == "__main__":
    main(*sys.argv[1:])
