"""The JVM parts: a Java that is new enough, and the jars that ``deploy/ivy.xml`` names.

The jars are resolved once by the Ivy that pyspark ships, into the user's cache folder, and checked at each use. Two processes may
want them at once, and a download may break off. So a set of jars is built in a folder of its own and renamed into place when it is
whole; a lock keeps a second process waiting instead of downloading again.

``python -m streaming.spark.jvm`` fetches everything ahead of time.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from rich.console import Console

from coordinator_model.wording import counted

MINIMUM_JAVA: Final = 17
CACHE_VARIABLE: Final = "REBALANCE_MONITOR_JVM_CACHE"
SETTINGS_VARIABLE: Final = "REBALANCE_MONITOR_IVY_SETTINGS"
CONFIGURATIONS: Final = ("spark", "broker")
INSTALLED_FILES: Final = Path("share", "rebalance-monitor")
"""Where a wheel puts what stands under ``deploy/``, seen from ``sys.prefix``."""

_MANIFEST: Final = "manifest.json"

Report = Callable[[str], None]
"""Called with a short text each time something moves on."""


class JvmError(RuntimeError):
    """Java or a jar cannot be had; the message is one sentence that names it and the remedy."""


class Jar(NamedTuple):
    """One jar of the cache as the manifest knows it."""

    name: str
    size: int
    sha256: str


# --- Java ---------------------------------------------------------------------------------------------------


@functools.cache
def java_command() -> str:
    """The path of a Java of at least :data:`MINIMUM_JAVA`, from ``JAVA_HOME`` or ``PATH``.

    :raises JvmError: when there is none, or the one that would be used is too old.
    """
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if command is None:
        raise _no_java("no java is on PATH")
    source = f"JAVA_HOME ({home})" if home else f"PATH ({command})"
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        raise _no_java(f"the one in {source} does not run") from None
    version = _java_version(answer.stderr + answer.stdout)
    if version is None:
        raise _no_java(f"the one in {source} does not say its version")
    if version < MINIMUM_JAVA:
        raise _no_java(f"the one in {source} is Java {version}")
    return command


@functools.cache
def java_home() -> Path:
    """Where the Java of :func:`java_command` is installed, as it says itself: on PATH there may be a stub, as macOS has one.

    :raises JvmError: as there, and when it does not say.
    """
    command = java_command()
    answer = subprocess.run([command, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False)
    found = re.search(r"^\s*java\.home = (.+)$", answer.stderr, re.MULTILINE)
    if found is None:
        raise _no_java(f"{command} does not say where it is installed")
    return Path(found[1])


_REFUSAL: Final = re.compile(
    r"^(?:Error occurred during initialization of \w+\n)?((?:Unrecognized|Invalid|Missing|Improperly|Conflicting|Too|Initial|"
    r"Error: (?!Could not create|A fatal)|VM option).*)$",
    re.MULTILINE,
)


def refusal(printed: str) -> str | None:
    """The line in what a JVM printed that says which option it refuses, None if none does."""
    found = _REFUSAL.search(printed)
    return found[1].strip() if found else None


def refused_options(options: str) -> str | None:
    """What Java says of options that it does not start with, None if it takes them.

    :raises JvmError: when there is no Java to ask.
    """
    command = [java_command(), *shlex.split(options), "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not answer.returncode:
        return None
    printed = answer.stdout + answer.stderr
    return refusal(printed) or next((line for line in printed.splitlines() if line.strip()), f"exit status {answer.returncode}")


def _no_java(what: str) -> JvmError:
    return JvmError(f"Java {MINIMUM_JAVA} or newer is needed and {what}: {_how_to_install_java()}")


def _java_version(banner: str) -> int | None:
    """The feature release in the output of ``java -version``; up to Java 8 it was the second number ("1.8.0_412")."""
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(found[1]) if found else None


def _how_to_install_java() -> str:
    for tool, command in (
        ("apt-get", f"sudo apt-get install -y {_debian_package()}"),
        ("dnf", "sudo dnf install -y java-latest-openjdk-headless"),
        ("zypper", "sudo zypper install -y java-17-openjdk-headless"),
        ("pacman", "sudo pacman -S --noconfirm jre-openjdk-headless"),
        ("apk", "sudo apk add openjdk17-jre-headless"),
        ("brew", 'brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)"'),  # not linked to where PATH looks
    ):
        if shutil.which(tool):
            return f"run `{command}`"
    return "install one and put it on PATH, or set JAVA_HOME to it"


def _debian_package() -> str:
    """No single name is in every release of Debian and Ubuntu."""
    names = [f"openjdk-{version}-jre-headless" for version in (17, 21, 25)]
    for name in names if shutil.which("apt-cache") else []:
        if subprocess.run(["apt-cache", "show", name], capture_output=True, check=False).returncode == 0:
            return name
    return names[0]


# --- jars ---------------------------------------------------------------------------------------------------


def jars(configuration: str, *, report: Report | None = None, ivy_file: Path | None = None) -> list[Path]:
    """The jars of a configuration of ``deploy/ivy.xml`` (``spark`` or ``broker``), fetched first if they are not in the cache.

    The sizes of the cached files are checked; a damaged cache is fetched again.

    :param ivy_file: another list of jars than that one.
    :raises JvmError: when a jar cannot be had.
    """
    listed_in = ivy_file or _ivy_file()
    folder = cache_folder(listed_in)
    manifest = _whole(folder)
    if manifest is None:
        manifest = _fetch(listed_in, folder, report or (lambda _: None))
    if configuration not in manifest:
        raise JvmError(f"{listed_in.name} has no configuration {configuration!r}, only {', '.join(sorted(manifest))}")
    return [folder / configuration / jar.name for jar in manifest[configuration]]


def are_fetched() -> bool:
    """Whether all jars of ``deploy/ivy.xml`` are in the cache."""
    return _whole(cache_folder()) is not None


def verify() -> list[Path]:
    """The cached jars whose SHA-256 is no longer that of the fetched file. Takes a moment; :func:`jars` looks at sizes only."""
    folder = cache_folder()
    return [
        folder / configuration / jar.name
        for configuration, listed in (_whole(folder) or {}).items()
        for jar in listed
        if _sha256(folder / configuration / jar.name) != jar.sha256
    ]


def cache_folder(ivy_file: Path | None = None) -> Path:
    """Where the jars of this ``ivy.xml`` belong: another ``ivy.xml``, and another Spark, has another folder."""
    listed = (ivy_file or _ivy_file()).read_text()
    for name, value in _variables(listed).items():
        listed += f"{name}={value}"
    return _cache_root() / hashlib.sha256(listed.encode()).hexdigest()[:16]


def _variables(listed: str) -> dict[str, str]:
    """What stands in a list of jars for the Spark that is installed."""
    if "${" not in listed:
        return {}
    from streaming.spark.versions import connector  # noqa: PLC0415 - pyspark takes a moment, and not every list needs it

    return {"scala": connector().scala, "connector": connector().revision}


def listed(jars: Iterable[Path], separator: str, form: Callable[[Path], str] = str) -> str:
    """Return jars as a list that Java or Spark takes apart.

    :param form: how a path is written.
    :raises JvmError: when a path has the separator in it, at which it would be split.
    """
    jars = list(jars)
    for jar in jars:
        if separator in str(jar):
            raise JvmError(
                f"the JVM parts are in {jar.parent}, and a list of jars is split at each {separator!r}: choose a folder without one with "
                f"{CACHE_VARIABLE}"
            )
    return separator.join(map(form, jars))


def _cache_root() -> Path:
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "rebalance-monitor" / "jvm"


def _ivy_file() -> Path:
    """Under ``deploy/`` in a checkout; where it was installed, under ``share/`` of that environment."""
    places = (Path(__file__).resolve().parents[2] / "deploy" / "ivy.xml", Path(sys.prefix) / INSTALLED_FILES / "ivy.xml")
    for place in places:
        if place.is_file():
            return place
    raise JvmError(f"the list of JVM parts is missing: expected {places[-1]}")


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    for location in (spec and spec.submodule_search_locations) or []:
        for found in Path(location, "jars").glob("ivy-*.jar"):
            return found
    raise JvmError("pyspark is not installed, or came without its jars (ivy-*.jar): install the locked dependencies again")


def _whole(folder: Path) -> dict[str, list[Jar]] | None:
    """What the folder's manifest lists, or None when there is no manifest or a file is not as it says."""
    try:
        written: dict[str, list[list[str | int]]] = json.loads((folder / _MANIFEST).read_text())
        manifest = {name: [Jar(str(jar[0]), int(jar[1]), str(jar[2])) for jar in listed] for name, listed in written.items()}
        for name, listed in manifest.items():
            for jar in listed:
                if (folder / name / jar.name).stat().st_size != jar.size:
                    return None
    except (OSError, ValueError, IndexError, AttributeError, TypeError):
        return None
    return manifest


def _fetch(ivy_file: Path, folder: Path, report: Report) -> dict[str, list[Jar]]:
    java = java_command()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / "lock", report):
            manifest = _whole(folder)  # another process may have fetched them while this one waited
            if manifest is None:
                manifest = _build(java, ivy_file, folder, report)
            return manifest
    except OSError as error:
        raise JvmError(
            f"cannot keep the JVM parts in {folder}: {error.strerror or error}; choose another place with {CACHE_VARIABLE}"
        ) from None


@contextlib.contextmanager
def _locked(path: Path, report: Report) -> Iterator[None]:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another process that is fetching the JVM parts")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(java: str, ivy_file: Path, folder: Path, report: Report) -> dict[str, list[Jar]]:
    # Ivy's own download cache outlives a failure, so that the next try goes on where this one stopped.
    downloads = folder.parent / "download"
    fresh = folder.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    _run_ivy(java, downloads, fresh, report, ivy_file)
    names = re.findall(r'<conf name="([^"]+)"', ivy_file.read_text())
    manifest = {name: _listing(fresh / name) for name in names}
    for name, listed in manifest.items():
        if not listed:
            raise JvmError(f"configuration {name!r} of {ivy_file.name} resolved to no jar")
    (fresh / _MANIFEST).write_text(json.dumps(manifest, indent=1))
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    shutil.rmtree(downloads, ignore_errors=True)
    return manifest


def _run_ivy(java: str, downloads: Path, target: Path, report: Report, ivy_file: Path) -> None:
    settings = os.environ.get(SETTINGS_VARIABLE)
    command = [
        java,
        "-Xmx256m",
        "-Dsun.net.client.defaultConnectTimeout=30000",
        "-Dsun.net.client.defaultReadTimeout=60000",
        f"-Divy.default.ivy.user.dir={downloads}",
        *(f"-D{name}={value}" for name, value in _variables(ivy_file.read_text()).items()),
        *("-jar", str(_ivy_jar())),
        *(("-settings", settings) if settings else ()),
        *("-ivy", str(ivy_file)),
        *("-cache", str(downloads / "cache")),
        *("-retrieve", f"{target}/[conf]/[artifact]-[revision].[ext]"),
        *("-types", "jar", "bundle"),
    ]
    said: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as ivy:
        assert ivy.stdout is not None
        fetched = 0
        for line in ivy.stdout:
            said.append(line.strip())
            if found := re.match(r"found \S+?#(\S+) in", said[-1]):
                report(f"resolving {found[1].replace(';', ' ')}")
            elif found := re.match(r"\[SUCCESSFUL \] \S+?#(\S+?)!\S+", said[-1]):
                fetched += 1
                report(f"{fetched} fetched: {found[1].replace(';', ' ')}")
    if ivy.returncode:
        raise JvmError(_why(said))


def _why(said: list[str]) -> str:
    """One sentence out of Ivy's report."""
    remedy = f"check the network, or point {SETTINGS_VARIABLE} to an ivysettings.xml that names your Maven mirror"
    access = next((found[1] for line in said if (found := re.search(r"Server access error at url \S+ \((.+)\)", line))), None)
    missing = [found[1] for line in said if (found := re.match(r":: (\S+#\S+;[^\s!:]+)", line))]
    if missing:
        name = missing[0].replace("#", ":").replace(";", ":")
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return f"cannot fetch {name}{others}: {access or 'the Maven repository does not have it'}; {remedy}"
    thrown = next(
        (found[1] for line in said if (found := re.match(r'(?:Exception in thread "\w+" )?[\w.$]+Exception: (.+)', line))), None
    )
    last = next((line for line in reversed(said) if line and not line.startswith(":: USE VERBOSE")), "no output")
    return f"Ivy could not fetch the JVM parts: {access or thrown or last}; {remedy}"


def _listing(folder: Path) -> list[Jar]:
    files = sorted(folder.glob("*.jar")) if folder.is_dir() else []
    return [Jar(file.name, file.stat().st_size, _sha256(file)) for file in files]


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


# --- python -m streaming.spark.jvm --------------------------------------------------------------------------------


@contextlib.contextmanager
def progress(title: str) -> Iterator[Report]:
    """A :data:`Report` for a person: one moving line on a terminal, else a plain line now and then."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(title) as status:
            yield lambda text: status.update(f"{title}: {text}")
        return
    count = 0

    def plain(text: str) -> None:
        nonlocal count
        if count % 10 == 0:
            print(f"{title}: {text}", file=sys.stderr, flush=True)
        count += 1

    yield plain


def main(
    *,
    check: Annotated[
        bool, typer.Option("--verify", help="Compare the SHA-256 of every jar too; fetch again if one differs.")
    ] = False,
) -> None:
    """Fetch the JVM parts (Spark's Kafka connector, a Kafka broker) into the user's cache folder unless they are there."""
    try:
        java_command()
        if check and (damaged := verify()):
            print(f"damaged, fetching anew: {', '.join(file.name for file in damaged)}", file=sys.stderr)
            (cache_folder() / _MANIFEST).unlink()
        with progress("fetching the JVM parts") as report:
            found = {name: jars(name, report=report) for name in CONFIGURATIONS}
    except JvmError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    for name, files in found.items():
        mebibytes = sum(file.stat().st_size for file in files) / 2**20
        print(f"{name}: {counted(len(files), 'jar')}, {mebibytes:.0f} MiB in {cache_folder() / name}")


if __name__ == "__main__":
    typer.run(main)
