"""What the lag of groups makes of the looks that are taken at them, every few seconds."""

from __future__ import annotations

import json

import pytest

from coordinator_model.wording import iso_utc
from streaming.metrics.lag_history import KEPT, LagHistory
from streaming.metrics.metrics_state import Group
from streaming.published.records import RebalanceLag, lag_of, lag_of_rebalance
from tests.streaming.terminal.records import rebalance

EVERY_US = 15_000_000
KEY = ("lab", "orders")


def group(generation, state="Stable", *, learning=False):
    return Group(
        *KEY,
        kind="classic",
        state=state,
        state_since_us=None,
        learning=learning,
        protocol_type="consumer",
        protocol="range",
        coordinator="kafka-1:9092",
        members=3,
        member_states=(),
        to_give_up=0,
        arrivals=(),
        generation=generation,
        incarnation=1,
        causes=(),
        costs=(),
        joins=(0, 0.0),
        syncs=(0, 0.0),
        errors=(),
        partition=0,
        updated_us=0,
    )


class Looks:
    """One look after the other; each returns what is published of the group."""

    def __init__(self, *, max_partitions=100):
        self.history = LagHistory(max_partitions)
        self.at_us = 0

    def look(self, generation, lag, state="Stable", **more):
        self.at_us += EVERY_US
        return self.history.observe([group(generation, state, **more)], {KEY: {("t", 0): lag, ("t", 1): 0}}, self.at_us)[KEY]

    def rebalances(self):
        """Generation, before, highest, numbers of the looks at which it began and was gone."""
        record = self.history.observe([group(None, learning=True)], {KEY: {}}, self.at_us)[KEY]
        assert lag_of(json.dumps(record)) == record
        looks = {iso_utc(number * EVERY_US): number for number in range(1, 100)} | {None: None}
        return [
            (one["generation"], one["before"], one["highest"], looks[one["began_at"]], looks[one["gone_at"]])
            for one in record["rebalances"]
        ]


@pytest.fixture
def looks():
    return Looks()


def test_a_record_has_the_sum_and_the_partitions_that_are_furthest_behind():
    history = LagHistory(max_partitions=2)
    behind = {("t", 0): 5, ("t", 1): 70, ("u", 0): 30, ("u", 1): 0}
    assert history.observe([group(3)], {KEY: behind}, EVERY_US) == {
        KEY: {
            "cluster": "lab",
            "group": "orders",
            "at": iso_utc(EVERY_US),
            "lag": 105,
            "partitions": {"t": {"1": 70}, "u": {"0": 30}},
            "left_out": 2,
            "rebalances": [],
        }
    }


def test_a_group_that_only_falls_behind_has_no_rebalance(looks):
    for lag in (10, 400, 5_000):
        looks.look(3, lag)
    assert looks.rebalances() == []


def test_a_rebalance_that_is_seen_to_run_counts_from_there_until_the_lag_is_as_low_as_before(looks):
    looks.look(3, 10)
    looks.look(3, 400, "PreparingRebalance")
    assert looks.rebalances() == [(None, 10, 400, 2, None)]
    looks.look(4, 900, "CompletingRebalance")
    looks.look(4, 700)
    assert looks.rebalances() == [(4, 10, 900, 2, None)]
    looks.look(4, 8)
    looks.look(4, 300)
    assert looks.rebalances() == [(4, 10, 900, 2, 5)]


def test_a_rebalance_between_two_looks_shows_by_its_generation(looks):
    looks.look(3, 10)
    looks.look(4, 250)
    looks.look(4, 10)
    assert looks.rebalances() == [(4, 10, 250, 2, 3)]


def test_a_rebalance_that_builds_up_nothing_is_gone_at_once(looks):
    looks.look(3, 10)
    looks.look(4, 7)
    assert looks.rebalances() == [(4, 10, 10, 2, 2)]


def test_lag_that_is_low_while_the_group_still_rebalances_is_not_gone(looks):
    looks.look(3, 10)
    looks.look(3, 5, "PreparingRebalance")
    assert looks.rebalances() == [(None, 10, 10, 2, None)]


def test_a_rebalance_that_begins_before_the_lag_of_the_last_is_gone_is_measured_from_where_both_began(looks):
    looks.look(3, 10)
    looks.look(4, 900)
    looks.look(5, 1_200)
    looks.look(5, 9)
    assert looks.rebalances() == [(4, 10, 900, 2, 4), (5, 10, 1_200, 3, 4)]


def test_of_a_group_that_the_model_is_learning_only_the_lag_is_known(looks):
    looks.look(3, 10)
    assert looks.look(None, 400, "Unknown", learning=True)["lag"] == 400
    assert looks.look(9, 400, learning=True)["lag"] == 400
    assert looks.rebalances() == []


def test_the_first_look_finds_no_rebalance_even_if_one_is_under_way(looks):
    looks.look(3, 400, "PreparingRebalance")
    looks.look(4, 10)
    looks.look(4, 20)
    assert looks.rebalances() == []
    looks.look(5, 50)
    assert looks.rebalances() == [(5, 20, 50, 4, None)]


def test_the_newest_rebalances_of_a_group_are_kept(looks):
    for generation in range(KEPT + 5):
        looks.look(generation, 0)
    assert [one[0] for one in looks.rebalances()] == list(range(5, KEPT + 5))


def test_a_restart_keeps_the_rebalances_that_are_over(looks):
    looks.look(3, 10)
    looks.look(4, 250)
    record = looks.look(4, 10)
    restarted = Looks()
    restarted.history.restore(record)
    restarted.at_us = looks.at_us
    restarted.look(4, 10)
    restarted.look(5, 20)
    assert restarted.rebalances() == [(4, 10, 250, 2, 3), (5, 10, 20, 5, None)]


def test_a_restart_goes_on_with_a_lag_that_is_not_gone(looks):
    looks.look(3, 10)
    record = looks.look(4, 250)
    restarted = Looks()
    restarted.history.restore(record)
    restarted.at_us = looks.at_us
    restarted.look(4, 300)
    restarted.look(4, 10)
    assert restarted.rebalances() == [(4, 10, 300, 2, 4)]


def test_a_group_that_is_gone_is_removed_once_and_one_that_is_not_told_of_stays_as_it_is(looks):
    looks.look(3, 10)
    history = looks.history
    assert history.observe([group(3)], {}, looks.at_us) == {}
    assert history.observe([], {}, looks.at_us) == {KEY: None}
    assert history.observe([], {}, looks.at_us) == {}


# ------------------------------------------------------------------------------------ what readers make of it

BEGAN_S = 1_790_000_000.0
BUILDUP = {
    "generation": 7,
    "began_at": iso_utc(round(BEGAN_S * 1e6) + 3_000_000),
    "before": 10,
    "highest": 1_210,
    "gone_at": iso_utc(round(BEGAN_S * 1e6) + 45_000_000),
}
EVENT = rebalance("g", at_s=BEGAN_S + 2.5)


@pytest.mark.parametrize(
    ("rebalances", "event", "expected"),
    [
        ([BUILDUP], EVENT, RebalanceLag(1_200, 45.0)),
        ([BUILDUP | {"gone_at": None}], EVENT, RebalanceLag(1_200, None)),
        ([BUILDUP | {"generation": 8}], EVENT, None),
        ([BUILDUP | {"generation": None}], rebalance("g", at_s=BEGAN_S + 2.5, to_generation=None), None),
        ([], EVENT, None),
        # a group that was deleted counts its generations anew
        ([BUILDUP | {"began_at": "2026-01-01T00:00:00Z", "highest": 20}, BUILDUP], EVENT, RebalanceLag(1_200, 45.0)),
    ],
)
def test_a_rebalance_finds_its_lag_by_the_generation_that_it_led_to(rebalances, event, expected):
    assert lag_of_rebalance({"rebalances": rebalances}, event) == expected


def test_without_a_record_of_lag_a_rebalance_has_none():
    assert lag_of_rebalance(None, EVENT) is None


WHOLE = {"cluster": "lab", "group": "orders", "lag": 3, "partitions": {"t": {"0": 3}}, "rebalances": [BUILDUP]}


@pytest.mark.parametrize(
    "broken",
    [
        {"cluster": 1},
        {"lag": "3"},
        {"partitions": []},
        {"partitions": {"t": {"0": None}}},
        {"rebalances": None},
        {"rebalances": [BUILDUP | {"highest": "x"}]},
        {"rebalances": [BUILDUP | {"began_at": "yesterday"}]},
        {"rebalances": [BUILDUP | {"gone_at": "tomorrow"}]},
        {"rebalances": [BUILDUP | {"generation": "7"}]},
        {"rebalances": [{name: BUILDUP[name] for name in ("began_at", "before", "highest", "generation")}]},
    ],
)
def test_what_is_no_record_of_lag_is_none(broken):
    assert lag_of(json.dumps(WHOLE)) == WHOLE
    assert lag_of(json.dumps(WHOLE | broken)) is None
