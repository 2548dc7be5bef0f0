"""TCP segments of many connections in, both byte streams of each out: in order, each byte once, and what was not captured said.

Two directions of a connection are not independent: a segment that acknowledges a byte was sent after that byte had arrived. So a segment
is passed on only when the bytes before it in its own direction *and* those that it acknowledges in the other have been, and a response
never overtakes its request, whatever order the capture has them in.

A hole that will still be filled must be distinguished from one that will not. What the receiver has acknowledged it will not be sent
again: if the capture lacks it, it is lost but for the little disorder of a capture on several queues. What was not acknowledged was
lost on the way, and is sent again later, sometimes much later.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from streaming.mirror.pcap.segments import ACK, FIN, RST, SYN, Segment, reverse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

DISORDER_US: Final = 100_000
"""How long acknowledged bytes may be missing before they count as not captured."""

RETRANSMISSION_US: Final = 30_000_000
"""The same for bytes that were not acknowledged."""

HELD_AT_MOST: Final = 16 * 2**20
"""Bytes held behind a hole of one connection."""

IDLE_US: Final = 3_600_000_000
"""A connection without a packet for this long is forgotten; brokers end idle ones after 10 minutes."""

_FINISHED_US: Final = 60_000_000  # how long stray packets of a finished connection are still known for what they are
_SWEEP_US: Final = 60_000_000

MODULUS: Final = 0xFFFFFFFF
HALF: Final = 0x80000000
SPECIAL: Final = FIN | SYN | RST


class StreamListener(Protocol):
    """What becomes of one connection. Sides are numbered: 0 sent the first packet seen, 1 the other."""

    def received(self, side: int, data: bytes, at_us: int) -> None:
        """The next bytes from a side."""

    def missed(self, side: int, count: int, at_us: int) -> None:
        """The next bytes from a side were not captured."""

    def finished(self, side: int, at_us: int) -> None:
        """A side sends no more: it has closed its end of the connection."""

    def closed(self, at_us: int) -> None:
        """Both sides have finished, or one has reset the connection."""


class _Held(NamedTuple):
    """A segment that waits for others; ordered by its place in the stream, then by its arrival."""

    start: int
    number: int
    acknowledges: int
    payload: bytes
    missing: int
    fin: bool
    at_us: int

    @property
    def end(self) -> int:
        """Behind its last byte."""
        return self.start + len(self.payload) + self.missing


class Half:
    """One direction. Positions are sequence numbers that do not wrap."""

    __slots__ = ("acknowledged", "finished", "held", "next", "origin", "other", "side", "stream")

    def __init__(self, stream: Stream, side: int) -> None:
        self.stream = stream
        self.side = side
        self.other = self
        self.origin = -1
        self.next = -1  #: position of the next byte to pass on; -1 while unknown
        self.acknowledged = -1  #: how far the receiver has acknowledged
        self.held: list[_Held] = []
        self.finished = False

    def begin(self, sequence: int) -> None:
        """Say where the direction begins, or where it is first seen."""
        self.next = self.acknowledged = self.origin = sequence

    def position(self, sequence: int) -> int:
        """The position nearest to the next byte that has this sequence number."""
        return self.next + ((sequence - self.next + HALF) & MODULUS) - HALF

    def hole(self) -> int:
        """Where the missing bytes at :attr:`next` end; the same position when the next bytes are there."""
        if not self.held:
            return max(self.acknowledged, self.next)
        end = max(self.held[0].start, self.next)
        return min(end, self.acknowledged) if self.acknowledged > self.next else end

    def free(self) -> _Held | None:
        """The earliest segment that waits for nothing."""
        if not self.held or self.held[0].start > self.next:
            return None
        if self.held[0].acknowledges <= self.other.next:
            return self.held[0]
        ready = (held for held in self.held if held.start <= self.next)
        free = (held for held in ready if held.acknowledges <= self.other.next or held.end + held.fin <= self.next)
        return min(free, key=_arrival, default=None)

    def is_gone(self) -> bool:
        """Whether the next bytes will not be sent again: their receiver has them."""
        return self.acknowledged > self.next and self.hole() > self.next


def _arrival(held: _Held | None) -> float:
    return held.number if held is not None else inf


def _patience_us(stream: Stream) -> int:
    awaits_retransmission = not any(half.is_gone() for half in stream.halves) and any(
        half.hole() > half.next for half in stream.halves
    )
    return RETRANSMISSION_US if awaits_retransmission else DISORDER_US


class Stream:
    """One connection."""

    __slots__ = ("halves", "held_bytes", "last_us", "listener", "over", "passed_us", "plain", "waiting_since_us")

    listener: StreamListener

    def __init__(self) -> None:
        first, second = Half(self, 0), Half(self, 1)
        first.other, second.other = second, first
        self.halves = (first, second)
        self.plain = False  #: both positions are known and nothing waits
        self.over = False  #: finished, reset or of no interest
        self.last_us = 0  #: newest packet
        self.passed_us = 0  #: time of what was passed on last
        self.held_bytes = 0
        self.waiting_since_us = 0

    def ignore(self) -> None:
        """Drop this connection: its bytes are not wanted any more."""
        self.over = True
        self.plain = False
        self.held_bytes = 0
        for half in self.halves:
            half.held.clear()


class Reassembler:
    """Follows all connections of a capture.

    :param accept: asked about each new connection, with the stream, its first segment and the time; gives the listener, or None to
        ignore it.
    """

    def __init__(self, accept: Callable[[Stream, Segment, int], StreamListener | None]) -> None:
        self._accept = accept
        self.halves: dict[bytes, Half] = {}  #: by key
        self._waiting: dict[Stream, None] = {}
        self._number = 0
        self._swept_us = 0
        self._looked_us = 0  # when patience was last lost

    def segment(self, segment: Segment, at_us: int) -> None:
        """Take the next segment in the order of the capture."""
        if self._waiting and at_us - self._looked_us >= DISORDER_US:
            self.give_up_waiting(at_us)
        key, sequence, acknowledges, flags, payload, missing = segment
        half = self.halves.get(key)
        if half is None or flags & SYN:
            half = self._introduced(half, segment, at_us)
            if half is None:
                return
        stream = half.stream
        stream.last_us = at_us
        if stream.plain and not flags & SPECIAL and not missing and (half.other.next - acknowledges) & MODULUS < HALF:
            if not payload:
                return
            ahead = (sequence - half.next) & MODULUS
            if ahead >= HALF:  # sent before, or partly
                payload = payload[MODULUS + 1 - ahead :]
                if not payload:
                    return
                ahead = 0
            if not ahead:
                half.next += len(payload)
                stream.passed_us = at_us
                stream.listener.received(half.side, payload, at_us)
                return
        if not stream.over:
            self._consider(half, segment, at_us)

    def tick(self, at_us: int) -> None:
        """Let capture time pass: about once a second."""
        self.give_up_waiting(at_us)
        if at_us - self._swept_us >= _SWEEP_US:
            self._swept_us = at_us
            for key, half in list(self.halves.items()):
                if at_us - half.stream.last_us >= (_FINISHED_US if half.stream.over else IDLE_US):
                    del self.halves[key]

    def keep(self, ports: Collection[bytes]) -> None:
        """Forget all connections but those of some ports, as they are on the wire."""
        for key, half in list(self.halves.items()):
            if key[-4:-2] not in ports and key[-2:] not in ports:
                half.stream.ignore()
                self._waiting.pop(half.stream, None)
                del self.halves[key]

    def give_up_waiting(self, at_us: int) -> None:
        """Say what is missing where it was waited for long enough."""
        self._looked_us = at_us
        for stream in list(self._waiting):
            self._lose_patience(stream, at_us)

    def finish(self) -> None:
        """The capture has ended: what still waits is passed on, what is missing is said."""
        for stream in list(self._waiting):
            self._flush(stream)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _introduced(self, half: Half | None, segment: Segment, at_us: int) -> Half | None:
        """The direction that a SYN or the first packet belongs to; None where there is nothing to follow."""
        key, sequence, _, flags, payload, missing = segment
        opening = flags & (SYN | ACK) == SYN
        start = (sequence + (flags & SYN > 0)) & MODULUS
        if half is not None:
            if half.next < 0:
                half.begin(start)
            if not opening or (not half.stream.over and half.origin == start):
                return half  # known, or sent again
            if not half.stream.over:  # its ports are used again, and its end was not captured
                self._flush(half.stream)
                self._end(half.stream, at_us)
        elif not (payload or missing or flags & SYN):
            return None
        stream = Stream()
        listener = self._accept(stream, segment, at_us)
        if listener is None:
            return None
        stream.listener = listener
        half = stream.halves[0]
        half.begin(start)
        self.halves[key] = half
        self.halves[reverse(key)] = half.other
        return half

    def _consider(self, half: Half, segment: Segment, at_us: int) -> None:
        """Take a segment that is not simply the next one."""
        _, sequence, acknowledges, flags, payload, missing = segment
        stream, other = half.stream, half.other
        if flags & RST:
            self._flush(stream)
            self._end(stream, at_us)
            return
        sequence = (sequence + (flags & SYN > 0)) & MODULUS  # a SYN takes one number, before any data
        if half.next < 0:
            half.begin(sequence)
        acknowledged = -1
        if flags & ACK:
            if other.next < 0:
                other.begin(acknowledges)
            acknowledged = other.position(acknowledges)
            other.acknowledged = max(other.acknowledged, acknowledged)
        start, fin = half.position(sequence), bool(flags & FIN)
        if start + len(payload) + missing + fin > half.next:
            self._number += 1
            heappush(half.held, _Held(start, self._number, acknowledged, payload, missing, fin, at_us))
            stream.held_bytes += len(payload)
        self._drain(stream)
        if stream in self._waiting:
            self._lose_patience(stream, at_us)

    def _drain(self, stream: Stream) -> None:
        """Pass on what may be passed on."""
        one, two = stream.halves
        while not stream.over:
            found = min((half.free() for half in stream.halves), key=_arrival)
            if found is None:
                break
            self._pass_on(one if found in one.held else two, found)
        waits = any(half.held or half.acknowledged > half.next for half in stream.halves)
        stream.plain = not stream.over and not waits and one.next >= 0 <= two.next
        if stream.over or not waits:
            self._waiting.pop(stream, None)
        elif stream not in self._waiting:
            self._waiting[stream] = None
            stream.waiting_since_us = stream.last_us

    def _pass_on(self, half: Half, held: _Held) -> None:
        stream = half.stream
        if held is half.held[0]:
            heappop(half.held)
        else:
            half.held.remove(held)
            heapify(half.held)
        stream.held_bytes -= len(held.payload)
        stream.passed_us = at_us = max(held.at_us, stream.passed_us)
        payload = held.payload[half.next - held.start :]
        if payload:
            half.next += len(payload)
            stream.listener.received(half.side, payload, at_us)
        if half.next < held.end:
            count, half.next = held.end - half.next, held.end
            stream.listener.missed(half.side, count, at_us)
        if held.fin and half.next == held.end:
            half.next += 1
            half.finished = True
            if half.other.finished:
                self._end(stream, at_us)
            else:
                stream.listener.finished(half.side, at_us)

    def _lose_patience(self, stream: Stream, now_us: int) -> None:
        """Give up what was waited for long enough."""
        while stream in self._waiting:
            since_us = min((half.held[0].at_us for half in stream.halves if half.held), default=stream.waiting_since_us)
            if now_us - since_us <= _patience_us(stream) and stream.held_bytes <= HELD_AT_MOST:
                return
            self._give_up(stream)
            self._drain(stream)

    def _give_up(self, stream: Stream) -> None:
        """Take the bytes of one hole for lost: of one whose receiver has them, if there is any."""
        half = max(stream.halves, key=lambda half: (half.is_gone(), half.hole() > half.next))
        end = half.hole()
        if end == half.next:
            # Each side waits for what the other acknowledges: only copies that were sent later have been captured.
            found = min((half.held[0] for half in stream.halves if half.held), key=_arrival)
            self._pass_on(half if found in half.held else half.other, found)
            return
        behind = half.held[0].at_us if half.held else stream.waiting_since_us
        stream.passed_us = at_us = max(behind, stream.passed_us)
        count, half.next = end - half.next, end
        stream.listener.missed(half.side, count, at_us)

    def _flush(self, stream: Stream) -> None:
        self._drain(stream)
        while stream in self._waiting:
            self._give_up(stream)
            self._drain(stream)

    def _end(self, stream: Stream, at_us: int) -> None:
        if not stream.over:
            stream.ignore()
            self._waiting.pop(stream, None)
            stream.listener.closed(max(at_us, stream.passed_us))
