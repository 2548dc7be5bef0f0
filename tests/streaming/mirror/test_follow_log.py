"""Following a log that is written and rotated."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.mirror.broker_log.follow import FollowedFile, follow
from streaming.mirror.broker_log.reader import RequestLogReader
from tests.streaming.mirror.request_log_lines import heartbeat


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "kafka-request.log"
    path.write_bytes(b"old\n")
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


def all_of(file: FollowedFile) -> bytes:
    return b"".join(file.read() for _ in range(5))


def test_what_the_file_held_at_first_is_passed_over(path):
    file = FollowedFile(path)
    assert all_of(file) == b""
    append(path, b"new\n")
    assert all_of(file) == b"new\n"


def test_what_was_written_before_a_rotation_comes_before_the_new_file(path):
    file = FollowedFile(path)
    append(path, b"last\n")
    path.rename(path.with_suffix(".log.1"))
    path.write_bytes(b"first\n")
    assert all_of(file).split() == [b"last", b"first"]


def test_a_file_that_is_moved_before_the_new_one_exists_is_kept(path):
    file = FollowedFile(path)
    moved = path.with_suffix(".log.1")
    path.rename(moved)
    append(moved, b"last\n")
    assert all_of(file) == b"last\n"
    path.write_bytes(b"first\n")
    assert all_of(file).split() == [b"first"]


def test_a_file_that_is_cut_back_begins_anew(path):
    append(path, b"more\n")
    file = FollowedFile(path)
    path.write_bytes(b"new\n")
    assert all_of(file).split() == [b"new"]


def test_a_file_that_does_not_exist_yet_is_waited_for(tmp_path):
    file = FollowedFile(tmp_path / "later.log")
    assert all_of(file) == b""
    (tmp_path / "later.log").write_bytes(b"first\n")
    assert all_of(file) == b"first\n"


def test_lines_are_told_as_they_come(path, monkeypatch):
    """A line that comes in two portions, and across a rotation."""
    found = []
    reader = RequestLogReader(found.append, held_back_us=0, held_at_least=0)
    line, file = heartbeat(0), FollowedFile(path)

    def pauses():
        append(path, line[:100])
        yield
        append(path, line[100:])
        yield
        path.rename(path.with_suffix(".log.1"))
        path.write_bytes(heartbeat(1_000))
        yield
        raise KeyboardInterrupt

    pause = pauses()
    monkeypatch.setattr("time.sleep", lambda _: next(pause))
    with pytest.raises(KeyboardInterrupt):
        follow([file], reader)
    assert [record.kind.value for record in found if record.group] == ["open", "req", "res", "req", "res"]
