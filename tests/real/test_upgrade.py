"""A checkpoint outlives the release that wrote it: one of each release is kept for ever, and this release goes on from it.

``checkpoints/release-N.tar.gz`` is what ``rebalance-monitor run`` of that release left behind after the first part of a story. Only whose
it is (the ids of topic and cluster) is written anew by the test. To add one when a release is made:

    python -m tests.real.test_upgrade
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from coordinator_model.coordinator import Coordinator
from coordinator_model.wire.record import MirrorRecord
from streaming.cli import app
from streaming.demo.broker import Broker
from streaming.spark import checkpoint
from tests.real.harness import wait_for
from tests.real.kills import alone, snapshots_in
from tests.real.monitor_process import SETTINGS, START_UP_S, MonitorProcess
from tests.real.traffic import produce, story

FIXTURES = Path(__file__).parent / "checkpoints"
KEPT = ("monitor.json", "findings")

TOPIC = "upgraded"
PARTITIONS = 2
TOLD = list(story(start_us=1_700_000_000_000_000, seconds=30, groups=6, partitions=PARTITIONS, frames_per_s=60, breach_every=20))
FIRST, SECOND = len(TOLD) // 2, len(TOLD) * 3 // 4

pytestmark = [pytest.mark.real, pytest.mark.timeout(5 * START_UP_S)]


class Story:
    """The topic, filled in parts, and what the model alone makes of it."""

    def __init__(self, broker: Broker) -> None:
        self._producer = Producer({"bootstrap.servers": broker.internal, "enable.idempotence": True})
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        self.models = [Coordinator(topic=TOPIC, partition=partition, settings=SETTINGS) for partition in range(PARTITIONS)]
        for model in self.models:
            model.on_partition_count(PARTITIONS)
        broker.create_topic(TOPIC, PARTITIONS, config={"retention.ms": "-1"})

    def tell(self, part: list[tuple[int, MirrorRecord]]) -> dict[str, str]:
        """Write a part of it to the topic; gives what the model finds in that part: id to status."""
        found: dict[str, str] = {}
        for partition, record in part:
            produce(self._producer, TOPIC, partition, record)
            findings = self.models[partition].receive(record._replace(partition=partition, offset=self.ends[partition]))
            found |= {finding.id: finding.status.value for finding in findings}
            self.ends[partition] += 1
        assert self._producer.flush(60) == 0
        return found


def monitor_of(folder: Path, broker: Broker, **job: object) -> MonitorProcess:
    return MonitorProcess(folder, broker.internal, "upgraded", mirror=TOPIC, job=job, quality={"enabled": False})


def whose(broker: Broker) -> dict[str, Any]:
    admin = AdminClient({"bootstrap.servers": broker.internal})
    topic = admin.describe_topics(TopicCollection([TOPIC]))[TOPIC].result(60)
    return {"topic_id": str(topic.topic_id), "cluster_id": str(admin.describe_cluster().result(60).cluster_id)}


@pytest.fixture(scope="module", params=sorted(FIXTURES.glob("release-*.tar.gz")), ids=lambda file: file.name)
def upgraded(request: pytest.FixtureRequest, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The monitor of today on the checkpoint of an earlier release, and the story as far as that has been read."""
    admin = AdminClient({"bootstrap.servers": broker.internal})
    if TOPIC in admin.list_topics(timeout=60).topics:
        admin.delete_topics([TOPIC])[TOPIC].result(60)
        wait_for(lambda: TOPIC not in admin.list_topics(timeout=60).topics, "the topic of the release before is gone")
    story = Story(broker)
    story.tell(TOLD[:FIRST])
    monitor = monitor_of(tmp_path_factory.mktemp("upgrade"), broker, lanes=1)
    with tarfile.open(request.param) as archive:
        archive.extractall(monitor.checkpoint, filter="data")
    checkpoint.note(monitor.checkpoint, **whose(broker))
    try:
        yield monitor, story
    finally:
        monitor.kill()


def test_it_goes_on_where_the_earlier_release_stopped(upgraded: Any) -> None:
    monitor, story = upgraded
    assert checkpoint.read_to(monitor.checkpoint) == story.ends
    found = story.tell(TOLD[FIRST:SECOND])
    monitor.start().wait_until_read(story.ends)
    wait_for(lambda: monitor.model_findings() == found, "it has found what the model finds in what is new", START_UP_S)
    counters = [told["counters"] for told in monitor.status()]
    assert not any({"missing records", "repeated records"} & set(counted) for counted in counters)
    assert monitor.stop() == 0


@pytest.mark.long
def test_a_checkpoint_for_another_number_of_lanes_is_refused_and_carried_over(upgraded: Any) -> None:
    """The models that are carried over are those that the model alone has become; with them the monitor goes on."""
    monitor, story = upgraded
    monitor.set(job={"lanes": 2})
    monitor.start()
    assert monitor.process.wait(START_UP_S) == 2
    assert monitor.has_said("was written with job.lanes = 1, not 2")
    migrate(monitor)
    (carried,) = snapshots_in(monitor.checkpoint)
    for model in story.models:
        restored = Coordinator.restore(carried[model.partition], settings=SETTINGS)
        assert alone(restored) == alone(model)
    before = monitor.model_findings()
    found = story.tell(TOLD[SECOND:])
    monitor.start().wait_until_read(story.ends)
    wait_for(lambda: monitor.model_findings() == before | found, "it has found what the model finds in the rest", START_UP_S)
    counters = [told["counters"] for told in monitor.status()]
    assert not any({"missing records", "repeated records"} & set(counted) for counted in counters)
    assert monitor.stop() == 0


def migrate(monitor: MonitorProcess) -> None:
    assert monitor.has_said("or run rebalance-monitor checkpoint migrate")
    done = CliRunner().invoke(app, ["checkpoint", "migrate", "--config", str(monitor.config)])
    assert done.exit_code == 0, done.output
    assert "migrated 2 models" in done.output


def make_fixture() -> None:
    """Let this release read the first part of the story, and keep its checkpoint."""
    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        story = Story(broker)
        story.tell(TOLD[:FIRST])
        monitor = monitor_of(Path(folder), broker, lanes=1).start()
        try:
            monitor.wait_until_read(story.ends)
            assert monitor.stop() == 0
        finally:
            monitor.kill()
        FIXTURES.mkdir(exist_ok=True)
        file = FIXTURES / f"release-{version('rebalance-monitor')}.tar.gz"
        with tarfile.open(file, "w:gz") as archive:
            for part in KEPT:
                archive.add(monitor.checkpoint / part, part)
        print(f"{file}: {file.stat().st_size} bytes, read to {story.ends}")


if __name__ == "__main__":
    make_fixture()
