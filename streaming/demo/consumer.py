"""A child process of the demo: one ordinary consumer, confluent-kafka or kafka-python, that runs until SIGTERM.

Run as ``python -m streaming.demo.consumer JSON`` with the fields of :class:`Consumer`. It reports events to its parent as JSON lines on
standard output. A static member that is fenced exits, as a pod would, and its supervisor restarts it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

Kind = Literal["confluent-kafka", "kafka-python"]
Protocol = Literal["classic", "consumer"]

FENCED_STATUS: Final = 3
"""Exit status after FENCED_INSTANCE_ID."""

_POLL_S: Final = 0.25
_COMMIT_INTERVAL_MS: Final = 2_000
_ASSIGNOR: Final = "range"  # both libraries have it


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """The options of a consumer process."""

    kind: Kind
    bootstrap: str
    topic: str
    group: str
    client_id: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int  #: set as ``max.poll.interval.ms``, which both libraries send as rebalance timeout
    instance_id: str | None = None
    protocol: Protocol = (
        "classic"  #: confluent-kafka knows both; the newer one leaves timeouts of sessions and assignors to the broker
    )

    def command(self) -> list[str]:
        """Return the command line of the process."""
        return [sys.executable, "-m", "streaming.demo.consumer", json.dumps(asdict(self))]


class FencedError(Exception):
    """Another process has taken the group instance id."""


def tell(event: str, **details: Any) -> None:
    """Report an event to the parent as one JSON line."""
    print(json.dumps({"at_us": time.time_ns() // 1000, "event": event, **details}), flush=True)


def main() -> None:
    options = Consumer(**json.loads(sys.argv[1]))
    stop = stop_on_sigterm()
    consume = _with_confluent_kafka if options.kind == "confluent-kafka" else _with_kafka_python
    tell("started")
    try:
        consumed = 0
        for count in consume(options):
            consumed += count
            if stop.is_set():
                break
        tell("stopped", consumed=consumed)
    except FencedError:
        tell("fenced")
        raise SystemExit(FENCED_STATUS) from None


def stop_on_sigterm() -> threading.Event:
    """Return what is set once SIGTERM has come."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    return stop


def _with_confluent_kafka(options: Consumer) -> Iterator[int]:
    import confluent_kafka  # noqa: PLC0415 - each process loads only the library that it uses

    from streaming.kafka.connection import SILENT_LOGGER  # noqa: PLC0415

    settings: dict[str, str | int] = {
        "bootstrap.servers": options.bootstrap,
        "client.id": options.client_id,
        "group.id": options.group,
        "group.protocol": options.protocol,
        "max.poll.interval.ms": options.rebalance_timeout_ms,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": _COMMIT_INTERVAL_MS,
    }
    if options.protocol == "classic":
        settings |= {
            "session.timeout.ms": options.session_timeout_ms,
            "heartbeat.interval.ms": options.heartbeat_interval_ms,
            "partition.assignment.strategy": _ASSIGNOR,
        }
    if options.instance_id is not None:
        settings["group.instance.id"] = options.instance_id
    consumer = confluent_kafka.Consumer(settings, logger=SILENT_LOGGER)
    consumer.subscribe([options.topic], on_assign=lambda _, partitions: _tell_assigned(partitions))
    fatal = confluent_kafka.KafkaError._FATAL  # noqa: SLF001 - public in all but name; for a consumer it means fenced
    try:
        while True:
            messages = consumer.consume(100, timeout=_POLL_S)
            for message in messages:
                error = message.error()
                if error is not None and error.code() == fatal:
                    raise FencedError
            yield sum(message.error() is None for message in messages)
    finally:
        with contextlib.suppress(confluent_kafka.KafkaException, RuntimeError):
            consumer.close()


def _with_kafka_python(options: Consumer) -> Iterator[int]:
    import kafka  # noqa: PLC0415
    from kafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415
    from kafka.errors import FencedInstanceIdError  # noqa: PLC0415

    class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            _tell_assigned(assigned)

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=options.bootstrap,
        client_id=options.client_id,
        group_id=options.group,
        group_instance_id=options.instance_id,
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        max_poll_interval_ms=options.rebalance_timeout_ms,
        partition_assignment_strategy=[RangePartitionAssignor],
        auto_offset_reset="earliest",
        auto_commit_interval_ms=_COMMIT_INTERVAL_MS,
    )
    consumer.subscribe([options.topic], listener=Listener())
    try:
        # topics() fetches the metadata first. If kafka-python 3.0.12 joins without it, it assigns no partitions and joins again. If
        # poll() times out during that second join, the consumer stays without heartbeats and records forever.
        with contextlib.suppress(kafka.errors.KafkaError):
            consumer.topics()
        while True:
            batches = consumer.poll(timeout_ms=int(_POLL_S * 1000), max_records=100)
            yield sum(len(records) for records in batches.values())
    except FencedInstanceIdError:
        raise FencedError from None
    finally:
        with contextlib.suppress(kafka.errors.KafkaError):
            consumer.close(timeout_ms=5_000)


def _tell_assigned(partitions: Any) -> None:
    tell("assigned", partitions=sorted(partition.partition for partition in partitions))


if __name__ == "__main__":
    main()
