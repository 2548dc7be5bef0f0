"""Packets out of capture files: pcap and pcapng, plain or compressed, from a file or while they are being written.

A packet's original length (what the snap length has cut off), all interfaces of a pcapng file, and whether a file ends in the middle of a
packet are kept. No length that a damaged file claims is taken for true.

A stream that is being written (``tcpdump -U -w -``) must not be read in full chunks, or the newest packets wait for the next. So packets
are given in lists, each of what was there when the file was read on.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

# The first part of a file is small, so that a replay shows something soon.
_FIRST_CHUNK: Final = 1 << 17
_CHUNK: Final = 1 << 20

LARGEST_PACKET: Final = 16 * 2**20
"""Bytes. A longer packet or block is taken for damage: snap lengths are 256 KiB at most, blocks carry little beside a packet."""

Packet = tuple[int, int, bytes, int]
"""Capture time in µs since the epoch, link type, captured bytes, original length."""


class Seam(NamedTuple):
    """From here on another file goes on, and none covers the time before."""

    at_us: int


class Ended(NamedTuple):
    """A file has ended, and others go on."""

    at_us: int


_COMPRESSED: Final[tuple[tuple[bytes, Callable[[Any], Any]], ...]] = (
    (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    (b"\xfd7zXZ\0", lzma.LZMAFile),
    (b"BZh", bz2.BZ2File),
)

COMPRESSED: Final = tuple(begins for begins, _ in _COMPRESSED)
"""How files begin that are decompressed here."""

_PACKED: Final = (
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "zstd -dc FILE | rebalance-monitor replay -"),
    (b"\x04\x22\x4d\x18", "compressed with lz4", "lz4 -dc FILE | rebalance-monitor replay -"),
    (b"PK\x03\x04", "a zip archive", "unpack it into a folder, and name that"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it into a folder, and name that"),
)
"""How a file begins that is packed, what that is, and what to do."""

_DECOMPRESSION_ERRORS: Final = (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error)


class _PcapForm(NamedTuple):
    order: str
    nanoseconds: bool
    packet_header: int  #: bytes


_PCAP_FORMS: Final = {
    number.to_bytes(4, order): _PcapForm("<" if order == "little" else ">", nanoseconds, size)
    for number, nanoseconds, size in ((0xA1B2C3D4, False, 16), (0xA1B23C4D, True, 16), (0xA1B2CD34, False, 24))
    for order in ("big", "little")
}
"""By how a pcap file begins; the last is that of Alexey Kuznetzov's patched libpcap."""

_FILE_HEADER: Final = 24

_PCAPNG: Final = b"\x0a\x0d\x0d\x0a"  # reads the same in both byte orders
# Types of pcapng blocks, and codes of an interface's options.
_SECTION_HEADER: Final = int.from_bytes(_PCAPNG, "big")
_INTERFACE: Final = 1
_OBSOLETE_PACKET: Final = 2
_SIMPLE_PACKET: Final = 3
_ENHANCED_PACKET: Final = 6
_SECRETS: Final = 10
_END_OF_OPTIONS, _RESOLUTION, _OFFSET = 0, 9, 14
_TLS_KEY_LOG: Final = 0x544C534B
_MICROSECONDS: Final = 1_000_000


class CaptureError(Exception):
    """A file cannot be read as a packet capture; the message says why, without the file's name."""


def opened(raw: BinaryIO) -> Source:
    """A stream of bytes, decompressed if it is gzip, xz or bzip2.

    :raises CaptureError: when it is packed in another way.
    """
    source = Source(raw)
    magic = source.peek(6)
    for begins, decompressor in _COMPRESSED:
        if magic.startswith(begins):
            return Source(decompressor(source), damaged=_DECOMPRESSION_ERRORS)
    for begins, what, remedy in _PACKED:
        if magic.startswith(begins):
            raise CaptureError(f"is {what}, which is not read here: {remedy}")
    return source


class Source:
    """Bytes of a file or pipe as they come, with a look ahead; file-like as far as decompressors ask for it.

    :param damaged: what reading raises on damaged data; every method then raises :class:`CaptureError`.
    """

    def __init__(self, raw: Any, damaged: tuple[type[Exception], ...] = ()) -> None:
        self._read: Callable[[int], bytes] = getattr(raw, "read1", raw.read)
        self._damaged = damaged
        self._ahead = b""
        self._chunk = _FIRST_CHUNK

    def peek(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer only at the end, without taking them."""
        while len(self._ahead) < count and (more := self._read_some()):
            self._ahead += more
        return self._ahead[:count]

    def more(self) -> bytes:
        """What there is, at least one byte; nothing at the end."""
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            return ahead
        return self._read_some()

    def read(self, count: int = -1) -> bytes:
        """As a file's, but may give fewer bytes than asked for before the end."""
        if count < 0:
            return b"".join(iter(self.more, b""))
        taken = self.more()
        self._ahead = taken[count:]
        return taken[:count]

    def _read_some(self) -> bytes:
        try:
            data = self._read(self._chunk)
        except self._damaged as error:
            raise CaptureError(f"holds compressed data that is damaged or cut short ({error})") from None
        self._chunk = min(2 * self._chunk, _CHUNK)
        return data


def is_packets(magic: bytes) -> bool:
    """Whether a file that begins so (four bytes) is a pcap or pcapng file."""
    return magic == _PCAPNG or magic in _PCAP_FORMS


def packets(
    source: Source, damage: Callable[[str], None], secrets: Callable[[bytes], None] = lambda _: None
) -> Iterator[list[Packet]]:
    """The packets of a capture, in the file's order, in lists as they come.

    :param damage: called with half a sentence that says why reading ended before the file did.
    :param secrets: called with the lines of a TLS key log that a pcapng file holds.
    :raises CaptureError: when it is no capture at all.
    """
    magic = source.peek(4)
    if not magic:
        raise CaptureError("is empty")
    if magic == _PCAPNG:
        return _pcapng(source, damage, secrets)
    if magic not in _PCAP_FORMS:
        raise CaptureError("is no packet capture: it begins like neither pcap nor pcapng")
    return _pcap(source, _pcap_header(source), damage)


# --- pcap ----------------------------------------------------------------------------------------------------------------------------


class _PcapHeader(NamedTuple):
    link: int
    nanoseconds: bool
    packet_header: struct.Struct  #: seconds, fraction of the second, captured and original length


def _pcap_header(source: Source) -> _PcapHeader:
    form = _PCAP_FORMS[source.peek(4)]
    raw = source.peek(_FILE_HEADER)
    if len(raw) < _FILE_HEADER:
        raise CaptureError("ends within its file header")
    source.read(_FILE_HEADER)
    return _PcapHeader(
        link=struct.unpack_from(f"{form.order}20xI", raw)[0] & 0xFFFF,  # above that stands how long the frame check sequence is
        nanoseconds=form.nanoseconds,
        packet_header=struct.Struct(f"{form.order}IIII{form.packet_header - 16}x"),
    )


def _pcap(source: Source, header: _PcapHeader, damage: Callable[[str], None]) -> Iterator[list[Packet]]:
    data = b""
    size, unpack, link = header.packet_header.size, header.packet_header.unpack_from, header.link
    units_a_microsecond = 1000 if header.nanoseconds else 1
    while more := _more(source, damage):
        data += more
        found: list[Packet] = []
        begin, last = 0, len(data) - size
        while begin <= last:
            seconds, fraction, captured, original = unpack(data, begin)
            end = begin + size + captured
            if end > len(data):
                break
            found.append((seconds * _MICROSECONDS + fraction // units_a_microsecond, link, data[begin + size : end], original))
            begin = end
        if found:
            yield found
        data = data[begin:]
        if len(data) >= size and (captured := unpack(data)[2]) > LARGEST_PACKET:
            damage(f"is damaged: a packet of {captured:,} bytes")
            return
    if data:
        damage("ends in the middle of a packet")


def _more(source: Source, damage: Callable[[str], None]) -> bytes:
    try:
        return source.more()
    except CaptureError as error:
        damage(str(error))
        return b""


# --- pcapng --------------------------------------------------------------------------------------------------------------------------


class _Interface(NamedTuple):
    link: int
    snap_length: int
    units_a_second: int
    offset_us: int

    def at_us(self, high: int, low: int) -> int:
        return (high << 32 | low) * _MICROSECONDS // self.units_a_second + self.offset_us


class _Section:
    """What the blocks of a section are read by: its byte order, and the interfaces described so far."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.interfaces: list[_Interface] = []
        self.last_us = 0
        self._enhanced = struct.Struct(order + "8xIIIII").unpack_from
        self._obsolete = struct.Struct(order + "8xHHIIII").unpack_from

    def describe(self, block: bytes) -> None:
        """An interface description block."""
        link, snap_length = struct.unpack_from(self.order + "8xH2xI", block)
        if struct.unpack_from(self.order + "I", block, len(block) - 4)[0] != len(block):
            raise ValueError
        units, offset_us = _MICROSECONDS, 0
        for code, value in self._options(block[16:-4]):
            if code == _RESOLUTION:
                units = (2 if value[0] & 0x80 else 10) ** (value[0] & 0x7F)
            elif code == _OFFSET:
                offset_us = struct.unpack(self.order + "q", value)[0] * _MICROSECONDS
        self.interfaces.append(_Interface(link, snap_length, units, offset_us))

    def _options(self, written: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at < len(written):
            code, size = struct.unpack_from(self.order + "HH", written, at)
            if code == _END_OF_OPTIONS:
                return
            yield code, written[at + 4 : at + 4 + size]
            at += 4 + (size + 3) // 4 * 4

    def key_log(self, block: bytes) -> bytes:
        """The TLS key log in a decryption secrets block, empty if its secrets are of another kind."""
        kind, size = struct.unpack_from(self.order + "II", block, 8)
        return block[16 : 16 + size] if kind == _TLS_KEY_LOG else b""

    def packet(self, kind: int, block: bytes) -> Packet | None:
        """A packet block of any kind; None for other blocks. Simple packets carry no time and get that of the one before."""
        if kind == _ENHANCED_PACKET:
            number, high, low, captured, original = self._enhanced(block)
        elif kind == _OBSOLETE_PACKET:
            number, _, high, low, captured, original = self._obsolete(block)
        elif kind == _SIMPLE_PACKET:
            original = struct.unpack_from(self.order + "I", block, 8)[0]
            captured = min(original, self.interfaces[0].snap_length or original, len(block) - 16)
            return self.last_us, self.interfaces[0].link, block[12 : 12 + captured], original
        else:
            return None
        interface = self.interfaces[number]
        self.last_us = at_us = interface.at_us(high, low)
        if captured > len(block) - 32:
            raise ValueError
        return at_us, interface.link, block[28 : 28 + captured], original


def _pcapng(source: Source, damage: Callable[[str], None], secrets: Callable[[bytes], None]) -> Iterator[list[Packet]]:
    section: _Section | None = None
    for blocks in _blocks(source, damage):
        found: list[Packet] = []
        for block in blocks:
            if block.kind == _SECTION_HEADER:
                section = _Section(block.order)
                continue
            assert section is not None
            try:
                if block.kind == _INTERFACE:
                    section.describe(block.bytes)
                    continue
                if block.kind == _SECRETS:
                    secrets(section.key_log(block.bytes))
                    continue
                packet = section.packet(block.kind, block.bytes)
            except (struct.error, ValueError, IndexError):
                if found:
                    yield found
                damage(f"is damaged: a block of type {block.kind} that contradicts itself")
                return
            if packet is not None:
                found.append(packet)
        if found:
            yield found


class _Block(NamedTuple):
    kind: int
    order: str
    bytes: bytes


def _blocks(source: Source, damage: Callable[[str], None]) -> Iterator[list[_Block]]:
    data, order = b"", "<"
    while more := _more(source, damage):
        data += more
        position, size = 0, len(data)
        blocks: list[_Block] = []
        while position + 12 <= size:
            if data[position : position + 4] == _PCAPNG:  # a section chooses its byte order
                order = "<" if data[position + 8 : position + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            kind, length = struct.unpack_from(order + "II", data, position)
            if length < 12 or length % 4 or length > LARGEST_PACKET:
                yield blocks
                damage(f"is damaged: a block of {length:,} bytes")
                return
            if position + length > size:
                break
            blocks.append(_Block(kind, order, data[position : position + length]))
            position += length
        yield blocks
        data = data[position:]
    if data:
        damage("ends in the middle of a block")
