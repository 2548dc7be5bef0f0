"""Live traffic of many groups on a mirror topic, as long as a test needs it, and what the model alone makes of the topic."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from confluent_kafka import Producer

from coordinator_model.coordinator import Coordinator
from coordinator_model.wire.record import HEADER_NAME, RecordError, unpack_record
from streaming.kafka.connection import SILENT_LOGGER
from tests.real.harness import raw_topic
from tests.real.monitor_process import SETTINGS
from tests.real.traffic import Group, Handover, breach, partition_of, produce, tick

GROUPS = 30
_PAUSE_S = 0.05


class Feeder:
    """Writes heartbeats of some groups, a breach now and then and ticks, until it is stopped.

    Some more groups may hand partitions over all the time (``handovers``).

    What the broker does not take while it is away is delivered when it is back: nothing of it is lost.
    """

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, *, groups: int = GROUPS, breach_every: int = 10, handovers: int = 0
    ) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self._partitions = partitions
        self._breach_every = breach_every
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True, "message.timeout.ms": 0}
        self._producer = Producer(settings, logger=SILENT_LOGGER)
        self._groups = [Group(f"group-{number}") for number in range(groups)]
        self._handovers = [Handover(f"handover-{number}") for number in range(handovers)]
        self._rounds = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def start(self) -> Feeder:
        now_us = time.time_ns() // 1000
        for group in self._groups:
            self._write(*group.join(now_us), *group.sync(now_us + 2_000))
        self._thread.start()
        return self

    def stop(self) -> None:
        """Everything that was written has arrived when this returns."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        while not self._stop.wait(_PAUSE_S):
            now_us = time.time_ns() // 1000
            self._write(*self._groups[self._rounds % len(self._groups)].heartbeat(now_us))
            if self._handovers:
                self._write(*self._handovers[self._rounds % len(self._handovers)].step(now_us))
            if self._rounds % self._breach_every == 0:
                self._write(*breach(self._rounds, now_us))
            if self._rounds % 20 == 0:
                for partition in range(self._partitions):
                    produce(self._producer, self.topic, partition, tick(now_us))
            self._rounds += 1

    def _write(self, *records: Any) -> None:
        for record in records:
            produce(self._producer, self.topic, partition_of(record.group, self._partitions), record)


def models_of(
    messages: list[Any], topic: str, partitions: int, *, told_partitions: int | None = None
) -> tuple[list[Coordinator], dict[str, str]]:
    """The models after these messages, in offset order within each partition, and id to final status of what they found."""
    models = [Coordinator(topic=topic, partition=partition, settings=SETTINGS) for partition in range(partitions)]
    found: dict[str, str] = {}
    for model in models:
        model.on_partition_count(told_partitions or partitions)
    for message in messages:
        model = models[message.partition()]
        try:
            findings = model.receive(
                unpack_record(
                    partition=message.partition(),
                    offset=message.offset(),
                    key=message.key(),
                    value=message.value(),
                    envelope=dict(message.headers() or []).get(HEADER_NAME),
                )
            )
        except RecordError as error:
            key = message.key()
            group = None if key is None else key.decode(errors="replace")
            findings = model.receive_unreadable(message.offset(), message.timestamp()[1] * 1000, group, str(error))
        found |= {finding.id: finding.status.value for finding in findings}
    return models, found


def ends_of(bootstrap: str, topic: str) -> dict[int, int]:
    """Next offset of each partition that holds anything."""
    ends: dict[int, int] = {}
    for message in raw_topic(bootstrap, topic):
        ends[message.partition()] = message.offset() + 1
    return ends


def events_of(models: list[Coordinator]) -> dict[str, list[dict[str, Any]]]:
    """What happened in each group of these models, in order, by the key of its records in the topic."""
    happened: dict[str, list[dict[str, Any]]] = {}
    for model in models:
        for event in model.drain_events():
            happened.setdefault(event.key, []).append(json.loads(json.dumps(event.as_json())))
    return happened
