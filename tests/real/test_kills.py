"""The kill test, short: each of the three processes once. ``make kills`` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.demo.broker import Broker
from tests.real.kills import run
from tests.real.monitor_process import START_UP_S

pytestmark = [pytest.mark.real, pytest.mark.timeout(5 * START_UP_S)]


def test_what_is_killed_under_load_knows_in_the_end_what_an_undisturbed_run_knows(broker: Broker, tmp_path: Path) -> None:
    done = run(tmp_path, broker, kills=3, seed=1, shuffle_partitions=4)
    assert [kill.victim for kill in done.kills] == ["driver", "JVM", "Python worker"]
    assert done.differences() == []
    assert done.undisturbed is not None
    assert len(done.undisturbed.findings) > 20
    assert len(done.undisturbed.models) == 4
