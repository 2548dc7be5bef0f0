"""The job under load: latency from capture to readable finding, highest rate, catching up, memory and checkpoint. ``make bench``.

    python -m tests.bench.job [--rates 0,1000,5000,20000] [--groups 10000] [--modes real,empty,rows] [--seconds 20] [--quality]
                              [--sizes 1x10000,4x10000,16x10000,64x10000,4x1000,4x100000]

Broker, load, job and reader run on this machine. Each mode is the same pipeline: the real model; an empty one that only reports marked
frames, which is the engine's own limit; one state row per group, the natural alternative to one per partition; and, if asked for, the
same model in a ``StatefulProcessor``. The load is steady
heartbeats with breaches among them that are certain from two frames alone (rule M-08), so that nothing waits for other frames. Latency
is the reader's clock when it has the finding, minus the capture time of the frame. Then the real model at one rate over several sizes, so
that what grows with partitions and with groups stands side by side.

The traps. On a shared machine seconds do not travel: so every step also tells how many cores each process took, how many went to
others, and how long a turn of a bare loop takes, and ``--results`` keeps it all as JSON lines. And a JVM takes a minute of load to compile
what it runs: so each mode is warmed up.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_END, Consumer, TopicPartition
from rich.console import Console
from rich.table import Table

from coordinator_model.coordinator import Coordinator
from streaming.config.settings import MonitorConfig
from streaming.demo.broker import Broker
from streaming.kafka.topics import prepare
from streaming.published.finding_json import microseconds
from streaming.spark import checkpoint
from streaming.spark.monitor import Monitor
from tests.bench.empty_model import EmptyModel
from tests.bench.generator import Generator
from tests.bench.light import light, shown
from tests.bench.row_per_group import RowPerGroup
from tests.bench.usage import ROLES, Usage, loop_ns
from tests.real.harness import raw_topic

SETTLE_S = 10.0  # at each rate, before anything is measured
FAR_BEHIND_S = 10.0  # a mode with more than that unread at the end of a step is asked for no more
UNREACHED_RATE = 100_000  # frames a second
STUCK_S = 300.0
MEASURED = ("JVM", "worker", "driver", "checks")
MODES = ("real", "empty", "rows", "processor")
SIZES = "1x10000,4x10000,16x10000,64x10000,4x1000,4x100000"
SIZES_RATE = 5_000  # frames a second at each size


class Size(NamedTuple):
    partitions: int
    groups: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """From ``PARTITIONSxGROUPS``."""
        partitions, groups = text.split("x")
        return cls(int(partitions), int(groups))


class Seen(NamedTuple):
    at_s: float
    latency_s: float


class Bench:
    """One mode: a monitor under load, and a reader of its findings."""

    def __init__(self, mode: str, config: MonitorConfig, monitor: Monitor, generator: Generator, reader: Consumer) -> None:
        self.mode = mode
        self.config = config
        self.monitor = monitor
        self.generator = generator
        self.reader = reader
        self.seen: list[Seen] = []
        self.batch_times_ms: dict[int, int] = {}
        self.sent = 0

    @property
    def read(self) -> int:
        progress = self.monitor.progress
        return sum(progress.read.values()) if progress else 0

    @property
    def batches(self) -> int:
        """How many there were, of all lanes together."""
        return self.monitor.progress.batches if self.monitor.progress else 0

    def state_bytes(self) -> int:
        """All snapshots together, as the status topic has them."""
        newest = {
            message.key(): json.loads(message.value()).get("snapshot_bytes", 0)
            for message in raw_topic(self.config.kafka.bootstrap_servers, self.config.topics.status)
            if message.value()
        }
        return sum(newest.values())

    def turn(self) -> None:
        """Look after the monitor, and take what findings there are."""
        self.monitor.tend()
        if self.monitor.progress:
            self.batch_times_ms[self.batches] = self.monitor.progress.batch_ms
        for message in self.reader.consume(500, 0.02):
            now = time.time()
            finding = json.loads(message.value())
            if finding["status"] == "open" and finding["rule"] in {"M-08", "B-00"}:
                self.seen.append(Seen(now, now - microseconds(finding["opened_at"]) / 1e6))
            elif finding["status"] == "open" and finding["rule"].startswith("V-"):
                say(f"the load is not what it should be: {finding['summary']}")

    def command(self, meanwhile: Callable[[], None] = lambda: None, **command: object) -> dict[str, float]:
        """Let the load do something, and the job go on meanwhile."""
        self.generator.tell(**command)
        while (answer := self.generator.answer()) is None:
            self.generator.tell(read=self.read)
            self.turn()
            meanwhile()
        self.sent = int(answer["sent"])
        return answer

    def drain(self) -> None:
        """Until everything that was sent is read; ticks are not counted as sent."""
        deadline, progressed = time.monotonic() + STUCK_S, self.read
        while self.read < self.sent:
            self.turn()
            if self.read > progressed:
                deadline, progressed = time.monotonic() + STUCK_S, self.read
            if time.monotonic() > deadline:
                raise SystemExit(f"the job stopped reading at {self.read} of {self.sent} frames")
        self.generator.tell(read=self.read)

    def step(self, name: str, **command: object) -> dict[str, Any]:
        """One measured step; gives what is known of it."""
        self.seen.clear()
        self.batch_times_ms.clear()
        turn_ns = loop_ns()
        before, read, batches = Usage.now(), self.read, self.batches
        answer = self.command(**command)
        if command["do"] == "backlog":
            self.drain()
        after = Usage.now()
        passed, got = after.at_s - before.at_s, self.read - read
        cores = before and after.cpu_since(before)
        follows = command["do"] == "follow"  # the capture's clock is not ours then
        latencies = [] if follows else sorted(seen.latency_s for seen in self.seen)
        times = sorted(self.batch_times_ms.values())
        return {
            "mode": self.mode,
            "step": name,
            "seconds": round(passed, 1),
            "frames_per_s": round(got / passed),
            "findings": len(self.seen),
            "p50_s": _quantile(latencies, 0.50),
            "p99_s": _quantile(latencies, 0.99),
            "max_s": _quantile(latencies, 1.0),
            "batch_ms": _quantile(times, 0.5),
            "behind": self.sent - self.read,
            "cores": {role: round(share, 2) for role, share in cores.items()},
            "us_per_frame": round(1e6 * passed * (cores["JVM"] + cores["worker"]) / got, 1) if got >= 1000 else None,
            "load_cpu_s": round(answer["cpu_s"], 2),
            "memory_mib": {role: round(after.by_role[role].rss_mib) for role in MEASURED},
            "checkpoint_mib": round(checkpoint_mib(self.config.job.checkpoint)[0], 1),
            "state_mib": round(self.state_bytes() / 2**20, 2),
            "batches": self.batches - batches,
            "written_mib_s": round((after.by_role["JVM"].written_mib - before.by_role["JVM"].written_mib) / passed, 2),
            "loop_ns": round(turn_ns),
        }


def _quantile(ordered: list[Any], share: float) -> Any:
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3) if ordered else None


def checkpoint_mib(folder: Path) -> tuple[float, int]:
    """Size of a folder, and its number of files."""
    total = files = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):  # Spark cleans up meanwhile
            total += file.stat().st_size
            files += 1
    return total / 2**20, files


def monitor_and_model(mode: str) -> tuple[type[Monitor], type[Any]]:
    """What runs in a mode."""
    if mode == "processor":
        from tests.bench.stateful_processor import WithProcessor  # Spark 3.5 has none

        return WithProcessor, Coordinator
    return {"real": (Monitor, Coordinator), "empty": (Monitor, EmptyModel), "rows": (RowPerGroup, Coordinator)}[mode]


@contextlib.contextmanager
def running(mode: str, name: str, broker: Broker, folder: Path, options: argparse.Namespace) -> Iterator[Bench]:
    """A monitor of this mode that has read the forming of all groups.

    :param name: of its topics and files.
    """
    prefix = f"bench-{name}"
    config = MonitorConfig(
        kafka={"bootstrap_servers": broker.internal},
        topics={
            "mirror": prefix,
            **{kind: f"{prefix}-{kind}" for kind in ("findings", "groups", "events", "status", "dead_letters", "quality")},
        },
        job={"checkpoint": folder / name, "log_file": folder / f"{name}.log", **dict(each.split("=", 1) for each in options.job)},
        quality={"enabled": options.quality, "docs": folder / f"{name}-docs"},
    )
    broker.create_topic(prefix, options.partitions)
    mirror = prepare(config)
    reader = Consumer(
        {"bootstrap.servers": broker.internal, "group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    )
    reader.assign([TopicPartition(config.topics.findings, 0, OFFSET_END)])
    reader.poll(1)
    monitor_class, model = monitor_and_model(mode)
    with contextlib.ExitStack() as stack:
        stack.callback(reader.close)
        lock = stack.enter_context(checkpoint.locked(config.job.checkpoint))
        checkpoint.check(config.job.checkpoint, mirror, lanes=config.job.lanes)
        monitor = stack.enter_context(monitor_class(config, mirror, lock=lock, published=(), tell=say, model=model))
        generator = Generator(broker.internal, prefix, options)
        stack.callback(generator.close)
        bench = Bench(mode, config, monitor, generator, reader)
        bench.command(do="form")
        bench.drain()
        yield bench


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def measure(bench: Bench, options: argparse.Namespace, tell: Callable[[dict[str, Any]], None]) -> None:
    """All steps of one mode, as far as it keeps up."""
    if options.rates and options.warm_up:
        bench.command(do="steady", rate=options.rates[-1], seconds=options.warm_up)
    for rate in options.rates:
        command = {"do": "steady", "rate": rate} if rate else {"do": "rest"}
        bench.command(**command, seconds=SETTLE_S)
        result = bench.step(f"{rate:,}/s", **command, seconds=options.seconds)
        tell(result)
        bench.drain()
        if result["behind"] > rate * FAR_BEHIND_S:
            return
    if options.ahead:
        follow = {"do": "follow", "ahead": options.ahead}
        settled = bench.step("settling", **follow, seconds=SETTLE_S, rate=UNREACHED_RATE)
        bench.drain()
        rate = 1.1 * settled["frames_per_s"]  # so that the clock in the data does not get ahead of ours
        tell(bench.step("sustained", **follow, seconds=options.seconds, rate=rate))
        bench.drain()
    if options.backlog:
        tell(bench.step("catching up", do="backlog", frames=options.backlog))


def measure_size(bench: Bench, size: Size, options: argparse.Namespace) -> dict[str, Any]:
    """One step at :data:`SIZES_RATE`."""
    command = {"do": "steady", "rate": SIZES_RATE}
    bench.command(**command, seconds=options.warm_up + SETTLE_S)
    return bench.step(f"{size.partitions} partitions, {size.groups:,} groups", **command, seconds=options.seconds)


def size_table(results: dict[Size, dict[str, Any]]) -> Table:
    shown = Table(title=f"{SIZES_RATE:,} frames/s over several sizes", box=None, title_justify="left")
    headings = ("partitions", "groups", "p50 s", "p99 s", "batch ms", "batches", "behind", "JVM", "worker", "others")
    for heading in (*headings, "state MiB", "writes MiB/s", "worker MiB"):
        shown.add_column(heading, justify="right")
    for size, result in results.items():
        shown.add_row(
            str(size.partitions),
            f"{size.groups:,}",
            *("" if result[key] is None else str(result[key]) for key in ("p50_s", "p99_s", "batch_ms", "batches", "behind")),
            *(f"{result['cores'][role]:.2f}" for role in ("JVM", "worker", "others")),
            str(result["state_mib"]),
            str(result["written_mib_s"]),
            str(result["memory_mib"]["worker"]),
        )
    return shown


def table(results: list[dict[str, Any]]) -> Table:
    shown = Table(
        title=f"capture → finding readable, broker and load on the same {os.cpu_count()} cores", box=None, title_justify="left"
    )
    for heading in (
        "model",
        "load",
        "frames/s",
        "findings",
        "p50 s",
        "p99 s",
        "batch ms",
        "behind",
        "µs/frame",
        "batches",
        "JVM writes MiB/s",
        *ROLES,
        "others",
        "loop ns",
    ):
        shown.add_column(heading, justify="right")
    for result in results:
        cells = [result["mode"], result["step"], f"{result['frames_per_s']:,}", str(result["findings"])]
        cells += [
            str(result[key] if result[key] is not None else "")
            for key in ("p50_s", "p99_s", "batch_ms", "behind", "us_per_frame", "batches", "written_mib_s")
        ]
        cells += [f"{result['cores'][role]:.2f}" for role in (*ROLES, "others")]
        shown.add_row(*cells, str(result["loop_ns"]))
    return shown


def sizes(results: list[dict[str, Any]]) -> Table:
    shown = Table(title="at the end", box=None, title_justify="left")
    for heading in ("model", "state MiB", "checkpoint MiB", *(f"{role} MiB" for role in MEASURED)):
        shown.add_column(heading, justify="right")
    for result in {result["mode"]: result for result in results}.values():
        memory = result["memory_mib"]
        shown.add_row(
            result["mode"], *map(str, (result["state_mib"], result["checkpoint_mib"], *(memory[role] for role in MEASURED)))
        )
    return shown


def add_common(parser: argparse.ArgumentParser) -> None:
    """What bench and soak both take."""
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=4, help="of the mirror topic")
    parser.add_argument("--members", type=int, default=2, help="of each group")
    parser.add_argument("--quality", action="store_true", help="with the Great Expectations query beside it")
    parser.add_argument(
        "--job", action="append", default=[], metavar="KEY=VALUE", help="a setting of the job, such as trigger_ms=500"
    )
    parser.add_argument("--results", type=Path, help="append what was measured to this file, as JSON lines")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rates",
        type=lambda text: [int(rate) for rate in text.split(",") if rate],
        default=[0, 1000, 5000, 20_000],
        help="frames a second; 0: ticks alone",
    )
    parser.add_argument(
        "--modes",
        type=lambda text: [mode for mode in text.split(",") if mode],
        default=list(MODES),
        help=f"none, or of {', '.join(MODES)}",
    )
    parser.add_argument("--seconds", type=float, default=20, help="measured time of each step")
    parser.add_argument(
        "--ahead", type=int, default=150_000, help="frames unread while the highest rate is sought; 0: leave that out"
    )
    parser.add_argument("--backlog", type=int, default=1_000_000, help="frames to catch up with; 0: leave that out")
    parser.add_argument(
        "--warm-up", type=float, default=90, metavar="S", help="of each mode, at the last rate: the JVM compiles for so long"
    )
    parser.add_argument(
        "--light", type=int, default=500, metavar="GROUPS", help="of a small Kafka, measured first; 0: leave that out"
    )
    parser.add_argument(
        "--sizes",
        type=lambda text: [Size.parse(size) for size in text.split(",") if size],
        default=SIZES,
        metavar="PARTITIONSxGROUPS,…",
        help=f"measured side by side at {SIZES_RATE:,} frames a second; '': leave that out (default: %(default)s)",
    )
    parser.set_defaults(speed=1.0, behind_s=0.0)
    add_common(parser)
    options = parser.parse_args()
    if unknown := set(options.modes) - set(MODES):
        parser.error(f"unknown mode {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    results: list[dict[str, Any]] = []

    def keep(result: dict[str, Any]) -> None:
        say(
            f"{result['mode']} {result['step']}: {result['frames_per_s']:,} frames/s"
            + ("" if result["p50_s"] is None else f", p50 {result['p50_s']} s, p99 {result['p99_s']} s")
        )
        if options.results:
            with options.results.open("a") as file:
                file.write(json.dumps(result) + "\n")

    def tell(result: dict[str, Any]) -> None:
        results.append(result)
        keep(result)

    with Broker(jvm_options=()) as broker, tempfile.TemporaryDirectory(prefix="rebalance-monitor-bench-") as folder:
        small = light(broker, Path(folder), options) if options.light else []
        if options.results and small:
            with options.results.open("a") as file:
                file.writelines(json.dumps({"step": "light", **each}) + "\n" for each in small)
        for mode in options.modes:
            with running(mode, mode, broker, Path(folder), options) as bench:
                measure(bench, options, tell)
        by_size: dict[Size, dict[str, Any]] = {}
        for size in options.sizes:
            options.partitions, options.groups = size
            with running("real", f"real-{size.partitions}-{size.groups}", broker, Path(folder), options) as bench:
                by_size[size] = measure_size(bench, size, options)
                keep(by_size[size])
    console = Console(width=None if sys.stdout.isatty() else 160)
    if small:
        console.print(shown(small, options.light))
    if results:
        console.print(table(results))
        console.print(sizes(results))
    if by_size:
        console.print(size_table(by_size))


if __name__ == "__main__":
    main()
