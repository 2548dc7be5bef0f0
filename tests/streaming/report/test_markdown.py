"""A report as Markdown: what stands in it, and that names from the wire stay text."""

from __future__ import annotations

import re

from streaming.report.contents import report_of
from streaming.report.markdown import GROUPS_IN_DETAIL, markdown_of
from tests.streaming.report.many import many
from tests.streaming.web import history
from tests.streaming.web.conftest import filled


def written(lines):
    return markdown_of(report_of(filled(lines, clock=None), wanted=lambda _: True, since_s=None))


def test_it_has_the_groups_their_causes_findings_rebalances_and_what_was_not_seen():
    text = written(history.orders())
    for title in ("# Rebalances", "## Groups by cost", "## orders", "## What was not seen"):
        assert f"\n{title}\n" in f"\n{text}"
    assert (
        len(re.findall(r"^\| session ended \| [\u2007▁-█]{24} \| 1 \|", text, re.MULTILINE)) == 2
    )  # of all groups, and of this one
    assert "- **error R-01 member never rejoins**" in text
    assert "  To do: Look at the process" in text
    assert "17 frames were not captured" in text


def test_the_deaths_and_returns_of_one_client_are_one_entry_with_a_count():
    group = history.Group("jobs", ["job-0"])
    group.rebalance(history.NOW_S - 200)
    for number, rule in enumerate(("T-09", "T-04", "M-13")):
        group.finding(rule, f"sign {number}", "info", history.NOW_S - 100 + number)
    died = [line for line in written(group.records).splitlines() if re.match(r"- \*\*info (T-09|T-04|M-13) ", line)]
    assert [re.search(r", in 3 findings, [\d:]+ to [\d:]+,", line) is not None for line in died] == [True]


def test_each_row_of_a_table_has_as_many_cells_as_its_title():
    for table in re.findall(r"(?:^\|.*\n)+", written(history.records()), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_names_from_the_wire_are_text():
    text = written(history.hostile())
    assert "<script>" not in text
    assert r"\<script\>" in text
    assert "\u202e" not in text


def test_of_many_groups_some_are_told_in_detail_and_it_says_how_many_are_not_listed():
    text = written(many(groups=250, rebalances=250, members=2))
    assert text.count("\n## ") <= GROUPS_IN_DETAIL + 4
    assert "50 more groups are in the report as JSON." in text
