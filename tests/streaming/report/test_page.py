"""A report as a page: one file without scripts that tells what the report says."""

from __future__ import annotations

import itertools
import re

import pytest

from streaming.published.page_state import ALL
from streaming.report.contents import report_of
from streaming.report.page import page_of
from streaming.web import drawing
from tests.streaming.report.many import many
from tests.streaming.web import history
from tests.streaming.web.conftest import filled
from tests.streaming.web.history import NOW_S
from tests.streaming.web.parsed import Parsed


def made(lines):
    return page_of(report_of(filled(lines, clock=None, kept=ALL), wanted=lambda _: True, since_s=None))


@pytest.fixture(scope="module")
def page():
    return made([*history.orders(), *history.search()])


def test_it_is_one_file_without_scripts(page):
    parsed = Parsed(page)
    assert not {tag for tag, _ in parsed.elements} & {"script", "link", "img", "iframe", "form", "input", "button"}
    addresses = [known[name] for _, known in parsed.elements for name in ("href", "src") if known.get(name)]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    assert "url(http" not in page
    assert "@import" not in page


def test_each_link_leads_to_an_element_and_no_id_is_given_twice(page):
    parsed = Parsed(page)
    assert len(parsed.ids) == len(set(parsed.ids))
    targets = {known["href"][1:] for tag, known in parsed.elements if tag == "a" and "href" in known}
    assert targets <= set(parsed.ids)


def test_each_group_has_a_strip_and_those_with_something_to_tell_a_section(page):
    parsed = Parsed(page)
    assert sum(known.get("class") == "strip" for _, known in parsed.elements) == 2
    assert sum(tag == "section" and known.get("class") == "told" for tag, known in parsed.elements) == 2


def test_cost_by_cause_is_drawn_over_the_time_for_all_groups_and_for_each(page):
    parsed = Parsed(page)
    drawn = [known for tag, known in parsed.elements if tag == "svg" and known.get("class") == "costs"]
    causes = {cause for group in made_of_two().groups for cause in group.causes}
    of_groups = sum(len(group.causes) for group in made_of_two().groups)
    assert len(drawn) == len(causes) + of_groups
    assert all("member-seconds" in known["aria-label"] for known in drawn)


def made_of_two():
    lines = [*history.orders(), *history.search()]
    return report_of(filled(lines, clock=None, kept=ALL), wanted=lambda _: True, since_s=None)


def test_the_costliest_rebalance_of_a_group_is_drawn_with_its_lanes(page):
    pictures = [known for tag, known in Parsed(page).elements if tag == "svg" and known.get("class") == "lanes"]
    assert len(pictures) == 2
    assert "orders-2 did not rejoin for 26.0 s" in page
    assert 'class="b joining"' in page


def test_what_a_colour_says_a_form_or_a_word_says_too(page):
    lanes = page[page.index('class="lanes"') :]
    assert "url(#p-joining)" in lanes
    assert re.search(r'<b class="sev error">(1 )?error</b>', page)
    strips = re.findall(r'<rect class="s-(\w+)" x="[-.\d]+" width="[.\d]+"([^>]*)/>', page)
    assert len({form for _, form in strips}) == len({state for state, _ in strips}) > 3


def test_names_from_the_wire_are_text():
    page = made(history.hostile())
    assert "<script" not in page
    assert "<img" not in page
    assert "\u202e" not in page


def test_where_there_is_nothing_to_tell_it_says_so():
    group = history.Group("quiet", ["a"])
    group.event("member_joined", NOW_S - 60, group.members[0])
    words = Parsed(made(group.records)).text
    assert "no rebalance of 1 group ended" in words
    assert "Nothing is known to be missing." in words


def test_a_strip_has_no_more_pieces_than_can_be_seen():
    few, lots = (made(many(groups=1, rebalances=count, members=2)) for count in (50, 1_000))
    pieces = [len(re.findall(r'<rect class="s-', page[: page.index('class="told"')])) for page in (few, lots)]
    assert pieces[0] > 50
    assert pieces[1] < 10


def test_of_many_groups_all_have_a_line_and_the_costliest_are_told():
    page = made(many(groups=120, rebalances=240, members=2))
    assert page.count('class="strip"') == 120
    assert page.count('class="told"') == 50
    assert "The 50 groups that cost most" in page


@pytest.mark.parametrize("span_s", [2, 20, 100, 190, 360, 3_600, 86_400])
def test_the_times_above_a_strip_have_room_beside_each_other(span_s):
    ticks = drawing.Window(NOW_S - span_s, NOW_S, live=False).inner_ticks()
    apart = [after.x - tick.x for tick, after in itertools.pairwise(ticks)]
    assert ticks
    assert min(apart, default=100) >= 2.2 * max(len(tick.label) for tick in ticks)  # per cent, where a strip holds 45 characters
