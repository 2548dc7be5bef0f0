"""The job with several shuffle partitions: state in each, the same findings, and the same again after a kill."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from coordinator_model.coordinator import Coordinator
from tests.real.harness import WAIT_S, wait_for
from tests.real.monitor_process import SETTINGS, START_UP_S, MonitorProcess
from tests.real.traffic import produce, story

pytestmark = pytest.mark.real

TOPIC = "spread"
PARTITIONS = 3
START_US = 1_700_000_000_000_000


def test_killed_and_started_again_it_finds_what_the_models_find(broker, tmp_path):
    broker.create_topic(TOPIC, PARTITIONS, config={"retention.ms": "-1"})  # the story is old news
    producer = Producer({"bootstrap.servers": broker.internal, "linger.ms": 5, "enable.idempotence": True})
    models = [Coordinator(topic=TOPIC, partition=partition, settings=SETTINGS) for partition in range(PARTITIONS)]
    ends = dict.fromkeys(range(PARTITIONS), 0)
    expected = {}
    for partition, record in story(start_us=START_US, seconds=30, groups=30, partitions=PARTITIONS, frames_per_s=400):
        produce(producer, TOPIC, partition, record)
        found = models[partition].receive(record._replace(partition=partition, offset=ends[partition]))
        expected |= {finding.id: finding.status for finding in found}
        ends[partition] += 1
    assert producer.flush(60) == 0
    assert expected

    job = {"shuffle_partitions": 2, "max_records_per_batch": 1500, "trigger_ms": 0}
    monitor = MonitorProcess(tmp_path, broker.internal, "spread-out", mirror=TOPIC, job=job, quality={"enabled": False})
    try:
        monitor.start()
        read = wait_for(lambda: total if (total := sum(monitor.positions().values())) > 2000 else 0, "some batches", START_UP_S)
        assert read < sum(ends.values()), "it was killed too late to prove anything"
        monitor.kill()
        monitor.start()
        monitor.wait_until_read(ends)
        # The status may be readable a moment before the findings of the same batch: they are in other topics.
        wait_for(lambda: monitor.model_findings() == expected, "it has found what the models found", 2 * WAIT_S)
        assert monitor.stop() == 0
    finally:
        monitor.kill()
    stores = [
        store
        for number in range(2)
        for store in (monitor.checkpoint / "findings" / "state" / "0" / str(number)).glob("*.changelog")
    ]
    assert {store.parent.name for store in stores} == {"0", "1"}
