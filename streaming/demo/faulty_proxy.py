"""A faulty proxy in front of a broker: it changes, delays or drops selected answers, and forwards everything else byte for byte.

A list of :class:`Tamper` rules defines what it does. It records what it did, so that findings can be compared with it. It runs between the
tap and the broker, so that the monitor sees the same answers as the clients.

A response contains neither its API key nor its version, so the proxy remembers the requests of each connection. A client expects
answers in order, so a delayed answer also delays all later ones on its connection, as a slow broker would.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self

from coordinator_model import wire

_START_TIMEOUT_S: Final = 10.0
_PIECE: Final = 64 * 1024


class ProxiedExchange(NamedTuple):
    """A request and the broker's answer to it."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    request: Any  #: body
    response: Any  #: body


class Swallow(NamedTuple):
    """Drop the answer; the client never gets it."""


class Forge(NamedTuple):
    """Send this body instead of the broker's, or the broker's own if ``body`` is None, after ``delay_s``."""

    body: wire.Response | None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Tamper:
    """One rule for falsifying answers.

    :param api_keys: only answers to these requests are decoded and passed to ``lie``.
    :param lie: returns what to do with an answer; None forwards it unchanged. It runs in the proxy's thread.
    """

    name: str
    api_keys: frozenset[int]
    lie: Callable[[ProxiedExchange], Forge | Swallow | None]


class Lie(NamedTuple):
    """A record of one falsified answer."""

    at_us: int
    tamper: str
    exchange: ProxiedExchange
    fault: Forge | Swallow


class HostileProxy:
    """Forwards connections from ``listen`` to ``broker``; a context manager. It runs in a thread of its own.

    :param listen: ``host:port``, as is ``broker``.
    """

    def __init__(self, *, listen: str, broker: str, tampers: Sequence[Tamper]) -> None:
        self.lies: list[Lie] = []
        self._listen = _split(listen)
        self._broker = _split(broker)
        self._tampers = tuple(tampers)
        self._interesting: frozenset[int] = frozenset().union(*(tamper.api_keys for tamper in self._tampers))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="hostile proxy", daemon=True)
        self._started: Future[None] = Future()
        self._stop = asyncio.Event()

    def __enter__(self) -> Self:
        """Start to listen.

        :raises OSError: when the address is in use.
        """
        self._thread.start()
        self._started.result(_START_TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has already ended
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_START_TIMEOUT_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        host, port = self._listen
        try:
            server = await asyncio.start_server(self._accept, host, port)
        except OSError as error:
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        await self._stop.wait()
        server.close()  # the runner cancels the tasks of open connections

    async def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            broker, to_broker = await asyncio.open_connection(*self._broker)
        except OSError:
            to_client.close()
            return
        asked: dict[int, bytes] = {}
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._requests(client, to_broker, asked))
                both.create_task(self._responses(broker, to_client, asked))
        except* (OSError, asyncio.IncompleteReadError):
            pass  # one side closed
        finally:
            to_client.close()
            to_broker.close()

    async def _requests(self, client: asyncio.StreamReader, to_broker: asyncio.StreamWriter, asked: dict[int, bytes]) -> None:
        while True:
            size = await _size(client)
            head = await client.readexactly(min(size, 8))
            to_broker.write(struct.pack(">i", size) + head)
            if len(head) == 8 and int.from_bytes(head[:2], "big", signed=True) in self._interesting:
                rest = await client.readexactly(size - 8)
                asked[int.from_bytes(head[4:], "big", signed=True)] = head + rest
                to_broker.write(rest)
                await to_broker.drain()
            else:
                await _pass_on(client, to_broker, size - len(head))

    async def _responses(self, broker: asyncio.StreamReader, to_client: asyncio.StreamWriter, asked: dict[int, bytes]) -> None:
        while True:
            size = await _size(broker)
            head = await broker.readexactly(min(size, 4))
            request = asked.pop(int.from_bytes(head, "big", signed=True), None)
            if request is None:
                to_client.write(struct.pack(">i", size) + head)
                await _pass_on(broker, to_client, size - len(head))
                continue
            frame = await self._tampered(request, head + await broker.readexactly(size - len(head)))
            if frame is not None:
                to_client.write(struct.pack(">i", len(frame)) + frame)
                await to_client.drain()

    async def _tampered(self, request: bytes, response: bytes) -> bytes | None:
        """Return the frame for the client: the broker's, a falsified one, or None to drop it."""
        exchange = _exchange(request, response)
        for tamper in self._tampers if exchange is not None else ():
            assert exchange is not None
            fault = tamper.lie(exchange) if exchange.api_key in tamper.api_keys else None
            if fault is None:
                continue
            self.lies.append(Lie(time.time_ns() // 1000, tamper.name, exchange, fault))
            if isinstance(fault, Swallow):
                return None
            await asyncio.sleep(fault.delay_s)
            if fault.body is not None:
                return wire.encode_response(fault.body, api_version=exchange.api_version, correlation_id=exchange.correlation_id)
            break
        return response


def success_for(group: str, error: int) -> Tamper:
    """Return a rule that turns one error code into success in the group's Heartbeat and OffsetCommit answers.

    The coordinator then seems not to fence.
    """

    def lie(exchange: ProxiedExchange) -> Forge | None:
        if exchange.request.group_id != group:
            return None
        response = exchange.response
        if isinstance(response, wire.HeartbeatResponse) and response.error_code == error:
            return Forge(replace(response, error_code=0))
        if isinstance(response, wire.OffsetCommitResponse):
            topics = tuple(
                replace(
                    topic,
                    partitions=tuple(
                        replace(partition, error_code=0) if partition.error_code == error else partition
                        for partition in topic.partitions
                    ),
                )
                for topic in response.topics
            )
            if topics != response.topics:
                return Forge(replace(response, topics=topics))
        return None

    keys = frozenset({wire.HeartbeatRequest.API_KEY, wire.OffsetCommitRequest.API_KEY})
    return Tamper(f"error {error} of group {group} becomes success", keys, lie)


def _exchange(request: bytes, response: bytes) -> ProxiedExchange | None:
    """Return both frames decoded; None if one cannot be decoded, so that the answer is forwarded unchanged."""
    try:
        header = wire.decode_request_header(request)
        key, version = header.api_key, header.api_version
        if version not in wire.supported_versions(key):
            return None
        asked: wire.Message = wire.decode(request, request=True, api_key=key, api_version=version).body
        answered: wire.Message = wire.decode(response, request=False, api_key=key, api_version=version).body
    except wire.DecodeError:
        return None
    return ProxiedExchange(key, version, header.correlation_id, header.client_id, asked, answered)


async def _size(stream: asyncio.StreamReader) -> int:
    size = int.from_bytes(await stream.readexactly(4), "big", signed=True)
    if size < 0:
        raise OSError("not a Kafka frame")
    return size


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter, left: int) -> None:
    """Forward the rest of a frame in pieces, without decoding it."""
    while left:
        piece = await source.read(min(left, _PIECE))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
        target.write(piece)
        await target.drain()
    await target.drain()


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
