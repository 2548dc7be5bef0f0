"""Recordings that are shown as a whole, whatever they are made of."""

from __future__ import annotations

import lzma
from itertools import pairwise

import pytest

from coordinator_model.settings import Settings
from streaming.commands.capture_files import ReplayError
from streaming.commands.recordings import read_recordings
from streaming.errors import SetupError
from streaming.published.page_state import ALL, PageState
from tests.golden import transcript
from tests.streaming.mirror.request_log_lines import BY_BROKERS
from tests.streaming.web import history


@pytest.fixture
def state():
    return PageState(clock=None, kept=ALL)


def read(state, *files):
    return read_recordings(state, [str(file) for file in files], Settings())


def test_published_records_are_not_taken_for_a_log_although_they_begin_with_a_time(state, tmp_path):
    recorded = read(state, history.write(tmp_path / "events", history.orders()))
    assert recorded == ([], [], False)
    assert [name for _, name in state.groups] == ["orders"]
    assert state.complete


def test_a_recording_tells_of_groups_findings_clients_and_of_what_was_read(state):
    recorded = read(state, transcript.FOLDER / "violation-never-rejoins-4.3.1.records.xz")
    assert state.findings
    assert {member["client_software"] for group in recorded.clients for member in group["members"]} != {""}
    assert "group frames of" in recorded.summary[0]


@pytest.mark.parametrize("name", ["4.3.log.xz", "coordinators/4.3.log.xz"])
def test_a_brokers_log_is_read_its_request_lines_and_its_coordinators_lines(state, tmp_path, name):
    log = tmp_path / "server.log"
    log.write_bytes(lzma.decompress((BY_BROKERS / name).read_bytes()))
    read(state, log)
    kinds = {event.kind for past in state.groups.values() for event in past.events}
    assert "rebalance_finished" in kinds


def test_published_records_of_several_files_are_one_recording(state, tmp_path):
    lines = history.orders()
    files = [history.write(tmp_path / f"{number}.jsonl", lines[number::2]) for number in range(2)]
    read(state, *files)
    times = [event.at_s for event in state.groups["prod", "orders"].events]
    assert len(times) == sum("kind" in line for line in lines)
    assert all(one <= other for one, other in pairwise(times))


def test_a_file_that_ends_too_early_is_read_as_far_as_it_goes_and_that_is_said(state, tmp_path):
    whole = (transcript.FOLDER / "lawful-eager-4.3.1.records.xz").read_bytes()
    (tmp_path / "cut.records.xz").write_bytes(whole[: len(whole) // 2])
    recorded = read(state, tmp_path / "cut.records.xz")
    assert recorded.is_damaged
    assert "everything before it was replayed" in recorded.summary[-1]


def test_what_is_neither_is_refused(state, tmp_path):
    (tmp_path / "other").write_text("{}\n")
    with pytest.raises(SetupError, match="holds no published record"):
        read(state, tmp_path / "other")
    with pytest.raises(ReplayError, match="no such file"):
        read(state, tmp_path / "nothing")
