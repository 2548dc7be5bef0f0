"""The example for Alertmanager: Debian's amtool takes it, and alerts of ours go where its comments say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import path_of

EXAMPLE = Path(__file__).parents[2] / "deploy" / "alertmanager" / "alertmanager.yml"


@pytest.fixture(scope="module")
def amtool():
    binary = path_of("amtool")

    def run(*arguments: str) -> str:
        done = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    return run


def test_the_example_is_valid(amtool):
    assert "SUCCESS" in amtool("check-config", str(EXAMPLE))


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ("alertname=RebalanceMonitorHeartbeat severity=none cluster=prod", "deadman"),
        ("alertname=RebalanceMonitorStalled rule=V-05 severity=critical cluster=prod", "monitoring-team"),
        ("alertname=RebalanceSplitBrain rule=C-05 severity=critical cluster=prod group=orders", "kafka-team"),
        ("alertname=RebalanceStaleGenerationAccepted rule=G-02 severity=critical cluster=prod group=orders", "pager"),
        (
            "alertname=RebalanceStaleGenerationAccepted rule=G-02 severity=critical cluster=prod group=billing-eu",
            "pager,billing-team",
        ),
        ("alertname=RebalanceZombieGeneration rule=G-01 severity=error cluster=prod group=orders", "chat"),
    ],
)
def test_an_alert_goes_where_the_comments_say(amtool, labels, receivers):
    assert amtool("config", "routes", "test", f"--config.file={EXAMPLE}", *labels.split()) == receivers
