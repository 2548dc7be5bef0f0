"""TCP segments out of packets: the quick look at plain ones, the long look at odd ones and dpkt see the same."""

from __future__ import annotations

import struct

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.mirror.pcap.segments import LINK_TYPES, _odd_segment, segment_of
from tests.streaming.mirror.wires import BROKER, CLIENT, LINKS, Segment

segments = st.builds(
    Segment,
    at_us=st.just(0),
    source=st.sampled_from([CLIENT, BROKER]),
    destination=st.sampled_from([CLIENT, BROKER]),
    sequence=st.integers(0, 2**32 - 1),
    acknowledges=st.integers(0, 2**32 - 1),
    flags=st.integers(0, 255),
    payload=st.binary(max_size=40),
)


@given(
    st.sampled_from(sorted(LINKS)), segments, st.lists(st.tuples(st.integers(0, 70), st.integers(0, 255)), max_size=3), st.data()
)
def test_the_quick_look_sees_what_the_long_one_sees(name, segment, changes, data):
    """Also where any byte of the headers is another, the snap length cuts, or bytes follow."""
    link, wrap = LINKS[name]
    packet = bytearray(wrap(segment.ip()) + data.draw(st.binary(max_size=4), label="padding"))
    for at, value in changes:
        packet[at % len(packet)] = value
    cut = bytes(packet[: data.draw(st.integers(0, len(packet)), label="snap length")])
    for captured in (bytes(packet), cut):
        assert segment_of(link, captured, len(packet)) == _odd_segment(link, captured, len(packet))


@given(st.sampled_from(sorted(LINK_TYPES)), st.binary(max_size=120))
def test_nor_do_they_differ_on_noise(link, packet):
    assert segment_of(link, packet, len(packet)) == _odd_segment(link, packet, len(packet))


@given(segments)
def test_dpkt_sees_it_too(segment):
    packet = LINKS["Ethernet"][1](segment.ip())
    tcp = dpkt.ethernet.Ethernet(packet).data.data
    key, sequence, acknowledges, flags, payload, missing = segment_of(1, packet, len(packet))
    assert struct.unpack(">HH", key[8:]) == (tcp.sport, tcp.dport)
    assert (sequence, acknowledges, flags, payload, missing) == (tcp.seq, tcp.ack, tcp.flags, tcp.data, 0)


@pytest.mark.parametrize("name", [name for name in LINKS if "VLAN" not in name and "MPLS" not in name])
def test_plain_packets_get_no_long_look(name, monkeypatch):
    monkeypatch.setattr("streaming.mirror.pcap.segments._odd_segment", lambda *_: pytest.fail("looked at twice"))
    link, wrap = LINKS[name]
    packet = wrap(Segment(0, CLIENT, BROKER, 5, 6, 16, b"abc").ip())
    assert segment_of(link, packet, len(packet))[4] == b"abc"
