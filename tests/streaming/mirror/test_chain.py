"""Packets of a pcap file are found at many places at once, and never where there are none."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.mirror import chain
from streaming.mirror.chain import APART, WINDOW, whole_packets

BEGIN_S = 1_700_000_000


def layout_of(order: str, size: int = 16) -> np.dtype:
    names = ["seconds", "fraction", "captured", "original"]
    return np.dtype({"names": names, "formats": [order + "u4"] * 4, "offsets": [0, 4, 8, 12], "itemsize": size})


def packed(order: str, at_s: int, body: bytes, size: int = 16) -> bytes:
    return struct.pack(order + "IIII", at_s, 5, len(body), len(body)) + bytes(size - 16) + body


def bodies(sizes: list[int], seed: int) -> list[bytes]:
    return [random.Random(seed + index).randbytes(size) for index, size in enumerate(sizes)]


def begins(packets: list[bytes]) -> list[int]:
    return np.cumsum([0, *map(len, packets)]).tolist()[:-1]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("size", [16, 24])
@given(sizes=st.lists(st.integers(0, 3 * WINDOW), min_size=1, max_size=30), seed=st.integers(0, 9), rest=st.integers(0, 50))
def test_packets_are_found_whatever_their_sizes_and_up_to_the_one_that_is_not_whole(order, size, sizes, seed, rest):
    some = [packed(order, BEGIN_S + index // 9, body, size) for index, body in enumerate(bodies(sizes, seed))]
    packets = some * (1 + 10 * APART // len(b"".join(some)))
    cut = packed(order, BEGIN_S, bytes(60), size)[:rest]
    found, behind = whole_packets(b"".join(packets) + cut, layout_of(order, size))
    assert found.tolist() == begins(packets)
    assert behind == len(b"".join(packets))


def test_what_looks_like_a_packet_inside_of_one_is_none():
    inner = b"".join(packed("<", BEGIN_S, bytes(40)) for _ in range(2 * APART // 56))
    packets = [packed("<", BEGIN_S, body) for body in (inner, b"x" * 99, inner)] * 6
    found, _ = whole_packets(b"".join(packets), layout_of("<"))
    assert found.tolist() == begins(packets)


def test_most_packets_are_found_in_step(monkeypatch):
    packets = [packed("<", BEGIN_S + index, bytes(60)) for index in range(20 * APART // 76)]
    monkeypatch.setattr(chain, "_one_by_one", None)
    found, _ = whole_packets(b"".join(packets), layout_of("<"))
    assert found.tolist() == begins(packets)


def test_a_clock_that_goes_back_hides_entries_and_no_packets():
    packets = [packed("<", BEGIN_S - index, bytes(60)) for index in range(20 * APART // 76)]
    found, _ = whole_packets(b"".join(packets), layout_of("<"))
    assert found.tolist() == begins(packets)
