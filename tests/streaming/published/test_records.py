"""What is read of published groups, of every type."""

from __future__ import annotations

import json

from coordinator_model.events import RECONCILING
from streaming.published.records import finding_order, group_of, trouble
from streaming.published.sentences import waits_for
from tests.coordinator_model.epoch_groups import newcomer
from tests.coordinator_model.epochs import Epochs
from tests.streaming.terminal import records


def test_a_consumer_group_whose_partitions_move_is_read_and_says_what_keeps_them():
    talk = Epochs()
    newcomer(talk)
    talk.settle()
    known = group_of(json.dumps(talk.group_json()))
    assert known is not None
    assert known["state"] == RECONCILING
    assert waits_for(known).text.startswith("Waits: a was asked to give up foo-2 at ")


def test_a_group_whose_partitions_move_comes_between_one_that_rebalances_and_a_stable_one():
    groups = [records.group(state, state=state) for state in ("Stable", "PreparingRebalance", RECONCILING)]
    ordered = sorted(groups, key=lambda one: trouble(one, {}))
    assert [one["state"] for one in ordered] == ["PreparingRebalance", RECONCILING, "Stable"]


def test_a_record_with_a_state_of_another_program_is_left_out():
    assert group_of(json.dumps(records.group("g", state="Confused"))) is None


def test_findings_stand_in_one_order_the_open_and_the_worst_first():
    states = [("resolved", "critical", 1), ("open", "warning", 2), ("update", "error", 4), ("open", "error", 3)]
    found = [
        records.finding("orders", status=status, severity=severity, opened_s=records.NOW_S + second)
        for status, severity, second in states
    ]
    assert [found.index(one) for one in sorted(found, key=finding_order)] == [3, 2, 1, 0]
