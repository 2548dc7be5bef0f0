"""Rows of heartbeats that repeat are told from all others by their bytes, and only where nothing else is heard of their group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import pytest

from coordinator_model import wire
from coordinator_model.sieve import MirrorRow, Sieve, Sifted
from coordinator_model.wire.reader import RecordReader
from coordinator_model.wire.record import Kind, Loss, MirrorRecord, RecordError, pack_envelope, pack_loss
from tests.real.traffic import Group, tick

START_US = 1_700_000_000_000_000


def rows_of(records: Sequence[MirrorRecord]) -> list[MirrorRow]:
    return [
        (
            0,
            place,
            record.at_us // 1_000,
            None if record.group is None else record.group.encode(),
            record.frame,
            pack_envelope(record),
        )
        for place, record in enumerate(records)
    ]


def taught(records: Sequence[MirrorRecord]) -> Sieve:
    """A sieve that has met some records."""
    reader = RecordReader()
    sieve = Sieve(reader)
    for row in rows_of(records):
        partition, offset, _, key, value, envelope = row
        sieve.learn(reader.read(partition, offset, key, value, envelope), row)
    return sieve


def beats(group: Group, *at_s: float) -> list[MirrorRecord]:
    return [record for when in at_s for record in group.heartbeat(START_US + int(when * 1_000_000))]


def names(sifted: Sifted) -> list[str]:
    return [group.key[1] for group in sifted.groups]


@pytest.mark.parametrize("exchanges", [0, 128, 256, 65_536])
def test_heartbeats_are_known_whatever_the_width_of_their_numbers(exchanges):
    group = Group("g")
    group.exchange = exchanges
    sieve = taught(beats(group, 0))
    told = beats(group, 1, 2)
    (beaten,) = sieve.sift(rows_of(told)).groups
    assert [(asked_us, at_us) for _, asked_us, at_us in beaten.beats] == [
        (record.at_us, record.at_us + 1_000) for record in told if record.kind is Kind.REQUEST
    ]
    assert beaten.places == [0, 1, 2, 3]
    line = beaten.beats[0][0]
    assert (line.key, line.broker, line.connection, line.version) == (("c1", "g"), "1", "g#1", 4)
    assert (line.member_id, line.generation, line.instance_id) == ("m-1", 1, None)


@pytest.mark.parametrize("exchanges", [127, 255, 65_535])
def test_numbers_that_have_grown_wider_are_learned_first(exchanges):
    group = Group("g")
    group.exchange = exchanges
    told = beats(group, 0, 1)
    assert not names(taught(told[:2]).sift(rows_of(told[2:])))
    assert names(taught(told).sift(rows_of(beats(group, 2)))) == ["g"]


def test_the_newest_time_is_that_of_all_rows():
    one, other = Group("g"), Group("h")
    sieve = taught(beats(one, 0))
    late = beats(other, 9)
    assert max(sieve.sift(rows_of([*beats(one, 1), *late])).times_us) == late[-1].at_us
    sifted = sieve.sift([*rows_of(beats(one, 1)), (0, 2, START_US // 1_000 + 20_000, b"h", b"", b"no envelope")])
    assert (names(sifted), max(sifted.times_us)) == (["g"], START_US + 20_000_000)
    assert isinstance(sifted.read[2], RecordError)


def test_rows_that_were_looked_at_more_closely_need_not_be_read_again():
    one, other = Group("g"), Group("h")
    records = [*beats(one, 1), *other.join(START_US), tick(START_US)]
    sifted = taught(beats(one, 0)).sift(rows_of(records))
    assert sifted.read == {place: records[place]._replace(partition=0, offset=place) for place in (2, 3, 4)}


def refused(group: Group) -> list[MirrorRecord]:
    asked, _ = beats(group, 1)
    return [asked, answer(asked, wire.HeartbeatResponse(error_code=27))]


def throttled(group: Group) -> list[MirrorRecord]:
    asked, _ = beats(group, 1)
    return [asked, answer(asked, wire.HeartbeatResponse(throttle_time_ms=50))]


def answered_to_another(group: Group) -> list[MirrorRecord]:
    asked, answered = beats(group, 1)
    return [asked, answered._replace(exchange=asked.exchange + 1)]


def answered_with_another_number(group: Group) -> list[MirrorRecord]:
    asked, answered = beats(group, 1)
    return [asked, answered._replace(frame=(77).to_bytes(4, "big") + answered.frame[4:])]


def unanswered(group: Group) -> list[MirrorRecord]:
    return beats(group, 1)[:1]


def asked_twice(group: Group) -> list[MirrorRecord]:
    asked, answered = beats(group, 1)
    return [asked, asked, answered]


def answered_first(group: Group) -> list[MirrorRecord]:
    return beats(group, 1)[::-1]


def of_another_generation(group: Group) -> list[MirrorRecord]:
    ask = wire.HeartbeatRequest(group_id="g", generation_id=2, member_id="m-1")
    return group._exchange(START_US + 1_000_000, ask, wire.HeartbeatResponse(), 4)


def of_another_version(group: Group) -> list[MirrorRecord]:
    ask = wire.HeartbeatRequest(group_id="g", generation_id=1, member_id="m-1")
    return group._exchange(START_US + 1_000_000, ask, wire.HeartbeatResponse(), 3)


def behind_others(group: Group) -> list[MirrorRecord]:
    asked, answered = beats(group, 1)
    return [asked._replace(queued_behind=1), answered]


def cut(group: Group) -> list[MirrorRecord]:
    asked, answered = beats(group, 1)
    return [asked._replace(frame=asked.frame[:-3], cut_bytes=3), answered]


def on_another_connection(group: Group) -> list[MirrorRecord]:
    return [record._replace(connection="g#2") for record in beats(group, 1)]


def beside_something_else(group: Group) -> list[MirrorRecord]:
    return [*beats(group, 1), *group.sync(START_US + 2_000_000), *beats(group, 3)]


def beside_a_closed_connection(group: Group) -> list[MirrorRecord]:
    close = beats(group, 1)[0]._replace(kind=Kind.CLOSE, exchange=-1, api_key=-1, api_version=-1, correlation_id=0, frame=b"")
    return [*beats(group, 2), close]


def beside_a_gap_of_its_own(group: Group) -> list[MirrorRecord]:
    return [*beats(group, 1), gap()._replace(group="g")]


def answer(asked: MirrorRecord, body: Any) -> MirrorRecord:
    frame = wire.encode_response(body, api_version=4, correlation_id=asked.correlation_id)
    return asked._replace(kind=Kind.RESPONSE, at_us=asked.at_us + 1_000, frame=frame)


def gap() -> MirrorRecord:
    return tick(START_US)._replace(kind=Kind.GAP, frame=pack_loss(Loss(3, 300, START_US, START_US)))


@pytest.mark.parametrize(
    "what",
    [
        refused, throttled, answered_to_another, answered_with_another_number, unanswered, asked_twice, answered_first,
        of_another_generation, of_another_version, behind_others, cut, on_another_connection, beside_something_else,
        beside_a_closed_connection, beside_a_gap_of_its_own,
    ],
)  # fmt: skip
def test_a_group_of_which_anything_else_is_heard_is_left_alone(what: Callable[[Group], list[MirrorRecord]]):
    group, quiet = Group("g"), Group("quiet")
    sieve = taught([*beats(group, 0), *beats(quiet, 0)])
    records = [*beats(group, 0.5), *beats(quiet, 0.6), *what(group), *beats(quiet, 4)]
    assert names(sieve.sift(rows_of(records))) == ["quiet"]


def test_one_name_in_two_clusters_is_two_groups_that_wait_for_each_other():
    one, other = Group("g"), Group("g", cluster="c2")
    apart = [record._replace(connection="g#2") for record in beats(other, 0, 1)]
    sieve = taught([*beats(one, 0), *apart[:2]])
    sifted = sieve.sift(rows_of([*beats(one, 1), *apart[2:]]))
    assert [group.key for group in sifted.groups] == [("c1", "g"), ("c2", "g")]
    assert not names(sieve.sift(rows_of([*beats(one, 2), *(record._replace(connection="g#2") for record in unanswered(other))])))


@pytest.mark.parametrize("group", [None, ""])
def test_a_gap_that_concerns_all_groups_leaves_all_alone(group):
    quiet = Group("quiet")
    sieve = taught(beats(quiet, 0))
    assert not names(sieve.sift(rows_of([*beats(quiet, 1), gap()._replace(group=group)])))


def test_a_key_that_cannot_be_read_may_be_any_groups():
    quiet = Group("quiet")
    sieve = taught(beats(quiet, 0))
    row = rows_of(beats(quiet, 2))[0]
    assert not names(sieve.sift([*rows_of(beats(quiet, 1)), (0, 2, 0, b"\xff", *row[4:])]))


def test_an_envelope_written_in_another_order_is_never_known():
    group = Group("g")
    reader = RecordReader()
    sieve = Sieve(reader)

    def rows(*at_s: float) -> list[MirrorRow]:
        return [
            (*row[:5], msgpack.packb(dict(sorted(msgpack.unpackb(row[5]).items()))))
            for row in rows_of(beats(group, *at_s))
            if row[5]
        ]

    for row in rows(0):
        sieve.learn(reader.read(0, row[1], *row[3:]), row)
    sifted = sieve.sift(rows(1))
    assert (names(sifted), len(sifted.read)) == ([], 2)


def test_a_heartbeat_that_names_another_group_than_its_key_is_not_learned():
    group = Group("g")
    told = [record._replace(group="other") for record in beats(group, 0, 1)]
    assert not names(taught(told[:2]).sift(rows_of(told[2:])))


def test_a_new_generation_is_learned_in_the_place_of_the_old_one():
    group = Group("g")
    sieve = taught([*beats(group, 0), *of_another_generation(group)])
    (beaten,) = sieve.sift(rows_of(of_another_generation(group))).groups
    assert beaten.beats[0][0].generation == 2
    assert not names(sieve.sift(rows_of(beats(group, 2))))
