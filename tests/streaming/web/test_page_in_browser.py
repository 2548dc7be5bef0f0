"""The page in a real browser, over a recorded history: what a person sees, does, and does not have to do."""

from __future__ import annotations

import json
import time
from importlib.resources import files

import pytest
import requests

from streaming.published.page_state import PageState
from streaming.published.taking import read_file, take_line
from streaming.web.happened import lines
from tests.browser import browser
from tests.golden import transcript
from tests.needs import needs
from tests.streaming.web import history
from tests.streaming.web.conftest import filled, served

pytestmark = needs("chromium")

STRICT = "document.querySelectorAll('script:not([src]), style, [style], [onerror], img').length"


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def without_complaint(tab):
    """No console error, no exception, no blocked resource, whatever a test does."""
    tab.complaints.clear()
    tab.screen(1280)
    yield
    assert tab.complaints == []


@pytest.fixture
def state():
    began_s = time.monotonic()
    return filled(history.records(), clock=lambda: history.NOW_S + time.monotonic() - began_s)


@pytest.fixture
def page(tab, state):
    with served(state) as (address, _):
        yield address
        tab.open("about:blank")  # or it asks again for what is no longer there


def text(tab, selector):
    return tab.js(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")


def names(tab):
    return tab.js("[...document.querySelectorAll('.row .name a')].map(one => one.innerText)")


def group_address(state, name):
    return f"/groups/{state.groups['prod', name].id}"


def told(state, records):
    for record in records:
        assert take_line(state, json.dumps(record))


def test_a_stuck_rebalance_appears_and_is_over_without_reload(tab, page, state):
    tab.open(page)
    tab.wait_for("document.getElementById('live').innerText.includes('live')")
    tab.js("window.same = document")
    assert names(tab)[3] != "billing-0000"
    group = history.Group("billing-0000", ["billing-0"])
    group.view("PreparingRebalance", state.now_s(), waits_for=[0])
    group.finding("R-01", "member never rejoins", "critical", state.now_s() + 1, 0)
    told(state, group.records)
    tab.wait_until(
        lambda: names(tab)[0] in {"billing-0000", "search-indexer"} and "billing-0000" in names(tab)[:2], "the group comes up"
    )
    row = f"#{state.groups['prod', 'billing-0000'].id}"
    tab.wait_until(lambda: "rebalances: join" in text(tab, row), "its row says so")
    assert "Waits for billing-0 to rejoin" in text(tab, row)
    assert "1 critical" in text(tab, row)
    group.records.clear()
    group.view("Stable", state.now_s())
    group.finding("R-01", "member never rejoins", "critical", state.now_s(), 0, status="resolved")
    told(state, group.records)
    tab.wait_until(lambda: "stable" in text(tab, row) and "critical" not in text(tab, row), "it is over")
    assert tab.js("window.same === document")


def test_lanes_of_a_live_group_slide_and_take_in_what_happens(tab, page, state):
    tab.open(page + group_address(state, "orders") + "?span=60")
    tab.wait_for("document.getElementById('live').innerText.includes('live')")
    first = tab.js("document.getElementById('sliding').getAttribute('x')")
    tab.wait_until(lambda: tab.js("document.getElementById('sliding').getAttribute('x')") != first, "the lanes slide")
    assert tab.js("document.querySelectorAll('#wait-now .wait-head').length") == 1
    bars = tab.js("document.querySelectorAll('#lane-list .bar').length")
    group = history.Group("orders", ["orders-0", "orders-1", "orders-2"], static=True, generation=6)
    group.event("member_joined", state.now_s(), group.members[2])
    group.view("CompletingRebalance", state.now_s())
    told(state, group.records)
    tab.wait_for(f"document.querySelectorAll('#lane-list .bar').length == {bars + 1}")
    tab.wait_for("document.querySelectorAll('#wait-now .wait-head').length == 0")
    assert "asks to join" in text(tab, "#happened li")


def test_everything_is_reached_with_the_keyboard_alone(tab, page, state):
    tab.open(page)
    tab.press("/")
    tab.type("ord")
    tab.wait_until(lambda: names(tab) == ["orders"], "the list is filtered")
    assert tab.js("location.search") == "?text=ord"
    assert tab.js("document.activeElement.name") == "text"
    tab.press("Escape")
    tab.press("j")
    assert tab.js("document.activeElement.innerText") == "orders"
    tab.press("Enter")
    tab.wait_for(f"location.pathname === '{group_address(state, 'orders')}' && document.readyState === 'complete'")
    for key, wanted in (("+", "span=300"), ("[", "end="), ("]", ""), ("-", "span=900"), ("n", "span=900")):
        before = tab.js("location.search")
        tab.press(key)
        if wanted:
            tab.wait_until(lambda wanted=wanted: wanted in tab.js("location.search"), f"{key} from {before}")
    tab.js("document.querySelector('#lane-list .bar').focus()")
    where = "document.activeElement.getAttribute('aria-label')"
    first = tab.js(where)
    tab.press("ArrowRight")
    assert tab.js(where) != first
    tab.press("ArrowLeft")
    assert tab.js(where) == first
    tab.press("ArrowDown")
    below = tab.js("document.activeElement.closest('g').id")
    assert below != tab.js("document.querySelector('#lane-list .lane').id")
    tab.press("Enter")
    tab.wait_for("location.hash.startsWith('#e') && !!document.querySelector(location.hash)")
    tab.press("u")
    tab.wait_for("location.pathname === '/' && document.readyState === 'complete'")
    tab.press("?")
    assert tab.js("document.getElementById('keys').open")
    tab.press("Escape")
    assert not tab.js("document.getElementById('keys').open")


def test_state_survives_a_reload_and_the_way_back(tab, page, state):
    tab.open(page + "/?severity=error")
    shown = names(tab)
    assert len(shown) == 2
    tab.open(page + group_address(state, "orders") + "?span=300&end=2026-09-21T14:10:00Z")
    before = tab.js("document.getElementById('lanes').innerHTML")
    tab.open(tab.js("location.href"))
    assert tab.js("document.getElementById('lanes').innerHTML") == before
    tab.js("history.back()")
    tab.wait_until(lambda: names(tab) == shown, "back at the filtered list")


def test_hostile_names_are_shown_as_text_and_run_nothing(tab, page, state):
    tab.js("0")
    past = state.groups["prod", history.HOSTILE]
    finding = next(name for name, one in state.findings.items() if one["group"] == history.HOSTILE)
    for address in ("/", f"/groups/{past.id}", f"/groups/{past.id}?all=1", f"/findings/{finding}", "/?text=%3Cscript%3E"):
        tab.open(page + address)
        assert history.HOSTILE in tab.js("document.body.innerText"), address
        assert tab.js(STRICT) == 0, address
        assert tab.js("document.documentElement.scrollWidth <= innerWidth")
    told(state, [record | {"generation": 99} for record in history.hostile() if "members" in record and "kind" not in record])
    tab.open(page)
    told(state, [record | {"state": "Empty"} for record in history.hostile() if "members" in record and "kind" not in record])
    tab.wait_until(lambda: "empty" in text(tab, f"#{past.id}"), "the difference has come")
    assert text(tab, f"#{past.id} .name") == history.HOSTILE
    assert tab.js(STRICT) == 0


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_view_is_wider_than_the_screen_and_both_schemes_are_drawn(tab, page, state, width, dark):
    tab.screen(width, dark=dark)
    background = set()
    finding = next(iter(state.findings))
    for address in (
        "/",
        group_address(state, "orders"),
        group_address(state, "search-indexer") + "?all=1",
        f"/findings/{finding}",
        "/sight",
    ):
        tab.open(page + address)
        assert tab.js("document.documentElement.scrollWidth") <= width, address
        background.add(tab.js("getComputedStyle(document.documentElement).backgroundColor"))
    assert background == {"rgb(20, 23, 26)" if dark else "rgb(252, 252, 251)"}


def test_a_recording_is_shown_without_kafka_and_says_that_it_is_one(tab, tmp_path):
    state = PageState(clock=None)
    read_file(state, history.write(tmp_path / "recorded.jsonl", history.records()))
    with served(state) as (address, _):
        tab.open(address)
        assert text(tab, "#live") == "a recording"
        assert text(tab, f"#{state.groups['prod', 'orders'].id} .state time") == "40 s"
        time_shown = text(tab, "footer")
        tab.open(address + group_address(state, "orders"))
        assert text(tab, "footer") == time_shown


def test_whom_the_page_refuses_to_keep_up_to_date_is_told_and_sees_the_page_as_it_is(tab, state):
    with served(state, streams=1) as (address, page):
        with requests.get(f"{address}/stream?view=/", stream=True, timeout=10):
            tab.open(address)
            tab.wait_until(
                lambda: "not live: the page is looked at by too many" in text(tab, "#live"), "it says that it is not live"
            )
            assert len(names(tab)) == 15
            tab.wait_until(lambda: tab.complaints, "the browser notes the refusal")
        assert ["503" in complaint for complaint in tab.complaints] == [True]
        tab.complaints.clear()
        tab.open("about:blank")
        assert page.open_streams <= 1


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_has_nothing_to_say_of_any_view(tab, page, state, dark):
    axe = (files("axe_core_python") / "axe.min.js").read_text()
    past = state.groups["prod", "orders"]
    row = lines([next(iter(past.rebalances))])[0][0].row
    finding = next(iter(state.findings))
    for width in (390, 1280):
        tab.screen(width, dark=dark)
        for address in ("/", f"/groups/{past.id}", f"/groups/{past.id}/rebalances/{row}", f"/findings/{finding}", "/sight"):
            tab.open(page + address)
            tab.js(f"{axe};0")
            found = tab.js("axe.run().then(({violations}) => violations.map(({id, nodes}) => [id, nodes[0].html]))")
            assert found == [], address


@pytest.mark.parametrize("width", [390, 1280])
def test_axe_has_nothing_to_say_of_a_group_whose_members_have_epochs(tab, page, state, width):
    axe = (files("axe_core_python") / "axe.min.js").read_text()
    told(state, [event.as_json() for event in transcript.replayed("lawful-consumer-falls-silent-4.3.1").events])
    past = state.groups["lab", "consumer-falls-silent"]
    tab.screen(width)
    for event in [None, *past.rebalances]:
        row = "" if event is None else f"/rebalances/{lines([event])[0][0].row}"
        tab.open(f"{page}/groups/{past.id}{row}")
        assert tab.js("document.documentElement.scrollWidth") <= width
        tab.js(f"{axe};0")
        assert tab.js("axe.run().then(({violations}) => violations.map(({id, nodes}) => [id, nodes[0].html]))") == [], row
