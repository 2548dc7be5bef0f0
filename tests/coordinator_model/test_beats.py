"""Heartbeats that change nothing but times are taken in by a shorter way: it leaves exactly what the long way leaves."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import coordinator as module
from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.findings import Finding
from coordinator_model.groups.classic import ClassicGroup
from coordinator_model.wire.record import DecodedRecord, Kind, MirrorRecord
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.reference.history import History, Plan, plans
from tests.coordinator_model.reference.unlawful import ACTS, Unlawful
from tests.coordinator_model.test_rules import settled

HEARTBEAT = 12


class Longwinded(Coordinator):
    """Shows each group each request at once."""

    def receive(self, record: MirrorRecord) -> list[Finding]:
        found = super().receive(record)
        for tracked in self._groups.values():
            module._show_beat(tracked)
        return found


def decoded(record: MirrorRecord) -> MirrorRecord:
    """The record as somebody hands it in who has decoded its frame."""
    if record.kind not in {Kind.REQUEST, Kind.RESPONSE}:
        return record
    frame = wire.decode(record.frame, request=record.kind is Kind.REQUEST, api_key=record.api_key, api_version=record.api_version)
    if frame.correlation_id != record.correlation_id:
        return record  # whoever captured it cannot have taken it for this request's
    made = DecodedRecord._make(record)
    made.body = frame.body
    return made


def disturbed(records: list[MirrorRecord], random: Random) -> list[MirrorRecord]:
    """Some records are missing, told twice, late, or stand in another order; the offsets do not show it."""
    told: list[MirrorRecord] = []
    for record in records:
        fate = random.random()
        if fate < 0.02:
            continue
        told.append(record)
        if fate > 0.98:
            told.append(record)
        elif fate > 0.96:
            told[-1] = record._replace(at_us=record.at_us + random.randrange(3_000_000))
        elif fate > 0.94 and len(told) > 1:
            told[-2:] = reversed(told[-2:])
    return [record._replace(offset=offset) for offset, record in enumerate(told)]


@given(plan=plans(), act=st.sampled_from([None, *ACTS]), seed=st.integers(0, 2**32 - 1), whole=st.booleans())
def test_the_short_way_leaves_what_the_long_one_leaves(plan: Plan, act: type[Unlawful] | None, seed: int, *, whole: bool) -> None:
    history, random = History(plan), Random(seed)
    if act is not None:
        act(random.randrange(3)).commit_to(history)
    history.run()
    records = history.records if whole else disturbed(history.records, random)
    short, long = Coordinator(topic="mirror", partition=0), Longwinded(topic="mirror", partition=0)
    for record in records:
        assert short.receive(decoded(record) if random.random() < 0.5 else record) == long.receive(record)
        if random.random() < 0.02:
            assert short.changed_groups() == long.changed_groups()
        if random.random() < 0.01:
            blob = short.snapshot()
            assert blob == long.snapshot()
            if random.random() < 0.5:
                short = Coordinator.restore(blob)
    assert short.advance(short.now_us + 3_600_000_000) == long.advance(long.now_us + 3_600_000_000)
    assert short.snapshot() == long.snapshot()


def test_quiet_groups_take_the_short_way(monkeypatch):
    ways: Counter[str] = Counter()
    beat, request = ClassicGroup.beat, ClassicGroup.request
    monkeypatch.setattr(ClassicGroup, "beat", lambda *given: beat(*given) and not ways.update(["short"]))
    monkeypatch.setattr(ClassicGroup, "request", lambda *given: ways.update(["long"]) or request(*given))
    talk = Conversation()
    a, b = settled(talk)
    ways.clear()
    for _ in range(10):
        talk.heartbeat(a)
        talk.heartbeat(b)
        talk.wait(3_000)
    assert ways == {"short": 20}


def test_a_request_under_way_is_in_the_snapshot():
    talk = Conversation()
    a, _ = settled(talk)
    talk.heartbeat(a)
    under_way = talk.ask(a, wire.HeartbeatRequest(group_id=talk.group, generation_id=a.generation, member_id=a.member_id))
    talk.model = Coordinator.restore(talk.model.snapshot())
    assert len(talk.model._opened(("c1", talk.group))[0].open) == 1
    talk.answer(under_way, wire.HeartbeatResponse())
    assert not talk.model._opened(("c1", talk.group))[0].open
