"""Members with epochs that say nothing for long, though it is not their doing: the coordinator is away, or the broker throttles them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator_model.finding import Blame
from coordinator_model.settings import Settings
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.processes import Processes
from streaming.demo.raw_client import find_coordinator
from streaming.spark import jvm
from tests.real.brokers import Cluster
from tests.real.harness import running_tap, wait_for
from tests.real.lab import java
from tests.real.lab.client import Kind, Protocol
from tests.real.lab.lives import Stage
from tests.real.lab.monitor import Monitor
from tests.real.watched import TOPIC, found, rules, watched

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.skipif(java.why_not() is not None, reason=str(java.why_not()))]

AWAY_S = 75.0  #: longer than any session
FROZEN_S = 45.0  #: longer than a request timeout of the Java client
THROTTLE_S = 12  #: a broker throttles for its quota window at most


class Watched3(NamedTuple):
    """Three brokers behind one tap."""

    brokers: list[Broker]
    monitor: Monitor
    fronts: list[str]

    def coordinated_by(self, number: int, name: str) -> str:
        """A group's name of which a broker is the coordinator."""
        for attempt in range(64):
            group = f"{name}-{attempt}"
            if find_coordinator(self.fronts[0], group, client_id="scout") == self.fronts[number]:
                return group
        raise AssertionError(f"broker {number} coordinates no group")


@contextmanager
def three_brokers(folder: Path, offsets_replicas: int) -> Iterator[Watched3]:
    fronts = [f"{HOST}:{free_port()}" for _ in range(3)]
    properties = {"offsets.topic.replication.factor": offsets_replicas}
    with (
        Cluster(advertised=[{"PLAINTEXT": front} for front in fronts], properties=properties) as cluster,
        Monitor(folder / "records", Settings()) as monitor,
        running_tap(
            [f"{front}={broker.address()}" for front, broker in zip(fronts, cluster.brokers, strict=True)], monitor, cluster="seen"
        ),
    ):
        cluster.brokers[0].create_topic(TOPIC, 4, replicas=3)
        yield Watched3(cluster.brokers, monitor, fronts)


def is_stable(monitor: Monitor, group: str, members: int) -> bool:
    known = monitor.described().get(group, {})
    return known.get("state") == "Stable" and known.get("learning") is None and len(known["members"]) == members


def enter_all(site: Watched3, processes: Processes, number: int, troupes: dict[Protocol, tuple[Kind, ...]]) -> dict[str, int]:
    """Let members join a group of each type whose coordinator is one broker; group → how many."""
    groups: dict[str, int] = {}
    for protocol, kinds in troupes.items():
        group = site.coordinated_by(number, protocol)
        stage = Stage(group, site.brokers[number], ",".join(site.fronts), processes)
        groups[group] = len(kinds)
        for kind in kinds:
            stage.enter(kind, protocol)
        wait_for(lambda group=group: is_stable(site.monitor, group, groups[group]), f"all are in {group}", 120)
    return groups


def wait_until_stable(site: Watched3, groups: dict[str, int]) -> None:
    for group, members in groups.items():
        wait_for(lambda group=group, members=members: is_stable(site.monitor, group, members), f"{group} is at rest again", 180)


@pytest.mark.timeout(600)
def test_nobody_is_silent_who_looks_for_a_coordinator_that_is_away_for_longer_than_a_session(tmp_path):
    """The offsets topic has one replica: nobody takes over, and the other brokers say that there is no coordinator."""
    with three_brokers(tmp_path, 1) as site, Processes(tmp_path, lambda _: None) as processes:
        troupes: dict[Protocol, tuple[Kind, ...]] = {"consumer": ("confluent-kafka", "java"), "share": ("java",)}
        groups = enter_all(site, processes, 1, troupes)
        time.sleep(12)
        site.brokers[1].kill()
        time.sleep(AWAY_S)
        site.brokers[1].start()
        wait_until_stable(site, groups)
        time.sleep(20)
        said = rules(site.monitor)
    assert "C-13" in said
    assert not said & {"E-09", "T-04", "M-13"}


@pytest.mark.timeout(600)
def test_nobody_is_slow_who_waits_for_the_answer_of_a_coordinator_that_is_frozen(tmp_path):
    """Others take over when the frozen broker has been missed for a while; the members learn of it when their requests time out.
    C-14 covers all of it: no request of theirs is a finding of its own.
    """
    with three_brokers(tmp_path, 3) as site, Processes(tmp_path, lambda _: None) as processes:
        groups = enter_all(site, processes, 1, {"consumer": ("java", "java"), "share": ("java",)})
        time.sleep(12)
        frozen = site.brokers[1].pid
        assert frozen is not None
        os.kill(frozen, signal.SIGSTOP)
        time.sleep(FROZEN_S)
        os.kill(frozen, signal.SIGCONT)
        wait_until_stable(site, groups)
        time.sleep(20)
        said = rules(site.monitor)
    assert "C-14" in said
    assert not said & {"C-01", "E-09", "T-04", "M-13"}


@pytest.mark.timeout(300)
def test_a_member_that_the_broker_throttles_is_told_as_throttled_and_not_as_slow(tmp_path):
    group = "throttled"
    properties = {"quota.window.size.seconds": THROTTLE_S}
    with watched(tmp_path, properties=properties) as (broker, monitor, front), Processes(tmp_path, lambda _: None) as processes:
        stage = Stage(group, broker, front, processes)
        for _ in range(2):
            stage.enter("java", "consumer")
        wait_for(lambda: is_stable(monitor, group, 2), "both are in the group", 90)
        limit_requests(broker, f"{group}-1")
        finding = wait_for(lambda: found(monitor, "T-07"), "T-07 is found", 120)
        time.sleep(4 * THROTTLE_S)
        said = rules(monitor)
    assert (finding.blame, finding.client_id) == (Blame.CONFIG, f"{group}-1")
    assert not said & {"E-09", "T-04"}


def limit_requests(broker: Broker, client_id: str) -> None:
    """Let the broker spend next to no time on a client."""
    command = [
        *(jvm.java_command(), "-cp", ":".join(map(str, jvm.jars("broker"))), "kafka.admin.ConfigCommand"),
        *("--bootstrap-server", broker.internal, "--alter", "--entity-type", "clients", "--entity-name", client_id),
        *("--add-config", "request_percentage=0.01"),
    ]
    subprocess.run(command, check=True, capture_output=True)
