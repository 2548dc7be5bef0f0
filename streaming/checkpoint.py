"""The checkpoint folder: whose it is, whether it can be used, and that only one monitor uses it (``checkpoints/README.md``).

The trap: Spark fails late and obscurely on a checkpoint that belongs to something else. Another number of shuffle
partitions, another mirror topic, or the same name deleted and made anew each leave state that looks right and is wrong. So what it
belongs to is written beside it and compared before Spark starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import zipfile
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from streaming.sinks.topics import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from streaming.sinks.topics import Mirror

FORMAT: Final = 1
"""Raised when state of an earlier release can no longer be read."""

FINDINGS: Final = "findings"
QUALITY: Final = "quality"

_ABOUT: Final = "monitor.json"
_LOCK: Final = "lock"
_LOCK_WAIT_S: Final = 20.0
_SPARK_VERSIONS: Final = ("v1", "v2")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold the checkpoint; gives the lock's file descriptor, which the JVM is to inherit: it may outlive a killed Python.

    :raises SetupError: when another monitor holds it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise SetupError(
            f"cannot write the checkpoint folder {folder}: {error.strerror}; set job.checkpoint to one that can be"
        ) from None
    try:
        _lock(descriptor, folder)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    deadline = time.monotonic() + _LOCK_WAIT_S  # the JVM of a killed monitor needs a moment to notice
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise SetupError(
                    f"another monitor is running on the checkpoint {folder}; stop it, or set another job.checkpoint"
                ) from None
            time.sleep(0.1)
        else:
            return


def check(folder: Path, mirror: Mirror, *, shuffle_partitions: int) -> None:
    """Compare the checkpoint with what the job is about to do, and note it in a new one.

    :raises SetupError: when it belongs to something else or is damaged.
    """
    about = {
        "format": FORMAT,
        "mirror_topic": mirror.topic,
        "topic_id": mirror.topic_id,
        "cluster_id": mirror.cluster_id,
        "shuffle_partitions": shuffle_partitions,
    }
    file = folder / _ABOUT
    if file.exists():
        _compare(folder, _read_json(folder, file), about)
    elif (folder / FINDINGS).exists():
        raise _corrupt(folder, file, "is missing")
    else:
        _write(file, about | {"release": version("rebalance-monitor")})
    for query in (FINDINGS, QUALITY):
        _check_query(folder, folder / query)


_REMEDIES: Final = {
    "format": "it was written by another release; start with a new folder (job.checkpoint), the mirror topic is read again",
    "mirror_topic": "set topics.mirror back, or start with a new folder (job.checkpoint)",
    "topic_id": "the mirror topic was deleted and created anew; start with a new folder (job.checkpoint)",
    "cluster_id": "the Kafka cluster is another one; set kafka.bootstrap_servers back, or start with a new folder (job.checkpoint)",
    "shuffle_partitions": "set job.shuffle_partitions back, or start with a new folder (job.checkpoint)",
}


def _compare(folder: Path, found: Any, wanted: dict[str, Any]) -> None:
    if not isinstance(found, dict):
        raise _corrupt(folder, folder / _ABOUT, "is not an object")
    for key, remedy in _REMEDIES.items():
        if found.get(key) != wanted[key]:
            raise SetupError(f"the checkpoint {folder} was written for {key} {found.get(key)}, not {wanted[key]}: {remedy}")


def _check_query(folder: Path, query: Path) -> None:
    """What can be seen without Spark: the files that the newest batch needs are there and read as what they are."""
    if not query.exists():
        return
    metadata = query / "metadata"
    offsets, commits = _newest(query / "offsets"), _newest(query / "commits")
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
    for archive in sorted(query.glob("state/*/*/*.zip")):
        if not zipfile.is_zipfile(archive):
            raise _corrupt(folder, archive, "is not a whole RocksDB snapshot")
    if commits and query.name == FINDINGS and not (query / "state" / "0").is_dir():
        raise _corrupt(folder, query / "state", "is missing")


def _newest(log: Path) -> Path | None:
    """The file of the newest batch in one of Spark's logs, whose files are named by batch number."""
    batches = [file for file in log.glob("*") if file.name.isdigit()] if log.is_dir() else []
    return max(batches, key=lambda file: int(file.name), default=None)


def _check_log(folder: Path, file: Path) -> None:
    """A version line, then JSON lines."""
    lines = _read(folder, file).splitlines()
    if not lines or lines[0] not in _SPARK_VERSIONS:
        raise _corrupt(folder, file, "does not begin with a version")
    for line in lines[1:]:
        if line != "-":  # an absent source offset
            _parse(folder, file, line)


def _read_json(folder: Path, file: Path) -> Any:
    return _parse(folder, file, _read(folder, file))


def _read(folder: Path, file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise _corrupt(folder, file, f"cannot be read ({error})") from None


def _parse(folder: Path, file: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise _corrupt(folder, file, "is not JSON") from None


def _corrupt(folder: Path, file: Path, why: str) -> SetupError:
    return SetupError(f"the checkpoint is damaged: {file} {why}; {remedy(folder)}")


def remedy(folder: Path) -> str:
    """What to do about a damaged checkpoint."""
    return f"move {folder} away and start again: the monitor then reads the mirror topic from its beginning, with the same findings"


def _write(file: Path, value: dict[str, Any]) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(value, indent=1) + "\n")
    fresh.rename(file)
