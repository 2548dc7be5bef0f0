"""The mirror of the laboratory: a broker that denies by default, to which the tap shows a client certificate, and its one topic.

The trap: a certificate counts when a connection is made, so one that expires shows only at the next. The tap's certificates are
short-lived; whoever wants one refused waits for its end and cuts the connection.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import ResourceType

from coordinator_model.wire.record import Kind, MirrorRecord, as_held
from streaming.demo.broker import HOST, free_port
from streaming.mirror.producer import KafkaSink
from tests.real.harness import mirror_record
from tests.real.lab.monitor import Monitor
from tests.real.lab.network import Link, Network
from tests.real.secured import secured_cluster

TOPIC = "lab-mirror"
LIFE_S = 15.0  # of a certificate
ALL_WRITTEN_S = 120.0
_USER = "tap"


class MirrorError(OSError):
    """The mirror does not come to what an act needs."""


class Mirror:
    """A sink into the mirror topic, and a reader of it that feeds the monitor; a context manager.

    :param folder: of the certificates.
    """

    def __init__(self, folder: Path, monitor: Monitor) -> None:
        self._folder = folder
        self._monitor = monitor
        self._captured: list[tuple[Any, ...]] = []
        self._read: Counter[tuple[Any, ...]] = Counter()  # in the order of their first copies
        self._ended = threading.Event()
        self._expires_for_good = threading.Event()  # nobody renews the certificate
        self._reader = threading.Thread(target=self._feed, name="reader of the mirror")

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            front = f"{HOST}:{free_port()}"
            self._secured = stack.enter_context(secured_cluster(self._folder, 1, advertised=[{"CERTIFIED": front}]))
            [broker] = self._secured.cluster.brokers
            broker.create_topic(TOPIC)
            self._network = stack.enter_context(Network([Link(front, broker.address("CERTIFIED"))]))
            self._certify()
            self.give_right()
            self._sink = KafkaSink(
                {
                    "bootstrap.servers": front,
                    "security.protocol": "SSL",
                    "ssl.ca.location": str(self._secured.authority.certificate),
                    "ssl.certificate.location": str(self._identity.certificate),
                    "ssl.key.location": str(self._identity.key),
                },
                topic=TOPIC,
                tell=logging.getLogger(__name__).info,
            )
            self._reader.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._stack:
            try:
                if kind is None:
                    self.wait_until_read()
            finally:
                self._sink.close()
                self._ended.set()
                self._reader.join()

    def write(self, record: MirrorRecord) -> None:
        """Take a record from the tap."""
        self._captured.append(_identity_of(record))
        self._sink.write(record)

    @property
    def differences(self) -> list[str]:
        """How the topic differs from what the tap captured."""
        if list(self._read) == self._captured:
            return []
        return [f"the tap captured {len(self._captured)} records, the mirror has {len(self._read)}, {self._sink.lost} were lost"]

    @property
    def doubled(self) -> int:
        """Copies beyond the first: what is in flight when a producer is replaced may be written twice."""
        return self._read.total() - len(self._read)

    def take_right(self) -> None:
        """The tap may write no longer; returns when it has been refused."""
        self._secured.take(f"CN={_USER}", "write", ResourceType.TOPIC, TOPIC)
        self._wait(lambda: self._sink.trouble is not None, "the tap is refused for want of a right")

    def give_right(self) -> None:
        self._secured.grant(f"CN={_USER}", "write", ResourceType.TOPIC, TOPIC)

    def expire(self, rng: random.Random) -> None:
        """Cut the tap's connection once its certificate has expired; returns when it has been refused."""
        self._expires_for_good.set()
        self._wait(lambda: dt.datetime.now(dt.UTC) > self._expires + dt.timedelta(seconds=1), "the certificate expires")
        self._network.cut(1.0, rng)
        self._wait(lambda: self._sink.trouble is not None, "the tap is refused with an expired certificate")

    def wait_until_read(self) -> None:
        """Wait until what is captured so far was read from the topic."""
        last = self._captured[-1]
        self._expires_for_good.clear()
        self._wait(lambda: last in self._read, "what was captured is read")

    def _renew(self) -> None:
        """Renew a certificate that has expired, if it is missed: a connection that lasts does not notice."""
        if self._sink.trouble is not None and dt.datetime.now(dt.UTC) > self._expires and not self._expires_for_good.is_set():
            self._certify()

    def _certify(self) -> None:
        self._expires = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=LIFE_S)
        self._identity = self._secured.authority.identity(_USER, until=self._expires)

    def _feed(self) -> None:
        servers = self._secured.cluster.internal
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False})
        with contextlib.closing(consumer):
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            while not self._ended.is_set():
                self._renew()
                message = consumer.poll(0.1)
                if message is None or message.error():
                    continue
                record = mirror_record(message)
                self._read[_identity_of(record)] += 1
                self._monitor.write(record)

    def _wait(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + ALL_WRITTEN_S
        while not reached():
            if time.monotonic() > deadline:
                raise MirrorError(f"waited in vain for {ALL_WRITTEN_S:.0f} s until {what}: {self._sink.trouble}")
            time.sleep(0.05)


def _identity_of(record: MirrorRecord) -> tuple[Any, ...]:
    # A description of many groups is a record for each of them. A tick that the tap has to keep says so in the topic.
    frame = as_held(record).frame if record.kind is Kind.TICK else record.frame
    return record.kind, record.at_us, record.connection, record.exchange, record.group, frame
