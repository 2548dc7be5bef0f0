"""Time, connections and the capture of a simulated group. Time is in microseconds; nothing waits for real.

A connection keeps its order in both directions, and the broker works on one request of a connection at a time: the next one is taken
up when the one before is answered. The capture stands between client and broker and sees each frame some time after it was sent.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from coordinator_model import wire
from coordinator_model.wire.record import Kind, MirrorRecord

START_US = 1_700_000_000_000_000
MS = 1_000
SECOND = 1_000_000

Reply = Callable[[Any], None]


class World:
    def __init__(self, random: Random, group: str = "g") -> None:
        self.random = random
        self.group = group
        self.now_us = START_US
        self.records: list[MirrorRecord] = []
        self.connections = 0
        self.slow_until_us = 0  #: until when replication is slow
        self.brokers: dict[str, Any] = {}
        self.tamper: Callable[[Connection, Asked, Any], Any] = lambda _connection, _asked, body: body
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._hosts: dict[str, str] = {}

    def at(self, delay_us: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now_us + max(0, int(delay_us)), self._count, action))

    def run(self, until_us: int) -> None:
        while self._events and self._events[0][0] <= until_us:
            self.now_us, _, action = heapq.heappop(self._events)
            action()
        self.now_us = until_us

    def tick(self) -> None:
        self.capture(Kind.TICK, None, None, b"")
        self.at(SECOND, self.tick)

    def latency_us(self) -> int:
        """Mostly a fraction of a millisecond, now and then a stall."""
        return int(self.random.expovariate(1 / 400)) + (self.random.randrange(50_000) if self.random.random() < 0.02 else 20)

    def replication_us(self) -> int:
        """How long the log's followers take: mostly milliseconds, up to twice the broker's patience while one of them is slow."""
        return self.random.randrange(1, 10_000 if self.now_us < self.slow_until_us else 20) * MS

    def address_of(self, client_id: str) -> str:
        """Every process has a host of its own."""
        return self._hosts.setdefault(client_id, f"10.0.0.{len(self._hosts) + 1}")

    def capture(self, kind: Kind, connection: Connection | None, asked: Asked | None, frame: bytes) -> None:
        self.records.append(
            MirrorRecord(
                partition=0,
                offset=len(self.records),
                group=None if connection is None else self.group,
                kind=kind,
                at_us=self.now_us,
                cluster="c1",
                broker="" if connection is None else connection.broker,
                connection="" if connection is None else connection.name,
                exchange=-1 if asked is None else asked.exchange,
                api_key=-1 if asked is None else asked.api_key,
                api_version=-1 if asked is None else asked.api_version,
                correlation_id=0 if asked is None else asked.exchange,
                client_id=None if connection is None else connection.client_id,
                client_address="" if connection is None else connection.address,
                client_software="" if connection is None else "reference 1.0",
                cut_bytes=0,
                queued_behind=0 if asked is None or kind is not Kind.REQUEST else asked.queued_behind,
                frame=frame,
            )
        )


class Asked:
    """One request on its way."""

    def __init__(self, body: Any, api_version: int, exchange: int, reply: Reply) -> None:
        self.body = body
        self.api_key: int = body.API_KEY
        self.api_version = api_version
        self.exchange = exchange
        self.reply = reply
        self.queued_behind = 0


VERSIONS: dict[str, dict[int, int]] = {
    "newest": {8: 8, 11: 9, 12: 4, 13: 5, 14: 5},
    "3.9": {8: 8, 11: 9, 12: 4, 13: 5, 14: 5},
    "2.8": {8: 8, 11: 7, 12: 4, 13: 4, 14: 5},
    "2.6": {8: 8, 11: 7, 12: 4, 13: 4, 14: 5},
    "2.4": {8: 8, 11: 6, 12: 4, 13: 4, 14: 4},  # several members leave at once
    "2.3": {8: 7, 11: 5, 12: 3, 13: 2, 14: 3},  # the first with static members (KIP-345)
    "2.2": {8: 6, 11: 4, 12: 2, 13: 2, 14: 2},  # a member id is given before the join (KIP-394)
    "2.0": {8: 4, 11: 2, 12: 1, 13: 1, 14: 1},  # the join itself gives the id
    "0.9": {8: 2, 11: 0, 12: 0, 13: 0, 14: 0},  # the session timeout is the rebalance timeout (before KIP-62)
}
"""Kafka release → API key → the highest version that a client or a broker of it knows."""


class Connection:
    """A client's connection to one broker, with the capture in the middle."""

    def __init__(self, world: World, client_id: str, broker: str, versions: dict[int, int]) -> None:
        world.connections += 1
        self.world = world
        self.client_id = client_id
        self.broker = broker
        self.versions = versions
        self.name = f"{client_id}/{world.connections}"
        self.address = world.address_of(client_id)
        self.closed = False
        self._exchange = 0
        self._unanswered = 0
        self._queue: deque[Asked] = deque()
        self._busy = False
        self._arrives = {"tap": 0, "broker": 0, "back": 0, "client": 0}

    def ask(self, body: Any, reply: Reply) -> None:
        if self.closed:
            return
        asked = Asked(body, self.versions[body.API_KEY], self._exchange, reply)
        self._exchange += 1
        self._travel("tap", lambda: self._seen(asked))

    def close(self) -> None:
        """The client goes away. What the broker still answers on this connection reaches nobody."""
        if not self.closed:
            self.closed = True
            self.world.capture(Kind.CLOSE, self, None, b"")

    def _travel(self, leg: str, action: Callable[[], None]) -> None:
        """Frames of one direction never overtake each other."""
        arrives = max(self.world.now_us + self.world.latency_us(), self._arrives[leg])
        self._arrives[leg] = arrives
        self.world.at(arrives - self.world.now_us, lambda: None if self.closed else action())

    def _seen(self, asked: Asked) -> None:
        asked.queued_behind = self._unanswered
        self._unanswered += 1
        frame = wire.encode_request(
            asked.body, api_version=asked.api_version, correlation_id=asked.exchange, client_id=self.client_id
        )
        self.world.capture(Kind.REQUEST, self, asked, frame)
        self._travel("broker", lambda: self._arrived(asked))

    def _arrived(self, asked: Asked) -> None:
        self._queue.append(asked)
        self._next()

    def _next(self) -> None:
        if self._busy or not self._queue:
            return
        self._busy = True
        asked = self._queue.popleft()
        done = False

        def answer(body: Any) -> None:
            nonlocal done
            assert not done, f"answered twice: {asked.body}"
            done = True
            body = self.world.tamper(self, asked, body)
            if body is not None:
                self._travel("back", lambda: self._returned(asked, body))
            self._busy = False
            self.world.at(0, self._next)  # not at once: the coordinator is in the middle of something

        self.world.brokers[self.broker].handle(self, asked, answer)

    def _returned(self, asked: Asked, body: Any) -> None:
        self._unanswered -= 1
        if isinstance(body, wire.JoinGroupResponse):
            if asked.api_version < 7:  # before KIP-559 the name is never null
                body.protocol_name = body.protocol_name or ""
            if body.error_code and self.world.brokers[self.broker].release < (2, 2):
                body.generation_id = 0
        frame = wire.encode_response(body, api_version=asked.api_version, correlation_id=asked.exchange)
        self.world.capture(Kind.RESPONSE, self, asked, frame)
        self._travel("client", lambda: asked.reply(body))
