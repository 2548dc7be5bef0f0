"""``watch`` on a running broker, by each of its inputs at once: they find the same, and so does a replay of what was kept."""

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
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer

from streaming.demo.broker import Broker, free_port
from streaming.demo.misbehaviour import Misbehaviour
from tests.processes import started
from tests.real.harness import wait_for

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="packets of an interface need root or cap_net_raw"),
    pytest.mark.timeout(600),
]

RUN = [sys.executable, "-m", "streaming.cli"]


class Watching(NamedTuple):
    """A process and what it prints."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def findings(self) -> list[dict[str, Any]]:
        return [record for record in self._records() if "rule" in record]

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self._records() if record.get("kind") == kind]

    def _records(self) -> list[dict[str, Any]]:
        whole = self.out.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def found(self) -> set[tuple[str, str, str | None]]:
        """Rule, group and culprit of each finding about a group."""
        return {(one["rule"], one["group"], one["client_id"]) for one in self.findings() if one["group"]}

    def says(self, words: str) -> bool:
        return words in self.err.read_text()


@contextmanager
def watching(folder: Path, name: str, *options: str) -> Iterator[Watching]:
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        command = [*RUN, "watch", "--state", str(folder / f"{name}.state"), *options]
        with started(command, stdout=stdout, stderr=stderr) as process:
            yield Watching(process, out, err)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, err.read_text()


@contextmanager
def consuming(servers: str, group: str, *clients: str) -> Iterator[None]:
    """Healthy members of a group."""
    consumers = [
        Consumer({"bootstrap.servers": servers, "group.id": group, "client.id": client, "session.timeout.ms": 10_000})
        for client in clients
    ]
    for consumer in consumers:
        consumer.subscribe(["orders"])
    until = time.monotonic() + 6
    while time.monotonic() < until:
        for consumer in consumers:
            consumer.poll(0.05)
    yield
    for consumer in consumers:
        consumer.close()


def replayed(folder: Path) -> set[tuple[str, str, str | None]]:
    done = subprocess.run([*RUN, "replay", "--format", "json", str(folder)], capture_output=True, text=True, check=False)
    findings = map(json.loads, done.stdout.splitlines())
    return {(one["rule"], one["group"], one["client_id"]) for one in findings if one["group"]}


def test_packets_the_tap_the_topic_and_a_replay_find_the_same_with_the_same_culprits(tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(advertised={"PLAINTEXT": f"127.0.0.1:{port}"}))
        broker.create_topic("orders", 4)
        broker.create_topic("rebalance-mirror", 2)
        kept = tmp_path / "kept"
        listen = ["--listen", f"127.0.0.1:{port}={broker.address()}", "--save", str(kept), "--mirror-to", broker.internal]
        tap = stack.enter_context(watching(tmp_path, "tap", *listen))
        packets = stack.enter_context(watching(tmp_path, "packets", "-i", "lo", "--port", str(port)))
        topic = stack.enter_context(watching(tmp_path, "topic", "--bootstrap-server", broker.internal, "--last", "5"))
        wait_for(lambda: tap.says("listening on"), "the tap listens")
        wait_for((tmp_path / "packets.state.lock").exists, "packets are read")
        time.sleep(3)
        zombie = Misbehaviour(
            manner="zombie",
            bootstrap=f"127.0.0.1:{port}",
            topic="orders",
            partitions=4,
            group="shipping",
            client_id="shipping-zombie",
            session_timeout_ms=10_000,
            heartbeat_interval_ms=500,
            rebalance_timeout_ms=10_000,
        )
        through = f"127.0.0.1:{port}"
        stack.enter_context(consuming(through, "healthy", "healthy-1", "healthy-2"))
        stack.enter_context(started(zombie.command()))
        wait_for(lambda: any(one["client_id"] == "shipping-zombie" for one in tap.events("member_served")), "the zombie has joined")
        with consuming(through, "shipping", "shipping-1"):
            wait_for(lambda: any(one["rule"] == "M-01" for one in tap.findings()), "the zombie is found")
        wait_for(lambda: tap.found() <= packets.found() & topic.found(), "all find what the tap finds")
        time.sleep(1)
    assert ("M-01", "shipping", "shipping-zombie") in tap.found()
    assert [one for one in tap.found() if one[1] == "healthy"] == []
    assert (packets.found(), topic.found(), replayed(kept)) == (tap.found(), tap.found(), tap.found())
