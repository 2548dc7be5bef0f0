"""What the supervisor makes of a failure, before any Spark runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.config.settings import MonitorConfig
from streaming.errors import SetupError
from streaming.spark.supervisor import Supervisor


@pytest.mark.parametrize(
    "said",
    ["ModuleNotFoundError: No module named 'streaming.spark'", "ModuleNotFoundError: No module named 'coordinator_model'"],
)
def test_executors_without_the_monitor_end_it_instead_of_being_tried_for_ever(tmp_path: Path, said: str) -> None:
    config = MonitorConfig(kafka={"bootstrap_servers": "nowhere:1"}, job={"checkpoint": tmp_path})
    supervisor = Supervisor(config, lock=0, tell=print)
    with pytest.raises(
        SetupError, match="the Python of the executors has no rebalance-monitor, or another package named streaming"
    ):
        supervisor._why(f"Traceback (most recent call last):\n  File ...\n{said}\n")
