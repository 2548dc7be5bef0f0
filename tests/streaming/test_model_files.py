"""Models are kept in files that are whole, or not there, for as long as any batch may begin with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coordinator_model.snapshots import SnapshotError
from streaming import model_files
from streaming.model_files import KEPT, Place


def names(folder: Path, partition: int = 0) -> list[str]:
    return sorted(file.name for file in (folder / str(partition)).iterdir())


def test_what_was_written_is_read(tmp_path):
    places = [model_files.write(tmp_path, partition, 7, b"model %d" % partition) for partition in (0, 11)]
    assert [model_files.read(tmp_path, place) for place in places] == [b"model 0", b"model 11"]
    assert [place[:2] for place in places] == [(0, 7), (11, 7)]


def test_a_batch_that_is_repeated_may_write_the_same_again_and_something_else_beside_it(tmp_path):
    first = model_files.write(tmp_path, 0, 7, b"model")
    assert model_files.write(tmp_path, 0, 7, b"model") == first
    other = model_files.write(tmp_path, 0, 7, b"another")
    assert model_files.read(tmp_path, first) == b"model"
    assert model_files.read(tmp_path, other) == b"another"


@pytest.mark.parametrize("held", [b"", b"mode", b"modem", None])
def test_a_file_that_is_gone_or_damaged_is_said(tmp_path, held):
    place = model_files.write(tmp_path, 0, 7, b"model")
    file = tmp_path / place.file
    if held is None:
        file.unlink()
    else:
        file.write_bytes(held)
    with pytest.raises(SnapshotError, match=f"{file} is (missing|not what was written)"):
        model_files.read(tmp_path, place)


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, monkeypatch):
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        model_files.write(tmp_path, 0, 7, b"model")
    assert names(tmp_path) == []


def test_files_go_when_no_batch_can_begin_with_them_any_more(tmp_path):
    places = [model_files.write(tmp_path, 0, sequence, b"model %d" % sequence) for sequence in range(KEPT + 5)]
    other = model_files.write(tmp_path, 1, 0, b"another partition's")
    (tmp_path / "0" / f"2-{'0' * 32}.4711").touch()  # of a worker that died while it wrote
    for place in places[:-1]:
        model_files.forget(tmp_path, place)
        assert model_files.read(tmp_path, place)
    assert names(tmp_path) == sorted(place.file.name for place in places[3:])
    assert model_files.read(tmp_path, other)


def test_a_place_is_named_by_its_partition_its_turn_and_what_it_holds():
    assert Place(3, 12, "ab").file == Path("3/12-ab.snapshot")
