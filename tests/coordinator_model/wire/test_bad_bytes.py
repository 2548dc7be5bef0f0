"""No bytes do harm: every frame is either read to its last byte or refused with a :class:`DecodeError`, in bounded time and memory."""

from __future__ import annotations

import dataclasses
import functools
import struct
import time
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator_model import wire
from coordinator_model.wire import DecodeError, decode, decode_request_header
from coordinator_model.wire.encoder import varint
from coordinator_model.wire.layouts import LAYOUTS, REQUESTS, RESPONSES
from tests.coordinator_model.wire.frames import OracleFrame, fixtures, names
from tests.coordinator_model.wire.fuzz_decode import TARGETS, check_any_bytes
from tests.samples import sampled

HEARTBEAT = wire.HeartbeatRequest(group_id="billing", generation_id=7, member_id="billing-1-0b7f", group_instance_id="i-1")


def refusal(raw: bytes, *, request: bool = True, key: int = 12, version: int = 4) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode(raw, request=request, api_key=key, api_version=version)
    return caught.value


def heartbeat(version: int = 4) -> bytes:
    body = HEARTBEAT if version >= 3 else wire.HeartbeatRequest(group_id="billing", generation_id=7, member_id="billing-1-0b7f")
    return wire.encode_request(body, api_version=version, correlation_id=5, client_id="billing-1")


def cuts(raw: bytes) -> set[int]:
    """All of a small frame; of a large one both ends and a sample between them."""
    if len(raw) <= 600:
        return set(range(len(raw)))
    return {*range(40), *range(40, len(raw), max(1, len(raw) // 40)), *range(len(raw) - 40, len(raw))}


@pytest.mark.parametrize("share", sampled(range(5), [0]))
@pytest.mark.parametrize("name", names())
def test_every_truncation_is_refused_at_a_place_in_the_frame(name, share):
    for frame in [frame for frame in fixtures() if frame.name == name][share::5]:
        for cut in cuts(frame.raw):
            with pytest.raises(DecodeError) as caught:
                frame.decode(frame.raw[:cut])
            assert 0 <= caught.value.position <= cut
            assert caught.value.reason in str(caught.value)


@pytest.mark.parametrize("name", names())
def test_a_byte_too_many_is_refused(name):
    for frame in fixtures():
        if frame.name == name and frame.style != "large":
            with pytest.raises(DecodeError, match="left over"):
                frame.decode(frame.raw + b"\0")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_array_of_no_keys_behind_an_api_versions_request_is_read_over(version):
    """Old releases of librdkafka send it, and brokers answer as if it were not there."""
    plain = wire.encode_request(wire.ApiVersionsRequest(), api_version=version, correlation_id=0, client_id="rdkafka")
    expected = wire.decode(plain, request=True, api_key=18, api_version=version)
    assert wire.decode(plain + bytes(4), request=True, api_key=18, api_version=version) == expected
    for more in (b"\0", bytes(3), bytes(8), b"\0\0\0\1"):
        with pytest.raises(DecodeError, match="left over"):
            wire.decode(plain + more, request=True, api_key=18, api_version=version)


def test_the_error_names_message_version_field_and_position():
    raw = heartbeat()
    error = refusal(raw[:-5])
    assert (error.message, error.api_version, error.field) == ("HeartbeatRequest", 4, "group_instance_id")
    assert raw[error.position :] == b"\x04i-1\0"
    assert str(error) == f"HeartbeatRequest v4: group_instance_id at byte {error.position}: runs past the end"


def test_the_error_names_the_element_of_an_array():
    body = wire.JoinGroupResponse(
        members=tuple(wire.JoinGroupResponseMember(member_id=f"m-{n}", metadata=b"x" * 9) for n in range(4))
    )
    raw = wire.encode_response(body, api_version=5, correlation_id=1)
    error = refusal(raw[:-4], request=False, key=11, version=5)
    assert error.field == "members[3].metadata"
    assert raw[error.position :] == struct.pack(">i", 9) + b"x" * 9


def test_a_short_run_of_numbers_names_the_number_that_is_cut():
    raw = wire.encode_response(wire.HeartbeatResponse(), api_version=2, correlation_id=1)
    assert refusal(raw[:9], request=False, version=2).field == "error_code"
    assert refusal(raw[:9], request=False, version=2).position == 8
    assert refusal(raw[:5], request=False, version=2).field == "throttle_time_ms"
    assert refusal(raw[:3], request=False, version=2).field == "correlation_id"


def test_null_where_null_is_not_allowed():
    flexible = heartbeat().replace(b"\x08billing", b"\0", 1)
    assert refusal(flexible).reason == "is null where null is not allowed"
    plain = heartbeat(0).replace(b"\0\x07billing\0", b"\xff\xff\0", 1)
    assert refusal(plain, version=0).field == "group_id"


@pytest.mark.parametrize("length", [-2, -32768])
def test_negative_lengths_are_not_null(length):
    raw = heartbeat(0)
    client_id = raw[:8] + struct.pack(">h", length) + raw[10 + len("billing-1") :]
    assert refusal(client_id, version=0).reason == "has a negative length"
    group_id = raw.replace(b"\0\x07billing\0", struct.pack(">h", length) + b"\0", 1)
    assert refusal(group_id, version=0).reason == "has a negative length"


@pytest.mark.parametrize("count", [2**31 - 1, -1, -2, -(2**31)])
def test_counts_of_plain_arrays(count):
    raw = struct.pack(">iih", 1, 0, 0)[:4] + struct.pack(">ii", 0, count)  # OffsetCommit response v3: throttle, topics
    error = refusal(raw, request=False, key=8, version=3)
    assert error.field == "topics"
    assert error.position == 8
    assert error.reason == ("counts more elements than bytes are left" if count > 0 else "has a negative length")


@pytest.mark.parametrize("count", [2**32 - 1, 2**35 - 1, 2**32, 128])
def test_counts_of_compact_arrays(count):
    raw = struct.pack(">ibi", 1, 0, 0) + varint(count)  # OffsetCommit response v8
    error = refusal(raw, request=False, key=8, version=8)
    assert (error.field, error.reason) == ("topics", "counts more elements than bytes are left")


def test_a_megabyte_of_ff_is_no_varint_and_costs_nothing():
    raw = struct.pack(">ibi", 1, 0, 0) + b"\xff" * 1_000_000
    error = refusal(raw, request=False, key=8, version=8)
    assert (error.field, error.reason) == ("topics", "is a varint of more than 5 bytes")


def test_bytes_that_are_not_utf_8():
    error = refusal(heartbeat().replace(b"billing-1-0b7f", b"billing-1-\xff\xfe\xfd\xfc"))
    assert (error.field, error.reason) == ("member_id", "is not UTF-8")


def test_presence_of_a_struct_is_said_by_1_and_minus_1_alone():
    raw = wire.encode_response(wire.ConsumerGroupHeartbeatResponse(), api_version=0, correlation_id=1)
    assert raw.endswith(b"\xff\0")
    error = refusal(raw[:-2] + b"\x02\0", request=False, key=68, version=0)
    assert (error.field, error.position) == ("assignment", len(raw) - 2)
    assert error.reason == "is neither 1 (present) nor -1 (null)"


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (b"\x02\x64\x00\x64\x00", "has tags that do not rise"),
        (b"\x02\x64\x00\x63\x00", "has tags that do not rise"),
        (b"\x7f\x64\x00", "counts more elements than bytes are left"),
        (b"\xff\xff\xff\xff\x0f", "counts more elements than bytes are left"),
        (b"\x01\x64\x05abcd", "runs past the end"),
        (b"\x01\xff\xff\xff\xff\xff\xff", "is a varint of more than 5 bytes"),
        (b"\x01\x64", "counts more elements than bytes are left"),
        (b"\x01\x64\xff", "runs past the end"),
    ],
)
def test_bad_tag_sections(section, reason):
    error = refusal(heartbeat()[:-1] + section)
    assert (error.field, error.reason) == ("tags", reason)


def test_known_tagged_fields_must_fill_their_size():
    plain = wire.encode_response(wire.ApiVersionsResponse(), api_version=3, correlation_id=1)[:-1]
    assert decode(plain + b"\x01\x03\x01\x01", request=False, api_key=18, api_version=3).body.zk_migration_ready is True
    error = refusal(plain + b"\x01\x03\x02\x01\x00", request=False, key=18, version=3)
    assert (error.field, error.reason) == ("zk_migration_ready", "does not fill its tag's size")
    error = refusal(plain + b"\x7f\x03\x02\x01\x00", request=False, key=18, version=3)
    assert (error.field, error.reason) == ("tags", "counts more elements than bytes are left")


def test_tag_numbers_and_sizes_of_several_bytes():
    raw = heartbeat()[:-1] + b"\x01" + varint(300) + varint(200) + b"x" * 200
    assert decode(raw, request=True, api_key=12, api_version=4).body.unknown_tags == ((300, b"x" * 200),)
    many = tuple((tag, b"") for tag in range(100, 300))
    raw = wire.encode_response(wire.ApiVersionsResponse(unknown_tags=many), api_version=3, correlation_id=1)
    assert decode(raw, request=False, api_key=18, api_version=3).body.unknown_tags == many
    raw = wire.encode_response(wire.HeartbeatResponse(unknown_tags=many), api_version=4, correlation_id=1, header_tags=many)
    assert decode(raw, request=False, api_key=12, api_version=4).header.unknown_tags == many


def test_a_request_read_as_another_api_or_version_is_refused():
    error = refusal(heartbeat(3))
    assert (error.field, error.reason) == ("api_key", "has another API key or version than asked for")
    assert error.position == 0


def test_unknown_apis_and_versions():
    assert "is not an API of the group protocol" in str(refusal(heartbeat(), key=0))
    assert "is not a known version, 0 to 4 are" in str(refusal(heartbeat(), version=5))
    assert "is not a known version" in str(refusal(heartbeat(), version=-1))


@pytest.mark.parametrize("version", range(6))
def test_an_api_versions_answer_with_error_35_is_laid_out_as_version_0(version):
    told = (wire.ApiVersionsResponseApiVersion(api_key=18, max_version=4),)
    raw = wire.encode_response(wire.ApiVersionsResponse(error_code=35, api_keys=told), api_version=0, correlation_id=9)
    header, body = decode(raw, request=False, api_key=18, api_version=version)
    assert (header.correlation_id, header.api_version) == (9, 0)
    assert body.api_keys == told


def test_an_api_versions_answer_with_error_35_to_a_version_of_the_future():
    raw = wire.encode_response(wire.ApiVersionsResponse(error_code=35), api_version=0, correlation_id=9)
    assert decode(raw, request=False, api_key=18, api_version=77).body.error_code == 35
    assert refusal(raw[:-1], request=False, key=18, version=77).field == "api_keys"


def test_other_kinds_of_bytes_are_read_alike():
    frames = [frame for frame in fixtures() if frame.layout.api_key is not None and frame.style == "tags"][::9]
    for frame in frames:
        for raw in (memoryview(frame.raw), bytearray(frame.raw), memoryview(b"--" + frame.raw)[2:]):
            assert frame.decode(raw) == frame.decode()
    sync = wire.encode_response(wire.SyncGroupResponse(assignment=b"abc"), api_version=1, correlation_id=1)
    assert type(decode(memoryview(sync), request=False, api_key=14, api_version=1).body.assignment) is bytes


class TestRequestHeader:
    def test_reads_a_prefix(self):
        raw = heartbeat()
        header = decode_request_header(raw[: 10 + len("billing-1")])
        assert header == (12, 4, 5, "billing-1", ())

    def test_reads_any_api(self):
        assert decode_request_header(struct.pack(">hhih", 1, 18, -7, -1)).client_id is None

    @pytest.mark.parametrize("size", range(18))
    def test_needs_all_of_the_client_id(self, size):
        with pytest.raises(DecodeError, match="runs past the end"):
            decode_request_header(heartbeat()[:size])

    @pytest.mark.parametrize(
        ("fields", "where"),
        [((-1, 0, 1, 0), "api_key"), ((5000, 0, 1, 0), "api_key"), ((1, -1, 1, 0), "api_version"), ((1, 999, 1, 0), "api_version"),
         ((1, 0, 1, -2), "client_id")],
    )  # fmt: skip
    def test_refuses_what_is_no_header(self, fields, where):
        with pytest.raises(DecodeError) as caught:
            decode_request_header(memoryview(struct.pack(">hhih", *fields)))
        assert caught.value.field == where

    def test_refuses_a_client_id_that_is_no_text(self):
        with pytest.raises(DecodeError, match="is not UTF-8"):
            decode_request_header(struct.pack(">hhih", 1, 1, 1, 1) + b"\xff")


def mutated(frame: OracleFrame) -> st.SearchStrategy[bytes]:
    return st.builds(
        lambda at, with_, drop: frame.raw[: at % len(frame.raw)] + with_ + frame.raw[at % len(frame.raw) + drop :],
        st.integers(0, 1 << 16),
        st.binary(max_size=6),
        st.integers(0, 6),
    )


@settings(max_examples=10 * settings().max_examples)
@given(st.data())
def test_a_frame_with_a_few_bytes_changed_is_read_or_refused(data):
    frame = data.draw(st.sampled_from([frame for frame in fixtures() if frame.style in ("random", "tags")]))
    raw = data.draw(mutated(frame))
    position = 0
    try:
        frame.decode(raw)
    except DecodeError as error:
        position = error.position
    assert 0 <= position <= len(raw)


@settings(max_examples=5 * settings().max_examples)
@given(st.binary(max_size=80))
@example(b"")
def test_random_bytes_are_read_or_refused_by_every_decoder(raw):
    check_any_bytes(raw)


def test_of_frames_read_with_another_layout_at_most_1_5_percent_are_taken_for_valid():
    """Over all pairs of different layouts. Responses of no elements are the same bytes in many layouts: nobody can tell those apart."""
    tried = accepted = 0
    for request in (True, False):
        others = [(layout, version) for layout, version in TARGETS if layout.is_request == request]
        for frame in fixtures()[::3]:
            if frame.layout.api_key is None or frame.is_request != request:
                continue
            for layout, version in others:
                if wire_form(layout.name, version) != wire_form(frame.name, frame.version):
                    tried += 1
                    try:
                        decode(frame.raw, request=request, api_key=layout.api_key, api_version=version)
                    except DecodeError:
                        continue
                    accepted += 1
    assert tried > 80_000
    assert accepted / tried <= 0.015


@functools.cache
def wire_form(name, version):
    """What decides the bytes: two messages of the same form cannot be told apart, nor need be."""
    layout = LAYOUTS[name]

    def struct_form(struct):
        return tuple(
            (
                field.is_array,
                struct_form(field.item_type) if field.item_type in layout.structs else field.item_type,
                version in field.nullable,
            )
            for field in layout.fields(struct, version)
        ) + tuple(field.tag for field in layout.tagged(struct, version))

    return struct_form(layout.name), version in layout.flexible, layout.name == "ApiVersionsResponse"


@pytest.mark.parametrize("body", [wire.ApiVersionsResponse(), wire.HeartbeatResponse()], ids=lambda body: type(body).__name__)
def test_time_stays_in_proportion_to_the_number_of_tags(body):
    """64 times as many tags take 64 times as long when linear and 4,096 times when each looks at all before it.

    The verdict lies eightfold from either, since a machine that is shared runs at half its speed for one of the two.
    """

    def took(count):
        tags = tuple((tag, b"") for tag in range(200, 200 + count))
        raw = wire.encode_response(dataclasses.replace(body, unknown_tags=tags), api_version=4, correlation_id=1)
        times = []
        for _ in range(3):
            started = time.process_time()
            decode(raw, request=False, api_key=body.API_KEY, api_version=4)
            times.append(time.process_time() - started)
        return min(times)

    assert took(128_000) < 512 * took(2_000)


def test_memory_stays_in_proportion_to_the_frame():
    """Every array count of a frame is set to the largest that its bytes could hold, and all the way up."""
    nested = bytearray(struct.pack(">ibi", 1, 0, 0) + b"\xfe\x7f" * 5_000)
    tracemalloc.start()
    try:
        for layouts, request in ((REQUESTS, True), (RESPONSES, False)):
            for key, layout in layouts.items():
                for version in range(layout.versions.first, layout.versions.last + 1):
                    if request:
                        nested[:4] = struct.pack(">hh", key, version)
                    with pytest.raises(DecodeError):
                        decode(bytes(nested), request=request, api_key=key, api_version=version)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(nested) + 4_000_000  # the constant is the compiled decoders themselves
