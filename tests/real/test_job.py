"""The job as an operator runs it, on a real Kafka: what comes out, what a kill changes (nothing), and how it refuses to start."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from coordinator_model.coordinator import Coordinator
from streaming.commands.run import run
from streaming.config.settings import load
from streaming.spark.supervisor import Supervisor
from tests.processes import below, end
from tests.real.feeder import events_of
from tests.real.harness import raw_topic, wait_for
from tests.real.monitor_process import SETTINGS, START_UP_S, MonitorProcess
from tests.real.traffic import breach, partition_of, produce, story, tick

pytestmark = pytest.mark.real

TOPIC = "job-mirror"
PARTITIONS = 3
LIMIT = 2500  #: records a batch
START_US = 1_700_000_000_000_000
GARBAGE = [
    (0, None, b"no envelope at all", None),
    (1, b"group-1", b"", [("mirror", b"\xc1")]),
    (2, b"\xff", b"x", [("mirror", b"\x80")]),
]


WITHOUT = {"enabled": False}
Monitor = functools.partial(MonitorProcess, mirror=TOPIC)


@pytest.fixture(scope="module")
def producer(broker):
    # Without idempotence a batch that is sent again stands behind its successor: an answer would come before its request.
    return Producer({"bootstrap.servers": broker.internal, "linger.ms": 5, "enable.idempotence": True})


@pytest.fixture(scope="module")
def mirror(broker, producer):
    """The mirror topic with a story and three pieces of garbage in it; gives the rows and the end offsets."""
    broker.create_topic(TOPIC, PARTITIONS, config={"retention.ms": "-1"})  # the story is old news
    ends = dict.fromkeys(range(PARTITIONS), 0)
    told = []
    for number, (partition, record) in enumerate(
        story(start_us=START_US, seconds=60, groups=30, partitions=PARTITIONS, frames_per_s=400)
    ):
        if number in {1500, 3000, 4500}:
            garbage = GARBAGE[number // 1500 - 1]
            partition_of_garbage, key, value, headers = garbage
            producer.produce(TOPIC, value, key, partition_of_garbage, headers=headers, timestamp=record.at_us // 1000)
            told.append((garbage[0], ends[garbage[0]], record.at_us // 1000, key, None))
            ends[garbage[0]] += 1
        produce(producer, TOPIC, partition, record)
        told.append((partition, ends[partition], None, None, record._replace(partition=partition, offset=ends[partition])))
        ends[partition] += 1
    assert producer.flush(30) == 0
    return told, ends


@pytest.fixture(scope="module")
def expected(mirror):
    """What the model alone finds in the same records: id to final status."""
    told, _ = mirror
    found = {}
    for wanted in range(PARTITIONS):
        model = Coordinator(topic=TOPIC, partition=wanted, settings=SETTINGS)
        for partition, offset, timestamp_ms, key, record in told:
            if partition != wanted:
                continue
            if record is None:
                group = None if key is None else key.decode(errors="replace")
                findings = model.receive_unreadable(offset, timestamp_ms * 1000, group, "garbage")
            else:
                findings = model.receive(record)
            found |= {finding.id: finding.status for finding in findings}
    assert sum(name.startswith("M-08") for name in found) == 60
    return found


@pytest.fixture(scope="module")
def undisturbed(broker, mirror, tmp_path_factory):
    """A monitor that has read the whole topic, which is ten times what a batch may hold, and still runs."""
    folder = tmp_path_factory.mktemp("job")
    monitor = Monitor(folder, broker.internal, "undisturbed", job={"max_records_per_batch": LIMIT}).start()
    try:
        monitor.wait_until_read(mirror[1])
        yield monitor
    finally:
        monitor.kill()


def test_the_job_finds_what_the_model_finds(undisturbed, expected):
    assert undisturbed.model_findings() == expected
    groups = undisturbed.topic("groups")
    assert {f"c1/group-{number}" for number in range(30)} <= set(groups)
    assert groups["c1/group-7"]["generation"] == 1


def test_a_backlog_is_read_in_bounded_batches(undisturbed):
    """Long past by the wall clock, it raises nothing else, as the test before shows."""
    told = [json.loads(message.value()) for message in raw_topic(undisturbed.bootstrap, "undisturbed-status")]
    assert 0 < max(status["records"] for status in told if "partition" in status) <= LIMIT


def test_events_come_as_they_do_without_spark_and_are_kept_for_days(undisturbed, mirror):
    told, _ = mirror
    models = [Coordinator(topic=TOPIC, partition=partition, settings=SETTINGS) for partition in range(PARTITIONS)]
    for partition, offset, timestamp_ms, key, record in told:
        if record is None:
            group = None if key is None else key.decode(errors="replace")
            models[partition].receive_unreadable(offset, timestamp_ms * 1000, group, "garbage")
        else:
            models[partition].receive(record)
    expected = events_of(models)
    assert sum(map(len, expected.values())) > 100
    assert undisturbed.events() == expected
    resource = ConfigResource(ConfigResource.Type.TOPIC, "undisturbed-events")
    admin = AdminClient({"bootstrap.servers": undisturbed.bootstrap})
    described = admin.describe_configs([resource])[resource].result(30)
    assert (described["cleanup.policy"].value, described["retention.ms"].value) == ("delete", str(7 * 86_400_000))


def test_garbage_is_set_aside_and_counted_and_said(undisturbed):
    letters = undisturbed.topic("dead_letters")
    assert sorted(letter["partition"] for letter in letters.values()) == [0, 1, 2]
    assert all(letter["reason"] for letter in letters.values())
    counted = [told["counters"]["unreadable records"] for told in undisturbed.status()]
    assert counted == [1, 1, 1]
    assert sum(told["rule"] == "V-02" for told in undisturbed.topic("findings").values()) == 3


def test_great_expectations_saw_every_record_and_what_was_wrong(undisturbed, mirror):
    told, _ = mirror

    def all_checked():
        results = raw_topic(undisturbed.bootstrap, "undisturbed-quality")
        first = [json.loads(message.value()) for message in results if message.key() == b"Q-01"]
        return first if sum(result["rows"] for result in first) == len(told) else None

    first = wait_for(all_checked, "the quality query reads the topic")
    assert sum(result["unexpected"] for result in first) == 3

    def found():  # told once the results are written
        return {told["rule"] for told in undisturbed.topic("findings").values() if told["family"] == "Q"}

    wait_for(found, "what was wrong is told")
    assert found() == {"Q-01"}
    wait_for((undisturbed.folder / "docs" / "index.html").exists, "Data Docs")


def test_a_mirror_that_goes_silent_is_said_and_resolved_when_it_speaks(undisturbed, producer, mirror):
    def silence(status):
        return [told for told in undisturbed.topic("findings").values() if told["rule"] == "V-03" and told["status"] == status]

    def speaks():
        """It goes on ticking: a tick that is read late, on a busy machine, ends no silence for long."""
        now_us = time.time_ns() // 1000
        for partition in range(PARTITIONS):
            produce(producer, TOPIC, partition, tick(now_us))
            mirror[1][partition] += 1
        producer.flush()
        return silence("resolved") and not silence("open")

    wait_for(lambda: silence("open"), "the mirror is said to be silent")
    wait_for(speaks, "the mirror is said to speak again")


def test_new_findings_are_told_a_line_each(undisturbed, producer, mirror):
    at_us = time.time_ns() // 1000
    records = breach(777, at_us)
    for record in records:
        partition = partition_of(record.group, PARTITIONS)
        produce(producer, TOPIC, partition, record)
        mirror[1][partition] += 1
    producer.flush()
    wait_for(lambda: [line for line in undisturbed.said if "M-08" in line and "breach-777" in line], "the finding is told")


def test_quality_checks_that_are_killed_are_a_sentence_and_go_on(undisturbed, producer, mirror):
    def speaks():
        produce(producer, TOPIC, 0, tick(time.time_ns() // 1000))
        mirror[1][0] += 1
        producer.flush()

    def batches():
        return max(
            (json.loads(one.value())["batch"] for one in raw_topic(undisturbed.bootstrap, "undisturbed-quality")), default=-1
        )

    wait_for(lambda: speaks() or batches() >= 0, "there is one")
    killed = undisturbed.checks_pid()
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: speaks() or undisturbed.has_said("the quality query stopped: "), "its end is said")
    before = batches()  # not sooner: a batch may end just before the kill
    wait_for(lambda: speaks() or batches() > before, "there are others")
    assert undisturbed.checks_pid() != killed
    (said,) = [line for line in undisturbed.said if "the quality query stopped: " in line]
    assert "the process of the quality checks was ended by signal 9 (Killed)" in said
    assert said.endswith("starting it again in 1 s\n")


def test_sigterm_ends_it_in_good_order(undisturbed):
    assert undisturbed.stop() == 0
    assert undisturbed.said[-1].endswith("stopped\n")
    assert not [line for line in undisturbed.said if "Traceback" in line or " WARN " in line]


def times_said_starting(broker, name) -> int:
    told = [json.loads(message.value()) for message in raw_topic(broker.internal, f"{name}-status")]
    return sum("starting_since_ms" in status for status in told)


@pytest.mark.long
def test_a_monitor_whose_jvm_starts_slowly_says_for_as_long_that_it_starts(broker, mirror, tmp_path):
    """Else it is taken for dead after a minute, and everybody is told."""
    spark = r"^\S*java (?!.*launcher\.Main).*deploy\.SparkSubmit"
    monitor = Monitor(tmp_path, broker.internal, "slow", quality=WITHOUT).start()
    try:
        wait_for(lambda: below(monitor.process.pid, spark), "the JVM starts", START_UP_S)
        (machine,) = below(monitor.process.pid, spark)
        machine.suspend()
        before = times_said_starting(broker, "slow")
        wait_for(lambda: times_said_starting(broker, "slow") >= before + 2, "it says twice more that it starts")
        machine.resume()
        monitor.wait_until_read(mirror[1])
    finally:
        end(below(monitor.process.pid, spark))  # a stopped one does not notice that its driver is gone
        monitor.kill()


@pytest.mark.long
def test_a_monitor_that_fetches_what_it_lacks_says_for_as_long_that_it_starts(broker, mirror, tmp_path, monkeypatch):
    settings = tmp_path / "ivysettings.xml"
    monkeypatch.setenv("REBALANCE_MONITOR_JVM_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("REBALANCE_MONITOR_IVY_SETTINGS", str(settings))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        root = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        settings.write_text(
            '<ivysettings><settings defaultResolver="only"/><resolvers>'
            f'<ibiblio name="only" m2compatible="true" root="{root}"/></resolvers></ivysettings>'
        )
        monitor = Monitor(tmp_path, broker.internal, "lacking", quality=WITHOUT).start()
        try:
            wait_for(lambda: times_said_starting(broker, "lacking") >= 3, "it has said three times that it starts")
            silent.close()
            assert monitor.process.wait(START_UP_S) == 2
        finally:
            monitor.kill()
    assert [line for line in monitor.said if "fetching Spark's Kafka connector (60 MB, once for this user)" in line]
    assert monitor.said[-1].startswith("error: cannot fetch org.apache.spark:spark-sql-kafka")


def test_a_state_that_cannot_be_read_ends_it_with_a_sentence(undisturbed, producer):
    """What only Spark can see, and only when a batch asks for it: the state store's own files."""
    produce(producer, TOPIC, 0, tick(time.time_ns() // 1000))
    producer.flush()
    store = undisturbed.folder / "checkpoint" / "findings" / "0" / "state" / "0" / "0"
    for file in (*store.glob("*.changelog"), *store.glob("*.zip")):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    undisturbed.start()
    assert undisturbed.process.wait(START_UP_S) == 2
    said = "".join(undisturbed.said)
    assert "checkpoint" in said
    assert f"rebalance-monitor checkpoint reset, which moves {undisturbed.folder / 'checkpoint'} away" in said
    assert "Traceback" not in said


def test_a_kafka_client_that_cannot_be_made_is_told_with_the_innermost_cause(tmp_path):
    """Java's Kafka client looks at its settings once more, when the query runs, and wraps what it dislikes."""
    monitor = Monitor(tmp_path, "127.0.0.1:1", "wrapped")
    told: list[str] = []

    def start(session):
        options = {"kafka.bootstrap.servers": "nowhere.invalid:9092", "subscribe": TOPIC}
        rows = session.readStream.format("kafka").options(**options).load()
        return rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "query")).start()

    with (tmp_path / "lock").open("w") as lock:
        supervisor = Supervisor(load(monitor.config), lock=lock.fileno(), tell=told.append)
        supervisor.add_lane(start)
        try:
            supervisor.start()
            wait_for(lambda: supervisor.tend() or told, "the query stops", START_UP_S)
        finally:
            supervisor.stop()
    assert told[0].startswith(
        "the findings query of lane 0 stopped: No resolvable bootstrap urls given in bootstrap.servers (ConfigException); starting it again"
    )


# ---------------------------------------------------------------------------------------------------- how it refuses to start


def refusal(file: Path, capsys) -> str:
    assert run(file) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert "Traceback" not in captured.err
    return captured.err


def test_a_wrong_configuration_file(tmp_path):
    """As a process, once: no traceback, exit status 2."""
    file = tmp_path / "monitor.toml"
    file.write_text("[kafka]\nbootstrap = 'k'\n")
    command = [sys.executable, "-m", "streaming.cli", "run", "--config", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert f"error: {file}: unknown key kafka.bootstrap; did you mean bootstrap_servers?" in ended.stderr
    assert ended.stdout == ""


def test_a_broker_that_cannot_be_reached(tmp_path, capsys):
    file = tmp_path / "monitor.toml"
    file.write_text("[kafka]\nbootstrap_servers = '127.0.0.1:1'\nreach_timeout_s = 1\n")
    assert "no Kafka broker answers at 127.0.0.1:1" in refusal(file, capsys)


def test_a_mirror_topic_that_does_not_exist(broker, tmp_path, capsys):
    monitor = Monitor(tmp_path, broker.internal, "lost", topics={"mirror": "nowhere"})
    said = refusal(monitor.config, capsys)
    assert f"the mirror topic nowhere does not exist on {broker.internal}" in said
    assert f"kafka-topics.sh --bootstrap-server {broker.internal} --create --topic nowhere" in said


def test_result_topics_that_may_not_be_created(broker, mirror, tmp_path, capsys):
    monitor = Monitor(tmp_path, broker.internal, "barred", topics={"create": False})
    said = refusal(monitor.config, capsys)
    assert "topics.create is false" in said
    assert re.search(r"--create --topic barred-findings .*--config cleanup.policy=compact", said)


@pytest.mark.parametrize("suffix", ["", ".jvm", ".python", ".quality"])
def test_a_log_that_cannot_be_written(broker, mirror, tmp_path, capsys, suffix):
    (tmp_path / f"log{suffix}").mkdir()
    monitor = Monitor(tmp_path, broker.internal, "mute", job={"log_file": str(tmp_path / "log")})
    said = refusal(monitor.config, capsys)
    assert f"cannot write the log {tmp_path / 'log'}{suffix}: is a directory" in said
    assert f"let this user write to {tmp_path}, or set job.log_file to another place" in said


def test_a_log_folder_that_cannot_be_made(broker, mirror, tmp_path, capsys):
    (tmp_path / "file").touch()
    monitor = Monitor(tmp_path, broker.internal, "mute", job={"log_file": str(tmp_path / "file" / "logs" / "log")})
    said = refusal(monitor.config, capsys)
    assert f"cannot write the log {tmp_path / 'file' / 'logs'}: not a directory" in said


def test_a_damaged_checkpoint(broker, mirror, tmp_path, capsys):
    monitor = Monitor(tmp_path, broker.internal, "damaged")
    (monitor.folder / "checkpoint").mkdir()
    (monitor.folder / "checkpoint" / "monitor.json").write_text("{")
    said = refusal(monitor.config, capsys)
    assert f"the checkpoint is damaged: {monitor.folder / 'checkpoint' / 'monitor.json'} is not JSON" in said
