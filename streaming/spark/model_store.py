"""The models between two batches: in files of the checkpoint, beside Spark's state, which says which file counts.

A batch changes little of a model. So most batches keep only the rows that the model took in, and now and then a *snapshot* is written, on
which those that follow build: a model is its snapshot, and the batches behind it taken in again (``streaming.spark.model_restore``). In a
state row the same bytes would go from the store through the JVM into Python's pickles and back with every batch; in a file they are
written once, and read only by a worker that does not have the model anyway.

The traps. *Only Spark knows what is committed*: a batch may fail after its models were written, and is then repeated from the files of the
batch before. So a file is never written to again, has the digest of its content in its name, and stays until Spark itself keeps nothing
that old. *A name is a promise*: the file is on the disk before Spark hears of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack

from coordinator_model.snapshots import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streaming.spark.intake import MirrorRow


FOLDER: Final = "models"
_SNAPSHOT: Final = ".snapshot"
_BATCH: Final = ".batch"

KEPT: Final = 12
"""Files of a partition that stay behind the one that is committed; Spark keeps ten batches (``minBatchesToRetain``)."""


class SnapshotRef(NamedTuple):
    """Where a model is, as Spark's state has it."""

    partition: int  #: of the mirror topic
    sequence: int  #: counts the batches in which the partition had rows
    digest: str  #: of the file's content
    base: int  #: sequence of the snapshot that the model builds on; its own, if it is one

    @property
    def is_snapshot(self) -> bool:
        """Whether the file holds the whole model."""
        return self.base == self.sequence

    @property
    def file(self) -> Path:
        """As seen from the folder of all models."""
        return Path(str(self.partition), f"{self.sequence}-{self.digest}{_SNAPSHOT if self.is_snapshot else _BATCH}")


class Batch(NamedTuple):
    """What a model took in at once."""

    before: str  #: digest of the place that it was at
    partitions: int | None  #: of the mirror topic, as far as was known
    rows: Sequence[MirrorRow]  #: in offset order


def nowhere(partition: int) -> SnapshotRef:
    """Where a model is before it was kept for the first time."""
    return SnapshotRef(partition, sequence=-1, digest="", base=-1)


def write_snapshot(folder: Path, before: SnapshotRef, blob: bytes) -> SnapshotRef:
    """Keep a whole model.

    :param folder: of all models.
    :param before: where it was.
    :raises OSError: when it cannot be written; nothing is left that looks like it then.
    """
    sequence = before.sequence + 1
    return _write(folder, SnapshotRef(before.partition, sequence, _digest(blob), base=sequence), blob)


def write_batch(folder: Path, before: SnapshotRef, rows: Sequence[MirrorRow], partitions: int | None) -> SnapshotRef:
    """Keep what a model took in since ``before``; raises as :func:`write_snapshot`."""
    blob: bytes = msgpack.packb(Batch(before.digest, partitions, rows))
    return _write(folder, before._replace(sequence=before.sequence + 1, digest=_digest(blob)), blob)


def _write(folder: Path, place: SnapshotRef, blob: bytes) -> SnapshotRef:
    file = folder / place.file
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(f".{os.getpid()}")
    try:
        with fresh.open("wb") as stream:
            stream.write(blob)
            stream.flush()
            _flush(stream.fileno())
        fresh.rename(file)
    finally:
        fresh.unlink(missing_ok=True)
    _to_disk(file.parent)
    return place


def _flush(descriptor: int) -> None:
    """To the disk itself: on macOS ``fsync`` leaves the bytes in the drive's cache, and not every file system takes what does not."""
    full: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, full)
            return
    os.fsync(descriptor)


def _to_disk(folder: Path) -> None:
    """See that a folder's newest names outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _flush(descriptor)
    finally:
        os.close(descriptor)


def read(folder: Path, place: SnapshotRef) -> tuple[bytes, list[Batch]]:
    """A model: its snapshot, and what it took in since, oldest first.

    :raises SnapshotError: when a file is gone, or not what it was.
    """
    batches: list[Batch] = []
    while not place.is_snapshot:
        batches.append(_batch(folder / place.file, _content(folder, place)))
        place = place._replace(sequence=place.sequence - 1, digest=batches[-1].before)
    return _content(folder, place), batches[::-1]


def _batch(file: Path, blob: bytes) -> Batch:
    fields: Any = msgpack.unpackb(blob, use_list=False)
    try:
        return Batch(*fields)
    except TypeError:
        raise SnapshotError(f"{file} was written by a newer release") from None


def _content(folder: Path, place: SnapshotRef) -> bytes:
    file = folder / place.file
    try:
        blob = file.read_bytes()
    except FileNotFoundError:
        raise SnapshotError(f"{file} is missing") from None
    if _digest(blob) != place.digest:
        raise SnapshotError(f"{file} is not what was written")
    return blob


def partitions_in(folder: Path) -> list[int]:
    """The mirror partitions that have had a model."""
    return [int(each.name) for each in folder.glob("*") if each.name.isdigit()]


def forget(folder: Path, committed: SnapshotRef) -> None:
    """Delete what no batch can begin with any more, now that one has begun with ``committed``."""
    of_partition = (folder / committed.file).parent
    names = [file.name for file in of_partition.iterdir()]
    needed = _base(names, committed.sequence - KEPT)
    for name in names:
        if _sequence(name) < needed:
            (of_partition / name).unlink(missing_ok=True)


def _base(names: Iterable[str], sequence: int) -> int:
    """Of the snapshot on which the model of that sequence builds; 0 if it cannot be told.

    Where there is a batch of the same sequence, a snapshot is what a failed attempt left, or the other way round: then an earlier one is
    taken, and a few files more stay.
    """
    batches = {_sequence(name) for name in names if name.endswith(_BATCH)}
    snapshots = (_sequence(name) for name in names if name.endswith(_SNAPSHOT))
    return max((each for each in snapshots if each <= sequence and each not in batches), default=0)


def _sequence(name: str) -> int:
    return int(name.partition("-")[0])


def _digest(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()[:32]
