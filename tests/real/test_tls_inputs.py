"""Kafka over TLS with real clients: a tap that ends TLS, and a capture before it with the clients' key log, tell the same."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from harness import running_tap, wait_for
from kafka import KafkaConsumer
from test_mirror_cli import _dumpcap, _told

from coordinator_model.wire.record import MirrorRecord
from streaming.demo.broker import HOST, Broker, free_port
from streaming.mirror.pcap.capture_reader import CaptureReader
from streaming.mirror.pcap.files import opened, packets
from streaming.mirror.pcap.tls.connection import NO_SECRETS
from streaming.mirror.pcap.tls.key_log import KeyLog
from streaming.mirror.tap_tls import CertificateFiles, TapTls
from tests.certificates import Authority

pytestmark = pytest.mark.real


class Sink(list[MirrorRecord]):
    def write(self, record: MirrorRecord) -> None:
        self.append(record)


def python_consumer(address: str, authority: Authority, key_log: Path) -> KafkaConsumer:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.keylog_filename = str(key_log)
    return KafkaConsumer(
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
