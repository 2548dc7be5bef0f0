"""The reader that remembers connections gives what ``unpack_record`` gives, whatever it has read before."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.wire import reader as module
from coordinator_model.wire.reader import RecordReader
from coordinator_model.wire.record import FORMAT_VERSION, Kind, MirrorRecord, RecordError, pack_envelope, unpack_record

# Few connections, so that they come again; texts that hold the very bytes by which fields are found.
TEXTS = st.sampled_from(
    ["", "a", "b", "\u00a2sq\x05", "x\u00a2sq", "\u00a3cor", "\u00a3cid\u00a1", "\u00a3api\x0c\u00a3ver\x04\u00a3cor"]
)
NUMBERS = st.sampled_from([-(2**31), -1, 0, 1, 5, 127, 128, 255, 256, 65_535, 65_536, 2**31 - 1])

records = st.builds(
    MirrorRecord,
    partition=st.just(1),
    offset=st.just(2),
    group=st.sampled_from([None, "g", "h"]),
    kind=st.sampled_from(Kind),
    at_us=st.integers(0, 2**62),
    cluster=TEXTS,
    broker=TEXTS,
    connection=TEXTS,
    exchange=NUMBERS,
    api_key=st.sampled_from([-1, 8, 12, 200]),
    api_version=st.sampled_from([-1, 4, 200]),
    correlation_id=NUMBERS,
    client_id=st.none() | TEXTS,
    client_address=TEXTS,
    client_software=TEXTS,
    cut_bytes=st.sampled_from([0, 3]),
    queued_behind=st.sampled_from([0, 1]),
    frame=st.just(b"frame"),
    capped_bytes=st.sampled_from([0, 7]),
    principal=TEXTS,
)


@st.composite
def envelopes(draw) -> bytes:
    """As our tap writes them, as another capturer might, and broken."""
    packed = pack_envelope(draw(records))
    way = draw(st.sampled_from(["ours", "ours", "reordered", "flipped", "cut", "longer"]))
    if way == "reordered":
        return msgpack.packb(dict(draw(st.permutations(list(msgpack.unpackb(packed).items())))))
    at = draw(st.integers(0, len(packed) - 1))
    if way == "flipped":
        return packed[:at] + bytes([draw(st.integers(0, 255))]) + packed[at + 1 :]
    return {"ours": packed, "cut": packed[:at], "longer": packed + b"\xc0"}[way]


def outcome(read, *arguments):
    try:
        return read(*arguments)
    except RecordError as error:
        return str(error)


def long_way(key, value, envelope):
    return unpack_record(partition=1, offset=2, key=key, value=value, envelope=envelope)


@given(st.lists(st.tuples(st.sampled_from([None, b"g", b"h", b"\xff"]), envelopes() | st.none()), max_size=30))
def test_what_was_read_before_changes_nothing(read):
    reader = RecordReader()
    for key, envelope in read * 2:
        assert outcome(reader.read, 1, 2, key, b"v", envelope) == outcome(long_way, key, b"v", envelope)


def heartbeat(**changes: object) -> bytes:
    fields = {"v": FORMAT_VERSION, "k": "req", "at": 2**50, "cl": "c", "br": "1", "cn": "x", "sq": 7, "api": 12, "ver": 4, "cor": 9}
    return msgpack.packb(fields | changes)


@pytest.mark.parametrize("number", [5, 200, 300, 70_000])
def test_a_connection_is_remembered_whatever_the_width_of_its_numbers(number, monkeypatch):
    reader = RecordReader()
    reader.read(0, 0, b"g", b"", heartbeat())
    monkeypatch.setattr(module, "unpack_record", None)
    record = reader.read(0, 1, b"g", b"", heartbeat(at=2**50 + 1, sq=number, cor=number + 60_000))
    assert (record.offset, record.at_us, record.exchange, record.correlation_id) == (1, 2**50 + 1, number, number + 60_000)


def test_a_text_that_looks_like_a_field_is_not_taken_for_one():
    reader = RecordReader()
    for number in range(3):
        envelope = heartbeat(cn=f"\u00a2sq{number}", sq=7)
        assert reader.read(0, 0, b"g", b"", envelope) == unpack_record(
            partition=0, offset=0, key=b"g", value=b"", envelope=envelope
        )
    assert reader._known == {}


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "KNOWN_LIMIT", 10)
    reader = RecordReader()
    for number in range(35):
        assert reader.read(0, 0, b"g", b"", heartbeat(cn=f"c-{number}")).connection == f"c-{number}"
    assert len(reader._known) <= 10


@pytest.mark.parametrize(
    "more", [{}, {"pr": "User:x"}, {"cut": 5, "cap": 3}, {"cid": "c", "ip": "10.0.0.1:5", "sw": "s 1", "out": 2}]
)
def test_a_remembered_connection_gives_every_field_of_its_records(more):
    reader = RecordReader()
    read = [reader.read(0, offset, b"g", b"v", heartbeat(**more)) for offset in range(2)]
    assert len(reader._known) == 1
    assert read[1] == unpack_record(partition=0, offset=1, key=b"g", value=b"v", envelope=heartbeat(**more))
