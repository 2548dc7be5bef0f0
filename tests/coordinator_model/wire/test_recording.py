"""Mirror records in a file."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import encode as packb

from coordinator_model.wire.record import RecordError
from coordinator_model.wire.recording import MAGIC, pack_record, read_recording
from tests.coordinator_model.wire.records import records


@given(st.lists(records, max_size=3))
def test_what_is_written_is_read(written):
    assert list(read_recording(io.BytesIO(MAGIC + b"".join(map(pack_record, written))))) == written


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(raw):
    try:
        found = list(read_recording(io.BytesIO(MAGIC + raw)))
    except RecordError:
        return
    assert raw == b"" or found


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "not a file of mirror records"),
        (b"something else altogether, longer than that", "not a file of mirror records"),
        (MAGIC + packb([1, 2]), "record 1: not an array of partition, offset, key, value and envelope"),
        (MAGIC + packb([0, 0, b"g", b"", b"\xc1"]), "record 1: record header 'mirror' is not msgpack"),
        (MAGIC + b"\xc1", "record 1: not an array of partition, offset, key, value and envelope"),
        (MAGIC + packb(["0", 0, b"g", b"", b""]), "record 1: not an array of partition, offset, key, value and envelope"),
        (MAGIC + packb([b"0", 0, b"g", b"", b""]), "record 1: Expected `int`, got `bytes`"),
        (MAGIC + packb([0, 0, b"g", b"", b""])[:-2] + b"\xc6\xff\xff\xff\xff", "record 1: a field of 4,294,967,295 bytes"),
        (MAGIC + packb([0, 0, b"g", b"x" * 50, b""])[:-9], "record 1 is cut short"),
    ],
)
def test_what_is_refused(raw, sentence):
    with pytest.raises(RecordError) as caught:
        list(read_recording(io.BytesIO(raw)))
    assert sentence in str(caught.value)
