"""One connection through a tap: the client's, and the tap's own to the broker, tied together.

A slow reader on one side must slow the other side down, or the tap's memory fills; either side may close one direction only, with its last
frames still to be answered; and TLS cannot do that, so what ends there ends both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Final, Protocol, cast

from streaming.mirror.rewriting.stand_in import FirstRequest, Place
from streaming.mirror.rewriting.walk import UnrewritableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streaming.mirror.conversation import Conversation
    from streaming.mirror.listener import Listener
    from streaming.mirror.rewriting.answers import AnswerRewriter
    from streaming.mirror.rewriting.stand_in import StandIn
    from streaming.mirror.tap_tls import TapTls

DIAL_TIMEOUT_S: Final = 10.0


class Owner(Protocol):
    """The tap, as its connections need it."""

    tls: TapTls
    stand_in: StandIn | None
    resolved: Mapping[str, str]  #: address of a broker by its name, where the system's own is not to be taken

    def now_us(self) -> int: ...
    def opened(self, bridge: Bridge) -> str: ...
    def conversation(self, bridge: Bridge, listener: Listener, client_address: str) -> Conversation: ...
    def reached(self, listener: Listener) -> None: ...
    def not_reached(self, listener: Listener, client_address: str, why: str) -> None: ...
    def refused(self, listener: Listener, client_address: str, why: str) -> None: ...
    def cannot_rewrite(self, name: str, listener: Listener, client_address: str, why: str) -> None: ...
    def ended(self, bridge: Bridge) -> None: ...


class Bridge:
    """A client's connection and the tap's own to the broker, tied together."""

    def __init__(self, tap: Owner, listener: Listener) -> None:
        self._tap = tap
        self._listener = listener
        self._conversation: Conversation | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._half_closed = 0
        self._address = ""
        self._early = b""  # what the client sent before it was known to which broker
        self._first_request: FirstRequest | None = None
        self.name = ""
        self.rewriter: AnswerRewriter | None = None
        self.client: asyncio.Transport | None = None
        self.broker: asyncio.Transport | None = None

    def client_connected(self, transport: asyncio.Transport) -> None:
        self.client = transport
        self.name = self._tap.opened(self)
        _as_brokers_do(transport)
        # Until there is somewhere to send it to. Not at once: asyncio up to Python 3.11.3 begins to read only now, paused or not.
        asyncio.get_running_loop().call_soon(transport.pause_reading)
        self._address = (transport.get_extra_info("peername") or ("",))[0]
        stand_in = self._tap.stand_in
        if stand_in is not None:
            self.rewriter = stand_in.rewriter(Place(*transport.get_extra_info("sockname")[:2]))
            self._first_request = FirstRequest()
        if stand_in is not None and stand_in.by_name:
            self._dialling = asyncio.get_running_loop().create_task(self._dial_by_name(stand_in))
            return
        self._conversation = self._tap.conversation(self, self._listener, self._address)
        self._dialling = asyncio.get_running_loop().create_task(self._dial_and_begin_tls())

    async def _dial_and_begin_tls(self) -> None:
        """The broker comes first: what the client sends with the last word of its handshake can then be passed on."""
        if await self._dial():
            await self._begin_tls()

    async def _dial_by_name(self, stand_in: StandIn) -> None:
        """Shake hands with the client, and connect to the broker that it has named in that."""
        if not await self._begin_tls() or self.client is None:
            return
        self.client.pause_reading()
        node_id = stand_in.node_named(self._tap.tls.name_asked(self.client))
        if node_id is not None:
            self._listener = stand_in.listener(node_id, self._listener.host)
        self._conversation = self._tap.conversation(self, self._listener, self._address)
        if await self._dial() and self.client is not None:
            early, self._early = self._early, b""
            if early:
                self.client_sent(early)
            self.client.resume_reading()

    async def _dial(self) -> bool:
        try:
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                behind = self._tap.tls.behind
                await asyncio.get_running_loop().create_connection(
                    lambda: _BrokerSide(self),
                    self._tap.resolved.get(self._listener.broker_host, self._listener.broker_host),
                    self._listener.broker_port,
                    ssl=behind,
                    server_hostname=self._listener.broker_host if behind else None,
                )
        except (OSError, TimeoutError) as error:
            self._tap.not_reached(self._listener, self._address, str(error) or "timed out")
            self.end()
            return False
        return True

    def broker_connected(self, transport: asyncio.Transport) -> None:
        self.broker = transport
        _as_brokers_do(transport)
        self._tap.reached(self._listener)
        if self.client is None:
            transport.abort()
        elif self._tap.tls.front is None:
            self.client.resume_reading()

    async def _begin_tls(self) -> bool:
        """Shake hands with the client, if it uses TLS."""
        client, front = self.client, self._tap.tls.front
        if client is None or front is None:
            return False
        try:
            self.client = await asyncio.get_running_loop().start_tls(
                client, client.get_protocol(), front, server_side=True, ssl_handshake_timeout=DIAL_TIMEOUT_S
            )
        except (OSError, TimeoutError) as error:
            self._tap.refused(self._listener, self._address, str(error) or "the handshake was not finished")
            self.client_gone()
            return False
        return True

    def client_sent(self, data: bytes) -> None:
        if self._conversation is None and self.client is not None:
            self._early += data
            return
        at_us = self._tap.now_us()
        if self.broker is not None:
            self.broker.write(data if self._first_request is None else self._first_request.feed(data))
        if self._conversation is not None:
            self._conversation.client_sent(data, at_us)

    def broker_sent(self, data: bytes) -> None:
        at_us = self._tap.now_us()
        if self.rewriter is not None:
            self._rewrite(self.rewriter, data, at_us)
            return
        if self.client is not None:
            self.client.write(data)
        if self._conversation is not None:
            self._conversation.broker_sent(data, at_us)

    def _rewrite(self, rewriter: AnswerRewriter, data: bytes, at_us: int) -> None:
        if self._conversation is None or self.client is None:
            return
        self._conversation.broker_sent(data, at_us)
        if self.client.is_closing():
            return  # it could not be followed
        try:
            answers = rewriter.feed(data)
        except UnrewritableError as error:
            self.cannot_rewrite(str(error))
        except Exception as error:  # better no answer than one that was not looked at
            self.cannot_rewrite(f"internal error: {error!r}")
        else:
            self.client.write(answers)

    def cannot_rewrite(self, why: str) -> None:
        """End the connection, before anything is passed on that could not be rewritten."""
        self._tap.cannot_rewrite(self.name, self._listener, self._address, why)
        self.end()

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

    def __init__(self, bridge: Bridge) -> None:
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


class ClientSide(_Side):
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


_KEEPALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""Option, as the system names it → seconds, or probes. Load balancers and NAT forget a connection after some minutes of silence, and a
JoinGroup may wait for longer."""


def _as_brokers_do(transport: asyncio.Transport) -> None:
    """Small frames are sent at once, and what is silent is kept alive: a network must not forget it, and a dead host is noticed.

    asyncio asks for the former itself, but not where it was given a socket that names no protocol, as ``socket.create_server`` makes it.
    """
    with contextlib.suppress(OSError):
        own = transport.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                own.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
