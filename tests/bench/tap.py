"""What the tap costs: produce and fetch throughput through it beside a direct connection, and the time one group frame takes in it.

``python tests/bench/tap.py`` starts a broker of its own and a tap in a process of its own; the rounds alternate between the two ways,
so that what else the machine does falls on both. Ratios are the result; absolute figures are this machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator_model import wire
from streaming.demo.broker import HOST, Broker, free_port, guard

TOPIC = "bench"


def produce(bootstrap: str, records: int, size: int) -> float:
    """Seconds to produce the records, acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": 1, "queue.buffering.max.messages": 2_000_000})
    producer.list_topics(TOPIC, timeout=30)
    payload = b"x" * size
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
    consumer.list_topics(TOPIC, timeout=30)
    began = time.perf_counter()
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    taken = 0
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


@contextlib.contextmanager
def running(listen: str, mirror: str, *more: str) -> Iterator[None]:
    """A tap in a process of its own."""
    command = [sys.executable, "-m", "streaming.cli", "tap", "--listen", listen, "--bootstrap-server", mirror, "--create-topic"]
    process = subprocess.Popen([*command, "--status-every", "0", *more])
    watch = guard(process.pid)
    try:
        yield
        process.terminate()
        process.wait(30)
    finally:
        process.kill()
        watch.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=1000, help="bytes of a record")
    parser.add_argument("--heartbeats", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rewrite", action="store_true", help="a tap that rewrites, beside one that does not instead of no tap")
    options = parser.parse_args()
    tapped, rewriting, first = f"{HOST}:{free_port()}", f"{HOST}:{free_port()}", free_port()
    with (
        Broker(advertised={"PLAINTEXT": tapped}) as broker,
        tempfile.TemporaryDirectory() as folder,
        contextlib.ExitStack() as stack,
    ):
        broker.create_topic(TOPIC)
        stack.enter_context(running(f"{tapped}={broker.address()}", broker.internal))
        ways = {"direct": broker.internal, "tap": tapped}
        if options.rewrite:
            file = f"{folder}/brokers"
            ports = ("--rewrite", "--ports", f"{first}-{first + 9}", "--brokers-file", file, "--loss-file", f"{file}.loss")
            stack.enter_context(running(f"{rewriting}={broker.internal}", broker.internal, *ports))
            ways = {"tap": tapped, "rewriting": rewriting}
        measured: dict[tuple[str, str], list[float]] = {}
        megabytes = options.records * options.size / 1e6
        for _ in range(options.rounds + 1):  # the first one warms up
            for way, bootstrap in ways.items():
                measured.setdefault(("produce, MB/s", way), []).append(
                    megabytes / produce(bootstrap, options.records, options.size)
                )
                measured.setdefault(("fetch, MB/s", way), []).append(megabytes / fetch(bootstrap, options.records))
                rate, trips = asyncio.run(heartbeats(bootstrap, options.heartbeats, 20))
                measured.setdefault(("heartbeats/s, 20 connections", way), []).append(rate)
                _, trips = asyncio.run(heartbeats(bootstrap, options.heartbeats // 10, 1))
                measured.setdefault(("heartbeat round trip p50, ms", way), []).append(statistics.median(trips))
    print(f"{options.records:,} records of {options.size} bytes, median of {options.rounds} rounds, and the range of the ratios")
    print("".join([f"{'':32}", *(f"{way:>10}" for way in ways), f"{'ratio':>8}"]))
    for what in dict.fromkeys(key for key, _ in measured):
        direct, through = (measured[what, way][1:] for way in ways)
        ratios = sorted(b / a for a, b in zip(direct, through, strict=True))
        one, other = statistics.median(direct), statistics.median(through)
        print(f"{what:32}{one:10.2f}{other:10.2f}{statistics.median(ratios):8.2f}   {ratios[0]:.2f} to {ratios[-1]:.2f}")


if __name__ == "__main__":
    main()
