"""The tap and the monitor's own clients where rights are missing or taken away, and where certificates and passwords are renewed under way.

A broker with TLS, SCRAM, client certificates and an authorizer that denies by default; before its listeners a proxy, so that connections
can be cut as a restart of the broker cuts them.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import ResourceType
from harness import WAIT_S, mirrored, raw_topic, running_tap, wait_for

from coordinator_model.wire.record import Kind, MirrorRecord, unpack_loss
from streaming.config.settings import Kafka, MonitorConfig
from streaming.demo.broker import HOST, Broker, free_port
from streaming.kafka.compacted import CompactedReader, TopicError
from streaming.kafka.connection import reach
from streaming.kafka.mirror_topic import MirrorTopic
from streaming.kafka.topics import Mirror
from streaming.metrics.feed import MetricsFeed
from streaming.metrics.metrics_state import MetricsState
from streaming.metrics.vitals import Vitals
from streaming.mirror.losses import LossFile
from streaming.mirror.producer import KafkaSink, ReconnectingSink
from streaming.sinks.findings import FindingsReader, FindingsWriter
from tests.certificates import Authority
from tests.processes import started
from tests.real.secured import Administrator

pytestmark = pytest.mark.real

TAP = [sys.executable, "-m", "streaming.cli", "tap"]
RESULTS = ("rebalance-findings", "rebalance-groups", "rebalance-status")
PARTITIONS = 2


class Nowhere:
    def write(self, record: MirrorRecord) -> None: ...


class Secured(Administrator):
    """The broker, and what an administrator does with it."""

    def __init__(self, broker: Broker, authority: Authority, addresses: dict[str, str]) -> None:
        super().__init__(broker.internal)
        self.broker = broker
        self.authority = authority
        self.addresses = addresses

    @contextmanager
    def reachable(self, listener: str):
        """The way to a listener, cut at the end."""
        with running_tap([f"{self.addresses[listener]}={self.broker.address(listener)}"], Nowhere()):
            yield

    def allow(self, user: str, topic: str, *operations: str) -> None:
        for operation in operations:
            self.grant(user, operation, ResourceType.TOPIC, topic)

    def with_certificate(self, identity) -> dict[str, str]:
        return {
            "bootstrap.servers": self.addresses["CERTIFIED"],
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority.certificate),
            "ssl.certificate.location": str(identity.certificate),
            "ssl.key.location": str(identity.key),
        }

    def with_password(self, user: str, password: str, listener: str = "SCRAM") -> dict[str, str]:
        return {
            "bootstrap.servers": self.addresses[listener],
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(self.authority.certificate),
        }


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    server = authority.identity("broker", address=HOST)
    addresses = {"CERTIFIED": f"{HOST}:{free_port()}", "SCRAM": f"{HOST}:{free_port()}"}
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "true",
        "listener.name.certified.ssl.client.auth": "required",
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.scram.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    }
    for name in ("certified", "scram"):
        for store, file in (("keystore", server.both), ("truststore", authority.certificate)):
            properties |= {
                f"listener.name.{name}.ssl.{store}.type": "PEM",
                f"listener.name.{name}.ssl.{store}.location": str(file),
            }
    with Broker(listeners={"CERTIFIED": "SSL", "SCRAM": "SASL_SSL"}, advertised=addresses, properties=properties) as broker:
        yield Secured(broker, authority, addresses)


@pytest.fixture
def topic(secured, request):
    name = request.node.name.replace("test_", "").replace("_", "-")[:60]
    secured.broker.create_topic(name, PARTITIONS)
    return name


class Writer:
    """Writes a frame now and then, as a tap does, and a tick."""

    def __init__(self, sink: KafkaSink) -> None:
        self.written = 0
        self._sink = sink

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            self._sink.write(record(self.written))
            self.written += 1
        self._sink.write(record(0, kind=Kind.TICK, group=None))


def record(number: int, *, kind: Kind = Kind.REQUEST, group: str | None = "g") -> MirrorRecord:
    at_us = time.time_ns() // 1000
    where = ("c", "b:9092", "x-1", number, 12, 4, number, "app", "10.0.0.7", "", 0, 0)
    return MirrorRecord(-1, -1, group, kind, at_us, *where, frame=number.to_bytes(20, "big"))


def frames(secured, topic: str) -> list[int]:
    return [found.exchange for found in mirrored(secured.broker.internal, topic) if found.kind is Kind.REQUEST]


def gaps(secured, topic: str):
    return [found for found in mirrored(secured.broker.internal, topic) if found.kind is Kind.GAP]


# --- credentials that are renewed under way ---------------------------------------------------------------------------


def test_a_certificate_that_expired_and_was_renewed_loses_nothing(secured, topic, tmp_path):
    """The connection goes on after the certificate has expired; the next one is refused until the files hold the new certificate."""
    expires = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=8)
    client = secured.authority.identity("renewed", until=expires)
    secured.allow("CN=renewed", topic, "write")
    said: list[str] = []
    with secured.reachable("CERTIFIED"):
        sink = KafkaSink(secured.with_certificate(client), topic=topic, tell=said.append)
        writer = Writer(sink)
        writer.write(100)
        wait_for(lambda: sink.buffered == 0, "the first frames arrive")
        wait_for(lambda: dt.datetime.now(dt.UTC) > expires + dt.timedelta(seconds=1), "it expires")
    with secured.reachable("CERTIFIED"):
        writer.write(100)
        wait_for(lambda: sink.trouble, "the sink knows that it is refused")
        wait_for(
            lambda: any(f"the client certificate {client.certificate} expired" in sentence for sentence in said), "and says why"
        )
        writer.write(100)
        assert sink.buffered >= 200, "nothing is written"
        secured.authority.identity("renewed")
        wait_for(lambda: sink.buffered == 0, "the frames are written with the new certificate")
        wait_for(lambda: sink.trouble is None, "nothing is wrong any more")
        assert sink.close(WAIT_S) == 0
    assert frames(secured, topic) == list(range(300))
    assert (sink.lost, gaps(secured, topic)) == (0, [])


def test_a_password_that_was_changed_in_its_file_loses_nothing(secured, topic, tmp_path):
    secured.set_password("changer", "first")
    secured.allow("changer", topic, "write")
    file = tmp_path / "producer.properties"

    def write_file(password: str) -> None:
        lines = (f"{name}={value}\n" for name, value in secured.with_password("changer", password).items())
        file.write_text("".join(lines))

    def read() -> dict[str, str]:
        return dict(line.split("=", 1) for line in file.read_text().splitlines())

    write_file("first")
    with secured.reachable("SCRAM"):
        sink = KafkaSink(read, topic=topic)
        writer = Writer(sink)
        writer.write(100)
        wait_for(lambda: sink.buffered == 0, "the first frames arrive")
        secured.set_password("changer", "second")
    with secured.reachable("SCRAM"):
        writer.write(100)
        wait_for(lambda: "invalid credentials" in (sink.trouble or ""), "the sink knows that it is refused")
        write_file("second")
        wait_for(lambda: sink.buffered == 0, "the frames are written with the new password")
        assert sink.close(WAIT_S) == 0
    assert frames(secured, topic) == list(range(200))
    assert sink.lost == 0


@pytest.fixture
def monitor_user(secured, tmp_path):
    """A user who may do what the monitor does, and its configuration."""
    secured.set_password("monitor", "first")
    known = secured.admin.list_topics(timeout=10).topics
    for name in RESULTS:
        if name not in known:
            secured.broker.create_topic(name)
        secured.allow("monitor", name, "read", "write", "describe")
    for group in ("reader", "metrics", "notify"):
        secured.grant("monitor", "describe", ResourceType.GROUP, f"rebalance-monitor-{group}")
        secured.grant("monitor", "read", ResourceType.GROUP, f"rebalance-monitor-{group}")
    password = tmp_path / "password"
    password.write_text("first\n")
    password.chmod(0o600)
    kafka = Kafka(
        bootstrap_servers=secured.addresses["SCRAM"],
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="monitor",
        sasl_password_file=password,
        ssl_ca_file=secured.authority.certificate,
        reach_timeout_s=30,
    )
    return SimpleNamespace(kafka=kafka, password=password)


def finding(number: int) -> dict[str, str]:
    return {"id": str(number), "status": "open", "cluster": "c", "group": "g", "rule": "V-03", "severity": "warning"}


def test_the_clients_of_the_driver_and_the_notifier_go_on_with_a_changed_password(secured, monitor_user):
    config = MonitorConfig(kafka=monitor_user.kafka)
    said: list[str] = []
    metrics_state = MetricsState("mirror")
    refused = {"writer": lambda: writer.refused, "reader": lambda: reader.refused, "metrics": lambda: metrics.refused}
    with secured.reachable("SCRAM"):
        writer = FindingsWriter(config.kafka, RESULTS[0], tell=said.append)
        reader = FindingsReader(config.kafka, RESULTS[0], tell=said.append)
        metrics = MetricsFeed(config, Mirror("mirror", "id", "c", 1), metrics_state, Vitals(), tell=said.append)
        notify = CompactedReader(config.kafka.for_librdkafka, RESULTS[:1], "notify", trouble=said.append)
        reader.catch_up()
        metrics.__enter__()
        notify.start()
        writer.publish_json(RESULTS[0], "1", finding(1))
        assert writer.flush(WAIT_S)
        wait_for(lambda: reader.poll(0.1) and reader.open, "the reader has the first finding")
        assert wait_for(lambda: notify.poll(0.1), "the notifier has it")
        wait_for(lambda: metrics_state.is_complete() and metrics_state.look().open, "the metrics have it")
        secured.set_password("monitor", "second")
    with secured.reachable("SCRAM"):
        writer.publish_json(RESULTS[0], "2", finding(2))

        def all_refused() -> bool:
            writer.tend()
            reader.poll(0.05)
            notify.poll(0.05)
            return all(why() for why in refused.values()) and notify.in_trouble

        wait_for(all_refused, "each knows that it is refused")
        for who in ("the writer of findings", "the reader of findings", "the reader for metrics"):
            (sentence,) = [sentence for sentence in said if sentence.startswith(f"{who} stands still")]
            assert "invalid credentials" in sentence
        monitor_user.password.write_text("second\n")
        assert writer.flush(WAIT_S), "what was queued is written"
        assert wait_for(lambda: reader.poll(0.1) and len(reader.open) == 2, "the reader goes on where it was")
        assert [found.key for found in wait_for(lambda: notify.poll(0.1), "the notifier goes on where it was")] == [b"2"]
        wait_for(lambda: len(metrics_state.look().open) == 2, "the metrics go on")
        assert [why() for why in refused.values()] == [None] * 3
        metrics.__exit__(None, None, None)
        reader.__exit__(None, None, None)
        notify.close()
    keys = [message.key() for message in raw_topic(secured.broker.internal, RESULTS[0])]
    assert keys == [b"1", b"2"]


# --- rights that are missing or taken away ----------------------------------------------------------------------


def test_frames_wait_while_the_right_to_write_is_taken_away(secured, topic):
    """382 frames were lost at once."""
    secured.set_password("taken", "p")
    secured.allow("taken", topic, "write")
    said: list[str] = []
    with secured.reachable("SCRAM"):
        sink = KafkaSink(secured.with_password("taken", "p"), topic=topic, tell=said.append)
        writer = Writer(sink)
        writer.write(100)
        wait_for(lambda: sink.buffered == 0, "the first frames arrive")
        secured.take("taken", "write", ResourceType.TOPIC, topic)

        def held() -> bool:
            writer.write()
            return sink.trouble is not None

        wait_for(held, "it is refused")
        writer.write(100)
        assert sink.lost == 0
        wait_for(lambda: any("user taken may not write to topic" in sentence for sentence in said), "it says what is missing")
        secured.allow("taken", topic, "write")
        wait_for(lambda: sink.buffered == 0, "all is written")
        wait_for(lambda: said[-1].startswith(f"mirroring to topic {topic} again"), "and that is said")
        assert sink.close(WAIT_S) == 0
    assert frames(secured, topic) == list(range(writer.written))
    assert (sink.lost, gaps(secured, topic)) == (0, [])


@contextmanager
def tapping(secured, tmp_path, *arguments: str, user: str, password: str = "p"):
    """A tap in a process of its own before the plain listener; what it says, line by line."""
    file = tmp_path / "producer.properties"
    properties = secured.with_password(user, password).items()
    file.write_text("".join(f"{name}={value}\n" for name, value in properties if name != "bootstrap.servers"))
    port = free_port()
    command = [
        *TAP,
        *("--listen", f"{HOST}:{port}={secured.broker.address()}", "--bootstrap-server", secured.addresses["SCRAM"]),
        *("--producer-config", str(file), "--loss-file", str(tmp_path / "loss"), "--status-every", "0.2", *arguments),
    ]
    said: list[str] = []
    with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        reader = threading.Thread(target=lambda: said.extend(iter(process.stderr.readline, "")))
        reader.start()
        try:
            yield SimpleNamespace(address=f"{HOST}:{port}", said=said, process=process)
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(WAIT_S)
            reader.join()
            print(*said, sep="", end="")


def passes(tap) -> bool:
    """Whether a client gets through to its broker."""
    host, _, port = tap.address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), 5) as client:
            client.sendall(bytes.fromhex("0000000a 0012 0000 00000007 0000".replace(" ", "")))  # ApiVersions v0
            return len(client.recv(4)) == 4
    except OSError:
        return False


@pytest.mark.parametrize("lacking", ["write", "describe", "topic", "password", "file"])
def test_the_tap_lets_clients_pass_whatever_is_wrong_with_the_mirror(secured, tmp_path, lacking):
    user, topic = f"no-{lacking}", f"lacking-{lacking}"
    secured.set_password(user, "p")
    if lacking != "topic":
        secured.broker.create_topic(topic, PARTITIONS)
    rights = {"write": ["describe"], "describe": []}.get(lacking, ["write"])
    if rights:
        secured.allow(user, topic, *rights)
    expected = {
        "write": f"user {user} may not write to topic {topic}",
        "describe": f"user {user} may not see topic '{topic}'",
        "topic": f"topic '{topic}' does not exist",
        "password": f"refuses the login of user {user}",
        "file": "No such file or directory",
    }[lacking]
    more = ["--producer-config", str(tmp_path / "absent")] if lacking == "file" else []
    password = "wrong" if lacking == "password" else "p"
    with (
        secured.reachable("SCRAM"),
        tapping(secured, tmp_path, "--topic", topic, *more, user=user, password=password) as tap,
    ):
        wait_for(lambda: passes(tap), "a client gets through")
        wait_for(lambda: any(expected in line for line in tap.said), "it says what is the case")
        assert tap.process.poll() is None
        assert passes(tap)
        assert not any("mirroring to topic" in line for line in tap.said), "it does not say what is not the case"
        wait_for(lambda: any("nothing is mirrored now" in line for line in tap.said), "the line of figures says it too")
        if lacking == "write":
            secured.allow(user, topic, "write")
            wait_for(lambda: any(f"mirroring to topic {topic}" in line for line in tap.said), "it goes on by itself")


def test_create_topic_without_create_on_a_topic_that_exists_goes_on_and_says_how_it_differs(secured, topic, tmp_path):
    secured.set_password("writer", "p")
    secured.allow("writer", topic, "write", "describe_configs")
    with (
        secured.reachable("SCRAM"),
        tapping(secured, tmp_path, "--topic", topic, "--create-topic", "--partitions", "4", user="writer") as tap,
    ):
        wait_for(lambda: any(f"mirroring to topic {topic}, {PARTITIONS} partitions" in line for line in tap.said), "it mirrors")
        (line,) = [line for line in tap.said if "is not as asked for" in line]
        assert f"it has {PARTITIONS} partitions, not 4" in line
        assert "its retention.ms is 604800000, not 259200000" in line
        assert "--command-config admin.properties" in line


def test_record_without_the_right_to_read_says_user_and_remedy(secured, topic, tmp_path):
    secured.set_password("recorder", "p")
    secured.allow("recorder", topic, "describe")
    secured.grant("recorder", "describe", ResourceType.GROUP, "rebalance-monitor-record")
    sink = KafkaSink({"bootstrap.servers": secured.broker.internal}, topic=topic)
    Writer(sink).write(10)
    assert sink.close(WAIT_S) == 0
    file = tmp_path / "consumer.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in secured.with_password("recorder", "p").items()))
    command = [*TAP[:-1], "record", "--bootstrap-server", secured.addresses["SCRAM"], "--consumer-config", str(file)]
    with secured.reachable("SCRAM"):
        done = subprocess.run(
            [*command, "--from-topic", topic, str(tmp_path / "records")],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert "user recorder may not read it; grant the right: `kafka-acls.sh" in said
    assert f"--command-config admin.properties --add --allow-principal 'User:recorder' --operation Read --topic {topic}`" in said


def test_a_mirror_topic_that_was_deleted_does_not_come_back_by_itself(secured, topic):
    """The broker creates topics by itself; frames wait until somebody has created it."""
    config = {"bootstrap.servers": secured.broker.internal, "topic.metadata.refresh.interval.ms": "500"}
    sink = KafkaSink(config | {"topic.metadata.propagation.max.ms": "200"}, topic=topic)
    writer = Writer(sink)
    writer.write(10)
    wait_for(lambda: sink.buffered == 0, "the first frames arrive")
    secured.admin.delete_topics([topic])[topic].result(30)

    def noticed() -> bool:
        writer.write()
        return f"topic {topic} does not exist any more" in (sink.trouble or "")

    wait_for(noticed, "it is missed")
    for _ in range(20):
        writer.write()
        time.sleep(0.05)
    assert topic not in secured.admin.list_topics(timeout=10).topics
    secured.broker.create_topic(topic, PARTITIONS)
    wait_for(lambda: sink.buffered == 0, "what waited is written")
    assert sink.close(WAIT_S) == 0
    found = frames(secured, topic)
    assert found == list(range(found[0], writer.written)), "in order, and nothing is missing but what the topic had"
    assert found[0] >= 10


def test_no_reader_or_writer_brings_a_missing_topic_back(secured):
    """The broker creates topics by itself for whoever lets it."""
    kafka = Kafka(bootstrap_servers=secured.broker.internal, reach_timeout_s=5)
    with CompactedReader(kafka.for_librdkafka, ["gone-read"], "the reader") as reader, pytest.raises(TopicError):
        reader.start(patience_s=0)
    writer = FindingsWriter(kafka, "gone-written")
    writer.publish_json("gone-written", "1", finding(1))
    assert not writer.flush(5)
    command = [*TAP[:-1], "record", "--bootstrap-server", secured.broker.internal, "--from-topic", "gone-recorded", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 2
    assert "gone-recorded" in done.stderr
    assert "create it, with --create-topic of the tap or of mirror" in done.stderr, "record has no such option"
    with contextlib.suppress(KafkaException):
        reach(kafka.for_librdkafka(), 5)[0].list_topics("gone-asked", timeout=5)
    assert [topic for topic in secured.admin.list_topics(timeout=10).topics if topic.startswith("gone-")] == []


def test_a_topic_that_differs_in_replication_or_compression_is_said(secured, topic):
    config = {"bootstrap.servers": secured.broker.internal}
    said = MirrorTopic(PARTITIONS, replication_factor=3, compression="zstd").provide(config, topic, timeout_s=30)
    (line,) = said
    assert "its replication factor is 1, not 3" in line
    assert "its compression.type is producer, not zstd" in line


# --- what is lost at the end -------------------------------------------------------------------------------------------


def test_what_a_tap_loses_at_its_end_is_told_by_the_next(secured, topic, tmp_path):
    secured.set_password("ends", "p")
    secured.allow("ends", topic, "write")
    file = tmp_path / "state" / "tap.loss"
    config = secured.with_password("ends", "p")
    first = ReconnectingSink(config, topic=topic, losses=LossFile(file, topic), timeout_s=1)
    writer = Writer(first)
    writer.write(50)
    wait_for(file.exists, "it is kept while nothing can be written, for the case of a kill")
    writer.write(50)
    assert first.close(0.5) == 100
    with secured.reachable("SCRAM"):
        said: list[str] = []
        second = ReconnectingSink(config, topic=topic, losses=LossFile(file, topic), tell=said.append)
        assert said == ["100 records were lost when the capture before this one ended; every partition is told"]
        after = Writer(second)
        after.write(5)
        wait_for(lambda: second.written >= 5 and second.buffered == 0, "the gap and the frames arrive")
        assert second.close(WAIT_S) == 0
    assert not file.exists()
    assert frames(secured, topic) == list(range(5))
    told = gaps(secured, topic)
    assert sorted(gap.partition for gap in told) == list(range(PARTITIONS))
    (loss,) = {unpack_loss(gap.frame) for gap in told}
    assert (loss.records, loss.bytes) == (100, 2000)
    for gap in told:
        assert gap.offset == 0, "before anything else"
    shutil.rmtree(file.parent)
