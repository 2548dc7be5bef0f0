"""Snapshots that a new checkpoint begins with: how the models move from one Spark checkpoint to another.

Spark reads its own state only where it wrote it: in a query that reads the same partitions, and with no promise over releases of its
own. The models do not care. So a migration takes them out, and the query that begins anew is given them back, partition by partition,
and the offsets at which they stand.

The trap: a seed counts only as long as its partition has no state. Once that has been written, the seed is history, though the file is
still there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from coordinator_model.snapshots import next_offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

FOLDER: Final = "seeds"

_SUFFIX: Final = ".snapshot"
_EARLIEST: Final = -2


def write(folder: Path, snapshots: Mapping[int, bytes]) -> None:
    """Keep the snapshot of each partition in a folder of their own.

    :raises OSError: when they cannot be written.
    """
    folder.mkdir(parents=True)
    for partition, blob in snapshots.items():
        (folder / f"{partition}{_SUFFIX}").write_bytes(blob)


def read(folder: Path, partition: int) -> bytes | None:
    """The snapshot of a partition, None if there is none."""
    try:
        return (folder / f"{partition}{_SUFFIX}").read_bytes()
    except FileNotFoundError:
        return None


def starting_offsets(folder: Path, topic: str, partitions: Iterable[int]) -> str:
    """Where to begin reading these partitions, in the words of Spark's Kafka source: where the snapshot stands, else the earliest record.

    :raises SnapshotError: when a snapshot is none.
    """
    offsets = {}
    for partition in partitions:
        blob = read(folder, partition)
        stands_at = None if blob is None else next_offset(blob)
        offsets[str(partition)] = _EARLIEST if stands_at is None else stands_at
    return json.dumps({topic: offsets})
