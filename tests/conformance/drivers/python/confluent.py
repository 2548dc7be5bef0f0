"""confluent-kafka (librdkafka)."""

from __future__ import annotations

import logging
import time
from typing import Any

import confluent_kafka
from contract import Settings, run, tell


class Confluent:
    def join(self, settings: Settings) -> None:
        self._settings = settings
        self._producer: Any = None
        options = {
            "bootstrap.servers": settings.bootstrap,
            "client.id": settings.client_id,
            "group.id": settings.group,
            "max.poll.interval.ms": settings.rebalance_timeout_ms,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": settings.commits == "auto",
            "auto.commit.interval.ms": 1_000,
            "topic.metadata.refresh.interval.ms": 2_000,
            "reconnect.backoff.max.ms": 1_000,
        }
        if settings.user is not None:
            options |= {"security.protocol": "SASL_SSL" if settings.ca else "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
            options |= {"sasl.username": settings.user, "sasl.password": settings.password, "ssl.ca.location": settings.ca or ""}
        if settings.protocol == "consumer":
            options["group.protocol"] = "consumer"
        else:
            options["session.timeout.ms"] = settings.session_timeout_ms
            options["heartbeat.interval.ms"] = settings.heartbeat_interval_ms
            options["partition.assignment.strategy"] = settings.assignor
        if settings.idle_ms is not None:
            options["connections.max.idle.ms"] = settings.idle_ms
        if settings.instance_id is not None:
            options["group.instance.id"] = settings.instance_id
        self._consumer = confluent_kafka.Consumer(options, logger=_silent())
        self.subscribe(settings.topics)

    def subscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(
            topics,
            on_assign=lambda _, given: tell("assigned", partitions=len(given)),
            on_revoke=lambda _, taken: tell("revoked", partitions=len(taken)),
        )

    def poll(self, seconds: float) -> None:
        self._consumer.consume(100, timeout=seconds)

    def block(self, seconds: float) -> None:
        time.sleep(seconds)

    def commit(self, how: str) -> None:
        if how == "transaction":
            self._commit_in_transaction()
        else:
            self._consumer.commit(asynchronous=how == "async")

    def _commit_in_transaction(self) -> None:
        if self._producer is None:
            names = {"bootstrap.servers": self._settings.bootstrap, "client.id": self._settings.client_id}
            self._producer = confluent_kafka.Producer({**names, "transactional.id": self._settings.client_id}, logger=_silent())
            self._producer.init_transactions(5)
        positions = [place for place in self._consumer.position(self._consumer.assignment()) if place.offset >= 0]
        self._producer.begin_transaction()
        try:
            self._producer.send_offsets_to_transaction(positions, self._consumer.consumer_group_metadata(), 5)
            self._producer.commit_transaction(5)
        except confluent_kafka.KafkaException as error:
            if error.args[0].txn_requires_abort():
                self._producer.abort_transaction(5)
            else:
                self._producer = None
            raise

    def leave(self) -> None:
        self._consumer.unsubscribe()

    def close(self) -> None:
        self._consumer.close()


def _silent() -> logging.Logger:
    logger = logging.getLogger("silent")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


run(Confluent())
