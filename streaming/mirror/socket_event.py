"""Bytes of a connection with direction and time, as a proxy records them of its sockets: the input that is neither packets nor frames."""

from __future__ import annotations

from typing import NamedTuple

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
