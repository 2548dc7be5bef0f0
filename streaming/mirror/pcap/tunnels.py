"""The packet inside a packet: what mirrors of cloud networks and switches send wraps the traffic that they copy.

VXLAN (RFC 7348), GENEVE (RFC 8926), GRE (RFC 2784, 2890), ERSPAN types I to III (draft-foschiano-erspan-03) and IP in IP (RFC 2003, 4213).

Addresses of two virtual networks may overlap, so their number is part of a connection. A mirror cuts what grows too long by the wrapping;
the inner IP header still says how long the packet was. Other programs may use the same UDP ports.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from streaming.mirror.pcap.segments import ETHERNET, FRAGMENT_OFFSET, IPV4, IPV6, RAW, network_header

if TYPE_CHECKING:
    from collections.abc import Callable

DEEPEST: Final = 3
"""So many wrappings around a packet are taken off."""

UDP, _GRE = 17, 47
_IP_IN_IP: Final = frozenset({4, 41})
WRAPPING: Final = frozenset({_GRE, *_IP_IN_IP})
"""IP protocols that wrap packets, beside UDP."""

_TRANSPARENT_ETHERNET: Final = 0x6558
_ERSPAN_I_II: Final = 0x88BE
_ERSPAN_III: Final = 0x22EB
_ERSPAN_FRAMES: Final = {0: ETHERNET, 2: RAW}
_NETWORK_IS_VALID: Final = 0x08
_LINKS: Final = {_TRANSPARENT_ETHERNET: ETHERNET, 0x0800: RAW, 0x86DD: RAW}

_GRE_CHECKSUM, _GRE_ROUTING, _GRE_KEY, _GRE_SEQUENCE, _GRE_VERSION = 0x8000, 0x4000, 0x2000, 0x1000, 0x0007

_udp = struct.Struct(">2xH4x").unpack_from  # destination port
_vxlan = struct.Struct(">B3x3sx").unpack_from  # flags, network
_geneve = struct.Struct(">BxH3sx").unpack_from  # version and length of options, protocol, network
_gre = struct.Struct(">HH").unpack_from  # flags, protocol


class Inner(NamedTuple):
    """A packet that was inside another one."""

    tunnel: str  #: what it was wrapped in
    network: bytes  #: number of its virtual network, 3 bytes; empty if the tunnel has none
    link: int
    packet: bytes
    original: int  #: its length before it was cut, as far as the outer packet shows


class _Content(NamedTuple):
    """What a header wraps: where it begins and what it is."""

    tunnel: str
    network: bytes
    link: int
    at: int


def unwrap(link: int, packet: bytes, original: int) -> Inner | None:
    """Return the packet inside a packet, None if it is no tunnel's.

    :param link: link type of the outer packet.
    :param original: the outer packet's length before the snap length cut it.
    """
    try:
        protocol, at = _transport(link, packet)
        content = _content(protocol, packet, at)
    except (struct.error, IndexError):
        return None
    if content is None or content.at >= len(packet):
        return None
    return Inner(content.tunnel, content.network, content.link, packet[content.at :], original - content.at)


def _transport(link: int, packet: bytes) -> tuple[int, int]:
    """Return the protocol inside an IP packet and where it begins; -1 if it is none that may be a tunnel's."""
    kind, at = network_header(link, packet)
    if kind == IPV4:
        fragment = int.from_bytes(packet[at + 6 : at + 8], "big")
        return (-1 if fragment & FRAGMENT_OFFSET else packet[at + 9]), at + 4 * (packet[at] & 0xF)
    return (packet[at + 6] if kind == IPV6 else -1), at + 40


def _content(protocol: int, packet: bytes, at: int) -> _Content | None:
    if protocol == UDP:
        wrapped = _IN_UDP.get(_udp(packet, at)[0])
        return wrapped(packet, at + 8) if wrapped else None
    if protocol == _GRE:
        return _in_gre(packet, at)
    return _Content("IP in IP", b"", RAW, at) if protocol in _IP_IN_IP else None


def _in_vxlan(packet: bytes, at: int) -> _Content | None:
    flags, network = _vxlan(packet, at)
    return _Content("VXLAN", network, ETHERNET, at + 8) if flags == _NETWORK_IS_VALID else None


def _in_geneve(packet: bytes, at: int) -> _Content | None:
    options, protocol, network = _geneve(packet, at)
    if options >> 6 or protocol not in _LINKS:
        return None
    return _Content("GENEVE", network, _LINKS[protocol], at + 8 + 4 * (options & 0x3F))


def _in_gre(packet: bytes, at: int) -> _Content | None:
    flags, protocol = _gre(packet, at)
    if flags & (_GRE_ROUTING | _GRE_VERSION):
        return None
    at += 4 + 4 * sum(bool(flags & optional) for optional in (_GRE_CHECKSUM, _GRE_KEY, _GRE_SEQUENCE))
    if protocol == _ERSPAN_I_II:  # type I has no header of its own, and no sequence number either
        return _Content("ERSPAN", b"", ETHERNET, at + 8) if flags & _GRE_SEQUENCE else _Content("ERSPAN", b"", ETHERNET, at)
    if protocol == _ERSPAN_III:
        return _in_erspan_iii(packet, at)
    return _Content("GRE", b"", _LINKS[protocol], at) if protocol in _LINKS else None


def _in_erspan_iii(packet: bytes, at: int) -> _Content | None:
    last = int.from_bytes(packet[at + 10 : at + 12], "big")  # P, frame type, hardware, direction, granularity, O
    link = _ERSPAN_FRAMES.get(last >> 10 & 0x1F)
    more = 8 if last & 1 else 0
    return None if link is None else _Content("ERSPAN", b"", link, at + 12 + more)


_IN_UDP: Final[dict[int, Callable[[bytes, int], _Content | None]]] = {
    4789: _in_vxlan,
    8472: _in_vxlan,  # Linux's default of before, which container networks kept
    6081: _in_geneve,
}

UDP_PORTS: Final = frozenset(_IN_UDP)
"""Destinations of UDP packets that may wrap others."""
