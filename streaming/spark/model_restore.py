"""A model out of its files: the snapshot, and the batches behind it taken in again.

The trap: what is taken in again may be judged otherwise than the first time, by another release or under other settings. So what comes of
it is not thrown away, but said once more; findings have the same ids, and who has heard them hears nothing new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from streaming.spark import model_store
from streaming.spark.intake import Taken, take_in

if TYPE_CHECKING:
    from pathlib import Path

    from coordinator_model.settings import Settings
    from streaming.spark.intake import Model
    from streaming.spark.model_store import SnapshotRef


M = TypeVar("M", bound="Model")


class Restored(NamedTuple, Generic[M]):
    """A model, and what it said on the way."""

    model: M
    again: Taken  #: of each finding only its newest state: it may have opened and ended meanwhile
    snapshot_bytes: int
    rows: int  #: that were taken in again


def restore(model: type[M], folder: Path, place: SnapshotRef, settings: Settings) -> Restored[M]:
    """The model that was kept at ``place``.

    :param folder: of all models.
    :raises coordinator_model.snapshots.SnapshotError: when a file is gone, or not what it was.
    """
    blob, batches = model_store.read(folder, place)
    restored = model.restore(blob, settings=settings)
    taken = [take_in(restored, batch.rows, batch.partitions) for batch in batches]
    newest = {finding.id: finding for each in taken for finding in each.findings}
    again = Taken(list(newest.values()), [aside for each in taken for aside in each.set_aside])
    return Restored(restored, again, len(blob), sum(len(batch.rows) for batch in batches))
