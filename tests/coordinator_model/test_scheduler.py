"""Deadlines: the earliest first, each once, and only the newest of a group."""

from __future__ import annotations

from coordinator_model.scheduler import Scheduler

A, B = ("c", "a"), ("c", "b")


def due(scheduler: Scheduler, now_us: int) -> list[tuple[str, str]]:
    return list(iter(lambda: scheduler.pop_due(now_us), None))


def test_groups_fall_due_in_the_order_of_their_deadlines_and_once() -> None:
    scheduler = Scheduler()
    assert scheduler.next_us() is None
    assert scheduler.schedule(A, 20)
    assert scheduler.schedule(B, 10)
    assert scheduler.next_us() == 10
    assert due(scheduler, 9) == []
    assert due(scheduler, 20) == [B, A]
    assert due(scheduler, 99) == []
    assert scheduler.due_us(A) is None


def test_a_deadline_is_brought_forward_and_never_put_off() -> None:
    scheduler = Scheduler()
    scheduler.schedule(A, 20)
    assert not scheduler.schedule(A, 30)
    assert not scheduler.schedule(A, 20)
    assert scheduler.schedule(A, 10)
    assert scheduler.due_us(A) == 10
    assert due(scheduler, 10) == [A]
    assert due(scheduler, 99) == [], "the deadline of before is void"


def test_what_is_cancelled_never_falls_due() -> None:
    scheduler = Scheduler()
    scheduler.schedule(A, 10)
    scheduler.schedule(B, 20)
    scheduler.cancel(A)
    assert due(scheduler, 99) == [B]
    scheduler.schedule(A, 30)
    scheduler.clear()
    assert (scheduler.next_us(), due(scheduler, 99)) == (None, [])
