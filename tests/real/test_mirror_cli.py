"""Captures into the mirror topic and out of it again; and a capture beside the tap, of the same connections."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

import pytest
from confluent_kafka import Consumer
from harness import WAIT_S, mirrored, running_tap, wait_for

from coordinator_model.wire.record import Kind
from streaming.demo.broker import HOST, Broker, free_port
from streaming.mirror.pcap.capture_reader import CaptureReader
from streaming.mirror.pcap.files import opened, packets
from tests.needs import path_of
from tests.processes import started
from tests.samples import sampled
from tests.streaming.mirror.captured_consumer import life
from tests.streaming.mirror.wires import Segment, pcap

pytestmark = pytest.mark.real

CLI = [sys.executable, "-m", "streaming.cli"]


def run(*arguments: object, status: int = 0, **options) -> subprocess.CompletedProcess:
    done = subprocess.run([*CLI, *map(str, arguments)], capture_output=True, timeout=120, check=False, **options)
    assert done.returncode == status, done.stderr.decode()
    return done


def findings(path) -> list[dict]:
    done = subprocess.run([*CLI, "replay", "--format", "json", str(path)], capture_output=True, timeout=120, check=False)
    return [{**json.loads(line), "evidence": None} for line in done.stdout.splitlines()]


@pytest.fixture
def capture(tmp_path):
    made: list[Segment] = []
    life(made, "healthy", client=("10.0.0.8", 1))
    life(made, "violation", violation=True, beats=40)
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap(sorted(made)))
    return path


def test_from_a_capture_to_the_topic_to_a_file_nothing_is_lost(broker, capture, tmp_path):
    recorded = tmp_path / "traffic.records"
    to_topic = ("--bootstrap-server", broker.internal, "--topic", "captured", "--create-topic", "--partitions", "3")
    done = run("mirror", "--pcap", capture, *to_topic, "--cluster", "c1")
    assert re.search(rb"([\d,]+) records written to topic captured, 0 lost", done.stderr)
    done = run("record", recorded, "--bootstrap-server", broker.internal, "--from-topic", "captured")
    assert b" records of topic captured" in done.stderr
    run("replay", recorded, status=1)
    facts = {(finding["rule"], finding["group"], finding["status"], finding["opened_at"]) for finding in findings(recorded)}
    assert facts == {(finding["rule"], finding["group"], finding["status"], finding["opened_at"]) for finding in findings(capture)}
    again = run("record", recorded, "--bootstrap-server", broker.internal, "--from-topic", "captured", status=2)
    assert b"exists already" in again.stderr
    assert len(again.stderr.splitlines()) == 1


def test_a_piped_capture_ticks_the_topic_while_nothing_comes(broker, tmp_path):
    made: list[Segment] = []
    life(made, "healthy")
    shift_us = time.time_ns() // 1000 - made[-1].at_us
    content = pcap([segment._replace(at_us=segment.at_us + shift_us) for segment in made])
    to_topic = ("--bootstrap-server", broker.internal, "--topic", "live", "--create-topic", "--partitions", "2")
    with started([*CLI, "mirror", "--pcap", "-", *to_topic], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(content)
        process.stdin.flush()
        assert b"created topic live" in process.stderr.readline()

        def ticked() -> bool:
            ticks = Counter(r.partition for r in mirrored(broker.internal, "live") if r.kind is Kind.TICK and r.at_us > end_us)
            return len(ticks) == 2 and min(ticks.values()) >= 2

        end_us = made[-1].at_us + shift_us
        wait_for(ticked, "both partitions are ticked after the last packet")
        process.send_signal(signal.SIGTERM)
        assert b"0 lost" in process.stderr.read()
        assert process.wait(WAIT_S) == 0


def test_a_cluster_that_does_not_answer(tmp_path):
    commands = (("record", "x.records"), ("mirror", "--pcap", "x.pcap"))
    options = {"stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    with ExitStack() as ends:
        for process in [
            ends.enter_context(started([*CLI, *command, "--bootstrap-server", "127.0.0.1:1"], **options)) for command in commands
        ]:
            _, said = process.communicate(timeout=WAIT_S)
            assert process.returncode == 2
            assert "does not answer at 127.0.0.1:1" in said
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_mirrored_is_said(broker, tmp_path):
    odd = tmp_path / "odd"
    odd.write_bytes(b"GIF89a")
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(pcap([]))
    to_topic = ("--bootstrap-server", broker.internal, "--topic", "odd", "--create-topic")
    for path, sentence in ((odd, "no packet capture"), (empty, "holds no packets"), (tmp_path / "none", "no such file")):
        assert sentence in run("mirror", "--pcap", path, *to_topic, status=2).stderr.decode()
    unknown = run("record", tmp_path / "r", "--bootstrap-server", broker.internal, "--from-topic", "none", status=2)
    assert "topic 'none' does not exist" in unknown.stderr.decode()


@contextmanager
def _dumpcap(path, port: int):
    """Captures what goes through a port on loopback, where that is allowed."""
    process = subprocess.Popen(
        [path_of("dumpcap"), "-q", "-B", "64", "-i", "lo", "-f", f"tcp port {port}", "-w", str(path)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("File:"):
                break
        else:
            pytest.skip("capturing on loopback is not allowed")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT_S)


@contextmanager
def _busy() -> Iterator[None]:
    """Something else in this process wants the interpreter, as in the whole suite: the tap in it comes late to what it is to read."""
    over = threading.Event()

    def spin() -> None:
        while not over.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("beside", sampled([nullcontext, _busy], [nullcontext]), ids=["idle", "busy"])
def test_a_capture_beside_the_tap_tells_what_the_tap_tells(tmp_path, beside):
    address = f"{HOST}:{free_port()}"
    path = tmp_path / "beside.pcapng"
    tapped: list = []

    class Sink:
        write = staticmethod(tapped.append)

    with Broker(advertised={"PLAINTEXT": address}) as broker:
        broker.create_topic("data", 4)
        with (
            running_tap([f"{address}={broker.address()}"], Sink(), cluster="c"),
            _dumpcap(path, int(address.partition(":")[2])),
            beside(),
        ):
            config = {"bootstrap.servers": address, "group.id": "g", "session.timeout.ms": 6_000, "log_level": 0}
            consumers = [Consumer({**config, "client.id": f"c-{number}", "heartbeat.interval.ms": 200}) for number in range(3)]
            for consumer in consumers:
                consumer.subscribe(["data"])
            wait_for(lambda: _settled(consumers), "all have partitions")
            consumers.pop().close()
            wait_for(lambda: _settled(consumers), "those who stay have them all")
            for consumer in consumers:
                consumer.close()
            wait_for(lambda: _told(_read(path)) == _told(tapped), "the capture tells what the tap tells")
    assert len(_told(tapped)) >= 3


def _settled(consumers: list[Consumer]) -> bool:
    for consumer in consumers:
        consumer.poll(0.05)
    shares = [len(consumer.assignment()) for consumer in consumers]
    return sum(shares) == 4 and all(shares)


def _read(path) -> list:
    """The records of a capture that may still be growing."""
    records: list = []
    reader = CaptureReader(records.append, cluster="c")
    with path.open("rb") as stream:
        reader.read(packets(opened(stream), lambda _: None))
    reader.finish()
    assert not reader.stats.losses
    return records


def _told(records: list) -> Counter:
    """What each connection told its group, either side in its order, but for when and under which name.

    Which of two frames came first that cross each other depends on where one stands: a capture before the tap has a second request as it
    was sent, the tap when it gets to read it, after the answer to the first perhaps.
    """
    talks: dict[str, tuple[list, list]] = {}
    for record in records:
        if record.group == "g":
            fact = (record.kind, record.exchange, record.api_key, record.api_version, record.client_software, record.frame)
            talks.setdefault(record.connection, ([], []))[record.kind is Kind.RESPONSE].append(fact)
    return Counter((tuple(asked), tuple(answered)) for asked, answered in talks.values())
