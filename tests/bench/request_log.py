"""What the request log costs the broker that writes it, and how fast it is read: ``make bench-log``.

Three brokers of their own, with the logger off, on, and on with the filter of ``docs/inputs.md``, take the same records in turns, so that
what else the machine does falls on all. Each record is a request of its own, which costs most, or waits up to 5 ms for others.
Then a log is read in which a line of a group follows 99 of Produce and Fetch. Ratios are the result; absolute figures are this machine's.
"""

from __future__ import annotations

import argparse
import html
import re
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import psutil
from confluent_kafka import Producer

from coordinator_model import wire
from streaming.demo import broker as demo_broker
from streaming.demo.broker import Broker
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.pcap.files import opened
from tests.streaming.mirror.request_log_lines import request_line

TOPIC: Final = "bench"
DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "inputs.md"
APPENDER: Final = """\
    <File name="requests" fileName="{file}"><PatternLayout pattern="[%d] %p %m (%c)%n"/>{filter}</File></Appenders>"""
LOGGER: Final = """\
    <Logger name="kafka.request.logger" level="{level}" additivity="false"><AppenderRef ref="requests"/></Logger></Loggers>"""
LOADS: Final = {  # settings of the producer, and how many times as many records
    "a record a request": ({"batch.num.messages": 1, "linger.ms": 0}, 1),
    "batches, 5 ms": ({"linger.ms": 5}, 50),
}
KINDS: Final = ("off", "on", "filtered")
LINES: Final = 300  #: of groups in the log that is read


class LoggingBroker(Broker):
    """A broker whose requests are logged in one of the three ways."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__(**options)
        self.requests = self.data / "kafka-request.log"
        told = APPENDER.format(file=self.requests, filter=documented_filter() if kind == "filtered" else "")
        level = "WARN" if kind == "off" else "DEBUG"
        plain = demo_broker._LOG4J.replace("</Appenders>", told)
        self._log4j = plain.replace("</Loggers>", LOGGER.format(level=level))

    def _java(self) -> list[str]:
        (self.data / "log4j2.xml").write_text(self._log4j)
        return super()._java()

    def cpu_s(self) -> float:
        """CPU time of the process so far."""
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system  # type: ignore[no-any-return]


def documented_filter() -> str:
    """The filter that the document recommends."""
    found = re.search(r"<RegexFilter .*/>", DOCUMENT.read_text())
    assert found is not None
    assert re.search(html.unescape(found[0]).partition('regex="')[2].partition('" useRawMsg')[0], heartbeat(0).decode())
    return found[0]


def produce(bootstrap: str, records: int, settings: dict[str, Any]) -> float:
    """Seconds to produce the records, acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, "queue.buffering.max.messages": 2_000_000, **settings})
    producer.list_topics(TOPIC, timeout=30)
    began = time.perf_counter()
    for number in range(records):
        producer.produce(TOPIC, b"x" * 200, partition=0)
        if number % 1_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker did not take all records")
    return time.perf_counter() - began


def heartbeat(over_ms: int, **options: Any) -> bytes:
    asked = wire.HeartbeatRequest(group_id="billing", generation_id=3, member_id="m-1")
    return request_line(asked, wire.HeartbeatResponse(), over_ms=over_ms, **options)


def writing(records: int, rounds: int) -> None:
    """Print what the brokers' work takes."""
    with ExitStack() as stack:
        brokers = {kind: stack.enter_context(LoggingBroker(kind, jvm_options=())) for kind in KINDS}
        for broker in brokers.values():
            broker.create_topic(TOPIC)
            produce(broker.address(), records, {"linger.ms": 0})  # the JVM compiles what it runs
        for load, (settings, times) in LOADS.items():
            walls: dict[str, list[float]] = {kind: [] for kind in KINDS}
            cpus: dict[str, list[float]] = {kind: [] for kind in KINDS}
            sizes: dict[str, int] = {}
            for _ in range(rounds):
                for kind, broker in brokers.items():
                    cpu_s, size = broker.cpu_s(), broker.requests.stat().st_size
                    walls[kind].append(produce(broker.address(), records * times, settings))
                    cpus[kind].append(broker.cpu_s() - cpu_s)
                    sizes[kind] = broker.requests.stat().st_size - size
            print(
                f"{load}, {records * times:,} records:{'wall s':>14}{'broker CPU s':>14}{'CPU / off':>11}{'log MB':>9}", flush=True
            )
            for kind in KINDS:
                wall_s, cpu_s = statistics.median(walls[kind]), statistics.median(cpus[kind])
                ratio = cpu_s / statistics.median(cpus["off"])
                print(f"  {kind:38}{wall_s:10.2f}{cpu_s:14.2f}{ratio:11.2f}{sizes[kind] / 1e6:9.2f}", flush=True)


def reading(folder: Path, rounds: int) -> None:
    """Print how fast a log is read."""
    path = folder / "kafka-request.log"
    others = heartbeat(0, header={"requestApiKey": 0}, temporaryMemoryBytes="x" * 400)
    path.write_bytes((others * 99 + heartbeat(0)) * LINES)
    times = []
    for _ in range(rounds):
        began = time.process_time()
        reader = RequestLogReader(lambda _: None)
        with path.open("rb") as stream:
            reader.read([reader.entries_in(opened(stream), print)])
        times.append(time.process_time() - began)
        assert reader.counts["exchanges"] == LINES
    size = path.stat().st_size / 1e6
    print(f"reading {size:.0f} MB, one line in a hundred of a group: {size / min(times):,.0f} MB per CPU second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reading(Path(folder), options.rounds)
    writing(options.records, options.rounds)


if __name__ == "__main__":
    main()
