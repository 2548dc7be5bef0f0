"""The tap: a TCP proxy before each broker that passes every byte on as it came and mirrors the frames of group coordination. If it is
given certificates, it ends the clients' TLS and uses TLS to the brokers.

The broker advertises the tap's address, or a stand-in rewrites the answers that name brokers (``streaming.mirror.rewriting``). Bytes are
sent on first and looked at afterwards; nothing that happens while looking at them, nor a mirror topic that is away, holds the clients up.
Only a tap that rewrites looks at answers first: what it cannot understand might send a client past it, and ends the connection.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from coordinator_model.wire.record import Kind, MirrorRecord, Place, tick
from streaming.mirror.bridge import Bridge, ClientSide
from streaming.mirror.client_software import ClientSoftware
from streaming.mirror.conversation import FRAME_CAP, Conversation
from streaming.mirror.failed_connections import FailedConnections
from streaming.mirror.listener import TapError, written
from streaming.mirror.tap_tls import TapTls
from streaming.mirror.topics import KnownTopics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streaming.mirror.listener import Listener
    from streaming.mirror.producer import MirrorSink
    from streaming.mirror.rewriting.stand_in import StandIn

TICK_S: Final = 1.0
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
    :param tls: certificates, if it uses TLS.
    :param stand_in: its addresses for brokers that advertise others, if it rewrites answers.
    :param resolved: address of a broker by its name, instead of what the system resolves it to.
    :param shares_ports: other processes listen at the same addresses, and the kernel distributes the connections.
    :raises TapError: when these do not fit together.
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
        stand_in: StandIn | None = None,
        resolved: Mapping[str, str] | None = None,
        shares_ports: bool = False,
    ) -> None:
        self.stats = TapStats()
        self._shares_ports = shares_ports
        self._listeners = tuple(listeners)
        self._sink = sink
        self._topics = KnownTopics()
        self._software = ClientSoftware()
        self._cluster = cluster
        self._frame_cap = frame_cap
        self._tick_s = tick_s
        self.tls = tls or TapTls()
        self.stand_in = stand_in
        self.resolved = resolved or {}
        if stand_in is not None:
            stand_in.opens_with(self._open_for)
            if stand_in.by_name and self.tls.front is None:
                raise TapError(
                    "one port for all brokers needs TLS, by whose server name they are told apart: give --tls-certificate"
                )
            if stand_in.by_name:
                self.tls.note_names()
        self._name = f"{int(time.time()):x}{os.urandom(3).hex()}"
        self._place = Place(socket.gethostname(), "")
        self._last_us = 0
        self._servers: list[asyncio.Server] = []
        self._node_servers: list[asyncio.Server] = []
        self._openings: set[asyncio.Task[None]] = set()
        self._bridges: set[Bridge] = set()
        self._outages: dict[str, _Outage] = {}
        self._failed = FailedConnections(self._write, cluster=cluster)
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
            if self.stand_in is not None:
                self._listen_for_known(self.stand_in)
        except BaseException:
            await self.stop()
            raise
        pairs = zip(self.addresses, self._listeners, strict=True)
        self._place = self._place._replace(listeners=",".join(f"{here}={listener.broker}" for here, listener in pairs))
        self._ticker = loop.call_soon(self._tick)
        return self

    def _listen_for_known(self, stand_in: StandIn) -> None:
        for node_id in () if stand_in.by_name else stand_in.brokers.node_ids:
            port = stand_in.brokers[node_id].tap_port
            if not self._open_for(node_id, port):
                raise TapError(
                    f"cannot listen on port {port} for broker {node_id}: end what uses it, or choose others with --ports"
                )

    async def stop(self) -> None:
        """Stop listening, end the connections and wait until each has said so in the mirror."""
        if self._ticker is not None:
            self._ticker.cancel()
        for opening in tuple(self._openings):
            await opening
        for server in (*self._servers, *self._node_servers):
            server.close()
        for bridge in tuple(self._bridges):
            bridge.end()
        if self._bridges:
            self._all_ended = asyncio.get_running_loop().create_future()
            await self._all_ended
        self._servers.clear()
        self._node_servers.clear()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _check_broker(self, listener: Listener) -> None:
        host = self.resolved.get(listener.broker_host, listener.broker_host)
        try:
            await asyncio.get_running_loop().getaddrinfo(host, listener.broker_port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise TapError(
                f"cannot resolve broker {listener.broker}: {error.strerror}; check --listen, or give its address with --resolve"
            ) from None

    async def _listen(self, listener: Listener) -> asyncio.Server:
        return await _listening(lambda: ClientSide(Bridge(self, listener)), listener, shares_ports=self._shares_ports)

    def _open_for(self, node_id: int, port: int) -> bool:
        """Listen for a broker that an answer names: clients may connect as soon as they have that answer."""
        host = self._listeners[0].host
        try:
            bound = socket.create_server(
                (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=512, dualstack_ipv6=host == "::"
            )
        except OSError:
            return False
        opening = asyncio.get_running_loop().create_task(self._serve(node_id, bound))
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        log.warning("listening on %s for broker %d", written(host, port), node_id)
        return True

    async def _serve(self, node_id: int, bound: socket.socket) -> None:
        stand_in, host = self.stand_in, self._listeners[0].host
        assert stand_in is not None
        self._node_servers.append(
            await asyncio.get_running_loop().create_server(
                lambda: ClientSide(Bridge(self, stand_in.listener(node_id, host))), sock=bound
            )
        )

    def _tick(self) -> None:
        self._ticker = asyncio.get_running_loop().call_later(self._tick_s, self._tick)
        self.tls.renew()
        not_offered = self.stand_in.lowered if self.stand_in is not None else ()
        self._write(tick(self.now_us(), cluster=self._cluster, connection=self._name, place=self._place, not_offered=not_offered))

    def now_us(self) -> int:
        """Capture time, microseconds since the epoch; does not run backwards for a clock that is being adjusted."""
        now = time.time_ns() // 1000
        if self._last_us - _STEP_BACK_US < now < self._last_us:
            now = self._last_us
        self._last_us = now
        return now

    def opened(self, bridge: Bridge) -> str:
        """A client has connected; return a name for the connection."""
        self._bridges.add(bridge)
        self.stats.open_connections += 1
        self.stats.connections += 1
        return f"{self._name}-{self.stats.connections}"

    def conversation(self, bridge: Bridge, listener: Listener, client_address: str) -> Conversation:
        """Return what follows a connection to a broker."""
        name, rewriter = bridge.name, bridge.rewriter

        def opaque(reason: str) -> None:
            if rewriter is not None:
                bridge.cannot_rewrite(reason)
                return
            self.stats.opaque += 1
            log.warning("connection %s of %s to %s is passed on unread: %s", name, client_address, listener.broker, reason)

        watched: dict[str, Any] = {}
        if rewriter is not None and self.stand_in is not None:
            watched = {"on_answer": rewriter.expect, "on_login": self.stand_in.note_mechanism}
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
            **watched,
        )

    def not_reached(self, listener: Listener, client_address: str, why: str) -> None:
        """A client is turned away: said at once, and then once a minute with a count, for clients try again many times a second."""
        broker, now = listener.broker, time.monotonic()
        self.stats.unreachable[broker] += 1
        self._failed.failed(broker, client_address, self.now_us(), refused=True)
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

    def cannot_rewrite(self, name: str, listener: Listener, client_address: str, why: str) -> None:
        """A connection is ended: what it carries might send the client past the tap."""
        assert self.stand_in is not None
        self.stand_in.stats.ended += 1
        log.warning("connection %s of %s to %s is ended: %s", name, client_address, listener.broker, why)

    def reached(self, listener: Listener) -> None:
        """A connection to the broker is there."""
        outage = self._outages.pop(listener.broker, None)
        if outage is not None:
            log.warning(
                "broker %s is reached again after %.0f s; %d connections were turned away meanwhile",
                *(listener.broker, time.monotonic() - outage.since, outage.turned_away),
            )

    def ended(self, bridge: Bridge) -> None:
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


async def check_unused(listeners: Sequence[Listener]) -> None:
    """Check that no process listens at these addresses, before workers share them, which would share them with any.

    :raises TapError: when an address is taken or not of this machine.
    """
    for listener in listeners:
        server = await _listening(asyncio.Protocol, listener, shares_ports=False)
        server.close()
        await server.wait_closed()


async def _listening(protocol: Callable[[], asyncio.BaseProtocol], listener: Listener, *, shares_ports: bool) -> asyncio.Server:
    try:
        return await asyncio.get_running_loop().create_server(
            protocol, listener.host, listener.port, backlog=512, reuse_port=shares_ports
        )
    except OSError as error:
        why = _why_not(error)
        where = written(listener.host, listener.port)
        raise TapError(f"cannot listen on {where}: {why}; end what uses it or choose another address with --listen") from None


def _why_not(error: OSError) -> str:
    """Why asyncio does not listen; it goes past an address that this machine does not have, and says only in words that none was left."""
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    return os.strerror(error.errno or errno.EADDRNOTAVAIL).lower()
