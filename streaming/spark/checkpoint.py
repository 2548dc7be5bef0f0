"""The checkpoint folder: whose it is, whether it can be used, and that only one monitor uses it (``checkpoints/README.md``).

Spark fails late and obscurely on a checkpoint that belongs to something else. Another number of lanes, another mirror topic, or the
same name deleted and created again, each leave state that looks right and is wrong. So what it belongs to is written beside it and
compared before Spark starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from coordinator_model.snapshots import FORMAT_VERSION
from streaming.errors import SetupError
from streaming.kafka.mirror_watch import repartitioned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streaming.kafka.topics import Mirror

    AFolder = TypeVar("AFolder", bound="Folder")

FORMAT: Final = 1
"""Raised when the query's state has other columns, or other keys: only a migration can then read that of an earlier release."""

RESET: Final = "rebalance-monitor checkpoint reset"
MIGRATE: Final = "rebalance-monitor checkpoint migrate"
"""Both take the ``--config`` of ``rebalance-monitor run``."""

_ELSEWHERE: Final = "set job.state to another folder"

FINDINGS: Final = "findings"
QUALITY: Final = "quality"

_ABOUT: Final = "monitor.json"
_LOCK: Final = "lock"
_LOCK_WAIT_S: Final = 20.0
_SAY_LOCKED_S: Final = 1.0
_LOG_VERSIONS: Final = ("v1", "v2")


class Folder(Protocol):
    """A :class:`pathlib.Path`, or one of :class:`streaming.spark.hadoop.HadoopPath`."""

    @property
    def name(self) -> str: ...

    def __truediv__(self, name: str, /) -> Self: ...

    def exists(self) -> bool: ...

    def is_dir(self) -> bool: ...

    def glob(self, pattern: str, /) -> Iterator[Self]: ...

    def read_text(self) -> str: ...

    def write_text(self, text: str, /) -> object: ...


@contextlib.contextmanager
def locked(folder: Path, *, tell: Callable[[str], None] = lambda _sentence: None) -> Iterator[int]:
    """Hold the checkpoint; return the lock's file descriptor, which the JVM is to inherit: it may outlive a killed Python.

    :param tell: called with a sentence when it has to be waited for.
    :raises SetupError: when another monitor holds it, or the folder cannot be written.
    """
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(descriptor, folder, tell)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path, tell: Callable[[str], None]) -> None:
    began = time.monotonic()  # the JVM of a killed monitor needs a moment to notice
    said = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited_s = time.monotonic() - began
            if waited_s > _SAY_LOCKED_S and not said:
                said = True
                tell(f"another monitor holds the checkpoint {folder}; waiting up to {_LOCK_WAIT_S:.0f} s for its end")
            if waited_s > _LOCK_WAIT_S:
                raise SetupError(
                    f"another monitor is running on the checkpoint {folder}; stop it, or set another job.checkpoint"
                ) from None
            time.sleep(0.1)
        else:
            return


def check(folder: Folder, mirror: Mirror, *, lanes: int) -> list[str]:
    """Compare the checkpoint with what the job is about to do, and write down in it what that is.

    :return: sentences about what has changed since and does no harm.
    :raises SetupError: when it belongs to something else, is damaged, or cannot be written.
    """
    if isinstance(folder, Path) and (trouble := disk_trouble(folder) or too_small(folder)) is not None:
        raise SetupError(trouble)
    wanted = about_now(mirror, lanes=lanes)
    found = about(folder)
    notes = []
    if found is not None:
        if _begins_anew(folder, found, wanted):
            notes.append(f"the checkpoint {folder} holds nothing that was committed: it is begun anew")
            found = wanted
        _compare(folder, found, wanted)
        if _line(spark := found["spark"]) != _line(wanted["spark"]):
            notes.append(f"the checkpoint {folder} was written by Spark {spark}; Spark {wanted['spark']} continues it")
        if (before := found["partitions"]) != mirror.partitions:
            notes.append(f"the mirror topic {mirror.topic} {repartitioned(before, mirror.partitions)}")
    for query in (*lanes_in(folder), folder / QUALITY):
        _check_query(folder, query)
    if found != wanted:
        note(folder, **wanted)
    return notes


def about_now(mirror: Mirror, *, lanes: int) -> dict[str, Any]:
    """What a checkpoint that is written now has in its ``monitor.json``."""
    return {
        "format": FORMAT,
        "snapshot_format": FORMAT_VERSION,
        "release": version("rebalance-monitor"),
        "spark": version("pyspark"),
        "mirror_topic": mirror.topic,
        "topic_id": mirror.topic_id,
        "cluster_id": mirror.cluster_id,
        "partitions": mirror.partitions,
        "lanes": lanes,
    }


_WRITTEN: Final = frozenset(
    {"format", "snapshot_format", "release", "spark", "mirror_topic", "topic_id", "cluster_id", "partitions", "lanes"}
)


def about(folder: Folder) -> dict[str, Any] | None:
    """What ``monitor.json`` says; None if nothing was ever written there.

    :raises SetupError: when it is missing from a checkpoint, or damaged.
    """
    file = folder / _ABOUT
    if not file.exists():
        if (folder / FINDINGS).exists():
            raise _corrupt(folder, file, "is missing")
        return None
    found = _read_json(folder, file)
    if not isinstance(found, dict):
        raise _corrupt(folder, file, "is not an object")
    if missing := _WRITTEN - found.keys():
        raise _corrupt(folder, file, f"does not say its {min(missing)}")
    return found


def note(folder: Folder, **changes: Any) -> None:
    """Change what ``monitor.json`` says.

    :raises SetupError: when it cannot be written.
    """
    file = folder / _ABOUT
    said = _read_json(folder, file) if file.exists() else {}
    with _writing(folder):
        text = json.dumps(said | changes, indent=1) + "\n"
        if isinstance(file, Path):
            fresh = file.with_suffix(".new")
            fresh.write_text(text)
            fresh.rename(file)
        else:
            file.write_text(text)


_BELONGS_TO: Final = {
    "mirror_topic": "set topics.mirror back",
    "topic_id": "the mirror topic was deleted and created anew",
    "cluster_id": "the Kafka cluster is another one; set kafka.bootstrap_servers back",
}


def belongs_to(folder: Folder, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Compare whose a checkpoint is, and whether this release is new enough for it.

    :raises SetupError: when it is not a checkpoint of this job, or of a newer release.
    """
    for key, remedy in _BELONGS_TO.items():
        if found[key] != wanted[key]:
            raise SetupError(
                f"the checkpoint {folder} was written for {key} {found[key]}, not {wanted[key]}: {remedy}, or run {RESET}"
            )
    for key in ("format", "snapshot_format"):
        if found[key] > wanted[key]:
            raise SetupError(
                f"the checkpoint {folder} was written by release {found['release']} ({key} {found[key]}; this is release "
                f"{wanted['release']}, which reads up to {wanted[key]}): install that release or a newer one, or run {RESET}"
            )


def _compare(folder: Folder, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    belongs_to(folder, found, wanted)
    if reason := must_migrate(found, wanted):
        raise SetupError(f"the checkpoint {folder} {reason}, or {f'run {MIGRATE}' if isinstance(folder, Path) else _ELSEWHERE}")


def _begins_anew(folder: Folder, found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Where Spark could not go on, and no batch was committed, there is nothing to carry over: what was begun goes."""
    belongs_to(folder, found, wanted)
    if not isinstance(folder, Path) or must_migrate(found, wanted) is None or read_to(folder):
        return False
    with _writing(folder):
        for part in (FINDINGS, *(() if can_continue(found, wanted) else (QUALITY,))):
            shutil.rmtree(folder / part, ignore_errors=True)
    note(folder, **wanted)
    return True


def must_migrate(found: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """Why Spark cannot go on from a checkpoint although the models can, with what else may be done; None if it can."""
    if found["format"] != wanted["format"]:
        before = found["release"]
        which = f"release {before}" if before != wanted["release"] else f"the earlier build of release {before}"
        return f"was written in format {found['format']}, not {wanted['format']}: install {which} again"
    if not can_continue(found, wanted):
        spark = found["spark"]
        return f"was written by Spark {spark}, and Spark {wanted['spark']} is older: install pyspark {spark} again"
    if found["lanes"] != wanted["lanes"]:
        return f"was written with job.lanes = {found['lanes']}, not {wanted['lanes']}: set it back"
    return None


def can_continue(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether the Spark of today reads what the Spark of then wrote: a newer line does, and each patch release of one line."""
    return _line(wanted["spark"]) >= _line(found["spark"])


def _line(spark: str) -> tuple[int, int]:
    major, minor = spark.split(".")[:2]
    return int(major), int(minor)


def of_lane(folder: AFolder, lane: int) -> AFolder:
    """Where the query of a lane has its checkpoint."""
    return folder / FINDINGS / str(lane)


def lanes_in(folder: AFolder) -> list[AFolder]:
    """Where the queries that ran have their checkpoints."""
    return sorted((lane for lane in (folder / FINDINGS).glob("*") if lane.name.isdigit()), key=lambda lane: int(lane.name))


def read_to(folder: Folder) -> dict[int, int]:
    """The next offset of each partition, as of the newest batch of its lane that is committed; empty before the first.

    :raises SetupError: when a file of it is damaged.
    """
    return {partition: offset for lane in lanes_in(folder) for partition, offset in _read_to(folder, lane).items()}


def _read_to(folder: Folder, lane: Folder) -> dict[int, int]:
    commit = newest(lane / "commits")
    if commit is None:
        return {}
    file = lane / "offsets" / commit.name
    lines = _read(folder, file).splitlines()
    topics = _parse(folder, file, lines[-1]) if lines else {}
    return {int(partition): offset for offsets in topics.values() for partition, offset in offsets.items()}


def _check_query(folder: Folder, query: Folder) -> None:
    """What can be seen without Spark: the files that the newest batch needs are there and read as what they are."""
    if not query.exists():
        return
    metadata = query / "metadata"
    offsets, commits = newest(query / "offsets"), newest(query / "commits")
    if metadata.exists():
        if "id" not in _read_json(folder, metadata):
            raise _corrupt(folder, metadata, "has no query id")
    elif offsets:
        raise _corrupt(folder, metadata, "is missing")
    for log in (offsets, commits):
        if log:
            _check_log(folder, log)
    if commits and not offsets:
        raise _corrupt(folder, query / "offsets", "is empty, but commits is not")
    for archive in sorted(query.glob("state/*/*/*.zip")) if isinstance(query, Path) else ():
        if not zipfile.is_zipfile(archive):
            raise _corrupt(folder, archive, "is not a whole RocksDB snapshot")
    if commits and query.name != QUALITY and not (state := query / "state" / "0").is_dir():
        raise _corrupt(folder, state, "is missing")


def newest(log: AFolder) -> AFolder | None:
    """The file of the newest batch in one of Spark's logs, whose files are named by batch number."""
    batches = [file for file in log.glob("*") if file.name.isdigit()] if log.is_dir() else []
    return max(batches, key=lambda file: int(file.name), default=None)


def _check_log(folder: Folder, file: Folder) -> None:
    """A version line, then JSON lines."""
    lines = _read(folder, file).splitlines()
    if not lines or lines[0] not in _LOG_VERSIONS:
        raise _corrupt(folder, file, "does not begin with a version")
    for line in lines[1:]:
        if line != "-":  # an absent source offset
            _parse(folder, file, line)


def _read_json(folder: Folder, file: Folder) -> Any:
    return _parse(folder, file, _read(folder, file))


def _read(folder: Folder, file: Folder) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise _corrupt(folder, file, f"cannot be read ({error})") from None


def _parse(folder: Folder, file: Folder, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise _corrupt(folder, file, "is not JSON") from None


def _corrupt(folder: Folder, file: Folder, why: str) -> SetupError:
    return SetupError(f"the checkpoint is damaged: {file} {why}; {remedy(folder)}")


def remedy(folder: Folder) -> str:
    """What to do about a damaged checkpoint."""
    if not isinstance(folder, Path):
        return f"{_ELSEWHERE}: the monitor then reads the mirror topic from its beginning, with the same findings"
    return f"run {RESET}, which moves {folder} away: the monitor then reads the mirror topic from its beginning, with the same findings"


_DISK: Final = re.compile(r"No space left on device|Disk quota exceeded|Read-only file system|Input/output error|File too large")
_PROBE_BYTES: Final = 1_000_000


def disk_trouble(folder: Path, said: str = "") -> str | None:
    """What is wrong with the disk under the checkpoint, in a sentence; None if it takes a file.

    :param said: what Spark said of a failure; it knows better than a file that is written a moment later.
    """
    found = _DISK.search(said)
    words = found[0] if found else None
    if words is None:
        probe = folder / "probe"
        try:
            probe.write_bytes(bytes(_PROBE_BYTES))
        except OSError as error:
            words = error.strerror
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)
    return None if words is None else f"the disk under the checkpoint {folder} fails ({words}): make room or mend it"


SPACE_NEEDED_MB: Final = 100
"""For a checkpoint and what Spark keeps beside it while it runs, with few groups (``checkpoints/README.md``)."""


def too_small(folder: Path) -> str | None:
    """That the disk has no room for a checkpoint in ``folder``, in a sentence; None if it has, or the folder takes as much already."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free_mb = shutil.disk_usage(there).free / 1e6
    taken_mb = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6 if free_mb < SPACE_NEEDED_MB else 0.0
    if free_mb + taken_mb >= SPACE_NEEDED_MB:
        return None
    return (
        f"the disk under {there} has {free_mb:.0f} MB left; a checkpoint needs {SPACE_NEEDED_MB} MB, and 100 MB more for each 10,000 "
        "groups: make room, or set job.checkpoint to a folder on another disk"
    )


@contextlib.contextmanager
def _writing(folder: Folder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"cannot write the checkpoint folder {folder}: {error.strerror}; mend that, or set job.checkpoint to one that can be"
        ) from None
