"""Findings on the page, in ``top`` and in reports: the same rows, the same order, and what names a member once."""

from __future__ import annotations

import io
import itertools
import re

import pytest
from rich.console import Console

from streaming.commands.top import TopicsShown
from streaming.published.page_state import ALL
from streaming.published.records import finding_order
from streaming.report.contents import report_of
from streaming.report.markdown import markdown_of
from streaming.report.page import page_of
from streaming.terminal.live_view import LiveView
from streaming.terminal.screen import Screen
from streaming.web.detail_views import Details
from streaming.web.group_view import GroupPage
from streaming.web.views import Overview, Renderer
from tests.streaming.web import history
from tests.streaming.web.conftest import filled
from tests.streaming.web.history import NOW_S
from tests.streaming.web.parsed import Parsed

KEY = ("prod", "orders")


def jobs():
    group = history.Group("orders", ["a", "b"])
    group.rebalance(NOW_S - 600)
    group.view("Stable", NOW_S - 500)
    return group


def overview(state):
    return Overview(state, Renderer()).view({}).parts


def of_group(state):
    return GroupPage(state, Renderer(), has_frames=False).view(state.groups[KEY].id, {}).parts["group-findings"]


def report(state):
    return report_of(state, wanted=lambda _: True, since_s=None)


def html(state):
    return page_of(report(state))


def markdown(state):
    return markdown_of(report(state))


def top(state):
    live, file = LiveView(state, TopicsShown("monitor:9092")), io.StringIO()
    live.press("enter")
    Console(file=file, width=200, height=200, color_system=None).print(Screen(live, NOW_S), height=200, end="")
    return file.getvalue()


SHOWN = {"page": lambda state: overview(state)["findings"], "group": of_group, "top": top, "report": html, "markdown": markdown}


@pytest.mark.parametrize("shown", ["page", "group", "report"])
def test_a_crash_loop_is_one_row_with_a_count_and_a_bar_of_its_times(shown):
    group = jobs()
    for number, rule in enumerate(("T-09", "T-04", "T-09", "T-04", "M-13")):
        group.finding(rule, f"sign {number}", "warning", NOW_S - 300 + 60 * number)
        group.records[-1]["id"] = f"death-{number}"
    drawn = SHOWN[shown](filled(group.records, kept=ALL))
    assert len(re.findall(r"sign \d", drawn)) == 1
    assert "2 times in 5 findings, " in drawn
    (bar,) = re.findall(r'<svg class="times".*?</svg>', drawn)
    assert re.findall(r'x="([\d.]+)"', bar) == ["0.0", "24.24", "48.49", "72.73", "96.98"]
    assert re.search(r'role="img" aria-label="5 findings, [\d:]+ to [\d:]+"', bar)


@pytest.mark.parametrize("shown", ["page", "group", "report"])
def test_what_happened_once_has_no_bar(shown):
    group = jobs()
    group.finding("R-01", "member never rejoins", "error", NOW_S - 30)
    assert "member never rejoins" in SHOWN[shown](filled(group.records))
    assert '<svg class="times"' not in SHOWN[shown](filled(group.records))


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("given", [0, 7, 23], ids="given in order {}".format)
def test_page_top_and_reports_have_findings_in_the_one_order(shown, given):
    group = jobs()
    for number, (severity, age_s) in enumerate([("info", 900), ("error", 100), ("warning", 800), ("error", 200)]):
        group.finding(f"R-0{number + 1}", "trouble", severity, NOW_S - age_s)
    found = [record for record in group.records if "rule" in record]
    ordered = [one["rule"] for one in sorted(found, key=finding_order)]
    assert ordered == ["R-04", "R-02", "R-03", "R-01"]
    lines = [record for record in group.records if "rule" not in record]
    drawn = SHOWN[shown](filled([*lines, *list(itertools.permutations(found))[given]]))
    assert list(dict.fromkeys(re.findall(r"(R-0\d) trouble", drawn))) == ordered


def test_groups_of_a_report_come_by_cost_and_those_of_no_cost_by_their_worst_finding():
    """The page of a running monitor has those in trouble first; a report says in its title that it goes by cost."""
    groups = {name: history.Group(name, ["a"]) for name in ("calm", "dear", "worse", "the worst")}
    groups["dear"].rebalance(NOW_S - 600, join_s=10)
    for name, severity in (("calm", "info"), ("worse", "warning"), ("the worst", "error")):
        groups[name].event("member_joined", NOW_S - 60, groups[name].members[0])
        groups[name].finding("R-01", "trouble", severity, NOW_S - 30)
    state = filled([record for group in groups.values() for record in group.records])
    assert [one.name for one in report(state).groups] == ["dear", "the worst", "worse", "calm"]
    assert "Groups by cost" in html(state)


def test_member_id_and_software_stand_once_in_the_details():
    group = jobs()
    member = group.members[0]
    who = f"Member {member['member_id']} (client a at {member['client_address']}, apache-kafka-java 3.9.1)"
    group.finding("R-01", "never rejoins", "error", NOW_S - 30, summary=f"{who} does not rejoin.")
    group.records[-1]["evidence"] = []  # frames are quoted as they are
    state = filled(group.records)
    details = Details(state, Renderer(), has_frames=False).finding(group.records[-1]["id"]).parts["finding"]
    sentence = f"Client a at {member['client_address']} does not rejoin."
    assert sentence in Parsed(details).words
    details = details.partition("<details>")[0]  # in which it stands as text
    assert (details.count(member["member_id"]), details.count("apache-kafka-java")) == (1, 1)
    for drawn in (overview(state)["findings"], of_group(state)):
        assert sentence in Parsed(drawn).words
        assert (drawn.count(member["member_id"]), drawn.count("apache-kafka-java")) == (0, 0)


def test_a_page_on_which_nothing_rebalances_says_so():
    idle, busy = jobs(), history.Group("billing", ["c", "d"])
    busy.stuck(NOW_S - 41, [1])
    assert "1 group, no rebalance now, none with open findings" in Parsed(overview(filled(idle.records))["counts"]).words
    both = filled([*idle.records, *busy.records])
    assert "2 groups, 1 rebalance now, none with open findings" in Parsed(overview(both)["counts"]).words
