"""The tap before a real broker, with real clients."""

from __future__ import annotations

import hashlib
import random
import socket
import struct
import subprocess
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from harness import WAIT_S, kafka_python_consumer, kafka_sink, mirrored, raw_topic, running_tap, wait_for

from coordinator_model import wire
from coordinator_model.wire.record import MIRRORED_API_KEYS, Kind, unpack_loss
from streaming.demo.broker import HOST, Broker, free_port
from streaming.kafka.mirror_topic import create_topic
from streaming.kafka.watermarks import bounds_of
from streaming.mirror.producer import KafkaSink, ReconnectingSink
from streaming.spark.jvm import java_home

pytestmark = pytest.mark.real

PARTITIONS = 4
USER, PASSWORD = "alice", "correct-horse-battery-staple"


def _keystore(folder) -> tuple[Path, Path]:
    """A key for the broker, and its certificate for the client."""
    keytool = str(java_home() / "bin" / "keytool")
    store, certificate = folder / "broker.p12", folder / "broker.pem"
    common = ["-keystore", str(store), "-storepass", PASSWORD, "-alias", "broker"]
    made = [keytool, "-genkeypair", *common, "-storetype", "PKCS12", "-keyalg", "RSA", "-dname", "CN=localhost", "-validity", "30"]
    subprocess.run(made, check=True, capture_output=True)
    subprocess.run([keytool, "-exportcert", "-rfc", *common, "-file", str(certificate)], check=True, capture_output=True)
    return store, certificate


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    """One broker; taps will stand before its clients', SASL and TLS listeners, and (to cut the mirror off) before a fourth one."""
    ports = {name: free_port() for name in ("PLAINTEXT", "SASL", "TLS", "MIRROR")}
    store, certificate = _keystore(tmp_path_factory.mktemp("tls"))
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    with Broker(
        listeners={"SASL": "SASL_PLAINTEXT", "TLS": "SSL", "MIRROR": "PLAINTEXT"},
        advertised={name: f"{HOST}:{port}" for name, port in ports.items()},
        properties={
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": login,
            "listener.name.tls.ssl.keystore.location": str(store),
            "listener.name.tls.ssl.keystore.password": PASSWORD,
            "message.max.bytes": 32 * 2**20,
        },
    ) as broker:
        broker.create_topic("data", 2, config={"max.message.bytes": str(32 * 2**20)})
        yield SimpleNamespace(
            broker=broker,
            certificate=certificate,
            address={name: f"{HOST}:{port}" for name, port in ports.items()},
            listener={name: f"{HOST}:{port}={broker.address(name)}" for name, port in ports.items()},
        )


@pytest.fixture
def topic(setup, request):
    """A mirror topic of the test's own."""
    name = f"mirror-{random.randrange(10**9)}"
    assert create_topic({"bootstrap.servers": setup.broker.internal}, name, PARTITIONS)
    return name


@pytest.fixture
def tap(setup, topic):
    """A tap before the clients' listener; what it mirrored is read with ``tap.mirrored()``."""
    with (
        kafka_sink(setup.broker.internal, topic=topic, cluster="c1") as sink,
        running_tap([setup.listener["PLAINTEXT"]], sink, cluster="c1") as running,
    ):
        yield SimpleNamespace(running=running, sink=sink, address=setup.address["PLAINTEXT"])


def _consume(poll, count: int, what: str) -> None:
    taken = 0

    def enough() -> bool:
        nonlocal taken
        taken += poll()
        return taken >= count

    wait_for(enough, what)


def test_real_consumers_are_mirrored_whole(setup, topic):
    """Both clients' whole life in a group: pairs decode, numbers have no holes, ticks come, a group stays in one partition."""
    address = setup.address["PLAINTEXT"]
    with (
        kafka_sink(setup.broker.internal, topic=topic, cluster="c1") as sink,
        running_tap([setup.listener["PLAINTEXT"]], sink, cluster="c1", tick_s=0.2),
    ):
        producer = Producer({"bootstrap.servers": address})
        for number in range(200):
            producer.produce("data", str(number).encode())
        assert producer.flush(WAIT_S) == 0
        groups = ["by-confluent", "by-kafka-python"]
        common = {"bootstrap.servers": address, "group.id": groups[0], "auto.offset.reset": "earliest"}
        two = [Consumer({**common, "client.id": f"cf-{number}"}) for number in range(2)]
        for consumer in two:
            consumer.subscribe(["data"])
        other = kafka_python_consumer(
            "data", bootstrap_servers=address, group_id=groups[1], client_id="kp-1", auto_offset_reset="earliest"
        )
        _consume(lambda: sum(len(consumer.consume(200, 0.2)) for consumer in two), 200, "confluent-kafka reads")
        wait_for(lambda: [one.consume(200, 0.2) for one in two] and all(one.assignment() for one in two), "both have joined")
        _consume(lambda: sum(map(len, other.poll(200).values())), 200, "kafka-python reads")
        for consumer in (*two, other):
            consumer.close()

    records = mirrored(setup.broker.internal, topic)
    frames = [record for record in records if record.kind in (Kind.REQUEST, Kind.RESPONSE)]

    partitions = defaultdict(set)
    for record in frames:
        partitions[record.group].add(record.partition)
    assert set(partitions) == set(groups)
    assert all(len(found) == 1 for found in partitions.values())

    exchanges = defaultdict(dict)
    for record in frames:
        assert record.api_key in MIRRORED_API_KEYS
        assert record.cut_bytes == 0
        assert record.broker == setup.broker.address()
        frame = wire.decode(
            record.frame, request=record.kind is Kind.REQUEST, api_key=record.api_key, api_version=record.api_version
        )
        assert frame.header.correlation_id == record.correlation_id
        pair = exchanges[record.connection].setdefault(record.exchange, {})
        assert record.kind not in pair, "once per group"
        pair[record.kind] = (record, frame.body)
    for connection, numbered in exchanges.items():
        assert sorted(numbered) == list(range(len(numbered))), f"holes on {connection}"
        for pair in numbered.values():
            assert set(pair) == {Kind.REQUEST, Kind.RESPONSE}
            assert pair[Kind.REQUEST][0].at_us <= pair[Kind.RESPONSE][0].at_us

    by_api = defaultdict(set)
    for record in frames:
        by_api[record.group].add(record.api_key)
    for group in groups:
        assert {8, 10, 11, 13, 14, 18} <= by_api[group], "commit, find, join, leave, sync, versions"
    members = {
        body.member_id
        for numbered in exchanges.values()
        for pair in numbered.values()
        for _, body in pair.values()
        if isinstance(body, wire.JoinGroupResponse) and body.error_code == 0
    }
    assert {member[:4] for member in members} == {"cf-0", "cf-1", "kp-1"}

    software = {record.client_id: record.client_software for record in frames if record.api_key == 11}
    assert software["cf-0"].startswith("confluent-kafka-python ")
    assert software["kp-1"].startswith("kafka-python ")
    for connection in exchanges:
        kinds = [record.kind for record in records if record.connection == connection and record.group is not None]
        assert kinds[0] is Kind.OPEN
        assert kinds[-1] is Kind.CLOSE

    ticks = [record for record in records if record.kind is Kind.TICK]
    for partition in range(PARTITIONS):
        times = [tick.at_us for tick in ticks if tick.partition == partition]
        assert len(times) >= 5
        assert times == sorted(times)
    assert {tick.group for tick in ticks} == {None}


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_large_records_arrive_byte_for_byte(setup, tap, acks):
    size = 6 * 2**20
    sent = [random.Random(number).randbytes(size) for number in range(4)]
    producer = Producer({"bootstrap.servers": tap.address, "acks": acks, "message.max.bytes": 30 * 2**20, "linger.ms": 0})
    reader = Consumer(
        {"bootstrap.servers": tap.address, "group.id": "large", "enable.auto.commit": False, "fetch.message.max.bytes": 30 * 2**20}
    )
    _, end = bounds_of(reader, TopicPartition("data", 1), WAIT_S)
    for payload in sent:
        producer.produce("data", payload, partition=1)
    assert producer.flush(WAIT_S) == 0
    reader.assign([TopicPartition("data", 1, end)])
    received = [wait_for(lambda: reader.poll(1), "a large record") for _ in sent]
    reader.close()
    assert not any(message.error() for message in received)
    assert [hashlib.sha256(message.value()).digest() for message in received] == [hashlib.sha256(one).digest() for one in sent]
    assert tap.running.stats.opaque == 0


class RawClient:
    """Speaks with a broker frame by frame."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=WAIT_S)
        self.next_id = 0

    def send(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            assert more, "the connection ended"
            data += more
        return data

    def heartbeat(self, group: str = "raw") -> int:
        self.next_id += 1
        body = wire.HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")
        self.send(wire.encode_request(body, api_version=4, correlation_id=self.next_id, client_id="raw-1"))
        return wire.decode(self.receive(), request=False, api_key=12, api_version=4).body.error_code


def test_an_acks_0_producer_does_not_upset_the_pairing(setup, topic):
    """On one and the same connection, by a raw client: produce without an answer, then a heartbeat."""
    with kafka_sink(setup.broker.internal, topic=topic) as sink, running_tap([setup.listener["PLAINTEXT"]], sink) as tap:
        client = RawClient(setup.address["PLAINTEXT"])
        for _ in range(3):
            # Produce v3: no transaction, acks=0, timeout, no topics
            client.send(struct.pack(">hhihhhii", 0, 3, 4711, -1, -1, 0, 1000, 0))
            assert client.heartbeat() == 25
        client.socket.close()
        assert tap.stats.opaque == 0
    kinds = [record.kind for record in mirrored(setup.broker.internal, topic) if record.group == "raw"]
    assert kinds == [Kind.OPEN, *[Kind.REQUEST, Kind.RESPONSE] * 3, Kind.CLOSE]


def test_an_unreachable_mirror_costs_frames_but_no_client(setup, topic):
    """While the mirror is cut off clients go on; afterwards each partition is told how many frames are missing, and it adds up."""
    heartbeats = 300
    with running_tap([setup.listener["MIRROR"]], _Nowhere()):
        sink = KafkaSink({"bootstrap.servers": setup.address["MIRROR"]}, topic=topic, buffer_records=100)
    with running_tap([setup.listener["PLAINTEXT"]], sink, tick_s=0.05):
        client = RawClient(setup.address["PLAINTEXT"])
        for _ in range(heartbeats):
            assert client.heartbeat() == 25
        assert sink.lost > 0, "the buffer is small on purpose"
        with running_tap([setup.listener["MIRROR"]], _Nowhere()):
            # The ticks go on, and the first record that finds room tells the loss.
            wait_for(lambda: sink._pending_loss is None, "the loss is told")
            lost = sink.lost
            assert client.heartbeat() == 25
            client.socket.close()
            wait_for(lambda: _closed(setup, topic), "the close is mirrored")
            assert sink.close(WAIT_S) == 0
            assert sink.lost == lost

    records = mirrored(setup.broker.internal, topic)
    gaps = [record for record in records if record.kind is Kind.GAP]
    assert sorted(gap.partition for gap in gaps) == list(range(PARTITIONS))
    (loss,) = {unpack_loss(gap.frame) for gap in gaps}
    frames = [record for record in records if record.group == "raw"]
    assert loss.records == lost
    assert len(frames) + loss.records == 2 * (heartbeats + 1) + 2, "exchanges, open and close: all accounted for"
    last_kept = max(
        record.at_us for record in frames if record.offset < next(g.offset for g in gaps if g.partition == record.partition)
    )
    assert last_kept <= loss.from_us <= loss.to_us
    after = [record for record in frames if record.at_us > loss.to_us]
    assert [record.kind for record in after] == [Kind.REQUEST, Kind.RESPONSE, Kind.CLOSE]
    assert all(record.offset > gap.offset for record in after for gap in gaps if gap.partition == record.partition)


def test_clients_pass_while_the_mirror_is_away_from_the_start(setup, topic):
    """Whether anybody can read along is no matter of theirs; what was captured until then waits for the mirror."""
    heartbeats = 5
    sink = ReconnectingSink({"bootstrap.servers": setup.address["MIRROR"]}, topic=topic, timeout_s=1)
    with running_tap([setup.listener["PLAINTEXT"]], sink, tick_s=0.05):
        client = RawClient(setup.address["PLAINTEXT"])
        for _ in range(heartbeats):
            assert client.heartbeat() != 0, "an answer, whichever"
        assert (sink.partitions, sink.written) == (None, 0)
        with running_tap([setup.listener["MIRROR"]], _Nowhere()):
            wait_for(lambda: sink.partitions == PARTITIONS, "the mirror is there")
            assert client.heartbeat() != 0
            client.socket.close()
            wait_for(lambda: _closed(setup, topic), "the close is mirrored")
            assert sink.close(WAIT_S) == 0
    kinds = [record.kind for record in mirrored(setup.broker.internal, topic) if record.group == "raw"]
    assert kinds == [Kind.OPEN, *[Kind.REQUEST, Kind.RESPONSE] * (heartbeats + 1), Kind.CLOSE]
    assert sink.lost == 0


class _Nowhere:
    """A sink for a tap that only stands in the way."""

    def write(self, record) -> None:
        pass


def _closed(setup, topic) -> bool:
    return any(record.kind is Kind.CLOSE for record in mirrored(setup.broker.internal, topic))


def test_no_password_reaches_the_mirror(setup, topic):
    """SASL/PLAIN by a current client (SaslAuthenticate) and by an old one (bare tokens after SaslHandshake v0)."""
    with kafka_sink(setup.broker.internal, topic=topic) as sink, running_tap([setup.listener["SASL"]], sink) as tap:
        consumer = Consumer(
            {
                "bootstrap.servers": setup.address["SASL"],
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "PLAIN",
                "sasl.username": USER,
                "sasl.password": PASSWORD,
                "group.id": "secret",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["data"])
        wait_for(lambda: consumer.poll(0.2) or consumer.assignment(), "the group forms")
        consumer.close()

        old = RawClient(setup.address["SASL"])
        old.send(struct.pack(">hhihh5s", 17, 0, 1, -1, 5, b"PLAIN"))
        assert struct.unpack_from(">ih", old.receive()) == (1, 0)
        old.send(b"\0" + USER.encode() + b"\0" + PASSWORD.encode())
        assert old.receive() == b""
        assert old.heartbeat("old") == 25
        assert old.heartbeat("old") == 25
        old.socket.close()
        assert tap.stats.opaque == 0

    messages = raw_topic(setup.broker.internal, topic)
    everything = b"".join(part for m in messages for part in (m.key() or b"", m.value() or b"", *(v for _, v in m.headers())))
    for secret in (PASSWORD.encode(), b"\0" + USER.encode()):
        assert secret not in everything
    records = mirrored(setup.broker.internal, topic)
    assert {record.api_key for record in records if record.api_key >= 0} <= MIRRORED_API_KEYS
    assert {11, 14} <= {record.api_key for record in records if record.group == "secret"}, "the login did not hide the group"
    assert [r.exchange for r in records if r.group == "old" and r.kind is Kind.RESPONSE] == [0, 1]


def test_encrypted_traffic_passes_unread_and_is_said_to_be(setup, topic):
    """A TLS client: its group forms, nothing of it is mirrored, and every partition is told of a connection that cannot be read."""
    with kafka_sink(setup.broker.internal, topic=topic) as sink, running_tap([setup.listener["TLS"]], sink) as tap:
        consumer = Consumer(
            {
                "bootstrap.servers": setup.address["TLS"],
                "security.protocol": "ssl",
                "ssl.ca.location": str(setup.certificate),
                "ssl.endpoint.identification.algorithm": "none",
                "group.id": "hidden",
            }
        )
        consumer.subscribe(["data"])
        wait_for(lambda: consumer.poll(0.2) or consumer.assignment(), "the group forms")
        consumer.close()
        wait_for(lambda: tap.stats.open_connections == 0, "its connections end")
        connections = tap.stats.opaque
        assert connections == tap.stats.connections > 0
    records = [record for record in mirrored(setup.broker.internal, topic) if record.kind is not Kind.TICK]
    assert {(record.kind, record.group) for record in records} == {(Kind.GAP, None)}
    for partition in range(PARTITIONS):
        told = [unpack_loss(record.frame) for record in records if record.partition == partition]
        assert len(told) == 2 * connections, "at the beginning and at the end of each"
        assert all(loss.bytes > 0 and loss.records == 0 for loss in told)
