"""Three brokers, of which the one is killed that coordinates two groups: another takes over, and no input blames their members.

One run is captured by the tap, as packets before it, and in the logs of the brokers.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from kafka.errors import KafkaError
from test_mirror_cli import _dumpcap

from coordinator_model.events import GroupEvent, SessionOver
from coordinator_model.finding import Finding
from coordinator_model.settings import Settings
from coordinator_model.wire.record import MirrorRecord
from streaming.demo import broker as demo_broker
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.raw_client import find_coordinator
from streaming.engine.engine import Engine
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.captures import captured
from streaming.mirror.pcap.capture_reader import CaptureReader, in_order
from streaming.mirror.pcap.files import opened
from tests.real.brokers import Cluster
from tests.real.harness import kafka_python_consumer, running_tap, wait_for

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.timeout(600)]

LOGGED = demo_broker._LOG4J.replace("</Loggers>", '<Logger name="kafka.request.logger" level="DEBUG"/></Loggers>')
INPUTS = ("tap", "packets", "request logs", "logs with coordinators' lines")
TOPIC = "orders"
SESSIONS_MS = {"short": 6_000, "long": 45_000, "beside": 6_000}
"""Name of a group → its session; the controller misses a broker after 9 s."""

logging.getLogger("kafka").setLevel(logging.CRITICAL)

GONE = {"M-13", "R-02", "R-03", "T-04", "T-09", "T-10", "T-13"}
"""A member is silent, died, or has gone."""


class Sink(list[MirrorRecord]):
    def write(self, record: MirrorRecord) -> None:
        self.append(record)


class Member:
    """A consumer that polls in a thread of its own, until it is let go."""

    def __init__(self, consumer: Any, poll: Any) -> None:
        self._consumer = consumer
        self._poll = poll
        self._over = threading.Event()
        self.has_partitions = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(KafkaError):  # kafka-python raises while its coordinator is away
                self._poll(self._consumer)
            self.has_partitions = bool(self._consumer.assignment())
        self._consumer.close()

    def end(self) -> None:
        self._over.set()
        self._thread.join(60)


def members_of(group: str, session_ms: int, fronts: list[str]) -> list[Member]:
    """One of librdkafka, one of kafka-python."""
    first = Consumer(
        {
            "bootstrap.servers": ",".join(fronts),
            "group.id": group,
            "client.id": f"{group}-1",
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": 1_000,
            "log_level": 0,
        }
    )
    first.subscribe([TOPIC])
    second = kafka_python_consumer(
        TOPIC,
        bootstrap_servers=fronts,
        group_id=group,
        client_id=f"{group}-2",
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=1_000,
    )
    return [Member(first, lambda one: one.poll(0.1)), Member(second, lambda one: one.poll(100))]


def coordinated_by(broker: Broker, name: str, brokers: list[Broker]) -> str:
    """A group's name of which a broker is the coordinator."""
    names = (f"{name}-{number}" for number in range(64))
    return next(group for group in names if find_coordinator(brokers[0].internal, group, client_id="scout") == broker.internal)


Found = tuple[list[Finding], list[GroupEvent]]


@contextlib.contextmanager
def modelled() -> Iterator[tuple[Engine, Found]]:
    findings: list[Finding] = []
    events: list[GroupEvent] = []
    engine = Engine(topic="killed", settings=Settings(), found=findings.append, happened=events.append)
    yield engine, (findings, events)
    engine.finish()


def of_logs(logs: list[bytes]) -> Found:
    with modelled() as (engine, found):
        reader = RequestLogReader(engine.recorded)
        reader.read([reader.entries_in(opened(io.BytesIO(log)), pytest.fail) for log in logs])
        reader.finish()
    return found


@pytest.fixture(scope="module")
def failed() -> list[set[str]]:
    """Members whose sessions ended by the coordinators' own words: one that could not replicate answers late, and clients begin anew."""
    return []


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory, failed: list[set[str]]) -> dict[str, Found]:
    folder = tmp_path_factory.mktemp("killed")
    fronts = [f"{HOST}:{free_port()}" for _ in range(3)]
    captures: list[Path] = []
    sink = Sink()
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(demo_broker, "_LOG4J", LOGGED)
            cluster = stack.enter_context(Cluster(3, advertised=[{"PLAINTEXT": front} for front in fronts]))
        brokers = cluster.brokers
        brokers[0].create_topic(TOPIC, 4, replicas=3)
        for front in fronts:
            captures.append(folder / f"{len(captures)}.pcapng")
            stack.enter_context(_dumpcap(captures[-1], int(front.partition(":")[2])))
        listeners = [f"{front}={broker.address()}" for front, broker in zip(fronts, brokers, strict=True)]
        stack.enter_context(running_tap(listeners, sink, cluster="seen"))
        coordinators = {"short": brokers[1], "long": brokers[1], "beside": brokers[2]}
        groups = {name: coordinated_by(broker, name, brokers) for name, broker in coordinators.items()}
        members = [one for name, group in groups.items() for one in members_of(group, SESSIONS_MS[name], fronts)]
        stack.callback(lambda: [one.end() for one in members])
        wait_for(lambda: all(one.has_partitions for one in members), "all have partitions")
        time.sleep(3)
        brokers[1].kill()
        time.sleep(20)
        wait_for(lambda: all(one.has_partitions for one in members), "all have partitions again")
        time.sleep(3)
        for one in members:
            one.end()
        logs = [broker.log.read_bytes() for broker in brokers]
    for number, log in enumerate(logs):
        (folder / f"server-{number}.log").write_bytes(log)
    failed.append({member.decode() for log in logs for member in re.findall(rb"Member (\S+) in group \S+ has failed", log)})
    with modelled() as (engine, by_tap):
        for offset, record in enumerate(sink):
            engine.recorded(record._replace(partition=0, offset=offset))
    with modelled() as (engine, by_packets), contextlib.ExitStack() as stack:
        reader = CaptureReader(engine.recorded, cluster="seen")
        sources = [opened(stack.enter_context(path.open("rb"))) for path in captures]
        reader.read(in_order([captured(source, pytest.fail) for source in sources]))
        reader.finish()
    requests = [b"".join(line for line in log.splitlines(keepends=True) if b"Completed request:" in line) for log in logs]
    return dict(zip(INPUTS, (by_tap, by_packets, of_logs(requests), of_logs(logs)), strict=True))


@pytest.mark.parametrize("name", INPUTS)
def test_nobody_who_lives_is_silent_or_dead(once: dict[str, Found], failed: list[set[str]], name: str) -> None:
    findings, events = once[name]
    removed = failed[0]
    assert {(one.rule, one.group, one.client_id) for one in findings if one.rule in GONE} == set()
    assert removed or "session expired" not in {getattr(event, "cause", None) for event in events}
    assert {event.member_id for event in events if isinstance(event, SessionOver)} <= removed


@pytest.mark.parametrize("name", INPUTS)
def test_the_coordinator_that_died_is_named_for_the_group_that_had_none_for_half_a_session(
    once: dict[str, Found], name: str
) -> None:
    findings, _ = once[name]
    named = {str(one.group).partition("-")[0] for one in findings if one.rule == "C-14"}
    assert {"short"} <= named <= {"short", "long"}
