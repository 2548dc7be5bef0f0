"""``rebalance-monitor clients``: the API versions of the clients in a recording."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from streaming.cli import app
from tests.golden import transcript

RECORDING = str(transcript.FOLDER / f"violation-crash-loop-4.3.1{transcript.SUFFIX}")


def run(*words):
    return CliRunner().invoke(app, ["clients", *words], env={"COLUMNS": "200"})


def test_clients_of_a_recording_are_listed_with_their_versions_those_that_left_too():
    result = run("--file", RECORDING, "--json")
    assert result.exit_code == 0
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert {one["client_id"] for one in found} >= {"crime-crash-loop-culprit", "crime-crash-loop-company"}
    assert {one["versions"].get("JoinGroup") for one in found if one["client_id"] != "crime-crash-loop-finder"} == {9}
    assert {one["before_4_0"] for one in found} == {None}
    table = run("--file", RECORDING)
    assert "before brokers of 4.0" in table.stdout
    assert "JoinGroup v9" in table.stdout


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    result = run("--file", str(tmp_path / "nothing"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot be read: no such file" in result.stderr
