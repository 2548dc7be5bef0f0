"""What the views show, without a browser: their HTML, read by Python's own parser."""

from __future__ import annotations

import json
import re

import pytest
import requests

from streaming.published.page_state import PageState
from streaming.published.taking import take_line
from streaming.web.happened import lines
from streaming.web.server import Page, differences
from streaming.web.views import Overview, Renderer
from tests.golden import transcript
from tests.streaming.terminal.records import committing, rebalance
from tests.streaming.web import history
from tests.streaming.web.conftest import filled, served
from tests.streaming.web.parsed import Parsed, get


@pytest.fixture(scope="module")
def page(recorded):
    with served(recorded) as (address, _):
        yield address


def id_of(recorded, name):
    return recorded.groups["prod", name].id


@pytest.fixture(scope="module")
def addresses(recorded):
    """One address of each view, of large, small and hostile groups."""
    found = ["/", "/?text=orders", "/sight"]
    found += [f"/findings/{name}" for name in recorded.findings]
    for past in list(recorded.groups.values())[:4]:
        found += [f"/groups/{past.id}", f"/groups/{past.id}?span=60&end=2026-09-21T13:30:00Z", f"/groups/{past.id}?all=1"]
        found += [f"/groups/{past.id}/rebalances/{lines([event])[0][0].row}" for event in past.rebalances]
    return found


def test_every_view_is_well_formed_and_no_id_is_given_twice(page, addresses):
    for address in addresses:
        ids = get(page, address).ids
        assert len(ids) == len(set(ids)), address


def test_no_view_has_a_script_or_a_style_of_its_own_or_anything_from_elsewhere(page, addresses):
    for address in addresses:
        parsed = get(page, address)
        assert [set(tag) for tag in parsed.tags("script")] == [{"defer", "src"}], address
        assert parsed.tags("style") == parsed.tags("img") == []
        for _, attributes in parsed.elements:
            assert "style" not in attributes
            assert not [name for name in attributes if name.startswith("on")]
            for name in ("href", "src", "action"):
                assert re.match(r"[/?#]", attributes.get(name) or "/"), (address, attributes)


def test_hostile_names_are_text_and_nothing_else(page, recorded):
    overview, group = get(page, "/"), get(page, f"/groups/{id_of(recorded, history.HOSTILE)}")
    assert history.HOSTILE in overview.text
    assert history.HOSTILE in group.text
    assert '"><img src=x onerror=alert(1)>' in group.text
    assert "abc\\u202egpj.exe" in group.text
    assert "\u202e" not in overview.text + group.text
    assert "c" * 200 not in group.text


def test_links_within_the_lanes_lead_to_elements_that_are_there(page, recorded):
    for name in ("orders", "search-indexer"):
        parsed = get(page, f"/groups/{id_of(recorded, name)}")
        targets = {attributes["href"][1:] for attributes in parsed.tags("a") if attributes["href"].startswith("#")}
        assert targets <= set(parsed.ids)
        assert len(targets) > 5


def test_the_overview_shows_groups_in_trouble_first_and_what_they_wait_for(page):
    parsed = get(page, "/")
    assert "15 groups" in parsed.words
    named = [line.strip() for line in parsed.text.splitlines() if line.strip() in {"search-indexer", "orders", "billing-0000"}]
    assert named == ["search-indexer", "orders", "billing-0000"]
    assert "Waits for orders-2 to rejoin; 2 members are held up, 41 s of at most 5 min" in parsed.words


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("text=ORDERS", {"orders"}),
        ("state=PreparingRebalance", {"orders", "search-indexer"}),
        ("severity=critical", {"search-indexer"}),
        ("severity=error", {"orders", "search-indexer"}),
        ("severity=nonsense&state=Empty", {"audit-0007"}),
        ("cluster=test", set()),
        ("text=%3Cscript", {history.HOSTILE}),
    ],
)
def test_the_address_holds_the_filter(page, recorded, query, shown):
    rows = {
        attributes["id"] for attributes in get(page, f"/?{query}").tags("li") if "row" in (attributes.get("class") or "").split()
    }
    assert rows == {id_of(recorded, name) for name in shown}


def test_a_finding_says_what_to_do_and_how_it_may_be_wrong(page, recorded):
    name = next(name for name, finding in recorded.findings.items() if finding["group"] == "orders")
    text = get(page, f"/findings/{name}").words
    for sentence in (
        "R-01 member never rejoins",
        "orders-2 does not rejoin group orders",
        "Look at the process",
        "When it may be wrong:",
        "partition 0, offset 4711",
    ):
        assert sentence in text


def test_a_rebalance_says_who_held_it_up_and_what_it_cost(page, recorded):
    past = recorded.groups["prod", "orders"]
    row = lines([list(past.rebalances)[-1]])[0][0].row
    text = get(page, f"/groups/{past.id}/rebalances/{row}").words
    assert (
        "It took 28.0 s, 26.0 s of it to join and 2.0 s to sync: every member was served. Cause: member joined, begun by orders-0; "
        "orders-2 did not rejoin for 26.0 s." in text
    )
    assert "It cost 81.8 member-seconds without consuming." in text
    assert re.search(r"orders-2 ← the others waited 26\.0 s ?\+26\.0 s ?\+28\.0 s", text)


def test_lag_is_shown_wherever_a_group_and_its_rebalances_are():
    state = filled(history.orders())
    past = state.groups["prod", "orders"]
    event = list(past.rebalances)[-1]
    (row,) = (line.row for line in lines([event])[0])
    addresses = ("/", f"/groups/{past.id}", f"/groups/{past.id}/rebalances/{row}")
    with served(state) as (page, _):
        assert not any(re.search(r"\blag\b", get(page, address).words, re.IGNORECASE) for address in addresses)
        rebalance = {
            "generation": event.to_generation,
            "began_at": history.iso(event.began_s),
            "before": 20,
            "highest": 1_220,
            "gone_at": history.iso(event.began_s + 75),
        }
        partitions = {"orders": {"0": 12_000, "1": 345, "2": 0}}
        state.lag(
            past.key, {"cluster": "prod", "group": "orders", "lag": 12_345, "partitions": partitions, "rebalances": [rebalance]}
        )
        overview, group, one = (get(page, address).words for address in addresses)
    assert "lag 12,000" in overview
    assert "12,345 records; most: 12,000 of orders-0, 345 of orders-1" in group
    assert "+1,200 records, gone after 1 min" in group
    assert "without consuming. Lag: +1,200 records, gone after 1 min." in one


def test_progress_is_shown_in_the_list_and_on_the_view_of_a_group_with_bars_of_the_last_hour():
    shown = committing(now=2.5, records=[1_200, 0, 300])
    state = filled([shown, committing("young", now=None, usually=None, records=())])
    orders, young = (state.groups["lab", name].id for name in ("orders", "young"))
    with served(state) as (page, _):
        overview, group, other = (get(page, address).words for address in ("/", f"/groups/{orders}", f"/groups/{young}"))
        drawn = requests.get(f"{page}/groups/{orders}", timeout=10).text
    assert (overview.count("rec/s"), "2.5 rec/s" in overview) == (1, True)
    assert "2.5 records/s at 14:12 UTC, usually 10" in group
    assert "14:13:17 UTC" in group
    assert "at most 1,200 records in 2 min" in group
    assert 'aria-label="Committed records in each step: 1,200, 0, 300"' in drawn
    assert re.findall(r'y="(\d+)" height="(\d+)"', drawn[drawn.index('class="pace"') :])[:2] == [("0", "100"), ("75", "25")]
    assert ("records/s" in other, "14:13:17 UTC" in other) == (False, True)


def test_a_rebalance_names_who_never_came_back_and_since_when():
    group = history.Group("orders", ["orders-0", "orders-1", "orders-2"], static=True)
    group.rebalance(history.NOW_S - 60, join_s=20, lost=[2])
    state = filled(group.records)
    past = state.groups["prod", "orders"]
    with served(state) as (address, _):
        parsed = get(address, f"/groups/{past.id}/rebalances/{lines(past.rebalances)[0][0].row}")
    assert "orders-2 never came back." in parsed.words
    assert re.search(r"orders-2 ← never came back, gone since 14:11:35 ?never ?never", parsed.words), parsed.words


def test_the_rebalance_of_a_group_with_epochs_says_who_gave_up_and_who_waited_with_nothing():
    state = PageState(clock=None)
    for event in transcript.replayed("lawful-consumer-falls-silent-4.3.1").events:
        assert take_line(state, json.dumps(event.as_json()))
    (past,) = state.groups.values()
    rows = [lines([event])[0][0].row for event in past.rebalances]
    with served(state) as (address, _):
        died, handed_over = (get(address, f"/groups/{past.id}/rebalances/{row}").words for row in (rows[1], rows[2]))
    assert "It took 3.8 s: every member was served. Cause: joined, begun by consumer-falls-silent-3." in handed_over
    assert "epoch3 → 4" in handed_over
    assert "consumer-falls-silent-1 +0 ms+0 ms" in handed_over  # it gave up just before
    assert "consumer-falls-silent-2 nothing+3.8 s" in handed_over
    assert "consumer-falls-silent-1 and consumer-falls-silent-2 never came back." in died
    assert "join phase" not in handed_over + died


def test_members_of_one_name_are_told_apart_and_many_are_counted_once(recorded):
    told, _ = lines(recorded.groups["prod", "search-indexer"].events)
    assert {line.who for line in told if line.members > 1} == {"indexer"}
    alone = [line.who for line in told if line.members == 1 and line.who]
    assert alone
    assert all(re.fullmatch("indexer…[0-9a-f]{4}", who) for who in alone)
    told, _ = lines(recorded.groups["prod", "orders"].events)
    assert {line.who for line in told} == {"", "orders-0", "orders-1", "orders-2"}


def test_many_events_of_one_kind_are_one_line(recorded):
    told, rows = lines(recorded.groups["prod", "search-indexer"].events)
    assert len(told) < 60
    assert sum(line.members for line in told) == len(rows) == len(recorded.groups["prod", "search-indexer"].events)
    assert set(rows.values()) == {line.row for line in told}


@pytest.mark.parametrize(
    "path",
    [
        "/groups/g0",
        "/groups/g0/events.jsonl",
        "/groups/g0/rebalances/e0",
        "/findings/nothing",
        "/group?name=nothing",
        "/nothing",
        "/static/page.css",
        "/groups/",
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(page, path):
    answer = requests.get(page + path, timeout=10)
    assert answer.status_code == 404
    assert Parsed(answer.text).tags("h1")


@pytest.mark.parametrize(
    "query",
    [
        "span=nan",
        "span=-1&end=x",
        "span=1e400",
        "end=0001-01-01T00:00:00Z",
        "end=9999-12-31T23:59:59Z",
        "anchor=inf",
        "anchor=x",
        "all=2",
    ],
)
def test_an_address_made_by_hand_is_shown_as_well_as_it_can_be(page, recorded, query):
    get(page, f"/groups/{id_of(recorded, 'orders')}?{query}")


def test_a_group_is_found_by_its_name(page, recorded):
    answer = requests.get(page + "/group", params={"name": "orders", "cluster": "prod"}, timeout=10, allow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/groups/{id_of(recorded, 'orders')}")


def test_the_events_of_a_group_are_given_as_they_were_published(page, recorded):
    answer = requests.get(f"{page}/groups/{id_of(recorded, 'orders')}/events.jsonl", timeout=10)
    published = {line["id"]: line for line in history.orders() if "kind" in line}
    assert {line["id"]: line for line in map(json.loads, answer.text.splitlines())} == published


def test_a_row_of_the_overview_is_rendered_again_only_when_its_group_has_changed():
    state = filled(history.records())
    overview = Overview(state, Renderer())
    before = overview.view({})
    take_line(state, json.dumps(history.quiet(4)[-1] | {"state": "Empty"}))
    after = overview.view({})
    changed = dict(differences(before, after))["lists"]["groups"]
    assert list(changed["items"]) == [state.groups["prod", "stock-0004"].id]
    assert list(before.lists["groups"]) != list(after.lists["groups"]) == changed["order"]


def test_a_change_of_trouble_sends_the_new_order_and_the_changed_row_alone():
    state = filled(history.records())
    overview = Overview(state, Renderer())
    before = overview.view({})
    group = history.Group("orders", ["orders-0"], static=True)
    group.view("Stable", history.NOW_S)
    state.findings.clear()
    take_line(state, json.dumps(group.records[0]))
    lists = dict(differences(before, overview.view({})))["lists"]["groups"]
    assert lists["order"].index(state.groups["prod", "orders"].id) > 2


def test_a_live_picture_stays_as_it_is_while_nothing_happens_and_is_drawn_anew_when_it_has_moved_far():
    now = [history.NOW_S]
    state = filled(history.orders(), clock=lambda: now[0])
    page = Page(state, None)
    address, query = f"/groups/{state.groups['prod', 'orders'].id}", {"span": "300", "anchor": str(history.NOW_S)}
    before = page._view(address, query)
    now[0] += 100
    assert set(dict(differences(before, page._view(address, query)))) <= {"parts"}
    assert not [part for part in dict(differences(before, page._view(address, query))).get("parts", {}) if part.startswith("lane")]
    now[0] += 100
    moved = dict(differences(before, page._view(address, query)))
    assert float(moved["attributes"]["lanes"]["data-to"]) == now[0]
    assert moved["lists"]["lane-list"]["items"]


def test_a_record_of_another_release_costs_its_own_row_and_view_alone(caplog):
    records = history.records()
    bad = next(
        record for record in records if record.get("group") == "billing-0000" and "members" in record and "kind" not in record
    )
    state = filled([*records, bad | {"waits_for": 7}])
    id_ = state.groups["prod", "billing-0000"].id
    with served(state) as (address, _):
        overview = get(address, "/").words
        assert "billing-0000 cannot be shown" in overview
        assert "Waits for orders-2" in overview
        answer = requests.get(f"{address}/groups/{id_}", timeout=10)
    assert (answer.status_code, "the log of the page says why" in answer.text) == (404, True)
    assert id_ in caplog.text


def test_a_rebalance_of_which_little_is_known_is_shown_with_what_is():
    little = rebalance("orders", at_s=history.NOW_S, took_ms=None, join_ms=None, sync_ms=None, cost=None, waited_for=[])
    state = filled([little.as_json() | {"cluster": "prod", "members": []}])
    past = state.groups["prod", "orders"]
    with served(state) as (address, _):
        assert "not known" in get(address, f"/groups/{past.id}").words
        assert (
            "No member is named in this record."
            in get(address, f"/groups/{past.id}/rebalances/{lines(past.rebalances)[0][0].row}").words
        )


def test_what_is_said_of_the_last_hour_goes_with_the_time_and_nothing_else_is_sent():
    now = [history.NOW_S]
    state = filled(history.records(), clock=lambda: now[0])
    overview = Overview(state, Renderer())
    before = overview.view({})
    now[0] += 60
    assert "lists" not in dict(differences(before, overview.view({})))
    now[0] += 4 * 3600
    changed = dict(differences(before, overview.view({})))["lists"]["groups"]["items"]
    past = state.groups["prod", "mail-0001"]
    assert "Last hour: 1 rebalance" in before.lists["groups"][past.id]
    assert "Last hour: no rebalance seen" in changed[past.id]
    assert state.groups["prod", "billing-0000"].id not in changed


def test_sight_names_who_captures_and_which_brokers_coordinate_groups():
    state = filled(history.records())
    for partition, ticks in ((0, 3.0), (1, 1.0)):
        state.monitor_status(
            {
                "topic": "mirror",
                "partition": partition,
                "newest_record_ms": round(history.NOW_S * 1000),
                "taps": [["65f0a1b2c3d4e5", "prod", round((history.NOW_S - ticks) * 1000)], "broken", [1], ["x", "y", "z"]],
                "not_offered": {"65f0a1b2c3d4e5": ["Fetch 19 → 18", "Produce 14 → 13"], "tap": "broken"},
                "counters": {"open": 7, "close": 2},
            },
            history.NOW_S,
        )
    with served(state) as (address, _):
        html = requests.get(f"{address}/sight", timeout=10).text
    words = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    assert "65f0a1b2c3d4e5 prod 1 s ago Fetch 19 → 18, Produce 14 → 13 Each start" in words
    assert "kafka-2:9092 prod" in words
    assert "7, 2" in words
