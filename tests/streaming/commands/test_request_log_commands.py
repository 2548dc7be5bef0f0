"""Commands that take a broker's request log where they take a capture."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streaming.cli import app
from tests.streaming.mirror.request_log_lines import BY_BROKERS
from tests.streaming.mirror.wires import pcap


def invoke(*arguments: object, stdin: bytes | None = None) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments)], input=stdin, catch_exceptions=False)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kafka-request.log"
    path.write_bytes(lzma.decompress((BY_BROKERS / "4.3.log.xz").read_bytes()))
    return path


def test_replay_tells_the_story_of_each_group(log):
    result = invoke("replay", log)
    assert result.exit_code == 0
    assert "pod-1 asks to join" in result.stdout
    assert "T-04 silent death" in result.stdout
    assert "164 request lines of groups" in result.stderr
    assert "what is stuck at the log's end is not seen" in result.stderr


def test_a_log_in_utf_16_is_refused_with_what_to_do(log):
    log.write_bytes(log.read_bytes().decode().encode("utf-16"))
    result = invoke("replay", log)
    assert result.exit_code == 2
    assert "is text in UTF-16, as PowerShell writes it: convert it to UTF-8" in " ".join(result.stderr.split())


def test_replay_takes_compressed_and_rotated_files_a_folder_and_standard_input(log, tmp_path):
    lines = log.read_bytes().splitlines(keepends=True)
    folder = tmp_path / "rotated"
    folder.mkdir()
    for name, part in (("kafka-request.log", lines[200:]), ("kafka-request.log.1", lines[:100])):
        (folder / name).write_bytes(b"".join(part))
    (folder / "kafka-request.log.2.xz").write_bytes(lzma.compress(b"".join(lines[100:200])))
    expected = invoke("replay", "--format", "json", "--events", log).stdout
    assert expected
    assert invoke("replay", "--format", "json", "--events", folder).stdout == expected
    assert invoke("replay", "--format", "json", "--events", "-", stdin=log.read_bytes()).stdout == expected


def test_a_log_and_a_capture_together_are_refused(log, tmp_path):
    (tmp_path / "a.pcap").write_bytes(pcap([]))
    result = invoke("replay", log, tmp_path / "a.pcap")
    assert result.exit_code == 2
    assert "is a broker's log: replay logs and other files one after the other" in result.stderr


def test_a_log_that_is_damaged_is_replayed_up_to_there(log, tmp_path):
    damaged = tmp_path / "log.xz"
    damaged.write_bytes(lzma.compress(log.read_bytes())[:-40])
    result = invoke("replay", damaged)
    assert result.exit_code == 2
    assert "everything before it was replayed" in result.stderr


def test_a_log_without_request_lines_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "state-change.log").write_text("[2026-11-25 15:03:48,123] INFO started (state.change.logger)\n")
    result = invoke("replay", tmp_path / "state-change.log")
    assert result.exit_code == 2
    assert "set kafka.request.logger to DEBUG on the brokers" in result.stderr


def test_anonymise_keeps_what_replay_finds_and_none_of_the_names(log, tmp_path):
    out = tmp_path / "out.records"
    assert invoke("anonymise", log, out).exit_code == 0
    assert b"billing" not in out.read_bytes()
    found = [json.loads(line)["rule"] for line in invoke("replay", "--format", "json", out).stdout.splitlines()]
    assert found == [json.loads(line)["rule"] for line in invoke("replay", "--format", "json", log).stdout.splitlines()]


def test_decode_prints_the_frames_of_a_log(log):
    result = invoke("decode", log, "--api", "JoinGroup")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert {line["api"] for line in lines} == {"JoinGroup"}
    assert any(line["body"].get("leader") for line in lines)


@pytest.mark.parametrize("inputs", [[], ["--pcap", "a.pcap", "--request-log", "b.log"]])
def test_mirror_takes_either_captures_or_logs(inputs):
    result = invoke("mirror", *inputs, "--bootstrap-server", "127.0.0.1:1")
    assert result.exit_code == 2
    assert "give either --pcap or --request-log" in result.stderr
