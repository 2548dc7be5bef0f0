"""What the page keeps, and what it drops so that it can run for months."""

from __future__ import annotations

import json

import pytest

from streaming.published import page_state, sentences
from streaming.published.page_state import Kept, PageState
from streaming.published.taking import take_line
from tests.streaming.web import history
from tests.streaming.web.conftest import filled

KEY = ("prod", "orders")


def lines_of(kind):
    return [line for line in history.orders() if line.get("kind") == kind]


def test_an_event_that_comes_again_is_known_by_its_id():
    lines = [line for line in history.orders() if "kind" in line]
    assert len(filled([*lines, *lines]).groups[KEY].events) == len(lines)


def test_the_events_of_a_group_share_its_name_and_those_of_its_members():
    events = filled(line for line in history.orders() if "kind" in line).groups[KEY].events
    of_members = [event for event in events if getattr(event, "member_id", None)]
    for field in ("cluster", "group", "member_id", "client_id"):
        values = [getattr(event, field) for event in of_members]
        assert len({id(value) for value in values}) == len(set(values)) < len(values)


def test_events_are_kept_in_the_order_of_their_times_in_whatever_order_they_come():
    lines = [line for line in history.orders() if "kind" in line]
    times = [event.at_s for event in filled(reversed(lines)).groups[KEY].events]
    assert times == sorted(times)
    assert len(times) == len(lines)


def test_of_one_group_the_newest_events_are_kept():
    lines = sorted((line for line in history.orders() if "kind" in line), key=lambda line: line["at"])
    assert [event.id for event in filled(lines, kept=Kept(events_per_group=5)).groups[KEY].events] == [
        line["id"] for line in lines[-5:]
    ]


def test_of_all_groups_together_the_largest_past_gives_way():
    small = [line for line in history.quiet(1) if "kind" in line]
    state = filled([*small, *(line for line in history.search() if "kind" in line)], kept=Kept(events=40))
    assert sum(len(past.events) for past in state.groups.values()) == 40
    assert len(state.groups["prod", "mail-0001"].events) == len(small)


def test_events_older_than_what_is_kept_are_dropped():
    (old, *_), (new, *_) = lines_of("sight_lost"), lines_of("sight_regained")
    late = new | {"at": history.iso(history.NOW_S + page_state.KEPT_S)}
    assert [event.id for event in filled([old, late]).groups[KEY].events] == [late["id"]]


def test_too_many_groups_cost_the_one_of_which_least_was_heard(monkeypatch):
    monkeypatch.setattr(page_state, "GROUPS", 2)
    lines = [
        lines_of("rebalance_began")[0] | {"group": name, "id": name, "at": history.iso(at_s)}
        for name, at_s in (("a", 30), ("b", 10), ("c", 20))
    ]
    state = filled(lines)
    assert sorted(name for _, name in state.groups) == ["a", "c"]
    assert state.dropped_groups == 1


def test_a_tombstone_removes_a_group_and_a_withdrawn_finding_goes():
    state = filled(history.orders())
    for name in list(state.findings):
        state.finding(name, None)
    state.group(KEY, None)
    assert (state.groups, state.findings) == ({}, {})


def test_what_is_no_record_is_counted_and_changes_nothing():
    state = PageState()
    began = lines_of("rebalance_began")[0]
    bad = [
        "",
        "[]",
        "7",
        "null",
        '{"kind": 1}',
        json.dumps(began | {"at": "yesterday"}),
        json.dumps(began | {"at": None}),
        json.dumps(began | {"group": 7}),
        json.dumps(lines_of("rebalance_finished")[0] | {"members": [3]}),
    ]
    assert [take_line(state, line) for line in bad] == [False] * len(bad)
    assert (state.groups, state.findings, state.unreadable) == ({}, {}, len(bad))


def test_states_come_from_events_and_from_the_groups_own_records_alike():
    state = filled(history.orders())
    changes = [(round(change.at_s - history.NOW_S), change.state, change.generation) for change in state.groups[KEY].changes]
    assert changes == [
        (-600, "PreparingRebalance", 4),
        (-574, "CompletingRebalance", 4),
        (-572, "Stable", 5),
        (-420, "Unknown", 5),
        (-380, "Stable", 5),
        (-280, "PreparingRebalance", 5),
        (-277, "CompletingRebalance", 5),
        (-276, "Stable", 6),
        (-41, "PreparingRebalance", 6),
    ]


LAG = {"cluster": "prod", "group": "orders", "lag": 123_456, "partitions": {"t": {"0": 123_456}}, "rebalances": []}


def test_lag_that_shows_as_before_is_no_news_and_what_a_rebalance_did_to_it_is():
    state = filled(history.orders())
    past = state.groups[KEY]

    def is_news(**changed):
        before = past.version
        state.lag(KEY, LAG | changed)
        return past.version > before

    assert is_news()
    assert not is_news(lag=122_999)
    assert past.lag["lag"] == 122_999
    assert is_news(lag=95_000)
    assert not is_news(lag=95_400)
    assert is_news(lag=95_400, rebalances=[{"generation": 7}])


def test_lag_of_a_group_that_is_not_known_is_nothing():
    state = PageState()
    state.lag(KEY, LAG)
    assert state.groups == {}


@pytest.mark.parametrize(
    ("records", "shown"), [(0, 0), (7, 7), (99, 99), (104, 100), (105, 100), (106, 110), (12_345, 12_000), (999_999, 1_000_000)]
)
def test_two_digits_of_a_lag_count(records, shown):
    assert page_state.rounded(records) == shown


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0"), (12_000, "12,000"), (1_000_000, "1 M"), (1_200_000, "1.2 M"), (4.6e9, "4,600 M")]
)
def test_a_large_number_is_short(number, said):
    assert sentences.count(number) == said


def test_a_recording_is_as_late_as_its_newest_record():
    state = filled(lines_of("sight_lost"), clock=None)
    assert state.now_s() == history.NOW_S - 420
    assert state.is_recorded


def test_addresses_are_hidden_in_every_text_but_not_the_coordinators():
    state = filled(history.orders(), hide_addresses=True)
    kept = json.dumps([state.groups[KEY].content, [event.as_json() for event in state.groups[KEY].events], state.findings])
    assert "10.1.0." not in kept
    assert state.groups[KEY].content["coordinator"] == "kafka-2:9092"
    assert "10.1.0." in json.dumps(filled(history.orders()).findings)


def test_of_too_many_findings_those_that_are_resolved_go_first(monkeypatch):
    monkeypatch.setattr(page_state, "FINDINGS", 2)
    group = history.Group("orders", ["a", "b", "c", "d"])
    for number, status in enumerate(("open", "resolved", "open", "open")):
        group.finding("R-01", "member never rejoins", "error", history.NOW_S, number, status=status)
    opened = [record["id"] for record in group.records if record["status"] == "open"]
    assert list(filled(group.records).findings) == opened[1:]


def test_beyond_their_bounds_the_groups_and_findings_of_which_least_is_new_go(monkeypatch):
    monkeypatch.setattr(page_state, "GROUPS", 10)
    monkeypatch.setattr(page_state, "FINDINGS", 10)
    event = lines_of("rebalance_began")[0]
    finding = next(line for line in history.orders() if "rule" in line) | {"status": "open", "resolved_at": None}
    records = []
    for number in range(100):
        at = history.iso(1 + number)
        records += [
            event | {"group": f"g{number}", "id": f"{number}", "at": at},
            event | {"group": "g3", "id": f"3-{number}", "at": at},
        ]
        records.append(finding | {"group": f"g{number}", "id": f"{number}", "updated_at": at})
        if number % 2:
            resolved = {"status": "resolved", "resolved_at": at}
            records.append(finding | resolved | {"group": f"g{number}", "id": f"{number}", "updated_at": at})
    state = filled(records)
    assert {name for _, name in state.groups} == {"g3", *(f"g{number}" for number in range(91, 100))}
    assert list(state.findings) == [*(f"{number}" for number in range(82, 100, 2)), "99"]
    assert (state.dropped_groups, state.dropped_findings) == (90, 90)
    assert (list(state._resolved), len(state._quiet) <= 20) == (["99"], True)
