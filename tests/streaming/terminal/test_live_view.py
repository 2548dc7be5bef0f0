"""The live view without Kafka and without a terminal: what each key does, and what is drawn."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from streaming.commands.top import TopicsShown
from streaming.published.page_state import PageState
from streaming.terminal.live_view import LiveView, View
from streaming.terminal.screen import Screen
from tests.streaming.terminal.records import NOW_S, finding, group, rebalance

NAMES = [f"group-{number:02}" for number in range(40)]

SOURCE = TopicsShown("monitor:9092")


@pytest.fixture
def state():
    state = PageState(clock=lambda: NOW_S)
    for name in NAMES:
        put(state, group(name, clients=("a", "b")))
    put(
        state,
        group(
            "billing",
            state="PreparingRebalance",
            since_s=NOW_S - 185,
            clients=("billing-worker-1", "billing-worker-2", "billing-worker-3"),
            waits_for=(1,),
        ),
    )
    state.finding("R-01-billing", finding("billing", summary="member billing-worker-2 keeps the others waiting"))
    state.monitor_status({"partition": 0}, NOW_S - 2)
    state.read_to_the_end()
    return state


@pytest.fixture
def live(state):
    return LiveView(state, SOURCE)


def put(state, content):
    state.group((content["cluster"], content["group"]), content)


def drawn(live, width=80, height=24):
    file = io.StringIO()
    console = Console(file=file, width=width, height=height, color_system=None, legacy_windows=False)
    console.print(Screen(live, NOW_S), height=height, end="")
    lines = file.getvalue().split("\n")
    assert len(lines) == height
    assert max(map(len, lines)) <= width
    return [line.rstrip() for line in lines]


def press(live, *keys):
    for key in keys:
        live.press(key)


def marked(live):
    """The marked row, which is always on the screen."""
    (line,) = [line for line in drawn(live) if line.startswith("▸")]
    return line[2:].split()[0]


def test_the_group_in_trouble_comes_first_with_state_members_whom_it_waits_for_and_findings(live):
    title, heading, first, second, *_ = drawn(live)
    assert title.startswith("rebalance-monitor top   41 groups · 1 rebalancing · 1 open finding")
    assert heading.split() == ["group", "state", "for", "gen", "members", "waits", "for", "findings"]
    assert first.split() == ["▸", "billing", "Preparing", "3", "min", "7", "3", "billing-worker-2", "1", "warning"]
    assert second.split() == ["group-00", "Stable", "1", "min", "7", "2"]
    assert drawn(live)[-6:-3] == [
        "Waits for billing-worker-2 to rejoin; 2 members are held up, for 3 min of at",
        "most 5 min",
        "warning R-01 member billing-worker-2 keeps the others waiting",
    ]


@pytest.mark.parametrize(
    ("width", "begin"),
    [
        (100, "rebalance-monitor top   41 groups · 1 rebalancing · 1 open finding "),
        (80, "rebalance-monitor top   41 groups · 1 rebalancing · 1 open finding "),
        (79, "top   41 groups · 1 rebalancing · 1 open finding "),
        (60, "41 groups, 1 rebalancing, 1 open finding "),
    ],
)
def test_the_header_of_top_cuts_no_word(live, width, begin):
    title = drawn(live, width)[0]
    assert title.startswith(begin)
    assert title.endswith(" UTC")


def test_a_wide_terminal_shows_names_of_states_in_full(live):
    heading, first = drawn(live, 160, 50)[1:3]
    assert "generation" in heading
    assert "PreparingRebalance" in first


def test_arrows_pages_home_and_end_choose_a_group_that_is_always_seen(live):
    assert marked(live) == "billing"
    press(live, "down", "down")
    assert marked(live) == "group-01"
    press(live, "up")
    assert marked(live) == "group-00"
    press(live, "page down")
    assert marked(live) == NAMES[live.rows]
    press(live, "end")
    assert marked(live) == NAMES[-1]
    press(live, "down")
    assert marked(live) == NAMES[-1]
    press(live, "page up", "page up", "page up", "page up")
    assert marked(live) == "billing"


def test_the_choice_stays_with_its_group_when_the_order_changes(state, live):
    press(live, "down", "down")
    put(state, group("zzz", state="CompletingRebalance"))
    state.finding("R-01-group-39", finding("group-39", severity="critical"))
    assert marked(live) == "group-01"
    press(live, "escape")
    assert marked(live) == "group-39"


def test_a_filter_leaves_groups_by_name_and_state_and_escape_drops_it(live):
    press(live, "/", "3", "q", "backspace", "8")
    assert drawn(live)[-1].startswith("/38")
    assert [line[2:10] for line in drawn(live)[2:4]] == ["group-38", ""]
    assert not live.is_over
    press(live, "enter")
    assert drawn(live)[-1].endswith("filter: 38")
    press(live, "/", "clear", *"PREPARING", "enter")
    assert marked(live) == "billing"
    press(live, "/", *"zz", "enter")
    assert "No group has PREPARINGzz in its name, cluster or state; Esc shows all." in drawn(live)
    press(live, "enter", "down")
    assert live.view is View.GROUPS
    press(live, "escape")
    assert len([line for line in drawn(live) if "Stable" in line]) == live.rows - 1


def test_enter_shows_what_the_group_waits_for_its_findings_and_members_and_goes_back(live):
    press(live, "enter")
    lines = drawn(live, 160, 50)
    assert lines[1] == "billing has been PreparingRebalance for 3 min"
    assert lines[2] == "Waits for billing-worker-2 to rejoin; 2 members are held up, for 3 min of at most 5 min"
    assert "  to do         Look at its poll loop." in lines
    (waited_for,) = [line for line in lines if line.startswith("billing-worker-2-1")]
    assert "not rejoined" in waited_for
    assert waited_for.endswith("Heartbeat at 14:13:17")
    press(live, "enter")
    assert marked(live) == "billing"


def test_the_deaths_of_one_client_are_one_entry_of_its_group_with_a_count(state, live):
    for number, rule in enumerate(("T-09", "T-09", "T-04", "M-13")):
        died = finding("billing", rule=rule, summary="died", opened_s=NOW_S - 300 + 60 * number, severity="info")
        state.finding(f"d-{number}", {**died, "id": f"d-{number}", "client_id": "worker", "client_address": "10.0.0.7"})
    press(live, "enter")
    lines = drawn(live, 160, 60)
    assert sum("member does not rejoin" in line for line in lines) == 2
    assert [line.partition(", ")[2] for line in lines if "in 4 findings" in line] == ["2 times in 4 findings, 14:08:20 to 14:13:19"]


def test_rebalances_of_the_last_hour_are_counted_with_their_cost_and_listed_in_their_group(state, live):
    for ago_s, cost in ((3_700, 1_000), (3_500, 12.5), (60, 90)):
        state.event(rebalance("billing", at_s=NOW_S - ago_s, cost=cost))
    heading, first, second = drawn(live, 160)[1:4]
    assert heading.split()[-4:] == ["last", "hour", "its", "cost"]
    assert first.split()[-3:] == ["2", "102", "member-s"]
    assert second.split() == ["group-00", "Stable", "1", "min", "7", "2"]
    assert "Last hour: 2 rebalances, 102 member-s without consuming" in drawn(live)
    press(live, "enter")
    began = [line.split()[0] for line in drawn(live, 160, 50) if "worker-2 did not rejoin for 2.4 s" in line]
    assert began == ["14:12:17", "13:14:57", "13:11:37"]


def test_a_group_with_many_members_is_scrolled_to_its_last_one(state, live):
    put(state, group("huge", clients=[f"client-{number:03}" for number in range(200)]))
    press(live, "/", *"huge", "enter", "enter")
    assert "client-199" not in "\n".join(drawn(live))
    assert "lines 1 to 22 of 2" in drawn(live)[-1]
    press(live, "end")
    assert any(line.startswith("client-199") for line in drawn(live))
    assert drawn(live)[-2].startswith("published")
    press(live, "home")
    assert drawn(live)[1] == "huge has been Stable for 1 min"


def test_a_group_that_the_monitor_dropped_is_said_to_be_gone(state, live):
    press(live, "enter")
    state.group(("lab", "billing"), None)
    assert drawn(live, 160)[2] == "The monitor has dropped this group: nothing was heard of it for long, or it was deleted."
    press(live, "escape")
    assert marked(live) == "group-00"


def test_help_names_the_keys_and_any_key_goes_back_to_where_it_was_asked_for(live):
    press(live, "enter", "?")
    assert any(line.startswith("q  Ctrl-C") for line in drawn(live))
    press(live, "x")
    assert live.view is View.GROUP
    press(live, "q")
    assert live.is_over


@pytest.mark.parametrize(
    ("age_s", "said"),
    [
        (59, None),
        (7_500, " the monitor wrote its last status 2 h 5 min ago: it is not running, and what is"),
        (NOW_S, " no monitor has run on this Kafka yet: it has not written any status"),
    ],
)
def test_a_monitor_that_does_not_run_is_said_at_the_top(age_s, said):
    state = PageState(clock=lambda: NOW_S)
    put(state, group("orders"))
    state.monitor_status({"partition": 0}, NOW_S - age_s)
    state.read_to_the_end()
    assert drawn(LiveView(state, SOURCE))[1].startswith(said or "  group ")


def test_what_keeps_new_records_away_and_findings_about_no_group_are_said_at_the_top(state, live):
    state.finding("V-04", finding("", rule="V-04", severity="error", summary="no record at all for 10 s"))
    state.say("Kafka at monitor:9092: Connection refused")
    assert drawn(live)[1:3] == [
        " nothing new comes: Kafka at monitor:9092: Connection refused",
        " error V-04 no record at all for 10 s",
    ]


def test_a_remark_is_shown_whole_on_as_many_lines_as_it_takes(state, live):
    state.say(
        "Kafka at monitor:9092: Connection refused by a host that has no broker, so check kafka.bootstrap_servers of the configuration"
    )
    said = " ".join(line.strip() for line in drawn(live)[1:3])
    assert said.endswith("check kafka.bootstrap_servers of the configuration")


def test_before_anything_was_read_the_board_says_that_it_is_reading():
    state = PageState(clock=lambda: NOW_S)
    assert drawn(LiveView(state, SOURCE))[1] == " the topics are being read; what is shown is not complete yet"
    state.monitor_status({"partition": 0}, NOW_S)
    state.read_to_the_end()
    assert drawn(LiveView(state, SOURCE))[1] == "The monitor has not seen any group yet."


@pytest.mark.parametrize(("width", "height"), [(20, 5), (40, 8), (80, 1), (300, 100)])
def test_any_size_of_terminal_can_be_drawn(state, live, width, height):
    state.say("Kafka is away")
    for keys in ((), ("enter",), ("?",), ("x", "escape", "/", "o")):
        press(live, *keys)
        drawn(live, width, height)
