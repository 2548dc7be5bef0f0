"""Tables of what the monitor publishes: what they hold, and that no name from the wire reaches the terminal as a command."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from coordinator_model.finding import Severity
from streaming.commands import output
from streaming.published.records import RebalanceLag
from streaming.published.sentences import held_up
from streaming.published.wire_text import harmless
from streaming.terminal import tables
from tests.streaming.terminal.records import NOW_S, finding, group, rebalance

QUIET = tables.LastHour(0, 0.0)


def printed(renderable, width=200):
    file = io.StringIO()
    Console(file=file, width=width, highlight=False).print(renderable)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_name_from_the_wire_is_shown_and_not_obeyed():
    hostile = harmless(group("\x1b[2J\u202e[red]x", clients=("\x1b]0;t\x07", "[bold]")), hide_addresses=False)
    about_it = harmless(finding("\x1b[2J\u202e[red]x", summary="\x9b2J"), hide_addresses=False)
    text = "\n".join(
        line
        for table in (
            tables.groups_table([hostile], {}, {}, NOW_S, 200),
            tables.overview_table([hostile], {}, [QUIET], NOW_S, widths=tables.overview_widths([hostile], {}, 120), chosen=0),
            tables.group_line(hostile, NOW_S),
            tables.members_table(hostile),
            tables.findings_table([about_it], NOW_S),
        )
        for line in printed(table)
    )
    assert all(character.isprintable() or character == "\n" for character in text)
    assert text.count("\\u001b[2J\\u202e[red]x") == 4
    assert "[bold]" in text


@pytest.mark.parametrize("width", [40, 60, 80, 109, 110, 160])
def test_a_group_on_the_board_is_one_line_that_is_no_wider_than_the_terminal(width):
    shown = [
        group("g" * 90, state="CompletingRebalance", clients=[f"client-{number}" for number in range(5)], waits_for=(0, 1, 2, 3)),
        group("short", learning="no JoinGroup of all members was seen yet"),
    ]
    worst = {("lab", "g" * 90): (Severity.CRITICAL, 12)}
    lines = printed(
        tables.overview_table(shown, worst, [QUIET] * 2, NOW_S, widths=tables.overview_widths(shown, worst, width), chosen=1), width
    )
    assert len(lines) == 1 + 2
    assert max(map(len, lines)) <= width
    assert "12 critical" in lines[1]
    assert "Completing" in lines[1]
    assert ("CompletingRebalance" in lines[1]) == (width >= tables.WIDE)
    assert [line[0] for line in lines[1:]] == [" ", "▸"]
    assert "short" in lines[2]


def test_members_have_fewer_columns_where_there_is_little_room():
    known = group("orders", clients=("a", "b"))
    assert printed(tables.members_table(known, 80), 80)[0].split() == ["client", "address", "state", "last", "frame"]
    assert printed(tables.members_table(known))[0].split()[:4] == ["member", "client", "address", "software"]


def test_a_rebalance_that_is_over_is_a_row_with_cause_who_and_cost():
    shown = [
        rebalance("orders", cost=1234.5),
        rebalance(
            "a",
            at_s=NOW_S,
            cost=None,
            cause="not seen",
            **dict.fromkeys(("member_id", "client_id", "to_generation", "began_at", "join_ms", "sync_ms", "took_ms")),
            **dict.fromkeys(("partitions_moved", "partitions_stayed", "unheld")),
            waited_for=[],
            ended="the next rebalance began",
        ),
    ]
    heading, _, first, poor = printed(tables.rebalances_table(shown))
    assert " ".join(heading.split()) == "began group generation cause by held up by took join sync moved member-s ended"
    assert " ".join(first.split()) == (
        "2026-09-21 14:03:17 orders 7 new member worker-1 worker-2 did not rejoin for 2.4 s "
        "2.5 s 2.4 s 100 ms 3 1,234 every member was served"
    )
    assert " ".join(poor.split()) == "2026-09-21 14:13:20 a not seen not known an unknown time the next rebalance began"
    narrow = printed(tables.rebalances_table(shown, 80), 80)
    assert len(narrow) == 2 + 2
    assert " ".join(narrow[2].split()) == "09-21 14:03:17 orders new member worker-1 2.5 s 1,234"
    wider = printed(tables.rebalances_table(shown, 100), 100)
    assert " ".join(wider[2].split()) == "09-21 14:03:17 orders new member worker-1 worker-2, 2.4 s 2.5 s 1,234"


def test_who_held_a_rebalance_up_is_said_with_what_that_member_did_not_do():
    def waited_for(*members):
        nobody = {"instance_id": None, "member_id": None, "client_address": None, "came": True}
        return rebalance("g", waited_for=[nobody | {"client_id": name, "why": why, "waited_ms": ms} for name, why, ms in members])

    assert held_up(waited_for(("a", "not rejoined", 25_000), ("b", "not rejoined", 1_000))) == "a did not rejoin for 25.0 s"
    assert held_up(waited_for(("a", "not rejoined", 25_000), ("b", "not rejoined", 24_000))) == "a, b did not rejoin for 25.0 s"
    assert held_up(waited_for(("a", "no assignment", 4_000), ("b", "not rejoined", 3_000))) == "a sent no assignment for 4.0 s"
    assert held_up(waited_for(("a", "not given up", 61_000))) == "a gave no partitions up for 1 min 1 s"
    assert held_up(waited_for()) == ""


def test_rebalances_have_room_for_their_lag_before_how_they_ended():
    shown, lags = [rebalance("orders"), rebalance("a"), rebalance("b")], [RebalanceLag(1_234, 45.0), RebalanceLag(7, None), None]
    heading, _, *rows = printed(tables.rebalances_table(shown, 150, lags), 150)
    assert heading.split()[-4:] == ["member-s", "lag", "gone", "after"]
    assert [row.split("3  ", 1)[1].split() for row in rows] == [
        ["12.5", "+1,234", "45", "s"],
        ["12.5", "+7", "not", "yet"],
        ["12.5"],
    ]
    heading, *_ = printed(tables.rebalances_table(shown, 200, lags), 200)
    assert heading.split()[-4:] == ["ended", "lag", "gone", "after"]


NAMES = ["payments-settlement-eu-west-1-reconciler-v2", "orders"]


@pytest.mark.parametrize(("width", "left"), [(200, {"for", "generation", "members"}), (110, {"for", "members"}), (80, set())])
def test_groups_keeps_names_whole_where_the_terminal_is_narrow(width, left):
    shown = [group(name, state="PreparingRebalance", clients=("a",), waits_for=(0,)) for name in NAMES]
    table = tables.groups_table(shown, {}, {}, NOW_S, width)
    lines = printed(table, width)
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    assert [name for name in NAMES if any(line.split(" ")[0] == name for line in lines)] == NAMES
    assert {"for", "generation", "members"} & {column.header for column in table.columns} == left


def test_groups_folds_a_name_that_no_terminal_holds():
    lines = printed(tables.groups_table([group("g" * 90)], {}, {}, NOW_S, 60), 60)
    assert sum(line.count("g") for line in lines[2:]) == 90
    assert max(map(len, lines)) <= 60


def test_what_goes_into_a_pipe_is_as_wide_as_it_is(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    console = output.tables()
    console.print(tables.findings_table([finding("orders", summary="word " * 100)], NOW_S))
    assert len(capsys.readouterr().out.splitlines()) == 3
    monkeypatch.setenv("COLUMNS", "80")
    assert output.tables().width == 80
