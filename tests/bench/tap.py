"""What the tap costs: produce and fetch throughput through it beside a direct connection, and the time one group frame takes in it.

``python tests/bench/tap.py`` starts a broker of its own and a tap in a process of its own; the rounds alternate between the two ways,
so that what else the machine does falls on both. Ratios are the result; absolute figures are this machine's. CPU of the tap is what least
depends on the machine's other work.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator_model import wire
from streaming.demo.broker import HOST, Broker, free_port, guard

TOPIC = "bench"


def produce(bootstrap: str, records: int, size: int) -> float:
    """Seconds to produce the records, acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": 1, "queue.buffering.max.messages": 2_000_000})
    producer.list_topics(TOPIC, timeout=30)
    payload = b"x" * size
    producer.produce(TOPIC, payload, partition=0)
    producer.flush(30)  # a connection to the address that the broker is said to have: only some ways have it already
    began = time.perf_counter()
    for number in range(records):
        producer.produce(TOPIC, payload, partition=0)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker did not take all records")
    return time.perf_counter() - began


def fetch(bootstrap: str, records: int) -> float:
    """Seconds to read the topic's first records."""
    # With the default bounds librdkafka pauses a second each time its own queue is full, which measures nothing but that.
    unbounded = {"queued.min.messages": 10_000_000, "queued.max.messages.kbytes": 2_097_151}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, **unbounded})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    taken = 0
    while not taken:  # connected
        taken = len(consumer.consume(1, 1.0))
    began = time.perf_counter()
    while taken < records:
        taken += len(consumer.consume(10_000, 1.0))
    took = time.perf_counter() - began
    consumer.close()
    return took


async def heartbeats(bootstrap: str, count: int, connections: int) -> tuple[float, list[float]]:
    """Requests a second over several connections that each wait for their answer, and the round trips in ms."""
    host, _, port = bootstrap.rpartition(":")
    trips: list[float] = []

    async def beat(number: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        body = wire.HeartbeatRequest(group_id=f"bench-{number}", generation_id=1, member_id="nobody")
        for beat in range(count // connections):
            frame = wire.encode_request(body, api_version=4, correlation_id=beat, client_id="bench")
            began = time.perf_counter()
            writer.write(len(frame).to_bytes(4, "big") + frame)
            size = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(size)
            trips.append((time.perf_counter() - began) * 1000)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(beat(number) for number in range(connections)))
    return count / (time.perf_counter() - began), trips


def wait_for_port(address: str) -> None:
    """Wait until somebody listens."""
    host, _, port = address.rpartition(":")
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port))):
            return
        time.sleep(0.05)
    raise SystemExit(f"nobody listens at {address}")


@contextlib.contextmanager
def running(listen: str, mirror: str, *more: str) -> Iterator[psutil.Process]:
    """A tap in a process of its own."""
    command = [sys.executable, "-m", "streaming.cli", "tap", "--listen", listen, "--bootstrap-server", mirror, "--create-topic"]
    process = subprocess.Popen([*command, "--status-every", "0", *more])
    watch = guard(process.pid)
    try:
        wait_for_port(listen.partition("=")[0])
        yield psutil.Process(process.pid)
        process.terminate()
        process.wait(30)
    finally:
        process.kill()
        watch.kill()


def cpu_s(process: psutil.Process | None) -> float:
    """CPU-seconds of a tap with its workers so far; 0 of the way without one."""
    if process is None:
        return 0.0
    threads = [thread for one in (process, *process.children()) for thread in Path(f"/proc/{one.pid}/task").iterdir()]
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


class Way(NamedTuple):
    """How clients get to the broker."""

    name: str
    bootstrap: str
    tap: psutil.Process | None


def measure(way: Way, options: argparse.Namespace) -> dict[str, float]:
    """One round: rates, and what each costs the tap."""
    found: dict[str, float] = {}
    megabytes = options.records * options.size / 1e6
    before = cpu_s(way.tap)
    if not options.workers:  # records go where the broker advertises, which only one tap can be at
        found["produce, MB/s"] = megabytes / produce(way.bootstrap, options.records, options.size)
        found["produce, tap's CPU ms/MB"] = (cpu_s(way.tap) - before) / megabytes * 1e3
        before = cpu_s(way.tap)
        found["fetch, MB/s"] = megabytes / fetch(way.bootstrap, options.records)
        found["fetch, tap's CPU ms/MB"] = (cpu_s(way.tap) - before) / megabytes * 1e3
        before = cpu_s(way.tap)
    rate, _ = asyncio.run(heartbeats(way.bootstrap, options.heartbeats, 20))
    found["heartbeats/s, 20 connections"] = rate
    found["heartbeats, tap's CPU µs each"] = (cpu_s(way.tap) - before) / options.heartbeats * 1e6
    _, trips = asyncio.run(heartbeats(way.bootstrap, options.heartbeats // 10, 1))
    found["heartbeat round trip p50, ms"] = statistics.median(trips)
    return found


def both(ways: tuple[Way, Way], number: int, options: argparse.Namespace) -> list[dict[str, float]]:
    """A round of each way, in turn the one and the other first: the broker writes to disk what the first has produced."""
    found = {way.name: measure(way, options) for way in (ways if number % 2 else ways[::-1])}
    return [found[way.name] for way in ways]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=1000, help="bytes of a record")
    parser.add_argument("--heartbeats", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rewrite", action="store_true", help="a tap that rewrites, beside one that does not instead of no tap")
    parser.add_argument("--workers", type=int, default=0, help="a tap with so many workers, beside one with one; heartbeats alone")
    options = parser.parse_args()
    tapped, beside, first = f"{HOST}:{free_port()}", f"{HOST}:{free_port()}", free_port()
    with (
        Broker(advertised={"PLAINTEXT": tapped}, jvm_options=()) as broker,
        tempfile.TemporaryDirectory() as folder,
        contextlib.ExitStack() as stack,
    ):
        broker.create_topic(TOPIC)
        plain = Way("tap", tapped, stack.enter_context(running(f"{tapped}={broker.address()}", broker.internal)))
        ways = (Way("direct", broker.internal, None), plain)
        file = f"{folder}/brokers"
        if options.rewrite:
            ports = ("--rewrite", "--ports", f"{first}-{first + 9}", "--brokers-file", file, "--loss-file", f"{file}.loss")
            other = stack.enter_context(running(f"{beside}={broker.internal}", broker.internal, *ports))
            ways = (plain, Way("rewriting", beside, other))
        elif options.workers:
            more = ("--workers", str(options.workers), "--loss-file", f"{file}.loss")
            other = stack.enter_context(running(f"{beside}={broker.address()}", broker.internal, *more))
            ways = (plain, Way("workers", beside, other))
        rounds = [both(ways, number, options) for number in range(options.rounds + 1)][1:]  # the first one warms up
    if not options.workers:
        print(f"{options.records:,} records of {options.size} bytes")
    print(f"median of {options.rounds} rounds, and the range of the ratios")
    print("".join([f"{'':32}", *(f"{way.name:>10}" for way in ways), f"{'ratio':>8}"]))
    for what in rounds[0][0]:
        ratios = sorted(through[what] / direct[what] for direct, through in rounds if direct[what])
        one, other_one = (statistics.median(found[way][what] for found in rounds) for way in (0, 1))
        ratio = f"{statistics.median(ratios):8.2f}   {ratios[0]:.2f} to {ratios[-1]:.2f}" if ratios else ""
        print(f"{what:32}{one:10.2f}{other_one:10.2f}{ratio}")


if __name__ == "__main__":
    main()
