"""``rebalance-monitor config``: checks a configuration, and prints each value and its source.

Users paste this output into tickets and chats. So a secret is masked.
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from pydantic import BaseModel, SecretStr
from rich.console import Console
from rich.text import Text

from streaming.commands.output import fail, print_warning, stdout
from streaming.config import keys
from streaming.config.settings import ConfigError, Loaded, MonitorConfig, read
from streaming.errors import SetupError
from streaming.kafka import connection
from streaming.kafka.required_rights import MONITOR, NOTIFY
from streaming.kafka.rights import inspect
from streaming.spark import checkpoint, jvm

MASK: Final = "********"

config = typer.Typer(help="Check a configuration before it is used.", no_args_is_help=True)


class Process(enum.StrEnum):
    """A process that uses the configuration file."""

    MONITOR = MONITOR
    NOTIFY = NOTIFY


@config.callback()
def _several() -> None:
    """Make ``check`` a subcommand; without a callback, typer makes an only command the program itself."""


@config.command("check")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Configuration file (TOML).")],
    *,
    connect: Annotated[
        bool,
        typer.Option("--connect", help="Also check Kafka: that it answers, that the topics exist, and that the rights suffice."),
    ] = False,
    process: Annotated[
        list[Process] | None,
        typer.Option("--for", help="Process whose rights are checked: the one whose user the settings name. By default `monitor`."),
    ] = None,
) -> None:
    """Check a configuration file and the environment variables that override it; print each value in force and its source.

    rebalance-monitor config check monitor.toml

    REBALANCE_MONITOR_JOB__TRIGGER_MS=1000 rebalance-monitor config check --connect monitor.toml

    Secrets are shown as ********. The exit status is 0, or 2 if the monitor would not start with it.
    """
    out = stdout()
    try:
        loaded = read(file)
    except ConfigError as error:
        fail(error)
    _show(out, loaded)
    problems, warnings = _offline(loaded.config)
    if connect and not problems:
        problems, more = _online(out, loaded.config, process or [Process.MONITOR])
        warnings += more
    print_warning("\n".join(warnings))
    if problems:
        fail("\n".join(problems))
    out.print(f"{file} can be used")


# --- what is in force -------------------------------------------------------------------------------------------------


class SettingLine(NamedTuple):
    """A key and its value as text."""

    path: keys.Path
    value: str


def lines(configuration: MonitorConfig) -> Iterator[SettingLine]:
    """Yield every key that has a value, in the order of the reference file."""
    yield from _lines((), configuration)


def _lines(path: keys.Path, value: Any) -> Iterator[SettingLine]:
    if isinstance(value, BaseModel) or keys.section(type(value)) is not None:
        for name in keys.keys(type(value)):
            yield from _lines((*path, name), getattr(value, name))
    elif isinstance(value, Mapping) and value:
        for name, each in value.items():
            yield from _lines((*path, str(name)), each)
    elif value is not None:
        secret = isinstance(value, SecretStr) or keys.may_be_secret(MonitorConfig, path)
        yield SettingLine(path, MASK if secret else _written(value))


def _written(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False, default=str)


def _show(out: Console, loaded: Loaded) -> None:
    shown = list(lines(loaded.config))
    width = max(len(_name(line.path)) for line in shown)
    values = min(44, max(len(line.value) for line in shown))
    section: tuple[str, ...] = ()
    for line in shown:
        if line.path[:-1] and line.path[:1] != section:
            section = line.path[:1]
            out.print(Text(f"\n[{section[0]}]", "bold"))
        origin = keys.origin(line.path, loaded.file)
        style = "dim" if origin == "default" else ""
        out.print(Text(f"{_name(line.path):<{width}} = {line.value:<{values}}", style), Text(f" {origin}", style or "cyan"), sep="")
    out.print(f"\nPaths are relative to {Path.cwd()}. Keys that are not shown are not set.")


def _name(path: keys.Path) -> str:
    """Return the key without its section."""
    return ".".join(path[1:] or path)


# --- what is wrong ----------------------------------------------------------------------------------------------------


def _offline(configuration: MonitorConfig) -> tuple[list[str], list[str]]:
    """Return the problems and warnings that can be found without Kafka."""
    checks = (_client_problems, _folder_problems, _jvm_problems, _suite_problems)
    problems = [problem for check in checks for problem in check(configuration)]
    return problems, [*_exposed(configuration)]


def _client_problems(configuration: MonitorConfig) -> Iterator[str]:
    try:  # without an address librdkafka checks its properties and files, and does not connect
        connection.client({**configuration.kafka.for_librdkafka(), "bootstrap.servers": ""})
    except connection.UnreachableError as error:
        yield f"the settings under [kafka] are not accepted: {error}"


def _folder_problems(configuration: MonitorConfig) -> Iterator[str]:
    folders = {"job.checkpoint": configuration.job.checkpoint, "job.log_file": configuration.job.log_file.parent}
    if configuration.quality.enabled:
        folders["quality.docs"] = configuration.quality.docs
    for key, folder in folders.items():
        there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        if not there.is_dir():
            yield f"{key}: {there} is not a folder"
        elif not os.access(there, os.W_OK | os.X_OK):
            yield f"{key}: this user cannot write to {there}"
        elif key == "job.checkpoint" and (trouble := checkpoint.too_small(folder.absolute())) is not None:
            yield f"{key}: {trouble}"


def _jvm_problems(configuration: MonitorConfig) -> Iterator[str]:
    with contextlib.suppress(jvm.JvmError):  # this machine may have no Java
        refused = jvm.refused_options(configuration.job.jvm_options)
        if refused is not None:
            yield f"job.jvm_options: Java does not start with them: {refused}"


def _suite_problems(configuration: MonitorConfig) -> Iterator[str]:
    if not configuration.quality.enabled or configuration.quality.suite is None:
        return
    # Imported late: Great Expectations takes seconds.
    from streaming.quality.suite import load  # noqa: PLC0415
    from streaming.quality.validation import refused  # noqa: PLC0415

    try:
        yield from refused(load(configuration.quality.suite))
    except ConfigError as error:
        yield str(error)


def _exposed(configuration: MonitorConfig) -> Iterator[str]:
    """Yield a warning for each secret file that every user of the machine can read."""
    for line in lines(configuration):
        path, value = line.path, _at(configuration, line.path)
        secret = path[-1].removesuffix("_file")
        of = keys.annotation_at(MonitorConfig, path[:-1])
        is_secret = secret != path[-1] and keys.is_secret(keys.inside(of, secret))
        if (is_secret or path == ("kafka", "ssl_key_file")) and isinstance(value, Path) and value.stat().st_mode & stat.S_IROTH:
            yield f"{'.'.join(path)}: {value} may be read by every user of this machine; chmod o-r {value}"


def _at(configuration: Any, path: keys.Path) -> Any:
    for part in path:
        configuration = configuration[part] if isinstance(configuration, Mapping) else getattr(configuration, part)
    return configuration


def _online(out: Console, configuration: MonitorConfig, processes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the problems and warnings that are found on Kafka, and print the topics."""
    try:
        reports = inspect(configuration, processes)
    except SetupError as error:
        return [str(error)], []
    out.print(Text(f"\nKafka at {configuration.kafka.bootstrap_servers}", "bold"))
    width = max(len(report.topic) for report in reports)
    for report in reports:
        out.print(f"{report.topic:<{width}}   {report.found}")
    out.print()
    return (
        [f"topic {report.topic}: {report.problem}" for report in reports if report.problem],
        [f"topic {report.topic}: {report.warning}" for report in reports if report.warning],
    )
