"""The process of the quality checks with a broker: what it publishes, and what its death and a failure change. Without Spark."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import psutil
import pyarrow as pa
import pytest

from coordinator_model.settings import Settings
from coordinator_model.wire.record import Kind, pack_envelope
from streaming.config.settings import ConfigError, Job, Kafka, MonitorConfig, Quality, Topics
from streaming.kafka.topics import prepare
from streaming.quality.process import QualityProcess
from streaming.quality.query import as_stream
from streaming.quality.worker import NICENESS
from streaming.spark.worker import INPUT_COLUMNS
from tests.processes import below
from tests.real.harness import raw_topic
from tests.real.traffic import story

pytestmark = pytest.mark.real

START_US = 1_700_000_000_000_000
STRETCH_S = 100
RECORDS = [record for _, record in story(start_us=START_US, seconds=STRETCH_S, groups=3, partitions=1, frames_per_s=20)]
RECORDS.append(RECORDS[-1]._replace(at_us=RECORDS[-1].at_us + Settings().quiet_ms * 1000))
FAULTY = {next(number for number in range(first, 1000) if RECORDS[number].kind is Kind.RESPONSE) for first in (100, 500)}
"""They have no envelope."""


def batch(seconds):
    """What the query hands over: the records of the story captured meanwhile."""
    rows = [
        (
            0,
            offset,
            record.at_us // 1000,
            None if record.group is None else record.group.encode(),
            record.frame,
            b"\xc1" if offset in FAULTY else pack_envelope(record),
        )
        for offset, record in enumerate(RECORDS)
        if (record.at_us - START_US) // 1_000_000 in seconds
    ]
    return as_stream(pa.table(dict(zip(INPUT_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))))


@pytest.fixture(scope="module")
def mirror(broker):
    broker.create_topic("quality-mirror", 1)
    return "quality-mirror"


@pytest.fixture
def config(broker, mirror, tmp_path):
    config = MonitorConfig(
        kafka=Kafka(bootstrap_servers=broker.internal),
        topics=Topics(mirror=mirror),
        job=Job(checkpoint=tmp_path / "checkpoint", log_file=tmp_path / "log"),
        quality=Quality(docs=tmp_path / "docs"),
    )
    prepare(config)
    return config


@pytest.fixture
def checks(config):
    apart = QualityProcess(config)
    yield apart
    apart.close()


def the_child():
    """Its process id: it is the only one of this process."""
    (found,) = below(os.getpid(), r"streaming\.quality\.worker")
    return found.pid


def test_what_it_finds_is_published_and_outlives_it(broker, config, checks, tmp_path):
    checks.check(batch(range(20)), 0)
    results = {message.key().decode(): json.loads(message.value()) for message in raw_topic(broker.internal, config.topics.quality)}
    assert len(results) == 12
    assert {rule: result["unexpected"] for rule, result in results.items() if not result["success"]} == {"Q-01": 1}
    assert (tmp_path / "docs" / "index.html").is_file()

    first = the_child()
    lowered = min(19, os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS)
    assert {os.getpriority(os.PRIO_PROCESS, thread) for thread in [first, *threads_of(first)]} == {lowered}  # the libraries', too
    for each in (signal.SIGINT, signal.SIGTERM):
        os.kill(first, each)
    checks.check(batch(range(20, 25)), 1)
    assert the_child() == first

    os.kill(first, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"^the process of the quality checks was ended by signal 9 \(Killed\)"):
        checks.check(batch(range(25, 60)), 2)
    checks.check(batch(range(25, 60)), 2)
    assert the_child() != first

    checks.check(batch(range(60, 1000)), 3)
    told = [json.loads(message.value()) for message in raw_topic(broker.internal, config.topics.findings)]
    assert len({finding["id"] for finding in told}) == 1
    assert [(finding["rule"], finding["status"], finding["count"]) for finding in told] == [
        ("Q-01", "open", 1),
        ("Q-01", "update", 2),
        ("Q-01", "resolved", 2),
    ]

    with pytest.raises(RuntimeError, match=rf"\(ArrowInvalid\), see {config.job.quality_log}$"):
        checks.check(b"this is no Arrow stream", 4)
    assert "Traceback" in config.job.quality_log.read_text()


def threads_of(pid):
    """Of Linux, where each has a niceness of its own; elsewhere a process has one."""
    return [thread.id for thread in psutil.Process(pid).threads()] if psutil.LINUX else []


def with_suite(config, folder, *expectations):
    file = folder / "own.json"
    file.write_text(json.dumps({"name": "own", "expectations": expectations}))
    return config.model_copy(update={"quality": config.quality.model_copy(update={"suite": file})})


def test_an_expectation_that_great_expectations_does_not_know_is_refused_before_there_is_a_batch(config, tmp_path):
    own = with_suite(config, tmp_path, {"type": "expect_miracles"})
    with pytest.raises(ConfigError, match=r"^quality\.suite: Great Expectations does not take expect_miracles"):
        QualityProcess(own)


def test_a_batch_in_hand_is_not_waited_for_longer_than_allowed(config, tmp_path):
    checks = QualityProcess(with_suite(config, tmp_path, {"type": "expect_column_to_exist", "kwargs": {"column": "key"}}))
    os.kill(the_child(), signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        in_hand = pool.submit(checks.check, batch(range(20)), 0)
        with checks.closing(0.1), pytest.raises(RuntimeError, match="was ended"):
            in_hand.result(60)
