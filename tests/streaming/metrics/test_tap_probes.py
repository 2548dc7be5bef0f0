"""The probes of a tap ask its loop whether it turns."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from streaming.metrics import tap as module
from streaming.metrics.tap import probes


@pytest.fixture
def loop():
    """One that turns in a thread of its own."""
    turning = asyncio.new_event_loop()
    thread = threading.Thread(target=turning.run_forever)
    thread.start()
    yield turning
    turning.call_soon_threadsafe(turning.stop)
    thread.join()
    turning.close()


def test_a_loop_that_turns_is_healthy_and_ready(loop):
    asked = probes(loop)
    assert (asked.unhealthy(), asked.unready()) == (None, None)


def test_a_loop_that_hangs_is_neither_until_it_turns_again(loop, monkeypatch):
    monkeypatch.setattr(module, "ANSWERS_WITHIN_S", 0.1)
    asked, hangs = probes(loop), threading.Event()
    loop.call_soon_threadsafe(hangs.wait, 30)
    assert [asked.unhealthy(), asked.unready()] == ["the tap has passed nothing on for 0 s"] * 2
    hangs.set()
    deadline = time.monotonic() + 30
    while asked.unhealthy() is not None:
        assert time.monotonic() < deadline
