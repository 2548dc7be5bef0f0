"""``watch`` on a running broker, by each of its inputs at once, beside the Spark job: they find the same, and so does a replay of what was kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from coordinator_model.settings import Settings
from streaming.demo.broker import Broker, free_port
from streaming.demo.misbehaviour import Manner, Misbehaviour
from tests.processes import started
from tests.real.harness import wait_for
from tests.real.lab.client import Client, Kind
from tests.real.monitor_process import START_UP_S, MonitorProcess
from tests.real.watching import RUN, Found, Watching, found_in, watching

pytestmark = [
    pytest.mark.real,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="packets of an interface need root or cap_net_raw"),
    pytest.mark.timeout(2 * START_UP_S),
]

TOPIC, PARTITIONS = "orders", 4
SESSION_MS = 6_000
KINDS: tuple[Kind, ...] = ("confluent-kafka", "kafka-python", "aiokafka", "java")


def client(bootstrap: str, kind: Kind, group: str, name: str) -> list[str]:
    options = Client(
        kind=kind,
        bootstrap=bootstrap,
        group=group,
        client_id=name,
        topics=(TOPIC,),
        other_topics=(TOPIC,),
        session_timeout_ms=SESSION_MS,
    )
    return options.command()


def misbehaving(bootstrap: str, manner: Manner, group: str) -> list[str]:
    options = Misbehaviour(
        manner=manner,
        bootstrap=bootstrap,
        topic=TOPIC,
        partitions=PARTITIONS,
        group=group,
        client_id=f"{group}-{manner}",
        session_timeout_ms=30_000 if manner == "zombie" else SESSION_MS,
        heartbeat_interval_ms=500,
        rebalance_timeout_ms=10_000,
    )
    return options.command()


@contextmanager
def leaving(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A member that leaves its group at the end."""
    with started(command, stdout=subprocess.DEVNULL) as process:
        yield process
        process.terminate()
        process.wait(60)


@contextmanager
def capturing(interface: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    with started([sys.executable, "-m", "tests.real.capturer", interface, f"{port}"], stdout=subprocess.PIPE) as process:
        yield process


def replayed(folder: Path) -> set[Found]:
    done = subprocess.run([*RUN, "replay", "--format", "json", str(folder)], capture_output=True, text=True, check=False)
    return found_in(list(map(json.loads, done.stdout.splitlines())))


def found_by_job(job: MonitorProcess) -> set[Found]:
    return found_in(list(job.topic("findings").values()))


def make_trouble(stack: ExitStack, through: str, tap: Watching) -> set[Found]:
    """Ten consumers, of which one stops, and members that break the protocol in the demo's ways; returns what has to be found."""

    def joined(name: str) -> bool:
        return any(one["client_id"] == name for one in tap.events("member_served"))

    consumers = {}
    for kind in KINDS:
        for group in ("healthy", "payments"):
            name = f"{group}-{kind}"
            consumers[name] = stack.enter_context(leaving(client(through, kind, group, name)))
    manners: tuple[Manner, ...] = ("zombie", "never-rejoins")
    for group, manner in zip(("shipping", "refunds"), manners, strict=True):
        stack.enter_context(leaving(misbehaving(through, manner, group)))
        wait_for(lambda name=f"{group}-{manner}": joined(name), f"{manner} has joined")
        stack.enter_context(leaving(client(through, "confluent-kafka", group, f"{group}-2")))
    wait_for(lambda: all(joined(name) for name in consumers), "all consumers are served")
    expected: set[Found] = {("M-01", "shipping", "shipping-zombie"), ("R-08", "refunds", "refunds-never-rejoins")}
    wait_for(lambda: expected <= tap.found(), "the troubles are found")
    stopped = consumers["payments-confluent-kafka"]
    stopped.send_signal(signal.SIGSTOP)
    expected |= {("T-04", "payments", "payments-confluent-kafka")}
    wait_for(lambda: expected <= tap.found(), "the stopped consumer is found")
    stopped.send_signal(signal.SIGCONT)
    return expected


def test_packets_a_pipe_the_tap_the_topic_and_the_job_find_the_same_with_the_same_culprits(tmp_path: Path) -> None:
    port = free_port()
    through = f"127.0.0.1:{port}"
    kept = tmp_path / "kept"
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(advertised={"PLAINTEXT": through}))
        broker.create_topic(TOPIC, PARTITIONS)
        broker.create_topic("rebalance-mirror", 2)
        listen = ["--listen", f"{through}={broker.address()}", "--save", str(kept), "--mirror-to", broker.internal]
        tap = stack.enter_context(watching(tmp_path, "tap", *listen))
        packets = stack.enter_context(watching(tmp_path, "packets", "-i", "lo", "--port", str(port)))
        capturer = stack.enter_context(capturing("lo", port))
        pipe = stack.enter_context(watching(tmp_path, "pipe", "-", stdin=capturer.stdout))
        topic = stack.enter_context(watching(tmp_path, "topic", "--bootstrap-server", broker.internal, "--last", "5"))
        model = {"silence_ms": Settings().silence_ms, "reorder_window_ms": Settings().reorder_window_ms}
        job = MonitorProcess(
            tmp_path, broker.internal, "job", mirror="rebalance-mirror", quality={"enabled": False}, model=model
        ).start()
        stack.callback(job.kill)
        wait_for(lambda: tap.says("listening on"), "the tap listens")
        wait_for(job.positions, "the job reads", START_UP_S)
        with ExitStack() as consumers:
            expected = make_trouble(consumers, through, tap)
            others = {"packets": packets, "pipe": pipe, "topic": topic}
            time.sleep(5)
        wait_for(lambda: all(tap.found() <= one.found() for one in others.values()), "all find what the tap finds")
        wait_for(lambda: tap.found() <= found_by_job(job), f"the job finds what the tap finds: {sorted(map(str, tap.found()))}")
        by_job = found_by_job(job)
        assert job.stop() == 0
    assert expected <= tap.found()
    healthy = [one["summary"] for one in tap.findings() if one["group"] == "healthy" and one["severity"] != "info"]
    assert healthy == []
    assert {name: one.found() for name, one in others.items()} | {"job": by_job, "replay": replayed(kept)} == dict.fromkeys(
        [*others, "job", "replay"], tap.found()
    )
