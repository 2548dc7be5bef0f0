"""From a bar of the lanes to its frames: what happened names the frame that showed it, and the page shows that field by field."""

from __future__ import annotations

import re

import pytest
import requests

from streaming.web.frames import FRAMES
from streaming.web.happened import event_row, events_of_line, lines
from tests.golden import transcript
from tests.streaming.web import history
from tests.streaming.web.conftest import filled, served

NAME = "violation-never-rejoins-4.3.1"


class Mirror:
    """Frames of a transcript, in place of the topic."""

    def __init__(self, records):
        self._records = {(record.partition, record.offset): record for record in records}

    def read(self, places):
        return [self._records.get(place, "the mirror no longer holds it") for place in places]


@pytest.fixture(scope="module")
def records():
    return transcript.read(NAME)


@pytest.fixture(scope="module")
def state(records):
    return filled([event.as_json() for event in transcript.events_of(records)])


@pytest.fixture
def page(state, records):
    with served(state, frames=Mirror(records)) as (address, _):
        yield address


def group_of(state):
    (past,) = state.groups.values()
    return past


def words_of(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def get(address, status=200):
    answer = requests.get(address, timeout=10)
    assert answer.status_code == status
    return answer.text


def test_each_bar_leads_to_a_line_and_each_line_to_its_frames(page, state, records):
    past = group_of(state)
    html = get(f"{page}/groups/{past.id}")
    bars = set(re.findall(r'<a href="#(e\w+)" class="bar"', html))
    lines_ = dict(re.findall(r'<li id="(e\w+)"[^>]*>(.*?)</li>', html))
    assert bars
    assert bars <= lines_.keys()
    event = next(event for event in past.events if event.kind == "member_joined" and event.member_id)
    row = event_row(event.id)
    assert f'href="/groups/{past.id}/frames/{row}"' in lines_[row]
    words = words_of(get(f"{page}/groups/{past.id}/frames/{row}"))
    record = records[event.frame.offset]
    assert f"JoinGroup v{record.api_version} request, partition 0, offset {record.offset}" in words
    assert "asks to join" in words
    assert f"{event.member_id} ←" in words
    for kind in ("session_over", "member_dropped", "connection_closed"):
        for other in (one for one in past.events if one.kind == kind):
            assert "/frames/" not in lines_[event_row(other.id)]


def test_a_line_of_several_events_has_the_frames_of_all(records):
    events = [line for line in history.search() if "kind" in line]
    for number, event in enumerate(events):
        event["frame"] = {"partition": 0, "offset": number}
    state = filled(events)
    past = group_of(state)
    told, _ = lines(past.events)
    largest = max(told, key=lambda line: line.members)
    assert len(events_of_line(past.events, largest.row)) == largest.members == largest.frames == 200
    with served(state, frames=Mirror(records)) as (address, _):
        words = words_of(get(f"{address}/groups/{past.id}/frames/{largest.row}"))
        assert words.count("partition 0, offset") == FRAMES
        assert f"and {200 - FRAMES} more frames" in words
        alone = events_of_line(past.events, largest.row)[7]
        assert words_of(get(f"{address}/groups/{past.id}/frames/{event_row(alone.id)}")).count("partition 0, offset") == 1


def test_what_is_not_there_is_said(page, state, records):
    past = group_of(state)
    row = event_row(past.events[0].id)
    assert "does not know this event any more" in get(f"{page}/groups/{past.id}/frames/e0", 404)
    assert "does not know this group" in get(f"{page}/groups/g0/frames/{row}", 404)
    with served(state, frames=Mirror([])) as (address, _):
        assert "It cannot be shown: the mirror no longer holds it" in words_of(
            get(f"{address}/groups/{past.id}/frames/{row}")
        ).replace("  ", " ")
    with served(state) as (address, _):
        assert "/frames/" not in get(f"{address}/groups/{past.id}")
        assert "no mirror topic" in get(f"{address}/groups/{past.id}/frames/{row}", 404)


def test_an_event_need_not_name_a_frame(records):
    event = next(line for line in history.orders() if line.get("kind") == "member_joined")
    state = filled([event])
    past = group_of(state)
    with served(state, frames=Mirror(records)) as (address, _):
        get(f"{address}/groups/{past.id}")
        assert "No single frame shows it" in get(f"{address}/groups/{past.id}/frames/{event_row(event['id'])}")
