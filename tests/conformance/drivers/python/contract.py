"""The contract of every driver: orders as JSON lines on standard input, events as JSON lines on standard output.

Orders: ``join`` (with the fields of :class:`Settings`; it subscribes too), ``subscribe`` (``topics``), ``block`` (``ms`` until the next
poll), ``commit``, ``leave`` (the group, and stay), ``close``. The end of standard input ends the driver without a goodbye. Events:
``started``, ``assigned`` and ``revoked`` (``partitions``: a number), ``committed``, ``failed`` (``error``), ``left``, ``closed``.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from dataclasses import dataclass, fields
from typing import Any, Protocol

POLL_S = 0.1
COMMIT_S = 1.0


@dataclass(frozen=True)
class Settings:
    """What a consumer is told; times in milliseconds."""

    bootstrap: str
    group: str
    client_id: str
    topics: list[str]
    assignor: str  #: range, roundrobin or cooperative-sticky
    commits: str  #: auto (the library's own), never, or sync, async, transaction once a second
    instance_id: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    idle_ms: int | None = None  #: connections.max.idle.ms; not every driver sets it
    user: str | None = None  #: logs in by SCRAM-SHA-512; not every driver can
    password: str | None = None
    ca: str | None = None  #: a file with the certificate that signs the brokers'; without it a login has no TLS
    protocol: str = "classic"  #: or consumer, share, streams, which leave session, heartbeats and assignor to the broker

    @classmethod
    def of(cls, order: dict[str, Any]) -> Settings:
        return cls(**{field.name: order[field.name] for field in fields(cls) if field.name in order})


class Driver(Protocol):
    """One library's consumer; whatever it raises is told and survived."""

    def join(self, settings: Settings) -> None: ...
    def subscribe(self, topics: list[str]) -> None: ...
    def poll(self, seconds: float) -> None: ...
    def block(self, seconds: float) -> None: ...
    def commit(self, how: str) -> None: ...
    def leave(self) -> None: ...
    def close(self) -> None: ...


def tell(event: str, **details: Any) -> None:
    print(json.dumps({"event": event, **details}), flush=True)


def orders() -> queue.SimpleQueue[dict[str, Any]]:
    """The orders as they come in, read by a thread of its own."""
    coming: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            coming.put(json.loads(line))
        os._exit(1)  # the parent is gone

    threading.Thread(target=read, daemon=True).start()
    return coming


def run(driver: Driver) -> None:
    """Do what is ordered, and poll and commit between."""
    coming = orders()
    tell("started")
    how, committed = "auto", time.monotonic()
    joined = False
    while True:
        try:
            order = coming.get_nowait() if joined else coming.get()
        except queue.Empty:
            order = {"do": "poll"}
        try:
            match order["do"]:
                case "poll":
                    driver.poll(POLL_S)
                    if how not in ("auto", "never") and time.monotonic() - committed >= COMMIT_S:
                        committed = time.monotonic()
                        driver.commit(how)
                case "join":
                    how = order["commits"]
                    driver.join(Settings.of(order))
                    joined = True
                case "subscribe":
                    driver.subscribe(order["topics"])
                    joined = True
                case "block":
                    driver.block(order["ms"] / 1000)
                case "commit":
                    driver.commit("sync")
                    tell("committed")
                case "leave":
                    driver.leave()
                    joined = False
                    tell("left")
                case "close":
                    driver.close()
                    tell("closed")
                    return
        except Exception as error:
            tell("failed", error=f"{type(error).__name__}: {error}")
            if order["do"] == "close":
                raise
