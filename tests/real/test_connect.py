"""Kafka Connect's own workers on a running broker: other config topics, one address for two, and silence about what is lawful."""

from __future__ import annotations

import kafka
import pytest

from coordinator_model.finding import Blame, Severity, Status
from tests.real.connect import Worker, live_as_one_cluster, running
from tests.real.harness import wait_for
from tests.real.watched import errors, found, rules, watched

pytestmark = [pytest.mark.real, pytest.mark.long]

GROUP = "connect-billing"


@pytest.mark.timeout(600)
def test_workers_of_one_cluster_read_the_same_configs(tmp_path):
    """Connectors are made, changed and deleted, workers are restarted one by one, and one is killed: 25 generations in a minute."""
    with watched(tmp_path) as seen:
        workers = [Worker(tmp_path, number, seen.front, group=GROUP) for number in (1, 2, 3)]
        with running(*workers):
            live_as_one_cluster(*workers)
        assert rules(seen.monitor) <= {"R-05", "R-06", "T-04", "T-09"}  # of the worker that is killed, and of so many generations
        assert errors(seen.monitor) == []


@pytest.mark.timeout(600)
def test_a_worker_with_another_config_topic_is_R_27(tmp_path):
    """It has read nothing, and the first, which leads, is ahead of it."""
    with watched(tmp_path) as seen:
        first = Worker(tmp_path, 1, seen.front, group=GROUP)
        second = Worker(tmp_path, 2, seen.front, group=GROUP, configs="others")
        with running(first, second):
            finding = wait_for(lambda: found(seen.monitor, "R-27"), "R-27 speaks")
            assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.CONFIG)
            assert finding.status is not Status.RESOLVED  # it may have recurred before it is looked at
            assert f"{second.url}/ (worker-2 at 127.0.0.1)" in finding.summary
            assert first.url not in finding.summary


@pytest.mark.timeout(600)
def test_a_leader_with_another_config_topic_is_R_27(tmp_path):
    """It has read less of its topic than the others of theirs, so it assigns nothing."""
    with watched(tmp_path) as seen:
        producer = kafka.KafkaProducer(bootstrap_servers=seen.broker.address())
        first = Worker(tmp_path, 1, seen.front, group=GROUP)
        second = Worker(tmp_path, 2, seen.front, group=GROUP, configs="others")
        seen.broker.create_topic("others", config={"cleanup.policy": "compact"})
        for number in range(8):
            producer.send("others", key=f"target-state-{number}".encode(), value=b'{"state":"STARTED"}')
        producer.close()
        with running(first, second):
            finding = wait_for(lambda: found(seen.monitor, "R-27"), "R-27 speaks")
            assert f"{first.url}/ (worker-1 at 127.0.0.1)" in finding.summary
            assert "CONFIG_MISMATCH" in finding.observed


@pytest.mark.timeout(600)
def test_workers_that_advertise_one_address_are_R_28(tmp_path):
    with watched(tmp_path) as seen:
        workers = [Worker(tmp_path, number, seen.front, group=GROUP, advertised_port=8083) for number in (1, 2)]
        with running(*workers):
            finding = wait_for(lambda: found(seen.monitor, "R-28"), "R-28 speaks")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CONFIG)
    assert all(f"{worker.name} at 127.0.0.1" in finding.summary for worker in workers)
    assert ":8083/" in finding.summary
