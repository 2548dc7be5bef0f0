"""The pages of a recording: they span it, and the first one lists what happened."""

from __future__ import annotations

import re

import pytest

from coordinator_model.advice import advise
from coordinator_model.events import event_of
from streaming.published.page_state import ALL
from streaming.published.sentences import saved
from streaming.web.happened import event_row
from streaming.web.recording import cost_text, stretch_of
from tests.streaming.web import history
from tests.streaming.web.conftest import filled, served
from tests.streaming.web.history import NOW_S
from tests.streaming.web.parsed import get


def life(name, at_s, slow_s):
    """A stable group of three that one member held up once."""
    group = history.Group(name, [f"{name}-0", f"{name}-1", f"{name}-2"])
    for member in group.members:
        group.event("member_served", at_s, member)
    group.rebalance(at_s + 1, slow=2, slow_s=slow_s)
    return group


@pytest.fixture
def state():
    cheap, dear = life("cheap", NOW_S - 46, 2), life("dear", NOW_S - 46, 25)
    dear.finding("R-18", "group stands still", "warning", NOW_S - 30, 2, status="resolved")
    return filled([*cheap.records, *dear.records], clock=None, kept=ALL)


def test_the_first_page_of_a_recording_lists_what_happened(state):
    with served(state) as (address, _):
        page = get(address, "/")
    assert re.search(r"27\.3 s, from [0-9: -]+ to [0-9:]+: 2 groups, 2 rebalances, 1 finding", page.words)
    assert "R-18 group stands still dear, " in page.words, "though it is over"
    assert page.words.index("dear") < page.words.index("cheap"), "the costliest first"
    assert "1 rebalance, 26.3 s" in page.words
    assert "dear-2 did not rejoin for 26.0 s" in page.words
    assert "There is no finding." not in page.words


def test_strips_and_lanes_of_a_recording_span_all_of_it(state):
    stretch = stretch_of(state)
    assert (stretch.title, 27 < stretch.span_s < 28) == ("Recording", True)
    past = state.groups["prod", "dear"]
    with served(state) as (address, _):
        strips = re.findall(r'class="strip" viewbox="[-.0-9]+ 0 ([.0-9]+) 10"', _lowered(get(address, "/")))
        group = get(address, f"/groups/{past.id}")
    assert strips == [str(stretch.span_min)] * 2
    assert cost_text(past) in group.words
    (lanes,) = [tag for tag in group.tags("svg") if tag.get("id") == "lanes"]
    assert 27 < float(lanes["data-span"]) < 30  # this group's own events


def test_a_recording_of_days_is_kept_from_its_beginning(tmp_path):
    early, late = life("early", NOW_S - 3 * 86_400, 2), life("late", NOW_S - 60, 2)
    state = filled([*early.records, *late.records], clock=None, kept=ALL)
    assert stretch_of(state).span_s > 2.9 * 86_400
    with served(state) as (address, _):
        assert "2 groups, 2 rebalances" in get(address, "/").words


def test_a_join_without_an_id_ends_with_the_phase_and_makes_no_second_member():
    group = history.Group("old", ["a"])
    group.event("member_joined", NOW_S - 20, group.members[0] | {"member_id": None})
    group.event("phase_ended", NOW_S - 10, phase="join", took_ms=10_000)
    group.event("member_served", NOW_S - 9, group.members[0])
    state = filled(group.records, clock=None)
    with served(state) as (address, _):
        words = get(address, f"/groups/{state.groups['prod', 'old'].id}").words
    assert "members1" in words


def test_a_group_has_advice_with_links_to_the_rebalances_that_prove_it():
    group = history.Group("deploys", ["a", "b", "c"])
    group.restarts()
    state = filled(group.records, clock=None, kept=ALL)
    with served(state) as (address, _):
        page = get(address, f"/groups/{state.groups['prod', 'deploys'].id}")
        assert "What would have saved it" in page.words
        assert "Cost by cause" in page.words
        bars = [known["aria-label"] for tag, known in page.elements if tag == "svg" and known.get("class") == "costs"]
        assert len(bars) == 2, "members that left, and new ones"
        assert all(label.startswith("most around ") for label in bars)
    (piece, *_) = advise(event_of(one) for one in group.records if "kind" in one)
    assert f"It would have saved {saved(piece)}: " in page.words
    links = [
        known["href"] for tag, known in page.elements if tag == "a" and event_row(piece.rebalances[0]) in known.get("href", "")
    ]
    assert len(links) == 2, "in the advice and in the list of rebalances"


def _lowered(page):
    return " ".join(
        f'{tag} class="{known.get("class")}" viewbox="{known.get("viewbox")}"' for tag, known in page.elements if tag == "svg"
    )
