"""Captures made by hand: TCP connections as packets, in any link layer, as pcap or pcapng."""

from __future__ import annotations

import ipaddress
import itertools
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from coordinator_model import wire
from coordinator_model.wire.record import Kind, MirrorRecord

START_US = 1_700_000_000_000_000
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

CLIENT, BROKER = ("10.0.0.7", 40_000), ("10.0.0.1", 9092)


def sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def request(body: Any, version: int, correlation_id: int, client_id: str | None = "app-1") -> bytes:
    return sized(wire.encode_request(body, api_version=version, correlation_id=correlation_id, client_id=client_id))


def response(body: Any, version: int, correlation_id: int) -> bytes:
    return sized(wire.encode_response(body, api_version=version, correlation_id=correlation_id))


class Segment(NamedTuple):
    """A TCP segment on its way, before it is wrapped into a packet."""

    at_us: int
    source: tuple[str, int]
    destination: tuple[str, int]
    sequence: int
    acknowledges: int
    flags: int
    payload: bytes = b""

    def ip(self) -> bytes:
        tcp = struct.pack(
            ">HHIIBBHHH",
            self.source[1],
            self.destination[1],
            self.sequence & 0xFFFFFFFF,
            self.acknowledges & 0xFFFFFFFF,
            5 << 4,
            self.flags,
            0xFFFF,
            0,
            0,
        )
        source, destination = ipaddress.ip_address(self.source[0]), ipaddress.ip_address(self.destination[0])
        addresses = source.packed + destination.packed
        length = len(tcp) + len(self.payload)
        if source.version == 6:
            return struct.pack(">IHBB", 6 << 28, length, 6, 64) + addresses + tcp + self.payload
        # More than 65,535 bytes come from segmentation offload, captured with a length of 0.
        total = 20 + length if 20 + length < 65_536 else 0
        return struct.pack(">BBHHHBBH", 0x45, 0, total, 1, 0x4000, 64, 6, 0) + addresses + tcp + self.payload


class Connection:
    """Both ends of a TCP connection; each step appends its segments to ``packets``."""

    _counter = itertools.count()

    def __init__(
        self,
        packets: list[Segment],
        *,
        client: tuple[str, int] = CLIENT,
        broker: tuple[str, int] = BROKER,
        at_us: int = START_US,
        initial: tuple[int, int] = (1_000, 9_000_000),
        mss: int = 1460,
        step_us: int = 1_000,
    ) -> None:
        self.packets = packets
        self.ends = (client, broker)
        self.next = list(initial)
        self.now_us = at_us
        self.mss = mss
        self.step_us = step_us

    def open(self) -> Connection:
        self._send(0, SYN)
        self._send(1, SYN | ACK)
        self._send(0, ACK)
        return self

    def client(self, data: bytes, *, mss: int | None = None) -> None:
        self._data(0, data, mss)

    def broker(self, data: bytes, *, mss: int | None = None) -> None:
        self._data(1, data, mss)

    def ask(self, body: Any, version: int, correlation_id: int, client_id: str | None = "app-1") -> None:
        self.client(request(body, version, correlation_id, client_id))

    def answer(self, body: Any, version: int, correlation_id: int) -> None:
        self.broker(response(body, version, correlation_id))

    def heartbeat(self, correlation_id: int, group: str = "g", member_id: str = "m-1", error_code: int = 0) -> None:
        self.ask(wire.HeartbeatRequest(group_id=group, generation_id=3, member_id=member_id), 4, correlation_id)
        self.answer(wire.HeartbeatResponse(error_code=error_code), 4, correlation_id)

    def acknowledge(self, side: int) -> None:
        self._send(side, ACK)

    def finish(self, side: int) -> None:
        """A side closes its end."""
        self._send(side, FIN | ACK)

    def close(self) -> None:
        self._send(0, FIN | ACK)
        self._send(1, FIN | ACK)
        self._send(0, ACK)

    def reset(self) -> None:
        self._send(1, RST | ACK)

    def wait(self, ms: float) -> None:
        self.now_us += int(ms * 1_000)

    def lose(self, steps: Callable[[], Any]) -> list[Segment]:
        """What these steps send is not captured."""
        before = len(self.packets)
        steps()
        lost = self.packets[before:]
        del self.packets[before:]
        return lost

    def _data(self, side: int, data: bytes, mss: int | None) -> None:
        size = mss or self.mss
        for begin in range(0, len(data), size):
            self._send(side, ACK | PSH, data[begin : begin + size])

    def _send(self, side: int, flags: int, payload: bytes = b"") -> None:
        self.now_us += self.step_us
        acknowledges = self.next[1 - side] if flags & ACK else 0
        self.packets.append(
            Segment(self.now_us, self.ends[side], self.ends[1 - side], self.next[side], acknowledges, flags, payload)
        )
        self.next[side] += len(payload) + bool(flags & SYN) + bool(flags & FIN)


def _kind(packet: bytes) -> bytes:
    return b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00"


# Name → link type, wrapping of an IP packet.
LINKS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "Ethernet": (1, lambda ip: (b"\2" * 12 + _kind(ip) + ip).ljust(60, b"\0")),
    "Ethernet, VLAN": (1, lambda ip: b"\2" * 12 + b"\x81\x00\x00\x2a" + _kind(ip) + ip),
    "Ethernet, two VLANs": (1, lambda ip: b"\2" * 12 + b"\x88\xa8\x00\x07\x81\x00\x00\x2a" + _kind(ip) + ip),
    "Ethernet, MPLS": (1, lambda ip: b"\2" * 12 + b"\x88\x47" + b"\x00\x01\x01\x40" + ip),
    "NULL, little-endian": (0, lambda ip: (30 if ip[0] >> 4 == 6 else 2).to_bytes(4, "little") + ip),
    "NULL, big-endian": (0, lambda ip: (24 if ip[0] >> 4 == 6 else 2).to_bytes(4, "big") + ip),
    "LOOP": (108, lambda ip: (24 if ip[0] >> 4 == 6 else 2).to_bytes(4, "big") + ip),
    "Linux cooked v1": (113, lambda ip: b"\0\0\0\1\0\6" + b"\2" * 8 + _kind(ip) + ip),
    "Linux cooked v2": (276, lambda ip: _kind(ip) + b"\0\0" + b"\0\0\0\3\0\1\0\6" + b"\2" * 8 + ip),
    "raw IP": (101, lambda ip: ip),
    "raw IP, BSD": (12, lambda ip: ip),
}


def pcap(
    segments: Iterable[Segment],
    *,
    link: str = "Ethernet",
    order: str = "<",
    nanoseconds: bool = False,
    snap: int = 262_144,
    wrap: Callable[[bytes], bytes] | None = None,
    number: int | None = None,
) -> bytes:
    of_link, in_link = LINKS[link]
    number = of_link if number is None else number
    wrap = wrap or in_link
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, number)]
    for segment in segments:
        packet = wrap(segment.ip())
        seconds, fraction = divmod(segment.at_us, 1_000_000)
        fraction = fraction * 1000 + 999 if nanoseconds else fraction
        out.append(struct.pack(order + "IIII", seconds, fraction, min(len(packet), snap), len(packet)) + packet[:snap])
    return b"".join(out)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += b"\0" * (-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int, order: str = "<", *, resolution: int | None = None, offset_s: int = 0, snap: int = 0) -> bytes:
    options = b""
    if resolution is not None:
        options += struct.pack(order + "HHB3x", 9, 1, resolution)
    if offset_s:
        options += struct.pack(order + "HHq", 14, 8, offset_s)
    if options:
        options += b"\0\0\0\0"
    return block(1, struct.pack(order + "HHI", link, 0, snap) + options, order)


def enhanced(number: int, units: int, packet: bytes, order: str = "<", *, original: int | None = None) -> bytes:
    head = struct.pack(order + "IIIII", number, units >> 32, units & 0xFFFFFFFF, len(packet), original or len(packet))
    return block(6, head + packet, order)


def pcapng(segments: Iterable[Segment], *, link: str = "Ethernet", order: str = "<") -> bytes:
    number, wrap = LINKS[link]
    packets = (enhanced(0, segment.at_us, wrap(segment.ip()), order) for segment in segments)
    return section(order) + interface(number, order) + b"".join(packets)


def captured(records: Iterable[MirrorRecord]) -> list[Segment]:
    """The packets from which a capture makes these records, each connection with a port of its own on the client's side."""
    packets: list[Segment] = []
    lines: dict[str, Connection] = {}
    for record in records:
        if record.kind not in {Kind.OPEN, Kind.REQUEST, Kind.RESPONSE, Kind.CLOSE}:
            continue
        if record.connection not in lines:
            ends = (record.client_address, 40_000 + len(lines)), _endpoint(record.broker)
            lines[record.connection] = Connection(packets, client=ends[0], broker=ends[1], at_us=record.at_us, step_us=1).open()
        line = lines[record.connection]
        line.now_us = max(line.now_us, record.at_us)
        assert not record.cut_bytes, "what is cut cannot be captured again"
        if record.kind is Kind.REQUEST:
            line.client(sized(record.frame))
        elif record.kind is Kind.RESPONSE:
            line.broker(sized(record.frame))
        elif record.kind is Kind.CLOSE:
            line.close()
    return sorted(packets, key=lambda packet: packet.at_us)


def _endpoint(broker: str) -> tuple[str, int]:
    host, _, port = broker.rpartition(":")
    return host.strip("[]"), int(port)
