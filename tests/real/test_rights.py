"""Every process with exactly the rights of the table, on three brokers that deny by default; and with each of them taken away in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import ResourceType
from typer.testing import CliRunner

from coordinator_model.groups.epochs.kinds import SHARE
from coordinator_model.wire.constants import NONE
from streaming.cli import app
from streaming.commands.docs import DOCS
from streaming.config.settings import Kafka, MonitorConfig, Topics
from streaming.demo.raw_client import Connection, find_coordinator
from streaming.errors import SetupError
from streaming.kafka.compacted import CompactedReader
from streaming.kafka.mirror_topic import create_topic
from streaming.kafka.required_rights import MONITOR, NEEDS, NOTIFY, RECORD, TAP, VERIFY, VIEW
from streaming.kafka.topics import Mirror, notifier_topics, result_topics
from streaming.metrics.feed import MetricsFeed
from streaming.metrics.metrics_state import MetricsState
from streaming.metrics.vitals import Vitals
from streaming.mirror.producer import KafkaSink
from streaming.replay.verify import DescribedGroup, describe_groups
from streaming.sinks.findings import FindingsReader
from tests.real.harness import wait_for
from tests.real.lab.epoch_scene import ShareMember
from tests.real.secured import PASSWORD, secured_cluster
from tests.real.traffic import tick

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

TOPICS = Topics()
RIGHTS = [
    (need.process, need.operation, kind, name)
    for need in NEEDS
    for kind, name in [("topic", getattr(TOPICS, key)) for key in need.topics] or [("group", "*"), ("topic", "*")]
]
SPARED = [
    *(
        (VIEW, "Read", "topic", getattr(TOPICS, key))
        for need in NEEDS
        if need.process == VIEW and need.only_if
        for key in need.topics
    ),
    *((MONITOR, "Describe", kind, name) for kind, name in (("group", "*"), ("topic", "*"))),
    (MONITOR, "Read", "topic", TOPICS.notifications),
    (VERIFY, "Describe", "topic", "*"),
]
"""Without these rights the views show less, and say so; the lag is not known, a notifier that is gone is not missed, and `verify` leaves groups out."""
BY_COMMAND = [(MONITOR, "Create", "topic", name) for name in (TOPICS.mirror, TOPICS.notifications)]
KINDS = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP}
REST_S = 0.1


class Scene:
    """The cluster, a user for each process, and the commands as an operator gives them."""

    def __init__(self, secured, folder: Path) -> None:
        self.secured = secured
        self.folder = folder
        self.clients = {process: secured.add_user(process) for process in (MONITOR, NOTIFY, TAP, RECORD, VERIFY, VIEW)}
        self.files = {process: self._properties(process) for process in (RECORD, VERIFY)}
        self.configs = {process: self._config(process) for process in (MONITOR, NOTIFY, VERIFY, VIEW)}

    def kafka(self, process: str) -> Kafka:
        return Kafka(
            bootstrap_servers=self.secured.bootstrap("SCRAM"),
            security_protocol="SASL_SSL",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_username=process,
            sasl_password=PASSWORD,
            ssl_ca_file=self.secured.authority.certificate,
            reach_timeout_s=30,
        )

    def _properties(self, process: str) -> Path:
        file = self.folder / f"{process}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in self.clients[process].items() if key != "bootstrap.servers"))
        return file

    def _config(self, process: str) -> Path:
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o600)
        kafka = {
            "bootstrap_servers": self.secured.bootstrap("SCRAM"),
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": process,
            "sasl_password_file": str(password),
            "ssl_ca_file": str(self.secured.authority.certificate),
            "reach_timeout_s": 30,
        }
        file = self.folder / f"{process}.toml"
        address = self.folder / "digest-url"
        address.write_text("http://127.0.0.1:1/")
        address.chmod(0o600)
        further = {
            MONITOR: "[lag]\nenabled = true\n",
            NOTIFY: f'[notify.stdout]\n[notify.digest.weekly]\nurl_file = "{address}"\n[traces]\nendpoint = "http://127.0.0.1:1"\n',
        }
        file.write_text(
            "[kafka]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in kafka.items()) + further.get(process, "")
        )
        return file

    def check(self, process: str) -> tuple[int, str]:
        return self._command("config", "check", "--connect", "--for", process, str(self.configs[process]))

    def record(self) -> tuple[int, str]:
        file = self.folder / f"{time.monotonic_ns()}.records"
        return self._command(
            "record", str(file), "--bootstrap-server", self.secured.bootstrap("SCRAM"), "--consumer-config", str(self.files[RECORD])
        )

    def verify(self) -> tuple[int, str]:
        return self._command(
            *("verify", "--bootstrap-server", self.secured.bootstrap("SCRAM"), "--command-config", str(self.files[VERIFY])),
            *("--config", str(self.configs[VERIFY]), "--wait", "0"),
        )

    def view(self) -> tuple[int, str]:
        return self._command("groups", "--config", str(self.configs[VIEW]))

    def write(self) -> tuple[int, str]:
        try:
            sink = KafkaSink(self.clients[TAP], topic=TOPICS.mirror, timeout_s=30)
        except SetupError as error:
            return 2, str(error)
        try:
            sink.write(tick(time.time_ns() // 1000))
            wait_for(lambda: not sink.buffered or sink.trouble, "the record is taken or refused")
            return (2, str(sink.trouble)) if sink.buffered else (0, "")
        finally:
            sink.close(1)

    def create(self) -> tuple[int, str]:
        try:
            return (0, str(create_topic(self.clients[TAP], TOPICS.mirror, 2, timeout_s=30)))
        except SetupError as error:
            return 2, str(error)

    @staticmethod
    def _command(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, list(words))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert PASSWORD not in done.output
        return done.exit_code, done.output


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with secured_cluster(tmp_path_factory.mktemp("certificates")) as secured:
        scene = Scene(secured, tmp_path_factory.mktemp("rights"))
        environment = {
            **os.environ,
            **{process.upper(): process for process in (MONITOR, NOTIFY, TAP, RECORD, VERIFY, VIEW)},
            "KAFKA_ACLS": str(scene.folder / "kafka-acls"),
        }
        stand_in = scene.folder / "kafka-acls"
        stand_in.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{Path(__file__).with_name('grant.py')}' \"$@\"\n")
        stand_in.chmod(0o755)
        for cluster in ("mirror", "watched"):
            script = ["sh", str(DOCS / "kafka-acls.sh"), cluster, "--bootstrap-server", secured.cluster.internal]
            subprocess.run(script, env=environment, check=True, timeout=120)
        yield scene


@pytest.fixture(scope="module")
def group(scene):
    """A group of one member on the watched cluster, of whom the monitor says what is so."""
    created(scene, "watched")
    internal = {"bootstrap.servers": scene.secured.cluster.internal}
    member = Consumer({**internal, "group.id": "orders", "client.id": "worker"})
    member.subscribe(["watched"])
    try:
        wait_for(lambda: member.poll(0.1) or member.assignment(), "the group is stable")
        said = wait_for(lambda: stable(describe_groups(internal, {}).described.get("orders")), "it is seen so")
        created(scene, TOPICS.groups)
        publish(scene, "orders", said)
        yield "orders"
    finally:
        member.close()


def publish(scene, name: str, said: DescribedGroup) -> None:
    """Write what the brokers say of a group as what the monitor says of it."""
    published = {
        "cluster": "watched",
        "group": name,
        "state": said.state,
        "group_type": said.group_type,
        "protocol": said.protocol,
        "members": [each._asdict() for each in said.members],
        "learning": None,
        **dict.fromkeys(("state_since", "coordinator", "generation", "leader", "last_join_ms", "last_sync_ms")),
        "waits_for": [],
        "rebalances": {},
        "errors": {},
    }
    produce(scene, {f"watched/{name}": json.dumps(published)})


def unpublish(scene, *names: str) -> None:
    produce(scene, {f"watched/{name}": None for name in names})


def produce(scene, records: dict[str, str | None]) -> None:
    producer = Producer({"bootstrap.servers": scene.secured.cluster.internal})
    for key, value in records.items():
        producer.produce(TOPICS.groups, value, key=key)
    assert producer.flush(30) == 0


def stable(described):
    return described if described is not None and described.state == "Stable" else None


def created(scene, topic: str) -> None:
    known = scene.secured.admin.list_topics(timeout=30).topics
    if topic not in known:
        scene.secured.cluster.brokers[0].create_topic(topic, 1, replicas=3, config={"min.insync.replicas": "2"})


def lacking(scene, right, run) -> str:
    """What the process says while it lacks the right; afterwards it works again."""
    user, operation, kind, name = right
    scene.secured.take(user, operation, KINDS[kind], name)
    try:
        status, said = wait_for(lambda: failed(run()), f"{user} lacks {operation} on {name}")
    finally:
        scene.secured.grant(user, operation, KINDS[kind], name)
    assert status == 2, said
    assert f"--operation {operation} --{kind} {name}" in said.replace("'", ""), said
    assert f"User:{user}" in said
    works(run, f"{user} has {operation} on {name} again")
    return said


def failed(outcome):
    time.sleep(REST_S)
    return outcome if outcome[0] else None


def works(run, what: str) -> None:
    told: list[str] = []

    def well() -> bool:
        status, said = run()
        told[:] = [said]
        time.sleep(REST_S if status else 0)
        return status == 0

    try:
        wait_for(well, what)
    except AssertionError:
        raise AssertionError(f"{what}: {told}") from None


def test_the_script_grants_the_table_and_nothing_else(scene):
    assert scene.secured.rights() == set(RIGHTS)


def test_each_right_to_create_that_is_missing_is_said(scene):
    for right in RIGHTS:
        if right[:2] == (TAP, "Create"):
            assert "cannot create topic" in lacking(scene, right, scene.create)
    for right in RIGHTS:
        if right[1] == "Create" and right[0] in (MONITOR, NOTIFY) and right not in BY_COMMAND:
            user, name = right[0], right[3]
            said = lacking(scene, right, lambda user=user: scene.check(user))
            assert f"topic {name}: user {user} lacks the right to Create" in said


@pytest.mark.long
def test_each_right_on_a_topic_that_is_missing_is_said(scene, group):
    for name in (TOPICS.mirror, *result_topics(TOPICS), TOPICS.lag, *notifier_topics(TOPICS)):
        created(scene, name)
    runs = {
        MONITOR: lambda: scene.check(MONITOR),
        NOTIFY: lambda: scene.check(NOTIFY),
        TAP: scene.write,
        RECORD: scene.record,
        VERIFY: scene.verify,
        VIEW: scene.view,
    }
    for process, run in runs.items():
        works(run, f"{process} has its rights")
    for right in RIGHTS:
        if right[1] != "Create" and right not in SPARED:
            lacking(scene, right, runs[right[0]])


def test_whatever_reads_needs_no_right_on_its_group_and_says_which_topic_it_may_not_read(scene, group):
    for name in (TOPICS.mirror, *result_topics(TOPICS), TOPICS.lag, *notifier_topics(TOPICS)):
        created(scene, name)
    told: list[str] = []
    with FindingsReader(scene.kafka(MONITOR), TOPICS.findings, tell=told.append) as reader:
        reader.catch_up()
    with CompactedReader(
        scene.kafka(NOTIFY).for_librdkafka, [TOPICS.findings, TOPICS.status], "notify", trouble=told.append
    ) as feed:
        feed.start()
        assert list(feed.history()) == []
    config = MonitorConfig(kafka=scene.kafka(MONITOR))
    metrics_state = MetricsState(TOPICS.mirror)
    with MetricsFeed(config, Mirror(TOPICS.mirror, "", "", 1), metrics_state, Vitals(), tell=told.append):
        wait_for(metrics_state.is_complete, "the metrics are read to their end")
    assert told == []

    scene.secured.take(MONITOR, "Read", ResourceType.TOPIC, TOPICS.status)
    try:
        with MetricsFeed(config, Mirror(TOPICS.mirror, "", "", 1), MetricsState(TOPICS.mirror), Vitals(), tell=told.append):
            wait_for(lambda: told, "the reader for metrics says what it lacks")
    finally:
        scene.secured.grant(MONITOR, "Read", ResourceType.TOPIC, TOPICS.status)
    assert f"topic {TOPICS.status} cannot be read: user {MONITOR} may not read it; grant the right: `kafka-acls.sh" in told[0]
    assert f"--operation Read --topic {TOPICS.status}" in told[0]


def test_verify_does_not_take_a_group_that_it_may_not_see_for_one_that_is_gone(scene, group):
    works(scene.verify, "verify has its rights")
    scene.secured.take(VERIFY, "Describe", ResourceType.GROUP, "*")
    try:
        status, said = wait_for(lambda: failed(scene.verify()), "verify may not see the group")
    finally:
        scene.secured.grant(VERIFY, "Describe", ResourceType.GROUP, "*")
    assert status == 2, said
    assert "user verify may see none of what the monitor knows on" in said
    assert "do not know it" not in said


def test_verify_goes_on_where_the_topics_of_one_group_may_not_be_described(scene, group):
    """A user with a password, for whom a share group is described, too; its topics and those of a consumer group are hidden then."""
    works(scene.verify, "verify has its rights")
    internal = scene.secured.cluster.internal.split(",")[0]
    modern = Consumer({"bootstrap.servers": internal, "group.id": "modern", "group.protocol": "consumer"})
    modern.subscribe(["watched"])
    with Connection(find_coordinator(internal, "jobs", client_id="jobs"), client_id="jobs") as connection:
        one = ShareMember(connection, "jobs", topics=("watched",))
        wait_for(lambda: one.join() == NONE, "the share group has a member")
        wait_for(lambda: one.beat() == NONE and one.assigned, "it has partitions")
        try:
            wait_for(lambda: modern.poll(0.1) or modern.assignment(), "the consumer group has one")
            said = describe_groups({"bootstrap.servers": internal}, {"jobs": SHARE}).described
            for name in ("modern", "jobs"):
                publish(scene, name, said[name])
            status, shown = wait_for(
                lambda: one.beat() == NONE and "3 equal" in (done := scene.verify())[1] and done, "all are equal"
            )
            assert (status, shown) == (0, "3 equal\n")
            scene.secured.take(VERIFY, "Describe", ResourceType.TOPIC, "*")
            try:
                status, shown = wait_for(
                    lambda: one.beat() == NONE and "2 not described" in (done := scene.verify())[1] and done,
                    "verify may not see the topics",
                )
            finally:
                scene.secured.grant(VERIFY, "Describe", ResourceType.TOPIC, "*")
        finally:
            modern.close()
            one.say(-1)
            unpublish(scene, "modern", "jobs")
    why = "not allowed to see its topics (the right to Describe each topic that its members read)"
    assert [" ".join(line.split()) for line in shown.splitlines()] == [
        f"jobs cannot be compared: {why}",
        f"modern cannot be compared: {why}",
        "1 equal, 2 not described by the brokers",
    ]
    assert status == 0


def test_verify_names_the_cluster_that_refuses(scene, group):
    scene.secured.take(VERIFY, "Read", ResourceType.TOPIC, TOPICS.groups)
    try:
        status, said = wait_for(lambda: failed(scene.verify()), "verify may not read what is published")
    finally:
        scene.secured.grant(VERIFY, "Read", ResourceType.TOPIC, TOPICS.groups)
    assert status == 2
    assert f"cannot read the topic {TOPICS.groups} on {scene.secured.bootstrap('SCRAM')}: user verify may not read it" in said
