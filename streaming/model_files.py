"""The models between two batches: each in a file of its own beside Spark's state, which says which file counts.

A batch changes little of a model, but all of it is written anew. In a state row those megabytes would go from the store through the JVM
into Python's pickles and back with every batch; in a file they are written once, and read only by a worker that does not have the model
anyway.

The traps. *Only Spark knows what is committed*: a batch may fail after its models were written, and is then repeated from the files of the
batch before. So a file is never written to again, has the digest of its content in its name, and stays until Spark itself keeps nothing
that old. *A name is a promise*: the file is on the disk before Spark hears of it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final, NamedTuple

from coordinator_model.snapshots import SnapshotError

FOLDER: Final = "models"
_SUFFIX: Final = ".snapshot"

KEPT: Final = 12
"""Files of a partition that stay behind the one that is committed; Spark keeps ten batches (``minBatchesToRetain``)."""


class Place(NamedTuple):
    """Where a model is, as Spark's state has it."""

    partition: int  #: of the mirror topic
    sequence: int  #: counts the batches in which the partition had rows
    digest: str  #: of the content

    @property
    def file(self) -> Path:
        """As seen from the folder of all models."""
        return Path(str(self.partition), f"{self.sequence}-{self.digest}{_SUFFIX}")


def write(folder: Path, partition: int, sequence: int, blob: bytes) -> Place:
    """Keep a snapshot.

    :param folder: of all models.
    :raises OSError: when it cannot be written; nothing is left that looks like it then.
    """
    place = Place(partition, sequence, _digest(blob))
    file = folder / place.file
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(f".{os.getpid()}")
    try:
        with fresh.open("wb") as stream:
            stream.write(blob)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.rename(file)
    finally:
        fresh.unlink(missing_ok=True)
    _to_disk(file.parent)
    return place


def _to_disk(folder: Path) -> None:
    """See that a folder's newest names outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(folder: Path, place: Place) -> bytes:
    """The snapshot that was kept there.

    :raises SnapshotError: when it is gone, or not what it was.
    """
    file = folder / place.file
    try:
        blob = file.read_bytes()
    except FileNotFoundError:
        raise SnapshotError(f"{file} is missing") from None
    if _digest(blob) != place.digest:
        raise SnapshotError(f"{file} is not what was written")
    return blob


def forget(folder: Path, committed: Place) -> None:
    """Delete what no batch can begin with any more, now that one has begun with ``committed``."""
    with os.scandir(folder / committed.file.parent) as files:
        old = [file.path for file in files if int(file.name.partition("-")[0]) < committed.sequence - KEPT]
    for path in old:
        Path(path).unlink(missing_ok=True)


def _digest(blob: bytes) -> str:
    return hashlib.blake2b(blob, digest_size=16).hexdigest()
