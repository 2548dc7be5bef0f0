"""The checkpoint folder: refused in a sentence when it belongs to something else or is damaged, held by one monitor at a time."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import zipfile

import pytest

from streaming.errors import SetupError
from streaming.kafka.topics import Mirror
from streaming.spark import checkpoint

MIRROR = Mirror("mirror", "topic-id", "cluster-id", 4)


@pytest.fixture
def folder(tmp_path):
    """As Spark leaves it after a few batches."""
    checkpoint.check(tmp_path, MIRROR, lanes=1)
    query = tmp_path / "findings" / "0"
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


def refusal(folder, mirror=MIRROR, lanes=1):
    with pytest.raises(SetupError) as refused:
        checkpoint.check(folder, mirror, lanes=lanes)
    return str(refused.value)


def test_a_sound_checkpoint_is_taken_up_again(folder):
    checkpoint.check(folder, MIRROR, lanes=1)


@pytest.mark.parametrize(
    ("mirror", "lanes", "words"),
    [
        (MIRROR._replace(topic="other"), 1, "mirror_topic mirror, not other: set topics.mirror back"),
        (MIRROR._replace(topic_id="new"), 1, "topic_id topic-id, not new: the mirror topic was deleted and created anew"),
        (MIRROR._replace(cluster_id="new"), 1, "cluster_id cluster-id, not new: the Kafka cluster is another one"),
        (MIRROR, 2, "with job.lanes = 1, not 2: set it back, or run rebalance-monitor checkpoint migrate"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(folder, mirror, lanes, words):
    assert words in refusal(folder, mirror, lanes)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (
            {"format": 99, "release": "9.9"},
            rf"by release 9\.9 \(format 99; .* reads up to {checkpoint.FORMAT}\): install .* run .*checkpoint reset",
        ),
        ({"snapshot_format": 99, "release": "9.9"}, r"by release 9\.9 \(snapshot_format 99; .* run .*checkpoint reset"),
        (
            {"spark": "99.1.3", "release": "0.0"},
            r"by Spark 99\.1\.3, and Spark .* is older: install pyspark 99\.1\.3 again, or run .*checkpoint migrate",
        ),
        (
            {"format": 0, "release": "0.0"},
            rf"in format 0, not {checkpoint.FORMAT}: install release 0\.0 again, or run .*checkpoint migrate",
        ),
    ],
)
def test_a_checkpoint_that_this_release_cannot_go_on_from_is_refused_with_the_command_that_helps(folder, written, words):
    checkpoint.note(folder, **written)
    assert re.search(words, refusal(folder))


@pytest.mark.parametrize("written", [{"lanes": 4}, {"spark": "99.1.3"}, {"format": 0}])
def test_a_checkpoint_in_which_nothing_was_committed_is_begun_anew_under_other_lanes_or_another_spark(folder, written):
    """It said: run checkpoint migrate; and that said: start the monitor."""
    shutil.rmtree(folder / "findings" / "0" / "commits")
    checkpoint.note(folder, **written)
    assert checkpoint.check(folder, MIRROR, lanes=1) == [
        f"the checkpoint {folder} holds nothing that was committed: it is begun anew"
    ]
    assert not (folder / "findings").exists()
    assert checkpoint.check(folder, MIRROR, lanes=1) == []


def test_a_checkpoint_of_another_mirror_is_not_touched_though_nothing_was_committed(folder):
    shutil.rmtree(folder / "findings" / "0" / "commits")
    checkpoint.note(folder, lanes=4)
    assert "mirror_topic" in refusal(folder, MIRROR._replace(topic="other"))
    assert (folder / "findings" / "0" / "offsets").exists()


def test_another_build_of_the_same_release_is_not_told_to_install_that_release(folder):
    release = json.loads((folder / "monitor.json").read_text())["release"]
    checkpoint.note(folder, format=0)
    assert f"install the earlier build of release {release} again, or run" in refusal(folder)


def test_a_disk_with_too_little_room_is_refused_before_spark_fails_on_it(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(12_000_000, 0, 12_000_000))
    said = refusal(tmp_path)
    assert f"the disk under {tmp_path} has 12 MB left; a checkpoint needs 100 MB" in said
    (tmp_path / "quality").mkdir()
    with (tmp_path / "quality" / "large").open("wb") as file:
        file.truncate(95_000_000)
    assert checkpoint.check(tmp_path, MIRROR, lanes=1) == [], "it holds a checkpoint that takes as much already"


def test_a_checkpoint_that_does_not_say_whose_it_is_is_damaged(folder):
    about = json.loads((folder / "monitor.json").read_text())
    (folder / "monitor.json").write_text(json.dumps({key: about[key] for key in about if key != "cluster_id"}))
    assert "monitor.json does not say its cluster_id" in refusal(folder)


def test_a_patch_release_of_spark_is_no_matter(folder):
    about = json.loads((folder / "monitor.json").read_text())
    checkpoint.note(folder, spark=about["spark"] + ".9")
    assert checkpoint.check(folder, MIRROR, lanes=1) == []


def test_a_newer_spark_goes_on_and_says_so_once(folder):
    about = json.loads((folder / "monitor.json").read_text())
    checkpoint.note(folder, spark="3.5.9")
    assert checkpoint.check(folder, MIRROR, lanes=1) == [
        f"the checkpoint {folder} was written by Spark 3.5.9; Spark {about['spark']} continues it"
    ]
    assert json.loads((folder / "monitor.json").read_text()) == about
    assert checkpoint.check(folder, MIRROR, lanes=1) == []


def test_partitions_that_the_mirror_has_gained_are_told_once(folder):
    (said,) = checkpoint.check(folder, MIRROR._replace(partitions=6), lanes=1)
    assert "mirror has 6 partitions, where it had 4" in said
    assert checkpoint.check(folder, MIRROR._replace(partitions=6), lanes=1) == []


def test_how_far_it_has_read_is_that_of_the_newest_committed_batch(folder):
    (folder / "findings/0/offsets/11").write_text('v1\n{"batchWatermarkMs":0}\n{"mirror":{"0":9}}')
    (folder / "findings/0/offsets/10").write_text('v1\n{"batchWatermarkMs":0}\n{"mirror":{"0":7,"1":3}}')
    assert checkpoint.read_to(folder) == {0: 7, 1: 3}


def test_a_checkpoint_without_a_batch_has_read_nothing(tmp_path):
    assert checkpoint.read_to(tmp_path) == {}


@pytest.mark.parametrize("words", ["No space left on device", "Read-only file system", "Disk quota exceeded"])
def test_what_spark_says_of_the_disk_is_no_damage(folder, words):
    said = f"CANNOT_LOAD_STATE_STORE ... Caused by: java.io.IOException: {words}"
    assert f"the disk under the checkpoint {folder} fails ({words})" in checkpoint.disk_trouble(folder, said)


def test_a_sound_disk_has_no_trouble_and_keeps_nothing_of_the_probe(folder):
    before = sorted(folder.rglob("*"))
    assert checkpoint.disk_trouble(folder, "CANNOT_LOAD_STATE_STORE: a file is missing") is None
    assert sorted(folder.rglob("*")) == before


def test_a_disk_that_takes_nothing_is_found_by_trying(folder):
    assert "fails (File name too long)" in checkpoint.disk_trouble(folder / ("x" * 300))


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("monitor.json", "{", "monitor.json is not JSON"),
        ("monitor.json", "[]", "monitor.json is not an object"),
        ("monitor.json", None, "monitor.json is missing"),
        ("findings/0/metadata", None, "findings/0/metadata is missing"),
        ("findings/0/metadata", "{}", "findings/0/metadata has no query id"),
        ("findings/0/offsets/10", "", "findings/0/offsets/10 does not begin with a version"),
        ("findings/0/offsets/10", "v1\n{\x00", "findings/0/offsets/10 is not JSON"),
        ("findings/0/commits/10", "garbage", "findings/0/commits/10 does not begin with a version"),
        ("findings/0/state/0/0/9.zip", "PK", "findings/0/state/0/0/9.zip is not a whole RocksDB snapshot"),
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
    assert f"run rebalance-monitor checkpoint reset, which moves {folder} away" in message


def test_a_state_that_is_gone_is_named_too(folder):
    shutil.rmtree(folder / "findings/0/state")
    assert re.search(r"findings/0/state/0 is missing; run .*checkpoint reset", refusal(folder))


def test_bytes_that_are_no_text_are_damage_too(folder):
    (folder / "findings/0/commits/10").write_bytes(b"\xff\xfe")
    assert "findings/0/commits/10 cannot be read" in refusal(folder)


def test_a_second_monitor_is_turned_away(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_LOCK_WAIT_S", 0.2)
    refused = pytest.raises(SetupError, match="another monitor is running on the checkpoint")
    with checkpoint.locked(tmp_path), refused, checkpoint.locked(tmp_path):
        pytest.fail("both hold the lock")
    with checkpoint.locked(tmp_path):
        pass


def test_a_second_monitor_says_what_it_waits_for(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_LOCK_WAIT_S", 0.4)
    monkeypatch.setattr(checkpoint, "_SAY_LOCKED_S", 0.1)
    said = []
    refused = pytest.raises(SetupError, match="another monitor is running on the checkpoint")
    with checkpoint.locked(tmp_path), refused, checkpoint.locked(tmp_path, tell=said.append):
        pytest.fail("both hold the lock")
    assert said == [f"another monitor holds the checkpoint {tmp_path}; waiting up to 0 s for its end"]


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
