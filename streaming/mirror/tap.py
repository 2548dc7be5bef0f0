"""The tap: a TCP proxy before each broker that passes every byte on as it came and mirrors the frames of group coordination. If it is
given certificates, it ends the clients' TLS and speaks TLS to the brokers.

The broker advertises the tap's address, so no response has to be rewritten. Bytes are sent on first and looked at afterwards;
nothing that happens while looking at them, nor a mirror topic that is away, holds the clients up.

The traps: a slow reader on one side must slow the other side down, or the tap's memory fills; either side may close one direction only,
with its last frames still to be answered; and TLS cannot do that, so what ends there ends both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self, cast

from coordinator_model.wire.record import Kind, MirrorRecord, tick
from streaming.mirror.client_software import ClientSoftware
from streaming.mirror.conversation import FRAME_CAP, Conversation
from streaming.mirror.listener import TapError, written
from streaming.mirror.tap_tls import TapTls
from streaming.mirror.topic_names import TopicNames

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from streaming.mirror.listener import Listener
    from streaming.mirror.producer import MirrorSink

TICK_S: Final = 1.0
DIAL_TIMEOUT_S: Final = 10.0
SAY_EVERY_S: Final = 60.0

# A clock set back by less than this stands still until it has caught up; a bigger step is believed.
_STEP_BACK_US: Final = 5_000_000

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TapStats:
    """What a tap has seen since its start."""

    open_connections: int = 0
    connections: int = 0
    unreachable: Counter[str] = field(default_factory=Counter)  #: connections turned away since their broker was away, by broker
    refused: int = 0  #: connections whose TLS failed
    opaque: int = 0  #: connections that could not be followed (TLS that passes through, not Kafka)
    frames: int = 0  #: requests and responses mirrored


@dataclass(slots=True)
class _Outage:
    """A broker that cannot be reached, by the monotonic clock."""

    since: float
    said_at: float
    turned_away: int


class Tap:
    """Listens for clients and mirrors what they say with their brokers. A context manager, or ``start`` and ``stop``.

    :param sink: takes the mirror records.
    :param cluster: the cluster's name in the records.
    :param tls: certificates, if it speaks TLS.
    """

    def __init__(
        self,
        listeners: Sequence[Listener],
        sink: MirrorSink,
        *,
        cluster: str = "",
        frame_cap: int = FRAME_CAP,
        tick_s: float = TICK_S,
        tls: TapTls | None = None,
    ) -> None:
        self.stats = TapStats()
        self._listeners = tuple(listeners)
        self._sink = sink
        self._topics = TopicNames()
        self._software = ClientSoftware()
        self._cluster = cluster
        self._frame_cap = frame_cap
        self._tick_s = tick_s
        self.tls = tls or TapTls()
        self._name = f"{int(time.time()):x}{os.urandom(3).hex()}"
        self._last_us = 0
        self._servers: list[asyncio.Server] = []
        self._bridges: set[_Bridge] = set()
        self._outages: dict[str, _Outage] = {}
        self._ticker: asyncio.Handle | None = None
        self._all_ended: asyncio.Future[None] | None = None

    @property
    def addresses(self) -> list[str]:
        """The ``host:port`` of each listener, as bound."""
        return [written(*server.sockets[0].getsockname()[:2]) for server in self._servers]

    @property
    def brokers(self) -> list[str]:
        """The ``host:port`` of each broker that it stands before."""
        return sorted({listener.broker for listener in self._listeners})

    async def start(self) -> Self:
        """Listen.

        :raises TapError: when an address is taken or not of this machine, or a broker's name cannot be resolved.
        """
        loop = asyncio.get_running_loop()
        try:
            for listener in self._listeners:
                await self._check_broker(listener)
                self._servers.append(await self._listen(listener))
        except BaseException:
            await self.stop()
            raise
        self._ticker = loop.call_soon(self._tick)
        return self

    async def stop(self) -> None:
        """Stop listening, end the connections and wait until each has said so in the mirror."""
        if self._ticker is not None:
            self._ticker.cancel()
        for server in self._servers:
            server.close()
        for bridge in tuple(self._bridges):
            bridge.end()
        if self._bridges:
            self._all_ended = asyncio.get_running_loop().create_future()
            await self._all_ended
        self._servers.clear()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _check_broker(self, listener: Listener) -> None:
        try:
            await asyncio.get_running_loop().getaddrinfo(listener.broker_host, listener.broker_port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise TapError(f"cannot resolve broker {listener.broker}: {error.strerror}; check --listen") from None

    async def _listen(self, listener: Listener) -> asyncio.Server:
        try:
            return await asyncio.get_running_loop().create_server(
                lambda: _ClientSide(_Bridge(self, listener)), listener.host, listener.port, backlog=512
            )
        except OSError as error:
            why = _why_not(error)
            where = written(listener.host, listener.port)
            raise TapError(f"cannot listen on {where}: {why}; end what uses it or choose another address with --listen") from None

    def _tick(self) -> None:
        self._ticker = asyncio.get_running_loop().call_later(self._tick_s, self._tick)
        self.tls.renew()
        self._write(tick(self.now_us(), cluster=self._cluster, connection=self._name))

    def now_us(self) -> int:
        """Capture time, microseconds since the epoch; does not run backwards for a clock that is being adjusted."""
        now = time.time_ns() // 1000
        if self._last_us - _STEP_BACK_US < now < self._last_us:
            now = self._last_us
        self._last_us = now
        return now

    def opened(self, bridge: _Bridge, listener: Listener, client_address: str) -> Conversation:
        """A client has connected."""
        self._bridges.add(bridge)
        self.stats.open_connections += 1
        self.stats.connections += 1
        name = f"{self._name}-{self.stats.connections}"

        def opaque(reason: str) -> None:
            self.stats.opaque += 1
            log.warning("connection %s of %s to %s is passed on unread: %s", name, client_address, listener.broker, reason)

        return Conversation(
            self._write,
            cluster=self._cluster,
            broker=listener.broker,
            connection=name,
            client_address=client_address,
            at_us=self.now_us(),
            frame_cap=self._frame_cap,
            on_opaque=opaque,
            topics=self._topics,
            software=self._software,
        )

    def not_reached(self, listener: Listener, why: str) -> None:
        """A client is turned away: said at once, and then once a minute with a count, for clients try again many times a second."""
        broker, now = listener.broker, time.monotonic()
        self.stats.unreachable[broker] += 1
        outage = self._outages.get(broker)
        if outage is None:
            self._outages[broker] = _Outage(now, now, 1)
            log.warning("broker %s cannot be reached: %s; its clients are turned away until it can", broker, why)
            return
        outage.turned_away += 1
        if now - outage.said_at >= SAY_EVERY_S:
            outage.said_at = now
            log.warning(
                "broker %s has not been reached for %.0f s: %s; %d connections were turned away",
                *(broker, now - outage.since, why, outage.turned_away),
            )

    def refused(self, listener: Listener, client_address: str, why: str) -> None:
        """The TLS of a client's connection has failed: it does not reach Kafka."""
        self.stats.refused += 1
        log.warning("the TLS connection of %s to broker %s failed: %s", client_address, listener.broker, why)

    def reached(self, listener: Listener) -> None:
        """A connection to the broker is there."""
        outage = self._outages.pop(listener.broker, None)
        if outage is not None:
            log.warning(
                "broker %s is reached again after %.0f s; %d connections were turned away meanwhile",
                *(listener.broker, time.monotonic() - outage.since, outage.turned_away),
            )

    def ended(self, bridge: _Bridge) -> None:
        """Both sides of a connection are gone."""
        if bridge not in self._bridges:
            return  # the broker's side came up just when the client left
        self._bridges.discard(bridge)
        self.stats.open_connections -= 1
        if self._all_ended is not None and not self._bridges:
            self._all_ended.set_result(None)

    def _write(self, record: MirrorRecord) -> None:
        if record.kind is Kind.REQUEST or record.kind is Kind.RESPONSE:
            self.stats.frames += 1
        try:
            self._sink.write(record)
        except Exception as error:  # a sink must not raise; if one does, the clients are not to suffer for it
            log.error("the mirror's sink failed: %r", error)  # noqa: TRY400 - a user reads this log


class _Bridge:
    """A client's connection and the tap's own to the broker, tied together."""

    def __init__(self, tap: Tap, listener: Listener) -> None:
        self._tap = tap
        self._listener = listener
        self._conversation: Conversation | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._half_closed = 0
        self.client: asyncio.Transport | None = None
        self.broker: asyncio.Transport | None = None

    def client_connected(self, transport: asyncio.Transport) -> None:
        self.client = transport
        _keep_alive(transport)
        # Until there is somewhere to send it to. Not at once: asyncio up to Python 3.11.3 begins to read only now, paused or not.
        asyncio.get_running_loop().call_soon(transport.pause_reading)
        peer = transport.get_extra_info("peername")
        self._conversation = self._tap.opened(self, self._listener, peer[0] if peer else "")
        self._dialling = asyncio.get_running_loop().create_task(self._dial())

    async def _dial(self) -> None:
        try:
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                behind = self._tap.tls.behind
                await asyncio.get_running_loop().create_connection(
                    lambda: _BrokerSide(self),
                    self._listener.broker_host,
                    self._listener.broker_port,
                    ssl=behind,
                    server_hostname=self._listener.broker_host if behind else None,
                )
        except (OSError, TimeoutError) as error:
            self._tap.not_reached(self._listener, str(error) or "timed out")
            self.end()
        else:
            await self._begin_tls()

    def broker_connected(self, transport: asyncio.Transport) -> None:
        self.broker = transport
        _keep_alive(transport)
        self._tap.reached(self._listener)
        if self.client is None:
            transport.abort()
        elif self._tap.tls.front is None:
            self.client.resume_reading()

    async def _begin_tls(self) -> None:
        """Shake hands with the client. The broker is there by now: what the client sends with its last word of it can be passed on."""
        client, front = self.client, self._tap.tls.front
        if client is None or front is None:
            return
        address = client.get_extra_info("peername")[0]
        try:
            self.client = await asyncio.get_running_loop().start_tls(
                client, client.get_protocol(), front, server_side=True, ssl_handshake_timeout=DIAL_TIMEOUT_S
            )
        except (OSError, TimeoutError) as error:
            self._tap.refused(self._listener, address, str(error) or "the handshake was not finished")
            self.client_gone()

    def client_sent(self, data: bytes) -> None:
        at_us = self._tap.now_us()
        if self.broker is not None:
            self.broker.write(data)
        if self._conversation is not None:
            self._conversation.client_sent(data, at_us)

    def broker_sent(self, data: bytes) -> None:
        at_us = self._tap.now_us()
        if self.client is not None:
            self.client.write(data)
        if self._conversation is not None:
            self._conversation.broker_sent(data, at_us)

    def client_gone(self) -> None:
        self.client = None
        self._side_gone(self.broker)

    def broker_gone(self) -> None:
        self.broker = None
        self._side_gone(self.client)

    def _side_gone(self, other: asyncio.Transport | None) -> None:
        if self._conversation is not None:
            self._conversation.closed(self._tap.now_us())
            self._conversation = None
        if other is not None:
            other.close()  # after what is still buffered for it
            return
        if self._dialling is not None:
            self._dialling.cancel()
        self._tap.ended(self)

    def half_closed(self, other: asyncio.Transport | None) -> None:
        """One side sends no more; once neither does, the connection is over."""
        self._half_closed += 1
        if other is self.broker and self._conversation is not None:
            self._conversation.client_finished(self._tap.now_us())
        if self._half_closed == 1:
            if other is not None:
                with contextlib.suppress(OSError):
                    other.write_eof()
            return
        for transport in (self.client, self.broker):
            if transport is not None:
                transport.close()  # after what is still buffered for it

    def end(self) -> None:
        for transport in (self.client, self.broker):
            if transport is not None:
                transport.abort()


class _Side(asyncio.Protocol):
    """What both ends of a bridge have in common: back-pressure and half-close are handed to the other end."""

    def __init__(self, bridge: _Bridge) -> None:
        self.bridge = bridge

    @property
    def own(self) -> asyncio.Transport | None:
        raise NotImplementedError

    @property
    def other(self) -> asyncio.Transport | None:
        raise NotImplementedError

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and not self.other.is_closing():
            self.other.resume_reading()

    def eof_received(self) -> bool:
        if any(transport is not None and not transport.can_write_eof() for transport in (self.own, self.other)):
            return False  # TLS on either side: the transport closes, and then the other one
        self.bridge.half_closed(self.other)
        return True


class _ClientSide(_Side):
    @property
    def own(self) -> asyncio.Transport | None:
        return self.bridge.client

    @property
    def other(self) -> asyncio.Transport | None:
        return self.bridge.broker

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.bridge.client_connected(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        self.bridge.client_sent(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it ended makes no difference
        self.bridge.client_gone()


class _BrokerSide(_Side):
    @property
    def own(self) -> asyncio.Transport | None:
        return self.bridge.broker

    @property
    def other(self) -> asyncio.Transport | None:
        return self.bridge.client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.bridge.broker_connected(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        self.bridge.broker_sent(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it ended makes no difference
        self.bridge.broker_gone()


def _keep_alive(transport: asyncio.Transport) -> None:
    """A peer whose host has died is noticed, as it would be without a tap: brokers and clients both ask for it."""
    with contextlib.suppress(OSError):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _why_not(error: OSError) -> str:
    """Why asyncio does not listen; it goes past an address that this machine does not have, and says only in words that none was left."""
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    return os.strerror(error.errno or errno.EADDRNOTAVAIL).lower()
