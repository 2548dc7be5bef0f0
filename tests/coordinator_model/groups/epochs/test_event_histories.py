"""Events of random lives of groups whose members have epochs: whole, in order, each once, and the same after any restart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.coordinator import Coordinator
from coordinator_model.events import GroupEvent, RebalanceBegan, RebalanceFinished
from tests.coordinator_model.reference.consumer_history import Plan, plans


def told(plan: Plan, restored_at: frozenset[int] = frozenset(), lost: range = range(0)) -> list[GroupEvent]:
    """The events of a life, of which some records are lost; the model is restored before some others."""
    model = Coordinator(topic="mirror", partition=0)
    events = []
    for index, record in enumerate(plan.run().records):
        if index in lost:
            continue
        if index in restored_at:
            model = Coordinator.restore(model.snapshot())
        model.receive(record)
        events += model.drain_events()
    assert model.drain_dead_letters() == []
    return events


def check(events: list[GroupEvent]) -> None:
    ids = [event.id for event in events]
    assert len(set(ids)) == len(ids)
    open_: dict[str, RebalanceBegan] = {}
    for event in events:
        if isinstance(event, RebalanceBegan) and event.group_type != "classic":
            assert event.group not in open_, f"{event} begins before {open_[event.group]} is over"
            open_[event.group] = event
        elif isinstance(event, RebalanceFinished) and event.group_type != "classic":
            began = open_.pop(event.group)
            assert (event.generation, event.from_generation) == (began.generation, began.from_generation)
            assert event.took_ms is None or event.took_ms >= 0
            assert event.cost_us is not None
            assert event.cost_us >= 0
            if event.unheld is not None:
                assert all(one.us > 0 for one in event.unheld)
                assert (event.partitions_moved or 0) >= 0
                assert (event.partitions_stayed or 0) >= 0


@given(plans(), st.frozensets(st.floats(0, 1), max_size=5))
def test_a_rebalance_that_began_is_finished_once_and_a_restart_changes_no_event(plan: Plan, cuts: frozenset[float]) -> None:
    records = len(plan.run().records)
    events = told(plan)
    check(events)
    again = told(plan, frozenset(int(records * cut) for cut in cuts))
    assert [event.as_json() for event in again] == [event.as_json() for event in events]


@given(plans(), st.floats(0, 1), st.integers(1, 20))
def test_lost_records_leave_no_rebalance_half_told(plan: Plan, share: float, lost: int) -> None:
    start = int(len(plan.run().records) * share)
    check(told(plan, lost=range(start, start + lost)))
