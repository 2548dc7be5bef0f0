"""The lease: one holder at a time, where there is nothing but a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.errors import SetupError
from streaming.spark import lease
from streaming.spark.lease import Lease

REFUSAL = "another monitor is running on the checkpoint"


class Clock:
    """Time that passes when somebody sleeps, and what happens meanwhile."""

    def __init__(self) -> None:
        self.now = 100.0
        self.meanwhile: Callable[[], object] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(lease, "time", clock)
    return clock


def test_while_one_holds_it_and_says_so_another_is_turned_away(clock: Clock, tmp_path: Path) -> None:
    first, second = Lease(tmp_path), Lease(tmp_path)
    first.take()
    clock.meanwhile = first.keep
    with pytest.raises(SetupError, match=REFUSAL):
        second.take()
    clock.now += lease.RENEWED_EVERY_S
    first.keep()


def test_what_was_given_back_is_had_at_once_and_what_was_left_behind_after_a_while(clock: Clock, tmp_path: Path) -> None:
    first, second, third = Lease(tmp_path), Lease(tmp_path), Lease(tmp_path)
    first.take()
    first.release()
    began = clock.now
    second.take()
    assert clock.now - began < lease.RENEWED_EVERY_S
    began = clock.now
    third.take()
    assert lease.LAPSES_AFTER_S <= clock.now - began < 2 * lease.LAPSES_AFTER_S


def test_a_holder_that_was_away_too_long_ends_when_it_comes_back(clock: Clock, tmp_path: Path) -> None:
    first, second = Lease(tmp_path), Lease(tmp_path)
    first.take()
    second.take()
    with pytest.raises(SetupError, match=REFUSAL):
        first.keep()
    first.release()
    clock.now += lease.RENEWED_EVERY_S
    second.keep()  # what the other one gave back was not its own


def test_of_two_that_come_at_once_one_stays(clock: Clock, tmp_path: Path) -> None:
    first, second = Lease(tmp_path), Lease(tmp_path)

    def other() -> None:
        clock.meanwhile = lambda: None
        second.take()

    clock.meanwhile = other
    with pytest.raises(SetupError, match=REFUSAL):
        first.take()
    clock.now += lease.RENEWED_EVERY_S
    second.keep()


def test_a_store_that_fails_for_a_moment_ends_nobody_and_one_that_fails_at_the_start_does(clock: Clock, tmp_path: Path) -> None:
    held = Lease(tmp_path)
    held.take()
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").mkdir()
    clock.now += lease.RENEWED_EVERY_S
    held.keep()
    with pytest.raises(SetupError, match=r"cannot use .*; mend that, or set another job.state"):
        Lease(tmp_path).take()


def test_it_is_written_only_now_and_then(clock: Clock, tmp_path: Path) -> None:
    held = Lease(tmp_path)
    held.take()
    before = (tmp_path / "lock").read_text()
    held.keep()
    assert (tmp_path / "lock").read_text() == before
    clock.now += lease.RENEWED_EVERY_S
    held.keep()
    assert (tmp_path / "lock").read_text() != before
