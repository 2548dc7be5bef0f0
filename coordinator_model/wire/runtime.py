"""Functions that compiled decoders call (varints, tags, arrays of integers), and their reasons to refuse bytes."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode
from typing import Final

from coordinator_model.wire.layouts import INTEGERS
from coordinator_model.wire.message import UnknownTags

SHORT_LENGTH: Final = 127  # the longest length or count that one byte of a varint holds


OVERRUN: Final = "runs past the end"


NEGATIVE: Final = "has a negative length"


NULL: Final = "is null where null is not allowed"


COUNT: Final = "counts more elements than bytes are left"


TRAILING: Final = "bytes are left over"


VARINT: Final = "is a varint of more than 5 bytes"


PRESENCE: Final = "is neither 1 (present) nor -1 (null)"


TAG_ORDER: Final = "has tags that do not rise"


TAG_SIZE: Final = "does not fill its tag's size"


WRONG_HEADER: Final = "has another API key or version than asked for"


class UndecodableBytes(Exception):  # noqa: N818 - not an error of ours: a verdict on bytes
    """Raised in generated code with one of the reasons above; converted to a :class:`DecodeError` with field and position."""


def read_varint(frame: bytes, at: int, first: int) -> tuple[int, int]:
    """Return the unsigned varint at ``at``, whose first byte is ``first``, and the position of its last byte."""
    value = first & SHORT_LENGTH
    for shift in (7, 14, 21, 28):
        at += 1
        byte = frame[at]
        value |= (byte & SHORT_LENGTH) << shift
        if byte <= SHORT_LENGTH:
            return value, at
    raise UndecodableBytes(VARINT)


def read_tags(frame: bytes, at: int, count: int) -> tuple[UnknownTags, int]:
    """Return the tags of a tag section without known tags, and the position after them. ``at`` is the count's first byte."""
    if count > SHORT_LENGTH:
        count, at = read_varint(frame, at, count)
    at += 1
    size = len(frame)
    if count * 2 > size - at:
        raise UndecodableBytes(COUNT)
    tags = []
    last = -1
    for _ in range(count):
        tag, start, end = read_tag(frame, at, last)
        tags.append((tag, bytes(frame[start:end])))
        last, at = tag, end
    return tuple(tags), at


def read_tag(frame: bytes, at: int, last: int) -> tuple[int, int, int]:
    """Return number, start and end of the tagged field at ``at``; ``last`` is the number of the one before."""
    tag = frame[at]
    if tag > SHORT_LENGTH:
        tag, at = read_varint(frame, at, tag)
    if tag <= last:
        raise UndecodableBytes(TAG_ORDER)
    at += 1
    size = frame[at]
    if size > SHORT_LENGTH:
        size, at = read_varint(frame, at, size)
    at += 1
    if at + size > len(frame):
        raise UndecodableBytes(OVERRUN)
    return tag, at, at + size


def uuid_text(raw: bytes) -> str:
    """Return Kafka's text form of a 16-byte id: 22 characters of unpadded URL-safe base64."""
    return urlsafe_b64encode(raw)[:22].decode()


_ARRAY_READERS: Final = {
    (letter, count): struct.Struct(f">{count}{letter}").unpack_from for letter in INTEGERS.values() for count in range(1, 33)
}


def read_integers(frame: bytes, at: int, count: int, letter: str) -> tuple[int, ...]:
    """Return ``count`` integers of one size. The caller must check that the bytes exist."""
    return (_ARRAY_READERS.get((letter, count)) or struct.Struct(f">{count}{letter}").unpack_from)(frame, at)
