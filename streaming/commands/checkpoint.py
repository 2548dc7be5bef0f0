"""``rebalance-monitor checkpoint``: inspect, migrate or archive the folder that contains the job's state.

The folder may be a mounted volume. It cannot be renamed then, and nothing can be written beside it. So an archived checkpoint stays inside
it, in a subfolder, until the operator deletes it.
"""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from coordinator_model.snapshots import SnapshotError
from streaming.commands.output import fail, stdout
from streaming.config.settings import ConfigError, load
from streaming.errors import SetupError
from streaming.kafka.topics import prepare
from streaming.spark import checkpoint
from streaming.spark.jvm import JvmError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streaming.config.settings import MonitorConfig


_KEPT: Final = ("monitor.json", checkpoint.FINDINGS, checkpoint.QUALITY)
_PUT_AWAY: Final = "before-"
_BEING_MADE: Final = "migrating"

app: Final = typer.Typer(
    no_args_is_help=True, help="Inspect the checkpoint folder, migrate it to this release and configuration, or archive it."
)

ConfigFile = Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="Configuration of rebalance-monitor run (TOML).")]


@app.command()
def inspect(config: ConfigFile) -> None:
    """Show which release and topic the checkpoint belongs to, how far it has read, and its size. Needs neither Kafka nor Spark.

    rebalance-monitor checkpoint inspect --config rebalance-monitor.toml
    """
    with _errors_said():
        folder = _folder(load(config))
        about = checkpoint.about(folder)
        if about is None:
            raise SetupError(f"there is no checkpoint in {folder}: the monitor has not run with this configuration yet")
        console = stdout()
        console.print(_description(folder, about))
        console.print(_sizes(folder))


@app.command()
def migrate(config: ConfigFile) -> None:
    """Migrate the models to a checkpoint of this release and this number of lanes. The monitor must be stopped.

    The old checkpoint is kept in a subfolder until you delete it.

    rebalance-monitor checkpoint migrate --config rebalance-monitor.toml
    """
    with _errors_said():
        settings = load(config)
        folder = _folder(settings)
        mirror = prepare(settings)
        with checkpoint.locked(folder) as lock:
            wanted = checkpoint.about_now(mirror, lanes=settings.job.lanes)
            found = checkpoint.about(folder)
            if found is None or not checkpoint.read_to(folder):
                raise SetupError(f"there is nothing to migrate in {folder}: start the monitor")
            checkpoint.belongs_to(folder, found, wanted)
            if checkpoint.must_migrate(found, wanted) is None:
                _say(f"{folder} needs no migration: start the monitor")
                return
            made = folder / _BEING_MADE
            migrated = _carry_over(settings, lock, made, wanted)
            if checkpoint.can_continue(found, wanted) and (folder / checkpoint.QUALITY).exists():
                shutil.copytree(folder / checkpoint.QUALITY, made / checkpoint.QUALITY)
            put_away = _put_away(folder)
            for part in made.iterdir():
                part.rename(folder / part.name)
            made.rmdir()
        _say(f"migrated {migrated} models; start the monitor. The old checkpoint is in {put_away}; you may delete it")


@app.command()
def reset(config: ConfigFile) -> None:
    """Archive the checkpoint, so that the monitor starts again from the beginning of the mirror topic, with the same findings.

    Groups whose history the topic no longer holds are learned again. The monitor must be stopped.

    rebalance-monitor checkpoint reset --config rebalance-monitor.toml
    """
    with _errors_said():
        folder = _folder(load(config))
        with checkpoint.locked(folder):
            put_away = _put_away(folder)
        if put_away is None:
            _say(f"there is no checkpoint in {folder}: the next start reads the mirror topic from the beginning")
        else:
            _say(f"archived in {put_away}, which you may delete; the next start reads the mirror topic from the beginning")


@contextmanager
def _errors_said() -> Iterator[None]:
    """Turn expected errors into one sentence and exit status 2."""
    try:
        yield
    except (ConfigError, SetupError, JvmError, SnapshotError) as error:
        fail(error)
    except OSError as error:
        fail(f"cannot work on {error.filename or 'the checkpoint'}: {error.strerror or error}")


def _folder(config: MonitorConfig) -> Path:
    if config.job.state is not None:
        raise SetupError(
            f"the state is in {config.job.state}, where this command does not reach; it works on a folder of this machine"
        )
    return config.job.checkpoint.absolute()


def _say(sentence: str) -> None:
    stdout().print(Text(sentence))


def _description(folder: Path, about: dict[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in (
        ("checkpoint", folder),
        ("mirror topic", f"{about['mirror_topic']} ({about['topic_id']}) of cluster {about['cluster_id']}"),
        ("written by", f"release {about['release']}, Spark {about['spark']}"),
        ("formats", f"checkpoint {about['format']}, snapshots {about['snapshot_format']}"),
        ("partitions", f"{about['partitions']} of the mirror, job.lanes = {about['lanes']}"),
        (
            "read to",
            ", ".join(f"{partition}: {offset:,}" for partition, offset in sorted(checkpoint.read_to(folder).items())) or "-",
        ),
    ):
        table.add_row(Text(name, "bold"), Text(str(value)))
    return table


def _sizes(folder: Path) -> Table:
    table = Table("", "files", "MB", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    parts = [*(str(lane.relative_to(folder)) for lane in checkpoint.lanes_in(folder)), checkpoint.QUALITY, "scratch"]
    parts += sorted(each.name for each in folder.glob(f"{_PUT_AWAY}*"))
    for part in parts:
        sizes = list(_sizes_below(folder / part))
        if sizes:
            table.add_row(part, f"{len(sizes):,}", f"{sum(sizes) / 1e6:,.1f}")
    return table


def _sizes_below(folder: Path) -> Iterable[int]:
    for file in folder.rglob("*"):
        try:
            if file.is_file():
                yield file.stat().st_size
        except FileNotFoundError:  # a running monitor has deleted it
            continue


def _carry_over(config: MonitorConfig, lock: int, made: Path, about: dict[str, Any]) -> int:
    """Make a checkpoint in another folder with the models of this one, as of its newest committed batch; return how many there are."""
    from streaming.spark import migration  # noqa: PLC0415 - takes most of a second, and only `migrate` needs it
    from streaming.spark import session as spark  # noqa: PLC0415

    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    checkpoint.note(made, **about)
    _say("starting Spark to carry over the state")
    session = spark.open_session(config.job, config.spark, inherited=(lock,))
    try:
        snapshots = migration.snapshots(session, config.job.checkpoint.absolute())
        migration.write(session, made, snapshots, topic=about["mirror_topic"], lanes=about["lanes"])
    finally:
        spark.close_session(session)
    return len(snapshots)


def _put_away(folder: Path) -> Path | None:
    """Move the parts of the checkpoint into a subfolder; return it, or None if there is no checkpoint."""
    parts = [folder / name for name in _KEPT if (folder / name).exists()]
    if not parts:
        return None
    target = folder / f"{_PUT_AWAY}{time.strftime('%Y%m%d-%H%M%S')}"
    target.mkdir()
    for part in parts:
        part.rename(target / part.name)
    return target
