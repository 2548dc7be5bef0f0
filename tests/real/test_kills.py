"""The kill test, short: each of the three processes once. ``make kills`` is the long one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from streaming.demo.broker import Broker
from streaming.spark import checkpoint
from tests.real.kills import PARTITIONS, run
from tests.real.monitor_process import START_UP_S

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.timeout(5 * START_UP_S)]


def test_what_is_killed_under_load_knows_in_the_end_what_an_undisturbed_run_knows(broker: Broker, tmp_path: Path) -> None:
    done = run(tmp_path, broker, kills=3, seed=1, lanes=2)
    assert [kill.victim for kill in done.kills] == ["driver", "JVM", "Python worker"]
    assert done.differences() == []
    assert done.undisturbed is not None
    assert len(done.undisturbed.findings) > 20
    assert len(done.undisturbed.models) == PARTITIONS
    kinds = Counter(event["kind"] for events in done.undisturbed.events.values() for event in events)
    assert kinds["member_served"] > 20
    assert min(kinds["told_to_give_up"], kinds["gave_up"]) > 5  # groups whose members have epochs
    restarted = [number for number, line in enumerate(done.said) if "the JVM ended by itself" in line]
    assert len(restarted) == 1, done.said
    assert not [line for line in done.said[restarted[0] :] if "query stopped" in line], "a worker is replaced without a word"
    lanes = checkpoint.lanes_in(tmp_path / "kills-disturbed" / "checkpoint")
    assert [lane.name for lane in lanes] == ["0", "1"]
