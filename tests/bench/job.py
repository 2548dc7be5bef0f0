"""Frame captured → finding readable in the topic: p50, p99 and their ratio to the same pipeline with an empty model.

    python -m tests.bench.job [--rate 2000] [--groups 200] [--seconds 30] [--no-quality]

Broker, load and job run on this machine, so the ratio says more than the figures. The load is steady heartbeats of many groups with
breaches planted among them that are certain from two frames alone (rule M-08), so that nothing waits for other frames. Latency is the
reader's clock when it has the finding, minus the capture time of the frame.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from rich.console import Console
from rich.table import Table

from coordinator_model.coordinator import Coordinator
from streaming import checkpoint
from streaming.config import MonitorConfig
from streaming.demo.broker import Broker
from streaming.empty_model import EmptyModel
from streaming.monitor import Monitor
from streaming.sinks.findings import microseconds
from streaming.sinks.topics import prepare
from tests.real.traffic import Group, breach, partition_of, produce, tick

PARTITIONS = 4
WARM_UP_S = 15
BREACH_EVERY = 50
MODELS = {"real model": Coordinator, "empty model": EmptyModel}


def load(bootstrap: str, topic: str, rate: int, groups: int, seconds: float) -> None:
    """Steady traffic at the given frames a second, stamped as it is sent; runs in a process of its own."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True})
    alive = [Group(f"group-{number}") for number in range(groups)]
    now_us = time.time_ns() // 1000
    for group in alive:
        for record in (*group.join(now_us), *group.sync(now_us)):
            produce(producer, topic, partition_of(group.name, PARTITIONS), record)
    began, exchange, ticks = time.time(), 0, 0
    while (elapsed := time.time() - began) < seconds:
        now_us = time.time_ns() // 1000
        for _ in range(int(elapsed * rate / 2) - exchange):
            records = breach(exchange, now_us) if exchange % BREACH_EVERY == 0 else alive[exchange % groups].heartbeat(now_us)
            exchange += 1
            for record in records:
                produce(producer, topic, partition_of(record.group or "", PARTITIONS), record)
        if elapsed > ticks:
            ticks += 1
            for partition in range(PARTITIONS):
                produce(producer, topic, partition, tick(now_us))
        producer.poll(0.002)
    producer.flush(30)


def measure(broker: Broker, name: str, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Run the job with one model under load; gives latencies in seconds."""
    slug = name.replace(" ", "-")
    config = MonitorConfig(
        kafka={"bootstrap_servers": broker.internal},
        topics={"mirror": slug, **{kind: f"{slug}-{kind}" for kind in ("findings", "groups", "status", "dead_letters", "quality")}},
        job={"checkpoint": folder / slug, "log_file": folder / f"{slug}.log"},
        quality={"enabled": options.quality, "docs": folder / f"{slug}-docs"},
    )
    broker.create_topic(slug, PARTITIONS)
    mirror = prepare(config)
    reader = Consumer(
        {"bootstrap.servers": broker.internal, "group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    )
    reader.assign([TopicPartition(config.topics.findings, 0, OFFSET_END)])
    reader.poll(1)
    with contextlib.ExitStack() as stack:
        stack.callback(reader.close)
        lock = stack.enter_context(checkpoint.locked(config.job.checkpoint))
        checkpoint.check(config.job.checkpoint, mirror, shuffle_partitions=config.job.shuffle_partitions)
        monitor = stack.enter_context(Monitor(config, mirror, lock=lock, published=(), tell=print, model=MODELS[name]))
        command = [sys.executable, "-m", "tests.bench.job", "--load", broker.internal, slug]
        command += ["--rate", str(options.rate), "--groups", str(options.groups), "--seconds", str(WARM_UP_S + options.seconds)]
        with subprocess.Popen(command) as loading:
            latencies = read(reader, monitor, loading)
    latencies.sort()
    share = len(latencies) // 100
    return {
        "findings": len(latencies),
        "p50": latencies[len(latencies) // 2],
        "p99": latencies[-share - 1],
        "max": latencies[-1],
        "behind": monitor.progress.behind if monitor.progress else -1,
    }


def read(reader: Consumer, monitor: Monitor, loading: subprocess.Popen[bytes]) -> list[float]:
    """Latencies of the findings that open while the load lasts, without those of the warm-up."""
    latencies: list[float] = []
    measured_from = time.time() + WARM_UP_S
    while loading.poll() is None:
        monitor.tend()
        for message in reader.consume(500, 0.05):
            now = time.time()
            finding = json.loads(message.value())
            if finding["status"] == "open" and finding["rule"] in {"M-08", "B-00"} and now > measured_from:
                latencies.append(now - microseconds(finding["opened_at"]) / 1e6)
    assert latencies, "no finding came out"
    return latencies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=2000, help="frames a second")
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30, help="measured time, for each model")
    parser.add_argument("--no-quality", dest="quality", action="store_false", help="without the Great Expectations query")
    parser.add_argument("--load", nargs=2, metavar=("BOOTSTRAP", "TOPIC"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        load(*options.load, options.rate, options.groups, options.seconds)
        return
    table = Table(title=f"capture → finding readable, {options.rate:,} frames/s, {options.groups} groups, {os.cpu_count()} cores")
    for heading in ("", "findings", "p50 s", "p99 s", "max s", "behind"):
        table.add_column(heading, justify="right")
    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        results = {name: measure(broker, name, Path(folder), options) for name in MODELS}
    for name, result in results.items():
        table.add_row(
            name, f"{result['findings']:.0f}", *(f"{result[key]:.2f}" for key in ("p50", "p99", "max")), f"{result['behind']:.0f}"
        )
    real, empty = results.values()
    table.add_row("ratio", "", *(f"{real[key] / empty[key]:.2f}" for key in ("p50", "p99", "max")), "")
    Console().print(table)


if __name__ == "__main__":
    main()
