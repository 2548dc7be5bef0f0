"""Kafka over TLS with real clients: a tap that ends TLS, and a capture before it with the clients' key log, tell the same."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from harness import kafka_python_consumer, running_tap, wait_for
from kafka import KafkaConsumer
from test_mirror_cli import _dumpcap, _told

from coordinator_model.wire.constants import OFFSET_COMMIT
from coordinator_model.wire.record import MirrorRecord
from streaming.demo.broker import HOST, Broker, free_port
from streaming.mirror.pcap.capture_reader import CaptureReader
from streaming.mirror.pcap.files import opened, packets
from streaming.mirror.pcap.tls.connection import NO_SECRETS
from streaming.mirror.pcap.tls.key_log import KeyLog
from streaming.mirror.tap_tls import CertificateFiles, TapTls
from streaming.spark import jvm
from tests.certificates import Authority
from tests.needs import needs
from tests.processes import started
from tests.real.lab import java

pytestmark = pytest.mark.real


class Sink(list[MirrorRecord]):
    def write(self, record: MirrorRecord) -> None:
        self.append(record)


def python_consumer(address: str, authority: Authority, key_log: Path) -> KafkaConsumer:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.keylog_filename = str(key_log)
    return kafka_python_consumer(
        "data",
        bootstrap_servers=address,
        security_protocol="SSL",
        ssl_context=context,
        group_id="g",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=200,
    )


def settled(consumers: list[KafkaConsumer]) -> bool:
    for consumer in consumers:
        consumer.poll(timeout_ms=50)
    shares = [len(consumer.assignment()) for consumer in consumers]
    return sum(shares) == 4 and all(shares)


def read(path: Path, key_log: Path) -> tuple[list[MirrorRecord], Any]:
    records: list[MirrorRecord] = []
    reader = CaptureReader(records.append, cluster="c", key_log=KeyLog(key_log))
    with path.open("rb") as stream:
        reader.read(packets(opened(stream), lambda _: None))
    reader.finish()
    return records, reader.stats


def test_a_capture_with_a_key_log_tells_what_a_tap_tells_that_ends_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    tap, server, client = (authority.identity(name, address=HOST) for name in ("tap", "broker", "client"))
    address, tapped, path, key_log = f"{HOST}:{free_port()}", Sink(), tmp_path / "tls.pcapng", tmp_path / "keys.log"
    properties = {"listener.name.tls.ssl.client.auth": "required"}
    for store, file in (("keystore", server.both), ("truststore", authority.certificate)):
        properties |= {f"listener.name.tls.ssl.{store}.type": "PEM", f"listener.name.tls.ssl.{store}.location": str(file)}
    tls = TapTls(
        own=CertificateFiles(tap.certificate, tap.key),
        is_broker_tls=True,
        broker_authority=authority.certificate,
        client=CertificateFiles(client.certificate, client.key),
    )
    with Broker(listeners={"TLS": "SSL"}, advertised={"TLS": address}, properties=properties) as broker:
        broker.create_topic("data", 4)
        with (
            running_tap([f"{address}={broker.address('TLS')}"], tapped, cluster="c", tls=tls) as running,
            _dumpcap(path, int(address.partition(":")[2])),
        ):
            consumers = [python_consumer(address, authority, key_log) for _ in range(2)]
            wait_for(lambda: settled(consumers), "all have partitions")
            consumers.pop().close()
            wait_for(lambda: settled(consumers), "the one that stays has them all")
            other = Consumer(
                {
                    "bootstrap.servers": address,
                    "group.id": "of librdkafka",
                    "security.protocol": "SSL",
                    "ssl.ca.location": str(authority.certificate),
                }
            )
            other.subscribe(["data"])
            wait_for(lambda: other.poll(0.05) or len(other.assignment()) == 4, "librdkafka has its partitions")
            other.close()
            consumers.pop().close()
            wait_for(lambda: running.stats.open_connections == 0, "all connections are closed")
            wait_for(lambda: _told(read(path, key_log)[0]) == _told(tapped), "the capture tells what the tap tells")
    assert {record.group for record in tapped if record.group} == {"g", "of librdkafka"}
    assert sum(_told(tapped).values()) >= 2
    records, stats = read(path, key_log)
    assert {record.group for record in records if record.group} == {"g"}
    assert set(stats.refused_tls) == {NO_SECRETS}  # librdkafka logs none
    assert (stats.losses, running.stats.opaque, running.stats.refused) == (0, 0, 0)


def agent(key_log: Path) -> str:
    """The JVM option of docs/inputs.md."""
    (jar,) = jvm.jars("agent", ivy_file=Path(__file__).with_name("ivy-key-log.xml"))
    return f"-javaagent:{jar}={key_log}"


class BrokerThatLogsKeys(Broker):
    def __init__(self, key_log: Path, **options: Any) -> None:
        super().__init__(**options)
        self._key_log = key_log

    def _java(self) -> list[str]:
        java_command, *options = super()._java()
        return [java_command, agent(self._key_log), *options]


@needs("javac")
def test_what_an_agent_logs_in_java_opens_a_capture_before_a_client_and_one_before_a_broker(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    tap, server = (authority.identity(name, address=HOST) for name in ("tap", "broker"))
    address, tapped = f"{HOST}:{free_port()}", Sink()
    front, behind = tmp_path / "front.pcapng", tmp_path / "behind.pcapng"
    keys_of_client, keys_of_broker = tmp_path / "client.log", tmp_path / "broker.log"
    properties = {"listener.name.tls.ssl.keystore.type": "PEM", "listener.name.tls.ssl.keystore.location": str(server.both)}
    tls = TapTls(own=CertificateFiles(tap.certificate, tap.key), is_broker_tls=True, broker_authority=authority.certificate)
    options = {
        "bootstrap": address,
        "client_id": "java",
        "group": "g",
        "topics": "data",
        "protocol": "classic",
        "assignors": "range",
    }
    options |= {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 200, "rebalance_timeout_ms": 12_000, "commits": "auto"}
    options |= {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "PEM"}
    options |= {"kafka.ssl.truststore.location": str(authority.certificate)}
    with BrokerThatLogsKeys(keys_of_broker, listeners={"TLS": "SSL"}, advertised={"TLS": address}, properties=properties) as broker:
        broker.create_topic("data", 4)
        with (
            running_tap([f"{address}={broker.address('TLS')}"], tapped, cluster="c", tls=tls) as running,
            _dumpcap(front, int(address.partition(":")[2])),
            _dumpcap(behind, int(broker.address("TLS").partition(":")[2])),
        ):
            java_command, *rest = java.command(options)
            with started([java_command, agent(keys_of_client), *rest]) as client:
                wait_for(lambda: sum(record.api_key == OFFSET_COMMIT for record in tapped) >= 4, "it commits what it was given")
                client.terminate()
                client.wait(30)
            wait_for(lambda: running.stats.open_connections == 0, "all connections are closed")
            for path, key_log in ((front, keys_of_client), (behind, keys_of_broker)):
                wait_for(lambda: _told(read(path, key_log)[0]) == _told(tapped), f"{path.name} tells what the tap tells")  # noqa: B023
    assert _told(tapped)
    assert [read(path, keys)[1].refused_tls for path, keys in ((front, keys_of_client), (behind, keys_of_broker))] == [{}, {}]
