"""A captured connection of which no byte is known yet: TLS, or what it would be taken for otherwise.

The library that opens TLS is not installed everywhere, and a capture with secrets in it may have plain connections beside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.mirror.pcap.capture_stats import CaptureStats
    from streaming.mirror.pcap.connection import CapturedConnection
    from streaming.mirror.pcap.reassembly import Stream, StreamListener

# TLS records on the wire (RFC 8446, 5.1).
HANDSHAKE, APPLICATION_DATA = 22, 23
CLIENT_HELLO: Final = b"\1"
HEADER: Final = 5
TLS_1_2: Final = b"\x03\x03"  #: on the wire of TLS 1.3 too

CONTENT_BEGINS: Final = bytes([APPLICATION_DATA]) + TLS_1_2
HANDSHAKE_BEGINS: Final = bytes([HANDSHAKE, TLS_1_2[0]])

BEGAN_BEFORE: Final = "it uses TLS and began before the capture, so its secrets cannot be told"
NO_CRYPTOGRAPHY: Final = (
    "it uses TLS, and the library cryptography, which opens it, is not installed: pip install 'rebalance-monitor[tap]'"
)


class FirstBytes:
    """The listener to a connection until its first bytes show what it is.

    :param plain: makes the listener to a connection without TLS.
    :param talk: makes the conversation inside TLS, given the client's side and the time.
    :param tls: makes the listener to a connection with TLS, given the same; None without the library that opens it.
    """

    def __init__(
        self,
        stream: Stream,
        plain: Callable[[], StreamListener],
        talk: Callable[[int, int], CapturedConnection],
        tls: Callable[[int, int], StreamListener | None],
        stats: CaptureStats,
    ) -> None:
        self._stream = stream
        self._plain = plain
        self._talk = talk
        self._tls = tls
        self._stats = stats

    def received(self, side: int, data: bytes, at_us: int) -> None:
        """The first bytes from a side of the stream."""
        if data.startswith(CONTENT_BEGINS):
            self._refuse(BEGAN_BEFORE, side, at_us)
        elif not data.startswith(HANDSHAKE_BEGINS):
            self._go_on(self._plain(), side, data, at_us)
        elif data[HEADER : HEADER + 1] not in (b"", CLIENT_HELLO):
            self._refuse(BEGAN_BEFORE, 1 - side, at_us)
        elif (tls := self._tls(side, at_us)) is None:
            self._refuse(NO_CRYPTOGRAPHY, side, at_us)
        else:
            self._go_on(tls, side, data, at_us)

    def _go_on(self, listener: StreamListener, side: int, data: bytes, at_us: int) -> None:
        self._stream.listener = listener
        listener.received(side, data, at_us)

    def _refuse(self, reason: str, client: int, at_us: int) -> None:
        self._stats.refused_tls[reason] += 1
        self._stream.listener = talk = self._talk(client, at_us)
        talk.unreadable(reason, at_us)

    def missed(self, side: int, count: int, at_us: int) -> None:
        """The first bytes from a side were not captured."""
        self._stream.listener = listener = self._plain()
        listener.missed(side, count, at_us)

    def finished(self, side: int, at_us: int) -> None:
        """A side has closed its end of the connection."""

    def closed(self, at_us: int) -> None:
        """It has ended."""
