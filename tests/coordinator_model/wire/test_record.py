"""The mirror record's envelope: written and read back, refused with the field's name."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import decode as unpackb
from msgspec.msgpack import encode as packb

from coordinator_model.wire.record import (
    FORMAT_VERSION,
    HEADER_NAME,
    Kind,
    Loss,
    MirrorRecord,
    Place,
    RecordError,
    TickFacts,
    as_held,
    pack_envelope,
    pack_loss,
    tick,
    unpack_loss,
    unpack_record,
    unpack_tick,
)
from tests.coordinator_model.wire.records import records

FRAME_FIELDS = {"v": FORMAT_VERSION, "k": "req", "at": 5, "cn": "c-1", "sq": 0, "api": 12, "ver": 4, "cor": 9}


def read(envelope: bytes | None, *, key: bytes | None = b"g", value: bytes | None = b"") -> MirrorRecord:
    return unpack_record(partition=1, offset=2, key=key, value=value, envelope=envelope)


@given(records)
def test_what_is_packed_is_unpacked(record):
    key = None if record.group is None else record.group.encode()
    again = unpack_record(
        partition=record.partition, offset=record.offset, key=key, value=record.frame, envelope=pack_envelope(record)
    )
    assert again == record


@given(st.binary(max_size=60))
def test_any_envelope_is_read_or_refused(envelope):
    with contextlib.suppress(RecordError):
        assert read(envelope).partition == 1


def test_fields_at_their_default_are_left_out_but_those_that_frames_need():
    tick = MirrorRecord(0, 0, None, Kind.TICK, 7, "", "", "", -1, -1, -1, 0, None, "", "", 0, 0, b"")
    packed = unpackb(pack_envelope(tick))
    assert packed == {"v": 1, "k": "tick", "at": 7, "cn": "", "sq": -1, "api": -1, "ver": -1, "cor": 0}
    assert read(pack_envelope(tick), key=None) == tick._replace(partition=1, offset=2)


def test_an_absent_value_is_an_empty_frame():
    assert read(packb(FRAME_FIELDS), value=None).frame == b""


def test_a_broker_may_be_told_by_its_number():
    assert read(packb(FRAME_FIELDS | {"br": 3})).broker == "3"


def test_a_client_id_may_be_null():
    assert read(packb(FRAME_FIELDS | {"cid": None})).client_id is None


@pytest.mark.parametrize(
    ("envelope", "sentence"),
    [
        (None, f"record header {HEADER_NAME!r} is missing"),
        (b"\xc1", "is not msgpack"),
        (b"", "is not msgpack"),
        (packb([1]), "is not a map"),
        (packb({}), "mirror format version None is not 1"),
        (packb(FRAME_FIELDS | {"v": 2}), "mirror format version 2 is not 1"),
        (packb(FRAME_FIELDS | {"k": 5}), "envelope field 'k' is int, not str"),
        (packb(FRAME_FIELDS | {"at": "soon"}), "envelope field 'at' is str, not int"),
        (packb(FRAME_FIELDS | {"cid": 5}), "envelope field 'cid' is int, not str"),
        (packb(FRAME_FIELDS | {"br": 1.5}), "envelope field 'br' is float, not str"),
        (packb({"v": 1, "k": "tick"}), "envelope lacks 'at'"),
        *[(packb({k: v for k, v in FRAME_FIELDS.items() if k != key}), f"envelope lacks {key!r}") for key in ("k", "cn", "sq", "api", "ver", "cor")],
    ],
)  # fmt: skip
def test_what_is_refused(envelope, sentence):
    with pytest.raises(RecordError) as caught:
        read(envelope)
    assert sentence in str(caught.value)


def test_a_record_of_a_newer_kind_is_read_as_such():
    assert read(packb({"v": 1, "k": "ping", "at": 5, "new": [1], "frame": 5, "partition": "x"})).kind is Kind.OTHER


def test_a_key_that_is_no_text():
    with pytest.raises(RecordError, match="key is not UTF-8"):
        read(packb(FRAME_FIELDS), key=b"\xff")


@given(st.builds(Loss, *[st.integers(0, 2**62)] * 4, cause=st.integers(0, 3)))
def test_losses(loss):
    assert unpack_loss(pack_loss(loss)) == loss


@pytest.mark.parametrize("value", [packb({"records": 1}), packb({"records": "x"}), b"\xc1", packb({1: 2})])
def test_bad_losses(value):
    with pytest.raises(RecordError):
        unpack_loss(value)


@pytest.mark.parametrize("value", [b"", b"\xc1", packb([1]), packb({}), packb({"not_offered": 1})])
def test_a_tick_whose_value_says_nothing_of_versions(value):
    assert unpack_tick(value).not_offered == ()


def test_a_tick_says_what_clients_are_not_offered():
    assert unpack_tick(tick(7, cluster="c", connection="t", not_offered=["Fetch 19 → 18"]).frame).not_offered == ("Fetch 19 → 18",)
    assert unpack_tick(packb({"not_offered": [1, "a", *"b" * 100]})).not_offered == ("a", *"b" * 31)


def test_a_tick_says_where_its_tap_is():
    place = Place("web1", "0.0.0.0:9092=kafka-1:9093")
    assert unpack_tick(tick(7, cluster="c", connection="t", place=place).frame) == (place, (), False)
    assert unpack_tick(packb({"host": 1, "listeners": "x"})) == (None, (), False)
    assert unpack_tick(as_held(tick(7, cluster="c", connection="t", place=place)).frame) == (place, (), True)
    assert unpack_tick(as_held(tick(7, cluster="c", connection="t")).frame) == (None, (), True)
    assert unpack_tick(packb({"host": "h" * 600, "listeners": "l" * 600})).place == ("h" * 500, "l" * 500)


def test_a_tick_that_cannot_be_read_is_kept_as_one_that_says_nothing_else() -> None:
    damaged = tick(1, cluster="", connection="c")._replace(frame=b"\x00\x00")
    assert unpack_tick(as_held(damaged).frame) == TickFacts(held=True)
