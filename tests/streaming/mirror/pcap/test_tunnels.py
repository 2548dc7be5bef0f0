"""Captures whose packets are wrapped in tunnels say what the packets inside say. Scapy, which is not ours, wraps them."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.contrib.erspan import ERSPAN_I, ERSPAN_II, ERSPAN_III, ERSPAN_PlatformSpecific
from scapy.contrib.geneve import GENEVE, GeneveOptions
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from coordinator_model.finding import Finding
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.engine.engine import Engine
from streaming.mirror.pcap.capture_reader import CaptureReader
from streaming.mirror.pcap.files import opened, packets
from streaming.mirror.pcap.tunnels import unwrap
from tests.golden import transcript
from tests.streaming.mirror.wires import Connection, Segment, captured, pcap

Wrap = Callable[[bytes], bytes]

MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}  # without, Scapy asks the network for them


def over(outer: Packet, header: Packet, *, frame: bool = True) -> Wrap:
    """Wrap an IP packet, in an Ethernet frame of its own or as it is."""
    return lambda ip: bytes(Ether(**MACS) / outer / header / Raw(bytes(Ether(**MACS, type=_kind(ip))) + ip if frame else ip))


def _kind(ip: bytes) -> int:
    return 0x86DD if ip[0] >> 4 == 6 else 0x0800


def vxlan(network: int, port: int = 4789) -> Wrap:
    return over(IP(src="192.0.2.1", dst="192.0.2.2"), UDP(sport=50_000, dport=port) / VXLAN(vni=network, flags="Instance"))


TUNNELS: dict[str, tuple[str, Wrap]] = {
    "VXLAN": ("VXLAN", vxlan(7)),
    "VXLAN on the older port": ("VXLAN", vxlan(7, 8472)),
    "VXLAN over IPv6": ("VXLAN", over(IPv6(), UDP(dport=4789) / VXLAN(vni=9, flags="Instance"))),
    "GENEVE": ("GENEVE", over(IP(), UDP(dport=6081) / GENEVE(vni=7, proto=0x6558))),
    "GENEVE with options": (
        "GENEVE",
        over(IP(), UDP(dport=6081) / GENEVE(vni=7, proto=0x6558, options=[GeneveOptions(data=b"12345678")])),
    ),
    "GENEVE around IP": ("GENEVE", over(IP(), UDP(dport=6081) / GENEVE(vni=7, proto=0x0800), frame=False)),
    "GRE": ("GRE", over(IP(), GRE(proto=0x6558))),
    "GRE around IP": ("GRE", over(IP(), GRE(proto=0x0800), frame=False)),
    "GRE with key, checksum and number": (
        "GRE",
        over(IP(), GRE(proto=0x6558, chksum_present=1, key_present=1, seqnum_present=1, chksum=1, key=5, sequence_number=1)),
    ),
    "ERSPAN I": ("ERSPAN", over(IP(), GRE(proto=0x88BE) / ERSPAN_I())),
    "ERSPAN II": ("ERSPAN", over(IP(), GRE(proto=0x88BE, seqnum_present=1, sequence_number=3) / ERSPAN_II(session_id=5))),
    "ERSPAN III": ("ERSPAN", over(IP(), GRE(proto=0x22EB, seqnum_present=1, sequence_number=3) / ERSPAN_III(session_id=5))),
    "ERSPAN III with its own words": (
        "ERSPAN",
        over(
            IP(),
            GRE(proto=0x22EB, seqnum_present=1, sequence_number=3) / ERSPAN_III(session_id=5, o=1) / ERSPAN_PlatformSpecific(),
        ),
    ),
    "IP in IP": ("IP in IP", over(IP(proto=4), Raw(), frame=False)),
    "IP in IPv6": ("IP in IP", over(IPv6(nh=4), Raw(), frame=False)),
}


class Read:
    """What a reader makes of packets."""

    def __init__(self, *captures: bytes) -> None:
        found: list[MirrorRecord] = []
        self.reader = CaptureReader(found.append)
        for capture in captures:
            self.reader.read(packets(opened(io.BytesIO(capture)), lambda _: None))
        self.reader.finish()
        self.stats = self.reader.stats
        self.records = [record for record in found if record.kind is not Kind.TICK]

    def told(self) -> list[tuple]:
        return [(record.kind.value, record.group, record.exchange, record.cut_bytes, record.frame) for record in self.records]


def wrapped(segments: list[Segment], *wraps: Wrap, snap: int = 262_144) -> bytes:
    """A capture of these packets, wrapped from the inside out."""

    def wrap(ip: bytes) -> bytes:
        frame = wraps[0](ip)
        for outer in wraps[1:]:
            frame = outer(frame[14:])
        return frame

    return pcap(segments, wrap=wrap, snap=snap)


@pytest.fixture
def segments() -> list[Segment]:
    packets: list[Segment] = []
    line = Connection(packets).open()
    line.heartbeat(0)
    line.heartbeat(1)
    line.close()
    return packets


@pytest.mark.parametrize("name", TUNNELS)
def test_a_tunnel_changes_nothing_of_what_is_read(name, segments):
    tunnel, wrap = TUNNELS[name]
    found = Read(wrapped(segments, wrap))
    assert found.told() == Read(pcap(segments)).told()
    assert found.stats.tunnels == Counter({tunnel: len(segments)})


def test_a_tunnel_carries_ipv6():
    segments: list[Segment] = []
    Connection(segments, client=("fd00::7", 40_000), broker=("fd00::1", 9092)).open().heartbeat(0)
    found = Read(wrapped(segments, vxlan(7)))
    assert found.told() == Read(pcap(segments)).told()
    assert {record.broker for record in found.records} == {"[fd00::1]:9092"}


def test_three_wrappings_are_taken_off_and_a_fourth_is_not(segments):
    wraps = [vxlan(7), TUNNELS["GRE"][1], TUNNELS["ERSPAN II"][1], TUNNELS["GENEVE"][1]]
    expected = Read(pcap(segments)).told()
    # Each outer wrapping holds the IP packet of the one before.
    assert Read(wrapped(segments, *wraps[:3])).told() == expected
    deeper = Read(wrapped(segments, *wraps))
    assert (deeper.told(), deeper.stats.segments) == ([], 0)


def test_the_same_addresses_in_two_networks_are_two_connections():
    here: list[Segment] = []
    there: list[Segment] = []
    Connection(here).open().heartbeat(0, group="here", member_id="a")
    Connection(there, initial=(7, 7)).open().heartbeat(0, group="there", member_id="b")
    both = [wrapped([segment], vxlan(network)) for pair in zip(here, there, strict=True) for network, segment in enumerate(pair, 1)]
    found = Read(*both)
    assert {record.group for record in found.records} == {"here", "there"}
    assert found.stats.connections == 2
    assert len({record.connection for record in found.records}) == 2
    assert not [record for record in found.records if record.kind is Kind.GAP]


def test_a_connection_that_is_mirrored_at_both_ends_is_told_once(segments):
    both = [wrapped([segment], vxlan(network)) for segment in segments for network in (1, 2)]
    found = Read(*both)
    assert found.told() == Read(pcap(segments)).told()
    assert found.reader.legs.echoes == 1


def test_a_packet_that_the_mirror_cut_is_a_loss_and_not_malformed():
    segments: list[Segment] = []
    line = Connection(segments).open()
    line.heartbeat(0)
    line.heartbeat(1, member_id="m" * 1_000)
    line.heartbeat(2)
    plain = Read(pcap(segments, snap=14 + 600))
    cut = Read(wrapped(segments, vxlan(7), snap=14 + 20 + 8 + 8 + 14 + 600))
    assert cut.told() == plain.told()
    assert [record.cut_bytes for record in cut.records if record.cut_bytes]


def test_what_else_uses_the_ports_is_no_tunnel():
    for port in (4789, 8472, 6081):
        outer = bytes(Ether(**MACS) / IP() / UDP(dport=port) / Raw(b"\xff" * 80))
        assert unwrap(1, outer, len(outer)) is None
    for flags in (0x4000, 0x0001):  # with routes, and version 1, which is PPTP's
        outer = bytes(Ether(**MACS) / IP(proto=47) / Raw(flags.to_bytes(2, "big") + b"\x65\x58" + bytes(80)))
        assert unwrap(1, outer, len(outer)) is None


@given(st.sampled_from(sorted(TUNNELS)), st.data())
def test_nothing_that_is_broken_raises(name, data):
    packet = bytearray(TUNNELS[name][1](b"\x45" + bytes(39)))
    at = data.draw(st.integers(0, len(packet) - 1))
    packet[at] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(packet)))
    inner = unwrap(1, bytes(packet[:end]), len(packet))
    assert inner is None or inner.packet


def findings_of(capture: bytes) -> list[tuple]:
    found: list[Finding] = []
    engine = Engine(topic="capture", settings=transcript.SETTINGS, found=found.append)
    reader = CaptureReader(engine.captured)
    reader.read(packets(opened(io.BytesIO(capture)), lambda _: None))
    reader.finish()
    engine.finish()
    return [(finding.rule, finding.severity, finding.status, finding.group, finding.summary) for finding in found]


@pytest.mark.parametrize("tunnel", ["VXLAN", "ERSPAN II", "ERSPAN III"])
def test_a_wrapped_capture_has_the_findings_of_the_capture(tunnel):
    segments = captured(transcript.read("violation-stale-generation-accepted-4.3.1"))
    expected = findings_of(pcap(segments))
    assert expected
    assert findings_of(wrapped(segments, TUNNELS[tunnel][1])) == expected
