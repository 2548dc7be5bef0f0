"""What TLS records look like on the wire (RFC 8446, 5.1)."""

from __future__ import annotations

from typing import Final

HANDSHAKE, APPLICATION_DATA = 22, 23
CLIENT_HELLO: Final = b"\1"
HEADER: Final = 5
TLS_1_2: Final = b"\x03\x03"  #: on the wire of TLS 1.3 too

CONTENT_BEGINS: Final = bytes([APPLICATION_DATA]) + TLS_1_2
HANDSHAKE_BEGINS: Final = bytes([HANDSHAKE, TLS_1_2[0]])
