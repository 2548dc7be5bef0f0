"""Heartbeats that repeat go past the records, and captures are read by another process: what is found and known is the same."""

from __future__ import annotations

import io
import os
import signal
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.coordinator import Coordinator
from coordinator_model.settings import Settings
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.mirror import apart
from streaming.mirror.apart import ReaderApart, ReaderEndedError
from streaming.mirror.captures import opened, packets
from streaming.mirror.pcap import CaptureReader
from streaming.offline import Offline
from tests.coordinator_model.reference.history import History, Plan, Profile, plans
from tests.coordinator_model.reference.unlawful import ACTS, Unlawful
from tests.streaming.mirror.wires import Connection, Segment, pcap, sized


def capture_of(records: list[MirrorRecord], random: Random, *, loss: float = 0.0) -> bytes:
    """The packets of the connections that these records are of; some are lost, told twice, or stand in another order."""
    wires: list[Segment] = []
    lines: dict[str, Connection] = {}
    for record in records:
        if record.kind is Kind.TICK:
            continue
        line = lines.get(record.connection)
        if line is None:
            client = (f"10.0.1.{len(lines) // 250}", 40_000 + len(lines))
            line = lines[record.connection] = Connection(wires, client=client, broker=(f"10.0.0.{record.broker}", 9092), step_us=1)
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
    return pcap(told)


def replayed(capture: bytes, reader_of: Any) -> dict[str, Any]:
    """All that a replay tells and knows."""
    findings: list[Any] = []
    groups: list[Any] = []
    offline = Offline(
        topic="capture",
        settings=Settings(),
        found=lambda finding: findings.append(finding.as_json()),
        changed=lambda group, at_us: groups.append((at_us, group)),
    )
    reader = reader_of(offline)
    reader.read(packets(opened(io.BytesIO(capture)), lambda _: None))
    reader.finish()
    offline.finish()
    model = offline._models.get(0)
    return {
        "findings": findings,
        "groups": groups,
        "counters": offline.counters,
        "seen": (offline.groups, offline.first_us, offline.last_us),
        "stats": reader.stats,
        "echoes": reader.echoes,
        "figures": model and model.figures(),
        "snapshot": model and model.snapshot(),
    }


def plain(offline: Offline) -> CaptureReader:
    """The long way: each packet through all layers, each frame as a record."""
    reader = CaptureReader(offline.recorded)
    reader._not_repeated = iter
    return reader


def quick(offline: Offline) -> CaptureReader:
    return CaptureReader(offline.recorded, beats=offline)


def by_another(offline: Offline) -> ReaderApart:
    return ReaderApart(offline.recorded, beats=offline)


def quiet(members: int = 2, seconds: int = 60) -> list[MirrorRecord]:
    return Plan(seed=1, profiles=(Profile(),) * members, lasts_ms=seconds * 1_000).run().records


@given(
    plan=plans(),
    act=st.sampled_from([None, *ACTS]),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.0, 0.002, 0.02]),
)
def test_the_quick_way_leaves_what_the_long_one_leaves(plan: Plan, act: type[Unlawful] | None, seed: int, loss: float) -> None:
    history, random = History(plan), Random(seed)
    if act is not None:
        act(random.randrange(3)).commit_to(history)
    history.run()
    capture = capture_of(history.records, random, loss=loss)
    assert replayed(capture, quick) == replayed(capture, plain)


@given(plan=plans(), seed=st.integers(0, 2**32 - 1), loss=st.sampled_from([0.0, 0.02]))
@settings(max_examples=15)
def test_so_does_another_process(plan: Plan, seed: int, loss: float) -> None:
    history = History(plan)
    history.run()
    capture = capture_of(history.records, Random(seed), loss=loss)
    assert replayed(capture, by_another) == replayed(capture, plain)


@pytest.mark.parametrize("kept", [4, 100])
def test_pulses_that_were_forgotten_are_told_anew(kept, monkeypatch):
    monkeypatch.setattr(apart, "PULSES_KEPT", kept)
    capture = capture_of(quiet(members=6), Random(3))
    assert replayed(capture, by_another) == replayed(capture, plain)


def test_quiet_groups_go_the_quick_way(monkeypatch):
    ways: Counter[str] = Counter()
    asked, answered, receive = Coordinator.beat_asked, Coordinator.beat_answered, Coordinator.receive
    monkeypatch.setattr(Coordinator, "beat_asked", lambda *given: asked(*given) and not ways.update(["quick"]))
    monkeypatch.setattr(Coordinator, "beat_answered", lambda *given: answered(*given) and not ways.update(["quick"]))
    monkeypatch.setattr(Coordinator, "receive", lambda *given: ways.update([given[1].kind]) or receive(*given))
    records = [record for record in quiet(seconds=120) if record.api_key not in (8, 9)]
    replayed(capture_of(records, Random(1)), quick)
    assert ways["quick"] > 2 * (ways[Kind.REQUEST] + ways[Kind.RESPONSE])


def test_a_reader_that_is_ended_is_one_sentence(monkeypatch):
    capture = capture_of(quiet(), Random(1))

    def one_that_dies(_batches, _record):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(apart._Batches, "record", one_that_dies)
    with pytest.raises(ReaderEndedError, match="ended from outside"):
        replayed(capture, by_another)


def test_what_goes_wrong_while_reading_is_raised_here():
    def failing():
        yield from list(packets(opened(io.BytesIO(capture_of(quiet(), Random(1)))), lambda _: None))[:20]
        raise OSError("the disk is gone")

    received: list[MirrorRecord] = []
    offline = Offline(topic="capture", settings=Settings(), found=received.append)
    with pytest.raises(OSError, match="the disk is gone"):
        ReaderApart(offline.recorded, beats=offline).read(failing())
    assert offline.counters["open"]


def test_ctrl_c_stops_where_the_file_is_read_on():
    capture = capture_of(quiet(), Random(1))
    offline = Offline(topic="capture", settings=Settings(), found=lambda _: None)
    reader = ReaderApart(offline.recorded, beats=offline)
    here = os.getpid()
    read_on = reader.relay(lambda _: None)

    def endless():
        yield from packets(opened(io.BytesIO(capture)), lambda _: None)
        os.kill(here, signal.SIGINT)
        while True:
            read_on(1)

    with pytest.raises(KeyboardInterrupt):
        reader.read(endless())
    assert reader.stats.packets == len(list(packets(opened(io.BytesIO(capture)), lambda _: None)))
