"""Real clients through a real Envoy whose tap writes files: these tell what a tap of ours behind it tells."""

from __future__ import annotations

import io
import json
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from harness import running_tap, wait_for
from test_mirror_cli import _settled, _told

from coordinator_model.wire.record import MirrorRecord
from streaming.commands.capture_files import files_of
from streaming.demo.broker import HOST, Broker, free_port
from streaming.mirror.captures import captured
from streaming.mirror.pcap.capture_reader import CaptureReader, in_order
from streaming.mirror.pcap.files import opened
from tests.needs import needs, path_of

pytestmark = [pytest.mark.real, needs("envoy")]


class Sink(list[MirrorRecord]):
    def write(self, record: MirrorRecord) -> None:
        self.append(record)


def _typed(name: str, kind: str, **settings) -> dict:
    return {"name": name, "typed_config": {"@type": f"type.googleapis.com/envoy.extensions.{kind}", **settings}}


def _configuration(listen: str, upstream: str, prefix: Path) -> dict:
    tap = {
        "static_config": {
            "match": {"any_match": True},
            "output_config": {
                "streaming": True,
                "max_buffered_rx_bytes": 4096,
                "max_buffered_tx_bytes": 4096,
                "sinks": [{"format": "PROTO_BINARY_LENGTH_DELIMITED", "file_per_tap": {"path_prefix": str(prefix)}}],
            },
        }
    }
    raw = _typed("envoy.transport_sockets.raw_buffer", "transport_sockets.raw_buffer.v3.RawBuffer")
    proxy = _typed("envoy.filters.network.tcp_proxy", "filters.network.tcp_proxy.v3.TcpProxy", stat_prefix="kafka", cluster="kafka")
    chain = {
        "filters": [proxy],
        "transport_socket": _typed(
            "envoy.transport_sockets.tap", "transport_sockets.tap.v3.Tap", common_config=tap, transport_socket=raw
        ),
    }
    endpoint = {"endpoint": {"address": _address(upstream)}}
    cluster = {
        "name": "kafka",
        "type": "STATIC",
        "load_assignment": {"cluster_name": "kafka", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    listener = {"name": "kafka", "address": _address(listen), "filter_chains": [chain]}
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _address(address: str) -> dict:
    host, port = address.split(":")
    return {"socket_address": {"address": host, "port_value": int(port)}}


@contextmanager
def _envoy(configuration: dict, folder: Path):
    file = folder / "envoy.json"
    file.write_text(json.dumps(configuration))
    with (folder / "envoy.log").open("wb") as log:
        process = subprocess.Popen([path_of("envoy"), "-c", str(file), "--concurrency", "1", "--disable-hot-restart"], stderr=log)
        try:
            wait_for(lambda: "all dependencies initialized" in (folder / "envoy.log").read_text(), "Envoy listens")
            yield
        finally:
            process.terminate()
            process.wait(30)


def _read(folder: Path) -> tuple[list[MirrorRecord], CaptureReader]:
    records: list[MirrorRecord] = []
    reader = CaptureReader(records.append, cluster="c")
    files = [io.BytesIO(Path(name).read_bytes()) for name in files_of([str(folder)])]
    reader.read(in_order([captured(opened(file), pytest.fail) for file in files]))
    reader.finish()
    return records, reader


def test_envoys_tap_tells_what_a_tap_behind_it_tells(tmp_path: Path) -> None:
    before, behind, tapped, traces = f"{HOST}:{free_port()}", f"{HOST}:{free_port()}", Sink(), tmp_path / "traces"
    traces.mkdir()
    with Broker(advertised={"PLAINTEXT": before}) as broker:
        broker.create_topic("data", 4)
        with (
            running_tap([f"{behind}={broker.address()}"], tapped, cluster="c") as tap,
            _envoy(_configuration(before, behind, traces / "kafka"), tmp_path),
        ):
            producer = Producer({"bootstrap.servers": before})
            for _ in range(100):
                producer.produce("data", b"x" * 10_000)
            producer.flush()
            config = {"bootstrap.servers": before, "group.id": "g", "session.timeout.ms": 6_000, "heartbeat.interval.ms": 200}
            consumers = [Consumer({**config, "auto.offset.reset": "earliest"}) for _ in range(2)]
            for consumer in consumers:
                consumer.subscribe(["data"])
            wait_for(lambda: _settled(consumers), "all have partitions")
            consumers.pop().close()
            wait_for(lambda: _settled(consumers), "the one that stays has them all")
            consumers.pop().close()
            del producer
            wait_for(lambda: tap.stats.open_connections == 0, "all connections are closed")
    records, reader = _read(traces)
    assert _told(records) == _told(tapped)
    assert sum(_told(tapped).values()) >= 2
    assert (reader.stats.losses, reader.stats.opaque) == (0, {})
