"""What a release has to hold, tried from a clean clone: ``make release-check``.

A wheel and an sdist are built. Each is installed into an empty environment, without Java and Spark, and replays a capture there. The model
alone needs nothing but msgspec. The software bill of materials (CycloneDX) of the whole monitor comes from the lock. If the commit
has a tag, it is the version's, and the changelog has a section for it.

The files stay in ``dist/``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.golden import transcript
from tests.streaming.mirror.wires import captured, pcap

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
TRANSCRIPT = "violation-stale-generation-accepted-4.3.1"
RULE = "G-02"
BOM_TOOL = "cyclonedx-bom==7.5.0"


class ReleaseError(Exception):
    """Something that a release must hold does not; the message is one sentence."""


def version() -> str:
    found: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return found


def run(*command: object, **options: object) -> str:
    """Run a program; give what it printed.

    :raises ReleaseError: when it fails, with the end of what it said.
    """
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode not in {0, 1} or (done.returncode == 1 and "replay" not in command):
        raise ReleaseError(f"{' '.join(map(str, command))} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    printed: str = done.stdout
    return printed


def check_tag() -> str:
    """The tag is the version's, and the changelog knows it; without a tag there is nothing to compare."""
    tags = run("git", "tag", "--points-at", "HEAD", cwd=ROOT).split()
    if not tags:
        return f"version {version()}, no tag at this commit"
    if f"v{version()}" not in tags:
        raise ReleaseError(f"this commit has the tag {', '.join(tags)}, but pyproject.toml says {version()}")
    if f"## [{version()}]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        raise ReleaseError(f"CHANGELOG.md has no section ## [{version()}]")
    return f"version {version()}, tagged"


def build(clone: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of what is committed."""
    run("git", "clone", "--quiet", ROOT, clone)
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", DIST, cwd=clone)
    return next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))


def try_package(package: Path, folder: Path) -> str:
    """Install it into an empty environment and read a capture with it; gives how long that takes and what it brings."""
    capture = folder / "capture.pcap"
    capture.write_bytes(pcap(captured(transcript.read(TRANSCRIPT))))
    began = time.monotonic()
    environment = folder / "venv"
    run(sys.executable, "-m", "venv", environment)
    run(environment / "bin/pip", "install", "--quiet", "--disable-pip-version-check", package)
    nowhere = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "PYTHONPATH"}}
    alone = {"cwd": folder, "env": {**nowhere, "PATH": str(environment / "bin")}}
    command = environment / "bin/rebalance-monitor"
    found = [json.loads(line) for line in run(command, "replay", "--format", "json", capture, **alone).splitlines()]
    seconds = time.monotonic() - began
    if RULE not in {finding["rule"] for finding in found}:
        raise ReleaseError(f"{package.name} does not find {RULE} in a capture that has it")
    run(command, "decode", "--help", **alone)
    run(command, "rules", RULE, **alone)
    if version() not in run(command, "--version", **alone):
        raise ReleaseError(f"{package.name} says another version than {version()}")
    installed = json.loads(run(environment / "bin/pip", "list", "--format", "json", "--disable-pip-version-check"))
    names = {entry["name"].lower() for entry in installed} - {"pip", "setuptools", "rebalance-monitor"}
    if "pyspark" in names:
        raise ReleaseError(f"{package.name} brings pyspark, which replay does not need")
    return f"{package.stat().st_size / 1024:,.0f} KiB, {len(names)} libraries, {seconds:.0f} s from pip install to the findings"


def try_model(wheel: Path, folder: Path) -> str:
    """The model is imported alone, beside nothing but msgspec."""
    environment = folder / "model"
    run(sys.executable, "-m", "venv", environment)
    run(environment / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "msgspec")
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.startswith("coordinator_model/")]
        archive.extractall(folder / "alone", members)
    modules = [name[:-3].replace("/", ".").removesuffix(".__init__") for name in members if name.endswith(".py")]
    asked = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    run(environment / "bin/python", "-c", asked, *modules, cwd=folder / "alone")
    return f"{len(modules)} modules, msgspec alone"


def bill_of_materials(folder: Path) -> str:
    """CycloneDX, of what the whole monitor brings at the versions of the lock."""
    pins = dict(
        re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    )
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{name}=={pinned}\n" for name, pinned in pins.items()))
    environment = folder / "bom"
    run(sys.executable, "-m", "venv", environment)
    pip = (environment / "bin/pip", "--disable-pip-version-check")
    report = folder / "report.json"
    run(*pip, "install", "--quiet", "--dry-run", "--report", report, "-c", constraints, f"{ROOT}[job,traces]")
    wanted = [entry["metadata"] for entry in json.loads(report.read_text())["install"]]
    needed = folder / "needed.txt"
    needed.write_text("".join(f"{each['name']}=={each['version']}\n" for each in wanted if each["name"] != "rebalance-monitor"))
    run(*pip, "install", "--quiet", BOM_TOOL)
    target = DIST / f"rebalance_monitor-{version()}.cdx.json"
    said = ("--pyproject", ROOT / "pyproject.toml", "--output-reproducible", "-o", target)
    run(environment / "bin/cyclonedx-py", "requirements", needed, *said)
    components = json.loads(target.read_text())["components"]
    if len(components) != len(wanted) - 1:
        raise ReleaseError(f"the bill of materials has {len(components)} components, not {len(wanted) - 1}")
    return f"{len(components)} components in {target.name}"


def main() -> int:
    console = Console()
    table = Table(title=f"release {version()}", title_justify="left", show_header=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def step(what: str, done: Callable[[], str]) -> None:
            with console.status(what):
                table.add_row(what, done())

        try:
            step("tag and changelog", check_tag)
            wheel, sdist = build(folder / "clone")
            for package in (wheel, sdist):
                own = folder / package.suffix
                own.mkdir()
                step(package.name, lambda package=package, own=own: try_package(package, own))  # type: ignore[misc]
            step("coordinator_model alone", lambda: try_model(wheel, folder))
            step("bill of materials", lambda: bill_of_materials(folder))
        except ReleaseError as error:
            console.print(table)
            console.print(f"error: {error}", style="red", soft_wrap=True, markup=False)
            return 1
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
