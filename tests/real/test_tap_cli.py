"""``rebalance-monitor tap`` as a process: it starts, says what it does, ends cleanly, and each mistake gets one sentence."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from itertools import islice

import pytest
import requests
from confluent_kafka import Consumer
from harness import WAIT_S, mirrored, wait_for

from coordinator_model.wire.record import Kind, unpack_loss
from streaming.demo.broker import HOST, Broker, free_port
from tests.processes import started

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
    with started(
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
        said = list(islice((line for line in process.stderr if " open of " not in line), 3))
        assert sorted(said) == [
            f"tap: created topic {topic} with 2 partitions, kept for 72 h\n",
            f"tap: listening on {_advertised(tapped_broker)} for broker {tapped_broker.address()}\n",
            f"tap: mirroring to topic {topic}, 2 partitions\n",
        ]
        assert said[2] == f"tap: mirroring to topic {topic}, 2 partitions\n"
        consumer = Consumer({"bootstrap.servers": _advertised(tapped_broker), "group.id": topic, "log_level": 0})
        consumer.subscribe(["data"])
        wait_for(lambda: consumer.poll(0.1) or consumer.assignment(), "the group forms")
        status = next(line for line in process.stderr if " open of " in line and " 0 frames" not in line)
        assert re.fullmatch(
            r"tap: \d+ connections? open of \d+, \d+ frames captured, \d+ records written, 0 lost(, \d+ buffered)?\n", status
        )
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(WAIT_S) == 0
        consumer.close()
    assert re.search(r"tap: stopped; (\d+) records written, 0 lost\n$", rest)
    records = mirrored(tapped_broker.internal, topic)
    assert len(records) == int(re.search(r"stopped; (\d+) records written", rest)[1])
    connections = {record.connection for record in records if record.group == topic}
    assert connections
    assert connections <= {record.connection for record in records if record.kind is Kind.CLOSE}, "closed by the stop, and said so"
    assert {record.cluster for record in records} == {"c1"}


def test_a_mirror_that_is_away_at_the_start_is_said_and_waited_for():
    address = f"{HOST}:{free_port()}"
    arguments = ["--listen", f"{HOST}:0=localhost:9092", "--bootstrap-server", address, "--status-every", "0"]
    with started([*TAP, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said, listening = sorted(process.stderr.readline() for _ in range(2))
        assert listening.startswith(f"tap: listening on {HOST}:")
        assert said.startswith(f"tap: clients pass, but nothing is mirrored: the mirror's cluster does not answer at {address}")
        process.send_signal(signal.SIGTERM)
        assert process.stderr.read() == "tap: stopped; 0 records written, 0 lost\n"
        assert process.wait(WAIT_S) == 0


class TestWorkers:
    """Processes that share the listener."""

    @staticmethod
    def command(broker: Broker, folder, mirror: str, topic: str) -> list[str]:
        return [
            *TAP,
            *("--listen", f"{_advertised(broker)}={broker.address()}", "--bootstrap-server", mirror, "--topic", topic),
            *("--create-topic", "--partitions", "2", "--workers", "2", "--loss-file", str(folder / "loss")),
            *("--status-every", "0.2", "--metrics", f"{HOST}:{free_port()}"),
        ]

    @staticmethod
    def groups(broker: Broker, number: int) -> list[Consumer]:
        found = []
        for one in range(number):
            found.append(Consumer({"bootstrap.servers": _advertised(broker), "group.id": f"shared-{one}", "log_level": 0}))
            found[-1].subscribe(["data"])
        for consumer in found:
            wait_for(lambda consumer=consumer: consumer.poll(0.1) or consumer.assignment(), "the group forms")
        return found

    def test_they_mirror_the_same_records_and_end_together(self, tapped_broker, tmp_path):
        command = self.command(tapped_broker, tmp_path, tapped_broker.internal, "shared")
        with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
            assert process.stderr is not None
            mirroring = set()
            while len(mirroring) < 2:
                line = process.stderr.readline()
                mirroring |= set(re.findall(r"tap: worker (\d): mirroring to topic shared", line))
            for consumer in self.groups(tapped_broker, 8):
                consumer.close()
            process.send_signal(signal.SIGTERM)
            said = process.stderr.read()
            assert process.wait(WAIT_S) == 0, said
        written = re.findall(r"tap: worker \d: stopped; (\d+) records? written, 0 lost", said)
        records = mirrored(tapped_broker.internal, "shared")
        assert len(written) == 2
        assert len(records) == sum(map(int, written))
        assert {record.group for record in records} >= {f"shared-{one}" for one in range(8)}
        frames = [record for record in records if record.kind in {Kind.REQUEST, Kind.RESPONSE}]
        names = {record.connection.partition("-")[0] for record in frames}
        assert names == {record.connection for record in records if record.kind is Kind.TICK}
        assert len(names) == 2, "both have taken connections"
        by_exchange = {kind: {(one.connection, one.exchange) for one in frames if one.kind is kind} for kind in Kind}
        assert by_exchange[Kind.RESPONSE] <= by_exchange[Kind.REQUEST]

    def test_what_they_lose_is_in_one_file(self, tapped_broker, tmp_path):
        command = self.command(tapped_broker, tmp_path, f"{HOST}:{free_port()}", "away")
        with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
            assert process.stderr is not None
            listening = 0
            while listening < 2:
                listening += "listening on" in process.stderr.readline()
            consumers = self.groups(tapped_broker, 8)
            process.send_signal(signal.SIGTERM)
            said = process.stderr.read()
            assert process.wait(WAIT_S) == 2, said
            for consumer in consumers:
                consumer.close()
        lost = [int(count) for count in re.findall(r"(\d+) records? could not be delivered", said)]
        assert len(lost) == 2
        assert json.loads((tmp_path / "loss").read_text())["records"] == sum(lost)
        assert [file.name for file in tmp_path.glob("loss*")] == ["loss"]

    def test_a_port_in_use_is_not_shared(self, tapped_broker):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            taken.bind((HOST, 0))
            taken.listen()
            where = f"{HOST}:{taken.getsockname()[1]}"
            said = _fails("--listen", f"{where}={tapped_broker.address()}", "--bootstrap-server", f"{HOST}:9", "--workers", "2")
        assert said.startswith(f"error: cannot listen on {where}: address already in use")

    @pytest.mark.parametrize(
        ("more", "why"),
        [
            (["--listen", f"{HOST}:0={HOST}:9"], "--workers needs a port other than 0"),
            (
                ["--listen", f"{HOST}:9092={HOST}:9", "--rewrite", "--ports", "9100-9199"],
                "--workers cannot be more than 1 with --rewrite",
            ),
        ],
    )
    def test_what_cannot_be_shared(self, more, why):
        assert _fails(*more, "--bootstrap-server", f"{HOST}:9", "--workers", "2").startswith(f"error: {why}")


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

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--listen", "9092"], "error: '9092' is not a listener: write HOST:PORT=BROKER_HOST:PORT"),
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


class TestMistakesAboutTheMirror:
    """The clients pass, and what is wrong is said."""

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["no-such-file"], "--producer-config no-such-file: No such file or directory"),
            (["broken"], "--producer-config broken, line 2: not a property, write key=value"),
            (
                ["no.such.property=1"],
                'the mirror\'s configuration is not accepted: No such configuration property: "no.such.property"',
            ),
        ],
    )
    def test_properties_that_cannot_be_used(self, tmp_path, words, expected):
        (tmp_path / "broken").write_text("a=b\nnonsense\n")
        assert expected in _said_of_the_mirror(tmp_path, f"{HOST}:9", *(["--producer-config", *words]))

    def test_a_missing_topic(self, tapped_broker, tmp_path):
        said = _said_of_the_mirror(tmp_path, tapped_broker.internal, "--topic", "nowhere")
        assert f"topic 'nowhere' does not exist on {tapped_broker.internal}" in said
        assert "--create-topic" in said


def _said_of_the_mirror(folder, bootstrap: str, *arguments: str) -> str:
    command = [*TAP, "--listen", f"{HOST}:0=localhost:9092", "--bootstrap-server", bootstrap, "--status-every", "0", *arguments]
    with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stderr is not None
        said, listening = sorted(process.stderr.readline() for _ in range(2))
        assert listening.startswith(f"tap: listening on {HOST}:")
        assert said.startswith("tap: clients pass, but nothing is mirrored: ")
        process.send_signal(signal.SIGTERM)
        assert process.stderr.read() == "tap: stopped; 0 records written, 0 lost\n"
        assert process.wait(WAIT_S) == 0
    return said


def measured(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line.startswith("rebalance_tap_")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_its_metrics_say_what_passes_what_waits_and_what_is_lost(tapped_broker, tmp_path):
    command = [
        *TAP,
        *("--listen", f"{HOST}:0={tapped_broker.address()}", "--bootstrap-server", tapped_broker.internal),
        *("--topic", "measured", "--create-topic", "--metrics", f"{HOST}:0", "--status-every", "0"),
    ]
    with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        url = next(line for line in process.stderr if "metrics at" in line).split()[-1]

        def mirrored() -> dict[str, float] | None:
            now = measured(url)
            return now if now["rebalance_tap_mirror_up"] and not now["rebalance_tap_buffered_records"] else None

        found = wait_for(mirrored, "ticks are mirrored, and none waits")
        assert found["rebalance_tap_written_records_total"] >= 4, "a tick in each partition"
        assert found[f'rebalance_tap_unreachable_total{{broker="{tapped_broker.address()}"}}'] == 0
        assert [requests.get(url.replace("metrics", probe), timeout=10).status_code for probe in ("healthz", "readyz")] == [
            200,
            200,
        ]
        silent = ("open_connections", "connections_total", "frames_total", "lost_records_total", "unreadable_connections_total")
        assert [found[f"rebalance_tap_{name}"] for name in silent] == [0] * 5
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(WAIT_S) == 0


def test_what_it_captures_while_the_mirror_is_away_is_measured_kept_count_of_and_told_by_the_next(tapped_broker, tmp_path):
    """Connections, frames, buffered and lost records; the loss file goes from one process to the next."""
    away, losses = f"{HOST}:{free_port()}", tmp_path / "tap.loss"
    listen = (
        "--listen",
        f"{_advertised(tapped_broker)}={tapped_broker.address()}",
        "--status-every",
        "0",
        "--loss-file",
        str(losses),
    )
    command = [*TAP, *listen, "--bootstrap-server", away, "--topic", "kept", "--metrics", f"{HOST}:0"]
    with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        lines = list(islice(process.stderr, 3))
        url = next(line for line in lines if "metrics at" in line).split()[-1]
        consumer = Consumer({"bootstrap.servers": _advertised(tapped_broker), "group.id": "kept", "log_level": 0})
        consumer.subscribe(["data"])
        wait_for(lambda: consumer.poll(0.1) or consumer.assignment(), "the group forms")
        found = wait_for(
            lambda: (now := measured(url))["rebalance_tap_frames_total"] >= 2 and now["rebalance_tap_buffered_records"] and now,
            "frames are captured and wait",
        )
        assert found["rebalance_tap_open_connections"] >= 1
        assert found["rebalance_tap_connections_total"] >= found["rebalance_tap_open_connections"]
        assert (found["rebalance_tap_mirror_up"], found["rebalance_tap_written_records_total"]) == (0, 0)
        ready = requests.get(url.replace("metrics", "readyz"), timeout=10)
        assert (ready.status_code, ready.text) == (200, "ok\n"), "clients are not to lose their brokers for the mirror"
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        assert process.wait(WAIT_S) == 2, said
        consumer.close()
    lost = int(re.search(r"error: (\d+) records? could not be delivered to topic kept within", said)[1])
    assert lost > 0, said
    command = [
        *TAP,
        *listen,
        "--bootstrap-server",
        tapped_broker.internal,
        "--topic",
        "kept",
        "--create-topic",
        "--partitions",
        "1",
    ]
    with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        told = next(line for line in process.stderr if "were lost" in line)
        assert told == f"tap: {lost:,} records were lost when the capture before this one ended; every partition is told\n"
        wait_for(lambda: not losses.exists(), "the gap is written")
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(WAIT_S) == 0
    first = mirrored(tapped_broker.internal, "kept")[0]
    assert (first.kind, unpack_loss(first.frame).records) == (Kind.GAP, lost)
