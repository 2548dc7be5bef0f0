"""Builds the drivers of ``drivers/``, each toolchain with its ordinary package manager, into a cache folder outside the repository."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from streaming.spark import jvm

DRIVERS = Path(__file__).with_name("drivers")
JAVA_OPTIONS = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class BuildError(RuntimeError):
    """A driver cannot be built here; the message says what is missing."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "rebalance-monitor" / "conformance"


def python(script: str) -> list[str]:
    """The command of a driver whose library the project itself depends on."""
    return [sys.executable, str(DRIVERS / "python" / script)]


def python_apart(script: str) -> list[str]:
    """The command of a driver with an environment of its own."""
    folder = _built("python", _make_environment, only=("requirements.txt",))
    return [str(folder / "bin" / "python"), str(DRIVERS / "python" / script)]


def java(main: str, configuration: str) -> list[str]:
    _need("javac", "a JDK")
    try:
        jars = jvm.jars(configuration, ivy_file=DRIVERS / "java" / "ivy.xml")
    except jvm.JvmError as error:
        raise BuildError(str(error)) from None
    path = ":".join(str(jar) for jar in jars)

    def compile_in(folder: Path) -> None:
        sources = [str(DRIVERS / "java" / name) for name in ("Contract.java", f"{main}.java")]
        _run(["javac", "-nowarn", "-cp", path, "-d", str(folder), *sources])

    folder = _built(main, compile_in, source="java")
    return [jvm.java_command(), *JAVA_OPTIONS, "-cp", f"{folder}:{path}", main]


def go(name: str) -> list[str]:
    _need("go", "Go")

    def compile_in(folder: Path) -> None:
        _run(["go", "build", "-o", str(folder), "./..."], cwd=DRIVERS / "go")

    return [str(_built("go", compile_in) / name)]


def node(script: str) -> list[str]:
    """The newest Node.js comes as a package too; where there is none for the machine, the installed one must do."""
    _need("npm", "Node.js")

    def install_in(folder: Path) -> None:
        shutil.copytree(DRIVERS / "node", folder, dirs_exist_ok=True)
        _run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder)

    folder = _built("node", install_in)
    packaged = folder / "node_modules" / ".bin" / "node"
    return [str(packaged) if packaged.exists() else "node", str(folder / script)]


def rust(name: str) -> list[str]:
    _need("cargo", "Rust")

    def compile_in(folder: Path) -> None:
        shutil.copytree(DRIVERS / "rust", folder, dirs_exist_ok=True)
        _run(["cargo", "build", "--release", "--quiet"], cwd=folder)

    return [str(_built("rust", compile_in) / "target" / "release" / name)]


def _make_environment(folder: Path) -> None:
    _run([sys.executable, "-m", "venv", str(folder)])
    _run([str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "-r", str(DRIVERS / "python" / "requirements.txt")])


def _built(name: str, build: Callable[[Path], None], *, source: str | None = None, only: Sequence[str] = ()) -> Path:
    """The folder of what was built from these sources; it has its final name from the start, since environments know their path."""
    root = DRIVERS / (source or name)
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts and (not only or file.name in only):
            digest.update(file.read_bytes())
    folder = cache_folder() / f"{name}-{digest.hexdigest()[:16]}"
    finished = folder / ".finished"
    if not finished.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        build(folder)
        finished.touch()
    return folder


def _need(program: str, what: str) -> None:
    if shutil.which(program) is None:
        raise BuildError(f"{program} is not on PATH: install {what}")


def _run(command: Sequence[str], cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise BuildError(f"{' '.join(command[:3])} failed: {' / '.join(last)}")
