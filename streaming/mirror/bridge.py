"""One connection through a tap: the client's, and the tap's own to the broker, tied together.

The traps: a slow reader on one side must slow the other side down, or the tap's memory fills; either side may close one direction only,
with its last frames still to be answered; and TLS cannot do that, so what ends there ends both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from streaming.mirror.conversation import Conversation
    from streaming.mirror.listener import Listener
    from streaming.mirror.tap_tls import TapTls

DIAL_TIMEOUT_S: Final = 10.0


class Owner(Protocol):
    """The tap, as its connections need it."""

    tls: TapTls

    def now_us(self) -> int: ...
    def opened(self, bridge: Bridge, listener: Listener, client_address: str) -> Conversation: ...
    def reached(self, listener: Listener) -> None: ...
    def not_reached(self, listener: Listener, why: str) -> None: ...
    def refused(self, listener: Listener, client_address: str, why: str) -> None: ...
    def ended(self, bridge: Bridge) -> None: ...


class Bridge:
    """A client's connection and the tap's own to the broker, tied together."""

    def __init__(self, tap: Owner, listener: Listener) -> None:
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


def _keep_alive(transport: asyncio.Transport) -> None:
    """A peer whose host has died is noticed, as it would be without a tap: brokers and clients both ask for it."""
    with contextlib.suppress(OSError):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
