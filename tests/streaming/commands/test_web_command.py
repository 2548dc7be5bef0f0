"""``rebalance-monitor web``: what it refuses, and a page over a file from beginning to end."""

from __future__ import annotations

import html
import lzma
import re
import signal
import subprocess
import sys

import pytest
import requests
from typer.testing import CliRunner

from streaming.cli import app
from streaming.not_shown import LINES_LACK, REQUESTS_LACK
from streaming.published.page_state import PageState
from streaming.published.swim_lanes import Doing, swim_lanes
from streaming.published.taking import read_file
from tests.golden import transcript
from tests.processes import started
from tests.streaming.mirror.request_log_lines import BY_BROKERS
from tests.streaming.web import history
from tests.streaming.web.conftest import served

WEB = (sys.executable, "-m", "streaming.cli", "web")


@pytest.fixture
def recording(tmp_path):
    return str(history.write(tmp_path / "recorded.jsonl", history.orders()))


def refusal(*words):
    result = CliRunner().invoke(app, ["web", *words])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    return result.stderr


def test_another_address_without_token_is_refused(recording):
    assert "give a token with --token-file, or name the proxy" in refusal("--file", recording, "--listen", "0.0.0.0:0")


def test_a_token_file_that_is_missing_or_short_is_refused(recording, tmp_path):
    assert "cannot be read" in refusal("--file", recording, "--token-file", str(tmp_path / "nothing"))
    (tmp_path / "token").write_text("short\n")
    assert "at least 16" in refusal("--file", recording, "--token-file", str(tmp_path / "token"))


@pytest.mark.parametrize("listen", ["8080", "localhost", "127.0.0.1:99999", ":8080:"])
def test_what_is_no_address_is_refused(recording, listen):
    assert f"--listen: {listen} is not HOST:PORT, as in 127.0.0.1:8080" in refusal("--file", recording, "--listen", listen)


def test_a_file_that_holds_no_record_is_refused(tmp_path):
    assert "cannot be read: no such file" in refusal("--file", str(tmp_path / "nothing"))
    (tmp_path / "other").write_text("{}\nhello\n")
    assert "holds no published record" in refusal("--file", str(tmp_path / "other"))


def test_where_the_records_are_has_to_be_named():
    assert "--config" in refusal()


def test_a_replay_is_shown_with_what_its_events_tell(tmp_path):
    file = tmp_path / "recorded.jsonl"
    recording = str(transcript.FOLDER / f"violation-leader-never-syncs-4.1.2{transcript.SUFFIX}")
    replay = CliRunner().invoke(app, ["replay", "--format", "json", "--events", recording])
    file.write_text(replay.stdout)
    state = PageState(clock=None)
    read_file(state, file)
    (past,) = state.groups.values()
    assert state.unreadable == 0
    assert past.content is None
    assert {finding["rule"] for finding in state.findings.values()} >= {"R-02"}
    swim = swim_lanes(past)
    culprit = next(lane for lane in swim.lanes.values() if lane.name.endswith("-culprit"))
    held_up = next(lane for lane in swim.lanes.values() if lane.name.endswith("-company"))
    assert Doing.SYNCING in [bar.doing for bar in held_up.bars]
    assert culprit.bars
    assert len(list(past.rebalances)) >= 2
    with served(state) as (address, _):
        for path in ("", f"groups/{past.id}", *(f"findings/{name}" for name in state.findings)):
            assert requests.get(f"{address}/{path}", timeout=10).status_code == 200


@pytest.mark.parametrize(("name", "lacks"), [("4.3.log.xz", REQUESTS_LACK), ("coordinators/4.3.log.xz", LINES_LACK)])
def test_the_page_of_a_log_says_what_such_a_log_cannot_show(tmp_path, name, lacks):
    log = tmp_path / "server.log"
    log.write_bytes(lzma.decompress((BY_BROKERS / name).read_bytes()))
    with started([*WEB, "--file", str(log), "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as process:
        address = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
        page, groups = (html.unescape(requests.get(f"{address}{path}", timeout=10).text) for path in ("sight", ""))
    assert lacks in page
    assert ("No rule was applied, so there can be no finding." in groups) == (lacks is LINES_LACK)
    assert not any(false in groups for false in ("0 ms<", "There is no finding."))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_a_recording_until_it_is_stopped(recording, number):
    command = [sys.executable, "-m", "streaming.cli", "web", "--file", recording, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        address = re.fullmatch(r"the page is at (http://127\.0\.0\.1:\d+/)\n", process.stderr.readline())[1]
        with requests.get(f"{address}stream?view=/", stream=True, timeout=10):
            assert "orders" in requests.get(address, timeout=10).text
            process.send_signal(number)
            assert process.wait(10) == 0
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_captured_traffic_is_replayed_and_shown():
    recording = str(transcript.FOLDER / f"violation-leader-never-syncs-4.1.2{transcript.SUFFIX}")
    command = [sys.executable, "-m", "streaming.cli", "web", "--file", recording, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        address = next(found[0] for line in process.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+/", line)))
        page = requests.get(address, timeout=10).text
        process.terminate()
        assert process.wait(10) == 0
    assert "R-02" in page
    assert "sent no assignment for 8.0 s" in page
