"""TCP segments out of packets: what lies before the payload is taken apart and checked no more than needed.

The everyday packets (IPv4 or IPv6 in Ethernet, VLANs included, loopback, Linux cooked or nothing at all) are unpacked here, because
making an object of each header costs nine times as much, and the plainest of them in one go; the odd ones (MPLS, PPPoE, IPv6 extension
headers) are left to dpkt.

Ethernet pads short packets, so the IP header says where the payload ends, but a packet that the sending host's network card was to cut up
(segmentation offload) may be captured with a length of 0. The snap length cuts packets short without a trace in them.
"""

from __future__ import annotations

import struct
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Segment = tuple[bytes, int, int, int, bytes, int]
"""Addresses and ports as one key (source before destination; the numbers of virtual networks before them), sequence number,
acknowledgement number, flags, captured payload, and how many bytes of payload behind it were not captured."""

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10

IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"
_VLAN_TAGS: Final = frozenset({b"\x81\x00", b"\x88\xa8", b"\x91\x00"})
_LEFT_TO_DPKT: Final = frozenset({b"\x88\x47", b"\x88\x48", b"\x88\x64"})  # MPLS, PPPoE
TCP: Final = 6
_IPV6_EXTENSIONS: Final = frozenset({0, 43, 44, 51, 60, 135})

ETHERNET, RAW, COOKED = 1, 101, 113
"""Link types, as capture files have them: RAW begins with the network header, COOKED with that of Linux."""

# Where the network header begins, and where its EtherType stands; -1 where the IP version decides.
LINKS: Final[dict[int, tuple[int, int]]] = {
    ETHERNET: (14, 12),
    0: (4, -1),  # NULL
    108: (4, -1),  # LOOP
    12: (0, -1),  # RAW, by one operating system or another
    14: (0, -1),
    RAW: (0, -1),
    228: (0, -1),  # IPV4
    229: (0, -1),  # IPV6
    COOKED: (16, 14),
    276: (20, 0),  # LINUX_SLL2
}
LINK_TYPES: Final = frozenset(LINKS)
"""The link types that can be read, by their numbers in capture files."""

_ipv4 = struct.Struct(">BxHxxHxBxx8s").unpack_from  # version and header length, total length, fragment, protocol, addresses
_ipv6 = struct.Struct(">4xHBx32s").unpack_from  # payload length, next header, addresses
_tcp = struct.Struct(">4sIIBB").unpack_from  # ports, sequence number, acknowledgement number, header length, flags
UNFRAGMENTED: Final = 0x3FFF  # more fragments, and the fragment's offset
FRAGMENT_OFFSET: Final = 0x1FFF
_IPV6_FRAGMENT: Final = 44
WITHOUT_OPTIONS: Final = 0x45  # version and header length


def _plain(at: int, type_at: int) -> tuple[Callable[[bytes], tuple[Any, ...]], bytes, int, int]:
    """What reads all headers of an everyday packet at once: EtherType, version and header length, total length, fragment, protocol,
    addresses with ports, sequence number, acknowledgement number, header length, flags; the EtherType; where IP and TCP begin.
    """
    to_type = f"{type_at}x2s{at - type_at - 2}x" if type_at >= 0 else f"{at}x0s"
    return struct.Struct(f">{to_type}BxHxxHxBxx12sIIBB").unpack_from, IPV4 if type_at >= 0 else b"", at, at + 20


_PLAIN: Final = {link: _plain(at, type_at) for link, (at, type_at) in LINKS.items()}


def segment_of(link: int, packet: bytes, original: int) -> Segment | None:
    """The TCP segment in a packet, or None if there is none, or not all of its headers.

    :param link: link type, one of :data:`LINK_TYPES`.
    :param original: the packet's length before the snap length cut it.
    """
    unpack, ipv4, at, transport = _PLAIN[link]
    try:
        kind, version, length, fragment, protocol, key, sequence, acknowledged, offset, flags = unpack(packet)
    except struct.error:
        return _odd_segment(link, packet, original)
    if version == WITHOUT_OPTIONS and kind == ipv4 and protocol == TCP and not fragment & UNFRAGMENTED:
        end = at + length
        if at < end <= len(packet):
            return key, sequence, acknowledged, flags, packet[transport + (offset >> 4) * 4 : end], 0
    return _odd_segment(link, packet, original)


def _odd_segment(link: int, packet: bytes, original: int) -> Segment | None:
    """The same for a packet of any form."""
    try:
        kind, at = network_header(link, packet)
        if kind == IPV4:
            version, length, fragment, protocol, addresses = _ipv4(packet, at)
            if protocol != TCP or fragment & FRAGMENT_OFFSET:
                return None
            transport, end = at + 4 * (version & 0xF), at + length
        elif kind == IPV6:
            length, protocol, addresses = _ipv6(packet, at)
            if protocol in _IPV6_EXTENSIONS:
                return _by_dpkt("ip6", packet[at:])
            if protocol != TCP:
                return None
            transport, end = at + 40, at + 40 + length
        else:
            return _by_dpkt("ethernet", packet) if kind in _LEFT_TO_DPKT and link == ETHERNET else None
        ports, sequence, acknowledged, offset, flags = _tcp(packet, transport)
    except (struct.error, IndexError):
        return None
    if not length:  # left to the network card
        end = original
    start, captured = transport + (offset >> 4) * 4, len(packet)
    missing = end - max(captured, start) if end > captured else 0
    return addresses + ports, sequence, acknowledged, flags, packet[start:end], missing


def is_later_fragment(link: int, packet: bytes) -> bool:
    """Whether a packet holds a part of a TCP segment without its header: any fragment of an IP packet but the first."""
    try:
        kind, at = network_header(link, packet)
        if kind == IPV4:
            _, _, fragment, protocol, _ = _ipv4(packet, at)
            return protocol == TCP and bool(fragment & FRAGMENT_OFFSET)
        if kind == IPV6 and packet[at + 6] == _IPV6_FRAGMENT:
            return packet[at + 40] == TCP and int.from_bytes(packet[at + 42 : at + 44], "big") >= 8  # flags behind the offset
    except (struct.error, IndexError):
        pass
    return False


def network_header(link: int, packet: bytes) -> tuple[bytes, int]:
    """EtherType of a packet, and where what it names begins; VLAN tags are passed over."""
    at, type_at = LINKS[link]
    kind = packet[type_at : type_at + 2] if type_at >= 0 else _by_version(packet[at])
    while kind in _VLAN_TAGS:
        kind = packet[at + 2 : at + 4]
        at += 4
    return kind, at


def _by_version(first: int) -> bytes:
    return {4: IPV4, 6: IPV6}.get(first >> 4, b"")


def _by_dpkt(kind: Literal["ip6", "ethernet"], packet: bytes) -> Segment | None:
    import dpkt  # noqa: PLC0415 - 3 MiB, and most networks have no such packets

    try:
        found = dpkt.ip6.IP6(packet) if kind == "ip6" else dpkt.ethernet.Ethernet(packet)
        while not isinstance(found, (dpkt.ip.IP, dpkt.ip6.IP6)):
            found = found.data
        tcp = found.data
        if not isinstance(tcp, dpkt.tcp.TCP):
            return None
    except (dpkt.UnpackError, AttributeError, struct.error, IndexError):
        return None
    if isinstance(found, dpkt.ip.IP):
        length = found.len - found.hl * 4
    else:
        length = found.plen - sum(header.length for header in found.all_extension_headers)
    missing = max(length - tcp.off * 4 - len(tcp.data), 0)
    ports = struct.pack(">HH", tcp.sport, tcp.dport)
    return found.src + found.dst + ports, tcp.seq, tcp.ack, tcp.flags, bytes(tcp.data), missing


def reverse(key: bytes) -> bytes:
    """The key of the opposite direction."""
    at, size = _addresses(key)
    return key[:at] + key[at + size : at + 2 * size] + key[at : at + size] + key[-2:] + key[-4:-2]


def ends(key: bytes) -> tuple[tuple[str, int], tuple[str, int]]:
    """Source and destination of a key, each an address in words and a port."""
    at, size = _addresses(key)
    source, destination = ip_address(key[at : at + size]), ip_address(key[at + size : at + 2 * size])
    return (str(source), int.from_bytes(key[-4:-2], "big")), (str(destination), int.from_bytes(key[-2:], "big"))


def networks(key: bytes) -> bytes:
    """The numbers of the virtual networks that a key is in, 3 bytes each."""
    return key[: _addresses(key)[0]]


def _addresses(key: bytes) -> tuple[int, int]:
    """Where the addresses of a key begin, and the size of each. Up to three numbers of networks stand before them."""
    size = 16 if len(key) >= 2 * 16 + 4 else 4
    return len(key) - 2 * size - 4, size
