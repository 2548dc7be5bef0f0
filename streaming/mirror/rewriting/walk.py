"""Walks through an answer of a broker as its bytes arrive, and says what has to be put in place of which of them.

An answer may be longer than memory should hold, so a walk never sees more of it than the part that has just come, and asks for no
more bytes at a time than a field has. Two kinds of answers:

- Metadata, DescribeCluster, FindCoordinator and ApiVersions hold what is replaced near their beginning. The bytes up to there are held
  back, because the size in front of the answer changes with them. What follows, all topics of a Metadata answer, is not read.
- Produce, Fetch, ShareFetch and ShareAcknowledge hold ``node_endpoints`` at their end, behind megabytes (KIP-951, KIP-932). These are
  hidden in place, without a change of size: clients skip tagged fields that they do not know (KIP-482), and take the address of a leader
  from Metadata.

Whatever does not fit the layout ends the walk: the bytes behind it could be addresses.
"""

from __future__ import annotations

import struct
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from coordinator_model.wire.layouts import INTEGERS, Layout, parse_table
from streaming.mirror.rewriting.layout_table import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    Translate: TypeAlias = Callable[[int, str, int], tuple[str, int]]
    Steps: TypeAlias = Generator[int, bytes, None]
    Number: TypeAlias = Generator[int, bytes, int]

API_VERSIONS: Final = 18
LAYOUTS: Final = {layout.api_key: layout for layout in parse_table(TABLE).values() if layout.api_key is not None}
KNOWN: Final = {key: layout.versions for key, layout in LAYOUTS.items()}
"""API key → versions whose answers can be rewritten, of the APIs whose answers name brokers, and ApiVersions."""

HELD_AT_MOST: Final = 4 * 2**20
"""Bytes of an answer that are held back: some 40,000 brokers or coordinators."""

_UNSUPPORTED_VERSION: Final = 35
_HIDDEN: Final = "node_endpoints"
_UNKNOWN_TAGS: Final = (b"\x7f", b"\xff\x01")  # 127 and 255: one byte and two, so that every size can be filled


class UnrewritableError(Exception):
    """An answer is not what its layout says; the message says where."""


class Edit(NamedTuple):
    """Bytes of a frame, and what stands in their place."""

    begin: int
    end: int
    new: bytes


class Op(NamedTuple):
    """One step through a message."""

    kind: str
    size: int = 0  #: of a run of fields of fixed size, or the least size of an element
    inner: tuple[Op, ...] = ()


class Plan(NamedTuple):
    """How the answers of one API and version are read."""

    ops: tuple[Op, ...]
    flexible: bool
    has_header_tags: bool
    holds_beginning: bool


@cache
def plan_of(api_key: int, api_version: int) -> Plan | None:
    """Return how to read such an answer, None if it holds nothing to replace.

    :raises UnrewritableError: when this release does not know the version.
    """
    layout = LAYOUTS.get(api_key)
    if layout is None:
        return None
    if api_key == API_VERSIONS:
        api_version = min(api_version, layout.versions.last)  # a broker that does not know it, either, answers in version 0
    elif api_version not in layout.versions:
        raise _unknown_version(layout, api_version)
    flexible = api_version in layout.flexible
    ops = _compile(layout, layout.name, api_version, flexible=flexible)
    while ops and not _is_of_interest(ops[-1]):
        ops = ops[:-1]
    if not ops:
        return None
    hides = any(op.kind in {"hidden array", "hidden tag"} for op in ops)
    return Plan(ops, flexible, flexible and api_key != API_VERSIONS, not hides)


def _unknown_version(layout: Layout, api_version: int) -> UnrewritableError:
    return UnrewritableError(f"{layout.name} version {api_version} is not known to this release")


def _is_of_interest(op: Op) -> bool:
    return op.kind in {"address", "versions", "hidden array", "hidden tag"} or any(map(_is_of_interest, op.inner))


def _compile(layout: Layout, name: str, version: int, *, flexible: bool) -> tuple[Op, ...]:
    ops: list[Op] = []
    fields = list(layout.fields(name, version))
    while fields:
        if [field.type for field in fields[:3]] == ["int32", "string", "int32"] and fields[1].name == "host":
            ops.append(Op("address", 4 + 1 + 4))
            del fields[:3]
            continue
        field = fields.pop(0)
        size = fixed_size(field.item_type)
        if field.is_array and field.name == _HIDDEN:
            inner = _compile(layout, field.item_type, version, flexible=flexible)
            ops.append(Op("hidden array", 1, tuple(chain.from_iterable(map(_as_plain_fields, inner)))))
        elif field.is_array and field.name == "api_keys":
            ops.append(Op("versions"))
        elif field.is_array:
            inner = (Op("fixed", size),) if size else _compile(layout, field.item_type, version, flexible=flexible)
            ops.append(Op("array", _least(inner), inner))
        elif size and ops and ops[-1].kind == "fixed":
            ops[-1] = Op("fixed", ops[-1].size + size)
        elif size:
            ops.append(Op("fixed", size))
        elif field.type in {"string", "bytes"}:
            ops.append(Op("compact" if flexible else field.type, 1))
        else:
            inner = _compile(layout, field.type, version, flexible=flexible)
            ops.append(Op("struct", _least(inner), inner))
    if flexible:
        hides = any(field.name == _HIDDEN for field in layout.tagged(name, version))
        ops.append(Op("hidden tag" if hides else "tags", 1))
    return tuple(ops)


def _as_plain_fields(op: Op) -> tuple[Op, ...]:
    """What is hidden is not translated."""
    return (Op("fixed", 4), Op("compact", 1), Op("fixed", 4)) if op.kind == "address" else (op,)


def fixed_size(type_: str) -> int:
    """Return the bytes of a field that always has as many, 0 for others."""
    letter = INTEGERS.get(type_)
    return struct.calcsize(f">{letter}") if letter else 16 * (type_ == "uuid")


def _least(ops: tuple[Op, ...]) -> int:
    return sum(op.size if op.kind != "array" else 1 for op in ops) or 1


class Walk:
    """One answer, from its correlation id on.

    :param size: the answer's size.
    :param translate: node id, host and port of a broker → the host and port to put in place of it.
    :param lowered: called with API key, the broker's last version and the one that is offered instead, -1 for none.
    :raises UnrewritableError: as do ``feed`` and ``translate``.
    """

    def __init__(
        self, plan: Plan, api: tuple[int, int], size: int, translate: Translate, lowered: Callable[[int, int, int], None]
    ) -> None:
        self.edits: list[Edit] = []
        self.position = 0  #: bytes of the frame that were walked over
        self.held_from: int | None = 0 if plan.holds_beginning else None  #: from where on bytes wait for their edits
        self.is_done = False
        self._plan = plan
        self._name = LAYOUTS[api[0]].name
        self._size = size
        self._translate = translate
        self._lowered = lowered
        self._skip = self._want = 0
        self._part = b""
        self._steps = self._versions_steps(api[1]) if api[0] == API_VERSIONS else self._message()
        self._go_on(None)

    def feed(self, data: bytes, at: int = 0) -> int:
        """Take the next bytes of the frame, from an index on; return the index that the walk came to: the end, unless it ends before."""
        end = len(data)
        while at < end and not self.is_done:
            if self._skip:
                step = min(self._skip, end - at)
                at += step
                self.position += step
                self._skip -= step
                if not self._skip:
                    self._go_on(b"")
                continue
            part = data[at : at + self._want - len(self._part)]
            at += len(part)
            self.position += len(part)
            part = self._part + part if self._part else part
            if len(part) < self._want:
                self._part = part
            else:
                self._part = b""
                self._go_on(part)
        if self.held_from is not None and self.position - self.held_from > HELD_AT_MOST:
            raise self._wrong("lists more brokers than any cluster has")
        return at

    def _go_on(self, data: bytes | None) -> None:
        """Give the bytes asked for, and note what is asked for next: so many bytes, or, if negative, to skip as many."""
        try:
            asked = self._steps.send(data)  # type: ignore[arg-type]  # None starts it
        except StopIteration:
            self.is_done = True
            return
        self._skip, self._want = (-asked, 0) if asked < 0 else (0, asked)
        if self.position + abs(asked) > self._size:
            raise self._wrong("runs past its end")

    def _wrong(self, what: str) -> UnrewritableError:
        return UnrewritableError(f"{self._name}, {self._size} bytes, {what} at byte {self.position}")

    # --- steps: generators that yield what they want, a number of bytes to be sent, or a negative one to be skipped -----------------

    def _message(self) -> Steps:
        yield -4  # correlation id
        if self._plan.has_header_tags:
            yield from self._tags()
        yield from self._struct(self._plan.ops)

    def _struct(self, ops: tuple[Op, ...]) -> Steps:
        for kind, size, inner in ops:
            if kind == "fixed":
                yield -size
            elif kind == "tags":
                byte = (yield 1)[0]
                if byte:
                    yield from self._tags(byte)
            elif kind == "compact":
                byte = (yield 1)[0]
                length = (byte if byte < 0x80 else (yield from self._varint(byte))) - 1
                if length > 0:
                    yield -length
            elif kind == "array":
                yield from self._array(size, inner)
            elif kind == "struct":
                yield from self._struct(inner)
            elif kind == "address":
                yield from self._address()
            elif kind == "hidden array":
                yield from self._hide_array(inner)
            elif kind == "hidden tag":
                yield from self._tags(hidden=True)
            else:
                yield from self._bytes(kind)

    def _array(self, size: int, inner: tuple[Op, ...]) -> Steps:
        count = yield from self._count(size)
        if len(inner) == 1 and inner[0].kind == "fixed":
            if count > 0:
                yield -size * count
            return
        for _ in range(count):
            yield from self._struct(inner)

    def _address(self) -> Steps:
        node_id = int.from_bytes((yield 4), "big", signed=True)
        begin = self.position
        length = (yield from self._varint()) - 1 if self._plan.flexible else int.from_bytes((yield 2), "big", signed=True)
        try:
            host = (yield length).decode() if length > 0 else ""
        except UnicodeDecodeError:
            raise self._wrong("names a host that is not text") from None
        port = int.from_bytes((yield 4), "big", signed=True)
        if node_id >= 0 and host:  # else there is none: no coordinator yet
            new_host, new_port = self._translate(node_id, host, port)
            self.edits.append(Edit(begin, self.position, self._text(new_host) + new_port.to_bytes(4, "big")))

    def _hide_array(self, inner: tuple[Op, ...]) -> Steps:
        self.held_from = begin = self.position
        count = yield from self._count(_least(inner))
        for _ in range(count):
            yield from self._struct(inner)
        tags = yield from self._varint()
        if count > 0:
            self.edits.append(Edit(begin, self.position, _without_elements(self.position - begin, tags)))
        self.held_from = None
        yield from self._tagged_fields(tags)

    def _tags(self, first_byte: int | None = None, *, hidden: bool = False) -> Steps:
        yield from self._tagged_fields((yield from self._varint(first_byte)), hidden=hidden)

    def _tagged_fields(self, count: int, *, hidden: bool = False) -> Steps:
        self._check_count(count, 2)
        for _ in range(count):
            begin = self.position
            tag = yield from self._varint()
            if hidden and tag == 0:
                if self.position - begin != 1:
                    raise self._wrong("writes a tag in more bytes than it needs")
                self.edits.append(Edit(begin, begin + 1, _UNKNOWN_TAGS[0]))
            size = yield from self._varint()
            if size:
                yield -size

    def _versions_steps(self, version: int) -> Steps:
        yield -4
        if int.from_bytes((yield 2), "big", signed=True) == _UNSUPPORTED_VERSION:
            version = 0  # how a broker answers a version that it does not support
        elif version not in LAYOUTS[API_VERSIONS].versions:
            raise _unknown_version(LAYOUTS[API_VERSIONS], version)
        flexible = version in LAYOUTS[API_VERSIONS].flexible
        begin = self.position
        count = (yield from self._varint()) - 1 if flexible else int.from_bytes((yield 4), "big", signed=True)
        end, left = self.position, count
        self._check_count(count, 6 + flexible)
        edits: list[Edit] = []
        for _ in range(count):
            start = self.position
            key, first, last = struct.unpack(">hhh", (yield 6))
            if flexible:
                yield from self._tags()
            known = KNOWN.get(key)
            if known is None or last <= known.last:
                continue
            if first > known.last:
                left -= 1
                edits.append(Edit(start, self.position, b""))
            else:
                edits.append(Edit(start + 4, start + 6, known.last.to_bytes(2, "big")))
            self._lowered(key, last, known.last if first <= known.last else -1)
        if left != count:
            self.edits.append(Edit(begin, end, _varint(left + 1) if flexible else left.to_bytes(4, "big")))
        self.edits += edits

    # --- lengths and counts ---------------------------------------------------------------------------------------------------------

    def _bytes(self, kind: str) -> Steps:
        width = 2 if kind == "string" else 4
        length = int.from_bytes((yield width), "big", signed=True)
        if length > 0:
            yield -length

    def _count(self, least: int) -> Number:
        count = (yield from self._varint()) - 1 if self._plan.flexible else int.from_bytes((yield 4), "big", signed=True)
        self._check_count(count, least)
        return count

    def _check_count(self, count: int, least: int) -> None:
        if count * least > self._size - self.position:
            raise self._wrong(f"counts {count} elements")

    def _varint(self, byte: int | None = None) -> Number:
        if byte is None:
            byte = (yield 1)[0]
        value = byte & 0x7F
        for shift in range(7, 35, 7):
            if byte < 0x80:
                return value
            byte = (yield 1)[0]
            value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        raise self._wrong("has a length of more than five bytes")

    def _text(self, text: str) -> bytes:
        data = text.encode()
        return (_varint(len(data) + 1) if self._plan.flexible else len(data).to_bytes(2, "big")) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _without_elements(size: int, tags: int) -> bytes:
    """An empty array and the beginning of the tag section behind it, with a tagged field that is not known, in as many bytes as asked."""
    begin = b"\x01" + _varint(tags + 1)
    for tag in _UNKNOWN_TAGS:
        for width in (1, 2, 3, 4):
            length = size - len(begin) - len(tag) - width
            if length >= 0 and len(_varint(length)) == width:
                return begin + tag + _varint(length) + bytes(length)
    raise UnrewritableError(f"{size} bytes of brokers' addresses cannot be hidden")
