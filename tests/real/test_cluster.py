"""The job on a Spark cluster, short: an executor is killed once. ``make cluster`` is the long one.

That the job's findings are those of the model alone, whatever befalls it, is in ``test_durability`` on one machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.demo.broker import Broker
from tests.real.cluster import run
from tests.real.monitor_process import START_UP_S

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.timeout(5 * START_UP_S)]


def test_what_is_submitted_to_a_cluster_and_loses_an_executor_finds_what_a_local_run_finds(broker: Broker, tmp_path: Path) -> None:
    assert run(tmp_path, broker, kills=["executor"]) == []
