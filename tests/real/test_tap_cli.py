"""``rebalance-monitor tap`` as a process: it starts, says what it does, ends cleanly, and each mistake gets one sentence."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys

import pytest
from confluent_kafka import Consumer
from harness import WAIT_S, mirrored, wait_for

from coordinator_model.wire.record import Kind
from streaming.demo.broker import HOST, Broker, free_port

pytestmark = pytest.mark.real

TAP = [sys.executable, "-m", "streaming.cli", "tap"]


@pytest.fixture(scope="module")
def tapped_broker():
    with Broker(advertised={"PLAINTEXT": f"{HOST}:{free_port()}"}) as running:
        running.create_topic("data")
        yield running


def _advertised(broker: Broker) -> str:
    return broker._advertised["PLAINTEXT"]


def _fails(*arguments: str) -> str:
    done = subprocess.run([*TAP, *arguments], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_mirrors_until_it_is_told_to_stop(tapped_broker, tmp_path, number):
    topic = f"frames-{number.name}"
    config = tmp_path / "producer.properties"
    config.write_text("# how the mirror is written\ncompression.type = lz4\n\nlinger.ms=1\n")
    with subprocess.Popen(
        [
            *TAP,
            *("--listen", f"{_advertised(tapped_broker)}={tapped_broker.address()}"),
            *("--bootstrap-server", tapped_broker.internal, "--topic", topic, "--create-topic", "--partitions", "2"),
            *("--cluster", "c1", "--producer-config", str(config), "--status-every", "0.2"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(3)]
        assert said == [
            f"tap: created topic {topic} with 2 partitions\n",
            f"tap: listening on {_advertised(tapped_broker)} for broker {tapped_broker.address()}\n",
            f"tap: mirroring to topic {topic}, 2 partitions\n",
        ]
        consumer = Consumer({"bootstrap.servers": _advertised(tapped_broker), "group.id": topic, "log_level": 0})
        consumer.subscribe(["data"])
        wait_for(lambda: consumer.poll(0.1) or consumer.assignment(), "the group forms")
        status = next(line for line in process.stderr if "open" in line and " 0 frames" not in line)
        assert re.fullmatch(r"tap: \d+ connections open of \d+, \d+ frames mirrored, 0 lost(, \d+ buffered)?\n", status)
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(WAIT_S) == 0
        consumer.close()
    assert re.search(r"tap: stopped; (\d+) records written, 0 lost\n$", rest)
    records = mirrored(tapped_broker.internal, topic)
    assert len(records) == int(re.search(r"(\d+) records written", rest)[1])
    connections = {record.connection for record in records if record.group == topic}
    assert connections == {record.connection for record in records if record.kind is Kind.CLOSE}, "closed by the stop, and said so"
    assert {record.cluster for record in records} == {"c1"}


def test_a_mirror_that_is_away_at_the_start_is_said_and_waited_for():
    address = f"{HOST}:{free_port()}"
    arguments = ["--listen", f"{HOST}:0=localhost:9092", "--bootstrap-server", address]
    with subprocess.Popen([*TAP, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert f"clients pass, but nobody watches: the mirror's cluster does not answer at {address}" in process.stderr.readline()
        assert process.stderr.readline().startswith(f"tap: listening on {HOST}:")
        process.send_signal(signal.SIGTERM)
        assert process.stderr.read() == "tap: stopped; 0 records written, 0 lost\n"
        assert process.wait(WAIT_S) == 0


class TestMistakes:
    def test_a_port_in_use(self, tapped_broker):
        tapped_broker.create_topic("used")
        with socket.create_server((HOST, 0)) as taken:
            port = taken.getsockname()[1]
            said = _fails(
                *("--listen", f"{HOST}:{port}={tapped_broker.address()}", "--bootstrap-server", tapped_broker.internal),
                *("--topic", "used"),
            )
        assert said.startswith(f"error: cannot listen on {HOST}:{port}: address already in use")

    def test_a_broker_that_cannot_be_resolved(self, tapped_broker):
        tapped_broker.create_topic("there")
        said = _fails("--listen", f"{HOST}:0=broker.invalid:9092", "--bootstrap-server", tapped_broker.internal, "--topic", "there")
        assert said.startswith("error: cannot resolve broker broker.invalid:9092")

    def test_a_missing_topic(self, tapped_broker):
        said = _fails("--listen", f"{HOST}:0=localhost:9092", "--bootstrap-server", tapped_broker.internal, "--topic", "nowhere")
        assert said.startswith(f"error: topic 'nowhere' does not exist on {tapped_broker.internal}")
        assert "--create-topic --partitions" in said

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--listen", "9092"], "error: '9092' is not a listener: write HOST:PORT=BROKER_HOST:PORT"),
            (["--producer-config", "no-such-file"], "error: --producer-config no-such-file: No such file or directory"),
            (
                ["--producer-config", "no.such.property=1"],
                'error: the mirror\'s configuration is not accepted: No such configuration property: "no.such.property"',
            ),
            (
                ["--producer-config", "sasl.password=hunter2"],
                "error: --producer-config sasl.password=…: every user of this machine can see",
            ),
        ],
    )
    def test_arguments_that_make_no_sense(self, words, said):
        given = {"--listen": f"{HOST}:0=localhost:9092", "--bootstrap-server": f"{HOST}:9"}
        given |= dict([words])
        assert _fails(*(word for pair in given.items() for word in pair)).startswith(said)

    def test_a_line_of_a_properties_file_that_is_none(self, tmp_path):
        file = tmp_path / "p"
        file.write_text("a=b\nnonsense\n")
        said = _fails("--listen", f"{HOST}:0=localhost:9092", "--bootstrap-server", f"{HOST}:9", "--producer-config", str(file))
        assert said == f"error: --producer-config {file}, line 2: not a property, write key=value\n"
