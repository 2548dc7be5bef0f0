"""A real Prometheus scrapes the endpoint, which shows the golden transcripts: no broker, no Spark."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from streaming.config.metrics import Metrics
from streaming.metrics.collector import Collector
from streaming.metrics.metrics_state import GROUPS
from streaming.metrics.server import Probes, opened
from tests.needs import needs
from tests.real.harness import wait_for
from tests.streaming.metrics.prometheus import PATIENCE_S, Prometheus
from tests.streaming.metrics.transcripts import Watched, encoded

pytestmark = [
    pytest.mark.timeout(1_200),
    needs("prometheus"),
]

GROUP = "crime-zombie-member"  # its name in the recording


@pytest.fixture(scope="module")
def watched():
    return Watched("violation-zombie-member-3.9.2").told().read().told()


@pytest.fixture(scope="module")
def prometheus(watched, tmp_path_factory):
    collector = Collector(watched.metrics_state, Metrics())
    with opened("127.0.0.1:0", collector, Probes(lambda: None, lambda: None), option="listen", remedy="") as url:
        running = Prometheus(tmp_path_factory.mktemp("prometheus"), urlsplit(url).netloc)
        try:
            yield running
        finally:
            running.close()


def test_it_is_told_what_the_model_knows(prometheus, watched):
    (group,) = watched.metrics_state.look().groups.values()
    where = f'{{cluster="lab",group="{GROUP}"}}'
    prometheus.wait(f"sum(rebalance_group_state{where})", 1)
    prometheus.wait(f"rebalance_group_state{where} == 1", 1)
    assert prometheus.ask(f"rebalance_group_state{where} == 1")[0][0]["state"] == group.state
    prometheus.wait(f"rebalance_group_generation{where}", group.generation)
    prometheus.wait(f"sum(rebalance_group_rebalances_total{where})", sum(count for _, count in group.causes))
    prometheus.wait(f"rebalance_group_join_duration_seconds_count{where}", group.joins[0])
    prometheus.wait('sum(rebalance_phase_duration_seconds_count{phase="join"})', group.joins[0])
    for api, error, answers in group.errors:
        labels = f'cluster="lab",group="{GROUP}",api="{api}",error="{error}"'
        prometheus.wait(f"rebalance_group_errors_total{{{labels}}}", answers)
    frames = sum(record.kind.value in {"req", "res"} for record in watched.records)
    prometheus.wait("sum(rebalance_monitor_frames_total)", frames)


def test_open_findings_are_told_by_rule_and_severity(prometheus, watched):
    open_ = list(watched.metrics_state.look().open.values())
    assert open_
    for finding in open_:
        labels = f'cluster="lab",rule="{finding.rule}",severity="{finding.severity}"'
        alike = sum((other.rule, other.severity) == (finding.rule, finding.severity) for other in open_)
        prometheus.wait(f"rebalance_open_findings{{{labels}}}", alike)
        prometheus.wait(f"rebalance_findings_total{{{labels}}} >= {alike}", alike)
        prometheus.wait(f'rebalance_group_open_findings{{{labels},group="{GROUP}"}}', alike)


def test_it_knows_the_types_of_the_metrics(prometheus):
    kinds = prometheus.kinds()
    assert kinds["rebalance_group_state"] == "gauge"
    assert kinds["rebalance_phase_duration_seconds"] == "histogram"
    assert kinds["rebalance_group_join_duration_seconds"] == "summary"
    assert "counter" in {kinds.get("rebalance_monitor_frames_total"), kinds.get("rebalance_monitor_frames")}


def test_the_series_of_a_group_that_went_are_stale(prometheus, watched):
    """The last one: it takes the group away."""
    any_series = f'{{group="{GROUP}"}}'
    wait_for(lambda: prometheus.ask(any_series), "the group is there", PATIENCE_S)
    watched.metrics_state.apply(GROUPS, {f"lab/{GROUP}": encoded(None)})
    wait_for(
        lambda: not prometheus.ask(any_series) and prometheus.value("rebalance_monitor_up") is not None,
        "the group has no series, and the monitor has",
        PATIENCE_S,
    )
