"""``rebalance-monitor checkpoint``: look into the folder that the job keeps its state in, carry it over to this release, put it away.

The trap: the folder may be a volume of its own, which cannot be renamed, nor anything be written beside it. So what is put away stays
inside it, in a folder of its own, until the operator deletes that.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coordinator_model.snapshots import SnapshotError
from streaming.config.settings import ConfigError, load
from streaming.kafka.topics import SetupError, prepare
from streaming.spark import checkpoint, model_seeds, model_store
from streaming.spark.jvm import JvmError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streaming.config.settings import Job

EXIT_CANNOT: Final = 2

_KEPT: Final = ("monitor.json", checkpoint.FINDINGS, model_store.FOLDER, checkpoint.QUALITY, model_seeds.FOLDER)
_PUT_AWAY: Final = "before-"
_BEING_MADE: Final = "migrating"

app: Final = typer.Typer(
    no_args_is_help=True,
    help="Inspect the checkpoint folder, migrate it to this release and configuration, or archive it.",
)

ConfigFile = Annotated[
    Path, typer.Option("--config", "-c", metavar="FILE", help="Configuration of rebalance-monitor run (TOML).", show_default=False)
]


@app.command()
def inspect(config: ConfigFile) -> None:
    """Show which release and topic the checkpoint belongs to, how far it has read, and its size. Needs neither Kafka nor Spark.

    rebalance-monitor checkpoint inspect --config rebalance-monitor.toml
    """
    with _errors_said():
        folder = load(config).job.checkpoint.absolute()
        about = checkpoint.about(folder)
        if about is None:
            raise SetupError(f"there is no checkpoint in {folder}: no monitor has run with this configuration yet")
        console = Console(highlight=False, soft_wrap=True)
        console.print(_description(folder, about))
        console.print(_sizes(folder))


@app.command()
def migrate(config: ConfigFile) -> None:
    """Migrate the models to a checkpoint of this release and this number of lanes. The monitor must be stopped.

    The old checkpoint stays beside the new one until you delete it.

    rebalance-monitor checkpoint migrate --config rebalance-monitor.toml
    """
    with _errors_said():
        settings = load(config)
        folder = settings.job.checkpoint.absolute()
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
            snapshots = _snapshots(settings.job, lock)
            put_away = _replace(folder, snapshots, wanted, keep_quality=checkpoint.same_spark(found, wanted))
        _say(f"carried {len(snapshots)} models over; start the monitor. The old checkpoint is in {put_away}: delete it at will")


@app.command()
def reset(config: ConfigFile) -> None:
    """Archive the checkpoint, so that the monitor starts again from the beginning of the mirror topic, with the same findings.

    Groups whose history the topic no longer holds are learned again. The monitor must be stopped.

    rebalance-monitor checkpoint reset --config rebalance-monitor.toml
    """
    with _errors_said():
        folder = load(config).job.checkpoint.absolute()
        with checkpoint.locked(folder):
            put_away = _put_away(folder)
        if put_away is None:
            _say(f"there is no checkpoint in {folder}: the monitor begins anew as it is")
        else:
            _say(f"put away in {put_away}, which you may delete; the next start reads the mirror topic anew")


class _errors_said:  # noqa: N801 - reads as what it does
    """Turns what a command foresees into one sentence and exit status 2."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ConfigError | SetupError | JvmError | SnapshotError):
            _fail(str(error))
        if isinstance(error, OSError):
            _fail(f"cannot work on {error.filename or 'the checkpoint'}: {error.strerror or error}")


def _fail(sentences: str) -> NoReturn:
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    for line in sentences.splitlines():
        console.print(Text("error: ", "bold red"), Text(line), sep="")
    raise typer.Exit(EXIT_CANNOT) from None


def _say(sentence: str) -> None:
    Console(soft_wrap=True, highlight=False).print(Text(sentence))


def _description(folder: Path, about: dict[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in (
        ("checkpoint", folder),
        ("mirror topic", f"{about.get('mirror_topic')} ({about.get('topic_id')}) of cluster {about.get('cluster_id')}"),
        ("written by", f"release {about.get('release')}, Spark {about.get('spark', 'not told')}"),
        ("formats", f"checkpoint {about.get('format')}, snapshots {about.get('snapshot_format', 1)}"),
        ("partitions", f"{about.get('partitions', 'not told')} of the mirror, job.lanes = {about.get('lanes', 1)}"),
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
    parts = [
        *(str(lane.relative_to(folder)) for lane in checkpoint.lanes_in(folder)),
        model_store.FOLDER,
        checkpoint.QUALITY,
        model_seeds.FOLDER,
        "scratch",
    ]
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
        except FileNotFoundError:  # a monitor is at work
            continue


def _snapshots(job: Job, lock: int) -> dict[int, bytes]:
    """The models of a checkpoint by mirror partition, as of its newest committed batch."""
    from streaming.spark import session as spark  # noqa: PLC0415 - takes most of a second, which nobody else here needs

    _say("starting Spark to read the old state")
    session = spark.open_session(job, inherited=(lock,))
    try:
        return spark.snapshots(session, job.checkpoint.absolute())
    finally:
        spark.close_session(session)


def _replace(folder: Path, snapshots: dict[int, bytes], about: dict[str, Any], *, keep_quality: bool) -> Path:
    """Put a checkpoint of nothing but seeds in the place of the one that is there; gives where that is now."""
    made = folder / _BEING_MADE
    shutil.rmtree(made, ignore_errors=True)
    model_seeds.write(made / model_seeds.FOLDER, snapshots)
    checkpoint.note(made, **about)
    if keep_quality and (folder / checkpoint.QUALITY).exists():
        shutil.copytree(folder / checkpoint.QUALITY, made / checkpoint.QUALITY)
    put_away = _put_away(folder)
    assert put_away is not None
    for part in made.iterdir():
        part.rename(folder / part.name)
    made.rmdir()
    return put_away


def _put_away(folder: Path) -> Path | None:
    """Move what makes a checkpoint into a folder of its own; None if there is none."""
    parts = [folder / name for name in _KEPT if (folder / name).exists()]
    if not parts:
        return None
    target = folder / f"{_PUT_AWAY}{time.strftime('%Y%m%d-%H%M%S')}"
    target.mkdir()
    for part in parts:
        part.rename(target / part.name)
    return target
