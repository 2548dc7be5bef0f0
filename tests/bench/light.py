"""What the monitor costs where little happens: a process of its own with the default settings, quality checks included. Part of ``make bench``.

How long it takes from the start to the first batch, then cores, memory and latency with ticks alone and with 1,000 frames a second. Of memory
that processes share each is counted its part (PSS), so that the sum is what all of it takes.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, Final

from confluent_kafka import OFFSET_END, Consumer, TopicPartition
from rich.table import Table

from streaming.config.settings import Job
from streaming.demo.broker import Broker
from streaming.published.finding_json import microseconds
from tests.bench.generator import Generator
from tests.bench.usage import Usage
from tests.real.harness import raw_topic, wait_for
from tests.real.monitor_process import START_UP_S, MonitorProcess

TOPIC: Final = "light"
OURS: Final = ("JVM", "worker", "driver", "checks")
RATES: Final = (0, 1000)
SETTLES_S: Final = 240.0  #: the JVM compiles most of what it runs


def light(broker: Broker, folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure it on a broker that runs; gives a result for each rate."""
    broker.create_topic(TOPIC, options.partitions)
    few = argparse.Namespace(**{**vars(options), "groups": options.light})
    defaults = Job()
    job = {name: getattr(defaults, name) for name in ("jvm_options", "wait_for_records", "wait_ms", "trigger_ms", "lanes")}
    job |= dict(each.split("=", 1) for each in options.job)
    generator = Generator(broker.internal, TOPIC, few)
    monitor = MonitorProcess(folder, broker.internal, "light-monitor", mirror=TOPIC, job=job, quality={"trigger_s": 10})
    try:
        _command(generator, do="form")
        began = time.monotonic()
        monitor.start()
        wait_for(lambda: sum(monitor.positions().values()), "the first batch", START_UP_S)
        start_s = time.monotonic() - began
        monitor.wait_until_said("watching")
        _command(generator, do="steady", rate=RATES[-1], seconds=SETTLES_S)
        results = [_measured(monitor, generator, rate, options.seconds) | {"start_s": round(start_s, 1)} for rate in RATES]
        assert monitor.stop() == 0, "".join(monitor.said)
        return results
    finally:
        monitor.kill()
        generator.close()


def _command(generator: Generator, **command: object) -> None:
    generator.tell(**command)
    wait_for(lambda: generator.answer() is not None, f"the load has done {command}", START_UP_S)


def _measured(monitor: MonitorProcess, generator: Generator, rate: int, seconds: float) -> dict[str, Any]:
    command = {"do": "steady", "rate": rate} if rate else {"do": "rest"}
    reader = Consumer(
        {"bootstrap.servers": monitor.bootstrap, "group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    )
    assert monitor.process is not None
    _command(generator, **command, seconds=10)  # what the change of the rate costs is not of this rate
    reader.assign([TopicPartition(f"{monitor.name}-findings", 0, OFFSET_END)])
    reader.poll(1)
    latencies: list[float] = []
    before = Usage.now(monitor.process.pid)
    generator.tell(**command, seconds=seconds)
    while generator.answer() is None:
        for message in reader.consume(500, 0.02):
            now, finding = time.time(), json.loads(message.value())
            if finding["status"] == "open" and finding["rule"] == "M-08":
                latencies.append(now - microseconds(finding["opened_at"]) / 1e6)
    after = Usage.now(monitor.process.pid)
    reader.close()
    cores, told = after.cpu_since(before), sorted(latencies)
    snapshots = [message for message in raw_topic(monitor.bootstrap, f"{monitor.name}-status") if message.value()]
    state = {message.key(): json.loads(message.value()).get("snapshot_bytes", 0) for message in snapshots}
    return {
        "rate": rate,
        "p50_s": round(told[len(told) // 2], 2) if told else None,
        "p99_s": round(told[int(len(told) * 0.99)], 2) if told else None,
        "cores": {role: round(cores[role], 3) for role in (*OURS, "others")},
        "together": round(sum(cores[role] for role in OURS), 3),
        "memory_mib": {role: round(after.by_role[role].pss_mib) for role in OURS},
        "memory_together_mib": round(sum(after.by_role[role].pss_mib for role in OURS)),
        "state_mib": round(sum(state.values()) / 2**20, 2),
    }


def shown(results: list[dict[str, Any]], groups: int) -> Table:
    """What an operator reads."""
    title = f"{groups} groups, default settings; started, first batch included, in {results[0]['start_s']:.1f} s"
    table = Table(title=title, box=None, title_justify="left")
    for heading in (
        "frames/s",
        "p50 s",
        "p99 s",
        *(f"{role} cores" for role in OURS),
        "together",
        "others",
        *(f"{role} MiB" for role in OURS),
    ):
        table.add_column(heading, justify="right")
    table.add_column("together MiB", justify="right")
    for result in results:
        cells = [f"{result['rate']:,}", *(str(result[key] if result[key] is not None else "") for key in ("p50_s", "p99_s"))]
        cells += [f"{result['cores'][role]:.2f}" for role in OURS]
        cells += [f"{result['together']:.2f}", f"{result['cores']['others']:.2f}"]
        cells += [str(result["memory_mib"][role]) for role in OURS]
        table.add_row(*cells, str(result["memory_together_mib"]))
    return table
