"""Heartbeats that change nothing but times are taken in by a shorter way: it leaves exactly what the long way leaves."""

from __future__ import annotations

import struct
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from operator import lt
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import coordinator as module
from coordinator_model import wire
from coordinator_model.codes import HEARTBEAT, OFFSET_COMMIT
from coordinator_model.coordinator import Coordinator
from coordinator_model.findings import Finding
from coordinator_model.groups import plain
from coordinator_model.groups.classic import ClassicGroup
from coordinator_model.places import OFFSET_SIZE, places_of
from coordinator_model.pulse import CORRELATION_BEGINS, CORRELATION_SIZE, Commits, Constants, Pulse, Run
from coordinator_model.wire.record import DecodedRecord, Kind, MirrorRecord
from tests.coordinator_model import conversation
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.reference.history import Plan, plans
from tests.coordinator_model.reference.unlawful import ACTS, Unlawful, lived
from tests.coordinator_model.rules.test_offsets import SIMPLE
from tests.coordinator_model.test_rules import live, settled


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
    random = Random(seed)
    history = lived(plan, act, random)
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


def runs_of(records: list[MirrorRecord]) -> list[Run] | None:
    """A group's heartbeats and commits by connection, in the order of their last answers; None if there is anything else among the records,
    or what a connection says is not the same throughout.
    """
    waiting: dict[str, MirrorRecord] = {}
    runs: dict[tuple[str, int], Run] = {}
    for record in records:
        if record.api_key not in {HEARTBEAT, OFFSET_COMMIT} or record.cut_bytes or record.queued_behind:
            return None
        if record.kind is Kind.REQUEST:
            if waiting.setdefault(record.connection, record) is not record:
                return None
            continue
        asked = waiting.pop(record.connection, None)
        if asked is None or asked.exchange != record.exchange or not is_plain_success(asked, record):
            return None
        who = record.connection, record.api_key
        run = runs.pop(who, None)
        if (run := further(run, asked, record)) is None:
            return None
        runs[who] = run
    return None if waiting else list(runs.values())


def is_plain_success(asked: MirrorRecord, answered: MirrorRecord) -> bool:
    if asked.group == "" or asked.api_version != answered.api_version:
        return False
    frame = wire.decode(answered.frame, request=False, api_key=answered.api_key, api_version=answered.api_version)
    body: Any = frame.body
    if not asked.correlation_id == answered.correlation_id == frame.correlation_id or body.throttle_time_ms:
        return False
    if answered.api_key == HEARTBEAT:
        return not body.error_code
    return bool(body.topics) and not any(partition.error_code for topic in body.topics for partition in topic.partitions)


def further(run: Run | None, asked: MirrorRecord, answered: MirrorRecord) -> Run | None:
    """The run with one exchange more; None if that is another."""
    opening = asked.group or "", asked.cluster, asked.broker, asked.connection, asked.api_version
    who = asked.client_id, asked.client_address, asked.client_software
    ask = wire.decode(asked.frame, request=True, api_key=asked.api_key, api_version=asked.api_version).body
    found = places_of(asked.frame, ask) if asked.api_key == OFFSET_COMMIT else None
    places = found.offsets if found else ()
    request = blank(asked.frame, CORRELATION_BEGINS, *places)
    told = pulse_of(Constants(*opening, *who, request, bytes(CORRELATION_SIZE) + answered.frame[CORRELATION_SIZE:], places))
    if run is not None and run.told is not told:
        return None
    committed, offsets = None, b"".join(asked.frame[place : place + 8] for place in places)
    if asked.api_key == OFFSET_COMMIT:
        before = None if run is None else run.commits
        newest = struct.unpack(f">{len(places)}q", offsets)
        committed = Commits(
            told,
            newest if before is None else before.first,
            newest,
            before is not None and (before.goes_back or any(map(lt, newest, before.newest))),
            answered.offset if before is None else before.first_answered,
            asked.exchange,
            asked.offset,
            answered.offset,
        )
        if not places:
            return None
    said = told.request(0, 0, 0, asked.frame[4:8], offsets)
    if said.frame != asked.frame or told.response(said, 0, 0).frame != answered.frame:
        return None
    asked_us, answered_us = ([], []) if run is None else (run.asked_us, run.answered_us)
    return Run.of(told, [*asked_us, asked.at_us], [*answered_us, answered.at_us], committed)


def blank(frame: bytes, correlation: int, *offsets: int) -> bytes:
    """Without correlation id and offsets, which begin there."""
    same = bytearray(frame)
    for place, size in [(correlation, CORRELATION_SIZE), *((place, OFFSET_SIZE) for place in offsets)]:
        same[place : place + size] = bytes(size)
    return bytes(same)


pulse_of = lru_cache(maxsize=1_000)(Pulse)
"""The same as long as a connection repeats the same, as those who read captures have it."""


def take_in(model: Coordinator, stretch: list[MirrorRecord]) -> tuple[list[Finding], int]:
    """Hand in a stretch of records, heartbeats of groups of which there is nothing else apart; gives how many these were."""
    groups: dict[tuple[str, str], list[MirrorRecord]] = {}
    for record in stretch:
        groups.setdefault((record.cluster, record.group or ""), []).append(record)
    until_us = max(record.at_us for record in stretch)
    taken = {key for key, held in groups.items() if (runs := runs_of(held)) and model.go_on(key, runs, until_us)}
    if all(before.at_us <= after.at_us for before, after in pairwise(stretch)):
        taken |= {
            key
            for key, held in groups.items()
            if key not in taken and (runs := runs_of(held)) and model.go_on_past(key, runs, until_us)
        }
    found: list[Finding] = []
    passed: list[int] = []
    for record in stretch:
        if (record.cluster, record.group or "") in taken:
            passed.append(record.at_us)
            continue
        found += model.pass_over(passed)
        passed.clear()
        found += model.receive(record)
    found += model.pass_over(passed)
    return found, sum(len(groups[key]) for key in taken)


@given(plan=plans(), act=st.sampled_from([None, *ACTS]), seed=st.integers(0, 2**32 - 1), whole=st.booleans())
def test_stretches_leave_what_record_by_record_leaves(plan: Plan, act: type[Unlawful] | None, seed: int, *, whole: bool) -> None:
    random = Random(seed)
    history = lived(plan, act, random)
    records = with_others(history.records, random)
    if not whole:
        records = disturbed(records, random)
    one, other = Coordinator(topic="mirror", partition=0), Coordinator(topic="mirror", partition=0)
    first = 0
    while first < len(records):
        stretch = records[first : first + random.choice([3, 10, 30, 100])]
        first += len(stretch)
        found, _ = take_in(one, stretch)
        assert found == [finding for record in stretch for finding in other.receive(record)]
        assert one.snapshot() == other.snapshot()
    assert one.advance(one.now_us + 3_600_000_000) == other.advance(other.now_us + 3_600_000_000)


def with_others(records: list[MirrorRecord], random: Random) -> list[MirrorRecord]:
    """The same life led by several groups, each a little later than the one before or earlier."""
    lives = [
        record._replace(group=f"{record.group}-{number}", connection=f"{record.connection}-{number}", at_us=record.at_us + delay_us)
        for number, delay_us in enumerate([random.randrange(10_000_000) for _ in range(4)])
        for record in records
        if record.kind is not Kind.TICK
    ]
    lives += [record for record in records if record.kind is Kind.TICK]
    return [record._replace(offset=offset) for offset, record in enumerate(sorted(lives, key=lambda record: record.at_us))]


def test_of_a_stretch_only_the_records_of_busy_groups_are_handed_in(monkeypatch):
    talk = Conversation()
    a, b = settled(talk)
    talk.settle()  # a group that something happened to is looked at soon
    behind = len(talk.records)
    for _ in range(5):
        talk.heartbeat(a)
        talk.heartbeat(b)
        talk.wait(1_000)
    model = Coordinator(topic="mirror", partition=0)
    for record in talk.records[:behind]:
        model.receive(record)
    monkeypatch.setattr(plain, "beat", lambda *_: pytest.fail("a heartbeat was handed in"))
    assert take_in(model, talk.records[behind:]) == ([], 20)
    assert model.snapshot() == talk.model.snapshot()


def beating(pauses_ms: list[int]) -> tuple[Conversation, int]:
    """Two members heartbeat after each of these pauses, and the group has been looked at; gives how many records were before."""
    talk = Conversation()
    a, b = settled(talk)
    for _ in range(30):
        talk.heartbeat(a)
        talk.heartbeat(b)
        talk.wait(3_000)
    behind = len(talk.records)
    for pause_ms in pauses_ms:
        talk.heartbeat(a)
        talk.heartbeat(b)
        talk.wait(pause_ms)
    talk.heartbeat(b)
    return talk, behind


@pytest.mark.parametrize(("pauses_ms", "is_taken"), [([3_000] * 40, True), ([3_000] * 10 + [60_000] + [3_000] * 5, False)])
def test_a_group_goes_on_past_the_end_of_sessions_that_are_kept_alive(pauses_ms, is_taken):
    talk, behind = beating(pauses_ms)
    model = Coordinator(topic="mirror", partition=0)
    for record in talk.records[:behind]:
        model.receive(record)
    assert model.due_us(("c1", talk.group)) < talk.now_us
    found, taken = take_in(model, talk.records[behind:])
    assert bool(taken) is is_taken
    assert bool(found) is not is_taken
    assert model.snapshot() == talk.model.snapshot()


@pytest.mark.parametrize("silent", [False, True], ids=["both", "one of them"])
def test_nobody_goes_on_past_the_end_of_anothers_session(silent):
    talk, behind = beating([3_000] * 20)
    heard = [record for record in talk.records[behind:] if record.group]
    records = [record for record in heard if not silent or record.connection == heard[-1].connection]
    model = Coordinator(topic="mirror", partition=0)
    for record in talk.records[:behind]:
        model.receive(record)
    runs = runs_of(records)
    assert runs is not None
    assert model.go_on_past(("c1", talk.group), runs, talk.now_us) is not silent


def seldom() -> tuple[Conversation, int]:
    """Two of three heartbeats may be lost before the session ends; that they come no sooner shows after twenty."""
    talk = Conversation()
    a, b = settled(talk)
    begins = []
    for _ in range(40):
        begins.append(len(talk.records))
        talk.heartbeat(a)
        talk.heartbeat(b)
        talk.wait(4_000)
    talk.heartbeat(a)
    return talk, begins[15]


def intruded() -> tuple[Conversation, int]:
    """Somebody who is no member commits, and the next heartbeat proves that there are members."""
    talk = Conversation()
    a, b = settled(talk)
    live(talk, [a, b], 60)
    talk.commit(talk.client("tool"), **SIMPLE)
    talk.wait(1_000)
    talk.heartbeat(a)
    behind = len(talk.records) - 2
    live(talk, [a, b], 120)
    return talk, behind


@pytest.mark.parametrize(("lived", "rule"), [(seldom, "P-10"), (intruded, "O-04")])
def test_what_only_heartbeats_bring_to_light_is_found_when_it_is_due(lived, rule):
    talk, behind = lived()
    model = Coordinator(topic="mirror", partition=0)
    found = [finding for record in talk.records[:behind] for finding in model.receive(record)]
    assert rule not in {finding.rule for finding in found}
    found += take_in(model, talk.records[behind:])[0]
    assert rule in {finding.rule for finding in found}
    assert found == talk.findings
    assert model.snapshot() == talk.model.snapshot()


def test_a_stretch_in_which_a_group_falls_due_is_not_taken_in():
    talk = Conversation()
    a, b = settled(talk)
    talk.heartbeat(a)
    talk.heartbeat(b)
    before = talk.model.snapshot()
    key, due_us = ("c1", talk.group), talk.model.next_deadline()
    at_us = talk.now_us
    runs = [run._replace(asked_us=(at_us + 1_000,), answered_us=(at_us + 2_000,)) for run in runs_of(talk.records[-2:]) or ()]
    assert not talk.model.go_on(key, runs, due_us)
    assert talk.model.snapshot() == before
    assert talk.model.go_on(key, runs, due_us - 1)


def committing(offsets: list[dict[int, int]], **named: Any) -> tuple[Conversation, int]:
    """A member commits these, after it and another have committed some; gives how many records that was."""
    talk = Conversation()
    with patch.object(conversation, "ASSIGNED", conversation.assignment(t=(0, 1, 2, 3))):
        a, b = settled(talk)
    for at in (100, 110):
        talk.commit_offsets(a, {0: at, 1: at})
        talk.commit_offsets(b, {2: at})
    talk.settle()
    behind = len(talk.records)
    for committed in offsets:
        talk.heartbeat(a)
        talk.commit_offsets(a, committed, **named)
        talk.wait(1_000)
    return talk, behind


def test_of_commits_that_go_forward_no_record_is_handed_in(monkeypatch):
    talk, behind = committing([{0: at, 1: at} for at in (110, 120, 120, 130)])
    model = Coordinator(topic="mirror", partition=0)
    for record in talk.records[:behind]:
        model.receive(record)
    monkeypatch.setattr(ClassicGroup, "request", lambda *_: pytest.fail("a commit was handed in"))
    assert take_in(model, talk.records[behind:]) == ([], 16)
    assert model.snapshot() == talk.model.snapshot()


@pytest.mark.parametrize(
    "committed",
    [
        [{0: 120, 1: 109}],
        [{0: 120, 1: 120}, {0: 120, 1: 119}],
        [{0: -1, 1: 120}],
        [{0: 120, 1: 120, 3: 1}],
        [{2: 120}],
        [{0: 2**40, 1: 2**40}, {0: 2**41, 1: 0}],
    ],
    ids=["back", "back later", "nothing", "another partition", "the partition of another", "far back"],
)
def test_other_commits_are_handed_in(committed):
    talk, behind = committing(committed)
    model = Coordinator(topic="mirror", partition=0)
    for record in talk.records[:behind]:
        model.receive(record)
    _, taken = take_in(model, talk.records[behind:])
    assert not taken
    assert model.snapshot() == talk.model.snapshot()


OFFSETS = st.dictionaries(st.integers(0, 3), st.integers(-1, 40), min_size=1, max_size=3)


@given(
    told=st.lists(
        st.tuples(st.sampled_from("ab"), st.booleans(), OFFSETS, st.sampled_from([0] * 9 + [16, 22, 25, 27, 28])), min_size=5
    ),
    grows=st.booleans(),
    sizes=st.lists(st.sampled_from([2, 4, 10, 30]), min_size=1),
)
def test_stretches_of_commits_leave_what_record_by_record_leaves(told, grows, sizes):
    talk = Conversation()
    with patch.object(conversation, "ASSIGNED", conversation.assignment(t=(0, 1, 2))):
        clients = dict(zip("ab", settled(talk), strict=True))
    for number, (who, beats, offsets, error) in enumerate(told):
        talk.wait(700)
        if beats:
            talk.heartbeat(clients[who])
            continue
        further = {partition + 2 * (who == "b"): number for partition in range(2)}  # each what it has committed before
        committed = further if grows else offsets
        talk.commit_offsets(clients[who], committed, dict.fromkeys(committed, error))
    one, other = Coordinator(topic="mirror", partition=0), Coordinator(topic="mirror", partition=0)
    records, turn = talk.records, 0
    while records:
        stretch, records = records[: sizes[turn % len(sizes)]], records[sizes[turn % len(sizes)] :]
        turn += 1
        assert take_in(one, stretch)[0] == [finding for record in stretch for finding in other.receive(record)]
        assert one.snapshot() == other.snapshot()


def test_quiet_groups_take_the_short_way(monkeypatch):
    ways: Counter[str] = Counter()
    beat, request = plain.beat, ClassicGroup.request
    monkeypatch.setattr(plain, "beat", lambda *given: beat(*given) and not ways.update(["short"]))
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
