"""Partitions that no assignment holds (A-14), by real clients before a real broker: where it must speak, and where it must not.

``python -m tests.real.test_never_assigned`` makes the golden transcript anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from coordinator_model.finding import Blame, Severity
from coordinator_model.settings import Settings
from streaming.demo.processes import Child, Processes
from tests.golden import transcript
from tests.real.harness import wait_for
from tests.real.lab.client import Client, Kind
from tests.real.lab.monitor import Monitor
from tests.real.watched import OTHER_TOPIC, TOPIC, Watched, found, member_ids, needs_library, rules, watched

pytestmark = [pytest.mark.real, pytest.mark.long]

GROUP = "never-assigned"
GROWN = 6  #: partitions of a topic that had four
REFRESHED_S = 6.0  #: the clients of the laboratory ask for metadata every five seconds


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path, lambda _: None) as started:
        yield started


def start(processes: Processes, kind: Kind, front: str, name: str, topic: str) -> Child:
    client = Client(kind=kind, bootstrap=front, group=GROUP, client_id=name, topics=(topic,), other_topics=(topic,))
    return processes.start(name, client.command())


def stable(monitor: Monitor, members: int) -> dict[str, Any] | None:
    known = monitor.described().get(GROUP, {})
    return known if known.get("state") == "Stable" and len(known["members"]) == members else None


@contextmanager
def two_services(folder: Path, processes: Processes) -> Iterator[Watched]:
    """Two services on kafkajs, whose leader assigns the topics that it subscribes to itself, and no others."""
    with watched(folder, settings=transcript.SETTINGS) as seen:
        seen.broker.create_topic(OTHER_TOPIC, 2)
        start(processes, "kafkajs", seen.front, "invoices", TOPIC)
        wait_for(lambda: stable(seen.monitor, 1), "the first service leads a group of one")
        start(processes, "kafkajs", seen.front, "payments", OTHER_TOPIC)
        wait_for(lambda: stable(seen.monitor, 2), "both services are in the group")
        wait_for(lambda: found(seen.monitor, "A-14"), "A-14 is found")
        yield seen


@pytest.mark.timeout(300)
def test_a_leader_of_kafkajs_leaves_the_topic_of_another_service_unread(tmp_path: Path, processes: Processes) -> None:
    needs_library("kafkajs")
    with two_services(tmp_path, processes) as (_, monitor, _):
        finding = found(monitor, "A-14")
        leader = member_ids(monitor, GROUP, "invoices")
    assert finding is not None
    assert (finding.severity, finding.blame, finding.client_id) == (Severity.WARNING, Blame.CLIENT, "invoices")
    assert {finding.member_id} == leader
    assert f"holds {OTHER_TOPIC}-0, {OTHER_TOPIC}-1: what is written" in finding.summary
    assert "does not subscribe to it itself" in finding.summary


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["confluent-kafka", "kafka-python"])
def test_new_partitions_that_are_taken_up_in_time_are_nobodys_fault(tmp_path: Path, processes: Processes, kind: Kind) -> None:
    settings = Settings(metadata_max_age_ms=int(REFRESHED_S * 1_000))
    with watched(tmp_path, settings=settings) as (broker, monitor, front):
        for name in ("one", "two"):
            start(processes, kind, front, name, TOPIC)
        before = wait_for(lambda: stable(monitor, 2), "both are in the group")["generation"]
        admin = AdminClient({"bootstrap.servers": broker.address()})
        admin.create_partitions([NewPartitions(TOPIC, GROWN)])[TOPIC].result(60)
        wait_for(lambda: (known := stable(monitor, 2)) and known["generation"] > before, "they take up the new partitions")
        grown_us = monitor.now_us
        wait_for(lambda: monitor.now_us > grown_us + settings.metadata_age_us + 15_000_000, "it would be due")
        said = rules(monitor)
    assert "A-14" not in said


def make_golden() -> None:
    """Cut the transcript from a run."""
    with tempfile.TemporaryDirectory() as name, Processes(Path(name), lambda _: None) as processes:
        folder = Path(name)
        with two_services(folder, processes):
            pass
        transcript.write(f"violation-{GROUP}-4.3.1", transcript.cut(folder / "records", GROUP))


if __name__ == "__main__":
    make_golden()
