"""What operators do to a monitor and its mirror, on a real Kafka, and what the monitor says of it: only what is the case.

One monitor, one mirror topic and steady traffic; the tests are in the order in which it happens.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, ResourceType

from streaming.config.settings import SHORT_LIVED_JVM, load
from streaming.demo.broker import Broker
from streaming.errors import SetupError
from streaming.kafka.connection import SILENT_LOGGER
from streaming.spark import checkpoint, job
from streaming.spark import session as spark
from streaming.spark.supervisor import Supervisor
from tests.real.feeder import Feeder
from tests.real.full_disk import SmallDisk
from tests.real.harness import raw_topic, wait_for
from tests.real.monitor_process import START_UP_S, MonitorProcess
from tests.real.traffic import produce, tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.real, pytest.mark.timeout(START_UP_S)]

TOPIC = "mirror"
PARTITIONS, GROWN = 2, 3
OPTIONS = (
    "auto.offset.reset",
    "enable.auto.commit",
    "interceptor.classes",
    "key.deserializer",
    "value.deserializer",
    "key.serializer",
    "value.serializer",
    "max.poll.records",
    "client.id",
    "group.id",
    "isolation.level",
)  #: the first seven are not for Spark's Kafka source


class World:
    """The broker, the traffic and the monitor."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.admin = AdminClient({"bootstrap.servers": broker.internal}, logger=SILENT_LOGGER)
        self.feeder = Feeder(broker.internal, TOPIC, PARTITIONS, breach_every=10**9)
        self.monitor = MonitorProcess(folder, broker.internal, "operated", mirror=TOPIC, job={"lanes": 1, "restart_wait_max_s": 3})

    def open_findings(self) -> list[str]:
        """What is wrong, one line for each; V-06 says that partitions were added, and V-03 is asked for by name."""
        found = self.monitor.topic("findings").values()
        return [f"{each['rule']}: {each['summary']}" for each in found if each["rule"] not in {"V-06", "V-03"}]

    def silent_partitions(self, status: str) -> list[str]:
        return [
            each["summary"]
            for each in self.monitor.topic("findings").values()
            if (each["rule"], each["status"]) == ("V-03", status)
        ]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One that the tests here may stop."""
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def world(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    broker.create_topic(TOPIC, PARTITIONS)
    world = World(broker, tmp_path_factory.mktemp("operations"))
    world.feeder.start()
    world.monitor.start()
    try:
        yield world
    finally:
        world.monitor.kill()
        world.feeder.stop()


def test_a_monitor_that_starts_says_so_in_the_status_topic_before_its_first_batch(world: World) -> None:
    def written() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        told = [json.loads(message.value()) for message in raw_topic(world.broker.internal, "operated-status")]
        return [status for status in told if "starting_since_ms" in status], [status for status in told if "partition" in status]

    for _ in range(2):  # the driver sees its first batches a moment after the status topic has them
        world.monitor.wait_until_read_further(PARTITIONS)
    starting, batches = written()
    assert starting[0]["topic"] == TOPIC
    assert starting[0]["written_ms"] <= min(status["written_ms"] for status in batches)
    world.monitor.wait_until_read_further(PARTITIONS)
    assert written()[0] == starting, "once batches run, they are the sign of life"


def test_compacted_topics_roll_their_segments_so_that_they_are_compacted(world: World) -> None:
    for topic in ("findings", "groups", "status"):
        resource = ConfigResource(ResourceType.TOPIC, f"operated-{topic}")
        found = world.admin.describe_configs([resource])[resource].result(60)
        settings = {name: found[name].value for name in ("cleanup.policy", "segment.ms", "segment.bytes")}
        assert settings == {"cleanup.policy": "compact", "segment.ms": "3600000", "segment.bytes": "16777216"}


def test_a_status_is_written_at_most_once_a_second_and_partition(world: World) -> None:
    world.monitor.wait_until_read_further(PARTITIONS)
    told = [json.loads(message.value()) for message in raw_topic(world.broker.internal, "operated-status")]
    for partition in range(PARTITIONS):
        times = [status["written_ms"] for status in told if status.get("partition") == partition]
        assert min((later - earlier for earlier, later in itertools.pairwise(times)), default=1_000) >= 900


def test_a_partition_added_to_the_mirror_does_not_end_the_monitor_and_moves_groups_without_a_finding(world: World) -> None:
    world.feeder.stop()
    world.admin.create_partitions([NewPartitions(TOPIC, GROWN)])[TOPIC].result(60)
    world.feeder = Feeder(world.broker.internal, TOPIC, GROWN, breach_every=10**9).start()
    world.monitor.wait_until_said(f"has {GROWN} partitions, where it had {PARTITIONS}")
    world.monitor.wait_until_read_further(GROWN)

    def checked() -> bool:
        results = [json.loads(message.value()) for message in raw_topic(world.broker.internal, "operated-quality")]
        return max((result["batch"] for result in results), default=-1) > before

    before = max(
        (json.loads(message.value())["batch"] for message in raw_topic(world.broker.internal, "operated-quality")), default=-1
    )
    wait_for(checked, "a batch with groups that moved is checked", START_UP_S)
    world.feeder.stop()
    wait_for(lambda: world.silent_partitions("open"), "silence is said", START_UP_S)
    producer = Producer({"bootstrap.servers": world.broker.internal})
    silent = f"Nothing has come in on the partition {GROWN - 1} of the mirror topic"

    def is_silent() -> bool:
        for partition in range(PARTITIONS):  # the others speak
            produce(producer, TOPIC, partition, tick(time.time_ns() // 1000))
        producer.flush(10)
        return any(each.startswith(silent) for each in world.silent_partitions("open"))

    wait_for(is_silent, "the new partition is silent", START_UP_S)
    assert world.monitor.runs()
    assert not world.monitor.has_said("internal error")
    assert [each for each in world.open_findings() if each.startswith("Q-")] == []


@pytest.mark.long
def test_the_status_line_says_neither_a_pace_nor_up_to_date_while_kafka_is_away(world: World) -> None:
    world.broker.kill()
    away = len(world.monitor.said)

    def lines() -> list[str]:
        return [line for line in world.monitor.said[away:] if "open findings:" in line]

    wait_for(lambda: [line for line in lines() if "nothing read for" in line], "it says that nothing is read", START_UP_S)
    silent = next(number for number, line in enumerate(lines()) if "nothing read for" in line)
    wait_for(lambda: len(lines()) > silent + 2, "and goes on saying it", START_UP_S)
    told = lines()[silent:]
    world.broker.start()
    print("".join(told))
    assert not [line for line in told if "up to date" in line or "/s" in line]
    wait_for(lambda: "up to date" in lines()[-1], "it is up to date again", START_UP_S)


def test_an_ordinary_stop_is_not_logged_as_a_process_that_was_killed(world: World) -> None:
    assert world.monitor.stop() == 0
    logs = "".join(file.read_text(errors="replace") for file in world.monitor.folder.glob("log*") if file.is_file())
    assert "memory runs out" not in logs
    taken = sum(file.stat().st_size for file in world.monitor.checkpoint.rglob("*") if file.is_file())
    print(f"the checkpoint takes {taken / 1e6:.0f} MB")


def test_a_disk_of_12_mb_is_refused_in_a_sentence(world: World, tmp_path: Path) -> None:
    with SmallDisk(tmp_path / "disk", size_mb=12) as disk:
        if not disk.is_mounted:
            pytest.skip("mounting a small file system needs root")
        world.monitor.set(job={"checkpoint": str(disk.folder / "checkpoint")})
        command = [sys.executable, "-m", "streaming.cli", "run", "--config", str(world.monitor.config)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=START_UP_S, check=False)
    assert ended.returncode == 2
    assert ended.stderr == (
        f"error: the disk under {disk.folder / 'checkpoint'} has 13 MB left; a checkpoint needs {checkpoint.SPACE_NEEDED_MB} MB, "
        "and 100 MB more for each 10,000 groups: make room, or set job.checkpoint to a folder on another disk\n"
    )


def test_a_jvm_that_does_not_start_for_an_option_says_which(world: World) -> None:
    world.monitor.set(job={"jvm_options": "-XX:+NoSuchThing", "checkpoint": str(world.monitor.folder / "checkpoint")})
    command = [sys.executable, "-m", "streaming.cli", "run", "--config", str(world.monitor.config)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=START_UP_S, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "error: job.jvm_options: Java does not start with them: Unrecognized VM option 'NoSuchThing'\n"


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], str]:
    """The options that Spark's Kafka source or sink refuses, and what a supervisor says of a query that has one of them."""
    folder = tmp_path_factory.mktemp("refusals")
    file = folder / "monitor.toml"
    file.write_text(
        "[kafka]\nbootstrap_servers = '127.0.0.1:1'\n"
        f"[job]\ncheckpoint = '{folder}'\nlog_file = '{folder / 'log'}'\njvm_options = '{SHORT_LIVED_JVM}'\n"
    )
    config = load(file)
    refused: set[str] = set()

    def records(session: SparkSession, option: str) -> None:
        unchecked = config.model_copy(update={"kafka": config.kafka.model_copy(update={"spark_options": {option: "1"}})})
        job.records(session, unchecked, {"subscribe": TOPIC}, max_records=1)
        if option.endswith(".serializer"):
            rows = session.range(1).selectExpr("'x' as value")
            rows.write.format("kafka").options(**unchecked.kafka.for_spark()).option("topic", "x").save()

    def start(session: SparkSession) -> StreamingQuery:
        for option in OPTIONS:
            try:
                records(session, option)
            except Exception as error:  # whatever Spark raises
                assert option in spark.text_of(error)  # noqa: PT017 - the others must not raise
                refused.add(option)
        options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": TOPIC, "kafka.auto.offset.reset": "earliest"}
        rows = session.readStream.format("kafka").options(**options).load()
        return rows.writeStream.format("noop").option("checkpointLocation", str(folder / "query")).start()

    with (folder / "lock").open("w") as lock:
        supervisor = Supervisor(config, lock=lock.fileno(), tell=print)
        supervisor.add_lane(start)
        try:
            with pytest.raises(SetupError) as said:
                supervisor.start()
        finally:
            supervisor.stop()
    return refused, str(said.value)


def test_what_sparks_kafka_source_refuses_is_refused_by_the_configuration_too(refusals: tuple[set[str], str]) -> None:
    """All that is on the list is really refused, and what is not on it by chance is not."""
    refused, _ = refusals
    assert refused == set(OPTIONS[:7])


def test_a_query_that_cannot_start_is_a_sentence_with_sparks_reason(refusals: tuple[set[str], str]) -> None:
    """The reason is asked for while there is a JVM to ask."""
    _, said = refusals
    assert said.startswith("the findings query of lane 0 does not start: ")
    assert "auto.offset.reset" in said
    assert len(said.splitlines()) == 1
