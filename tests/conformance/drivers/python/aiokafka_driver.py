"""aiokafka."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import aiokafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from contract import Settings, run, tell

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


class Listener(aiokafka.ConsumerRebalanceListener):
    async def on_partitions_assigned(self, assigned: Any) -> None:
        tell("assigned", partitions=len(assigned))

    async def on_partitions_revoked(self, revoked: Any) -> None:
        tell("revoked", partitions=len(revoked))


class AioKafka:
    """Its loop runs in a thread, so that a consumer that is not polled still beats, as in an application that waits for something."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._producer: Any = None

    def join(self, settings: Settings) -> None:
        import threading

        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._settings = settings
        self._call(self._join(settings))

    async def _join(self, settings: Settings) -> None:
        self._consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap,
            client_id=settings.client_id,
            group_id=settings.group,
            group_instance_id=settings.instance_id,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.rebalance_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            partition_assignment_strategy=[ASSIGNORS[settings.assignor]],
            auto_offset_reset="earliest",
            enable_auto_commit=settings.commits == "auto",
            auto_commit_interval_ms=1_000,
            metadata_max_age_ms=2_000,
        )
        self._consumer.subscribe(settings.topics, listener=Listener())
        await self._consumer.start()

    def subscribe(self, topics: list[str]) -> None:
        async def subscribe() -> None:
            self._consumer.subscribe(topics, listener=Listener())

        self._call(subscribe())

    def poll(self, seconds: float) -> None:
        self._call(self._consumer.getmany(timeout_ms=int(seconds * 1000), max_records=100))

    def block(self, seconds: float) -> None:
        time.sleep(seconds)

    def commit(self, how: str) -> None:
        if how == "transaction":
            self._call(self._commit_in_transaction())
        elif how == "async":
            asyncio.run_coroutine_threadsafe(self._consumer.commit(), self._loop)
        else:
            self._call(self._consumer.commit())

    async def _commit_in_transaction(self) -> None:
        if self._producer is None:
            names = {"bootstrap_servers": self._settings.bootstrap, "client_id": self._settings.client_id}
            self._producer = aiokafka.AIOKafkaProducer(**names, transactional_id=self._settings.client_id)
            await self._producer.start()
        async with self._producer.transaction():
            places = {place: await self._consumer.position(place) for place in self._consumer.assignment()}
            await self._producer.send_offsets_to_transaction(places, self._settings.group)

    def leave(self) -> None:
        async def leave() -> None:
            self._consumer.unsubscribe()

        self._call(leave())

    def close(self) -> None:
        if self._producer is not None:
            self._call(self._producer.stop())
        self._call(self._consumer.stop())

    def _call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


run(AioKafka())
