"""A child process of the laboratory: one consumer of confluent-kafka, kafka-python or Java, with everything that a group may ask of it.

Run as ``python -m tests.real.lab.client JSON`` with the fields of :class:`Client`; the Java one takes the same as ``key=value`` words.
SIGTERM ends it in good order, SIGHUP makes it subscribe to its other topics and back. It tells its parent what happens to it as JSON
lines. The trap: chaos brings every error there is, and a client that gives up is one less; so whatever can be gone on after, is.
"""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from streaming.demo.consumer import tell
from tests.real.lab import java

Kind = Literal["confluent-kafka", "kafka-python", "java", "aiokafka", "franz-go", "sarama", "kafkajs"]
Commits = Literal["auto", "sync", "async", "transaction"]
Protocol = Literal["classic", "consumer", "share", "streams"]

KINDS: tuple[Kind, ...] = ("confluent-kafka", "kafka-python", "java")
LIBRARY_KINDS: tuple[Kind, ...] = ("aiokafka", "franz-go", "sarama", "kafkajs")
"""Led by their conformance drivers, if their toolchains are there."""

POLL_S = 0.25
COMMIT_EVERY = 4  # polls


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """What a consumer is told; times in milliseconds."""

    kind: Kind
    bootstrap: str
    group: str
    client_id: str
    topics: tuple[str, ...]
    other_topics: tuple[str, ...]
    assignors: tuple[str, ...] = ("range",)
    commits: Commits = "auto"
    instance_id: str | None = None
    protocol: Protocol = "classic"  #: the new one (KIP-848) leaves timeouts and assignors to the broker
    session_timeout_ms: int = 6_000
    heartbeat_interval_ms: int = 1_000
    rebalance_timeout_ms: int = 12_000
    revoke_ms: int = 0  #: how long its callback takes when partitions are taken from it
    request_timeout_ms: int | None = None  #: of sarama: how long it waits for any answer
    release: str | None = None  #: of sarama: whose versions of the protocol it speaks

    @classmethod
    def of(cls, text: str) -> Client:
        """What :meth:`command` handed over."""
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(text).items()})

    def command(self) -> list[str]:
        """The command line of its process."""
        if self.kind == "java":
            return java.command(
                {name: ",".join(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
            )
        module = "library_client" if self.kind in LIBRARY_KINDS else "client"
        return [sys.executable, "-m", f"tests.real.lab.{module}", json.dumps(asdict(self))]


class Orders:
    """What the parent has asked for by signals."""

    def __init__(self) -> None:
        self.stop = False
        self.switches = 0
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGHUP, self._on_hangup)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent

    def _on_term(self, _number: int, _frame: Any) -> None:
        self.stop = True

    def _on_hangup(self, _number: int, _frame: Any) -> None:
        self.switches += 1


def main() -> None:
    options = Client.of(sys.argv[1])
    orders = Orders()
    consume = _confluent_kafka if options.kind == "confluent-kafka" else _kafka_python
    tell("started")
    switched = 0
    for subscribe in consume(options):
        if orders.stop:
            break
        if orders.switches != switched:
            switched = orders.switches
            subscribe(list(options.other_topics if switched % 2 else options.topics))
    tell("stopped")


def _confluent_kafka(options: Client) -> Iterator[Any]:
    import confluent_kafka
    from confluent_kafka import KafkaException

    silent = logging.getLogger("silent")
    silent.addHandler(logging.NullHandler())
    silent.propagate = False
    settings = {
        "bootstrap.servers": options.bootstrap,
        "client.id": options.client_id,
        "group.id": options.group,
        "max.poll.interval.ms": options.rebalance_timeout_ms,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": options.commits == "auto",
        "auto.commit.interval.ms": 1_000,
        "topic.metadata.refresh.interval.ms": 5_000,
        "reconnect.backoff.max.ms": 1_000,
    }
    if options.instance_id is not None:
        settings["group.instance.id"] = options.instance_id
    if options.protocol == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings["session.timeout.ms"] = options.session_timeout_ms
        settings["heartbeat.interval.ms"] = options.heartbeat_interval_ms
        settings["partition.assignment.strategy"] = ",".join(options.assignors)
    consumer = confluent_kafka.Consumer(settings, logger=silent)

    def assigned(_: Any, partitions: Any) -> None:
        tell("assigned", partitions=len(partitions))

    def revoked(_: Any, __: Any) -> None:
        time.sleep(options.revoke_ms / 1000)

    def subscribe(topics: list[str]) -> None:
        consumer.subscribe(topics, on_assign=assigned, on_revoke=revoked)

    producer: Any = None
    subscribe(list(options.topics))
    try:
        for turn in _turns():
            with contextlib.suppress(KafkaException, RuntimeError):
                consumer.consume(100, timeout=POLL_S)
                if turn % COMMIT_EVERY == 0 and options.commits in {"sync", "async"}:
                    consumer.commit(asynchronous=options.commits == "async")
            if turn % COMMIT_EVERY == 0 and options.commits == "transaction":
                try:
                    producer = producer or _begun(confluent_kafka, options, silent)
                    positions = [place for place in consumer.position(consumer.assignment()) if place.offset >= 0]
                    producer.begin_transaction()
                    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 5)
                    producer.commit_transaction(5)
                except (KafkaException, RuntimeError) as error:
                    producer = _aborted(producer, error)
            yield subscribe
    finally:
        with contextlib.suppress(KafkaException, RuntimeError):
            consumer.close()


def _begun(confluent_kafka: Any, options: Client, logger: Any) -> Any:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": options.bootstrap, "client.id": options.client_id, "transactional.id": options.client_id},
        logger=logger,
    )
    producer.init_transactions(5)
    return producer


def _aborted(producer: Any, error: Exception) -> Any:
    """The producer if it can be used again, else nothing."""
    if producer is None or not getattr(error.args[0], "txn_requires_abort", lambda: False)():
        return None
    try:
        producer.abort_transaction(5)
    except Exception:
        return None
    return producer


def _kafka_python(options: Client) -> Iterator[Any]:
    import kafka
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    class Listener(kafka.ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            tell("assigned", partitions=len(assigned))

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    known = {known.name: known for known in (RangePartitionAssignor, RoundRobinPartitionAssignor, CooperativeStickyAssignor)}
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=options.bootstrap,
        client_id=options.client_id,
        group_id=options.group,
        group_instance_id=options.instance_id,
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        max_poll_interval_ms=options.rebalance_timeout_ms,
        partition_assignment_strategy=[known[name] for name in options.assignors],
        auto_offset_reset="earliest",
        enable_auto_commit=options.commits == "auto",
        auto_commit_interval_ms=1_000,
        metadata_max_age_ms=5_000,
        reconnect_backoff_max_ms=1_000,
    )

    def subscribe(topics: list[str]) -> None:
        consumer.subscribe(topics, listener=Listener())

    subscribe(list(options.topics))
    producer: Any = None
    try:
        with contextlib.suppress(kafka.errors.KafkaError):
            consumer.topics()  # see kafka_python_consumer in the harness; a change of subscription may still leave one stuck, as in real life
        for turn in _turns():
            with contextlib.suppress(kafka.errors.KafkaError):
                consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=100)
                if turn % COMMIT_EVERY == 0 and options.commits == "sync":
                    consumer.commit(timeout_ms=3_000)
                elif turn % COMMIT_EVERY == 0 and options.commits == "async":
                    consumer.commit_async()
            if turn % COMMIT_EVERY == 0 and options.commits == "transaction":
                try:
                    if producer is None:
                        producer = kafka.KafkaProducer(
                            bootstrap_servers=options.bootstrap, client_id=options.client_id, transactional_id=options.client_id
                        )
                        producer.init_transactions()
                    places = {
                        place: kafka.structs.OffsetAndMetadata(position, "", -1)
                        for place in consumer.assignment()
                        if (position := consumer.position(place, timeout_ms=1_000)) is not None
                    }
                    producer.begin_transaction()
                    producer.send_offsets_to_transaction(places, consumer.group_metadata())
                    producer.commit_transaction()
                except kafka.errors.KafkaError:
                    with contextlib.suppress(kafka.errors.KafkaError):
                        producer.close(timeout=1)
                    producer = None
            yield subscribe
    finally:
        with contextlib.suppress(kafka.errors.KafkaError):
            consumer.close(timeout_ms=5_000)


def _turns() -> Iterator[int]:
    turn = 0
    while True:
        turn += 1
        yield turn


if __name__ == "__main__":
    main()
