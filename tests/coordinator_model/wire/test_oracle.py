"""Kafka's own generated classes and ours read and write the same bytes.

The frames are kept in the repository; `make fixtures` makes new ones, and the last test makes some from a seed never used before.
"""

from __future__ import annotations

import base64
import random
from collections import Counter
from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.wire import encoder, messages
from tests.coordinator_model.wire.frames import EMBEDDED, OracleFrame, fixtures, names, pairs, read, snake
from tests.needs import path_of
from tests.oracle.make_frames import OracleError, run_oracle


def check_struct(told: dict[str, Any], ours: Any, struct: str, frame: OracleFrame, path: str) -> None:
    """Every field that Kafka's converter names has its value, every other field its default."""
    named = {snake(name): value for name, value in told.items() if name != "unknownTags"}
    for field in frame.layout.structs[struct]:
        value = getattr(ours, field.name)
        where = f"{frame.name} v{frame.version} {path}.{field.name}"
        if field.name in named:
            check_value(named.pop(field.name), value, field.type, frame, where)
        else:
            assert value == encoder.default_of(field), where
    assert not named, f"{path}: fields that we do not have"
    tags = told.get("unknownTags", {})
    assert dict(getattr(ours, "unknown_tags", ())) == {int(tag): base64.b64decode(raw) for tag, raw in tags.items()}, path


def check_value(told: Any, ours: Any, type_: str, frame: OracleFrame, path: str) -> None:
    if told is None:
        assert ours is None, path
    elif type_.startswith("[]"):
        assert type(ours) is tuple, path
        assert len(told) == len(ours), path
        for index, (left, right) in enumerate(zip(told, ours, strict=True)):
            check_value(left, right, type_[2:], frame, f"{path}[{index}]")
    elif type_ in frame.layout.structs:
        assert type(ours) is getattr(messages, type_), path
        check_struct(told, ours, type_, frame, path)
    elif type_ == "bytes":
        assert ours == base64.b64decode(told), path
        assert type(ours) is bytes, path
    else:
        assert ours == told, path
        assert type(ours) is type(told), path


def check_frame(frame: OracleFrame) -> None:
    """It decodes to what Kafka reads in it, and encodes to the same bytes."""
    if frame.name in EMBEDDED:
        decode, encode = EMBEDDED[frame.name]
        body = decode(frame.raw)
        check_struct(frame.value, body, frame.name, frame, frame.name)
        assert encode(body, frame.version) == frame.raw
        return
    assert frame.layout.api_key is not None
    read_frame = wire.decode(frame.raw, request=frame.is_request, api_key=frame.layout.api_key, api_version=frame.version)
    header, body = read_frame
    assert header.correlation_id == frame.header["correlationId"]
    assert header.client_id == frame.header.get("clientId")
    assert (header.api_key, header.api_version) == (frame.layout.api_key, frame.version)
    assert dict(header.unknown_tags) == {
        int(tag): base64.b64decode(raw) for tag, raw in frame.header.get("unknownTags", {}).items()
    }
    assert frame.layout.api_key == body.API_KEY
    check_struct(frame.value, body, frame.name, frame, frame.name)
    if frame.is_request:
        again = wire.encode_request(
            body,
            api_version=frame.version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
            header_tags=header.unknown_tags,
        )
        peeked = wire.decode_request_header(frame.raw)
        assert peeked == header._replace(unknown_tags=())
    else:
        again = wire.encode_response(
            body, api_version=frame.version, correlation_id=header.correlation_id, header_tags=header.unknown_tags
        )
    assert again == frame.raw, f"{frame.name} v{frame.version} {frame.style} encodes to other bytes"


@pytest.mark.parametrize("name", names())
def test_every_kept_frame_decodes_field_for_field_and_encodes_to_the_same_bytes(name):
    for frame in fixtures():
        if frame.name == name:
            check_frame(frame)


def test_at_least_ten_frames_are_kept_for_every_pair_of_message_and_version():
    kept = Counter((frame.name, frame.version) for frame in fixtures())
    assert set(kept) == set(pairs())
    assert min(kept.values()) >= 10


def test_the_kept_frames_hold_what_is_hard():
    large = [frame for frame in fixtures() if frame.style == "large"]
    assert {frame.name for frame in large} == set(names())
    flexible = {(frame.name, frame.version) for frame in fixtures() if frame.version in frame.layout.flexible}
    tagged = {(frame.name, frame.version) for frame in fixtures() if "unknownTags" in str(frame.value) + str(frame.header)}
    assert tagged == flexible
    assert any("größe" in str(frame.value) for frame in large)


@pytest.mark.exhaustive
def test_a_new_seed_gives_frames_that_decode_and_encode_as_well():
    path_of("javac")
    try:
        lines = run_oracle(random.randrange(1 << 31), rounds=1)
    except OracleError as error:
        pytest.skip(str(error))
    for frame in read(lines):
        check_frame(frame)


def test_without_a_jdk_the_oracle_says_what_is_missing(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(OracleError, match="javac is not installed"):
        run_oracle(1)
