"""``rebalance-monitor report``: its forms, its inputs and what it refuses."""

from __future__ import annotations

import json
import lzma

import pytest
from typer.testing import CliRunner

from streaming.cli import app
from tests.golden import transcript
from tests.streaming.mirror.request_log_lines import BY_BROKERS
from tests.streaming.web import history

TRANSCRIPT = transcript.FOLDER / "violation-never-rejoins-4.3.1.records.xz"


def invoke(*words):
    return CliRunner().invoke(app, ["report", *map(str, words)], catch_exceptions=False)


def refusal(*words):
    result = invoke(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


@pytest.fixture
def recording(tmp_path):
    return history.write(tmp_path / "recorded.jsonl", history.orders())


def test_a_recording_is_reported_as_a_page_in_a_file(tmp_path):
    result = invoke(TRANSCRIPT, "-o", tmp_path / "report.html")
    assert (result.exit_code, result.stdout) == (0, "")
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "R-08 heartbeats but never rejoins" in page
    assert "rebalance-monitor-raw-client 0.1.0" in page
    assert "group frames of 1 group" in page


def test_the_forms_tell_the_same(recording):
    content = json.loads(invoke(recording, "--format", "json").stdout)
    assert content["rebalances"] == 2
    assert content["summary"].replace("R-01", "") in invoke(recording, "--format", "markdown").stdout.replace("\\", "").replace(
        "R-01", ""
    )
    assert "orders had 2 rebalances" in invoke(recording).stdout


@pytest.mark.parametrize("name", ["4.3.log.xz", "coordinators/4.3.log.xz"])
def test_a_brokers_log_is_reported(tmp_path, name):
    log = tmp_path / "server.log"
    log.write_bytes(lzma.decompress((BY_BROKERS / name).read_bytes()))
    assert json.loads(invoke(log, "--format", "json").stdout)["rebalances"] > 0


@pytest.mark.parametrize("form", ["html", "markdown", "json"])
def test_what_lines_of_coordinators_do_not_show_is_null_and_is_named(tmp_path, form):
    log = tmp_path / "server.log"
    log.write_bytes(lzma.decompress((BY_BROKERS / "coordinators" / "4.3.log.xz").read_bytes()))
    made = invoke(log, "--format", form).stdout
    assert "what they cost is not known. No rule was applied, so there can be no finding." in made
    assert "not who rejoined when, who held a rebalance up, what it cost, and which partitions moved" in made
    assert not any(word in made for word in (">0.0<", " 0.0 ", ":0.0", "There is no finding", "Nothing is known to be missing"))
    if form == "json":
        report = json.loads(made)
        added_up = [report, *report["causes"], *report["groups"], *(one for group in report["groups"] for one in group["causes"])]
        added_up += [one for group in report["groups"] for one in group["rebalances_over"]]
        assert {(one["cost_member_seconds"], one["unheld_partition_seconds"]) for one in added_up} == {(None, None)}


def test_only_named_groups_are_reported_and_a_mistyped_one_is_refused(tmp_path):
    file = history.write(tmp_path / "recorded.jsonl", history.records(3))
    content = json.loads(invoke(file, "--group", "orders", "--format", "json").stdout)
    assert [group["group"] for group in content["groups"]] == ["orders"]
    assert "nothing is known of a group oders; did you mean orders?" in refusal(file, "--group", "oders")


def test_addresses_are_left_out_on_request(recording):
    assert "10.1.0.2" in invoke(recording).stdout
    for form in ("html", "markdown", "json"):
        assert "10.1.0." not in invoke(recording, "--hide-addresses", "--format", form).stdout


def test_a_file_that_ends_too_early_is_reported_as_far_as_it_goes_and_the_report_says_so(tmp_path):
    whole = (transcript.FOLDER / "lawful-eager-4.3.1.records.xz").read_bytes()
    (tmp_path / "cut.records.xz").write_bytes(whole[: len(whole) // 2])
    result = invoke(tmp_path / "cut.records.xz", "--format", "markdown")
    assert result.exit_code == 2
    assert "everything before it was replayed" in result.stdout


def test_what_cannot_be_read_or_written_is_refused_in_a_sentence(recording, tmp_path):
    assert "name a file to report on, or set the monitor's configuration with --config" in refusal()
    assert "no such file" in refusal(tmp_path / "nothing")
    assert "--since goes with the monitor's topics" in refusal(recording, "--since", "7d")
    assert "neither a duration such as 8h" in refusal("--bootstrap-server", "127.0.0.1:1", "--since", "soon")
    assert "cannot be written: no such file" in refusal(recording, "-o", tmp_path / "missing" / "report.html")
