"""kafka-python."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any

import kafka
from contract import Settings, run, tell
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

ASSIGNORS = {known.name: known for known in (RangePartitionAssignor, RoundRobinPartitionAssignor, CooperativeStickyAssignor)}
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class Listener(kafka.ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned: Any) -> None:
        tell("assigned", partitions=len(assigned))

    def on_partitions_revoked(self, revoked: Any) -> None:
        tell("revoked", partitions=len(revoked))


class KafkaPython:
    def join(self, settings: Settings) -> None:
        self._settings = settings
        self._producer: Any = None
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=settings.bootstrap,
            client_id=settings.client_id,
            group_id=settings.group,
            group_instance_id=settings.instance_id,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.rebalance_timeout_ms,
            partition_assignment_strategy=[ASSIGNORS[settings.assignor]],
            auto_offset_reset="earliest",
            enable_auto_commit=settings.commits == "auto",
            auto_commit_interval_ms=1_000,
            metadata_max_age_ms=2_000,
            reconnect_backoff_max_ms=1_000,
            **_idle(settings),
            **_login(settings),
        )
        self.subscribe(settings.topics)
        with contextlib.suppress(kafka.errors.KafkaError):
            self._consumer.topics()  # see kafka_python_consumer in tests/real/harness.py

    def subscribe(self, topics: list[str]) -> None:
        if topics[0].startswith("^"):
            self._consumer.subscribe(pattern=topics[0], listener=Listener())
        else:
            self._consumer.subscribe(topics, listener=Listener())

    def poll(self, seconds: float) -> None:
        self._consumer.poll(timeout_ms=int(seconds * 1000), max_records=100)

    def block(self, seconds: float) -> None:
        time.sleep(seconds)

    def commit(self, how: str) -> None:
        if how == "sync":
            self._consumer.commit(timeout_ms=3_000)
        elif how == "async":
            self._consumer.commit_async()
        else:
            try:
                self._commit_in_transaction()
            except kafka.errors.KafkaError:
                with contextlib.suppress(kafka.errors.KafkaError):
                    self._producer.close(timeout=1)
                self._producer = None
                raise

    def _commit_in_transaction(self) -> None:
        if self._producer is None:
            names = {"bootstrap_servers": self._settings.bootstrap, "client_id": self._settings.client_id}
            self._producer = kafka.KafkaProducer(**names, transactional_id=self._settings.client_id)
            self._producer.init_transactions()
        places = {
            place: kafka.structs.OffsetAndMetadata(position, "", -1)
            for place in self._consumer.assignment()
            if (position := self._consumer.position(place, timeout_ms=1_000)) is not None
        }
        self._producer.begin_transaction()
        self._producer.send_offsets_to_transaction(places, self._consumer.group_metadata())
        self._producer.commit_transaction()

    def leave(self) -> None:
        self._consumer.unsubscribe()

    def close(self) -> None:
        self._consumer.close(timeout_ms=5_000)


def _idle(settings: Settings) -> dict[str, Any]:
    """The library wants its request timeout to be shorter; a JoinGroup may take the rebalance timeout nevertheless."""
    if settings.idle_ms is None:
        return {}
    return {"connections_max_idle_ms": settings.idle_ms, "request_timeout_ms": settings.idle_ms - 500}


def _login(settings: Settings) -> dict[str, Any]:
    if settings.user is None:
        return {}
    return {
        "security_protocol": "SASL_SSL" if settings.ca else "SASL_PLAINTEXT",
        "ssl_cafile": settings.ca,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": settings.user,
        "sasl_plain_password": settings.password,
    }


run(KafkaPython())
