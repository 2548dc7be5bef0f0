"""What an operator does with a checkpoint by command: look into it, put it away. Carrying it over needs Spark: see the real tests."""

from __future__ import annotations

import shutil

import pytest
from typer.testing import CliRunner

from streaming.cli import app
from streaming.kafka.topics import Mirror
from streaming.spark import checkpoint

MIRROR = Mirror("mirror", "topic-id", "cluster-id", 2)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    checkpoint.check(folder, MIRROR, lanes=1)
    lane = folder / "findings" / "0"
    for log in ("offsets", "commits"):
        (lane / log).mkdir(parents=True)
        (lane / log / "8").write_text('v1\n{"batchWatermarkMs":0}\n{"mirror":{"0":5000,"1":7}}')
    (lane / "metadata").write_text('{"id":"1"}')
    (folder / "quality").mkdir()
    (folder / "quality" / "metadata").write_text('{"id":"2"}')
    return folder


@pytest.fixture
def call(tmp_path, folder):
    file = tmp_path / "monitor.toml"
    file.write_text(f"[kafka]\nbootstrap_servers = '127.0.0.1:1'\nreach_timeout_s = 1\n[job]\ncheckpoint = '{folder}'\n")

    def called(command):
        done = CliRunner().invoke(app, ["checkpoint", command, "--config", str(file)])
        return done.exit_code, " ".join(done.output.split())

    return called


def test_it_tells_whose_it_is_how_far_it_has_read_and_what_it_takes(call, folder):
    status, said = call("inspect")
    assert status == 0
    assert "mirror (topic-id) of cluster cluster-id" in said
    assert "2 of the mirror, job.lanes = 1" in said
    assert "read to 0: 5,000, 1: 7" in said
    assert "findings/0 3 0.0" in said


def test_there_may_be_nothing_to_look_into(call, folder):
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    status, said = call("inspect")
    assert (status, said.startswith("error: there is no checkpoint in")) == (2, True)
    status, said = call("reset")
    assert (status, said) == (0, f"there is no checkpoint in {folder}: the next start reads the mirror topic from the beginning")


def test_what_is_put_away_stays_inside_and_the_monitor_begins_anew(call, folder):
    status, said = call("reset")
    assert status == 0
    (put_away,) = folder.glob("before-*")
    assert f"archived in {put_away}" in said
    assert sorted(each.name for each in put_away.iterdir()) == ["findings", "monitor.json", "quality"]
    assert checkpoint.about(folder) is None
    assert checkpoint.check(folder, MIRROR._replace(topic_id="new"), lanes=4) == []


def test_a_checkpoint_in_use_is_not_touched(call, folder, monkeypatch):
    monkeypatch.setattr(checkpoint, "_LOCK_WAIT_S", 0.1)
    with checkpoint.locked(folder):
        status, said = call("reset")
    assert (status, "another monitor is running" in said) == (2, True)
    assert checkpoint.about(folder) is not None


def test_a_kafka_that_is_away_is_an_error_in_a_sentence(call):
    status, said = call("migrate")
    assert status == 2
    assert said.startswith("error: no Kafka broker answers at 127.0.0.1:1")


def test_a_relative_path_in_the_configuration_is_absolute_in_what_is_said(tmp_path, folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "monitor.toml"
    file.write_text(f"[kafka]\nbootstrap_servers = '127.0.0.1:1'\n[job]\ncheckpoint = '{folder.name}'\n")
    (folder / "monitor.json").write_text("{")
    done = CliRunner().invoke(app, ["checkpoint", "inspect", "--config", str(file)])
    assert f"the checkpoint is damaged: {folder / 'monitor.json'} is not JSON" in " ".join(done.output.split())


def test_migrate_of_a_checkpoint_in_which_nothing_was_committed_says_to_start_the_monitor(call, folder, monkeypatch):
    """And the start goes on with it (tests/streaming/spark/test_checkpoint.py); each had named the other."""
    monkeypatch.setattr("streaming.commands.checkpoint.prepare", lambda _settings: Mirror("mirror", "topic-id", "cluster-id", 2))
    shutil.rmtree(folder / "findings" / "0" / "commits")
    checkpoint.note(folder, spark="4.1.3")
    status, said = call("migrate")
    assert (status, said) == (2, f"error: there is nothing to migrate in {folder}: start the monitor")
