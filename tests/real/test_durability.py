"""Everything that can go wrong around a job that runs, on a real Kafka: it goes on by itself, or stops and says what to do.

What a kill of its processes does is in ``test_kills``.

One monitor, two lanes, four mirror partitions and steady traffic; each test harms it in another way, in this order. In between
its findings are held against those of the model alone on the same records.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from streaming.demo.broker import Broker
from streaming.kafka.connection import SILENT_LOGGER
from streaming.spark import checkpoint
from tests.real.feeder import GROUPS, Feeder, ends_of, models_of
from tests.real.full_disk import SmallDisk
from tests.real.harness import raw_topic, wait_for
from tests.real.monitor_process import START_UP_S, MonitorProcess
from tests.real.traffic import Group, partition_of, produce

pytestmark = [pytest.mark.real, pytest.mark.timeout(3 * START_UP_S)]

TOPIC = "mirror"
PARTITIONS, GROWN = 4, 6


class World:
    """The broker, the traffic and the monitor."""

    def __init__(self, broker: Broker, disk: SmallDisk, folder: Path) -> None:
        self.broker = broker
        self.disk = disk
        self.admin = AdminClient({"bootstrap.servers": broker.internal}, logger=SILENT_LOGGER)
        self.feeder = Feeder(broker.internal, TOPIC, PARTITIONS)
        self.monitor = MonitorProcess(
            folder,
            broker.internal,
            "endurer",
            mirror=TOPIC,
            job={"lanes": 2, "checkpoint": str(disk.folder / "checkpoint"), "restart_wait_max_s": 5},
            quality={"enabled": False},
        )

    def findings(self, rule: str) -> list[dict[str, Any]]:
        return [finding for finding in self.monitor.topic("findings").values() if finding["rule"] == rule]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One that the tests here may stop."""
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def world(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("durability")
    broker.create_topic(TOPIC, PARTITIONS)
    with SmallDisk(folder / "disk") as disk:
        world = World(broker, disk, folder)
        world.feeder.start()
        world.monitor.start()
        try:
            yield world
        finally:
            world.monitor.kill()
            world.feeder.stop()


def test_a_frame_that_does_not_decode_is_set_aside_and_its_group_goes_back_to_learning(world: World) -> None:
    world.monitor.wait_until_read_further(PARTITIONS)
    request, _ = Group("poisoned").heartbeat(time.time_ns() // 1000)
    producer = Producer({"bootstrap.servers": world.broker.internal, "enable.idempotence": True})
    produce(producer, TOPIC, partition_of("poisoned", PARTITIONS), request._replace(frame=b"\xff\xff"))
    assert producer.flush(60) == 0

    def set_aside() -> list[dict[str, Any]]:
        return [letter for letter in world.monitor.topic("dead_letters").values() if letter["key"]]

    (letter,) = wait_for(set_aside, "the record is set aside", START_UP_S)
    assert base64.b64decode(letter["value"]) == b"\xff\xff"
    assert base64.b64decode(letter["key"]) == b"poisoned"
    (finding,) = wait_for(lambda: world.findings("V-02"), "it is a finding", START_UP_S)
    assert (finding["group"], letter["reason"] in finding["summary"]) == ("poisoned", True)

    def learning() -> bool:
        group = world.monitor.topic("groups").get("c1/poisoned")
        return group is not None and group["learning"] == "a frame could not be read"

    wait_for(learning, "its group is shown as learning", START_UP_S)
    world.monitor.wait_until_read_further(PARTITIONS)
    assert learning(), "it is not forgotten with the next tick"


def test_a_full_disk_is_named_and_waited_for(world: World) -> None:
    with world.disk.full_for(world.monitor.jvm_pid()):
        world.monitor.wait_until_said(f"the disk under the checkpoint {world.monitor.checkpoint} fails (")
        assert world.monitor.has_said("make room or mend it; starting it again in")
    world.monitor.wait_until_read_further(PARTITIONS)


def test_a_broker_that_is_lost_and_comes_back_is_waited_for(world: World) -> None:
    world.broker.kill()
    wait_for(
        lambda: world.monitor.has_said("no answer from Kafka at") or world.monitor.has_said("the findings query of lane"),
        "it says that nothing can be read",
        START_UP_S,
    )
    assert world.monitor.runs()
    world.broker.start()
    world.monitor.wait_until_read_further(PARTITIONS)


def test_a_sigterm_to_all_of_its_processes_is_an_end_in_good_order(world: World) -> None:
    """What a service manager does that signals the whole control group: the JVM may be gone before the driver has heard."""
    assert world.monitor.stop_all() == 0, "".join(world.monitor.said)
    assert world.monitor.said[-1].endswith(" stopped\n")
    assert [line for line in world.monitor.said if "error: " in line or "Traceback" in line] == []


def test_records_that_expired_before_they_were_read_are_counted_and_the_groups_learned_anew(world: World) -> None:
    """What is kept is exactly what a model makes of the records that were left."""
    stands_at = checkpoint.read_to(world.monitor.checkpoint)[0]
    wait_for(lambda: ends_of(world.broker.internal, TOPIC)[0] > stands_at + 100, "records that nobody has read")
    world.feeder.stop()
    messages = raw_topic(world.broker.internal, TOPIC)
    expired_to = stands_at + 50
    world.admin.delete_records([TopicPartition(TOPIC, 0, expired_to)])[TopicPartition(TOPIC, 0)].result(60)
    left = [message for message in messages if message.partition() != 0 or not stands_at <= message.offset() < expired_to]
    models, found = models_of(left, TOPIC, PARTITIONS)
    world.monitor.start()
    world.monitor.wait_until_read({message.partition(): message.offset() + 1 for message in messages})
    wait_for(lambda: world.monitor.model_findings() == found, "it has found what the model alone finds", START_UP_S)
    (hole,) = world.findings("V-01")
    assert f"Partition 0 of {TOPIC} lacks 50 records (offsets {stands_at} to {expired_to - 1})" in hole["summary"]
    counted = [told["counters"].get("missing records", 0) for told in world.monitor.status()]
    assert counted == [model.record_counts["missing records"] for model in models] == [50, 0, 0, 0]


def test_a_mirror_that_gains_partitions_is_said_and_its_groups_are_learned_anew(world: World) -> None:
    world.admin.create_partitions([NewPartitions(TOPIC, GROWN)])[TOPIC].result(60)
    world.feeder = Feeder(world.broker.internal, TOPIC, GROWN).start()
    grown = f"mirror topic {TOPIC} has {GROWN} partitions, where it had {PARTITIONS}"
    world.monitor.wait_until_said(f"the {grown}: groups may have moved")
    world.monitor.wait_until_read_further(GROWN)

    def told() -> bool:
        summaries = [finding["summary"] for finding in world.findings("V-06")]
        assert all(summary.startswith(f"The {grown}: ") for summary in summaries)
        return all(any(f"seen in partition {number} may" in summary for summary in summaries) for number in range(PARTITIONS))

    wait_for(told, "the model of each partition says it", START_UP_S)

    def moved() -> bool:
        groups = [told for told in world.monitor.topic("groups").values() if told and told["group"].startswith("group-")]
        return all(told["partition"] == partition_of(told["group"], GROWN) for told in groups) and len(groups) == GROUPS

    wait_for(moved, "every group is learned where it is now", START_UP_S)
    assert not world.monitor.has_said("query stopped")


def test_a_mirror_that_is_deleted_and_created_anew_is_said_and_ends_it(world: World) -> None:
    world.feeder.stop()
    world.admin.delete_topics([TOPIC])[TOPIC].result(60)
    world.monitor.wait_until_said(f"the mirror topic {TOPIC} was deleted")
    world.broker.create_topic(TOPIC, GROWN)
    assert world.monitor.process is not None
    assert world.monitor.process.wait(START_UP_S) == 2
    world.monitor.wait_until_said(f"error: the mirror topic {TOPIC} was deleted and created anew while it was read")
    assert world.monitor.has_said("run rebalance-monitor checkpoint reset, and start again")
    assert not world.monitor.has_said("internal error")
