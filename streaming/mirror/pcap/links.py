"""Link layers with a header of their own before another one, and the names of those that cannot be read.

macOS's PKTAP, the log of packet filters (NFLOG, PFLOG) and PPP: what they wrap is read like any packet.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from streaming.mirror.pcap.segments import IPV4, IPV6, LINK_TYPES, RAW

if TYPE_CHECKING:
    from collections.abc import Callable

_NFLOG_PAYLOAD: Final = 9
_PPP_OF_IP: Final = frozenset({b"\x00\x21", b"\x00\x57"})
_pktap = struct.Struct("<III").unpack_from  # length of the header, type of what follows, its link type
_tlv = struct.Struct("<HH").unpack_from


class Inner(NamedTuple):
    """What a header stands before."""

    link: int
    at: int


def _in_pktap(packet: bytes) -> Inner | None:
    length, kind, link = _pktap(packet)
    return Inner(link, length) if kind == 1 and 12 <= length <= len(packet) else None


def _in_nflog(packet: bytes) -> Inner | None:
    at = 4  # family, version, resource
    while True:
        length, kind = _tlv(packet, at)
        if kind == _NFLOG_PAYLOAD:
            return Inner(RAW, at + 4)
        at += max(length + 3 & ~3, 4)


def _in_pflog(packet: bytes) -> Inner | None:
    return Inner(RAW, packet[0] + 3 & ~3)


def _in_ppp(packet: bytes) -> Inner | None:
    at = 2 if packet.startswith(b"\xff\x03") else 0
    return Inner(RAW, at + 2) if packet[at : at + 2] in _PPP_OF_IP else Inner(RAW, len(packet))


def _in_hdlc(packet: bytes) -> Inner | None:
    return Inner(RAW, 4 if packet[2:4] in (IPV4, IPV6) else len(packet))


_WRAPPERS: Final[dict[int, Callable[[bytes], Inner | None]]] = {
    9: _in_ppp,
    50: _in_ppp,
    104: _in_hdlc,
    117: _in_pflog,
    149: _in_pktap,  # as DLT_USER2, which tcpdump of macOS writes
    239: _in_nflog,
    258: _in_pktap,
}

_NAMES: Final = {
    3: "AX.25",
    6: "Token Ring",
    8: "SLIP",
    10: "FDDI",
    51: "PPPoE",
    105: "IEEE 802.11",
    119: "IEEE 802.11 with a Prism header",
    127: "IEEE 802.11 with radiotap",
    163: "IEEE 802.11 with an AVS header",
    187: "Bluetooth",
    189: "USB",
    195: "IEEE 802.15.4",
    201: "Bluetooth",
    220: "USB",
    227: "CAN",
    249: "USB",
    251: "Bluetooth Low Energy",
    253: "netlink",
    272: "DisplayPort",
}


def inside(link: int, packet: bytes) -> Inner | None:
    """Return link type and place of what a header of another layer stands before; None if it cannot be read."""
    unwrap = _WRAPPERS.get(link)
    if unwrap is None:
        return None
    try:
        found = unwrap(packet)
    except (struct.error, IndexError):
        return None
    return found if found is not None and found.link in LINK_TYPES else None


def in_words(link: int) -> str:
    """Return the number of a link type, with its name if it has one here."""
    name = _NAMES.get(link)
    return f"{link} ({name})" if name else str(link)
