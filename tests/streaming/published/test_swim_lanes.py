"""From events to lanes."""

from __future__ import annotations

import pytest

from streaming.published import sentences
from streaming.published.page_state import ALL, PageState
from streaming.published.swim_lanes import Doing, MarkKind, swim_lanes
from streaming.web import drawing
from streaming.web.from_events import record_of
from tests.golden import transcript
from tests.samples import sampled
from tests.streaming.web import history
from tests.streaming.web.conftest import filled

NOW_S = history.NOW_S
LAST_MEMBER_GOES = {"lawful-consumer-steady-4.3.1", "lawful-eager-4.3.1", "lawful-share-4.3.1", "violation-zombie-member-3.9.2"}


def swim_of(lines, name):
    return swim_lanes(filled(lines).groups["prod", name])


def test_a_lane_has_a_bar_for_each_thing_a_member_does_and_a_mark_for_what_befell_it():
    lane = swim_of(history.orders(), "orders").lanes["i\x00orders-1"]
    assert [bar.doing for bar in lane.bars] == [
        *(Doing.JOINING, Doing.SYNCING, Doing.CONSUMING),
        *(Doing.ASKED_TO_REJOIN, Doing.JOINING, Doing.SYNCING, Doing.CONSUMING, Doing.UNKNOWN),
        *(Doing.ASKED_TO_REJOIN, Doing.JOINING, Doing.SYNCING, Doing.CONSUMING),
        *(Doing.ASKED_TO_REJOIN, Doing.JOINING),
    ]
    assert all(one.to_s == other.from_s for one, other in zip(lane.bars[:6], lane.bars[1:7], strict=True))
    assert lane.bars[-1].to_s is None
    assert [mark.what for mark in lane.marks] == [MarkKind.CLOSED, MarkKind.FENCED, MarkKind.BEGAN]


def test_who_is_refused_consumes_no_more():
    lane = swim_of(history.orders(), "orders").lanes["i\x00orders-1"]
    at = {at_s: [bar.doing for bar in lane.bars if bar.from_s <= at_s < (bar.to_s or NOW_S)] for at_s in (NOW_S - 295, NOW_S - 285)}
    assert at == {NOW_S - 295: [Doing.UNKNOWN], NOW_S - 285: []}


def killed(ends_with: str, **fields: object) -> history.Group:
    """A member whose connection closes 44 s ago, and which is gone 10 s ago."""
    group = history.Group("orders", ["a"])
    group.event("member_served", NOW_S - 60, group.members[0])
    group.event("connection_closed", NOW_S - 44, group.members[0])
    group.event(ends_with, NOW_S - 10, group.members[0], **fields)
    return group


def test_who_was_killed_consumes_until_its_connection_closed():
    (lane,) = swim_of(killed("member_dropped").records, "orders").lanes.values()
    assert [bar[:3] for bar in lane.bars] == [
        (Doing.CONSUMING, NOW_S - 60, NOW_S - 44),
        (Doing.UNKNOWN, NOW_S - 44, NOW_S - 10),
    ]


def test_who_was_killed_is_silent_from_then_on_once_its_session_is_over():
    (lane,) = swim_of(killed("session_over", silent_since=history.iso(NOW_S - 46)).records, "orders").lanes.values()
    assert [bar[:3] for bar in lane.bars if bar.to_s != bar.from_s] == [
        (Doing.CONSUMING, NOW_S - 60, NOW_S - 44),
        (Doing.SILENT, NOW_S - 44, NOW_S - 10),
    ]


@pytest.mark.parametrize(("last_frame_s", "doing"), [(30, Doing.CONSUMING), (46, Doing.UNKNOWN)])
def test_who_sends_frames_on_another_connection_goes_on(last_frame_s, doing):
    group = history.Group("orders", ["a"])
    group.event("member_served", NOW_S - 60, group.members[0])
    group.event("connection_closed", NOW_S - 44, group.members[0])
    past = filled(group.records).groups["prod", "orders"]
    past.content = {"state_since": None, "waits_for": [], "members": [_listed(group.members[0], NOW_S - last_frame_s)]}
    (lane,) = swim_lanes(past).lanes.values()
    assert (lane.bars[-1].doing, lane.bars[-1].to_s) == (doing, None)


def _listed(member, last_frame_s):
    return {"state": "in sync", "last_frame_at": history.iso(last_frame_s), **member}


def test_a_static_member_keeps_its_lane_through_all_its_ids():
    group = history.Group("orders", ["orders-0"], static=True)
    old, new = group.members[0], group.members[0] | {"member_id": "another"}
    group.event("member_served", NOW_S - 60, old)
    group.event("member_joined", NOW_S - 30, new)
    group.event("member_served", NOW_S - 29, new)
    swim = swim_of(group.records, "orders")
    assert [(lane.name, lane.member_id, len(lane.bars)) for lane in swim.lanes.values()] == [("orders-0", "another", 3)]


def test_silence_begins_with_the_last_frame_and_not_when_it_was_noticed():
    group = history.Group("orders", ["a"])
    group.event("member_served", NOW_S - 60, group.members[0])
    group.event("session_over", NOW_S - 10, group.members[0], silent_since=history.iso(NOW_S - 44))
    (lane,) = swim_of(group.records, "orders").lanes.values()
    assert lane.bars[-1][:3] == (Doing.SILENT, NOW_S - 44, NOW_S - 10)


def test_who_waits_is_bound_to_whom_it_waits_for_then_and_now():
    swim = swim_of(history.orders(), "orders")
    waiting = frozenset({"i\x00orders-0", "i\x00orders-1"})
    assert [(wait.at_s and round(wait.at_s - NOW_S), wait.waiting, wait.waited_for) for wait in swim.waits] == [
        (-574, waiting, frozenset({"i\x00orders-2"})),
        (-277, waiting, frozenset({"i\x00orders-2"})),
        (None, waiting, frozenset({"i\x00orders-2"})),
    ]


def test_blindness_is_a_stretch_of_time():
    assert swim_of(history.orders(), "orders").blind == [(NOW_S - 420, NOW_S - 380)]


def test_members_without_events_have_a_lane_from_the_groups_own_record():
    lines = [line for line in history.orders() if "kind" not in line]
    swim = swim_of(lines, "orders")
    assert [(lane.name, lane.bars[-1].doing, lane.bars[-1].from_s) for lane in swim.lanes.values()] == [
        ("orders-0", Doing.JOINING, NOW_S - 41),
        ("orders-1", Doing.JOINING, NOW_S - 41),
        ("orders-2", Doing.ASKED_TO_REJOIN, NOW_S - 41),
    ]


def rows_of(members, *, unfolded=False):
    swim = swim_of(history.search(members), "search-indexer")
    return drawing.rows(swim, drawing.window(NOW_S, span_s=900, end_s=None), unfolded=unfolded)


def test_of_200_members_those_that_are_waited_for_have_lanes_and_the_others_are_folded():
    rows = rows_of(200)
    assert len(rows) < 12
    assert sum(1 + row.others for row in rows) == 200
    assert [(row.lane.bars[-1].doing, row.others) for row in rows[:3]] == [(Doing.CONSUMING, 0)] * 3
    assert len(rows_of(200, unfolded=True)) == 200


def test_a_window_shows_only_lanes_of_its_time():
    group = history.Group("orders", ["a", "b"])
    group.event("member_served", NOW_S - 900, group.members[0])
    group.event("member_left", NOW_S - 800, group.members[0])
    group.event("member_served", NOW_S - 100, group.members[1])
    swim = swim_of(group.records, "orders")
    shown = [
        [row.lane.name for row in drawing.rows(swim, drawing.window(NOW_S, span_s=300, end_s=end_s), unfolded=False)]
        for end_s in (None, NOW_S - 700)
    ]
    assert shown == [["b"], ["a"]]


def test_a_session_that_is_over_was_silent_before_and_who_is_dropped_has_a_mark():
    group = history.Group("orders", ["a", "b"])
    for member in group.members:
        group.event("member_served", NOW_S - 100, member)
    group.event("session_over", NOW_S - 20, group.members[0], silent_since=history.iso(NOW_S - 65))
    group.event("member_dropped", NOW_S - 10, group.members[1])
    first, second = swim_of(group.records, "orders").lanes.values()
    assert [bar[:3] for bar in first.bars] == [(Doing.CONSUMING, NOW_S - 100, NOW_S - 65), (Doing.SILENT, NOW_S - 65, NOW_S - 20)]
    assert [mark.what for mark in first.marks] == [MarkKind.SESSION_OVER]
    assert [bar[:3] for bar in second.bars] == [(Doing.CONSUMING, NOW_S - 100, NOW_S - 10)]
    assert [mark.what for mark in second.marks] == [MarkKind.DROPPED]


def test_from_events_alone_it_is_known_who_waits_for_whom():
    state = filled([line for line in history.orders() if "kind" in line])
    record = record_of(state.groups["prod", "orders"])
    assert (record["state"], record["generation"], len(record["members"])) == ("PreparingRebalance", 6, 3)
    assert sentences.waits_for(record).text == "Waits for orders-2 to rejoin; 2 members are held up"
    assert swim_lanes(state.groups["prod", "orders"]).waits[-1].waited_for == {"i\x00orders-2"}


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        ("every member was served", "Stable"),
        ("no member is left", "Empty"),
        ("the group was deleted", "Dead"),
        ("the next rebalance began", "PreparingRebalance"),
        ("frames are missing, or the coordinator moved", "PreparingRebalance"),
    ],
)
def test_how_a_rebalance_ended_tells_the_state_after_it(ended, state):
    group = history.Group("orders", ["a"])
    group.rebalance(NOW_S - 9)
    group.records[-1]["ended"] = ended
    group.records = [one for one in group.records if one["kind"] in {"rebalance_began", "rebalance_finished"}]
    assert record_of(filled(group.records).groups["prod", "orders"])["state"] == state


def test_a_refusal_of_who_held_the_instance_before_ends_nothing_of_who_holds_it_now():
    group = history.Group("orders", ["orders-0"], static=True)
    old, new = group.members[0], group.members[0] | {"member_id": "another"}
    group.event("member_served", NOW_S - 60, old)
    group.event("member_joined", NOW_S - 31, new)
    group.event("member_served", NOW_S - 30, new)
    group.event("member_fenced", NOW_S - 20, old, error="FENCED_INSTANCE_ID", api="Heartbeat")
    group.event("session_over", NOW_S - 10, old, silent_since=history.iso(NOW_S - 15))
    (lane,) = swim_of(group.records, "orders").lanes.values()
    assert (lane.bars[-1][:3], lane.member_id) == ((Doing.CONSUMING, NOW_S - 30, None), "another")
    assert [mark.what for mark in lane.marks] == [MarkKind.FENCED, MarkKind.SESSION_OVER]
    group.event("member_fenced", NOW_S - 5, new, error="FENCED_INSTANCE_ID", api="Heartbeat")
    (lane,) = swim_of(group.records, "orders").lanes.values()
    assert lane.bars[-1].to_s == NOW_S - 5


@pytest.mark.parametrize("name", sampled(transcript.names(), LAST_MEMBER_GOES))
def test_badge_and_lanes_agree_on_whether_a_group_has_members(name):
    state = PageState(clock=None, kept=ALL)
    for event in transcript.replayed(name).events:
        state.event(event)
    for past in state.groups.values():
        badge, lives = record_of(past)["state"], any(lane.is_open for lane in swim_lanes(past).lanes.values())
        assert (badge, lives) not in {("Stable", False), ("Empty", True)}
