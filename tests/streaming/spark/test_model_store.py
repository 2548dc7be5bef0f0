"""Models are kept in files that are whole, or not there, for as long as any batch may begin with them."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from coordinator_model.snapshots import SnapshotError
from streaming.spark import model_store
from streaming.spark.model_store import KEPT, SnapshotRef


def write_snapshot(folder: Path, partition: int, sequence: int, blob: bytes) -> SnapshotRef:
    return model_store.write_snapshot(folder, SnapshotRef(partition, sequence - 1, "", 0), blob)


def names(folder: Path, partition: int = 0) -> list[str]:
    return sorted(file.name for file in (folder / str(partition)).iterdir())


def test_what_was_written_is_read(tmp_path):
    places = [write_snapshot(tmp_path, partition, 7, b"model %d" % partition) for partition in (0, 11)]
    assert [model_store.read(tmp_path, place) for place in places] == [(b"model 0", []), (b"model 11", [])]
    assert [place[:2] for place in places] == [(0, 7), (11, 7)]


def test_a_batch_that_is_repeated_may_write_the_same_again_and_something_else_beside_it(tmp_path):
    first = write_snapshot(tmp_path, 0, 7, b"model")
    assert write_snapshot(tmp_path, 0, 7, b"model") == first
    other = write_snapshot(tmp_path, 0, 7, b"another")
    assert model_store.read(tmp_path, first) == (b"model", [])
    assert model_store.read(tmp_path, other) == (b"another", [])


@pytest.mark.parametrize("held", [b"", b"mode", b"modem", None])
def test_a_file_that_is_gone_or_damaged_is_said(tmp_path, held):
    place = write_snapshot(tmp_path, 0, 7, b"model")
    file = tmp_path / place.file
    if held is None:
        file.unlink()
    else:
        file.write_bytes(held)
    with pytest.raises(SnapshotError, match=f"{file} is (missing|not what was written)"):
        model_store.read(tmp_path, place)


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, monkeypatch):
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_snapshot(tmp_path, 0, 7, b"model")
    assert names(tmp_path) == []


def test_on_macos_a_file_is_on_the_disk_itself_before_its_name_is_there(tmp_path, monkeypatch):
    flushed = []

    def fcntl_of_macos(descriptor: int, command: int) -> None:
        flushed.append((command, names(tmp_path)))

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", fcntl_of_macos)
    place = write_snapshot(tmp_path, 0, 7, b"model")
    assert flushed == [(51, [f"{place.file.stem}.{os.getpid()}"]), (51, [place.file.name])]


def test_a_file_system_of_macos_that_cannot_reach_the_disk_does_with_fsync(tmp_path, monkeypatch):
    def refused(_descriptor: int, _command: int) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    flushed = []
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", refused)
    monkeypatch.setattr(os, "fsync", flushed.append)
    assert model_store.read(tmp_path, write_snapshot(tmp_path, 0, 7, b"model")) == (b"model", [])
    assert len(flushed) == 2


ROWS = [(0, 5, 1_700_000_000_000, b"g", b"frame", b"envelope"), (0, 6, 1_700_000_000_001, None, None, None)]


def test_a_batch_builds_on_the_place_before_down_to_a_snapshot(tmp_path):
    places = [write_snapshot(tmp_path, 3, 7, b"model")]
    for rows, partitions in ((ROWS[:1], 4), (ROWS[1:], None)):
        places.append(model_store.write_batch(tmp_path, places[-1], rows, partitions))
    assert [(place.partition, place.sequence, place.base) for place in places] == [(3, 7, 7), (3, 8, 7), (3, 9, 7)]
    blob, batches = model_store.read(tmp_path, places[-1])
    assert blob == b"model"
    assert [(list(batch.rows), batch.partitions) for batch in batches] == [(ROWS[:1], 4), (ROWS[1:], None)]


def test_of_two_attempts_at_a_batch_the_one_that_was_committed_counts(tmp_path):
    base = write_snapshot(tmp_path, 0, 7, b"model")
    failed, committed = (model_store.write_batch(tmp_path, base, rows, 4) for rows in (ROWS[:1], ROWS))
    write_snapshot(tmp_path, 0, 8, b"of another attempt")
    last = model_store.write_batch(tmp_path, committed, ROWS[:1], 4)
    assert failed != committed
    assert [list(batch.rows) for batch in model_store.read(tmp_path, last)[1]] == [ROWS, ROWS[:1]]


def test_a_hole_in_the_chain_is_said(tmp_path):
    base = write_snapshot(tmp_path, 0, 7, b"model")
    between = model_store.write_batch(tmp_path, base, ROWS, 4)
    last = model_store.write_batch(tmp_path, between, ROWS, 4)
    (tmp_path / between.file).unlink()
    with pytest.raises(SnapshotError, match=f"{tmp_path / between.file} is missing"):
        model_store.read(tmp_path, last)


@pytest.mark.parametrize("every", [1, 2, 9, 30])
def test_files_go_when_no_batch_can_begin_with_them_any_more(tmp_path, every):
    """Whatever Spark may go back to can be read at any time."""
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / f"2-{'0' * 32}.4711").touch()  # of a worker that died while it wrote
    other = write_snapshot(tmp_path, 1, 0, b"another partition's")
    places = [write_snapshot(tmp_path, 0, 0, b"model 0")]
    for sequence in range(1, 100):
        if sequence % every == 0:
            places.append(write_snapshot(tmp_path, 0, sequence, b"model %d" % sequence))
        else:
            places.append(model_store.write_batch(tmp_path, places[-1], ROWS, sequence))
        model_store.forget(tmp_path, places[-2])
        for place in places[-KEPT - 1 :]:
            model_store.read(tmp_path, place)
    assert len(names(tmp_path)) <= KEPT + 2 * every
    assert model_store.read(tmp_path, other)


def test_a_snapshot_that_a_failed_attempt_left_is_not_what_files_are_measured_by(tmp_path):
    place = write_snapshot(tmp_path, 0, 0, b"model")
    write_snapshot(tmp_path, 0, 1, b"of a failed attempt")
    for _ in range(3 * KEPT):
        place = model_store.write_batch(tmp_path, place, ROWS, 4)
        model_store.forget(tmp_path, place)
    assert model_store.read(tmp_path, place)[0] == b"model"


def test_a_place_is_named_by_its_partition_its_turn_and_what_it_holds():
    assert SnapshotRef(3, 12, "ab", base=12).file == Path("3/12-ab.snapshot")
    assert SnapshotRef(3, 12, "ab", base=9).file == Path("3/12-ab.batch")
