"""Connections whose bytes a proxy records, with direction and time: the input that is neither packets nor frames.

The bytes are in order already, so they need no reassembly, only a listener.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streaming.mirror.pcap.connection import CapturedConnection
from streaming.mirror.pcap.reassembly import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.mirror.pcap.reassembly import StreamListener

UNKNOWN = -1
"""An unknown number of bytes is missing."""


class SocketEvent(NamedTuple):
    """What happened on one connection. It has two sides: 0 is the proxy's peer, 1 the proxy itself."""

    at_us: int  #: since the epoch
    trace: str  #: names the connection among all of the capture
    sides: tuple[tuple[str, int], tuple[str, int]]  #: address and port of each side, as far as known
    is_whole: bool  #: the trace has the connection from its first byte on
    side: int  #: who sent the bytes
    data: bytes = b""
    missing: int = 0  #: bytes behind the data that were not kept, or :data:`UNKNOWN`
    unreadable: str = ""  #: why nothing more of the connection follows
    is_closed: bool = False  #: the connection has ended, behind all this


class Sockets:
    """Follows all connections of a proxy.

    :param accept: asked about each new connection, with the stream, the first event with bytes and the time; gives the listener, or None
        to ignore it.
    """

    def __init__(self, accept: Callable[[Stream, SocketEvent, int], StreamListener | None]) -> None:
        self._accept = accept
        self._streams: dict[str, Stream] = {}  # by the trace's name

    def event(self, event: SocketEvent, at_us: int) -> None:
        """Take the next event of any connection."""
        stream = self._streams.get(event.trace)
        if stream is None:
            if not event.data and not event.missing:
                return  # nothing was said on it
            stream = self._streams[event.trace] = Stream()
            listener = self._accept(stream, event, at_us)
            if listener is None:
                stream.ignore()
            else:
                stream.listener = listener
        if not stream.over:
            _pass_on(stream, event, at_us)
        if event.is_closed:
            del self._streams[event.trace]


def _pass_on(stream: Stream, event: SocketEvent, at_us: int) -> None:
    if event.data:
        stream.listener.received(event.side, event.data, at_us)
    listener = stream.listener  # which is another one when the first bytes show more
    if event.missing == UNKNOWN and isinstance(listener, CapturedConnection):
        listener.lost(event.side, 1, at_us)
    elif event.missing:
        listener.missed(event.side, max(event.missing, 1), at_us)
    if event.unreadable and isinstance(listener, CapturedConnection):
        listener.unreadable(event.unreadable, at_us)
    if event.is_closed and not stream.over:
        listener.closed(at_us)
