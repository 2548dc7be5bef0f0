"""When a watchdog is to start the job anew, and when nothing is read: by a clock that the test turns."""

from __future__ import annotations

import pytest

from streaming.metrics.vitals import STALLED_S, UNREAD_S, Vitals


class Clock:
    def __init__(self):
        self.now_s = 1_000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def vitals(clock):
    return Vitals(clock)


@pytest.fixture
def reading(vitals):
    """A job whose first batch has just ended."""
    vitals.observe_kafka(answers=True)
    vitals.observe(running=True)
    vitals.observe_progress()
    return vitals


def said(vitals):
    return vitals.probes.unhealthy(), vitals.probes.unready()


def test_a_job_that_starts_is_healthy_and_not_ready(vitals, clock):
    assert said(vitals) == (None, "no batch has ended yet")
    clock.now_s += STALLED_S - 1
    assert said(vitals) == (None, "no batch has ended yet")
    clock.now_s += 1
    assert said(vitals) == ("no batch has ended for 300 s, although Kafka answers", "no batch has ended yet")


def test_a_job_whose_batches_end_is_both(reading, clock):
    assert said(reading) == (None, None)
    for _ in range(20):
        clock.now_s += UNREAD_S - 1
        assert said(reading) == (None, None)
        reading.observe_progress()


def test_a_job_without_batches_is_first_not_ready_and_then_not_healthy(reading, clock):
    clock.now_s += UNREAD_S
    assert said(reading) == (None, "no batch has ended for 60 s")
    clock.now_s += STALLED_S - UNREAD_S
    assert said(reading) == ("no batch has ended for 300 s, although Kafka answers", "no batch has ended for 300 s")


def test_without_kafka_a_restart_would_not_help_and_afterwards_it_has_its_time_again(reading, clock):
    for _ in range(100):
        clock.now_s += 10
        reading.observe_kafka(answers=False)
        assert said(reading) == (None, "Kafka does not answer")
    reading.observe_kafka(answers=True)
    clock.now_s += STALLED_S - 1
    assert said(reading) == (None, f"no batch has ended for {1_000 + STALLED_S - 1:.0f} s")
    clock.now_s += 1
    assert reading.probes.unhealthy() == "no batch has ended for 300 s, although Kafka answers"
    reading.observe_progress()
    assert said(reading) == (None, None)


def test_a_query_that_is_started_again_is_not_ready_for_that_time(reading):
    reading.observe(running=False)
    assert said(reading) == (None, "a query is being started again, or Kafka refuses a client")
    reading.observe(running=True)
    assert said(reading) == (None, None)
