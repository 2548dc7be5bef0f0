"""Where in a heartbeat or a commit stands what is not the same each time: generation and offsets.

Found by writing a request of the same shape with numbers that cannot be mistaken for anything else, so that only the layout table knows
how requests are laid out.

The trap: a request may hold what we would not write, tagged fields that nobody knows. It is longer then, and has no places.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from coordinator_model.codes import HEARTBEAT
from coordinator_model.wire import (
    HeartbeatRequest,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    decode_request_header,
    encode_request,
)

OFFSET_SIZE: Final = 8
GENERATION_SIZE: Final = 4
_OFFSET: Final = 0x7BAD0FF5E7C0FFEE
_GENERATION: Final = 0x6E9E0A71

SHAPES_KEPT: Final = 256
"""A group's members share theirs, as long as their names and numbers of partitions are as long."""


class Places(NamedTuple):
    """In bytes from the beginning of the frame."""

    generation: int
    offsets: tuple[int, ...]  #: none in a heartbeat


def places_of(frame: bytes, asks: Any) -> Places | None:
    """Of a Heartbeat or OffsetCommit request.

    :param asks: the decoded request.
    :return: None if it cannot be told, because the frame is not what we would have written.
    """
    found = _places(_shape(frame, asks))
    return None if found is None or found[0] != len(frame) else found[1]


def at_generation(frame: bytes, asks: Any, generation: int) -> tuple[bytes, Any] | None:
    """The same request of another generation, and decoded; None if it cannot be told, as above."""
    places = places_of(frame, asks)
    if places is None:
        return None
    ends = places.generation + GENERATION_SIZE
    said = frame[: places.generation] + generation.to_bytes(GENERATION_SIZE, "big", signed=True) + frame[ends:]
    field = "generation_id" if asks.API_KEY == HEARTBEAT else "generation_id_or_member_epoch"
    return said, replace(asks, **{field: generation})


class _Shape(NamedTuple):
    """All that the layout of a request hangs on: sizes in bytes, None for what is null."""

    api_key: int
    api_version: int
    client_id: int | None
    group_id: int
    member_id: int
    instance_id: int | None
    topics: tuple[tuple[int, tuple[int | None, ...]], ...]  #: name, and the metadata of each partition


def _shape(frame: bytes, asks: Any) -> _Shape:
    header = decode_request_header(frame)
    named = () if asks.API_KEY == HEARTBEAT else asks.topics
    topics = tuple(
        (len(topic.name.encode()), tuple([_size(partition.committed_metadata) for partition in topic.partitions]))
        for topic in named
    )
    who = len(asks.group_id.encode()), len(asks.member_id.encode()), _size(asks.group_instance_id)
    return _Shape(asks.API_KEY, header.api_version, _size(header.client_id), *who, topics)


def _size(text: str | None) -> int | None:
    return None if text is None else len(text.encode())


@lru_cache(maxsize=SHAPES_KEPT)
def _places(shape: _Shape) -> tuple[int, Places] | None:
    """The size of such a frame, and its places; None if it has no generation, as the first version of OffsetCommit."""
    written = encode_request(_marked(shape), api_version=shape.api_version, correlation_id=0, client_id=_text(shape.client_id))
    generations = _found(written, _GENERATION.to_bytes(GENERATION_SIZE, "big"))
    offsets = _found(written, _OFFSET.to_bytes(OFFSET_SIZE, "big"))
    assert len(offsets) == sum(len(partitions) for _, partitions in shape.topics)
    return (len(written), Places(generations[0], offsets)) if generations else None


def _marked(shape: _Shape) -> Any:
    """A request of this shape."""
    who: dict[str, Any] = {
        "group_id": _text(shape.group_id),
        "member_id": _text(shape.member_id),
        "group_instance_id": _text(shape.instance_id),
    }
    if shape.api_key == HEARTBEAT:
        return HeartbeatRequest(**who, generation_id=_GENERATION)
    topics = tuple(
        OffsetCommitRequestTopic(
            name=_text(name) or "",
            partitions=tuple(
                OffsetCommitRequestPartition(committed_offset=_OFFSET, committed_metadata=_text(metadata))
                for metadata in partitions
            ),
        )
        for name, partitions in shape.topics
    )
    return OffsetCommitRequest(**who, generation_id_or_member_epoch=_GENERATION, topics=topics)


def _text(size: int | None) -> str | None:
    return None if size is None else " " * size


def _found(written: bytes, mark: bytes) -> tuple[int, ...]:
    places, place = [], written.find(mark)
    while place >= 0:
        places.append(place)
        place = written.find(mark, place + len(mark))
    return tuple(places)
