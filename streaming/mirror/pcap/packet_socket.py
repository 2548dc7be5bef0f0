"""Packets of this machine's interfaces, by an own packet socket: as a capturing program has them, without one.

The kernel writes packets into a ring that this process shares (``TPACKET_V3``), a block at a time, so that a busy interface costs no call
for each packet. What does not fit into the ring is counted by the kernel, and said here.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streaming.background import Closing
from streaming.errors import SetupError, why_not
from streaming.mirror.pcap.kernel_filter import pointer, program
from streaming.mirror.pcap.segments import COOKED, IPV4, IPV6, RAW

if TYPE_CHECKING:
    from collections.abc import Collection

    from streaming.mirror.pcap.files import Packet

ANY: Final = "any"

_SOL_PACKET: Final = 263
_ADD_MEMBERSHIP, _RX_RING, _STATISTICS, _VERSION = 1, 5, 6, 10
_TPACKET_V3, _PROMISCUOUS, _ATTACH_FILTER, _ALL_PROTOCOLS = 2, 1, 26, 3

_BLOCK: Final = 1 << 17
_BLOCKS: Final = 80
"""A block is handed over when it is full or its time is up, so their number bounds for how long packets may wait: three seconds."""

_FRAME: Final = 1 << 11
_RETIRE_MS: Final = 40
"""How long a packet may wait in a block that is not full."""

_STATUS_AT: Final = 8
_OF_USER: Final = 1
_block = struct.Struct("=8xIIII").unpack_from  # status, packets, where the first begins, bytes
_packet = struct.Struct(
    "=6I2xH22x2s"
).unpack_from  # next, seconds, nanoseconds, captured, length, status; where it begins; EtherType
_IP: Final = frozenset({IPV4, IPV6})
_COOKED_HEADER: Final = bytes(14)


class InterfaceGoneError(Exception):
    """The interface is down or was removed; the message says which."""


class PacketSocket(Closing):
    """A ring of packets. A context manager.

    :param interface: its name, or :data:`ANY`.
    :param ports: the brokers'; without any, all TCP is read.
    :raises SetupError: when the right is missing, or this system has no such sockets.
    :raises InterfaceGoneError: when there is no such interface, or it is down.
    """

    def __init__(self, interface: str = ANY, ports: Collection[int] = ()) -> None:
        self.interface = interface
        self._at = 0
        self._socket = _opened(socket.htons(_ALL_PROTOCOLS) if interface == ANY else 0)
        try:
            self._socket.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V3)
            self.filter(ports)
            ring = struct.pack("=7I", _BLOCK, _BLOCKS, _FRAME, _BLOCK * _BLOCKS // _FRAME, _RETIRE_MS, 0, 0)
            self._socket.setsockopt(_SOL_PACKET, _RX_RING, ring)
            self._ring = mmap.mmap(self._socket.fileno(), _BLOCK * _BLOCKS)
            if interface != ANY:
                self._bind()
        except BaseException:
            self._socket.close()
            raise
        self.dropped()  # what came before the ring was there

    def _bind(self) -> None:
        try:
            self._socket.bind((self.interface, _ALL_PROTOCOLS))
            number = socket.if_nametoindex(self.interface)
            self._socket.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, struct.pack("=iHH8s", number, _PROMISCUOUS, 0, b""))
            self._raise_if_down()
        except OSError as error:
            raise InterfaceGoneError(f"interface {self.interface}: {why_not(error)}") from None

    def close(self) -> None:
        self._ring.close()
        self._socket.close()

    def fileno(self) -> int:
        """The descriptor that becomes readable when there are packets, or the interface is gone."""
        return self._socket.fileno()

    def filter(self, ports: Collection[int]) -> None:
        """Read these ports alone from now on; without any, all TCP."""
        filter_pointer, memory = pointer(program(ports))
        self._socket.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, filter_pointer)
        del memory

    def read(self) -> list[Packet]:
        """Return the packets of the next full block, none if there is none.

        :raises InterfaceGoneError: when the interface is down or was removed.
        """
        base = self._at * _BLOCK
        status, count, first, _ = _block(self._ring, base)
        if not status & _OF_USER:
            self._raise_if_down()
            return []
        found = self._packets(base, count, first)
        self._ring[base + _STATUS_AT : base + _STATUS_AT + 4] = b"\x00\x00\x00\x00"
        self._at = (self._at + 1) % _BLOCKS
        return found

    def dropped(self) -> int:
        """Return how many packets the ring had no room for since the last call."""
        statistics = self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 12)
        return int(struct.unpack("=3I", statistics)[1])

    def _packets(self, base: int, count: int, first: int) -> list[Packet]:
        ring, at = self._ring, base + first
        found: list[Packet] = []
        for _ in range(count):
            following, seconds, nanoseconds, captured, length, _, begins, kind = _packet(ring, at)
            begin = at + begins
            data = ring[begin : begin + captured]
            at_us = seconds * 1_000_000 + nanoseconds // 1_000
            if kind in _IP:
                found.append((at_us, RAW, data, length))
            else:
                found.append((at_us, COOKED, _COOKED_HEADER + kind + data, length + 16))
            at += following
        return found

    def _raise_if_down(self) -> None:
        error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise InterfaceGoneError(f"interface {self.interface}: {os.strerror(error).lower()}")


def _opened(protocol: int) -> socket.socket:
    if not hasattr(socket, "AF_PACKET"):
        raise SetupError("packets of an interface are read on Linux alone: tcpdump -i any -U -w - | rebalance-monitor watch -")
    try:
        return socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, protocol)
    except PermissionError:
        python = Path(sys.executable).resolve()
        raise SetupError(
            f"reading packets needs root or the right cap_net_raw, which this grants to this Python: sudo setcap cap_net_raw+ep {python}"
        ) from None
    except OSError as error:
        raise SetupError(f"no packet socket can be opened: {why_not(error)}") from None


def interfaces() -> list[str]:
    """Return the names of this machine's interfaces."""
    with contextlib.suppress(OSError):
        return [name for _, name in socket.if_nameindex()]
    return []
