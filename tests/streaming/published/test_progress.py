"""How fast a group commits, as terminal and page show it."""

from __future__ import annotations

import json

import pytest

from streaming.published.progress import bars, hour_facts, progress_facts, rate
from streaming.published.records import group_of
from streaming.terminal import tables
from tests.streaming.terminal.records import NOW_S, committing, group


def test_progress_now_and_usual_the_last_commit_and_a_line_of_the_last_hour():
    known = committing()
    assert progress_facts(known) == [
        ("progress", "2 records/s at 14:12 UTC, usually 10"),
        ("last commit", "2026-09-21 14:13:17 UTC"),
    ]
    assert hour_facts(known) == [("its last hour", "█▁▃ at most 1,200 records in 2 min")]


def test_what_is_not_known_of_progress_is_not_shown():
    assert (progress_facts(group("orders")), hour_facts(group("orders"))) == ([], [])
    young = committing(now=None, usually=None, records=())
    assert (progress_facts(young), hour_facts(young)) == ([("last commit", "2026-09-21 14:13:17 UTC")], [])


def test_a_group_that_stands_still_is_shown_with_a_rate_of_zero():
    assert progress_facts(committing(now=0.0, records=(0, 0)))[0] == ("progress", "0 records/s at 14:12 UTC, usually 10")
    assert bars([0, 0]) == "▁▁"


@pytest.mark.parametrize(
    ("per_s", "shown"), [(None, ""), (0.0, "0"), (0.05, "0.05"), (2.5, "2.5"), (12.4, "12"), (12_345.6, "12,346")]
)
def test_a_rate_has_a_decimal_where_it_counts(per_s, shown):
    assert rate(per_s) == shown


@pytest.mark.parametrize(
    "wrong",
    [{"records": ["x"]}, {"records": None}, {"last_commit_at": "x"}, {"records_per_s": "fast"}, {"step_s": 0}, {"until": None}],
)
def test_a_record_with_progress_of_another_program_is_left_out(wrong):
    known = committing()
    assert group_of(json.dumps(known)) is not None
    assert group_of(json.dumps(known | {"progress": known["progress"] | wrong})) is None


def titles(shown, width):
    table = tables.groups_table(shown, {}, {}, NOW_S, width)
    return [str(column.header) for column in table.columns]


def test_groups_has_columns_of_progress_where_there_is_room_if_any_group_commits():
    shown = [committing(), group("billing")]
    names = ["group", "state", "for", "generation", "members", "records/s", "usually", "last commit", "its last hour"]
    assert titles(shown, 200) == [*names, "waits for", "findings"]
    last = tables.groups_table(shown, {}, {}, NOW_S, 200).columns[names.index("last commit")]
    assert [str(cell) for cell in last.cells] == ["3 s ago", ""]
    assert titles(shown, 70) == ["group", "state", "for", "members", "records/s", "waits for", "findings"]
    assert titles([group("billing")], 200) == [*names[:5], "waits for", "findings"]
