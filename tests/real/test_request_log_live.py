"""A fleet of TLS and SCRAM clients, and nothing but the broker's own log: switched on while the broker runs, and followed live."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ResourceType
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding
from coordinator_model.settings import Settings
from streaming.demo.broker import HOST
from tests.real.harness import mirror_record, raw_topic, wait_for
from tests.real.secured import SecuredCluster, secured_cluster

TOPIC, GROUP, MIRROR = "orders", "payments", "request-log"
MAX_POLL_MS = 10_000
HELD_BACK_S = 13
USERS = ("alice", "bob", "carol")
CLI = (sys.executable, "-m", "streaming.cli")


class Member:
    """A consumer of librdkafka that polls until it is told to stop; it goes on with heartbeats until its poll interval is over."""

    def __init__(self, cluster: SecuredCluster, user: str) -> None:
        self.user = user
        self.polls = threading.Event()
        self.polls.set()
        self.ended = threading.Event()
        self.assigned: list[TopicPartition] = []
        settings = {"group.id": GROUP, "client.id": f"{user}-1", "session.timeout.ms": 6_000, "max.poll.interval.ms": MAX_POLL_MS}
        self._consumer = Consumer({**cluster.add_user(user), **settings, "heartbeat.interval.ms": 1_000})
        for kind, name in ((ResourceType.TOPIC, TOPIC), (ResourceType.GROUP, GROUP)):
            cluster.grant(user, "read", kind, name)
        self._thread = threading.Thread(target=self._run, name=user, daemon=True)

    def start(self) -> None:
        def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
            self.assigned = partitions

        # Not assignment(): it keeps the interpreter's lock while it waits for librdkafka's thread.
        self._consumer.subscribe([TOPIC], on_assign=assigned)
        self._thread.start()

    def _run(self) -> None:
        while not self.ended.is_set():
            if self.polls.is_set():
                self._consumer.poll(0.1)
            else:
                time.sleep(0.1)
        # Not close(): where an assignment waits to be taken in, librdkafka never returns from it, and keeps the interpreter's lock.
        del self._consumer

    def end(self) -> None:
        self.ended.set()
        if self._thread.is_alive():
            self._thread.join(60)
            assert not self._thread.is_alive(), f"the consumer of {self.user} does not end"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with secured_cluster(tmp_path_factory.mktemp("certificates"), 1) as running:
        yield running


@contextlib.contextmanager
def following(log: Path, bootstrap: str) -> Iterator[None]:
    """The command that writes what a request log tells to a topic, on the same brokers for want of others."""
    command = [*CLI, "mirror", "--request-log", str(log), "--hold-back", f"{HELD_BACK_S}"]
    options = [
        "--bootstrap-server",
        bootstrap,
        "--topic",
        MIRROR,
        "--create-topic",
        "--partitions",
        "1",
        "--replication-factor",
        "1",
    ]
    process = subprocess.Popen([*command, *options])
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def switch_on(bootstrap: str, broker_id: int) -> None:
    """As ``kafka-configs --entity-type broker-loggers --alter --add-config kafka.request.logger=DEBUG`` does."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.alter_configs([ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker_id), {"kafka.request.logger": "DEBUG"})])
    admin.close()


def has_begun(bootstrap: str) -> bool:
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics
    return MIRROR in topics and bool(raw_topic(bootstrap, MIRROR))


def named(findings: list[Finding]) -> str | None:
    """What is said of the member that does not rejoin."""
    return next((finding.summary for finding in findings if finding.rule == "R-08"), None)


def told(bootstrap: str) -> list[Finding]:
    """The last states of what a model finds in the topic so far."""
    model = Coordinator(topic=MIRROR, partition=0, settings=Settings())
    found: dict[str, Finding] = {}
    for message in raw_topic(bootstrap, MIRROR):
        for finding in model.receive(mirror_record(message)):
            found[finding.id] = finding
    return list(found.values())


@pytest.mark.timeout(240)
def test_a_member_that_holds_up_a_rebalance_is_named_with_principal_and_software(cluster: SecuredCluster) -> None:
    """What is held back for as long as a rebalance may last comes in order, so live as much is said as of the whole log."""
    [broker] = cluster.cluster.brokers
    internal = cluster.cluster.internal
    broker.create_topic(TOPIC, 3)
    switch_on(internal, 1)
    members = {user: Member(cluster, user) for user in USERS}

    def all_have_some(*users: str) -> Callable[[], bool]:
        return lambda: all(members[user].assigned for user in users)

    with following(broker.log, internal):
        wait_for(lambda: has_begun(internal), "the log is followed", 60)
        try:
            for user in USERS[:2]:
                members[user].start()
            wait_for(all_have_some("alice", "bob"), "both are in the group", 60)
            members["bob"].polls.clear()
            members["carol"].start()
            wait_for(all_have_some("carol"), "bob was waited for in vain", 60)
            live = wait_for(lambda: named(told(internal)), "it is told", HELD_BACK_S + 30)
        finally:
            for member in members.values():
                member.end()
    bob = rf"Member bob-1-\S+ \(client bob-1 at {HOST}, confluent-kafka-python \S+, User:bob by SCRAM \(SASL_SSL\)\) heartbeats but does "
    replayed = subprocess.run([*CLI, "replay", "--format", "json", str(broker.log)], capture_output=True, check=False)
    findings = [json.loads(line) for line in replayed.stdout.splitlines()]
    held_up = next(finding["summary"] for finding in findings if finding["rule"] == "R-08")
    for summary in (live, held_up):
        assert re.match(rf"{bob}not rejoin group {GROUP}: it was told to [\d.]+ s ago, 2 others have waited for it since", summary)
    assert {finding["rule"] for finding in findings if finding["severity"] in {"error", "critical"}} == set()
