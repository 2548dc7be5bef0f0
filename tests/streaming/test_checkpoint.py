"""The checkpoint folder: refused in a sentence when it belongs to something else or is damaged, held by one monitor at a time."""

from __future__ import annotations

import fcntl
import json
import os
import zipfile

import pytest

from streaming import checkpoint
from streaming.sinks.topics import Mirror, SetupError

MIRROR = Mirror("mirror", "topic-id", "cluster-id", 4)


@pytest.fixture
def folder(tmp_path):
    """As Spark leaves it after a few batches."""
    checkpoint.check(tmp_path, MIRROR, shuffle_partitions=1)
    query = tmp_path / "findings"
    for log in ("offsets", "commits"):
        (query / log).mkdir(parents=True)
        for batch in (8, 9, 10):
            (query / log / str(batch)).write_text('v1\n{"batchWatermarkMs":0}\n{"mirror":{"0":5}}')
    (query / "metadata").write_text('{"id":"1"}')
    store = query / "state" / "0" / "0"
    store.mkdir(parents=True)
    with zipfile.ZipFile(store / "9.zip", "w") as archive:
        archive.writestr("CURRENT", "x")
    return tmp_path


def refusal(folder, mirror=MIRROR, shuffle_partitions=1):
    with pytest.raises(SetupError) as refused:
        checkpoint.check(folder, mirror, shuffle_partitions=shuffle_partitions)
    return str(refused.value)


def test_a_sound_checkpoint_is_taken_up_again(folder):
    checkpoint.check(folder, MIRROR, shuffle_partitions=1)


@pytest.mark.parametrize(
    ("mirror", "shuffle_partitions", "words"),
    [
        (MIRROR._replace(topic="other"), 1, "mirror_topic mirror, not other: set topics.mirror back"),
        (MIRROR._replace(topic_id="new"), 1, "topic_id topic-id, not new: the mirror topic was deleted and created anew"),
        (MIRROR._replace(cluster_id="new"), 1, "cluster_id cluster-id, not new: the Kafka cluster is another one"),
        (MIRROR, 2, "shuffle_partitions 1, not 2: set job.shuffle_partitions back"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(folder, mirror, shuffle_partitions, words):
    assert words in refusal(folder, mirror, shuffle_partitions)


def test_a_checkpoint_of_another_release_is_refused(folder):
    about = json.loads((folder / "monitor.json").read_text())
    (folder / "monitor.json").write_text(json.dumps(about | {"format": 99}))
    assert "format 99, not 1: it was written by another release" in refusal(folder)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("monitor.json", "{", "monitor.json is not JSON"),
        ("monitor.json", "[]", "monitor.json is not an object"),
        ("monitor.json", None, "monitor.json is missing"),
        ("findings/metadata", None, "findings/metadata is missing"),
        ("findings/metadata", "{}", "findings/metadata has no query id"),
        ("findings/offsets/10", "", "findings/offsets/10 does not begin with a version"),
        ("findings/offsets/10", "v1\n{\x00", "findings/offsets/10 is not JSON"),
        ("findings/commits/10", "garbage", "findings/commits/10 does not begin with a version"),
        ("findings/state/0/0/9.zip", "PK", "findings/state/0/0/9.zip is not a whole RocksDB snapshot"),
    ],
)
def test_a_damaged_file_is_named_with_the_remedy(folder, file, content, words):
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    message = refusal(folder)
    assert message.startswith("the checkpoint is damaged: ")
    assert words in message
    assert f"move {folder} away" in message


def test_bytes_that_are_no_text_are_damage_too(folder):
    (folder / "findings/commits/10").write_bytes(b"\xff\xfe")
    assert "findings/commits/10 cannot be read" in refusal(folder)


def test_a_second_monitor_is_turned_away(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_LOCK_WAIT_S", 0.2)
    refused = pytest.raises(SetupError, match="another monitor is running on the checkpoint")
    with checkpoint.locked(tmp_path), refused, checkpoint.locked(tmp_path):
        pytest.fail("both hold the lock")
    with checkpoint.locked(tmp_path):
        pass


def test_the_lock_lasts_as_long_as_anyone_who_inherited_it(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_LOCK_WAIT_S", 0.2)
    with checkpoint.locked(tmp_path) as descriptor:
        heir = os.dup(descriptor)
    with pytest.raises(SetupError, match="another monitor"), checkpoint.locked(tmp_path):
        pytest.fail("the heir holds the lock")
    fcntl.flock(heir, fcntl.LOCK_UN)
    os.close(heir)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    refused = pytest.raises(SetupError, match="cannot write the checkpoint folder")
    with refused, checkpoint.locked(tmp_path / "file" / "x"):
        pytest.fail("made a folder in a file")
