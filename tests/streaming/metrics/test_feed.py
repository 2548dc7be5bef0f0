"""The thread that follows the result topics, when that cannot be. How it does when it can is shown with a real broker."""

from __future__ import annotations

import threading

import pytest

from streaming.config.settings import MonitorConfig
from streaming.kafka.topics import Mirror
from streaming.metrics import feed as module
from streaming.metrics.feed import MetricsFeed
from streaming.metrics.metrics_state import MetricsState
from streaming.metrics.vitals import Vitals
from tests.streaming.metrics.transcripts import Watched, samples, select, value

MIRROR = Mirror("mirror", "id", "cluster", 1)


@pytest.fixture
def config():
    return MonitorConfig(kafka={"bootstrap_servers": "127.0.0.1:1", "reach_timeout_s": 0.2})


def test_a_kafka_that_is_away_is_waited_for_without_a_word_on_groups(config):
    metrics_state = MetricsState("mirror")
    with MetricsFeed(config, MIRROR, metrics_state, Vitals()):
        assert not metrics_state.is_complete()
    assert value(samples(metrics_state), "rebalance_monitor_restarts_total", part="metrics") == 0


def test_a_reader_that_fails_begins_anew_and_is_counted(config, monkeypatch):
    tried, metrics_state = threading.Semaphore(0), Watched("lawful-eager-4.3.1").read().told().metrics_state

    def fail(self):
        tried.release()
        raise RuntimeError("whatever")

    monkeypatch.setattr(MetricsFeed, "_follow", fail)
    monkeypatch.setattr(module, "_RETRY_S", 0.01)
    assert select(samples(metrics_state), "rebalance_group_members")
    with MetricsFeed(config, MIRROR, metrics_state, Vitals()):
        for _ in range(3):
            assert tried.acquire(timeout=60)
    found = samples(metrics_state)
    assert value(found, "rebalance_monitor_restarts_total", part="metrics") >= 2
    assert not select(found, "rebalance_group_members"), "what was known may have changed meanwhile"
