"""The brokers of everyday troubles, and what ``watch`` says of them."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException, Producer

from streaming.demo.broker import Broker
from streaming.demo.scenarios import PROPERTIES
from tests.real.secured import Administrator

SESSION_MS: Final = 10_000
RETENTION_S: Final = 60
LOST: Final = "LOST"
"""A listener that advertises an address at which nobody listens."""
BROKER: Final[dict[str, str | int]] = {
    **PROPERTIES,
    **{
        f"group.{kind}.{least}session.timeout.ms": SESSION_MS for kind in ("consumer", "share", "streams") for least in ("", "min.")
    },
    **{f"group.{kind}.{least}heartbeat.interval.ms": 3_000 for kind in ("consumer", "share", "streams") for least in ("", "min.")},
    "offsets.retention.minutes": RETENTION_S // 60,
    "offsets.retention.check.interval.ms": 5_000,
}


ALONE: Final = "alone"
"""A broker that cannot make __consumer_offsets: it is the only one, and the topic is to have three replicas."""
UNSHARED: Final = "unshared"
"""A broker whose share groups are switched off."""
BESIDE: Final[dict[str, dict[str, str | int]]] = {ALONE: {**BROKER, "offsets.topic.replication.factor": 3}, UNSHARED: BROKER}
"""Brokers beside the first one, by name, with their properties."""


class Printed(NamedTuple):
    """A finding, or a rebalance with its cause, when ``watch`` printed it."""

    at_s: float
    record: dict[str, Any]

    @property
    def what(self) -> str:
        """The rule, or the cause of the rebalance."""
        return str(self.record["rule"] if self.is_finding else self.record["cause"])

    @property
    def is_finding(self) -> bool:
        return "rule" in self.record

    @property
    def text(self) -> str:
        if self.is_finding:
            return f"{self.record['severity']} {self.what}: {self.record['summary']}"
        return f"rebalance to generation {self.record['to_generation']}: {self.what}"

    @property
    def named(self) -> str:
        """Where client and address may stand."""
        return f"{self.text} {self.record['client_id']} {self.record['client_address']}"


class Place:
    """The broker, ``watch`` before it and beside it, and what that prints.

    :param front: the tap's address.
    :param lost: the address at which nobody listens.
    """

    def __init__(self, folder: Path, broker: Broker, front: str, lost: str) -> None:
        self.folder, self.broker, self.front, self.lost = folder, broker, front, lost
        self.administrator = Administrator(broker.internal)
        self.printed: list[Printed] = []
        self.over = threading.Event()
        self.topics: list[str] = []
        self.beside: dict[str, str] = {}  #: name of another broker → address of the tap before it

    def listen(self, printed: Path) -> None:
        """Note when each finding and each rebalance comes."""
        with printed.open() as lines:
            begun = ""
            while not self.over.wait(0.25):
                *whole, begun = (begun + lines.read()).split("\n")
                found = (json.loads(line) for line in whole)
                self.printed += [
                    Printed(time.monotonic(), one) for one in found if "rule" in one or one.get("kind") == "rebalance_finished"
                ]

    def produce(self) -> None:
        """Write records to all topics, past the tap."""
        producer = Producer({"bootstrap.servers": self.broker.internal})
        while not self.over.wait(0.5):
            for topic in list(self.topics):
                with contextlib.suppress(KafkaException):  # of a topic that nobody may write, or that is gone
                    producer.produce(topic, b"x" * 100)
            producer.poll(0)

    def of(self, group: str) -> list[Printed]:
        return [one for one in self.printed if one.record["group"] == group]
