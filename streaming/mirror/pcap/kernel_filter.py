"""The filter of a packet socket, run by the kernel: TCP of the brokers' ports, once they are known, and what may wrap it.

Classic BPF on a socket without link layers, so a packet begins with its network header. On the loopback device each packet passes twice,
going out and coming in; the second is taken.
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from streaming.mirror.pcap.segments import FRAGMENT_OFFSET, TCP
from streaming.mirror.pcap.tunnels import UDP, UDP_PORTS, WRAPPING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_LOAD_WORD, _LOAD_HALF, _LOAD_BYTE = 0x20, 0x28, 0x30
_LOAD_HALF_BEHIND_HEADER, _HEADER_LENGTH = 0x48, 0xB1
_JUMP_IF_EQUAL, _JUMP_IF_SET, _RETURN = 0x15, 0x45, 0x06

_ABOUT: Final = -0x1000 & 0xFFFFFFFF  # what the kernel knows about a packet, beside its bytes
_PROTOCOL, _PACKET_TYPE, _HARDWARE = _ABOUT, _ABOUT + 4, _ABOUT + 28
_OUTGOING: Final = 4
_LOOPBACK: Final = 772

_IPV4, _IPV6 = 0x0800, 0x86DD
_WRAPPED: Final = (0x8100, 0x88A8, 0x8847, 0x8864)
"""EtherTypes of VLANs, MPLS and PPPoE: what is inside is looked at by the reader."""
_IPV6_EXTENSIONS: Final = (0, 43, 44, 60)
_WHOLE: Final = 0x40000

MOST_PORTS: Final = 60
"""A jump within a filter reaches no further; more ports are not filtered."""


class _Step(NamedTuple):
    code: int
    value: int
    yes: str = ""  #: label to jump to; empty: the next step
    no: str = ""


def program(ports: Collection[int]) -> bytes:
    """Return the filter as the kernel reads it.

    :param ports: the brokers'; without any, all TCP is taken.
    """
    steps: list[_Step] = []
    labels: dict[str, int] = {}
    for label, block in _blocks(ports if len(ports) <= MOST_PORTS else ()):
        labels[label] = len(steps)
        steps += block
    return b"".join(
        struct.pack(
            "HBBI",
            step.code,
            labels[step.yes] - at - 1 if step.yes else 0,
            labels[step.no] - at - 1 if step.no else 0,
            step.value,
        )
        for at, step in enumerate(steps)
    )


def pointer(filter_bytes: bytes) -> tuple[bytes, ctypes.Array[ctypes.c_char]]:
    """Return what ``SO_ATTACH_FILTER`` takes, and the memory that must live until then."""
    memory = ctypes.create_string_buffer(filter_bytes)
    return struct.pack("HL", len(filter_bytes) // 8, ctypes.addressof(memory)), memory


def _blocks(ports: Collection[int]) -> Iterator[tuple[str, list[_Step]]]:
    """Jumps lead forward alone, so the ends stand last."""
    yield (
        "start",
        [
            _Step(_LOAD_WORD, _PACKET_TYPE),
            _Step(_JUMP_IF_EQUAL, _OUTGOING, "", "network"),
            _Step(_LOAD_WORD, _HARDWARE),
            _Step(_JUMP_IF_EQUAL, _LOOPBACK, "drop"),
        ],
    )
    yield (
        "network",
        [
            _Step(_LOAD_WORD, _PROTOCOL),
            _Step(_JUMP_IF_EQUAL, _IPV4, "IPv4"),
            _Step(_JUMP_IF_EQUAL, _IPV6, "IPv6"),
            *_one_of(_WRAPPED),
        ],
    )
    yield "IPv4", [_Step(_LOAD_BYTE, 9), *_by_protocol("IPv4")]
    yield "IPv4 TCP", [_Step(_LOAD_HALF, 6), _Step(_JUMP_IF_SET, FRAGMENT_OFFSET, "keep"), _Step(_HEADER_LENGTH, 0)]
    yield "IPv4 ports", _with_port(ports, _LOAD_HALF_BEHIND_HEADER, 0)
    yield "IPv4 UDP", [_Step(_HEADER_LENGTH, 0), _Step(_LOAD_HALF_BEHIND_HEADER, 2), *_one_of(UDP_PORTS)]
    yield "IPv6", [_Step(_LOAD_BYTE, 6), *_by_protocol("IPv6")]
    yield "IPv6 TCP", _with_port(ports, _LOAD_HALF, 40)
    yield "IPv6 UDP", [_Step(_LOAD_HALF, 42), *_one_of(UDP_PORTS)]
    yield "drop", [_Step(_RETURN, 0)]
    yield "keep", [_Step(_RETURN, _WHOLE)]


def _by_protocol(version: str) -> list[_Step]:
    others = _one_of({*WRAPPING, *(_IPV6_EXTENSIONS if version == "IPv6" else ())})
    return [_Step(_JUMP_IF_EQUAL, TCP, f"{version} TCP"), _Step(_JUMP_IF_EQUAL, UDP, f"{version} UDP"), *others]


def _with_port(ports: Collection[int], load: int, at: int) -> list[_Step]:
    if not ports:
        return [_Step(_RETURN, _WHOLE)]
    source = [_Step(_JUMP_IF_EQUAL, port, "keep") for port in ports]
    return [_Step(load, at), *source, _Step(load, at + 2), *_one_of(ports)]


def _one_of(values: Collection[int]) -> list[_Step]:
    *others, last = values
    return [*(_Step(_JUMP_IF_EQUAL, value, "keep") for value in others), _Step(_JUMP_IF_EQUAL, last, "keep", "drop")]
