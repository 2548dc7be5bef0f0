"""Heartbeats that repeat go past the records, and captures are read by another process: what is found and known is the same."""

from __future__ import annotations

import io
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.codes import OFFSET_COMMIT
from coordinator_model.coordinator import Coordinator
from coordinator_model.settings import Settings
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.mirror import apart, passage
from streaming.mirror import pcap as reading
from streaming.mirror.apart import ReaderApart, ReaderEndedError
from streaming.mirror.captures import Portion, opened, packets
from streaming.mirror.pcap import CaptureReader
from streaming.offline import Offline
from tests.coordinator_model.reference.history import History, Plan, Profile, plans
from tests.coordinator_model.reference.unlawful import ACTS, lived
from tests.streaming.mirror.wires import Connection, Segment, pcap, pcapng, sized


def several(records: list[MirrorRecord], random: Random) -> list[MirrorRecord]:
    """The same life led by several groups, each at another time; sometimes they share their connections."""
    shared = random.random() < 0.2
    lives: list[MirrorRecord] = []
    for number, delay_us in enumerate(random.randrange(10_000_000) for _ in range(random.randrange(1, 4))):
        for record in records:
            if record.kind is Kind.TICK or not record.group:
                continue
            group, frame = str(number), record.frame
            for length in (b"\0\1", b"\2"):  # as strings begin, in older versions and from KIP-482 on
                frame = frame.replace(length + record.group.encode(), length + group.encode())
            connection = record.connection if shared else f"{record.connection}-{number}"
            lives.append(record._replace(group=group, frame=frame, connection=connection, at_us=record.at_us + delay_us))
    return sorted(lives, key=lambda record: record.at_us)


def wires_of(records: list[MirrorRecord], random: Random, *, loss: float = 0.0) -> list[Segment]:
    """The packets of the connections that these records are of; some are lost, told twice, or stand in another order."""
    wires: list[Segment] = []
    lines: dict[str, Connection] = {}
    for record in records:
        if record.kind is Kind.TICK:
            continue
        line = lines.get(record.connection)
        if line is None:
            client = (f"10.0.1.{len(lines) // 250}", 40_000 + len(lines))
            initial = (random.randrange(2**32), random.randrange(2**32 - 500, 2**32))
            line = lines[record.connection] = Connection(
                wires, client=client, broker=(f"10.0.0.{record.broker}", 9092), step_us=1, initial=initial
            )
            line.now_us = record.at_us
            if random.random() < 0.9:  # else the capture began later
                line.open()
        line.now_us = record.at_us
        if record.kind is Kind.CLOSE:
            line.close()
        elif record.kind is Kind.REQUEST:
            line.client(sized(record.frame))
        elif record.kind is Kind.RESPONSE:
            line.broker(sized(record.frame))
            line.acknowledge(0)
    told: list[Segment] = []
    for segment in sorted(wires):
        fate = random.random() if loss else 1.0
        if fate < loss:
            continue
        told.append(segment)
        if fate < 2 * loss:
            told.append(segment)
        elif fate < 3 * loss and len(told) > 1:
            told[-2:] = reversed(told[-2:])
    return told


def behind_a_proxy(wires: list[Segment], random: Random) -> list[Segment]:
    """Some of the connections are seen on both sides of a proxy, the second a little later and perhaps not from the beginning."""
    seen_from_us = wires[0].at_us + random.choice([0, 20_000_000]) if wires else 0
    hosts = {"10.0.1.0": "10.0.9.1"}

    def beyond(end: tuple[str, int]) -> tuple[str, int]:
        return hosts.get(end[0], f"10.0.8.{end[0].rpartition('.')[2]}"), end[1]

    copies = [
        segment._replace(at_us=segment.at_us + 50, source=beyond(segment.source), destination=beyond(segment.destination))
        for segment in wires
        if segment.at_us >= seen_from_us and (segment.source[1] + segment.destination[1]) % 2
    ]
    return sorted([*wires, *copies])


def capture_of(records: list[MirrorRecord], random: Random, *, loss: float = 0.0) -> bytes:
    """Of one group."""
    return pcap(wires_of(records, random, loss=loss))


def replayed(
    capture: bytes,
    reader_of: Any,
    portions: Callable[[Iterator[Portion]], Iterator[Portion]] = iter,
    *,
    tells_groups: bool = True,
) -> dict[str, Any]:
    """All that a replay tells and knows."""
    findings: list[Any] = []
    groups: list[Any] = []
    told: list[str] = []
    offline = Offline(
        topic="capture",
        settings=Settings(),
        found=lambda finding: told.append(finding.id) or findings.append(finding.as_json()),
        changed=(lambda group, at_us: told.append(group.group) or groups.append((at_us, group))) if tells_groups else None,
    )
    reader = reader_of(offline)
    reader.read(portions(packets(opened(io.BytesIO(capture)), lambda _: None)))
    reader.finish()
    offline.finish()
    model = offline._models.get(0)
    return {
        "findings": findings,
        "groups": groups,
        "in this order": told,
        "counters": offline.counters,
        "seen": (offline.groups, offline.first_us, offline.last_us),
        "stats": reader.stats,
        "echoes": reader.echoes,
        "figures": model and model.figures(),
        "snapshot": model and model.snapshot(),
    }


def in_pieces(random: Random) -> Callable[[Iterator[Portion]], Iterator[Portion]]:
    """Portions cut at any place."""

    def cut(portions: Iterator[Portion]) -> Iterator[Portion]:
        for portion in portions:
            begin, size = 0, len(portion.at_us)
            while begin < size:
                end = min(begin + random.choice([1, 5, 50, 500]), size)
                yield portion.part(begin, end)
                begin = end

    return cut


def plain(offline: Offline) -> CaptureReader:
    """The long way: each packet through all layers, each frame as a record."""
    return CaptureReader(offline.recorded)


def quick(offline: Offline) -> CaptureReader:
    return CaptureReader(offline.recorded, pass_on=offline.stretch)


class ByAnother(ReaderApart):
    """Reads as the others do."""

    def __init__(self, offline: Offline) -> None:
        super().__init__()
        self.offline = offline

    def read(self, portions: Iterable[Portion]) -> None:
        with self.reading(portions):
            self.take_in(self.offline.recorded, self.offline.stretch)


def quiet(members: int = 2, seconds: int = 60) -> list[MirrorRecord]:
    return Plan(seed=1, profiles=(Profile(),) * members, lasts_ms=seconds * 1_000).run().records


@given(
    plan=plans(),
    act=st.sampled_from([None, *ACTS]),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.0, 0.002, 0.02]),
    link=st.sampled_from(["Ethernet", "Ethernet", "Ethernet, VLAN", "Linux cooked v1", "Linux cooked v2", "raw IP"]),
    write=st.sampled_from([pcap, pcapng]),
    snap=st.sampled_from([262_144, 262_144, 150, 100]),
    proxied=st.booleans(),
    told=st.booleans(),
)
def test_the_quick_way_leaves_what_the_long_one_leaves(  # noqa: PLR0917
    plan, act, seed, loss, link, write, snap, proxied, told
) -> None:
    random = Random(seed)
    history = lived(plan, act, random)
    wires = wires_of(several(history.records, random), random, loss=loss)
    if proxied:
        wires = behind_a_proxy(wires, random)
    capture = pcap(wires, link=link, snap=snap) if write is pcap else pcapng(wires, link=link)
    at_once_us = random.choice([100_000, 1_000_000, 5_000_000, 15_000_000])
    again_us = random.choice([1, 500_000, 4_000_000])
    with (
        patch.object(reading, "WORTH_COLUMNS", 2),
        patch.object(reading, "SHORTEST_AT_ONCE_US", at_once_us),
        patch.object(passage, "WORTH_TAKING", 2),
        patch.object(passage, "AGAIN_US", again_us),
    ):
        assert replayed(capture, quick, in_pieces(random), tells_groups=told) == replayed(capture, plain, tells_groups=told)


@given(plan=plans(), seed=st.integers(0, 2**32 - 1), loss=st.sampled_from([0.0, 0.02]))
@settings(max_examples=15)
def test_so_does_another_process(plan: Plan, seed: int, loss: float) -> None:
    history = History(plan)
    history.run()
    capture = capture_of(history.records, Random(seed), loss=loss)
    assert replayed(capture, ByAnother) == replayed(capture, plain)


@pytest.mark.parametrize("kept", [4, 100])
def test_pulses_that_were_forgotten_are_told_anew(kept, monkeypatch):
    monkeypatch.setattr(apart, "PULSES_KEPT", kept)
    capture = capture_of(quiet(members=6), Random(3))
    assert replayed(capture, ByAnother) == replayed(capture, plain)


@pytest.fixture
def ways(monkeypatch) -> Counter[str]:
    """How many frames went the quick way, and how many records the long one."""
    monkeypatch.setattr(reading, "WORTH_COLUMNS", 2)
    ways: Counter[str] = Counter()
    go_on, receive = Coordinator._go_on, Coordinator.receive

    def counted(model, key, runs):
        taken = go_on(model, key, runs)
        ways["quick"] += sum(2 * len(run.asked_us) for run in runs) if taken else 0
        return taken

    monkeypatch.setattr(Coordinator, "_go_on", counted)
    monkeypatch.setattr(Coordinator, "receive", lambda *given: ways.update([given[1].kind]) or receive(*given))
    return ways


@pytest.mark.parametrize("left_out", [(), (OFFSET_COMMIT,)], ids=["with commits", "heartbeats alone"])
def test_quiet_groups_go_the_quick_way(left_out, ways):
    records = [record for record in quiet(seconds=120) if record.api_key not in (*left_out, 9)]
    replayed(capture_of(records, Random(1)), quick)
    assert ways["quick"] > 2 * (ways[Kind.REQUEST] + ways[Kind.RESPONSE])


def test_a_connection_that_was_left_is_taken_up_again_once_it_is_quiet(ways, monkeypatch):
    monkeypatch.setattr(reading, "SHORTEST_AT_ONCE_US", 300_000_000)  # at its beginning nothing is known of any connection
    monkeypatch.setattr(passage, "WORTH_TAKING", 2)
    capture = capture_of(quiet(seconds=120), Random(1))
    replayed(capture, quick)
    again = ways["quick"]
    monkeypatch.setattr(passage, "AGAIN_US", 300_000_000)
    replayed(capture, quick)
    assert again > 100 > ways["quick"] - again


def test_a_reader_that_is_ended_is_one_sentence(monkeypatch):
    capture = capture_of(quiet(), Random(1))

    def one_that_dies(_batches, _record):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(apart._Batches, "record", one_that_dies)
    with pytest.raises(ReaderEndedError, match="ended from outside"):
        replayed(capture, ByAnother)


def test_what_goes_wrong_while_reading_is_raised_here():
    def failing():
        for portion in packets(opened(io.BytesIO(capture_of(quiet(), Random(1)))), lambda _: None):
            yield portion.part(0, 20)
        raise OSError("the disk is gone")

    received: list[MirrorRecord] = []
    offline = Offline(topic="capture", settings=Settings(), found=received.append)
    with pytest.raises(OSError, match="the disk is gone"):
        ByAnother(offline).read(failing())
    assert offline.counters["open"]


def test_ctrl_c_stops_where_the_file_is_read_on():
    capture = capture_of(quiet(), Random(1))
    offline = Offline(topic="capture", settings=Settings(), found=lambda _: None)
    reader = ByAnother(offline)
    here = os.getpid()
    read_on = reader.relay(lambda _: None)

    def endless():
        yield from packets(opened(io.BytesIO(capture)), lambda _: None)
        os.kill(here, signal.SIGINT)
        while True:
            read_on(1)

    with pytest.raises(KeyboardInterrupt):
        reader.read(endless())
    assert reader.stats.packets == sum(len(portion.at_us) for portion in packets(opened(io.BytesIO(capture)), lambda _: None))
