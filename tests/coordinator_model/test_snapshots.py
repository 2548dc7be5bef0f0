"""Snapshots: what an older release wrote still loads, what a newer one wrote is refused by name, and both cost little.

For each format there is a fixture: ``snapshots/format-N.bin``, the snapshot of a troubled partition, ``snapshots/format-N.records``, the
records of that partition before and after it, and ``snapshots/format-N.fields.json``, the fields of each type that a snapshot can hold.
Once a release writes a format, its fixture is never made again; a new format gets its own::

    python -m tests.coordinator_model.test_snapshots

It refuses to overwrite one that exists.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator_model import snapshots, wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding, Status
from coordinator_model.groups.records import NO_CLIENT, Member
from coordinator_model.settings import Settings
from coordinator_model.snapshots import FORMAT_VERSION, SnapshotError
from coordinator_model.wire.record import Kind, Loss, MirrorRecord, pack_loss
from tests.coordinator_model import troubled
from tests.coordinator_model.classic import live, settled, static_group
from tests.coordinator_model.conversation import START_US, Conversation
from tests.coordinator_model.epoch_groups import joined_pair
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.reference.consumer_group import topic_id
from tests.coordinator_model.rules.coordinators import fail_over
from tests.coordinator_model.rules.offsets import SIMPLE, sharing

FIXTURES = Path(__file__).parent / "snapshots"
FORMATS = (1,)
CUT_US = START_US + 1_000_000_000

decode, encode = msgspec.msgpack.decode, msgspec.msgpack.encode


# ---------------------------------------------------------------------------------------------------- the fixture's partition


class Interrupted(Conversation):
    """A conversation that says where the snapshot is taken."""

    cut = 0

    def here(self) -> None:
        self.cut = len(self.records)


def busy_offsets() -> Interrupted:
    """Commits of all kinds, one of them under way."""
    talk = Interrupted()
    a, b = sharing(talk)
    talk.commit(talk.client("tool"), **SIMPLE)
    talk.commit_offsets(a, {0: 9, 1: 9})
    talk.commit_offsets(b, {1: 9, 2: 9})
    talk.fetch_offsets(b, {0: -1, 2: 9}, {0: 88})
    under_way = talk.ask(a, talk.commit_request(a, {0: 11}))
    reading = talk.ask(a, talk.fetch_request(a, (0, 1)))
    talk.here()
    talk.answer(under_way, talk.committed({0: 0}))
    talk.answer(reading, talk.fetched({0: 11, 1: 9}))
    for _ in range(3):
        talk.commit_offsets(b, {2: 8}, {2: 29})
        talk.wait(3_000)
    talk.commit(talk.client("tool"), 25, **SIMPLE)
    talk.wait(90_000)
    return talk


def moving_coordinator() -> Interrupted:
    """A failover, a pointed-at broker that refuses, a load that lasts, a leave, a sync and a join that wait."""
    talk = Interrupted()
    clients = fail_over(talk, settled(talk, ("a", "b", "c"), generation=5))
    for _ in range(3):
        talk.find_coordinator(clients[0], node_id=1)
        talk.commit(clients[0].reconnected("1"), 16)
    talk.round(clients, 6)
    for _ in range(4):
        talk.refuse_join(talk.ask_join(talk.client("z", "1")), 14)
        talk.find_coordinator(clients[1], error=15)
        talk.wait(5_000)
    a, b, c = clients
    talk.leave(c)
    talk.join_all([a, b], 7)
    waiting = [talk.ask(b, talk.sync_request(b, []))]
    leaver = talk.ask_join(talk.client("d"))
    talk.here()
    talk.refuse_join(leaver, 79, "d-1")
    waiting.append(talk.ask(a, talk.sync_request(a, [a, b])))
    for one in waiting:
        talk.answer(one, talk.synced())
    live(talk, [a, b], 30)
    talk.heartbeat(a, -1)
    talk.wait(60_000)
    return talk


def static_members() -> Interrupted:
    """A static member that is away, and a leader that waits for it."""
    talk = Interrupted()
    leader, first = static_group(talk)
    talk.close(first)
    live(talk, [leader], 4)
    asked = talk.ask_join(leader)
    talk.here()
    talk.wait(25_000)
    talk.joined(asked, generation=4, leader=leader, roster=[leader, first])
    talk.sync_all([leader])
    live(talk, [leader], 20)
    return talk


def doubtful() -> Interrupted:
    """Refusals that the next frames contradict, and a long poll that ended in a leave."""
    talk = Interrupted()
    a, b, c = settled(talk, ("a", "b", "c"))
    live(talk, [a, b, c], 25)
    talk.heartbeat(b, 22)
    talk.heartbeat(a, 22, generation=9)
    talk.leave(c)
    under_way = talk.ask(b, talk.leave_request(b))
    talk.here()
    talk.heartbeat(a)
    talk.joined(talk.ask_join(c, member_id=""), generation=4, leader=a, roster=[], member_id="c-2")
    talk.answer(under_way, wire.LeaveGroupResponse())
    talk.wait(120_000)
    return talk


def lost_coordinator() -> Interrupted:
    """Nobody finds the coordinator, and the broker that is named refuses."""
    talk = Interrupted()
    a, z = talk.client("a"), talk.client("z")
    for spell in range(6):
        talk.commit(z, 15, **SIMPLE)
        talk.refuse_join(talk.ask_join(z), 14)
        talk.wait(4_000)
        talk.find_coordinator(a, node_id=1)
        talk.commit(a, 16, **SIMPLE)
        talk.find_coordinator(a, node_id=1)
        talk.commit(a, 16, **SIMPLE)
        if spell == 2:
            talk.here()
    for _ in range(30):
        talk.refuse_join(talk.ask_join(z), 14)
        talk.commit(z, 15, **SIMPLE)
        talk.wait(2_000)
    talk.wait(60_000)
    return talk


def disconnected() -> Interrupted:
    """All members lost their connections, and look for a coordinator that comes back after more than a session."""
    talk = Interrupted()
    a, b = settled(talk, ("a", "b"), generation=5)
    talk.close(a)
    talk.close(b)
    searching = [talk.client("a", "2"), talk.client("b", "2")]
    for second in range(15):
        talk.wait(1_000)
        for client in searching:
            talk.find_coordinator(client)
        if second == 7:
            talk.here()
    live(talk, [a.reconnected("2"), b.reconnected("2")], 30)
    return talk


def reconciling() -> Epochs:
    """A member with an epoch gives partitions up for another one, which is fenced later."""
    talk = Epochs()
    a, b = joined_pair(talk, held=foo(0, 1, 2, 3))
    talk.beats(a, 2, foo(0, 1))
    talk.beats(a, 3, owned=foo(0, 1))
    talk.beats(b, 3, foo(2, 3))
    for _ in range(5):
        talk.refused(b, 110)
        talk.wait(3_000)
    talk.live([a], 60)
    return talk


def conversations() -> dict[str, Conversation]:
    return {
        "assignments": troubled.assignments(),
        "members": troubled.members(),
        "sessions": troubled.sessions(),
        "mixed": troubled.mixed(),
        "offsets": busy_offsets(),
        "coordinators": moving_coordinator(),
        "static": static_members(),
        "doubtful": doubtful(),
        "lost": lost_coordinator(),
        "disconnected": disconnected(),
        "reconciling": reconciling(),
    }


def richest_cut(talk: Conversation) -> int:
    """After how many records the snapshot holds most."""
    if isinstance(talk, Interrupted):
        return talk.cut
    model = Coordinator(topic="mirror", partition=0)
    held = []
    for record in talk.records:
        model.receive(record)
        held.append(len(model.snapshot()))
    return held.index(max(held)) + 1


def partition() -> tuple[list[MirrorRecord], int]:
    """The records of all conversations, each a cluster of its own, shifted so that all are at their cut at one time; and that cut."""
    before: list[MirrorRecord] = []
    after: list[MirrorRecord] = []
    for cluster, talk in conversations().items():
        cut = richest_cut(talk)
        shift_us = CUT_US - talk.records[cut - 1].at_us
        for index, record in enumerate(talk.records):
            moved = record._replace(
                cluster=cluster,
                connection=record.connection and f"{cluster}:{record.connection}",
                at_us=record.at_us + shift_us,
            )
            (before if index < cut else after).append(moved)
    before.sort(key=lambda record: record.at_us)
    after.sort(key=lambda record: record.at_us)
    gap = before[-1]._replace(kind=Kind.GAP, group="nobody's", frame=pack_loss(Loss(1, 100, CUT_US - 1, CUT_US)), at_us=CUT_US)
    records = [record._replace(offset=offset) for offset, record in enumerate([*before, gap, *after], start=100)]
    return records, len(before) + 1


def read_records(version: int) -> tuple[list[MirrorRecord], int]:
    packed = zlib.decompress((FIXTURES / f"format-{version}.records").read_bytes())
    return decode(packed, type=tuple[list[MirrorRecord], int])


def received(records: list[MirrorRecord]) -> tuple[Coordinator, list[Finding]]:
    model = Coordinator(topic="mirror", partition=0)
    return model, [finding for record in records for finding in model.receive(record)]


# ---------------------------------------------------------------------------------------------------- formats


@pytest.mark.parametrize("version", FORMATS)
def test_a_snapshot_of_each_format_still_loads_and_goes_on_as_if_nothing_had_been(version: int) -> None:
    records, cut = read_records(version)
    model = Coordinator.restore((FIXTURES / f"format-{version}.bin").read_bytes())
    uninterrupted, _ = received(records[:cut])
    assert model.next_offset == uninterrupted.next_offset == records[cut].offset
    assert model.now_us == uninterrupted.now_us == CUT_US
    told: list[tuple[str, Status]] = []
    for record in records[cut:]:
        expected = [(one.id, one.status) for one in uninterrupted.receive(record)]
        assert [(one.id, one.status) for one in model.receive(record)] == expected
        told += expected
    assert len(told) > 50


#: cluster → state, generation, incarnation, members, open findings
KNOWN_TO_FORMAT_1 = {
    "assignments": ("CompletingRebalance", 5, 1, 3, 12),
    "coordinators": ("CompletingRebalance", 7, 2, 2, 2),
    "disconnected": ("Unknown", 5, 1, 2, 1),
    "doubtful": ("PreparingRebalance", 3, 1, 2, 0),
    "lost": ("Unknown", None, 1, 0, 0),
    "members": ("PreparingRebalance", 7, 1, 2, 9),
    "mixed": ("PreparingRebalance", 5, 1, 2, 4),
    "offsets": ("Stable", 3, 1, 2, 2),
    "reconciling": ("Stable", 3, 1, 2, 3),
    "sessions": ("PreparingRebalance", 14, 2, 2, 8),
    "static": ("PreparingRebalance", 3, 1, 2, 0),
}


def test_what_the_fixture_of_the_first_format_knows() -> None:
    model = Coordinator.restore((FIXTURES / "format-1.bin").read_bytes())
    known = {}
    for group in model.changed_groups():
        content = group.as_json()
        assert content is not None
        known[group.cluster] = tuple(content[name] for name in ("state", "generation", "incarnation", "members", "open_findings"))
    assert {
        cluster: (state, generation, incarnation, len(members), open_)
        for cluster, (state, generation, incarnation, members, open_) in known.items()
    } == KNOWN_TO_FORMAT_1
    assert model.record_counts["records lost by the capture"] == 1
    assert {(known.rule, known.published) for known in model._own.open_findings.open.values()} == {("V-04", True)}


def fields_of_today() -> dict[str, list[str]]:
    found = msgspec.inspect.multi_type_info([snapshots._Snapshot, snapshots._Classic, snapshots._Epochs, snapshots._Fast])
    return dict(sorted(_fields_in(found, set())))


def _fields_in(types: Any, seen: set[type]) -> Iterator[tuple[str, list[str]]]:
    if isinstance(types, list | tuple):
        for one in types:
            yield from _fields_in(one, seen)
    elif isinstance(types, msgspec.inspect.Field | msgspec.inspect.Type):
        cls = getattr(types, "cls", None)
        if cls in seen:
            return
        if cls is not None and isinstance(types, msgspec.inspect.StructType | msgspec.inspect.NamedTupleType):
            seen.add(cls)
            yield f"{cls.__module__}.{cls.__name__}", [field.name for field in types.fields]
        for name in types.__struct_fields__:
            yield from _fields_in(getattr(types, name), seen)


@pytest.mark.parametrize("record", fields_of_today())
def test_fields_are_only_ever_appended(record: str) -> None:
    """They are stored by position: one put in between would be read for another from every snapshot that exists."""
    then = json.loads((FIXTURES / f"format-{FORMAT_VERSION}.fields.json").read_text(encoding="utf-8")).get(record, [])
    assert fields_of_today()[record][: len(then)] == then


def test_fields_that_were_appended_later_get_their_defaults() -> None:
    member = Member("m", session_timeout_ms=9_000, rebalance_timeout_ms=8_000, topics=b"\x01")
    row = decode(encode(member))
    assert decode(encode(row), type=Member) == member
    assert decode(encode(row[: row.index(9_000) + 1]), type=Member) == Member("m", NO_CLIENT, session_timeout_ms=9_000)


# ---------------------------------------------------------------------------------------------------- what cannot be read


def settled_model() -> Coordinator:
    talk = Conversation()
    settled(talk)
    return talk.model


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(SnapshotError, match="snapshot format 99 is newer than 1"):
        Coordinator.restore(encode([99, {}]))


@pytest.mark.parametrize("blob", [b"", b"\xc1", b"\x91" * 100_000, encode({"version": 1}), encode([1]), encode([1, [5], [], []])])
def test_what_is_no_snapshot_is_refused(blob: bytes) -> None:
    with pytest.raises(SnapshotError, match="not a snapshot of the model"):
        Coordinator.restore(blob)


def test_any_part_of_a_snapshot_is_refused() -> None:
    blob = settled_model().snapshot()
    for size in range(len(blob)):
        with pytest.raises(SnapshotError):
            Coordinator.restore(blob[:size])


def test_a_block_that_is_damaged_is_refused() -> None:
    version, state, blocks, fast_parts = decode(settled_model().snapshot())
    with pytest.raises(SnapshotError, match="not a snapshot of the model"):
        Coordinator.restore(encode([version, state, [blocks[0][:-9]], fast_parts]))
    with pytest.raises(SnapshotError, match="not a snapshot of the model"):
        Coordinator.restore(encode([version, state, blocks, []]))


def with_group(blob: bytes, change: Callable[[list[Any]], None]) -> bytes:
    """The snapshot with the slow part of each group changed."""
    version, state, blocks, fast_parts = decode(blob)
    for number, block in enumerate(blocks):
        groups = decode(zlib.decompress(block))
        for group in groups:
            slow_part = decode(group[2])
            change(slow_part)
            group[2] = encode(slow_part)
        blocks[number] = zlib.compress(encode(groups))
    return encode([version, state, blocks, fast_parts])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda slow_part: slow_part[3].append("new"), r"Expected `array` of at most length \d+, got \d+ - at `\$\[3\]`"),
        (lambda slow_part: slow_part[4][0].append("new"), r"Expected `array` of at most length \d+"),
        (lambda slow_part: slow_part[4].append(slow_part[4][0]), ""),  # of it the fast part says nothing
        (lambda slow_part: slow_part.__setitem__(0, "New"), "Invalid value 'New'"),
        (lambda slow_part: slow_part.pop(), "Expected `array` of at least length 5, got 4"),
    ],
)
def test_a_group_that_cannot_be_unpacked_is_refused_whenever_it_is_needed(
    talk: Conversation, change: Callable[[Any], None], sentence: str
) -> None:
    a, _ = settled(talk)
    talk.model = Coordinator.restore(with_group(talk.model.snapshot(), change))
    with pytest.raises(SnapshotError, match=f"group g cannot be read from the snapshot: {sentence}"):
        talk.heartbeat(a)
    with pytest.raises(SnapshotError, match=f"group g cannot be read from the snapshot: {sentence}"):
        talk.model.receive_unreadable(talk.offset - 1, talk.now_us, "g", "the model raised SnapshotError")


def test_a_value_that_has_no_place_in_a_snapshot_is_an_error() -> None:
    model = settled_model()
    group, _ = model.groups.opened(("c1", "g"))
    group.causes = {"what": object()}  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="object is unsupported"):
        model.snapshot()


# ---------------------------------------------------------------------------------------------------- size


def test_a_settled_group_of_ten_takes_two_kilobytes_at_most(talk: Conversation) -> None:
    empty = len(talk.model.snapshot())
    clients = [talk.client(f"worker-{number}") for number in range(10)]
    for client in clients:
        client.member_id = f"{client.name}-0c7a3f52-6d1b-4f0e-9a77-5b1de0c1f6{client.port % 100:02}"
    talk.round(clients, 5)
    live(talk, clients, 30)
    assert len(talk.model.snapshot()) - empty <= 2_048


def test_a_group_with_epochs_of_ten_that_grew_one_by_one_takes_three_kilobytes_at_most(talk: Epochs) -> None:
    """Each newcomer gets three of the thirty partitions that the first held."""
    empty = len(talk.model.snapshot())
    members = [talk.member(f"worker-{number}") for number in range(10)]
    for member in members:
        member.member_id = topic_id(member.name)  # as hard to compress as a UUID
    first, held = members[0], tuple(range(30))
    talk.joins(first, 2, foo(*held))
    for epoch, member in enumerate(members[1:], 3):
        given, held = held[-3:], held[:-3]
        talk.joins(member, epoch, {})
        talk.beats(first, epoch - 1, foo(*held))
        talk.beats(first, epoch, owned=foo(*held))
        talk.beats(member, epoch, foo(*given))
    for member in members:
        talk.beats(member, 11)
    talk.live(members, 30)
    assert talk.rules() == []
    assert 1_000 < len(talk.model.snapshot()) - empty <= 3_000


def beat_of(number: int, at_us: int) -> MirrorRecord:
    talk = Conversation(group=f"g{number}")
    client = talk.client(f"worker-{number}")
    client.member_id = client.name
    talk.heartbeat(client)
    return talk.records[0]._replace(at_us=at_us)


def test_groups_that_come_and_go_leave_the_others_in_the_order_in_which_they_came() -> None:
    """What is restored goes through its groups as the model that was stored does, whatever block they stand in."""
    settings = Settings(forget_group_ms=60_000)
    kept = Coordinator(topic="mirror", partition=0, settings=settings)
    restored = Coordinator(topic="mirror", partition=0, settings=settings)
    numbers = [*range(40), *range(20, 40), *range(50, 60), 3, *range(60, 80)]
    for offset, number in enumerate(numbers):
        record = beat_of(number, START_US + offset * 2_000_000)._replace(offset=offset)
        for model in (kept, restored):
            model.receive(record)
        if offset % 7 == 0:
            restored = Coordinator.restore(restored.snapshot(), settings=settings)
            assert kept.snapshot() == restored.snapshot()
    assert list(kept.groups) == list(restored.groups)
    assert 0 < len(kept.groups) < len(set(numbers))


def test_what_only_heartbeats_is_neither_packed_cold_nor_compressed_again() -> None:
    model = settled_model()
    model.snapshot()
    (block,) = model.groups._blocks
    before = block.packed
    talk = Conversation()
    a, _ = settled(talk)
    count = len(talk.records)
    talk.heartbeat(a)
    for record in talk.records[count:]:
        assert not model.receive(record)
    blob = model.snapshot()
    assert block.packed is before
    assert Coordinator.restore(blob).snapshot() == blob


# ---------------------------------------------------------------------------------------------------- making a fixture


def make_fixture() -> None:
    path = FIXTURES / f"format-{FORMAT_VERSION}.bin"
    if path.exists():
        sys.exit(f"{path.name} exists: the fixture of a format is never made again")
    records, cut = partition()
    model, _ = received(records[:cut])
    FIXTURES.mkdir(exist_ok=True)
    path.write_bytes(model.snapshot())
    path.with_suffix(".records").write_bytes(zlib.compress(encode((records, cut)), level=9))
    path.with_suffix(".fields.json").write_text(json.dumps(fields_of_today(), indent=1) + "\n", encoding="utf-8")
    print(f"{path.name}: {path.stat().st_size} bytes; {cut} of {len(records)} records before it")


if __name__ == "__main__":
    make_fixture()
