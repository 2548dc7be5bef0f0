"""What the quality checks cost the driver: CPU-seconds for batches of steady traffic, from rows to outcomes.

    python -m tests.bench.quality [--rate 5000] [--groups 1000] [--suite FILE]

CPU time, not time: what else runs on the machine shows little. What Spark adds by reading the topic a second time is the difference
between two runs of ``python -m tests.bench.job --modes real --rates 5000 --ahead 0 --backlog 0 --sizes ""``, with and without ``--quality``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from coordinator_model.wire.record import pack_envelope
from streaming.config.settings import Kafka, MonitorConfig, Quality
from streaming.quality.checker import Checker
from tests.real.traffic import story

PARTITIONS = 4
BATCHES = 5
START_US = 1_700_000_000_000_000


class Nowhere:
    """Takes what the checker publishes."""

    def publish(self, findings: Any) -> None:
        list(findings)

    def publish_json(self, topic: str, key: str, value: dict[str, Any]) -> None:
        pass

    def flush(self, timeout_s: float) -> bool:
        return True


def rows(rate: int, groups: int, seconds: float) -> list[Any]:
    """What the query fetches, as tuples."""
    ends: dict[int, int] = {}
    found = []
    for partition, record in story(
        start_us=START_US, seconds=int(seconds), groups=groups, partitions=PARTITIONS, frames_per_s=rate, breach_every=10**9
    ):
        offset = ends.get(partition, 0)
        ends[partition] = offset + 1
        key = None if record.group is None else record.group.encode()
        found.append((partition, offset, record.at_us // 1000, key, record.frame, pack_envelope(record)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=5000, help="frames a second")
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--suite", type=Path, help="your own; else the one that the monitor brings")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        quality = Quality(docs=Path(folder), suite=options.suite)
        config = MonitorConfig(kafka=Kafka(bootstrap_servers="nowhere:1"), quality=quality)
        every = int(options.rate * quality.trigger_s)
        given = rows(options.rate, options.groups, (BATCHES + 1) * quality.trigger_s)
        checker = Checker(config, published=(), publisher=Nowhere())
        checker.check(given[:every], 0)  # what is done once: groups join, pages are laid out, modules are loaded
        taken = []
        for batch in range(1, BATCHES + 1):
            began = time.process_time()
            checker.check(given[batch * every : (batch + 1) * every], batch)
            taken.append(time.process_time() - began)
    typical, cores = statistics.median(taken), os.cpu_count() or 1
    print(
        f"{every:,} frames a batch: {typical:.2f} CPU-seconds (median of {BATCHES}, {min(taken):.2f} to {max(taken):.2f}), "
        f"{typical / every * 1e6:.1f} µs a frame; at {options.rate:,} frames/s {typical / quality.trigger_s / cores:.1%} of {cores} cores"
    )


if __name__ == "__main__":
    main()
