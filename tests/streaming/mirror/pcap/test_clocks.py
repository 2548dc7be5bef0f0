"""Captures of several hosts are put into one time, by the packets that stand in two of them."""

from __future__ import annotations

import io
import json
import random
from zlib import crc32

import pytest
from typer.testing import CliRunner

from coordinator_model.finding import Severity
from streaming.cli import app
from streaming.mirror.pcap.clocks import Difference, Packets, differences, earlier, overlap, packets_in
from streaming.mirror.pcap.files import opened, packets
from streaming.mirror.pcap.first_pass import segments_in
from tests.golden.transcript import names, read
from tests.samples import sampled
from tests.streaming.mirror.wires import START_US, Connection, Segment, captured, pcap

WAY_US = 200
GRAVE = {Severity.ERROR.value, Severity.CRITICAL.value}


def seen_in(capture: list[Segment]) -> Packets:
    return packets_in(segments_in(packets(opened(io.BytesIO(pcap(capture))), pytest.fail)))


def compared(*captures: list[Segment]) -> list[Difference | None]:
    return differences([seen_in(capture) for capture in captures])


def at_the_broker(segments: list[Segment], ahead_us: int) -> list[Segment]:
    """The same packets where the broker is: a request comes later there, and an answer leaves sooner."""
    there = [
        one._replace(at_us=one.at_us + ahead_us + (WAY_US if one.source[1] >= 40_000 else -WAY_US))  # the client's ports
        for one in segments
    ]
    return sorted(there, key=lambda one: one.at_us)


def talk(port: int = 40_000, at_us: int = START_US) -> list[Segment]:
    segments: list[Segment] = []
    connection = Connection(segments, client=("10.0.0.7", port), at_us=at_us).open()
    for number in range(10):
        connection.heartbeat(number)
        connection.wait(1_000)
    return segments


@pytest.mark.parametrize("ahead_us", [1_000, -37_000, 100_000])
def test_packets_in_both_show_by_how_much_clocks_differ_and_how_certain_that_is(ahead_us):
    segments = talk()
    assert compared(segments, at_the_broker(segments, ahead_us)) == [Difference(0, 0, 0), Difference(ahead_us, WAY_US, 20)]


def test_a_third_capture_shows_it_for_two_that_have_no_packet_in_common():
    one, other = talk(40_000), talk(40_001)
    both = sorted([*at_the_broker(one, 5_000), *at_the_broker(other, 5_000)], key=lambda each: each.at_us)
    moved = [each._replace(at_us=each.at_us + 9_000) for each in other]
    first, second, third = compared(one, moved, both)
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.late_us, second.late_us, third.late_us) == (0, 9_000, 5_000)


def test_where_no_packet_shows_it_it_is_not_known():
    assert compared(talk(40_000), talk(40_001)) == [Difference(0, 0, 0), None]


def test_a_packet_that_came_twice_shows_nothing():
    twice = sorted([*talk(), *(one._replace(at_us=one.at_us + 400) for one in talk())], key=lambda one: one.at_us)
    assert compared(twice, talk()) == [Difference(0, 0, 0), None]


def test_parts_of_a_capture_do_not_overlap():
    parts = [seen_in(talk(at_us=at_us)) for at_us in (START_US, START_US + 60_000_000)]
    assert not overlap(parts)
    assert overlap([parts[0], parts[0]])


def test_times_are_put_back():
    segments = talk()
    ahead = packets(opened(io.BytesIO(pcap([one._replace(at_us=one.at_us + 5_000) for one in segments]))), pytest.fail)
    assert [one[0] for some in earlier(ahead, 5_000) for one in some] == [one.at_us for one in segments]


def replayed(folder, *captures: list[Segment]) -> tuple[set[tuple[str, str]], str]:
    """What is found at error or above, and what is said at the end."""
    files = []
    for number, capture in enumerate(captures):
        files.append(folder / f"{number}.pcap")
        files[-1].write_bytes(pcap(capture))
    result = CliRunner().invoke(app, ["replay", "--format", "json", *map(str, files)], catch_exceptions=False)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return {(one["rule"], one["group"]) for one in found if one["severity"] in GRAVE}, result.stderr


SAMPLE = {"violation-scaled-up-and-down-4.3.1"} | {name for name in names() if crc32(name.encode()) % 40 == 0}


UNPROVEN = ("lawful-eager-3.9.2", "violation-scaled-up-and-down-4.3.1")


@pytest.mark.parametrize("name", sampled(names(), SAMPLE))
def test_captures_of_both_sides_that_lose_packets_make_nobody_guilty(tmp_path, name):
    """What both lost is a hole, and not a matter of clocks."""
    segments = captured(read(name))
    chance = random.Random(name)
    fates = [chance.random() for _ in segments]
    here = [one for one, fate in zip(segments, fates, strict=True) if fate > 0.02]
    there = [one for one, fate in zip(segments, fates, strict=True) if fate < 0.98]
    ahead_us = chance.choice([1_000, -30_000, 100_000])
    known, _ = replayed(tmp_path, segments)
    found, _ = replayed(tmp_path, here, at_the_broker(there, ahead_us))
    assert found <= known


def test_it_is_said_by_how_much_times_were_corrected(tmp_path):
    segments = talk()
    _, said = replayed(tmp_path, segments, at_the_broker(segments, -30_000))
    assert "1.pcap is 30.0 ms behind that of" in said
    assert "as 20 packets in both show: its times were corrected" in said


def test_it_is_said_that_the_order_between_captures_is_not_proven(tmp_path):
    _, said = replayed(tmp_path, talk(40_000), talk(40_001))
    assert "has no packet of the others: the order between connections of different files is not proven" in said


def of_clients(segments: list[Segment], *, even: bool) -> list[Segment]:
    """The packets of every second connection."""
    return [one for one in segments if max(one.source[1], one.destination[1]) % 2 == (not even)]


@pytest.mark.parametrize("ahead_us", [-90_000, 90_000])
@pytest.mark.parametrize("name", UNPROVEN)
def test_no_rule_judges_between_captures_whose_clocks_nothing_compares(tmp_path, name, ahead_us):
    """Each capture has connections of its own: by its clock alone the other's answers come before what they follow from."""
    segments = captured(read(name))
    moved = [one._replace(at_us=one.at_us + ahead_us) for one in of_clients(segments, even=False)]
    known, _ = replayed(tmp_path, segments)
    found, _ = replayed(tmp_path, of_clients(segments, even=True), moved)
    assert found <= known
